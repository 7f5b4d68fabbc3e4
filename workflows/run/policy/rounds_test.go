package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// early commits a receipt before its turn has settled.
func early(w *walk, action receipt.Action) policy.Decision {
	return w.take(policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Receipt: w.receipt(action), AnswerDigest: "answer"})
}

func release(w *walk) policy.Event {
	return policy.ControllerReleaseObserved{EffectID: w.s.Effect.ID, At: w.at}
}

func TestEarlyReceipt(t *testing.T) {
	run(t, []row{
		{
			name:  "a receipt before the turn settles commits and reserves; the next round starts only at the release",
			given: func(w *walk) { w.claimed() },
			event: func(w *walk) policy.Event {
				return policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Receipt: w.receipt(receipt.Continue), AnswerDigest: "answer"}
			},
			then: func(w *walk, old policy.State) {
				w.is(policy.PendingRelease, policy.OweRelease)
				require.Equal(w, []any{old.Effect.ID, old.AuthorityID, old.Budgets}, []any{w.s.Effect.ID, w.s.AuthorityID, w.s.Budgets})
				require.Equal(w, policy.KindContinuation, w.s.Next.Kind)
				next := w.s.Next.ID
				w.refused(kernel.NeedsEvidence, policy.CodeNotSettled, policy.ControllerReleaseObserved{EffectID: w.s.Effect.ID})
				w.take(release(w))
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, []any{next, 1}, []any{w.s.Effect.ID, w.s.Budgets.Rounds})
				w.refused(kernel.NoOp, policy.CodeReleasedEarlier, policy.ControllerReleaseObserved{EffectID: old.Effect.ID, At: w.at})
			},
		},
		{
			name:  "a committed turn that never settles shows in the inbox, and nothing is sent",
			given: func(w *walk) { w.claimed(); early(w, receipt.Continue) },
			event: func(w *walk) policy.Event {
				w.wait(time.Hour)
				return policy.ControllerReleaseObserved{EffectID: w.s.Effect.ID}
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.PendingRelease, policy.OweRelease)
				require.Equal(w, "turn_overdue", w.s.Attention().Class)
				w.refused(kernel.NeedsEvidence, policy.CodeNotSettled, policy.ControllerReleaseObserved{EffectID: w.s.Effect.ID})
				w.take(release(w))
				require.Nil(w, w.s.Attention())
			},
		},
		{
			name: "a receipt for a turn that nobody saw begin is evidence of the claim", given: applied,
			event: func(w *walk) policy.Event {
				return policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Receipt: w.receipt(receipt.Continue)}
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.PendingRelease, policy.OweRelease)
				require.False(w, w.s.Chain()[0].Seen.IsZero())
			},
		},
		{
			name: "the same receipt again is a duplicate", given: func(w *walk) { w.claimed(); early(w, receipt.Continue) },
			verdict: kernel.NoOp, code: policy.CodeDuplicate,
			event: func(w *walk) policy.Event {
				w.n--
				return policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Receipt: w.receipt(receipt.Continue), AnswerDigest: "answer"}
			},
		},
		{
			name: "a release without a completion", given: func(w *walk) { w.claimed() }, event: release,
			verdict: kernel.NeedsEvidence, code: policy.CodeNotCommitted,
		},
		{
			name: "a release of a turn that was released with its receipt", given: func(w *walk) { asked(w) }, event: release,
			verdict: kernel.Reject, code: policy.CodeIllegal,
		},
		{
			name: "a handoff to nobody changes nothing", given: func(w *walk) { w.claimed() }, verdict: kernel.NeedsEvidence,
			code: policy.CodeSuccessorMissing,
			event: func(w *walk) policy.Event {
				return policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Disposition: policy.DispositionHandoff}
			},
		},
		{
			name: "a wait that names the effect claims its turn", given: applied,
			event: func(w *walk) policy.Event {
				return policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Disposition: policy.DispositionWait}
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.Waiting, "message")
				require.False(w, w.s.Chain()[0].Seen.IsZero())
			},
		},
		{
			name: "a paused run commits and releases, and sends nothing until resume", options: nil,
			given: func(w *walk) { w.claimed(); w.take(policy.PauseRequested{Operator: "ann", Reason: "wait"}) },
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Continue)) },
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatching, "message")
				w.refused(kernel.Reject, policy.CodePaused, beginEvent(w))
				w.take(w.resume(""))
				w.begin()
			},
		},
	})
}

