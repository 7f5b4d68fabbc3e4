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

// created is a target whose conversation the first message creates.
func created(g *goal.Goal, s *goal.SiteFacts) {
	g.Target.New = &goal.NewConversation{Key: "orders"}
	s.ConversationID, s.ConversationURL, s.PageURL = "", "", "https://chatgpt.com/"
}

func (w *walk) addressed(e policy.EffectObserved) policy.EffectObserved {
	e.ConversationID, e.ConversationURL = otherSite().ConversationID, otherURL
	return e
}

// succeededAt is a send whose message stands at a durable address.
func (w *walk) succeededAt(url string) policy.Event {
	return policy.ProviderDispatchSucceeded{
		Attempted: w.tried(), At: w.at, UserMessageID: "m1", ConversationID: otherSite().ConversationID, ConversationURL: url,
	}
}

// boundTo checks that the run goes on under the conversation's own id, with the effect that created it.
func (w *walk) boundTo() *walk {
	w.Helper()
	old := w.s
	require.Equal(w, policy.SuccessionBootstrap, w.s.Succession.Kind)
	e := w.succeed()
	next := w.successor()
	next.is(policy.Dispatched, policy.OweObserve)
	require.Equal(w, []any{old.Effect, old.Scope, old.Budgets}, []any{next.s.Effect, next.s.Scope, next.s.Budgets})
	require.Nil(w, next.s.Goal.Target.New)
	require.Equal(w, "https://chatgpt.com/", next.s.Site.PageURL)
	want := next.s.Want()
	require.Equal(w, []string{otherSite().ConversationID, "new:orders"}, []string{want.ConversationID, want.ConversationAlias})
	e.Successor = next.s.WorkflowID
	w.take(e)
	w.is(policy.HandedOff, "finish")
	require.Equal(w, next.s.WorkflowID, w.s.HandedTo())
	again := zero(w.tester)
	again.try(policy.OccurrenceRequested{Start: startOf(secondRun, &w.s, created)})
	require.Contains(w, again.s.Failure.Problems[0], "goes on as "+next.s.WorkflowID)
	return next
}

func TestANewConversationBeginsWithABootstrap(t *testing.T) {
	w := start(t, created)
	w.is(policy.Dispatching, policy.OweSend)
	require.Equal(t, []any{policy.KindBootstrap, "new:orders", "goal:orders", false},
		[]any{w.s.Effect.Kind, w.s.Effect.Alias, w.s.Scope, w.s.Effect.Fenced})
	text, err := w.s.Prompt(w.s.Effect)
	require.NoError(t, err)
	require.Contains(t, text, "conversation_id: new:orders\n")

	t.Run("an attempt that was lost after arming is found with its address", func(t *testing.T) {
		w := start(t, created)
		w.begin()
		w.take(policy.RuntimeOrSessionEvicted{Attempted: w.tried(), Armed: true})
		look := w.look(true, true)
		look.ConversationID, look.ConversationURL = otherSite().ConversationID, otherURL
		require.Equal(t, "marker_seen", w.take(look).Code)
		next := w.boundTo()
		next.settle(receipt.Continue)
		require.Empty(t, next.s.Effect.Alias, "the alias is good for one effect")
		require.Equal(t, policy.KindContinuation, next.s.Effect.Kind)
	})

	t.Run("without an address nothing else is said", func(t *testing.T) {
		w := start(t, created)
		w.begin()
		w.take(w.succeeded())
		w.is(policy.Dispatched, policy.OweObserve)
		w.refused(kernel.Reject, policy.CodeUnbound, policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Disposition: policy.DispositionWait})
		for _, turn := range []string{policy.TurnSettled, policy.TurnFailed, policy.TurnMoved} {
			e := w.turn(w.receipt(receipt.Continue))
			e.Turn = turn
			require.Equal(t, "turn_open", w.take(e).Code)
			require.Equal(t, []any{policy.KindBootstrap, policy.OweObserve}, []any{w.s.Effect.Kind, w.owes().Kind})
		}
		open := w.addressed(w.turn(nil))
		open.Turn = policy.TurnOpen
		w.take(open)
		w.refused(kernel.NoOp, policy.CodeDuplicate, policy.ConversationBound{
			EffectID: w.s.Effect.ID, ConversationID: otherSite().ConversationID, ConversationURL: otherURL,
		})
		w.refused(kernel.Reject, policy.CodeConversationMismatch, policy.ConversationBound{
			EffectID: w.s.Effect.ID, ConversationID: "8810a2f4", ConversationURL: otherURL + "8",
		})
	})

	t.Run("any other prompt would create a second one: the state is invalid", func(t *testing.T) {
		w := start(t, created)
		w.s.Effect.Kind = policy.KindResume
		require.Equal(t, "finish", w.owes().Kind)
		require.Equal(t, policy.CodeInvalidState, policy.Policy{}.Ending(w.s).Failure)
	})
}

