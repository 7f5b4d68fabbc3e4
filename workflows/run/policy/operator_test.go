package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

func pauseEvent(*walk) policy.Event { return policy.PauseRequested{Operator: "ann", Reason: "wait"} }

func stopEvent(*walk) policy.Event { return policy.StopRequested{Operator: "ann", Reason: "enough"} }

func interruptEvent(*walk) policy.Event {
	return policy.StopRequested{Operator: "ann", Reason: "enough", Interrupt: true}
}

func cancelEvent(*walk) policy.Event { return policy.CancelRequested{} }

func lift(w *walk) policy.Event { return w.resume("") }

func paused(w *walk) { w.take(pauseEvent(w)) }

func TestPauseAndResume(t *testing.T) {
	run(t, []row{
		{
			name: "a pause holds the send that is owed, and lifting it sends nothing by itself", event: pauseEvent,
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatching, "message")
				require.Equal(w, "paused", w.s.Attribute())
				require.Equal(w, policy.Pause{By: "ann", Reason: "wait", At: w.at}, *w.s.Paused)
				w.take(lift(w))
				require.Nil(w, w.s.Paused)
				require.Zero(w, w.s.Dispatches)
				w.is(policy.Dispatching, policy.OweSend)
			},
		},
		{name: "a pause twice is a duplicate", given: paused, event: pauseEvent, verdict: kernel.NoOp, code: policy.CodeDuplicate},
		{name: "lifting no pause is nothing to resume", event: lift, verdict: kernel.NoOp, code: policy.CodeNothingToResume},
		{
			name: "a pause during a send takes its outcome", given: func(w *walk) { w.begin(); w.take(pauseEvent(w)) },
			event: (*walk).succeeded,
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatched, policy.OweObserve)
				require.Equal(w, "paused", w.s.Attribute())
			},
		},
		{
			name: "a pause during a send asks for that send back", given: begun, event: pauseEvent,
			then: func(w *walk, old policy.State) {
				require.NotEqual(w, policy.Policy{}.Obligation(old).Key, w.owes().Key)
				w.take(w.failed("arming_refused"))
				w.is(policy.Dispatching, "message")
			},
		},
		{
			name:  "a turn in flight is observed and committed while paused, and nothing follows it",
			given: func(w *walk) { w.claimed(); w.take(pauseEvent(w)) },
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Continue)) },
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatching, "message")
				require.Equal(w, 1, w.s.Dispatches)
			},
		},
		{
			name: "probes are held by a pause as sends are", given: func(w *walk) { w.fused(); w.due(); w.take(pauseEvent(w)) },
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchStarted{EffectID: w.s.ProbeID(), Generation: 1}
			},
			verdict: kernel.Reject, code: policy.CodePaused,
			then: func(w *walk, _ policy.State) { w.is(policy.Blocked, "message") },
		},
		{
			name: "checks run while paused", given: func(w *walk) { proposed(w); w.take(pauseEvent(w)) },
			event: func(w *walk) policy.Event { return w.validated(policy.CheckPass, policy.CheckPass) },
			then:  func(w *walk, _ policy.State) { w.is(policy.GoalComplete, "finish") },
		},
		{
			name: "a resume names what it answers", given: func(w *walk) { asked(w) }, event: lift, verdict: kernel.NeedsEvidence,
			code: policy.CodeAnswerMissing,
		},
		{
			name: "a resume that answers something else", given: func(w *walk) { asked(w) }, verdict: kernel.Reject,
			code:  policy.CodeAnswerMismatch,
			event: func(w *walk) policy.Event { return w.resume("cp_other") },
		},
		{
			name: "an answer by nobody", given: func(w *walk) { asked(w) }, verdict: kernel.NeedsEvidence, code: policy.CodeOperatorMissing,
			event: func(w *walk) policy.Event { return policy.UserResumeRequested{Answers: w.s.Completion.ID} },
		},
		{
			name: "an answer opens a new round with a resume that carries its note", given: func(w *walk) { asked(w) },
			event: func(w *walk) policy.Event {
				e := w.resume(w.s.Completion.ID)
				e.Note = "take PostgreSQL"
				return e
			},
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.NotEqual(w, old.AuthorityID, w.s.AuthorityID)
				require.Equal(w, 1, w.s.Budgets.Rounds)
				text, err := w.s.Prompt(w.s.Effect)
				require.NoError(w, err)
				require.Contains(w, text, "take PostgreSQL")
				w.refused(kernel.NoOp, policy.CodeNothingToResume, w.resume(old.Completion.ID))
			},
		},
		{
			name: "an answer lifts a pause, too", given: func(w *walk) { asked(w); w.take(pauseEvent(w)) },
			event: func(w *walk) policy.Event { return w.resume(w.s.Completion.ID) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweSend) },
		},
		{
			name: "while a person is waited for a pause can be lifted alone", given: func(w *walk) { asked(w); w.take(pauseEvent(w)) },
			event: lift, then: func(w *walk, _ policy.State) { w.is(policy.WaitingForUser, "message") },
		},
	})
}

