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

const otherURL = "https://chatgpt.com/c/7710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e"

func otherSite() goal.SiteFacts {
	s := site()
	s.ConversationID, s.ConversationURL = "7710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e", otherURL
	return s
}

func (w *walk) rebind() *walk {
	w.Helper()
	w.take(policy.ConversationRebound{ConversationURL: otherURL, Operator: "ann", Reason: "moved"})
	return w
}

func (w *walk) handoff(scope, url string) *walk {
	w.Helper()
	w.claimed()
	w.take(policy.SemanticDispositionSubmitted{
		EffectID: w.s.Effect.ID, Disposition: policy.DispositionHandoff, Scope: scope, ConversationURL: url, Objective: "Ship it.",
		Checkpoint: "built", Reason: "the next part",
	})
	return w
}

// succeed begins the succession that is owed.
func (w *walk) succeed() policy.SuccessorBound {
	w.Helper()
	for w.owes().Class == kernel.Timer {
		w.due()
	}
	require.Equal(w, policy.OweSucceed, w.owes().Kind)
	require.Equal(w, kernel.Effect, w.owes().Class)
	key := w.owes().Key
	w.take(policy.ProviderDispatchStarted{EffectID: w.s.Succession.ID, Generation: 1})
	require.Equal(w, key, w.owes().Key)
	return policy.SuccessorBound{Succession: w.s.Succession.ID}
}

// successor is the run that took over, with a check that its state is legal.
func (w *walk) successor() *walk {
	w.Helper()
	next := &walk{tester: w.tester, h: newHistory(), s: carried(w, w.s.Successor(otherSite(), nil, w.at)), at: w.at}
	require.False(w, next.s.Terminal())
	require.NotEqual(w, "finish", next.owes().Kind, "%+v", next.s)
	require.Equal(w, []any{w.s.TaskID, w.s.RelayScopeID}, []any{next.s.TaskID, next.s.RelayScopeID})
	require.NotEqual(w, w.s.RunID, next.s.RunID)
	require.Equal(w, otherURL, next.s.Site.ConversationURL)
	require.Equal(w, "run:chatgpt:7710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e", next.s.WorkflowID)
	require.Nil(w, next.s.Succession)
	require.Equal(w, w.s.ClaimGeneration+1, next.s.ClaimGeneration)
	require.Equal(w, policy.HandedOff, next.s.Predecessors[0].Status)
	return next
}

func TestHandoffToANewScope(t *testing.T) {
	w := start(t).round().handoff("goal:next", "")
	old := w.s
	w.is(policy.PendingRelease, policy.OweRelease)
	w.refused(kernel.NoOp, policy.CodeDuplicate, policy.SemanticDispositionSubmitted{
		EffectID: old.Effect.ID, Disposition: policy.DispositionHandoff, Scope: "goal:next",
	})
	w.take(release(w))
	e := w.succeed()
	w.refused(kernel.NeedsEvidence, policy.CodeSuccessorMissing, e)
	e.Successor = workflowID
	require.Equal(t, "scope_handed_off", w.take(e).Code)
	w.is(policy.Dispatching, policy.OweSend)
	require.Equal(t, "goal:next", w.s.Scope)
	require.Equal(t, "goal:next", w.s.Goal.Scope)
	require.Equal(t, "Ship it.", w.s.Goal.Objective)
	require.Equal(t, policy.KindEnrollment, w.s.Effect.Kind)
	require.NotEqual(t, old.AuthorityID, w.s.AuthorityID, "the successor's round has its own authority")
	require.Equal(t, []any{old.RelayScopeID, old.TaskID}, []any{w.s.RelayScopeID, w.s.TaskID})
	require.Equal(t, old.ClaimGeneration+1, w.s.ClaimGeneration)
	require.Zero(t, w.s.Budgets.Rounds)
	require.Equal(t, []policy.Node{{
		WorkflowID: workflowID, Scope: old.Scope, Status: policy.HandedOff, Completion: old.Completion.ID, Rounds: 1, At: w.s.Predecessors[0].At,
	}}, w.s.Predecessors)
	w.refused(kernel.Reject, policy.CodeNoSuccession, e)

	t.Run("the scope that was left takes no start any more", func(t *testing.T) {
		past := stopped(w)
		n := later(t, past)
		n.is(policy.Failed, "finish")
		require.Contains(t, n.s.Failure.Problems[0], policy.CodeLineageHandedOff)
		later(t, past, scope("goal:next")).is(policy.Dispatching, policy.OweSend)
		later(t, past, scope("goal:third")).is(policy.Dispatching, policy.OweSend)
	})
}

