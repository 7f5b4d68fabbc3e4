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

func violations(n int) option {
	return func(g *goal.Goal, _ *goal.SiteFacts) { g.Continuation.MaxProtocolViolations = &n }
}

func recoveries(n int) option {
	return func(g *goal.Goal, _ *goal.SiteFacts) { g.Continuation.MaxRecoveries = &n }
}

func applied(w *walk) { w.applied() }

func TestClaim(t *testing.T) {
	run(t, []row{
		{
			name: "the first sight of the assistant claims the round, and never opens a new one", given: applied,
			event: func(w *walk) policy.Event { return policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at} },
			then: func(w *walk, old policy.State) {
				w.is(policy.Claimed, policy.OweObserve)
				require.Equal(w, policy.StageClaimed, w.s.Stage)
				require.Equal(w, []any{old.AuthorityID, old.Budgets, old.ClaimGeneration}, []any{w.s.AuthorityID, w.s.Budgets, w.s.ClaimGeneration})
			},
		},
		{
			name: "a claim twice is a duplicate", given: func(w *walk) { w.claimed() }, verdict: kernel.NoOp, code: policy.CodeDuplicate,
			event: func(w *walk) policy.Event { return policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at} },
		},
		{
			name: "a claim of an effect that was not sent", verdict: kernel.Reject, code: policy.CodeNotApplied,
			event: func(w *walk) policy.Event { return policy.ControllerClaimObserved{EffectID: w.s.Effect.ID} },
		},
		{
			name: "a claim of a foreign effect", given: applied, verdict: kernel.Reject, code: policy.CodeEffectMismatch,
			event: func(*walk) policy.Event { return policy.ControllerClaimObserved{EffectID: "fx_other"} },
		},
		{
			name: "a late claim of an earlier effect is a duplicate", given: func(w *walk) { w.round() }, verdict: kernel.NoOp,
			code:  policy.CodeDuplicate,
			event: func(w *walk) policy.Event { return policy.ControllerClaimObserved{EffectID: w.s.Chain()[0].Effect} },
		},
	})
}

