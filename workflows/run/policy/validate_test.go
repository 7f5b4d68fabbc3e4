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

func done(w *walk) { proposed(w) }

func result(w *walk, results ...policy.CheckVerdict) policy.Event {
	return policy.ProposalValidated{Completion: w.s.Completion.ID, Run: w.s.Proposal.Runs, Results: results}
}

func unavailable(w *walk) {
	proposed(w)
	for w.s.Blocker == nil {
		for w.owes().Class == kernel.Timer {
			w.due()
		}
		w.take(w.validated(policy.CheckCannotTell, policy.CheckPass))
	}
	w.blockedBy(policy.BlockedValidation)
}

func evidence(n int) option {
	return func(g *goal.Goal, _ *goal.SiteFacts) { g.Completion.Evidence.Min = n }
}

func approval(g *goal.Goal, _ *goal.SiteFacts) { g.Completion.OperatorApproval = true }

func TestDone(t *testing.T) {
	run(t, []row{
		{
			name: "a DONE is a proposal: it is validated before anything else", given: applied,
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Done)) }, code: "done_proposed",
			then: func(w *walk, _ policy.State) { w.is(policy.PendingRelease, policy.OweValidate) },
		},
		{
			name: "every check passes: the goal is complete", given: done, code: "done_verified",
			event: func(w *walk) policy.Event { return w.validated(policy.CheckPass, policy.CheckPass) },
			then: func(w *walk, _ policy.State) {
				w.is(policy.GoalComplete, "finish")
				require.Empty(w, policy.Policy{}.Ending(w.s).Failure)
			},
		},
		{
			name: "a failed check becomes a correction round that names it, and the gate stays", given: done, code: "done_rejected",
			event: func(w *walk) policy.Event { return w.validated(policy.CheckFail, policy.CheckPass) },
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, policy.KindCorrection, w.s.Effect.Kind)
				require.Equal(w, []string{"tests: exit_mismatch exit 1"}, w.s.Effect.Failed)
				require.Equal(w, old.Budgets.Rounds+1, w.s.Budgets.Rounds)
				text, err := w.s.Prompt(w.s.Effect)
				require.NoError(w, err)
				require.Contains(w, text, "tests: exit_mismatch exit 1")
			},
		},
		{
			name: "the outcome of an earlier run of the checks is a duplicate", given: func(w *walk) {
				proposed(w)
				w.take(w.validated(policy.CheckCannotTell, policy.CheckPass))
			},
			verdict: kernel.NoOp, code: policy.CodeDuplicate,
			event: func(w *walk) policy.Event {
				e := w.validated(policy.CheckPass, policy.CheckPass).(policy.ProposalValidated)
				e.Run = 0
				return e
			},
		},
		{
			name: "checks of another completion", given: done, verdict: kernel.Reject, code: policy.CodeCompletionMismatch,
			event: func(*walk) policy.Event { return policy.ProposalValidated{Completion: "cp_other"} },
		},
		{
			name: "checks without a proposal", given: applied, verdict: kernel.Reject, code: policy.CodeNoProposal,
			event: func(*walk) policy.Event { return policy.ProposalValidated{Completion: "cp_other"} },
		},
		{
			name: "no results are no pass", given: done, event: func(w *walk) policy.Event { return result(w) }, code: "validation_unclear",
		},
		{
			name: "a check without its result is no pass", given: done, code: "validation_unclear",
			event: func(w *walk) policy.Event {
				return result(w, policy.CheckVerdict{Name: "tests", Outcome: policy.CheckPass})
			},
		},
		{
			name: "two results of one check do not stand for another", given: done, code: "validation_unclear",
			event: func(w *walk) policy.Event {
				pass := policy.CheckVerdict{Name: "tests", Outcome: policy.CheckPass}
				return result(w, pass, pass)
			},
		},
		{
			name: "results of foreign checks do not count", given: done, code: "validation_unclear",
			event: func(w *walk) policy.Event {
				foreign, own := policy.CheckVerdict{Name: "lint", Outcome: policy.CheckPass}, policy.CheckVerdict{Name: "tests", Outcome: policy.CheckPass}
				return result(w, foreign, own)
			},
		},
		{
			name: "an outcome of no known word is no pass", given: done, code: "validation_unclear",
			event: func(w *walk) policy.Event { return w.validated("passed", policy.CheckPass) },
		},
		{
			name: "evidence that the contract asks for is missing: rejected without running a check", options: []option{evidence(2)},
			given: applied,
			event: func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Done)) }, code: "done_rejected",
			then: func(w *walk, _ policy.State) {
				require.Equal(w, policy.KindCorrection, w.s.Effect.Kind)
				require.Contains(w, w.s.Effect.Failed[0], "at least 2")
			},
		},
		{
			name: "a compact DONE is valid when no evidence is asked for", given: applied, code: "done_proposed",
			event: func(w *walk) policy.Event {
				return w.turn(&receipt.Receipt{Form: receipt.Compact, Action: receipt.Done, Digest: "d"})
			},
		},
		{
			name: "a compact DONE names no evidence", options: []option{evidence(1)}, given: applied, code: "done_rejected",
			event: func(w *walk) policy.Event {
				return w.turn(&receipt.Receipt{Form: receipt.Compact, Action: receipt.Done, Digest: "d"})
			},
		},
	})
}