func TestOccurrence(t *testing.T) {
	occurred := func(id string) func(*walk) policy.Event {
		return func(*walk) policy.Event { return policy.OccurrenceRequested{OccurrenceID: id, Operator: "cron"} }
	}
	run(t, []row{
		{
			name: "an occurrence ends a wait with a resume in a new round, once its turn has settled", given: func(w *walk) { waiting(w) },
			event: occurred("o1"),
			then: func(w *walk, old policy.State) {
				w.is(policy.PendingRelease, policy.OweRelease)
				w.take(release(w))
				w.is(policy.Dispatching, policy.OweSend)
				require.NotEqual(w, old.AuthorityID, w.s.AuthorityID)
				require.Equal(w, policy.KindResume, w.s.Effect.Kind)
			},
		},
		{
			name: "the same occurrence counts once, also for a later wait", verdict: kernel.NoOp, code: policy.CodeOccurrenceSeen,
			event: occurred("o1"),
			given: func(w *walk) { waiting(w); w.take(occurred("o1")(w)); w.take(release(w)); waiting(w) },
		},
		{
			name: "an occurrence without an id", given: func(w *walk) { waiting(w) }, event: occurred(""), verdict: kernel.NeedsEvidence,
			code: policy.CodeOccurrenceMissing,
		},
		{
			name: "a run that does not wait takes none", given: applied, event: occurred("o1"), verdict: kernel.Reject,
			code: policy.CodeIllegal,
		},
		{
			name: "a run that waits for a person takes none", given: func(w *walk) { asked(w) }, event: occurred("o1"),
			verdict: kernel.Reject, code: policy.CodeIllegal,
		},
		{
			name: "a wait never ends by time", given: func(w *walk) { waiting(w); w.wait(10000 * time.Hour) },
			event: func(w *walk) policy.Event { return policy.TimerElapsed{Key: "x"} }, verdict: kernel.NoOp, code: policy.CodeNotDue,
		},
		{
			name: "a resume does not end a wait for an occurrence", given: func(w *walk) { waiting(w) }, event: lift, verdict: kernel.NoOp,
			code: policy.CodeNothingToResume,
		},
	})
}