func TestAScopeThatIsCompleteStaysSoBehindALaterOne(t *testing.T) {
	second := later(t, complete(t), scope("goal:other"))
	second.is(policy.Dispatching, policy.OweSend)
	past := stopped(second)
	third := later(t, past)
	third.is(policy.Failed, "finish")
	require.Contains(t, third.s.Failure.Problems[0], policy.CodeLineageComplete)
}

func TestHandoffToAnotherConversation(t *testing.T) {
	w := start(t).round().handoff("goal:next", otherURL)
	w.take(w.pausedEvent())
	old := w.s
	w.take(release(w))
	e := w.succeed()
	w.refused(kernel.Reject, policy.CodeSuccessionBegun, policy.StopRequested{Operator: "ann", Reason: "too late"})
	next := w.successor()
	require.Equal(t, "goal:next", next.s.Scope)
	require.NotEqual(t, old.AuthorityID, next.s.AuthorityID)
	next.is(policy.Dispatching, "message") // the pause moved along
	next.take(next.resume(""))
	next.applied()
	e.Successor = next.s.WorkflowID
	w.take(e)
	w.is(policy.HandedOff, "finish")
	require.Equal(t, next.s.WorkflowID, w.s.Succession.Successor)
	require.Equal(t, kernel.Ending{}, policy.Policy{}.Ending(w.s))
	require.Equal(t, 2, w.s.Turns, "the predecessor sent nothing more")
	n := later(t, w.s)
	require.Contains(t, n.s.Failure.Problems[0], policy.CodeLineageHandedOff)
}

// pausedEvent is a pause; it does not keep a succession from being bound, because nothing is sent by it.
func (w *walk) pausedEvent() policy.Event {
	return policy.PauseRequested{Operator: "ann", Reason: "wait"}
}

func TestHandoffIsRefused(t *testing.T) {
	given := func(e policy.SemanticDispositionSubmitted, options ...option) (*walk, policy.Event) {
		w := start(t, options...).round().claimed()
		e.EffectID, e.Disposition = w.s.Effect.ID, policy.DispositionHandoff
		return w, e
	}
	w, e := given(policy.SemanticDispositionSubmitted{})
	w.refused(kernel.NeedsEvidence, policy.CodeSuccessorMissing, e)
	w, e = given(policy.SemanticDispositionSubmitted{Scope: "goal:6710a2f4"})
	w.refused(kernel.Reject, policy.CodeScopeUsed, e)
	w, e = given(policy.SemanticDispositionSubmitted{Scope: "goal:next"}, rounds(1))
	w.refused(kernel.Reject, string(policy.BlockedRounds), e)
	w, e = given(policy.SemanticDispositionSubmitted{Scope: "goal:next"})
	w.rebind()
	w.refused(kernel.Reject, policy.CodeSuccessionPending, e)
}

