package policy

import (
	"fmt"
	"time"
)

// FailureStartRefused is the type of the failure that ends a refused start.
const FailureStartRefused = "start_refused"

// admit judges a start against what the same workflow id left behind. A start is not by itself a fresh occurrence.
// Source: "ControllerRound transition policy", Fresh occurrence rule.
func (d *draft) admit(s Start) verdict {
	d.WorkflowID, d.RunID, d.TaskID = s.WorkflowID, s.RunID, TaskID(s.WorkflowID)
	if len(s.Problems) > 0 {
		return d.refuseStart(s, s.Problems...)
	}
	d.Goal, d.Site, d.Totals, d.Scope = s.Goal, s.Site, s.Totals, s.Goal.Scope
	if s.LineageError != "" && s.Goal.Replan == nil {
		return d.refuseStart(s, fmt.Sprintf(
			"%s: what this workflow id left behind cannot be read (%s); start again when it can, or say replan to begin without it",
			CodeLineageUnreadable, s.LineageError))
	}
	c := s.Goal.Continuation
	d.Budgets = Budgets{
		MaxRounds: *c.MaxRounds, MaxRepeatedState: *c.MaxRepeatedState, ProviderFailures: Failures{Max: *c.MaxProviderFailures},
	}
	d.RelayScopeID = d.derive("rs_", d.TaskID, 0)
	d.Adopting = s.Goal.Adopt != nil
	if past := left(s.Lineage); past != nil {
		d.askAgain(past)
		if problems := d.judge(past); len(problems) > 0 {
			return d.refuseStart(s, problems...)
		}
		d.inherit(past)
	}
	d.rotate()
	d.ClaimGeneration++
	if d.Effect.State == EffectUnknown {
		d.enter(Dispatching, StageDispatching)
		return acceptAs("unknown_inherited")
	}
	d.enroll()
	return accepted
}

// enroll begins with the first prompt: one that creates the conversation where there is none yet.
func (d *draft) enroll() {
	d.Effect = d.rendered(d.reserve(d.opening(), "", ""))
	d.enter(Dispatching, StageDispatching)
}

// opening is the kind of the prompt that begins the work.
func (s *State) opening() EffectKind {
	switch {
	case s.unbound():
		return KindBootstrap
	case s.Adopting:
		return KindAdopt
	}
	return KindEnrollment
}

// dropInherited ends the business of an earlier start; this one begins with its own enrollment.
func (d *draft) dropInherited() {
	d.Blocker = nil
	d.enroll()
}

// Tells says whether a state that a run left is one to judge a start by. A run that ended before it was admitted, and a
// refused start that could not see what was there before it, changed no lineage: what an earlier run left counts.
func (s *State) Tells() bool {
	if f := s.Failure; f != nil && f.Code == FailureStartRefused {
		return f.Lineage != nil
	}
	return s.Goal != nil
}

// left is the state that a lineage left: that of a refused start is the one it saw.
func left(l *Lineage) *State {
	if l == nil || l.State == nil || !l.State.Tells() {
		return nil
	}
	if f := l.State.Failure; f != nil && f.Code == FailureStartRefused {
		return f.Lineage
	}
	return l.State
}

// judge lists what forbids a start over the state that the lineage left; the strictest row counts.
func (d *draft) judge(past *State) (problems []string) {
	replan, same := d.Goal.Replan != nil, past.Scope == d.Scope
	problems = barred(past, d.Scope, replan)
	if d.Adopting && past.RunID != d.RunID {
		problems = append(problems, CodeLineageAdopted+": the conversation was enrolled before; start it without adopt")
	}
	if replan || !same {
		return problems
	}
	grown := func(key string, now, before int) {
		if before > 0 && now > before {
			problems = append(problems, fmt.Sprintf("%s: continuation.%s is %d; the lineage began with %d and only replan may add",
				CodeMaximumGrown, key, now, before))
		}
	}
	grown("max_rounds", d.Budgets.MaxRounds, past.Budgets.MaxRounds)
	grown("max_repeated_state", d.Budgets.MaxRepeatedState, past.Budgets.MaxRepeatedState)
	grown("max_provider_failures", d.Budgets.ProviderFailures.Max, past.Budgets.ProviderFailures.Max)
	return problems
}

func ask(past *State) string {
	switch {
	case past.Blocker != nil:
		return string(past.Blocker.Class) + " " + past.Blocker.Code
	case past.Completion.Ask != nil:
		return past.Completion.Ask.Ask
	}
	return "approval of a DONE"
}

// inherit carries budgets, identity and an effect of unknown outcome into the new start.
func (d *draft) inherit(past *State) {
	if past.TaskID != "" {
		d.TaskID, d.RelayScopeID = past.TaskID, past.RelayScopeID
	}
	d.ClaimGeneration, d.Rotations = past.ClaimGeneration, past.Rotations
	now := d.Budgets
	d.Budgets = past.Budgets
	d.Budgets.MaxRounds = now.MaxRounds
	d.Budgets.MaxRepeatedState = now.MaxRepeatedState
	d.Budgets.ProviderFailures.Max = now.ProviderFailures.Max
	if past.Scope != d.Scope && d.Goal.Replan == nil { // a lineage of its own; what the browser failed at is no matter of the scope
		d.Budgets.Rounds, d.Budgets.RepeatedState, d.Budgets.Stagnation = 0, 0, false
	}
	if r := d.Goal.Replan; r != nil {
		d.Budgets.MaxRounds = max(past.Budgets.MaxRounds, past.Budgets.Rounds) + r.AddRounds
		d.Budgets.ProviderFailures.Streak = 0
		d.Budgets.ProviderFailures.Epoch++
		d.Budgets.RepeatedState, d.Budgets.Stagnation = 0, false
	}
	if past.RunID == d.RunID { // a reset to before the admission: the ids of this start go on where they were
		d.Sequence = past.Sequence
	}
	d.Completion = past.Completion
	d.Predecessors = past.Predecessors
	if past.Scope != d.Scope {
		d.Predecessors = past.ended(d.WorkflowID, d.at)
	}
	d.Occurrences, d.Retired = past.Occurrences, past.Retired
	switch past.Effect.State {
	case EffectUnknown, EffectDispatching:
		d.Effect = doubtful(past.Effect)
	}
}

// doubtful is an effect of an earlier run that was neither applied nor proven not applied.
func doubtful(e Effect) Effect {
	e.State, e.Inherited = EffectUnknown, true
	e.Looks, e.NotBefore, e.Word = 0, time.Time{}, nil
	return e
}

// ended are the scopes of a workflow id that have ended for good, with the present one when it has.
func (s *State) ended(workflowID string, at time.Time) []Node {
	if s.Status != GoalComplete && s.Status != HandedOff || s.left(s.Scope) != nil {
		return s.Predecessors
	}
	return appendBounded(s.Predecessors, maxNodes, Node{
		WorkflowID: workflowID, Scope: s.Scope, Status: s.Status, Completion: s.Completion.ID, Rounds: s.Budgets.Rounds, At: at,
	})
}

const maxProblems = 100

// refuseStart fails the start and keeps the lineage it saw, so that a refusal changes no lineage.
func (d *draft) refuseStart(s Start, problems ...string) verdict {
	if over := len(problems) - maxProblems; over > 0 {
		problems = append(problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", over))
	}
	d.Failure = &Failure{Code: FailureStartRefused, Problems: problems, Lineage: left(s.Lineage)}
	d.Status = Failed
	return acceptAs(FailureStartRefused)
}