func TestStop(t *testing.T) {
	ends := func(w *walk, _ policy.State) {
		w.is(policy.Stopped, "finish")
		require.Nil(w, w.s.Next)
		require.Equal(w, "ann", w.s.Stop.By)
	}
	sent := func(n int) func(w *walk, _ policy.State) {
		return func(w *walk, old policy.State) { ends(w, old); require.Equal(w, n, w.s.Dispatches) }
	}
	run(t, []row{
		{name: "before the send: nothing is sent", event: stopEvent, then: sent(0)},
		{name: "between two attempts", given: func(w *walk) { w.begin(); w.take(w.failed("hung")) }, event: stopEvent, then: sent(1)},
		{
			name: "while deferred", given: func(w *walk) { w.begin(); w.take(w.deferred("busy", time.Time{})) }, event: stopEvent,
			then: sent(1),
		},
		{name: "with a turn in flight: it is left alone", given: func(w *walk) { w.claimed() }, event: stopEvent, then: sent(1)},
		{
			name: "with a committed turn that has not settled", given: func(w *walk) { w.claimed(); early(w, receipt.Continue) },
			event: stopEvent, then: sent(1),
		},
		{name: "with a proposal under validation", given: done, event: stopEvent, then: sent(1)},
		{
			name: "while waiting for a person", given: func(w *walk) { asked(w) }, event: stopEvent,
			then: func(w *walk, old policy.State) { ends(w, old); require.Equal(w, policy.WaitingForUser, w.s.Stop.Left) },
		},
		{name: "while blocked", given: func(w *walk) { w.fused() }, event: stopEvent, then: ends},
		{name: "while paused", given: paused, event: stopEvent, then: ends},
		{
			name:  "a stop by its own event of the goal",
			event: func(*walk) policy.Event { return policy.GoalCancelled{Operator: "ann", Reason: "not needed"} }, then: ends,
		},
		{
			name: "during the send: its outcome is taken first, and nothing follows", given: begun, event: stopEvent,
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, "message")
				require.NotEqual(w, policy.Policy{}.Obligation(old).Key, w.owes().Key, "the driver asks for the send back")
				w.take(w.succeeded())
				sent(1)(w, old)
				require.Equal(w, policy.EffectApplied, w.s.Effect.State)
			},
		},
		{
			name: "during a send that returns unarmed", given: func(w *walk) { w.begin(); w.take(stopEvent(w)) },
			event: func(w *walk) policy.Event { return w.deferred("cancelled", time.Time{}) }, then: sent(1),
		},
		{
			name: "during a send that fails", given: func(w *walk) { w.begin(); w.take(stopEvent(w)) },
			event: func(w *walk) policy.Event { return w.failed("hung") }, then: sent(1),
		},
		{
			name: "during a send that asks for its user", given: func(w *walk) { w.begin(); w.take(stopEvent(w)) },
			event: func(w *walk) policy.Event {
				return policy.ProviderUserActionRequired{Attempted: w.tried(), Class: "login"}
			}, then: sent(1),
		},
		{
			name:  "during a send whose outcome stays unknown: it is looked for up to the bound, and listed",
			given: func(w *walk) { w.begin(); w.take(stopEvent(w)) },
			event: func(w *walk) policy.Event { return policy.ProviderDispatchOutcomeUnknown{Attempted: w.tried()} },
			then: func(w *walk, old policy.State) {
				looks := 0
				for !w.s.Terminal() {
					w.due()
					w.take(w.look(false, true))
					looks++
				}
				require.Equal(w, 4, looks)
				sent(1)(w, old)
				require.Equal(w, []string{w.s.Effect.ID}, w.s.Proof().Unknown)
			},
		},
		{
			name: "with an open unknown that is then seen", given: func(w *walk) { w.unknown(); w.take(stopEvent(w)) },
			event: func(w *walk) policy.Event { return w.look(true, true) }, then: sent(1),
		},
		{
			name:  "with an open unknown that an operator gives up: nothing new is sent",
			given: func(w *walk) { w.unknown(); w.take(stopEvent(w)) },
			event: supersede, then: sent(1),
		},
		{
			name:  "with an open unknown that an operator denies: nothing new is sent",
			given: func(w *walk) { w.unknown(); w.take(stopEvent(w)) },
			event: withoutLook, then: sent(1),
		},
		{name: "with an unknown whose looks are used up it ends at once", given: bounded, event: stopEvent, then: sent(1)},
		{
			name: "twice is a duplicate", given: func(w *walk) { w.begin(); w.take(stopEvent(w)) }, event: stopEvent, verdict: kernel.NoOp,
			code: policy.CodeDuplicate,
		},
		{
			name: "a pause while stopping", given: func(w *walk) { w.begin(); w.take(stopEvent(w)) }, event: pauseEvent,
			verdict: kernel.Reject, code: policy.CodeStopping,
		},
		{
			name: "a resume while stopping", given: func(w *walk) { w.begin(); w.take(stopEvent(w)) }, event: lift, verdict: kernel.Reject,
			code: policy.CodeStopping,
		},
		{
			name: "a Temporal cancellation ends the run as cancelled", given: func(w *walk) { w.claimed() }, event: cancelEvent,
			then: func(w *walk, _ policy.State) {
				w.is(policy.Stopped, "finish")
				require.True(w, policy.Policy{}.Ending(w.s).Canceled)
			},
		},
		{
			name: "a cancellation after a stop closes as cancelled", given: func(w *walk) { w.begin(); w.take(stopEvent(w)) },
			event: cancelEvent,
			then: func(w *walk, _ policy.State) {
				w.refused(kernel.NoOp, policy.CodeDuplicate, policy.CancelRequested{})
				w.take(w.succeeded())
				require.True(w, policy.Policy{}.Ending(w.s).Canceled)
				require.Equal(w, "ann", w.s.Stop.By)
			},
		},
	})
}

func TestCancellationDuringAHandOverIsNotLost(t *testing.T) {
	outcome := func(change func(e *policy.SuccessorBound)) *walk {
		w := start(t).round().rebind()
		e := w.succeed()
		key := w.owes().Key
		w.refused(kernel.Reject, policy.CodeSuccessionBegun, stopEvent(w))
		w.take(policy.CancelRequested{})
		require.Equal(t, key, w.owes().Key, "the start of the successor is taken to its end")
		change(&e)
		w.take(e)
		require.True(t, policy.Policy{}.Ending(w.s).Canceled)
		return w
	}
	w := outcome(func(e *policy.SuccessorBound) { e.Successor = "run:chatgpt:other" })
	w.is(policy.HandedOff, "finish")
	w = outcome(func(e *policy.SuccessorBound) { e.Refused = "no such site" })
	w.is(policy.Stopped, "finish")
	w = outcome(func(e *policy.SuccessorBound) { e.Owned = true })
	w.is(policy.Stopped, "finish")
}

