package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// everyEvent is one of each, as well addressed at the state as it can be.
func everyEvent(w *walk) []policy.Event {
	id, a := w.s.Effect.ID, w.tried()
	r := w.receipt(receipt.Continue)
	events := []policy.Event{
		policy.OccurrenceRequested{OccurrenceID: "o1", Operator: "ann"},
		policy.ProviderDispatchStarted{EffectID: id, Generation: a.Generation},
		w.succeeded(), w.failed("composer_mismatch"), w.deferred("busy", time.Time{}),
		policy.ProviderDispatchOutcomeUnknown{Attempted: a},
		policy.RuntimeOrSessionEvicted{Attempted: a, Armed: true},
		policy.ProviderUserActionRequired{Attempted: a, Class: "login"},
		w.look(true, true), w.word(policy.VerdictApplied),
		policy.ControllerClaimObserved{EffectID: id, At: w.at},
		policy.ControllerTurnSettled{EffectID: id, At: w.at},
		w.turn(r),
		policy.SemanticDispositionSubmitted{EffectID: id, Receipt: r},
		policy.ControllerReleaseObserved{EffectID: id, At: w.at},
		policy.ProposalValidated{Completion: w.s.Completion.ID},
		policy.ApprovalGiven{Completion: w.s.Completion.ID, Operator: "ann", Reason: "good"},
		policy.ApprovalDeclined{Completion: w.s.Completion.ID, Operator: "ann", Reason: "bad"},
		policy.SuccessorBound{Successor: "run:x"},
		policy.StalledRoundObserved{},
		policy.SemanticStateChanged{Operator: "ann", Note: "changed"},
		policy.ProviderEnvironmentRecovered{Passed: true, Level: "message"},
		policy.PauseRequested{Operator: "ann", Reason: "wait"},
		w.resume(""),
		policy.TerminalWorkObserved{},
		policy.AuthorityRecoveryRequested{Revision: w.s.Revision, AuthorityID: w.s.AuthorityID, Operator: "ann", Reason: "lost"},
		policy.RecoveryRequested{EffectID: id, Operator: "ann", Reason: "again"},
		policy.SupersedeRequested{EffectID: id, Operator: "ann", Reason: "lost", AcceptDuplicate: true},
		policy.ConversationBound{EffectID: id},
		policy.ConversationRebound{ConversationURL: "https://chatgpt.com/c/x", Operator: "ann", Reason: "moved"},
		policy.GoalCancelled{Operator: "ann", Reason: "enough"},
		policy.StopRequested{Operator: "ann", Reason: "enough"},
		policy.CancelRequested{},
		policy.InterruptObserved{EffectID: id, Outcome: policy.InterruptStopped},
		policy.TimerElapsed{Key: w.owes().Key},
		policy.NotSubmittable{Event: "effect_observed"},
	}
	if w.s.Blocker != nil {
		events = append(events, w.resume(w.s.Blocker.ID), w.probe(true, "message"))
	}
	return events
}

func TestTerminalStatesTakeNothingAndNeverReopen(t *testing.T) {
	for name, s := range map[string]policy.State{
		"goal_complete": complete(t), "stopped": stopped(start(t).round()), "refused": later(t, complete(t)).s,
	} {
		t.Run(name, func(t *testing.T) {
			w := &walk{tester: t, h: newHistory(), s: s, at: began.Add(time.Hour)}
			events := append(everyEvent(w), policy.OccurrenceRequested{Start: startOf(secondRun, nil)})
			for _, e := range events {
				switch e.(type) {
				case policy.StopRequested, policy.CancelRequested, policy.GoalCancelled, policy.PauseRequested:
					w.refused(kernel.NoOp, policy.CodeTerminal, e)
				case policy.NotSubmittable:
					w.refused(kernel.Reject, policy.CodeNotSubmittable, e)
				default:
					w.refused(kernel.Reject, policy.CodeTerminal, e)
				}
			}
			require.Equal(t, kernel.Finish, w.owes().Class)
			require.Nil(t, w.s.Attention())
		})
	}
}

func TestInvalidStateFailsClosed(t *testing.T) {
	sound := start(t).round().s
	for name, spoil := range map[string]func(s *policy.State){
		"an unknown status":                             func(s *policy.State) { s.Status = "resting" },
		"an unknown stage":                              func(s *policy.State) { s.Status, s.Stage = policy.Blocked, "half_way" },
		"a status on a foreign stage":                   func(s *policy.State) { s.Stage = policy.StageClosed },
		"a stage without a status":                      func(s *policy.State) { s.Status = "" },
		"dispatched without an applied effect":          func(s *policy.State) { s.Status, s.Stage = policy.Dispatched, policy.StageConfirmed },
		"claimed without an applied effect":             func(s *policy.State) { s.Status, s.Stage = policy.Claimed, policy.StageClaimed },
		"dispatching an effect of no known state":       func(s *policy.State) { s.Effect.State = "sent" },
		"dispatching an effect that is over":            func(s *policy.State) { s.Effect.State = policy.EffectNotApplied },
		"pending_release without successor or proposal": func(s *policy.State) { s.Status, s.Stage = policy.PendingRelease, policy.StageClosed },
		"blocked without a blocker":                     func(s *policy.State) { s.Status = policy.Blocked },
		"waiting for the user of a page without asking": func(s *policy.State) { s.Status = policy.WaitingForUser },
		"an open status without a goal":                 func(s *policy.State) { s.Goal = nil },
		"an open status without a site":                 func(s *policy.State) { s.Site = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := &walk{tester: t, h: newHistory(), s: sound, at: began}
			spoil(&w.s)
			w.is(w.s.Status, "finish")
			ending := policy.Policy{}.Ending(w.s)
			require.Equal(t, policy.CodeInvalidState, ending.Failure)
			require.NotEmpty(t, ending.Message)
			for _, e := range []policy.Event{
				policy.ProviderDispatchStarted{EffectID: w.s.Effect.ID, Generation: 1},
				policy.StopRequested{Operator: "ann"},
				policy.TimerElapsed{},
				w.resume(""),
				policy.NotSubmittable{Event: "x"},
			} {
				w.refused(kernel.Reject, policy.CodeInvalidState, e)
			}
		})
	}
}

func TestEventsOfActivitiesCannotBeSubmitted(t *testing.T) {
	for _, name := range []string{"effect_observed", "provider_dispatch_succeeded", "proposal_validated", "timer_elapsed", "made_up"} {
		w := start(t)
		e := policy.NotSubmittable{Event: name}
		require.Equal(t, name, e.Name())
		w.refused(kernel.Reject, policy.CodeNotSubmittable, e)
	}
}

func TestRulesVersionIsCarried(t *testing.T) {
	p := policy.Policy{}
	s := start(t).s
	require.Equal(t, policy.CurrentRules, p.Rules(s))
	require.Equal(t, 7, p.Rules(p.WithRules(s, 7)))
	require.Equal(t, policy.CurrentRules, p.Rules(s))
}