// A rebind fences what is not sent, and observes what is.
func TestRebind(t *testing.T) {
	t.Run("an unsent prompt is never sent here", func(t *testing.T) {
		w := start(t).round()
		old := w.s
		w.rebind()
		w.refused(kernel.Reject, policy.CodeSuccessionPending, beginEvent(w))
		e := w.succeed()
		next := w.successor()
		next.is(policy.Dispatching, policy.OweSend)
		require.Equal(t, policy.KindEnrollment, next.s.Effect.Kind)
		require.NotEqual(t, old.Effect.ID, next.s.Effect.ID)
		require.Equal(t, []any{old.AuthorityID, old.Budgets, old.Scope}, []any{next.s.AuthorityID, next.s.Budgets, next.s.Scope}, "the same round")
		e.Successor = next.s.WorkflowID
		w.take(e)
		w.is(policy.HandedOff, "finish")
	})
	t.Run("a send under way and its turn are observed to their end first", func(t *testing.T) {
		w := start(t)
		w.begin()
		w.rebind()
		w.is(policy.Dispatching, policy.OweSend)
		w.take(w.succeeded())
		w.is(policy.Dispatched, policy.OweObserve)
		w.settle(receipt.Continue)
		require.Equal(t, 1, w.s.Budgets.Rounds)
		w.succeed()
		w.successor().is(policy.Dispatching, policy.OweSend)
	})
	t.Run("an unknown outcome is reconciled first, up to its blocker", func(t *testing.T) {
		w := start(t).unknown().rebind()
		for w.s.Blocker == nil {
			w.due()
			w.take(w.look(false, true))
		}
		w.blockedBy(policy.BlockedUnknown)
		require.NotEqual(t, policy.OweSucceed, w.owes().Kind)
		e := w.word(policy.VerdictNotApplied)
		e.WithoutObservation = true
		w.take(e)
		w.succeed()
	})
	t.Run("a DONE under validation is validated first", func(t *testing.T) {
		w := proposed(start(t)).rebind()
		w.is(policy.PendingRelease, policy.OweValidate)
		w.take(w.validated(policy.CheckPass, policy.CheckPass))
		w.is(policy.GoalComplete, "finish")
	})
	t.Run("a missing conversation is left by it", func(t *testing.T) {
		w := start(t).claimed()
		e := w.turn(nil)
		e.Turn = policy.TurnMissing
		w.take(e)
		w.blockedBy(policy.BlockedMissing)
		w.rebind().succeed()
		w.successor().is(policy.Dispatching, policy.OweSend)
	})
	t.Run("it passes no wait for a person and no fuse", func(t *testing.T) {
		w := asked(start(t))
		w.rebind().succeed()
		next := w.successor()
		next.is(policy.WaitingForUser, "message")
		next.take(next.resume(next.s.Completion.ID))
		next.is(policy.Dispatching, policy.OweSend)

		w = start(t).fused()
		w.rebind().succeed()
		w.successor().blockedBy(policy.BlockedFailures)
	})
	t.Run("a stop before it has begun beats it", func(t *testing.T) {
		w := start(t).claimed().rebind()
		stopped(w)
	})
	t.Run("the same rebind twice is one, and another one is refused", func(t *testing.T) {
		w := start(t).claimed().rebind()
		w.refused(kernel.NoOp, policy.CodeDuplicate, policy.ConversationRebound{ConversationURL: otherURL, Operator: "ann", Reason: "moved"})
		w.refused(kernel.Reject, policy.CodeSuccessionPending, policy.ConversationRebound{
			ConversationURL: "https://chatgpt.com/c/8", Operator: "ann", Reason: "moved",
		})
		w.refused(kernel.NoOp, policy.CodeDuplicate, policy.ConversationRebound{ConversationURL: site().ConversationURL, Operator: "ann", Reason: "moved"})
		w = start(t).claimed()
		w.refused(kernel.NeedsEvidence, policy.CodeOperatorMissing, policy.ConversationRebound{ConversationURL: otherURL})
		w.refused(kernel.NeedsEvidence, policy.CodeReasonMissing, policy.ConversationRebound{ConversationURL: otherURL, Operator: "ann"})
		w.refused(kernel.NeedsEvidence, policy.CodeSuccessorMissing, policy.ConversationRebound{Operator: "ann"})
	})
	t.Run("an address that cannot be leaves the run as it was", func(t *testing.T) {
		w := start(t).rebind()
		e := w.succeed()
		e.Refused = "another site"
		require.Equal(t, policy.CodeSuccessorRefused, w.take(e).Code)
		w.is(policy.Dispatching, policy.OweSend)
		require.Nil(t, w.s.Succession)
		w.applied()
	})
}

func TestConversationOwned(t *testing.T) {
	w := start(t).rebind()
	e := w.succeed()
	e.Successor, e.Owned = "run:chatgpt:other", true
	w.take(e)
	w.blockedBy(policy.BlockedOwned)
	require.Equal(t, "conversation_owned", w.s.Attention().Class)
	require.Equal(t, 5*time.Minute, w.due())
	require.Equal(t, 0, w.s.Dispatches)
	for _, want := range []time.Duration{10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour} {
		e := w.succeed()
		e.Successor, e.Owned = "run:chatgpt:other", true
		w.take(e)
		w.blockedBy(policy.BlockedOwned)
		require.Equal(t, want, w.due())
	}
	e = w.succeed()
	next := w.successor()
	next.is(policy.Dispatching, policy.OweSend)
	e.Successor = next.s.WorkflowID
	w.take(e)
	w.is(policy.HandedOff, "finish")

	stopped(func() *walk {
		w := start(t).rebind()
		e := w.succeed()
		e.Owned = true
		w.take(e)
		return w
	}())

	w = asked(start(t)).rebind()
	e = w.succeed()
	e.Owned = true
	require.Equal(t, "conversation_owned", w.take(e).Code)
	w.is(policy.WaitingForUser, "message")
}

