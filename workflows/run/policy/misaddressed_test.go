package policy_test

import (
	"time"

	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// misaddressed are events that come too late, too early or for something else: each is like one that the state may take,
// but for one number or name. None may ever be accepted.
func misaddressed(w *walk) []policy.Event {
	var events []policy.Event
	present := w.tried()
	for _, wrong := range []func(a *policy.Attempted){
		func(a *policy.Attempted) { a.EffectID = "fx_other" },
		func(a *policy.Attempted) { a.EffectID = w.s.Chain()[0].Effect },
		func(a *policy.Attempted) { a.Generation-- },
		func(a *policy.Attempted) { a.Generation++ },
		func(a *policy.Attempted) { a.Attempt-- },
	} {
		a := present
		if wrong(&a); a == present {
			continue // the first effect is the present one
		}
		events = append(events,
			policy.ProviderDispatchFailed{Attempted: a, Code: "hung"}, policy.ProviderDispatchFailed{Attempted: a, Code: policy.FailureDrift},
			policy.ProviderDispatchDeferred{Attempted: a, Class: "busy"}, policy.ProviderDispatchOutcomeUnknown{Attempted: a},
			policy.RuntimeOrSessionEvicted{Attempted: a}, policy.RuntimeOrSessionEvicted{Attempted: a, Armed: true},
			policy.ProviderUserActionRequired{Attempted: a, Class: "login"})
		if a.Attempt != present.Attempt {
			continue // an attempt has no number beside its generation for the events below
		}
		if a.Generation != present.Generation-1 {
			events = append(events, policy.ProviderDispatchSucceeded{Attempted: a, At: w.at})
		}
		word := w.word(policy.VerdictNotApplied)
		word.EffectID, word.Generation, word.WithoutObservation = a.EffectID, a.Generation, true
		look := w.look(false, true)
		look.EffectID, look.Generation = a.EffectID, a.Generation
		events = append(events, policy.ProviderDispatchStarted{EffectID: a.EffectID, Generation: a.Generation}, word, look)
	}
	for _, id := range []string{"fx_other", w.s.Chain()[0].Effect} {
		if id == w.s.Effect.ID {
			continue
		}
		turn := w.turn(w.receipt(receipt.Continue))
		turn.EffectID = id
		events = append(events, turn, policy.ControllerClaimObserved{EffectID: id, At: w.at}, policy.ControllerReleaseObserved{EffectID: id, At: w.at},
			policy.ControllerTurnSettled{EffectID: id}, policy.RecoveryRequested{EffectID: id, Operator: "ann", Reason: "again"},
			policy.SupersedeRequested{EffectID: id, Operator: "ann", Reason: "lost", AcceptDuplicate: true},
			policy.SemanticDispositionSubmitted{EffectID: id, Receipt: w.receipt(receipt.Continue)},
			policy.InterruptObserved{EffectID: id, Outcome: policy.InterruptStopped})
	}
	return append(events, misnumbered(w)...)
}

// misnumbered have the number of an earlier or later look, run, probe or revision.
func misnumbered(w *walk) []policy.Event {
	turn := w.turn(w.receipt(receipt.Continue))
	turn.Look--
	later := w.turn(w.receipt(receipt.Continue))
	later.Look++
	look := w.look(false, true)
	look.Look--
	events := []policy.Event{
		turn, later, look,
		policy.TimerElapsed{Key: "timer:other"},
		policy.NotSubmittable{Event: "effect_observed"},
		policy.OccurrenceRequested{Start: startOf(secondRun, nil)},
		policy.TerminalWorkObserved{},
		policy.AuthorityRecoveryRequested{Revision: w.s.Revision - 1, AuthorityID: w.s.AuthorityID, Operator: "ann"},
		policy.AuthorityRecoveryRequested{Revision: w.s.Revision, AuthorityID: "au_other", Operator: "ann"},
		policy.ApprovalGiven{Completion: "cp_other", Operator: "ann", Reason: "good"},
		policy.ProposalValidated{Completion: "cp_other", Results: []policy.CheckVerdict{{Name: "tests", Outcome: policy.CheckPass}}},
		policy.UserResumeRequested{Operator: "ann", Reason: "solved", Answers: "cp_other"},
		policy.ProviderDispatchStarted{EffectID: "pr_other", Generation: 1},
	}
	if o := w.owes(); o.At.After(w.at) {
		events = append(events, policy.TimerElapsed{Key: o.Key})
	}
	if p := w.s.Proposal; p != nil {
		pass := []policy.CheckVerdict{{Name: "tests", Outcome: policy.CheckPass}}
		events = append(events, policy.ProposalValidated{Completion: p.Completion, Run: p.Runs - 1, Results: pass},
			policy.ProposalValidated{Completion: p.Completion, Run: p.Runs + 1, Results: pass})
	}
	if w.s.Blocker != nil {
		for _, wrong := range []func(e *policy.ProviderEnvironmentRecovered){
			func(e *policy.ProviderEnvironmentRecovered) { e.Probe = "pr_other" },
			func(e *policy.ProviderEnvironmentRecovered) { e.Blocker = "bl_other" },
			func(e *policy.ProviderEnvironmentRecovered) { e.Revision-- },
		} {
			e := w.probe(true, "message")
			wrong(&e)
			events = append(events, e)
		}
		events = append(events, policy.SemanticStateChanged{Blocker: "bl_other", Look: w.s.Blocker.Probes, Fingerprint: "changed"},
			policy.SemanticStateChanged{Blocker: w.s.Blocker.ID, Look: w.s.Blocker.Probes - 1, Fingerprint: "changed"})
	}
	return append(events, w.deferredOf("fx_other"))
}

func (w *walk) deferredOf(effect string) policy.Event {
	e := w.deferred("busy", time.Time{}).(policy.ProviderDispatchDeferred)
	e.EffectID = effect
	return e
}
