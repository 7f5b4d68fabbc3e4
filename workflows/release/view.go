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
type page struct{ strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// text keeps words of people and programs from becoming Markdown or HTML of the page.
func text(s string) string {
	const longest = 400
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest-1]) + "…"
	}
	return strings.NewReplacer("<", "&lt;", "[", `\[`, "`", "'", "|", `\|`).Replace(s)
}

func short(hash string) string { return hash[:min(12, len(hash))] }

func details(s policy.State, b machine.Book) string {
	var p page
	w := s.Explain()
	p.line("**Phase:** `%s`%s", w.Phase, since(w.Since))
	if s.Plan != nil {
		p.line("\n**Instance:** `%s` · **session** `%s` · **revision** `%s` · asked for by %s\n",
			text(s.Plan.Instance), s.Session, short(s.Plan.Source.Revision), s.Plan.Origin)
		p.line("| lane | release | incarnation | home |\n| --- | --- | --- | --- |")
		p.lane("A, before", s.Stable)
		p.lane("B, isolated", s.Candidate)
		p.lane("live now", s.Active)
	}
	p.waits(w)
	if s.WentBack() {
		p.line("\n**A serves as before**: release `%s`", short(s.Stable.Release))
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
		p.line("| %s | `%s` | %d | %s |", name, short(i.Release), i.Incarnation, text(i.Home))
	}
}

func (p *page) waits(w policy.Why) {
	if w.End != nil {
		p.line("\n**Ended** at %s%s", w.End.At.UTC().Format(clock), reason(w.End.Code, w.End.Detail))
		for _, problem := range w.End.Problems {
			p.line("- %s", text(problem))
		}
	} else {
		p.line("\n**Waits for:** %s", text(w.WaitsFor))
		if !w.Deadline.IsZero() {
			p.line("\n**Deadline:** %s", w.Deadline.UTC().Format(clock))
		}
	}
	if w.Work.Code != "" {
		p.line("\n**Last try:** %s %s (%d so far)", text(w.Work.Code), text(w.Work.Detail), w.Work.Try)
	}
	if a := w.Attention; a != nil {
		p.line("\n**Needs a person** (`%s`, since %s): %s\n\n`%s`", a.Class, a.Since.UTC().Format(clock), text(a.Ask), a.Command)
	}
}

// reason is a code with its detail; empty for a good end.
func reason(code, detail string) string {
	if code == "" {
		return ""
	}
	return fmt.Sprintf(": `%s` %s", code, text(detail))
}

func (p *page) operation(w policy.Why) {
	if w.Aborted != nil {
		p.line("\n**Aborted** by %s: %s", text(w.Aborted.By), text(w.Aborted.Reason))
	}
	if w.Back != nil {
		p.line("\n**Goes back** to A: `%s` %s", w.Back.Code, text(w.Back.Detail))
	}
	if o := w.Operation; o != nil {
		p.line("\n**Operation:** %s `%s`, attempt %d, `%s`, last step `%s`", o.Kind, o.ID, o.Generation, o.State, text(o.Step))
		if f := o.Seen; f != nil {
			p.line("- seen %s: `%s` serves (ready: %t), active is `%s`, last operation %s of `%s`",
				f.At.UTC().Format(clock), short(f.Serving), f.Ready, short(f.Active), text(f.Last.Kind), text(f.Last.Session))
		}
	}
}

func (p *page) soak(s policy.State) {
	if sw := s.Switch; sw != nil {
		p.line("\n**Switched** at %s, outage %d ms", sw.At.UTC().Format(clock), sw.OutageMillis)
	}
	k := s.Soak
	if k.Since.IsZero() {
		return
	}
	p.line("\n| known-good needs | |\n| --- | --- |")
	p.line("| CPU use | %s, %d windows, %d off schedule |", mark(k.Performance), len(k.Windows), k.OffSchedule)
	p.line("| soak until %s | %s |", k.Until.UTC().Format(clock), mark(k.Served))
	p.line("| live proof | %s |", strings.TrimSpace(mark(k.Proof.Passed)+" "+text(k.Proof.WorkflowID+" "+k.Proof.Status)))
	p.line("| verification | %s |", mark(k.Verified))
	p.line("| bundle | %s |", mark(k.Bundle != ""))
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
	p.line("\n| receipt | outcome | at | |\n| --- | --- | --- | --- |")
	for _, r := range slices.Backward(all[max(0, len(all)-shownReceipts):]) {
		p.line("| `%s` | %s | %s | %s |", text(r.Gate), r.Outcome, r.At.UTC().Format(time.TimeOnly), text(said(r)))
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
	p.line("\n| at | event | decision |\n| --- | --- | --- |")
	for _, e := range b.Journal[max(0, len(b.Journal)-shownEntries):] {
		p.line("| %s | %s | %s %s %s |", e.At.UTC().Format(time.TimeOnly), text(e.Event), e.Decision, e.Code, text(e.Note))
	}
}
