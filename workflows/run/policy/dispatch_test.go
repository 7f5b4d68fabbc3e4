package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
)

func begun(w *walk) { w.begin() }

func beginEvent(w *walk) policy.Event {
	return policy.ProviderDispatchStarted{EffectID: w.s.Effect.ID, Generation: w.s.Effect.Generation}
}

func generations(n int) option {
	return func(g *goal.Goal, _ *goal.SiteFacts) { g.Continuation.MaxGenerations = &n }
}

func failures(n int) option {
	return func(g *goal.Goal, _ *goal.SiteFacts) { g.Continuation.MaxProviderFailures = &n }
}

func TestBegin(t *testing.T) {
	run(t, []row{
		{
			name: "a reserved effect begins: dispatching, one dispatch counted, no history of attempts yet", event: beginEvent,
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, policy.EffectDispatching, w.s.Effect.State)
				require.Equal(w, 1, w.s.Dispatches)
				require.Equal(w, policy.Policy{}.Obligation(old).Key, w.owes().Key, "the driver goes on only when it owes the same send")
			},
		},
		{name: "it begins once", given: begun, event: beginEvent, verdict: kernel.NoOp, code: policy.CodeDuplicate},
		{
			name: "another effect does not begin", verdict: kernel.Reject, code: policy.CodeEffectMismatch,
			event: func(*walk) policy.Event { return policy.ProviderDispatchStarted{EffectID: "fx_other", Generation: 1} },
		},
		{
			name: "a later generation does not begin before the present one is proven not applied", verdict: kernel.Reject,
			code: policy.CodeGenerationMismatch,
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchStarted{EffectID: w.s.Effect.ID, Generation: 2}
			},
		},
		{
			name: "an earlier generation does not begin again", verdict: kernel.Reject, code: policy.CodeGenerationStale,
			given: func(w *walk) { w.begin(); w.take(w.failed("hung")); w.due() },
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchStarted{EffectID: w.s.Effect.ID, Generation: 1}
			},
		},
		{
			name: "nothing begins before its time", verdict: kernel.Reject, code: policy.CodeNotDue,
			given: func(w *walk) { w.begin(); w.take(w.failed("hung")) }, event: beginEvent,
		},
		{
			name: "nothing begins while paused", verdict: kernel.Reject, code: policy.CodePaused, event: beginEvent,
			given: func(w *walk) { w.take(policy.PauseRequested{Operator: "ann", Reason: "wait"}) },
		},
		{
			name: "nothing begins while the outcome is unknown", verdict: kernel.Reject, code: policy.CodeIllegal, event: beginEvent,
			given: func(w *walk) { w.unknown() },
		},
		{
			name: "nothing begins after it was applied", verdict: kernel.Reject, code: policy.CodeIllegal, event: beginEvent,
			given: func(w *walk) { w.applied() },
		},
		{
			name: "nothing begins while blocked", verdict: kernel.Reject, code: policy.CodeIllegal, event: beginEvent,
			given: func(w *walk) { w.fused() },
		},
		{
			name: "nothing begins while the page waits for its user", verdict: kernel.Reject, code: policy.CodeIllegal, event: beginEvent,
			given: func(w *walk) { login(w) },
		},
		{
			name: "the first effect after a reset is taken as unknown and not sent", code: "history_reset",
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchStarted{EffectID: w.s.Effect.ID, Generation: 1, Suspect: true}
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatching, policy.OweReconcile)
				require.Zero(w, w.s.Dispatches)
				w.take(w.look(true, true))
				w.is(policy.Dispatched, policy.OweObserve)
			},
		},
		{
			name:  "a reset that is first seen at a probe still doubts the next send",
			given: func(w *walk) { w.fused(); w.due() },
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchStarted{EffectID: w.s.ProbeID(), Generation: 1, Suspect: true}
			},
			then: func(w *walk, _ policy.State) {
				w.take(w.probe(true, "message"))
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, "history_reset", w.take(beginEvent(w)).Code)
				w.is(policy.Dispatching, policy.OweReconcile)
				require.False(w, w.s.Doubted)
			},
		},
	})
}

