package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// adopt is a conversation whose own goal is not known.
func adopt(g *goal.Goal, _ *goal.SiteFacts) { g.Adopt = &goal.Adopt{Scopes: "goal:orders-[a-z]+"} }

func (w *walk) names(action receipt.Action, scope string) policy.EffectObserved {
	r := w.receipt(action)
	r.Scope = scope
	return w.turn(r)
}

func TestAdoptRegistersTheScopeOfTheConversationOnce(t *testing.T) {
	w := start(t, adopt)
	require.Equal(t, []any{policy.KindAdopt, false}, []any{w.s.Effect.Kind, w.s.Effect.Fenced})
	text, err := w.s.Prompt(w.s.Effect)
	require.NoError(t, err)
	require.Contains(t, text, "change nothing in this turn")
	require.Contains(t, text, "active_scope: goal:6710a2f4\n")
	want := w.s.Want()
	require.True(t, want.ProposeScope)
	require.Equal(t, []receipt.Form{receipt.Block}, want.Forms, "a compact receipt names no scope")
	w.applied()
	require.Equal(t, "continue_committed", w.take(w.names(receipt.Continue, "goal:orders-green")).Code)
	require.Equal(t, []any{"goal:orders-green", "goal:orders-green", false}, []any{w.s.Scope, w.s.Goal.Scope, w.s.Adopting})
	require.Equal(t, policy.KindContinuation, w.s.Effect.Kind)
	require.False(t, w.s.Want().ProposeScope)
	text, err = w.s.Prompt(w.s.Effect)
	require.NoError(t, err)
	require.Contains(t, text, "active_scope: goal:orders-green\n")
}

func TestAdoptTakesTheProposedScopeToo(t *testing.T) {
	w := start(t, adopt)
	w.applied()
	w.take(w.names(receipt.Continue, "goal:6710a2f4"))
	require.Equal(t, "goal:6710a2f4", w.s.Scope)
	require.False(t, w.s.Adopting)
}

func TestAdoptRefusesAnyOtherScope(t *testing.T) {
	for _, scope := range []string{"goal:billing", "work:orders-green", "goal:orders-green\n", "goal:orders-GREEN", "x goal:orders-a", ""} {
		w := start(t, adopt)
		w.applied()
		require.Equal(t, policy.CodeScopeRefused, w.take(w.names(receipt.Continue, scope)).Code)
		require.Equal(t, []any{"goal:6710a2f4", true, 1}, []any{w.s.Scope, w.s.Adopting, w.s.Violations})
		require.Equal(t, []any{policy.KindCorrection, true}, []any{w.s.Effect.Kind, w.s.Effect.Protocol})
		require.Contains(t, w.s.Effect.Failed[0], "or one that matches goal:orders-[a-z]+")
		w.applied()
		w.take(w.names(receipt.Continue, "goal:orders-green"))
		require.Equal(t, "goal:orders-green", w.s.Scope, "the correction may name it")
	}
}

func TestNoDONEBeforeTheTaskIsKnown(t *testing.T) {
	w := start(t, adopt)
	w.applied()
	require.Equal(t, "done_rejected", w.take(w.names(receipt.Done, "goal:orders-green")).Code)
	require.Nil(t, w.s.Proposal)
	require.Equal(t, []any{policy.KindCorrection, false, "goal:orders-green"}, []any{w.s.Effect.Kind, w.s.Effect.Protocol, w.s.Scope})
	require.True(t, strings.HasPrefix(w.s.Effect.Failed[0], "DONE: this turn was to find out the task"))
	w.applied()
	require.Equal(t, "done_proposed", w.take(w.names(receipt.Done, "goal:orders-green")).Code)
	w.take(w.validated(policy.CheckPass, policy.CheckPass))
	w.is(policy.GoalComplete, "finish")
}

// A conversation is asked for its task once, whatever became of that.
func TestAConversationIsAdoptedOnce(t *testing.T) {
	past := stopped(start(t, adopt).applied())
	n := later(t, past, adopt)
	n.is(policy.Failed, "finish")
	require.Contains(t, n.s.Failure.Problems[0], policy.CodeLineageAdopted)
	later(t, past).is(policy.Dispatching, policy.OweSend)
	require.Equal(t, policy.KindEnrollment, later(t, past).s.Effect.Kind)

	again := func(past policy.State) *walk {
		w := zero(t)
		w.take(policy.OccurrenceRequested{Start: startOf(past.RunID, &past, adopt)})
		return w
	}
	named := start(t, adopt).applied()
	named.take(named.names(receipt.Continue, "goal:orders-green"))
	n = again(named.s)
	require.Equal(t, []any{policy.KindEnrollment, "goal:orders-green", "goal:orders-green", false},
		[]any{n.s.Effect.Kind, n.s.Scope, n.s.Goal.Scope, n.s.Adopting}, "a reset to before the admission")
	n = again(start(t, adopt).applied().s)
	require.Equal(t, policy.KindEnrollment, n.s.Effect.Kind, "it was asked, and is not asked again")
	n = again(start(t, adopt).s)
	require.Equal(t, policy.KindAdopt, n.s.Effect.Kind, "it was never asked")

	w := start(t, adopt)
	w.begin()
	w.take(policy.ProviderDispatchOutcomeUnknown{Attempted: w.tried(), Code: "commit_not_seen"})
	w.take(w.look(true, true))
	require.Equal(t, policy.KindAdopt, w.s.Effect.Kind)
	early := w.receipt(receipt.Continue)
	early.Scope = "goal:billing"
	w.take(policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at})
	w.refused(kernel.Reject, policy.CodeScopeRefused, policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Receipt: early, AnswerDigest: "early"})

	w = start(t, adopt).handoff("goal:given", "")
	w.take(release(w))
	e := w.succeed()
	e.Successor = workflowID
	w.take(e)
	require.Equal(t, []any{policy.KindEnrollment, false}, []any{w.s.Effect.Kind, w.s.Adopting}, "a person named the scope")
}
