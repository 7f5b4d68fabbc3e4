package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

func fused(w *walk) { w.fused() }

// probing is blocked at the fuse, with the probe due.
func probing(w *walk) { w.fused(); w.due(); w.is(policy.Blocked, policy.OweProbe) }

func noMessages(_ *goal.Goal, s *goal.SiteFacts) { s.ProbeMessage = false }

func epochs(n int) option {
	return func(g *goal.Goal, _ *goal.SiteFacts) { g.Continuation.MaxRecoveryEpochs = &n }
}

func passed(level string) func(w *walk) policy.Event {
	return func(w *walk) policy.Event { return w.probe(true, level) }
}

func TestFailureFuse(t *testing.T) {
	run(t, []row{
		{
			name:  "a passed probe rearms the same round: one new generation, a new epoch, history and all else kept",
			given: func(w *walk) { w.round(); probing(w) }, event: passed("message"),
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, policy.Failures{Epoch: 1, Streak: 0, Total: 3, Max: 3, Opened: old.ProbeID()}, w.s.Budgets.ProviderFailures)
				require.Equal(w, old.Effect.ID, w.s.Effect.ID)
				require.Equal(w, old.Effect.Generation+1, w.s.Effect.Generation)
				require.Equal(w, []any{old.AuthorityID, old.RelayScopeID, old.Budgets.Rounds, old.Budgets.RepeatedState},
					[]any{w.s.AuthorityID, w.s.RelayScopeID, w.s.Budgets.Rounds, w.s.Budgets.RepeatedState})
				require.Len(w, w.s.Effect.Attempts, 3)
				w.applied()
			},
		},
		{
			name: "a new epoch has its own generations", given: probing, event: passed("message"),
			then: func(w *walk, _ policy.State) {
				w.fused()
				require.Equal(w, 6, w.s.Effect.Generation)
				f := w.s.Budgets.ProviderFailures
				require.Equal(w, policy.Failures{Epoch: 1, Streak: 3, Total: 6, Max: 3, Opened: f.Opened}, f)
			},
		},
		{
			name: "a failed probe rearms nothing; the next is another effect, later", given: probing,
			event: func(w *walk) policy.Event { return w.probe(false, "message") }, code: policy.CodeProbeFailed,
			then: func(w *walk, old policy.State) {
				require.Equal(w, old.Budgets, w.s.Budgets)
				ids := map[string]bool{old.ProbeID(): true}
				var waits []time.Duration
				for range 5 {
					ids[w.s.ProbeID()] = true
					waits = append(waits, w.due())
					w.take(w.probe(false, "message"))
				}
				m := time.Minute
				require.Equal(w, []time.Duration{10 * m, 20 * m, 40 * m, 60 * m, 60 * m}, waits)
				require.Len(w, ids, 6)
				require.Equal(w, 3, w.s.Dispatches, "a probe is no dispatch of the blocked prompt")
			},
		},
		{
			name: "a page alone cannot disprove a failure of typing", given: probing, event: passed("page"), code: policy.CodeProbeLevel,
			then: func(w *walk, _ policy.State) { w.blockedBy(policy.BlockedFailures) },
		},
		{
			name: "a probe of an earlier block", given: probing, verdict: kernel.Reject, code: policy.CodeProbeStale,
			event: func(w *walk) policy.Event {
				e := w.probe(true, "message")
				e.Blocker = "bl_earlier"
				return e
			},
		},
		{
			name: "a probe of another revision", given: probing, verdict: kernel.Reject, code: policy.CodeProbeStale,
			event: func(w *walk) policy.Event {
				e := w.probe(true, "message")
				e.Revision--
				return e
			},
		},
		{
			name: "the outcome of an earlier probe of this block", given: func(w *walk) { probing(w); w.take(w.probe(false, "message")) },
			verdict: kernel.NoOp, code: policy.CodeDuplicate,
			event: func(w *walk) policy.Event {
				e := w.probe(true, "message")
				e.Probe = "pr_earlier"
				return e
			},
		},
		{
			name: "a probe where nothing is blocked", verdict: kernel.Reject, code: policy.CodeIllegal,
			event: func(*walk) policy.Event { return policy.ProviderEnvironmentRecovered{Passed: true, Level: "message"} },
		},
		{
			name: "a probe does not begin before it is due", given: fused, verdict: kernel.Reject, code: policy.CodeNotDue,
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchStarted{EffectID: w.s.ProbeID(), Generation: 1}
			},
		},
		{
			name: "automatic epochs are bounded; then only an operator's word rearms", options: []option{epochs(1)}, given: probing,
			event: passed("message"),
			then: func(w *walk, _ policy.State) {
				w.fused()
				w.is(policy.Blocked, "message")
				w.refused(kernel.Reject, policy.CodeBlocker, w.probe(true, "message"))
				w.take(w.resume(w.s.Blocker.ID))
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, "operator ann", w.s.Budgets.ProviderFailures.Opened)
				require.Equal(w, 2, w.s.Budgets.ProviderFailures.Epoch)
			},
		},
		{
			name: "where the site allows no message, no probe is made in vain: an operator is asked", options: []option{noMessages},
			given: fused,
			event: func(w *walk) policy.Event { w.is(policy.Blocked, "message"); return w.resume(w.s.Blocker.ID) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweSend) },
		},
		{
			name: "a page disproves that the site does not answer, also where it allows no message", options: []option{noMessages},
			given: func(w *walk) { w.round(); w.outage(3); w.due(); w.is(policy.Blocked, policy.OweProbe) }, event: passed("page"),
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, policy.Failures{Epoch: 1, Total: 3, Max: 3, Opened: old.ProbeID()}, w.s.Budgets.ProviderFailures)
				require.Equal(w, []any{old.Effect.ID, 4, old.AuthorityID, old.Budgets.Rounds, old.Budgets.RepeatedState},
					[]any{w.s.Effect.ID, w.s.Effect.Generation, w.s.AuthorityID, w.s.Budgets.Rounds, w.s.Budgets.RepeatedState})
				w.outage(3)
				w.due()
				w.is(policy.Blocked, policy.OweProbe)
			},
		},
		{
			name: "a page does not disprove a streak in which one failure was another one", options: []option{noMessages},
			given: func(w *walk) { w.begin(); w.take(w.failed("composer_mismatch")); w.outage(2) },
			event: func(w *walk) policy.Event { w.is(policy.Blocked, "message"); return w.resume(w.s.Blocker.ID) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweSend) },
		},
		{
			name: "nor one that began with another effect", options: []option{noMessages},
			given: func(w *walk) {
				w.round()
				w.outage(1)
				w.begin()
				w.take(w.failed("composer_mismatch"))
				w.begin()
				w.take(w.deferred("conversation_moved", time.Time{}))
				w.due()
				w.outage(1)
			},
			event: func(w *walk) policy.Event { w.is(policy.Blocked, "message"); return w.resume(w.s.Blocker.ID) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweSend) },
		},
		{
			name: "a streak is no proof of recovery, and time is none either", given: fused, verdict: kernel.Reject,
			code:  policy.CodeIllegal,
			event: func(w *walk) policy.Event { w.wait(1000 * time.Hour); return beginEvent(w) },
		},
	})
}