func TestANewConversationIsBoundOnceWhateverElseHappens(t *testing.T) {
	t.Run("a run that is stopped notes where its message stands", func(t *testing.T) {
		w := start(t, created)
		w.begin()
		w.take(policy.StopRequested{Operator: "ann", Reason: "enough"})
		w.take(w.succeededAt(otherURL))
		w.is(policy.Stopped, "finish")
		require.Equal(t, otherURL, w.s.Site.ConversationURL)
	})

	t.Run("a run that moves elsewhere observes its turn there first", func(t *testing.T) {
		w := start(t, created)
		w.begin()
		w.take(policy.ConversationRebound{ConversationURL: otherURL + "0", Operator: "ann", Reason: "moved"})
		w.take(w.succeededAt(otherURL))
		w.is(policy.Dispatched, policy.OweObserve)
		require.Equal(t, policy.SuccessionRebind, w.s.Succession.Kind)
		require.Equal(t, otherURL, w.s.Site.ConversationURL)
	})

	t.Run("a rebind before the first send enrolls the conversation that there is", func(t *testing.T) {
		w := start(t, created)
		w.begin()
		w.take(policy.ProviderUserActionRequired{Attempted: w.tried(), Class: "login"})
		w.rebind()
		w.succeed()
		next := w.successor()
		next.is(policy.WaitingForUser, "message")
		require.Equal(t, []any{policy.KindEnrollment, ""}, []any{next.s.Effect.Kind, next.s.Effect.Alias})
	})

	t.Run("another run that has the conversation is not disturbed", func(t *testing.T) {
		w := start(t, created)
		w.begin()
		w.take(w.succeededAt(otherURL))
		s := w.succeed()
		s.Owned, s.Successor = true, "run:chatgpt:other"
		w.take(s)
		require.Equal(t, policy.BlockedOwned, w.s.Blocker.Class)
		require.Equal(t, kernel.Timer, w.owes().Class, "its end is looked for")
		w.succeed()
		next := w.successor()
		next.is(policy.Dispatched, policy.OweObserve)
	})

	t.Run("an address that no run can have waits for a person or another profile", func(t *testing.T) {
		w := start(t, created)
		w.begin()
		w.take(w.succeededAt(otherURL))
		s := w.succeed()
		s.Refused = "it is no conversation"
		require.Equal(t, policy.CodeSuccessorRefused, w.take(s).Code)
		require.Equal(t, policy.BlockedDrift, w.s.Blocker.Class)
		require.NotEqual(t, policy.OweSucceed, w.owes().Kind)
	})
}

// A later start of the same key goes on in the conversation that the earlier one created after all.
func TestABootstrapThatAnEarlierStartLeftUnknown(t *testing.T) {
	w := start(t, created)
	w.begin()
	w.take(policy.ProviderDispatchOutcomeUnknown{Attempted: w.tried(), Code: "commit_not_seen"})
	w.take(policy.StopRequested{Operator: "ann", Reason: "enough"})
	for w.s.Status != policy.Stopped {
		if w.owes().Class == kernel.Timer {
			w.due()
		}
		w.take(w.look(false, true))
	}
	past := w.s

	n := later(t, past, created)
	n.is(policy.Dispatching, policy.OweReconcile)
	first := n.s.Effect.ID
	n.take(n.look(true, true))
	require.Equal(t, []any{first, policy.EffectUnknown}, []any{n.s.Effect.ID, n.s.Effect.State}, "its address has to be known")
	for n.owes().Class == kernel.Timer {
		n.due()
	}
	look := n.look(true, true)
	look.ConversationID, look.ConversationURL = otherSite().ConversationID, otherURL
	n.take(look)
	n.succeed()
	next := n.successor()
	next.is(policy.Dispatching, policy.OweSend)
	require.Equal(t, []any{policy.KindEnrollment, ""}, []any{next.s.Effect.Kind, next.s.Effect.Alias})
	require.NotEqual(t, first, next.s.Effect.ID)

	superseded := start(t, created)
	superseded.begin()
	superseded.take(policy.ProviderDispatchOutcomeUnknown{Attempted: superseded.tried(), Code: "commit_not_seen"})
	old := superseded.s.Effect.ID
	superseded.wait(time.Second)
	superseded.take(supersede(superseded))
	require.Equal(t, []any{policy.KindBootstrap, "new:orders", "orders"},
		[]any{superseded.s.Effect.Kind, superseded.s.Effect.Alias, superseded.s.NewKey(old)}, "looked for where it may have created one")
}
