package release

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/release/evidence"
	"steward/workflows/release/policy"
)

// view is what an operator sees: the page of current details, the search attributes, the memo of the inbox.
func view(s policy.State, b machine.Book) machine.View {
	v := machine.View{
		Details: details(s, b), Status: s.Shown(), Revision: s.Revision, Current: s.Explain(),
		Keywords: map[string]string{
			workflows.AttributeReleasePhase.GetName(): s.Shown(),
			workflows.AttributeRelease.GetName():      s.Release,
		},
	}
	if a := s.Attention(); a != nil {
		v.Attention = a
	}
	return v
}

const clock = "2006-01-02 15:04:05 MST"

// page builds Markdown line by line.
type page struct{ machine.Page }

func short(hash string) string { return hash[:min(12, len(hash))] }

func details(s policy.State, b machine.Book) string {
	var p page
	w := s.Explain()
	p.Line("**Phase:** `%s`%s", w.Phase, since(w.Since))
	if s.Plan != nil {
		p.Line("\n**Instance:** `%s` · **session** `%s` · **revision** `%s` · asked for by %s\n",
			machine.Text(s.Plan.Instance), s.Session, short(s.Plan.Source.Revision), s.Plan.Origin)
		p.Line("| lane | release | incarnation | home |\n| --- | --- | --- | --- |")
		p.lane("A, before", s.Stable)
		p.lane("B, isolated", s.Candidate)
		p.lane("live now", s.Active)
	}
	p.waits(w)
	if s.WentBack() {
		p.Line("\n**A serves as before**: release `%s`", short(s.Stable.Release))
	}
	p.operation(w)
	p.soak(s)
	p.receipts(s.Receipts)
	p.journal(b)
	return p.String()
}

func since(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return " since " + at.UTC().Format(clock)
}

func (p *page) lane(name string, i evidence.Identity) {
	if i.Release != "" {
		p.Line("| %s | `%s` | %d | %s |", name, short(i.Release), i.Incarnation, machine.Text(i.Home))
	}
}

func (p *page) waits(w policy.Why) {
	if w.End != nil {
		p.Line("\n**Ended** at %s%s", w.End.At.UTC().Format(clock), reason(w.End.Code, w.End.Detail))
		for _, problem := range w.End.Problems {
			p.Line("- %s", machine.Text(problem))
		}
	} else {
		p.Line("\n**Waits for:** %s", machine.Text(w.WaitsFor))
		if !w.Deadline.IsZero() {
			p.Line("\n**Deadline:** %s", w.Deadline.UTC().Format(clock))
		}
	}
	if w.Work.Code != "" {
		p.Line("\n**Last try:** %s %s (%d so far)", machine.Text(w.Work.Code), machine.Text(w.Work.Detail), w.Work.Try)
	}
	if a := w.Attention; a != nil {
		p.Line("\n**Needs a person** (`%s`, since %s): %s\n\n`%s`", a.Class, a.Since.UTC().Format(clock), machine.Text(a.Ask), a.Command)
	}
}

// reason is a code with its detail; empty for a good end.
func reason(code, detail string) string {
	if code == "" {
		return ""
	}
	return fmt.Sprintf(": `%s` %s", code, machine.Text(detail))
}

func (p *page) operation(w policy.Why) {
	if w.Aborted != nil {
		p.Line("\n**Aborted** by %s: %s", machine.Text(w.Aborted.By), machine.Text(w.Aborted.Reason))
	}
	if w.Back != nil {
		p.Line("\n**Goes back** to A: `%s` %s", w.Back.Code, machine.Text(w.Back.Detail))
	}
	if o := w.Operation; o != nil {
		p.Line("\n**Operation:** %s `%s`, attempt %d, `%s`, last step `%s`", o.Kind, o.ID, o.Generation, o.State, machine.Text(o.Step))
		if f := o.Seen; f != nil {
			p.Line("- seen %s: `%s` serves (ready: %t), active is `%s`, last operation %s of `%s`",
				f.At.UTC().Format(clock), short(f.Serving), f.Ready, short(f.Active), machine.Text(f.Last.Kind), machine.Text(f.Last.Session))
		}
	}
}

func (p *page) soak(s policy.State) {
	if sw := s.Switch; sw != nil {
		p.Line("\n**Switched** at %s, outage %d ms", sw.At.UTC().Format(clock), sw.OutageMillis)
	}
	k := s.Soak
	if k.Since.IsZero() {
		return
	}
	p.Line("\n| known-good needs | |\n| --- | --- |")
	p.Line("| CPU use | %s, %d windows, %d off schedule |", mark(k.Performance), len(k.Windows), k.OffSchedule)
	p.Line("| soak until %s | %s |", k.Until.UTC().Format(clock), mark(k.Served))
	p.Line("| live proof | %s |", strings.TrimSpace(mark(k.Proof.Passed)+" "+machine.Text(k.Proof.WorkflowID+" "+k.Proof.Status)))
	p.Line("| verification | %s |", mark(k.Verified))
	p.Line("| bundle | %s |", mark(k.Bundle != ""))
}

func mark(done bool) string {
	if done {
		return "✓"
	}
	return "–"
}

const shownReceipts = 16

func (p *page) receipts(all []evidence.Receipt) {
	if len(all) == 0 {
		return
	}
	p.Line("\n| receipt | outcome | at | |\n| --- | --- | --- | --- |")
	for _, r := range slices.Backward(all[max(0, len(all)-shownReceipts):]) {
		p.Line("| `%s` | %s | %s | %s |", machine.Text(r.Gate), r.Outcome, r.At.UTC().Format(time.TimeOnly), machine.Text(said(r)))
	}
}

// said is what a receipt tells: its code, unless its line begins with it.
func said(r evidence.Receipt) string {
	if strings.HasPrefix(r.Line, r.Code) {
		return r.Line
	}
	return strings.TrimSpace(r.Code + " " + r.Line)
}

const shownEntries = 12

func (p *page) journal(b machine.Book) {
	if len(b.Journal) == 0 {
		return
	}
	p.Line("\n| at | event | decision |\n| --- | --- | --- |")
	for _, e := range b.Journal[max(0, len(b.Journal)-shownEntries):] {
		p.Line("| %s | %s | %s %s %s |", e.At.UTC().Format(time.TimeOnly), machine.Text(e.Event), e.Decision, e.Code, machine.Text(e.Note))
	}
}
