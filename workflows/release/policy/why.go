package policy

import (
	"fmt"
	"time"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
)

// Attention is what a person is needed for. Command resolves it.
type Attention struct {
	Class   string    `json:"class"`
	Since   time.Time `json:"since"`
	Ask     string    `json:"ask"`
	Command string    `json:"command"`
}

// Why explains a state: what it waits for, until when, and what would move it.
type Why struct {
	Phase     string     `json:"phase"`
	Session   string     `json:"session,omitempty"`
	Since     time.Time  `json:"since,omitzero"`
	Owes      string     `json:"owes"`
	WaitsFor  string     `json:"waits_for"`
	DueAt     time.Time  `json:"due_at,omitzero"`
	Deadline  time.Time  `json:"deadline,omitzero"`
	Work      Work       `json:"work,omitzero"`
	Operation *Operation `json:"operation,omitempty"`
	Back      *Back      `json:"back,omitempty"`
	Aborted   *Word      `json:"aborted,omitempty"`
	End       *End       `json:"end,omitempty"`
	Attention *Attention `json:"attention,omitempty"`
}

// Explain says why the session stands where it stands.
func (s *State) Explain() Why {
	o := Policy{}.Obligation(*s)
	w := Why{
		Phase: s.Shown(), Session: s.Session, Since: s.Since, Owes: o.Kind, WaitsFor: o.Summary, Work: s.Work,
		Operation: s.Operation, Back: s.Back, Aborted: s.Aborted, End: s.End, Attention: s.Attention(),
	}
	if !s.Terminal() {
		w.Deadline = s.Deadline
	}
	if o.Class == kernel.Timer {
		w.DueAt = o.At
	}
	return w
}

// Shown is the phase that people see.
func (s *State) Shown() string {
	if s.Phase == Starting {
		return "starting"
	}
	return string(s.Phase)
}

// Good tells whether the release became known-good.
func (s *State) Good() bool { return s.Phase == KnownGood }

// Attention is what the session needs a person for; nil when it needs none. The command is ready to copy.
func (s *State) Attention() *Attention {
	needs := func(class string, since time.Time, ask, format string, args ...any) *Attention {
		return &Attention{Class: class, Since: since, Ask: ask, Command: "steward " + fmt.Sprintf(format, args...)}
	}
	switch {
	case s.Terminal() && byHand(s.End.Code):
		return needs(s.End.Code, s.End.At, "the service needs a hand: "+s.End.Detail+
			"; nothing was deleted, both databases are in the session folder "+s.Session, "recovery status")
	case s.Terminal() || s.Plan == nil:
		return nil
	case s.Operation != nil && s.Operation.Asked:
		return needs(CodeOutcomeUnknown, s.Operation.Began, fmt.Sprintf("nobody can tell what %s %s did; look at the service", s.Operation.Kind, s.Operation.ID),
			"release applied|not-applied %s --operation %s --reason …", s.WorkflowID, s.Operation.ID)
	case s.Operation == nil && s.Back == nil && s.Phase == CutoverEligible && s.Plan.NeedsPerson() && s.Promoted == nil:
		return needs("promote", s.Since, "everything is proven of "+short(s.Release)+"; the switch waits for a person",
			"release promote %s --reason …", s.WorkflowID)
	case s.Work.Parked:
		return needs("parked", s.Since, s.Work.Code+" "+s.Work.Detail, "release unknown|abort %s --reason …", s.WorkflowID)
	}
	return nil
}

// byHand are the ends after which the service may not run.
func byHand(code string) bool {
	switch code {
	case CodeUnserviceable, CodeRollbackNotApplied, CodeOutcomeUnknown, CodeAuthorityDrift:
		return true
	}
	return false
}

// Record is what the session folder keeps of the end.
func (s *State) Record() evidence.Session {
	r := evidence.Session{
		ID: s.Session, Revision: s.Plan.Source.Revision, Release: s.Release, Origin: s.Plan.Origin, Phase: string(s.Phase), At: s.End.At,
	}
	r.Code = s.End.Code
	return r
}