func TestTurn(t *testing.T) {
	run(t, []row{
		{
			name: "CONTINUE of a settled turn commits, reserves and releases in one decision", given: applied,
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Continue)) }, code: "continue_committed",
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, old.Effect.ID, w.s.Completion.Effect)
				require.Equal(w, policy.KindContinuation, w.s.Effect.Kind)
				require.Equal(w, old.Effect.ID, w.s.Effect.Source)
				require.Equal(w, "answer-"+old.Effect.ID, w.s.Effect.SourceAnswer)
				require.True(w, w.s.Effect.Fenced)
				require.Nil(w, w.s.Next)
				require.Equal(w, 1, w.s.Budgets.Rounds)
				require.NotEqual(w, old.AuthorityID, w.s.AuthorityID)
				require.Equal(w, old.RelayScopeID, w.s.RelayScopeID)
				first := w.s.Chain()[0]
				require.Equal(w, []any{"CONTINUE", "block"}, []any{first.Action, first.Receipt})
				require.False(w, first.Seen.IsZero() || first.Settled.IsZero() || first.Committed.IsZero())
			},
		},
		{
			name: "the same turn seen again is a duplicate", verdict: kernel.NoOp, code: policy.CodeDuplicate,
			given: func(w *walk) { w.round() },
			event: func(w *walk) policy.Event {
				e := w.turn(w.receipt(receipt.Continue))
				e.EffectID = w.s.Chain()[0].Effect
				return e
			},
		},
		{
			name: "the same receipt for a committed effect is a duplicate", verdict: kernel.NoOp, code: policy.CodeDuplicate,
			given: func(w *walk) { asked(w) },
			event: func(w *walk) policy.Event { w.n--; return w.turn(w.receipt(receipt.NeedsUser)) },
		},
		{
			name: "another completion for a completed effect is refused", verdict: kernel.Reject, code: policy.CodeCompleted,
			given: func(w *walk) { asked(w) },
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Continue)) },
		},
		{
			name: "another completion by another door is refused too", verdict: kernel.Reject, code: policy.CodeCompleted,
			given: func(w *walk) { asked(w) },
			event: func(w *walk) policy.Event {
				return policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Receipt: w.receipt(receipt.Done)}
			},
		},
		{
			name: "an open turn stays open: nothing is sent, and after attention_after it shows in the inbox", given: applied,
			event: func(w *walk) policy.Event {
				w.wait(time.Hour)
				e := w.turn(nil)
				e.Turn = policy.TurnOpen
				return e
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.Claimed, policy.OweObserve)
				require.Equal(w, "turn_overdue", w.s.Attention().Class)
				w.settle(receipt.Continue)
				w.is(policy.Dispatching, policy.OweSend)
				require.Nil(w, w.s.Attention())
			},
		},
		{
			name: "a look that could not be made proves nothing and is repeated by the driver's own pace", given: applied,
			event: func(w *walk) policy.Event {
				e := w.turn(nil)
				e.Turn, e.SeenAt = policy.TurnUnread, time.Time{}
				return e
			},
			verdict: kernel.NeedsEvidence, code: policy.CodeTurnUnread,
			then: func(w *walk, _ policy.State) {
				w.wait(time.Hour)
				e := w.turn(nil)
				e.Turn, e.SeenAt, e.Class, e.Detail = policy.TurnUnread, time.Time{}, "failed", "no such browser"
				w.take(e)
				require.Equal(w, "turn_overdue", w.s.Attention().Class, "a turn that cannot be read shows in the inbox as well")
				require.Equal(w, "no such browser", w.s.Turn.Detail)
			},
		},
		{
			name: "a page that asks for its user during a turn shows in the inbox and is looked at again later", given: applied,
			event: func(w *walk) policy.Event {
				e := w.turn(nil)
				e.Turn, e.Class, e.Detail = policy.TurnUserAction, "login", "please log in"
				return e
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.Claimed, policy.OweObserve)
				require.Equal(w, "turn_needs_user", w.s.Attention().Class)
				require.Equal(w, w.at.Add(5*time.Minute), w.s.Turn.NotBefore)
			},
		},
		{
			name: "a look that was made before is stale", given: func(w *walk) {
				w.applied()
				e := w.turn(nil)
				e.Turn = policy.TurnOpen
				w.take(e)
			},
			verdict: kernel.NoOp, code: policy.CodeLookStale,
			event: func(w *walk) policy.Event {
				e := w.turn(w.receipt(receipt.Continue))
				e.Look = 1
				return e
			},
		},
		{
			name: "a turn of no known state changes nothing", given: applied, verdict: kernel.Reject, code: policy.CodeIllegal,
			event: func(w *walk) policy.Event {
				e := w.turn(nil)
				e.Turn = "sleeping"
				return e
			},
		},
		{
			name: "the conversation is gone: blocked, the effect and the authority kept", given: applied,
			event: func(w *walk) policy.Event {
				e := w.turn(nil)
				e.Turn = policy.TurnMissing
				return e
			},
			then: func(w *walk, old policy.State) {
				w.blockedBy(policy.BlockedMissing)
				require.Equal(w, []any{old.Effect.ID, old.AuthorityID}, []any{w.s.Effect.ID, w.s.AuthorityID})
			},
		},
	})
}