func TestOutcomeOfAnAttempt(t *testing.T) {
	run(t, []row{
		{
			name: "succeeded: the round is dispatched, its turn is observed, its worker is on record", given: begun,
			event: (*walk).succeeded,
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatched, policy.OweObserve)
				require.Equal(w, policy.StageConfirmed, w.s.Stage)
				require.Equal(w, []any{1, 1}, []any{w.s.Turns, w.s.Dispatches})
				last := w.s.Chain()[0]
				require.Equal(w, []any{"r1", int64(3), w.at}, []any{last.Release, last.Incarnation, last.Applied})
				require.Equal(w, policy.EffectApplied, w.s.Effect.Attempts[0].Outcome)
			},
		},
		{
			name: "succeeded twice is a duplicate", given: func(w *walk) { w.applied() }, event: (*walk).succeeded, verdict: kernel.NoOp,
			code: policy.CodeDuplicate,
		},
		{
			name: "a late success of an earlier effect is a duplicate", verdict: kernel.NoOp, code: policy.CodeDuplicate,
			given: func(w *walk) { w.round() },
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchSucceeded{Attempted: policy.Attempted{EffectID: w.s.Chain()[0].Effect, Generation: 1}}
			},
		},
		{
			name: "a browser whose clock is ahead does not hold the next turn back", given: begun,
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchSucceeded{Attempted: w.tried(), At: w.at.Add(24 * time.Hour)}
			},
			then: func(w *walk, _ policy.State) {
				require.Equal(w, w.at.Add(time.Minute), w.s.NextTurnAt())
			},
		},
		{
			name: "a success of an attempt that was thought failed counts: the message stands there, and no generation is sent",
			given: func(w *walk) {
				w.begin()
				w.take(w.failed("hung"))
			},
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchSucceeded{Attempted: policy.Attempted{EffectID: w.s.Effect.ID, Generation: 1}}
			},
			then: func(w *walk, _ policy.State) { w.is(policy.Dispatched, policy.OweObserve) },
		},
		{
			name: "failed: not applied, one failure, the next generation after 30 s", given: begun,
			event: func(w *walk) policy.Event { return w.failed("composer_mismatch") },
			then: func(w *walk, old policy.State) {
				require.Equal(w, policy.Failures{Streak: 1, Total: 1, Max: 3}, w.s.Budgets.ProviderFailures)
				require.Equal(w, 2, w.s.Effect.Generation)
				require.Equal(w, old.Effect.ID, w.s.Effect.ID, "the id never changes with the generation")
				require.Equal(w, 30*time.Second, w.due())
				w.begin()
				w.take(w.failed("composer_mismatch"))
				require.Equal(w, time.Minute, w.due())
			},
		},
		{
			name: "a failure of an attempt that has its outcome is refused", verdict: kernel.Reject, code: policy.CodeGenerationStale,
			given: func(w *walk) { w.begin(); w.take(w.failed("hung")) },
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchFailed{Attempted: policy.Attempted{EffectID: w.s.Effect.ID, Generation: 1, Attempt: 1}, Code: "hung"}
			},
		},
		{
			name:  "failures reach the fuse: blocked, authority and rounds kept",
			given: func(w *walk) { w.round(); w.fused() },
			event: func(*walk) policy.Event { return policy.PauseRequested{Operator: "ann", Reason: "see"} },
			then: func(w *walk, _ policy.State) {
				require.Equal(w, policy.Failures{Streak: 3, Total: 3, Max: 3}, w.s.Budgets.ProviderFailures)
				require.Equal(w, 1, w.s.Budgets.Rounds)
				require.Equal(w, "provider_failures", w.s.Blocker.Code)
				require.Equal(w, policy.StageDispatching, w.s.Stage)
				require.Equal(w, 3, w.s.Effect.Generation)
			},
		},
		{
			name: "the generations of one effect are bounded by themselves", options: []option{generations(2), failures(20)},
			given: func(w *walk) { w.fused() },
			event: func(*walk) policy.Event { return policy.PauseRequested{Operator: "ann", Reason: "see"} },
			then: func(w *walk, _ policy.State) {
				require.Equal(w, "generations", w.s.Blocker.Code)
				require.Equal(w, 2, w.s.Effect.Generation)
				require.Equal(w, 2, w.s.Budgets.ProviderFailures.Streak)
			},
		},
		{
			name: "the wait between generations doubles up to ten minutes", options: []option{generations(10), failures(20)},
			given: begun, event: func(w *walk) policy.Event { return w.failed("hung") },
			then: func(w *walk, _ policy.State) {
				var waits []time.Duration
				for range 7 {
					waits = append(waits, w.due())
					w.begin()
					w.take(w.failed("hung"))
				}
				s := time.Second
				require.Equal(w, []time.Duration{30 * s, 60 * s, 120 * s, 240 * s, 480 * s, 600 * s, 600 * s}, waits)
			},
		},
		{
			name: "an attempt that came back because the run asked for it uses its generation and no failure", given: begun,
			event: func(w *walk) policy.Event { return w.failed("cancelled") },
			then: func(w *walk, _ policy.State) {
				require.Equal(w, policy.Failures{Max: 3}, w.s.Budgets.ProviderFailures)
				require.Equal(w, 2, w.s.Effect.Generation)
			},
		},
		{
			name: "a success clears the streak of its round and nothing else of the budget",
			given: func(w *walk) {
				w.round()
				w.begin()
				w.take(w.failed("hung"))
				w.begin()
			},
			event: (*walk).succeeded,
			then: func(w *walk, _ policy.State) {
				require.Equal(w, policy.Failures{Streak: 0, Total: 1, Max: 3}, w.s.Budgets.ProviderFailures)
				require.Equal(w, 1, w.s.Budgets.Rounds)
			},
		},
		{
			name: "a worker lost before arming is a failure of the attempt", given: begun,
			event: func(w *walk) policy.Event { return policy.RuntimeOrSessionEvicted{Attempted: w.tried()} },
			then: func(w *walk, _ policy.State) {
				require.Equal(w, 1, w.s.Budgets.ProviderFailures.Streak)
				require.Equal(w, "worker_lost", w.s.Effect.Attempts[0].Code)
				require.Equal(w, policy.EffectNotApplied, w.s.Effect.Attempts[0].Outcome)
			},
		},
		{
			name: "a worker lost after arming leaves the outcome unknown", given: begun,
			event: func(w *walk) policy.Event { return policy.RuntimeOrSessionEvicted{Attempted: w.tried(), Armed: true} },
			then: func(w *walk, _ policy.State) {
				require.Equal(w, policy.EffectUnknown, w.s.Effect.State)
				require.Equal(w, policy.Failures{Max: 3}, w.s.Budgets.ProviderFailures)
			},
		},
		{
			name: "an open attempt that was loaded without its activity is unknown", given: begun,
			event: func(*walk) policy.Event { return policy.StalledRoundObserved{} },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweReconcile) },
		},
		{
			name: "a load of any other state repairs nothing", given: func(w *walk) { w.claimed() }, verdict: kernel.NoOp,
			code:  policy.CodeDuplicate,
			event: func(*walk) policy.Event { return policy.StalledRoundObserved{} },
		},
	})
}