func TestUserActionOnThePage(t *testing.T) {
	loginPage := func(w *walk) { login(w) }
	answered := func(w *walk) { login(w); w.take(w.resume(w.s.Blocker.ID)) }
	run(t, []row{
		{
			name: "nothing is probed before a person says so", given: loginPage, verdict: kernel.Reject, code: policy.CodeBlocker,
			event: passed("page"),
		},
		{
			name: "a person's resume is confirmed by a probe", given: loginPage,
			event: func(w *walk) policy.Event { return w.resume(w.s.Blocker.ID) },
			then: func(w *walk, old policy.State) {
				w.is(policy.WaitingForUser, policy.OweProbe)
				w.refused(kernel.NoOp, policy.CodeDuplicate, w.resume(w.s.Blocker.ID))
				w.take(w.probe(true, "page"))
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, []any{old.Effect.ID, 1, old.AuthorityID}, []any{w.s.Effect.ID, w.s.Effect.Generation, w.s.AuthorityID})
			},
		},
		{
			name: "a probe that still sees the page asks the person again", given: answered,
			event: func(w *walk) policy.Event { return w.probe(false, "page") },
			then: func(w *walk, _ policy.State) {
				w.is(policy.WaitingForUser, "message")
				w.take(w.resume(w.s.Blocker.ID))
				w.is(policy.WaitingForUser, policy.OweProbe)
			},
		},
	})
}

