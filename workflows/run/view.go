package run

import (
	"fmt"
	"strings"
	"time"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run/policy"
)

// view is what an operator sees: the page of current details, the search attributes, the memo of the inbox.
func view(s policy.State, b machine.Book) machine.View {
	v := machine.View{
		Details: details(s, b), Status: string(s.Shown()), Revision: s.Revision, Current: s.Explain(),
		Keywords: map[string]string{workflows.AttributeStatus.GetName(): s.Attribute()},
		Numbers:  map[string]int64{},
	}
	if s.Blocker != nil {
		v.Keywords[workflows.AttributeBlocker.GetName()] = string(s.Blocker.Class)
	}
	if s.Site != nil {
		v.Keywords[workflows.AttributeSite.GetName()] = s.Site.Site
		v.Keywords[workflows.AttributeConversation.GetName()] = s.Site.ConversationID
		v.Numbers[workflows.AttributeRound.GetName()] = int64(s.Budgets.Rounds)
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

// text keeps words of people and assistants from becoming Markdown or HTML of the page.
func text(s string) string {
	const longest = 400
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest-1]) + "…"
	}
	return strings.NewReplacer("<", "&lt;", "[", `\[`, "`", "'", "|", `\|`).Replace(s)
}

func details(s policy.State, b machine.Book) string {
	var p page
	w := s.Explain()
	p.line("**Status:** `%s`%s", w.Status, paused(s))
	if s.Goal != nil {
		p.line("\n**Goal:** %s\n", text(s.Goal.Outcome))
		p.line("**Conversation:** %s (`%s`), scope `%s`%s\n", place(s), s.Site.Site, s.Scope, proposed(s))
	}
	p.waits(w)
	p.effect(s)
	if c := s.Completion; c.ID != "" {
		p.line("\n**Last checkpoint** (%s, %s): %s", c.Action, c.At.UTC().Format(clock), text(c.Checkpoint))
	}
	if s.Proposal != nil {
		for _, r := range s.Proposal.Results {
			p.line("- check `%s`: %s %s", text(r.Name), r.Outcome, text(r.Code+" "+r.Line))
		}
	}
	if s.Goal != nil {
		f := s.Budgets.ProviderFailures
		p.line("\n| budget | used | of |\n| --- | --- | --- |")
		p.line("| rounds | %d | %d |", s.Budgets.Rounds, s.Budgets.MaxRounds)
		p.line("| repeated state | %d | %d |", s.Budgets.RepeatedState, s.Budgets.MaxRepeatedState)
		p.line("| provider failures in a row | %d (%d in all, epoch %d) | %d |", f.Streak, f.Total, f.Epoch, f.Max)
	}
	p.journal(b)
	return p.String()
}

// proposed tells a scope that the conversation has not confirmed.
func proposed(s policy.State) string {
	if s.Adopting {
		return " (proposed; the conversation is asked for its own)"
	}
	return ""
}

// place is the address of the conversation, or where the first message creates it.
func place(s policy.State) string {
	if n := s.Goal.Target.New; n != nil && s.Site.ConversationID == "" {
		return fmt.Sprintf("a new one, `%s`, on %s", n.Key, s.Site.PageURL)
	}
	return s.Site.ConversationURL
}

func paused(s policy.State) string {
	switch {
	case s.Stop != nil:
		return fmt.Sprintf(" · stop asked for by %s: %s", text(s.Stop.By), text(s.Stop.Reason))
	case s.Paused != nil:
		return fmt.Sprintf(" · **paused** by %s: %s", text(s.Paused.By), text(s.Paused.Reason))
	}
	return ""
}

func (p *page) waits(w policy.Why) {
	due := ""
	if !w.DueAt.IsZero() {
		due = ", due " + w.DueAt.UTC().Format(clock)
	}
	p.line("**Waits for:** %s%s", w.WaitsFor, due)
	if w.Blocker != nil {
		p.line("\n**Blocked:** `%s` since %s: %s", w.Blocker.Class, w.Blocker.Since.UTC().Format(clock), text(w.Blocker.Code+" "+w.Blocker.Detail))
	}
	if w.Deferral != nil {
		p.line("\n**Send deferred:** `%s` since %s", w.Deferral.Class, w.Deferral.Since.UTC().Format(clock))
	}
	if a := w.Attention; a != nil {
		p.line("\n**Needs a person** (`%s`, since %s): %s\n\n`%s`", a.Class, a.Since.UTC().Format(clock), text(a.Ask), a.Command)
	}
	if m := w.Succession; m != nil {
		to := m.Successor
		if to == "" {
			to = m.ConversationURL + " " + m.Scope
		}
		p.line("\n**Handed over** (%s): %s", m.Kind, text(to))
	}
	for _, id := range w.Duplicates {
		p.line("\n**May stand twice:** the superseded `%s` was seen in the conversation", id)
	}
	for _, problem := range w.Failure {
		p.line("- %s", text(problem))
	}
}

func (p *page) effect(s policy.State) {
	e := s.Effect
	if e.ID == "" {
		return
	}
	p.line("\n**Effect:** `%s` %s, generation %d, `%s`", e.ID, e.Kind, e.Generation, e.State)
	for _, r := range s.Retired {
		p.line("- superseded: `%s` `%s`", r.ID, r.State)
	}
}

const shownEntries = 12

func (p *page) journal(b machine.Book) {
	if len(b.Journal) == 0 {
		return
	}
	p.line("\n| at | event | decision |\n| --- | --- | --- |")
	entries := b.Journal[max(0, len(b.Journal)-shownEntries):]
	for _, e := range entries {
		p.line("| %s | %s | %s %s %s |", e.At.UTC().Format(time.TimeOnly), text(e.Event), e.Decision, e.Code, text(e.Note))
	}
}
