package policy

import (
	"fmt"
	"slices"
	"time"

	"steward/workflows/machine/kernel"
)

// Attention is what a person is needed for. Command resolves it.
type Attention struct {
	Class   string    `json:"class"`
	Since   time.Time `json:"since"`
	Ask     string    `json:"ask"`
	Command string    `json:"command"`
}

// Why explains a state: what it waits for, since when, and what would move it.
type Why struct {
	Status    Status     `json:"status"`
	Stage     Stage      `json:"stage,omitempty"`
	Paused    *Pause     `json:"paused,omitempty"`
	Blocker   *Blocker   `json:"blocker,omitempty"`
	Owes      string     `json:"owes"`
	WaitsFor  string     `json:"waits_for"`
	DueAt     time.Time  `json:"due_at,omitzero"`
	Effect    string     `json:"effect,omitempty"`
	Attempt   int        `json:"generation,omitempty"`
	State     string     `json:"effect_state,omitempty"`
	Deferral  *Deferral  `json:"deferral,omitempty"`
	LastProof time.Time  `json:"last_proof_of_life,omitzero"`
	Attention *Attention `json:"attention,omitempty"`
	Failure   []string   `json:"failure,omitempty"`
	// Succession is a move that is under way or done; Duplicates are superseded effects that were seen after all.
	Succession *Succession `json:"succession,omitempty"`
	Duplicates []string    `json:"duplicates,omitempty"`
}

// Explain says why the run stands where it stands.
func (s *State) Explain() Why {
	o := Policy{}.Obligation(*s)
	w := Why{
		Status: s.Shown(), Stage: s.Stage, Paused: s.Paused, Blocker: s.Blocker, Owes: o.Kind, WaitsFor: o.Summary,
		Effect: s.Effect.ID, Attempt: s.Effect.Generation, State: string(s.Effect.State), Deferral: s.Effect.Deferral,
		Attention: s.Attention(), LastProof: latest(s.Effect.AppliedAt, s.Turn.SeenAt, s.Turn.ActivityAt, s.Turn.SettledAt, s.Completion.At),
	}
	if o.Class == kernel.Timer {
		w.DueAt = o.At
	}
	w.Succession = s.Succession
	for _, r := range s.Retired {
		if r.State == EffectApplied {
			w.Duplicates = append(w.Duplicates, r.ID)
		}
	}
	if s.Failure != nil {
		w.Failure = s.Failure.Problems
	}
	return w
}

func latest(times ...time.Time) (last time.Time) {
	for _, t := range times {
		if t.After(last) {
			last = t
		}
	}
	return last
}

// Shown is the status that people see: the zero state waits for its admission.
func (s *State) Shown() Status {
	if s.Status == "" {
		return Waiting
	}
	return s.Status
}

// Attribute is the coarse status for lists: it does not change within a turn.
func (s *State) Attribute() string {
	switch s.Status {
	case Dispatching, Dispatched, Claimed, PendingRelease:
		if s.Paused != nil {
			return "paused"
		}
		return "running"
	}
	return string(s.Shown())
}

// Attention is what the run needs a person for; nil when it needs none. The command is ready to copy.
func (s *State) Attention() *Attention {
	if s.Terminal() || s.Stop != nil {
		return nil
	}
	needs := func(class string, since time.Time, ask, format string, args ...any) *Attention {
		return &Attention{Class: class, Since: since, Ask: ask, Command: "steward run " + fmt.Sprintf(format, args...)}
	}
	switch {
	case s.Blocker != nil:
		b := s.Blocker
		command := fmt.Sprintf("resume %s --answers %s --reason …", s.WorkflowID, b.ID)
		switch b.Class {
		case BlockedUnknown:
			command = fmt.Sprintf("applied %s --effect %s --generation %d --reason … # or not-applied", s.WorkflowID, s.Effect.ID, s.Effect.Generation)
		case BlockedRecovery:
			command = fmt.Sprintf("recover %s --effect %s --reason …", s.WorkflowID, s.Effect.ID)
		case BlockedRounds, BlockedOwned:
			command = fmt.Sprintf("stop %s --reason …", s.WorkflowID)
		case BlockedRepeatedState:
			command += " --note …"
		}
		return needs(string(b.Class), b.Since, b.Code+" "+b.Detail, "%s", command)
	case s.Proposal != nil && s.Proposal.Approval:
		return needs("approval", s.Completion.At, "approve or decline the DONE: "+s.Completion.Checkpoint,
			"approve %s --completion %s --reason …", s.WorkflowID, s.Completion.ID)
	case s.Status == WaitingForUser && s.Completion.Ask != nil:
		return needs(s.Completion.Ask.Kind, s.Completion.At, s.Completion.Ask.Ask,
			"resume %s --answers %s --reason …", s.WorkflowID, s.Completion.ID)
	case s.Turn.Overdue:
		return needs("turn_overdue", s.Effect.AppliedAt, "the turn neither settles nor fails; nothing is re-sent", "why %s", s.WorkflowID)
	case !s.Turn.NotBefore.IsZero():
		return needs("turn_needs_user", s.Turn.NotBefore.Add(-userActionLook), s.Turn.Class+" "+s.Turn.Detail, "why %s", s.WorkflowID)
	case s.Effect.Deferral != nil && s.Effect.Deferral.Overdue:
		return needs("send_deferred", s.Effect.Deferral.Since, s.Effect.Deferral.Class, "why %s", s.WorkflowID)
	}
	return nil
}

// Proof is the chain of turns with what each committed, and the totals that an auditor compares with the site.
type Proof struct {
	RunID      string       `json:"run_id"`
	TaskID     string       `json:"task_id"`
	Status     Status       `json:"status"`
	Turns      int          `json:"turns"`
	Dispatches int          `json:"dispatches"`
	Completion Completion   `json:"completion,omitzero"`
	Chain      []LedgerTurn `json:"chain"`
	Unknown    []string     `json:"unknown,omitempty"`
}

// Chain has the last turns with the present one, oldest first.
func (s *State) Chain() []LedgerTurn {
	if s.Effect.ID == "" || s.Effect.Inherited {
		return s.Ledger
	}
	return append(slices.Clone(s.Ledger), s.openTurn())
}

// openTurn is the present effect and its turn.
func (s *State) openTurn() LedgerTurn {
	e := &s.Effect
	t := LedgerTurn{
		Effect: e.ID, Kind: e.Kind, Round: s.Budgets.Rounds, Generation: e.Generation, Reserved: e.ReservedAt, Dispatched: e.BegunAt,
		Applied: e.AppliedAt, Seen: s.Turn.SeenAt, Settled: s.Turn.SettledAt, Receipt: s.Turn.Receipt,
	}
	if last := len(e.Attempts) - 1; e.State == EffectApplied && last >= 0 {
		a := e.Attempts[last]
		t.Generation, t.Release, t.Incarnation = a.Generation, a.Worker.Release, a.Worker.Incarnation
	}
	if c := &s.Completion; c.Effect == e.ID {
		t.Committed, t.Action, t.Receipt = c.At, c.Action, c.Form
	}
	return t
}

// Proof shows what the run did.
func (s *State) Proof() Proof {
	p := Proof{
		RunID: s.WorkflowID, TaskID: s.TaskID, Status: s.Shown(), Turns: s.Turns, Dispatches: s.Dispatches, Completion: s.Completion, Chain: s.Chain(),
	}
	for _, e := range append([]Effect{s.Effect}, s.Retired...) {
		if e.State == EffectUnknown {
			p.Unknown = append(p.Unknown, e.ID)
		}
	}
	return p
}