func TestConversationBound(t *testing.T) {
	w := start(t, created)
	w.begin()
	w.take(policy.ProviderDispatchSucceeded{
		Attempted: w.tried(), At: w.at, UserMessageID: "m1", ConversationID: otherSite().ConversationID, ConversationURL: otherURL,
	})
	bound := policy.ConversationBound{EffectID: w.s.Effect.ID, ConversationID: otherSite().ConversationID, ConversationURL: otherURL}
	w.refused(kernel.NoOp, policy.CodeDuplicate, bound)
	old := w.s
	w.succeed()
	next := w.successor()
	next.is(policy.Dispatched, policy.OweObserve)
	require.Equal(t, []any{old.Effect, old.AuthorityID, old.Budgets}, []any{next.s.Effect, next.s.AuthorityID, next.s.Budgets})
	next.settle(receipt.Continue)

	w = start(t)
	w.refused(kernel.Reject, policy.CodeNotApplied, policy.ConversationBound{EffectID: w.s.Effect.ID})
	w.applied()
	w.refused(kernel.NeedsEvidence, policy.CodeSuccessorMissing, policy.ConversationBound{EffectID: w.s.Effect.ID})
	bound.EffectID = w.s.Effect.ID
	w.refused(kernel.Reject, policy.CodeConversationMismatch, bound)
	bound.EffectID = "fx_other"
	w.refused(kernel.Reject, policy.CodeEffectMismatch, bound)
	bound.EffectID, bound.ConversationID = w.s.Effect.ID, w.s.Site.ConversationID
	w.refused(kernel.NoOp, policy.CodeDuplicate, bound)
}

// Another process that takes the observation over is a new claim generation of the same round.
func TestClaimMigration(t *testing.T) {
	open := func(w *walk, by policy.Worker) policy.EffectObserved {
		e := w.turn(nil)
		e.Turn, e.Worker = policy.TurnOpen, by
		return e
	}
	first, second := policy.Worker{Release: "r1", Incarnation: 3}, policy.Worker{Release: "r1", Incarnation: 4}
	w := start(t).claimed()
	w.take(open(w, first))
	w.take(open(w, first))
	require.Equal(t, 1, w.s.ClaimGeneration)
	old := w.s
	w.take(open(w, second))
	require.Equal(t, 2, w.s.ClaimGeneration)
	require.Equal(t, []any{old.AuthorityID, old.Budgets, old.Effect}, []any{w.s.AuthorityID, w.s.Budgets, w.s.Effect})
	w.take(open(w, second))
	require.Equal(t, 2, w.s.ClaimGeneration)
}

// A superseded effect is watched for, and its late marker is told.
func TestLateMarkerOfASupersededEffect(t *testing.T) {
	w := start(t).unknown()
	lost := w.s.Effect.ID
	w.take(supersede(w))
	w.applied()
	require.Equal(t, []string{lost}, w.s.Watched())
	e := w.turn(w.receipt(receipt.Continue))
	e.Late = []string{lost}
	w.take(e)
	require.Empty(t, w.s.Watched())
	require.Equal(t, []string{lost}, w.s.Explain().Duplicates)
	require.Equal(t, policy.EffectApplied, w.s.Retired[0].State)
}

// A start with a new scope is a lineage of its own: rounds begin anew, what the browser failed at does not.
func TestANewScopeHasItsOwnRounds(t *testing.T) {
	w := start(t, rounds(10)).round().round()
	w.begin()
	w.take(w.failed("composer_mismatch"))
	past := stopped(w)
	same, fresh := later(t, past, rounds(10)), later(t, past, scope("goal:other"))
	require.Equal(t, 2, same.s.Budgets.Rounds)
	require.Zero(t, fresh.s.Budgets.Rounds)
	require.Equal(t, 50, fresh.s.Budgets.MaxRounds, "only the maxima of the same scope can but shrink")
	require.Equal(t, past.Budgets.ProviderFailures, fresh.s.Budgets.ProviderFailures)
	require.Equal(t, []string{past.TaskID, past.RelayScopeID}, []string{fresh.s.TaskID, fresh.s.RelayScopeID})
}