func TestDeferred(t *testing.T) {
	later := began.Add(5 * time.Hour)
	run(t, []row{
		{
			name: "a deferral uses no generation and no budget, and the same attempt begins again", given: begun,
			event: func(w *walk) policy.Event { return w.deferred("busy", time.Time{}) },
			then: func(w *walk, _ policy.State) {
				require.Equal(w, policy.Failures{Max: 3}, w.s.Budgets.ProviderFailures)
				require.Equal(w, 1, w.s.Effect.Generation)
				require.Empty(w, w.s.Effect.Attempts)
				w.begin()
				require.Equal(w, 2, w.s.Dispatches)
				w.take(w.succeeded())
				require.Nil(w, w.s.Effect.Deferral)
			},
		},
		{
			name: "the outcome of a deferred attempt does not count for the next attempt of the same generation",
			given: func(w *walk) {
				w.begin()
				w.take(w.deferred("busy", time.Time{}))
				w.begin()
			},
			verdict: kernel.NoOp, code: policy.CodeDuplicate,
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchDeferred{Attempted: policy.Attempted{EffectID: w.s.Effect.ID, Generation: 1, Attempt: 1}, Class: "busy"}
			},
		},
		{
			name: "waits double from 30 s to 10 min, with at most a fifth of jitter", given: begun,
			event: func(w *walk) policy.Event { return w.deferred("cooldown", time.Time{}) },
			then: func(w *walk, _ policy.State) {
				spread := map[time.Duration]bool{}
				for i := range 8 {
					base := min(30*time.Second<<i, 10*time.Minute)
					var waited time.Duration
					for w.owes().Class == kernel.Timer {
						waited += w.due()
					}
					require.GreaterOrEqual(w, waited, base)
					require.LessOrEqual(w, waited, base+base/5)
					spread[(waited-base)*1000/base] = true
					w.begin()
					w.take(w.deferred("cooldown", time.Time{}))
				}
				require.Greater(w, len(spread), 4, "the jitter differs")
			},
		},
		{
			name: "a usage limit with a reset time is one wait, zero sends, then one", given: begun,
			event: func(w *walk) policy.Event { return w.deferred("rate_limited", later) },
			then: func(w *walk, _ policy.State) {
				require.Nil(w, w.s.Attention())
				require.Equal(w, 45*time.Minute, w.due(), "after attention_after it shows in the inbox")
				require.Equal(w, "send_deferred", w.s.Attention().Class)
				w.due()
				require.Equal(w, later, w.at)
				require.Equal(w, 1, w.s.Dispatches)
				w.begin()
			},
		},
		{
			name: "classes that alternate are one long deferral for the inbox", given: begun,
			event: func(w *walk) policy.Event { return w.deferred("busy", time.Time{}) },
			then: func(w *walk, _ policy.State) {
				for i := 0; !w.s.Effect.Deferral.Overdue; i++ {
					require.Less(w, w.at.Sub(began), 46*time.Minute)
					if w.due(); w.owes().Class == kernel.Timer {
						continue
					}
					w.begin()
					w.take(w.deferred([]string{"busy", "page_not_ready"}[i%2], time.Time{}))
				}
			},
		},
		{
			name: "a foreign draft that stays for an hour becomes the blocker", given: begun,
			event: func(w *walk) policy.Event { return w.deferred("foreign_draft", time.Time{}) },
			then: func(w *walk, _ policy.State) {
				for w.s.Blocker == nil {
					require.Less(w, w.at.Sub(began), 75*time.Minute)
					w.begin()
					w.take(w.deferred("foreign_draft", time.Time{}))
				}
				require.GreaterOrEqual(w, w.at.Sub(began), time.Hour)
				w.blockedBy(policy.BlockedForeignDraft)
				w.due()
				w.is(policy.Blocked, policy.OweProbe)
				w.take(w.probe(true, "page"))
				w.begin()
				w.take(w.deferred("foreign_draft", time.Time{}))
				require.Nil(w, w.s.Blocker, "another draft has its own hour")
			},
		},
		{
			name: "a conversation that moved on gets a resume instead, in the same round", given: func(w *walk) { w.round(); w.begin() },
			event: func(w *walk) policy.Event { return w.deferred("conversation_moved", time.Time{}) },
			then: func(w *walk, old policy.State) {
				require.Equal(w, policy.KindResume, w.s.Effect.Kind)
				require.NotEqual(w, old.Effect.ID, w.s.Effect.ID)
				require.False(w, w.s.Effect.Fenced)
				require.Equal(w, old.AuthorityID, w.s.AuthorityID)
				require.Equal(w, old.Budgets, w.s.Budgets)
			},
		},
		{
			name: "an effect without a fence only waits when the conversation moves", given: begun,
			event: func(w *walk) policy.Event { return w.deferred("conversation_moved", time.Time{}) },
			then:  func(w *walk, old policy.State) { require.Equal(w, old.Effect.ID, w.s.Effect.ID) },
		},
		{
			name: "an attempt that a pause took back is held without a wait", code: "cancelled",
			given: func(w *walk) { w.begin(); w.take(policy.PauseRequested{Operator: "ann", Reason: "wait"}) },
			event: func(w *walk) policy.Event { return w.deferred("cancelled", time.Time{}) },
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatching, "message")
				w.take(w.resume(""))
				w.is(policy.Dispatching, policy.OweSend)
			},
		},
		{
			name: "an attempt that was taken back for no reason of the run waits like any other", given: begun,
			event: func(w *walk) policy.Event { return w.deferred("cancelled", time.Time{}) },
			then:  func(w *walk, _ policy.State) { require.Equal(w, kernel.Timer, w.owes().Class) },
		},
		{
			name: "a login page uses no generation and no budget, and waits for its user", given: begun,
			event: func(w *walk) policy.Event {
				return policy.ProviderUserActionRequired{Attempted: w.tried(), Class: "login", Detail: "please log in"}
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.WaitingForUser, "message")
				require.Equal(w, policy.StageDispatching, w.s.Stage)
				require.Equal(w, []any{1, 0}, []any{w.s.Effect.Generation, w.s.Budgets.ProviderFailures.Total})
				require.Equal(w, "provider_user_action_required", w.s.Attention().Class)
				require.Contains(w, w.s.Attention().Command, w.s.Blocker.ID)
			},
		},
	})
}

func TestTimerThatIsNotOwedOrNotDueChangesNothing(t *testing.T) {
	w := start(t)
	w.begin()
	w.take(w.failed("hung"))
	key := w.owes().Key
	w.refused(kernel.NoOp, policy.CodeNotDue, policy.TimerElapsed{Key: "timer:other"})
	w.refused(kernel.NoOp, policy.CodeNotDue, policy.TimerElapsed{Key: key})
	w.due()
	w.refused(kernel.NoOp, policy.CodeNotDue, policy.TimerElapsed{Key: key})
}
