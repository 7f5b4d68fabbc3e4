package policy

import "fmt"

// Barred lists what the earlier runs of the conversation that a move leads to left behind, and that forbids it: a move is no
// way around a fuse, a wait or the end of a scope. What this task itself left there when it moved away bars nothing.
// Source: "ControllerRound transition policy", Fresh occurrence rule.
func (s *State) Barred(target *Lineage) []string {
	past := s.foreign(target)
	if past == nil || s.Succession.Kind == SuccessionBootstrap {
		return nil
	}
	scope := s.Scope
	if s.Succession.Scope != "" {
		scope = s.Succession.Scope
	}
	return barred(past, scope, false)
}

// foreign is the state that another task left at the target of a move.
func (s *State) foreign(target *Lineage) *State {
	if past := left(target); past != nil && past.TaskID != s.TaskID {
		return past
	}
	return nil
}

// takeOver carries what another task left at the conversation into its new run: the scopes that have ended there for good, the
// superseded effects that are still watched, and an effect of unknown outcome, which is looked for before anything is sent.
func (d *draft) takeOver(target *Lineage) {
	past := d.foreign(target)
	if past == nil {
		return
	}
	for _, n := range past.ended(d.WorkflowID, d.at) {
		d.Predecessors = appendBounded(d.Predecessors, maxNodes, n)
	}
	for _, r := range past.Retired {
		d.Retired = appendBounded(d.Retired, maxRetired, r)
	}
	switch {
	case past.Effect.State != EffectUnknown && past.Effect.State != EffectDispatching:
	case d.Status == Dispatching && d.Effect.State == EffectReserved && d.Effect.Kind == KindEnrollment:
		d.Effect = doubtful(past.Effect)
	default: // nothing is sent yet; the marker is looked for with every turn
		d.Retired = appendBounded(d.Retired, maxRetired, doubtful(past.Effect))
	}
}

// barred lists what forbids a start or a move over the state that a lineage left; the strictest row counts.
func barred(past *State, scope string, replan bool) (problems []string) {
	status, class := past.Status, blockedNone
	if status == Stopped && past.Stop != nil {
		status = past.Stop.Left
	}
	if past.Blocker != nil {
		class = past.Blocker.Class
	}
	same := past.Scope == scope
	refuse := func(code, remedy string) { problems = append(problems, code+": "+remedy) }
	switch {
	case (past.Status == GoalComplete || past.Status == HandedOff) && same:
		code := CodeLineageComplete
		if past.Status == HandedOff {
			code = CodeLineageHandedOff
		}
		remedy := fmt.Sprintf("scope %s has ended for good; start with a new scope", past.Scope)
		if next := past.HandedTo(); next != "" {
			remedy = fmt.Sprintf("scope %s goes on as %s; look there, or start with a new scope", past.Scope, next)
		}
		refuse(code, remedy)
	case past.left(scope) != nil:
		code := CodeLineageHandedOff
		if past.left(scope).Status == GoalComplete {
			code = CodeLineageComplete
		}
		refuse(code, fmt.Sprintf("scope %s has ended for good; start with a new scope", scope))
	case status == Waiting && same:
		refuse(CodeLineageWaiting, "the scope waits for an occurrence; send the signal occurrence to an open run, or start with a new scope")
	case status == WaitingForUser && !replan:
		refuse(CodeLineageWaitingForUser,
			"a person was asked for something ("+ask(past)+"); resolve it and start with replan{operator, reason, add_rounds}")
	case class == BlockedFailures && !replan:
		refuse(CodeLineageFailures,
			"the browser failed too often and nothing has proven its recovery; start with replan{operator, reason, add_rounds}")
	case past.Budgets.Rounds >= past.Budgets.MaxRounds && past.Budgets.MaxRounds > 0 && !replan:
		refuse(CodeLineageRounds, "every round of the budget is used; start with replan{operator, reason, add_rounds}")
	}
	return problems
}