func TestValidationThatCannotTell(t *testing.T) {
	t.Run("is repeated after 30 s, 2 min and 10 min, then blocks and is repeated at growing intervals", func(t *testing.T) {
		w := proposed(start(t))
		budgets, sent := w.s.Budgets, w.s.Dispatches
		var waits []time.Duration
		for range 8 {
			w.take(w.validated(policy.CheckCannotTell, policy.CheckPass))
			waits = append(waits, w.due())
			w.is(w.s.Status, policy.OweValidate)
		}
		s, m := time.Second, time.Minute
		require.Equal(t, []time.Duration{30 * s, 2 * m, 10 * m, 10 * m, 20 * m, 40 * m, 60 * m, 60 * m}, waits)
		w.blockedBy(policy.BlockedValidation)
		require.Equal(t, []any{budgets, sent}, []any{w.s.Budgets, w.s.Dispatches})
		require.Equal(t, "validation_unavailable", w.s.Attention().Class)
	})
	run(t, []row{
		{
			name: "a pass ends the block", given: func(w *walk) { unavailable(w); w.due() },
			event: func(w *walk) policy.Event { return w.validated(policy.CheckPass, policy.CheckPass) },
			then:  func(w *walk, _ policy.State) { w.is(policy.GoalComplete, "finish") },
		},
		{
			name: "a failure ends the block with a correction", given: func(w *walk) { unavailable(w); w.due() },
			event: func(w *walk) policy.Event { return w.validated(policy.CheckCannotTell, policy.CheckFail) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatching, policy.OweSend); require.Nil(w, w.s.Blocker) },
		},
		{
			name: "an operator's resume runs the checks now", given: unavailable,
			event: func(w *walk) policy.Event { return w.resume(w.s.Blocker.ID) },
			then:  func(w *walk, _ policy.State) { w.is(policy.PendingRelease, policy.OweValidate) },
		},
	})
}

func TestApproval(t *testing.T) {
	approve := func(w *walk) policy.Event {
		return policy.ApprovalGiven{Completion: w.s.Completion.ID, Operator: "ann", Reason: "looks good"}
	}
	decline := func(w *walk) policy.Event {
		return policy.ApprovalDeclined{Completion: w.s.Completion.ID, Operator: "ann", Reason: "the report is empty"}
	}
	both := []option{approval}
	passed := func(w *walk) { proposed(w); w.take(w.validated(policy.CheckPass, policy.CheckPass)) }
	run(t, []row{
		{
			name: "with checks and approval, the checks come first", options: both, given: done, code: "approval_awaited",
			event: func(w *walk) policy.Event { return w.validated(policy.CheckPass, policy.CheckPass) },
			then: func(w *walk, _ policy.State) {
				w.is(policy.WaitingForUser, "message")
				require.Equal(w, "approval", w.s.Attention().Class)
			},
		},
		{
			name: "without checks a person alone completes the goal", options: []option{byApproval}, given: done, event: approve,
			then: func(w *walk, _ policy.State) { w.is(policy.GoalComplete, "finish") },
		},
		{
			name: "approved", options: both, given: passed, event: approve,
			then: func(w *walk, _ policy.State) { w.is(policy.GoalComplete, "finish") },
		},
		{
			name: "declined: a correction round says why", options: both, given: passed, event: decline, code: "done_declined",
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, []string{"the operator declined: the report is empty"}, w.s.Effect.Failed)
			},
		},
		{
			name: "approval before the checks have passed", options: both, given: done, event: approve, verdict: kernel.Reject,
			code: policy.CodeIllegal,
		},
		{
			name: "approval of another completion", options: both, given: passed, verdict: kernel.Reject,
			code: policy.CodeCompletionMismatch,
			event: func(*walk) policy.Event {
				return policy.ApprovalGiven{Completion: "cp_other", Operator: "ann", Reason: "good"}
			},
		},
		{
			name: "approval by nobody", options: both, given: passed, verdict: kernel.NeedsEvidence, code: policy.CodeOperatorMissing,
			event: func(w *walk) policy.Event { return policy.ApprovalGiven{Completion: w.s.Completion.ID, Reason: "good"} },
		},
		{
			name: "approval without a reason", options: both, given: passed, verdict: kernel.NeedsEvidence, code: policy.CodeReasonMissing,
			event: func(w *walk) policy.Event {
				return policy.ApprovalGiven{Completion: w.s.Completion.ID, Operator: "ann"}
			},
		},
		{name: "approval of nothing", event: approve, verdict: kernel.Reject, code: policy.CodeNoProposal},
		{
			name: "a resume does not approve", options: both, given: passed, verdict: kernel.NoOp, code: policy.CodeNothingToResume,
			event: func(w *walk) policy.Event { return w.resume(w.s.Completion.ID) },
		},
		{
			name: "the checks of an approved-or-not proposal are over", options: both, given: passed, verdict: kernel.Reject,
			code:  policy.CodeIllegal,
			event: func(w *walk) policy.Event { return w.validated(policy.CheckPass, policy.CheckPass) },
		},
	})
}