func TestPageBlockers(t *testing.T) {
	unrecognised := func(w *walk) {
		w.begin()
		w.take(w.failed(policy.FailureDrift))
		require.Equal(w, 5*time.Minute, w.due())
		w.is(policy.Blocked, policy.OweProbe)
	}
	unrecognisedTurn := func(w *walk) {
		w.claimed()
		e := w.turn(nil)
		e.Turn, e.SiteDigest = policy.TurnDrift, "site-1"
		w.take(e)
		w.due()
	}
	gone := func(w *walk) {
		w.begin()
		w.take(w.failed(policy.FailureConversationMissing))
		require.Equal(w, 5*time.Minute, w.due())
		w.is(policy.Blocked, policy.OweProbe)
	}
	changed := func(w *walk) policy.Event {
		e := w.probe(true, "page")
		e.SiteDigest = "site-2"
		return e
	}
	run(t, []row{
		{
			name: "an unrecognised page uses no generation and no failure", given: func(w *walk) { w.begin() },
			event: func(w *walk) policy.Event { return w.failed(policy.FailureDrift) },
			then: func(w *walk, _ policy.State) {
				w.blockedBy(policy.BlockedDrift)
				require.Equal(w, []any{1, 0, "site-1"}, []any{w.s.Effect.Generation, w.s.Budgets.ProviderFailures.Total, w.s.Blocker.SiteDigest})
			},
		},
		{
			name: "a probe under the same profile does not end ui_drift", given: unrecognised, event: passed("page"),
			code: policy.CodeProbeFailed,
		},
		{
			name: "a probe under a changed profile does", given: unrecognised, event: changed,
			then: func(w *walk, _ policy.State) { w.applied() },
		},
		{
			name: "so does an operator", given: unrecognised, event: func(w *walk) policy.Event { return w.resume(w.s.Blocker.ID) },
			then: func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweSend) },
		},
		{
			name: "an unrecognised turn is observed again after it", given: unrecognisedTurn, event: changed,
			then: func(w *walk, _ policy.State) {
				w.is(policy.Claimed, policy.OweObserve)
				w.settle(receipt.Continue)
				require.Equal(w, 1, w.s.Dispatches)
			},
		},
		{
			name: "a conversation that is found again goes on", given: gone, event: passed("page"),
			then: func(w *walk, _ policy.State) { w.applied() },
		},
		{
			name: "a resume looks for it now", given: func(w *walk) { gone(w); w.take(w.probe(false, "page")) },
			event: func(w *walk) policy.Event { return w.resume(w.s.Blocker.ID) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Blocked, policy.OweProbe) },
		},
		{
			name: "positive evidence ends any blocker before the turn: the message is there", given: unrecognised, event: (*walk).succeeded,
			then: func(w *walk, _ policy.State) { w.is(policy.Dispatched, policy.OweObserve); require.Nil(w, w.s.Blocker) },
		},
		{
			name: "a foreign draft ends by a person's resume", given: func(w *walk) {
				for w.s.Blocker == nil {
					w.begin()
					w.take(w.deferred("foreign_draft", time.Time{}))
				}
			},
			event: func(w *walk) policy.Event { return w.resume(w.s.Blocker.ID) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweSend) },
		},
	})
}

// Source: "ControllerRound transition policy", Blocked policy: there is no generic way out.
func TestBlockedLeavesOnlyByItsOwnEvidence(t *testing.T) {
	blockers := map[policy.BlockerClass]func(w *walk){
		policy.BlockedRepeatedState: repeated, policy.BlockedFailures: probing, policy.BlockedUnknown: bounded,
		policy.BlockedProtocol: func(w *walk) {
			for w.s.Blocker == nil {
				w.applied()
				w.take(w.without(receipt.CodeMissing, true))
			}
		},
		policy.BlockedRecovery: exhausted, policy.BlockedValidation: unavailable,
		policy.BlockedRounds: func(w *walk) {
			for w.s.Blocker == nil {
				w.round()
			}
		},
		policy.BlockedUserAction: func(w *walk) { login(w) },
		policy.BlockedDrift:      func(w *walk) { w.begin(); w.take(w.failed(policy.FailureDrift)) },
		policy.BlockedMissing:    func(w *walk) { w.begin(); w.take(w.failed(policy.FailureConversationMissing)) },
	}
	exits := map[policy.BlockerClass][]string{
		policy.BlockedRepeatedState: {"semantic_state_changed"},
		policy.BlockedFailures:      {"provider_environment_recovered", "user_resume_requested", "provider_dispatch_succeeded"},
		policy.BlockedUnknown:       {"provider_effect_reconciled", "supersede_requested", "provider_dispatch_succeeded"},
		policy.BlockedProtocol:      {"user_resume_requested"},
		policy.BlockedRecovery:      {"recovery_requested", "effect_observed"},
		policy.BlockedValidation:    {"user_resume_requested"},
		policy.BlockedRounds:        {},
		policy.BlockedUserAction:    {"provider_dispatch_succeeded", "provider_effect_reconciled"},
		policy.BlockedDrift:         {"user_resume_requested", "provider_dispatch_succeeded", "provider_effect_reconciled"},
		policy.BlockedMissing:       {"provider_environment_recovered", "provider_dispatch_succeeded", "provider_effect_reconciled"},
	}
	for class, given := range blockers {
		t.Run(string(class), func(t *testing.T) {
			w := start(t, rounds(5))
			given(w)
			w.blockedBy(class)
			left := map[string]bool{}
			for _, e := range everyEvent(w) {
				try := &walk{tester: t, h: newHistory(), s: w.s, at: w.at.Add(time.Second)}
				if d := try.try(e); d.Verdict == kernel.Accept && d.Next.Blocker == nil && !d.Next.Terminal() {
					left[e.Name()] = true
				}
			}
			want := map[string]bool{}
			for _, name := range exits[class] {
				want[name] = true
			}
			if class == policy.BlockedFailures {
				want["provider_effect_reconciled"] = true // a marker that is seen
			}
			require.Equal(t, want, left)
		})
	}
}