func TestTurnWithoutAValidReceipt(t *testing.T) {
	missing := func(w *walk) policy.Event { return w.without(receipt.CodeMissing, true) }
	run(t, []row{
		{
			name: "one fixed correction restates the protocol, in the same round", given: applied, event: missing, code: receipt.CodeMissing,
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, policy.KindCorrection, w.s.Effect.Kind)
				require.True(w, w.s.Effect.Protocol)
				require.Equal(w, []string{"the receipt is not as it should be"}, w.s.Effect.Failed)
				require.Equal(w, []any{old.AuthorityID, old.Budgets}, []any{w.s.AuthorityID, w.s.Budgets})
				require.Equal(w, "answer-"+old.Effect.ID, w.s.Effect.SourceAnswer)
				require.Zero(w, w.s.Completion, "nothing was committed")
			},
		},
		{
			name: "a turn that settled without any reading is one without a receipt", given: applied, code: receipt.CodeMissing,
			event: func(w *walk) policy.Event { return w.turn(nil) },
			then:  func(w *walk, _ policy.State) { require.Equal(w, 1, w.s.Violations) },
		},
		{
			name: "a settled turn is the same by its own event", given: func(w *walk) { w.claimed() }, code: receipt.CodeMissing,
			event: func(w *walk) policy.Event {
				return policy.ControllerTurnSettled{EffectID: w.s.Effect.ID, At: w.at, AnswerDigest: "a"}
			},
			then: func(w *walk, _ policy.State) { require.Equal(w, policy.KindCorrection, w.s.Effect.Kind) },
		},
		{
			name: "violations in a row end in their own blocker", given: func(w *walk) {
				for range 3 {
					w.applied()
					w.take(w.without(receipt.CodeMalformed, true))
				}
				w.applied()
			},
			event: missing,
			then: func(w *walk, old policy.State) {
				w.is(policy.Blocked, "message")
				w.blockedBy(policy.BlockedProtocol)
				require.Equal(w, []any{old.AuthorityID, 0, 0}, []any{w.s.AuthorityID, w.s.Budgets.Rounds, w.s.Budgets.ProviderFailures.Total})
				w.take(w.resume(w.s.Blocker.ID))
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, policy.KindResume, w.s.Effect.Kind)
				require.Equal(w, old.AuthorityID, w.s.AuthorityID)
				require.Zero(w, w.s.Violations)
			},
		},
		{
			name: "a bound of zero blocks at the first violation", options: []option{violations(0)}, given: applied, event: missing,
			then: func(w *walk, _ policy.State) { w.blockedBy(policy.BlockedProtocol) },
		},
		{
			name: "a valid receipt ends the row of violations", given: func(w *walk) {
				w.applied()
				w.take(w.without(receipt.CodeMissing, true))
				w.applied()
			},
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Continue)) },
			then:  func(w *walk, _ policy.State) { require.Zero(w, w.s.Violations) },
		},
		{
			name: "a block that the rendering broke is corrected once without counting", given: applied,
			event: func(w *walk) policy.Event { return w.without(receipt.CodeMangled, false) },
			then: func(w *walk, _ policy.State) {
				require.Equal(w, []any{1, 0}, []any{w.s.Mangled, w.s.Violations})
				w.applied()
				w.take(w.without(receipt.CodeMangled, false))
				require.Equal(w, []any{1, 1}, []any{w.s.Mangled, w.s.Violations})
			},
		},
		{
			name: "an ambiguous receipt counts", given: applied,
			event: func(w *walk) policy.Event { return w.without(receipt.CodeAmbiguous, true) },
			then:  func(w *walk, _ policy.State) { require.Equal(w, 1, w.s.Violations) },
		},
		{
			name: "somebody else's turn is followed by one resume, in the same round", given: func(w *walk) { w.round(); w.applied() },
			event: func(w *walk) policy.Event {
				e := w.without(receipt.CodeMissing, true)
				e.Turn = policy.TurnMoved
				return e
			},
			code: "conversation_moved",
			then: func(w *walk, old policy.State) {
				require.Equal(w, policy.KindResume, w.s.Effect.Kind)
				require.Equal(w, []any{old.AuthorityID, old.Budgets}, []any{w.s.AuthorityID, w.s.Budgets})
			},
		},
		{
			name: "two programs that write into one conversation do not answer each other for ever", given: applied,
			event: func(w *walk) policy.Event {
				e := w.turn(nil)
				e.Turn = policy.TurnMoved
				for w.s.Violations < 3 {
					e.EffectID, e.Look = w.s.Effect.ID, w.s.Turn.Look
					w.take(e)
					w.applied()
				}
				e.EffectID = w.s.Effect.ID
				return e
			},
			then: func(w *walk, _ policy.State) {
				w.blockedBy(policy.BlockedProtocol)
				require.Equal(w, 4, w.s.Dispatches)
			},
		},
	})
}

