package run

import (
	"fmt"
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
type page struct{ machine.Page }

func details(s policy.State, b machine.Book) string {
	var p page
	w := s.Explain()
	p.Line("**Status:** `%s`%s", w.Status, paused(s))
	if s.Goal != nil {
		p.Line("\n**Goal:** %s\n", machine.Text(s.Goal.Outcome))
		p.Line("**Conversation:** %s (`%s`), scope `%s`%s\n", place(s), s.Site.Site, s.Scope, proposed(s))
	}
	p.waits(w)
	p.effect(s)
	if c := s.Completion; c.ID != "" {
		p.Line("\n**Last checkpoint** (%s, %s): %s", c.Action, c.At.UTC().Format(clock), machine.Text(c.Checkpoint))
	}
	if s.Proposal != nil {
		for _, r := range s.Proposal.Results {
			p.Line("- check `%s`: %s %s", machine.Text(r.Name), r.Outcome, machine.Text(r.Code+" "+r.Line))
		}
	}
	if s.Goal != nil {
		f := s.Budgets.ProviderFailures
		p.Line("\n| budget | used | of |\n| --- | --- | --- |")
		p.Line("| rounds | %d | %d |", s.Budgets.Rounds, s.Budgets.MaxRounds)
		p.Line("| repeated state | %d | %d |", s.Budgets.RepeatedState, s.Budgets.MaxRepeatedState)
		p.Line("| provider failures in a row | %d (%d in all, epoch %d) | %d |", f.Streak, f.Total, f.Epoch, f.Max)
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
		return fmt.Sprintf(" · stop asked for by %s: %s", machine.Text(s.Stop.By), machine.Text(s.Stop.Reason))
	case s.Paused != nil:
		return fmt.Sprintf(" · **paused** by %s: %s", machine.Text(s.Paused.By), machine.Text(s.Paused.Reason))
	}
	return ""
}

func (p *page) waits(w policy.Why) {
	due := ""
	if !w.DueAt.IsZero() {
		due = ", due " + w.DueAt.UTC().Format(clock)
	}
	p.Line("**Waits for:** %s%s", w.WaitsFor, due)
	if w.Blocker != nil {
		p.Line("\n**Blocked:** `%s` since %s: %s", w.Blocker.Class, w.Blocker.Since.UTC().Format(clock), machine.Text(w.Blocker.Code+" "+w.Blocker.Detail))
	}
	if w.Deferral != nil {
		p.Line("\n**Send deferred:** `%s` since %s", w.Deferral.Class, w.Deferral.Since.UTC().Format(clock))
	}
	if a := w.Attention; a != nil {
		p.Line("\n**Needs a person** (`%s`, since %s): %s\n\n`%s`", a.Class, a.Since.UTC().Format(clock), machine.Text(a.Ask), a.Command)
	}
	if m := w.Succession; m != nil {
		to := m.Successor
		if to == "" {
			to = m.ConversationURL + " " + m.Scope
		}
		p.Line("\n**Handed over** (%s): %s", m.Kind, machine.Text(to))
	}
	for _, id := range w.Duplicates {
		p.Line("\n**May stand twice:** the superseded `%s` was seen in the conversation", id)
	}
	for _, problem := range w.Failure {
		p.Line("- %s", machine.Text(problem))
	}
}

func (p *page) effect(s policy.State) {
	e := s.Effect
	if e.ID == "" {
		return
	}
	p.Line("\n**Effect:** `%s` %s, generation %d, `%s`", e.ID, e.Kind, e.Generation, e.State)
	for _, r := range s.Retired {
		p.Line("- superseded: `%s` `%s`", r.ID, r.State)
	}
}

const shownEntries = 12

func (p *page) journal(b machine.Book) {
	if len(b.Journal) == 0 {
		return
	}
	p.Line("\n| at | event | decision |\n| --- | --- | --- |")
	entries := b.Journal[max(0, len(b.Journal)-shownEntries):]
	for _, e := range entries {
		p.Line("| %s | %s | %s %s %s |", e.At.UTC().Format(time.TimeOnly), machine.Text(e.Event), e.Decision, e.Code, machine.Text(e.Note))
	}
}