func TestInterrupt(t *testing.T) {
	press := func(w *walk) policy.Event {
		return policy.ProviderDispatchStarted{EffectID: w.s.InterruptID(), Generation: 1}
	}
	outcome := func(word string) func(w *walk) policy.Event {
		return func(w *walk) policy.Event { return policy.InterruptObserved{EffectID: w.s.Effect.ID, Outcome: word} }
	}
	interrupting := func(w *walk) { w.claimed(); w.take(interruptEvent(w)) }
	run(t, []row{
		{
			name: "a stop with interrupt presses once and then ends, whatever the press proved", given: func(w *walk) { w.claimed() },
			event: interruptEvent,
			then: func(w *walk, _ policy.State) {
				w.is(policy.Claimed, policy.OweInterrupt)
				require.Equal(w, kernel.Effect, w.owes().Class)
				w.take(press(w))
				w.take(outcome(policy.InterruptUnproven)(w))
				w.is(policy.Stopped, "finish")
				require.Equal(w, policy.InterruptUnproven, w.s.Stop.Interrupted)
			},
		},
		{
			name: "a press that a reset may have repeated is not made", given: interrupting,
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchStarted{EffectID: w.s.InterruptID(), Generation: 1, Suspect: true}
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.Stopped, "finish")
				require.Equal(w, policy.InterruptUnproven, w.s.Stop.Interrupted)
			},
		},
		{
			name: "the stop beats a late CONTINUE", given: interrupting, verdict: kernel.Reject, code: policy.CodeStopping,
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Continue)) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Claimed, policy.OweInterrupt) },
		},
		{
			name: "the stop beats a late failure, and the press stays the one for this turn", given: interrupting, verdict: kernel.Reject,
			code:  policy.CodeStopping,
			event: func(w *walk) policy.Event { return w.broken("stopped") },
		},
		{
			name: "where no turn is in flight there is nothing to press", event: interruptEvent,
			then: func(w *walk, _ policy.State) { w.is(policy.Stopped, "finish") },
		},
		{
			name: "a press of nobody", given: func(w *walk) { w.claimed() }, event: outcome(policy.InterruptStopped), verdict: kernel.Reject,
			code: policy.CodeIllegal,
		},
		{
			name: "a press while not stopping", given: func(w *walk) { w.claimed() }, event: press, verdict: kernel.Reject,
			code: policy.CodeEffectMismatch,
		},
	})
}

func TestAuthorityRecovery(t *testing.T) {
	recoverAuthority := func(w *walk) policy.Event {
		return policy.AuthorityRecoveryRequested{Revision: w.s.Revision, AuthorityID: w.s.AuthorityID, Operator: "ann", Reason: "leaked"}
	}
	run(t, []row{
		{
			name: "rekeys the round: same round, effect and budgets", given: func(w *walk) { w.round() }, event: recoverAuthority,
			then: func(w *walk, old policy.State) {
				require.NotEqual(w, old.AuthorityID, w.s.AuthorityID)
				require.Equal(w, []any{old.Effect, old.Budgets, old.RelayScopeID, old.ClaimGeneration},
					[]any{w.s.Effect, w.s.Budgets, w.s.RelayScopeID, w.s.ClaimGeneration})
			},
		},
		{
			name: "of another revision", verdict: kernel.Reject, code: policy.CodeRevisionMismatch,
			event: func(w *walk) policy.Event {
				return policy.AuthorityRecoveryRequested{Revision: 0, AuthorityID: w.s.AuthorityID, Operator: "ann"}
			},
		},
		{
			name: "of another authority", verdict: kernel.Reject, code: policy.CodeAuthorityMismatch,
			event: func(w *walk) policy.Event {
				return policy.AuthorityRecoveryRequested{Revision: w.s.Revision, AuthorityID: "au_other", Operator: "ann"}
			},
		},
		{
			name: "by nobody", verdict: kernel.NeedsEvidence, code: policy.CodeOperatorMissing,
			event: func(w *walk) policy.Event {
				return policy.AuthorityRecoveryRequested{Revision: w.s.Revision, AuthorityID: w.s.AuthorityID}
			},
		},
		{name: "during a send", given: begun, event: recoverAuthority, verdict: kernel.Reject, code: policy.CodeRoundAlive},
		{
			name: "while the outcome is unknown", given: doubted, event: recoverAuthority, verdict: kernel.Reject,
			code: policy.CodeRoundAlive,
		},
		{
			name: "while the round is claimed", given: func(w *walk) { w.claimed() }, event: recoverAuthority, verdict: kernel.Reject,
			code: policy.CodeRoundAlive,
		},
		{name: "after the claimed turn has failed for good", given: exhausted, event: recoverAuthority},
	})
}