func TestProviderFailureInATurn(t *testing.T) {
	run(t, []row{
		{
			name: "one recovery is reserved, in the same round; the prompt is not replayed and no failure budget is used", given: applied,
			event: func(w *walk) policy.Event { return w.broken("delivery_unavailable") }, code: "recovery_reserved",
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, policy.KindRecovery, w.s.Effect.Kind)
				require.NotEqual(w, old.Effect.PromptDigest, w.s.Effect.PromptDigest)
				require.True(w, w.s.Effect.Fenced)
				require.Equal(w, []any{old.AuthorityID, old.Budgets}, []any{w.s.AuthorityID, w.s.Budgets})
			},
		},
		{
			name:  "a second failure in a row is recovery_exhausted",
			given: func(w *walk) { w.applied(); w.take(w.broken("stopped")); w.applied() },
			event: func(w *walk) policy.Event { return w.broken("stopped") }, code: "recovery_exhausted",
			then: func(w *walk, old policy.State) {
				w.is(policy.Blocked, "message")
				w.blockedBy(policy.BlockedRecovery)
				require.Equal(w, old.Effect.ID, w.s.Effect.ID)
				require.Contains(w, w.s.Attention().Command, "recover "+workflowID)
				w.refused(kernel.Reject, policy.CodeBlocker, w.resume(w.s.Blocker.ID))
			},
		},
		{
			name: "without recoveries the first failure blocks", options: []option{recoveries(0)}, given: applied,
			event: func(w *walk) policy.Event { return w.broken("stopped") },
			then:  func(w *walk, _ policy.State) { w.blockedBy(policy.BlockedRecovery) },
		},
		{
			name:  "a valid receipt opens the row again",
			given: func(w *walk) { w.applied(); w.take(w.broken("stopped")); w.round(); w.applied() },
			event: func(w *walk) policy.Event { return w.broken("stopped") },
			then:  func(w *walk, _ policy.State) { require.Equal(w, policy.KindRecovery, w.s.Effect.Kind) },
		},
		{
			name: "a failed turn with a valid receipt commits it", given: applied, code: "continue_committed",
			event: func(w *walk) policy.Event {
				e := w.turn(w.receipt(receipt.Continue))
				e.Turn = policy.TurnFailed
				return e
			},
		},
		{
			name: "an operator's recovery reserves one more, once", given: exhausted, event: recoverEvent,
			then: func(w *walk, old policy.State) {
				require.Equal(w, policy.KindRecovery, w.s.Effect.Kind)
				w.refused(kernel.NoOp, policy.CodeDuplicate, policy.RecoveryRequested{EffectID: old.Effect.ID, Operator: "ann", Reason: "again"})
				w.applied()
				w.take(w.broken("stopped"))
				w.blockedBy(policy.BlockedRecovery)
			},
		},
		{
			name: "a late valid receipt for the applied effect ends recovery_exhausted", given: exhausted,
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Continue)) }, code: "continue_committed",
			then: func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweSend); require.Nil(w, w.s.Blocker) },
		},
		{
			name: "another look does not", given: exhausted, verdict: kernel.Reject, code: policy.CodeIllegal,
			event: func(w *walk) policy.Event { return w.without(receipt.CodeMissing, true) },
		},
		{
			name: "a recovery of a live turn is refused", given: applied, event: recoverEvent, verdict: kernel.Reject,
			code: policy.CodeRoundAlive,
		},
		{
			name: "a recovery while the effect is unknown is refused", given: doubted, event: recoverEvent, verdict: kernel.Reject,
			code: policy.CodeNotApplied,
		},
		{
			name: "a recovery of a foreign effect is refused", given: exhausted, verdict: kernel.Reject, code: policy.CodeEffectMismatch,
			event: func(*walk) policy.Event {
				return policy.RecoveryRequested{EffectID: "fx_other", Operator: "ann", Reason: "again"}
			},
		},
		{
			name: "a recovery needs its operator", given: exhausted, verdict: kernel.NeedsEvidence, code: policy.CodeOperatorMissing,
			event: func(w *walk) policy.Event { return policy.RecoveryRequested{EffectID: w.s.Effect.ID, Reason: "again"} },
		},
		{
			name: "a recovery needs its reason", given: exhausted, verdict: kernel.NeedsEvidence, code: policy.CodeReasonMissing,
			event: func(w *walk) policy.Event { return policy.RecoveryRequested{EffectID: w.s.Effect.ID, Operator: "ann"} },
		},
	})
}

func exhausted(w *walk) {
	for w.s.Blocker == nil {
		w.applied()
		w.take(w.broken("stopped"))
	}
}

func recoverEvent(w *walk) policy.Event {
	return policy.RecoveryRequested{EffectID: w.s.Effect.ID, Operator: "ann", Reason: "again"}
}