// Source of the table: which prompt opens a new semantic round.
func TestNewRoundAndAuthorityByEffectKind(t *testing.T) {
	occurred := policy.OccurrenceRequested{OccurrenceID: "o1", Operator: "ann"}
	for _, c := range []struct {
		name string
		walk func(w *walk) policy.EffectKind // ends with the effect of that kind reserved
		new  bool
	}{
		{"continuation", func(w *walk) policy.EffectKind { w.round(); return policy.KindContinuation }, true},
		{"stagnation", func(w *walk) policy.EffectKind {
			for w.s.Effect.Kind != policy.KindStagnation {
				w.applied()
				w.same(receipt.Continue)
			}
			return policy.KindStagnation
		}, true},
		{"correction after a rejected DONE", func(w *walk) policy.EffectKind {
			proposed(w)
			w.take(w.validated(policy.CheckFail, policy.CheckPass))
			return policy.KindCorrection
		}, true},
		{"correction after a rejected NEEDS_USER", func(w *walk) policy.EffectKind {
			w.applied()
			r := w.receipt(receipt.NeedsUser)
			r.UserAction.Kind = "other"
			w.take(w.turn(r))
			return policy.KindCorrection
		}, true},
		{"resume out of an accepted NEEDS_USER", func(w *walk) policy.EffectKind {
			asked(w)
			w.take(w.resume(w.s.Completion.ID))
			return policy.KindResume
		}, true},
		{"resume out of waiting by its occurrence", func(w *walk) policy.EffectKind {
			waiting(w)
			w.take(occurred)
			w.take(release(w))
			return policy.KindResume
		}, true},
		{"enrollment", func(*walk) policy.EffectKind { return policy.KindEnrollment }, false},
		{"protocol correction", func(w *walk) policy.EffectKind {
			w.applied()
			w.take(w.without(receipt.CodeMissing, true))
			return policy.KindCorrection
		}, false},
		{"recovery", func(w *walk) policy.EffectKind {
			w.applied()
			w.take(w.broken("stopped"))
			return policy.KindRecovery
		}, false},
		{"resume after conversation_moved", func(w *walk) policy.EffectKind {
			w.applied()
			e := w.turn(nil)
			e.Turn = policy.TurnMoved
			w.take(e)
			return policy.KindResume
		}, false},
		{"resume after a protocol blocker", func(w *walk) policy.EffectKind {
			for w.s.Blocker == nil {
				w.applied()
				w.take(w.without(receipt.CodeMissing, true))
			}
			w.take(w.resume(w.s.Blocker.ID))
			return policy.KindResume
		}, false},
		{"generation after a failure", func(w *walk) policy.EffectKind {
			w.begin()
			w.take(w.failed("hung"))
			return policy.KindEnrollment
		}, false},
		{"recovery epoch", func(w *walk) policy.EffectKind {
			w.fused()
			w.due()
			w.take(w.probe(true, "message"))
			return policy.KindEnrollment
		}, false},
		{"superseding effect", func(w *walk) policy.EffectKind {
			w.unknown()
			w.take(supersede(w))
			return policy.KindEnrollment
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := start(t)
			authorities := map[string]bool{w.s.AuthorityID: true}
			kind := c.walk(w)
			authorities[w.s.AuthorityID] = true
			w.is(policy.Dispatching, w.owes().Kind)
			require.Equal(t, kind, w.s.Effect.Kind)
			require.Equal(t, policy.EffectReserved, w.s.Effect.State)
			require.Equal(t, c.new, w.s.Effect.NewRound)
			if c.new {
				require.Equal(t, w.s.Rotations, 1+w.s.Budgets.Rounds)
				require.Len(t, authorities, 2)
				require.GreaterOrEqual(t, w.s.Budgets.Rounds, 1)
			} else {
				require.Equal(t, []int{1, 0}, []int{w.s.Rotations, w.s.Budgets.Rounds})
				require.Len(t, authorities, 1)
			}
			require.Equal(t, 1, w.s.ClaimGeneration)
		})
	}
}

func TestRoundBudget(t *testing.T) {
	t.Run("its maximum blocks for good: no prompt, no resume, no probe, only a stop", func(t *testing.T) {
		w := start(t, rounds(2)).round().round().round()
		w.is(policy.Blocked, "message")
		w.blockedBy(policy.BlockedRounds)
		require.Equal(t, []int{2, 3}, []int{w.s.Budgets.Rounds, w.s.Dispatches})
		w.refused(kernel.Reject, policy.CodeBlocker, w.resume(w.s.Blocker.ID))
		w.refused(kernel.Reject, policy.CodeIllegal, policy.SemanticStateChanged{Operator: "ann", Note: "changed"})
		w.refused(kernel.Reject, policy.CodeBlocker, w.probe(true, "message"))
		w.refused(kernel.Reject, policy.CodeIllegal, policy.OccurrenceRequested{OccurrenceID: "o1"})
		w.take(policy.StopRequested{Operator: "ann", Reason: "enough"})
		w.is(policy.Stopped, "finish")
	})
	t.Run("a DONE in the last round is still validated", func(t *testing.T) {
		w := start(t, rounds(1)).round()
		proposed(w)
		w.take(w.validated(policy.CheckPass, policy.CheckPass))
		w.is(policy.GoalComplete, "finish")
	})
	t.Run("a rejected DONE in the last round has no correction left", func(t *testing.T) {
		w := start(t, rounds(1)).round()
		proposed(w)
		w.take(w.validated(policy.CheckFail, policy.CheckPass))
		w.blockedBy(policy.BlockedRounds)
	})
	t.Run("a person's answer cannot pass it", func(t *testing.T) {
		w := start(t, rounds(1)).round()
		asked(w)
		w.take(w.resume(w.s.Completion.ID))
		w.blockedBy(policy.BlockedRounds)
	})
	t.Run("a change of state cannot pass it", func(t *testing.T) {
		w := start(t, rounds(4))
		repeated(w)
		w.take(policy.SemanticStateChanged{Operator: "ann", Note: "changed"})
		w.blockedBy(policy.BlockedRounds)
	})
}