func TestNeedsUser(t *testing.T) {
	ask := func(kind, text string) func(w *walk) policy.Event {
		return func(w *walk) policy.Event {
			r := w.receipt(receipt.NeedsUser)
			r.UserAction = &receipt.UserAction{Kind: kind, Ask: text, Tried: "everything"}
			return w.turn(r)
		}
	}
	other := []option{func(g *goal.Goal, _ *goal.SiteFacts) { g.UserBlocker.Allowed = []string{"decision", "other"} }}
	askedOnce := func(w *walk) { w.applied(); w.take(ask("other", "Restart it?")(w)); w.applied() }
	rejected := func(w *walk, _ policy.State) {
		w.is(policy.Dispatching, policy.OweSend)
		require.Equal(w, policy.KindCorrection, w.s.Effect.Kind)
		require.NotEmpty(w, w.s.Effect.Failed)
		require.Equal(w, 1, w.s.Budgets.Rounds)
	}
	run(t, []row{
		{
			name: "an allowed kind waits for its person: one attention record, nothing sent", given: applied,
			event: ask("payment", "Pay the invoice"), code: "needs_user_accepted",
			then: func(w *walk, _ policy.State) {
				w.is(policy.WaitingForUser, "message")
				require.Equal(w, []string{"payment", "Pay the invoice"}, []string{w.s.Attention().Class, w.s.Attention().Ask})
				require.Contains(w, w.s.Attention().Command, "--answers "+w.s.Completion.ID)
			},
		},
		{
			name: "a failure of tests, tools or provider is no reason", given: applied, event: ask("test_failure", "The tests fail"),
			code: "needs_user_rejected", then: rejected,
		},
		{
			name: "a kind that this run forbids is no reason", given: applied, event: ask("payment", "Pay"), code: "needs_user_rejected",
			then:    rejected,
			options: []option{func(g *goal.Goal, _ *goal.SiteFacts) { g.UserBlocker.Allowed = []string{} }},
		},
		{
			name: "a compact request is asked for its block", given: applied, code: "needs_user_rejected", then: rejected,
			event: func(w *walk) policy.Event {
				return w.turn(&receipt.Receipt{Form: receipt.Compact, Action: receipt.NeedsUser, Digest: "u"})
			},
		},
		{
			name: "other is no reason where it is not allowed", given: applied, event: ask("other", "Restart it?"),
			code: "needs_user_rejected", then: rejected,
		},
		{
			name: "other gets one correction round", options: other, given: applied, event: ask("other", "Restart it?"),
			code: "needs_user_rejected", then: rejected,
		},
		{
			name: "other that comes back with the same request is accepted", options: other, given: askedOnce,
			event: ask("other", "Restart it?"),
			code:  "needs_user_accepted", then: func(w *walk, _ policy.State) { w.is(policy.WaitingForUser, "message") },
		},
		{
			name: "other that comes back with another request is corrected again", options: other, given: askedOnce,
			event: ask("other", "Call me?"), code: "needs_user_rejected",
		},
		{
			name: "other that comes back after other work is corrected again", options: other, event: ask("other", "Restart it?"),
			code:  "needs_user_rejected",
			given: func(w *walk) { askedOnce(w); w.settle(receipt.Continue); w.applied() },
		},
	})
}
