package policy

// Terminal tells whether nothing can happen any more.
func (s *State) Terminal() bool {
	switch s.Status {
	case GoalComplete, HandedOff, Stopped, Failed:
		return true
	}
	return false
}

// valid tells whether status and stage are a pair of the policy's table, with what such a state cannot be without. All
// else fails closed. Source: "ControllerRound transition policy", Durable state classes.
func (s *State) valid() bool {
	if s.Status != "" && !s.Terminal() && (s.Goal == nil || s.Site == nil) {
		return false
	}
	if !s.Terminal() && s.unbound() && s.Effect.ID != "" && s.Effect.Kind != KindBootstrap {
		return false // any other prompt would create a second conversation
	}
	switch s.Status {
	case "":
		return s.Stage == ""
	case Dispatching:
		return s.Stage == StageDispatching && s.Effect.sendable()
	case Dispatched:
		return s.Stage == StageConfirmed && s.Effect.State == EffectApplied
	case Claimed:
		return s.Stage == StageClaimed && s.Effect.State == EffectApplied
	case PendingRelease:
		return s.Stage == StageClosed && (s.Next != nil || s.Proposal != nil || s.Succession != nil)
	case Waiting, GoalComplete, HandedOff:
		return s.Stage == StageClosed
	case WaitingForUser:
		return s.Stage == StageClosed || s.Stage == StageDispatching && s.Blocker != nil
	case Blocked:
		return s.Stage.known() && s.Blocker != nil
	case Failed, Stopped:
		return s.Stage == "" || s.Stage.known()
	}
	return false
}

func (s Stage) known() bool {
	switch s {
	case StageDispatching, StageConfirmed, StageClaimed, StageClosed:
		return true
	}
	return false
}

// sendable tells whether the effect is on its way to its outcome.
func (e *Effect) sendable() bool {
	switch e.State {
	case EffectReserved, EffectDispatching, EffectUnknown:
		return true
	}
	return false
}
