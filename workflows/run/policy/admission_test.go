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

func rounds(n int) option {
	return func(g *goal.Goal, _ *goal.SiteFacts) { g.Continuation.MaxRounds = &n }
}

func repeats(n int) option {
	return func(g *goal.Goal, _ *goal.SiteFacts) { g.Continuation.MaxRepeatedState = &n }
}

func scope(s string) option { return func(g *goal.Goal, _ *goal.SiteFacts) { g.Scope = s } }

func replan(g *goal.Goal, _ *goal.SiteFacts) {
	g.Replan = &goal.Replan{Operator: "ann", Reason: "new plan", AddRounds: 20}
}

func TestAdmission(t *testing.T) {
	t.Run("the zero state waits for its admission and owes it", func(t *testing.T) {
		w := zero(t)
		w.is("", policy.OweAdmit)
		require.Equal(t, policy.Waiting, w.s.Shown())
	})
	t.Run("a start is admitted: identities, budgets, authority, enrollment reserved, nothing sent", func(t *testing.T) {
		w := start(t)
		w.is(policy.Dispatching, policy.OweSend)
		require.Equal(t, policy.TaskID(workflowID), w.s.TaskID)
		require.Equal(t, "goal:6710a2f4", w.s.Scope)
		require.Equal(t, policy.Budgets{MaxRounds: 50, MaxRepeatedState: 4, ProviderFailures: policy.Failures{Max: 3}}, w.s.Budgets)
		require.Regexp(t, `^au_[0-9a-f]{16}$`, w.s.AuthorityID)
		require.Regexp(t, `^rs_[0-9a-f]{16}$`, w.s.RelayScopeID)
		require.Equal(t, 1, w.s.ClaimGeneration)
		require.Equal(t, policy.KindEnrollment, w.s.Effect.Kind)
		require.Equal(t, policy.EffectReserved, w.s.Effect.State)
		require.False(t, w.s.Effect.Fenced)
		require.Regexp(t, `^fx_[0-9a-f]{16}$`, w.s.Effect.ID)
		require.Len(t, w.s.Effect.PromptDigest, 64)
		require.Zero(t, w.s.Dispatches)
	})
	t.Run("the same start again is a duplicate", func(t *testing.T) {
		w := start(t)
		w.refused(kernel.NoOp, policy.CodeDuplicate, policy.OccurrenceRequested{Start: startOf(firstRun, nil)})
	})
	t.Run("a refused start fails with every problem and keeps the lineage it saw", func(t *testing.T) {
		past := start(t).round().s
		w := zero(t)
		s := startOf(secondRun, &past)
		s.Problems, s.Goal, s.Site = []string{"objective: must not be empty", "target.site: unknown"}, nil, nil
		require.Equal(t, policy.FailureStartRefused, w.take(policy.OccurrenceRequested{Start: s}).Code)
		w.is(policy.Failed, "finish")
		ending := policy.Policy{}.Ending(w.s)
		require.Equal(t, policy.FailureStartRefused, ending.Failure)
		require.Contains(t, ending.Message, "objective: must not be empty")
		require.Contains(t, ending.Message, "target.site: unknown")
		require.Equal(t, past.Completion.ID, w.s.Failure.Lineage.Completion.ID)
	})
	t.Run("the problems of a refused start are bounded", func(t *testing.T) {
		w := zero(t)
		s := startOf(firstRun, nil)
		s.Problems = make([]string, 500)
		w.take(policy.OccurrenceRequested{Start: s})
		require.Len(t, w.s.Failure.Problems, 101)
		require.Equal(t, "and 400 more", w.s.Failure.Problems[100])
	})
	t.Run("an unreadable lineage refuses, unless an operator replans", func(t *testing.T) {
		w := zero(t)
		s := startOf(secondRun, nil)
		s.LineageError = "the history is gone"
		w.take(policy.OccurrenceRequested{Start: s})
		require.Contains(t, w.s.Failure.Problems[0], policy.CodeLineageUnreadable)

		w = zero(t)
		s = startOf(secondRun, nil, replan)
		s.LineageError = "the history is gone"
		w.take(policy.OccurrenceRequested{Start: s})
		w.is(policy.Dispatching, policy.OweSend)
	})
	t.Run("before its admission a run takes only what ends, holds or admits it", func(t *testing.T) {
		for _, e := range everyEvent(zero(t)) {
			w := zero(t)
			switch e.(type) {
			case policy.StopRequested, policy.CancelRequested, policy.GoalCancelled:
				w.take(e)
				w.is(policy.Stopped, "finish")
			case policy.PauseRequested:
				w.take(e)
				w.is("", policy.OweAdmit)
			case policy.UserResumeRequested:
				w.refused(kernel.NoOp, policy.CodeNothingToResume, e)
			case policy.NotSubmittable:
				w.refused(kernel.Reject, policy.CodeNotSubmittable, e)
			default:
				w.refused(kernel.Reject, policy.CodeNotAdmitted, e)
			}
		}
	})
	t.Run("a run that was paused before its admission is admitted and sends nothing until resume", func(t *testing.T) {
		w := zero(t)
		w.take(policy.PauseRequested{Operator: "ann", Reason: "not yet"})
		w.take(policy.OccurrenceRequested{Start: startOf(firstRun, nil)})
		w.is(policy.Dispatching, "message")
		w.refused(kernel.Reject, policy.CodePaused, policy.ProviderDispatchStarted{EffectID: w.s.Effect.ID, Generation: 1})
		w.take(policy.UserResumeRequested{Operator: "ann", Reason: "now"})
		w.is(policy.Dispatching, policy.OweSend)
	})
}

// The states that a lineage can leave behind.
var lineages = map[string]func(t *testing.T) policy.State{
	"nothing yet": func(t *testing.T) policy.State { return zero(t).s },
	"stopped before its admission": func(t *testing.T) policy.State {
		w := zero(t)
		w.take(policy.StopRequested{Operator: "ann", Reason: "no"})
		return w.s
	},
	"stopped in a turn":    func(t *testing.T) policy.State { return stopped(start(t).claimed()) },
	"terminated in a turn": func(t *testing.T) policy.State { return start(t).round().claimed().s },
	"cancelled": func(t *testing.T) policy.State {
		w := start(t).round()
		w.take(policy.CancelRequested{})
		return w.s
	},
	"refused over a complete goal": func(t *testing.T) policy.State { return later(t, complete(t)).s },
	"goal_complete":                complete,
	"waiting":                      func(t *testing.T) policy.State { return waiting(start(t)).s },
	"stopped while waiting":        func(t *testing.T) policy.State { return stopped(waiting(start(t))) },
	"waiting_for_user":             func(t *testing.T) policy.State { return asked(start(t)).s },
	"stopped while waiting for a person": func(t *testing.T) policy.State {
		return stopped(asked(start(t)))
	},
	"waiting for a login":  func(t *testing.T) policy.State { return login(start(t)).s },
	"waiting for approval": func(t *testing.T) policy.State { return proposed(start(t, byApproval)).s },
	"consecutive_failures": func(t *testing.T) policy.State { return start(t).fused().s },
	"stopped at the fuse":  func(t *testing.T) policy.State { return stopped(start(t).fused()) },
	"round_budget_exhausted": func(t *testing.T) policy.State {
		return start(t, rounds(1)).round().round().s
	},
	"unknown":                  func(t *testing.T) policy.State { return start(t).unknown().s },
	"terminated during a send": func(t *testing.T) policy.State { w := start(t); w.begin(); return w.s },
	"stopped while unknown and waiting": func(t *testing.T) policy.State {
		w := start(t).unknown()
		w.take(policy.StopRequested{Operator: "ann", Reason: "enough"})
		for !w.s.Terminal() {
			w.due()
			w.take(w.look(false, true))
		}
		return w.s
	},
}

func stopped(w *walk) policy.State {
	w.take(policy.StopRequested{Operator: "ann", Reason: "enough"})
	w.is(policy.Stopped, "finish")
	return w.s
}

func complete(t *testing.T) policy.State {
	w := proposed(start(t))
	w.take(w.validated(policy.CheckPass, policy.CheckPass))
	w.is(policy.GoalComplete, "finish")
	return w.s
}

func proposed(w *walk) *walk {
	w.applied()
	w.settle(receipt.Done)
	return w
}

func waiting(w *walk) *walk {
	w.claimed()
	w.take(policy.SemanticDispositionSubmitted{
		EffectID: w.s.Effect.ID, Disposition: policy.DispositionWait, Checkpoint: "built", Reason: "release day",
	})
	w.is(policy.Waiting, "message")
	return w
}

func asked(w *walk) *walk {
	w.applied()
	w.settle(receipt.NeedsUser)
	w.is(policy.WaitingForUser, "message")
	return w
}

func login(w *walk) *walk {
	w.begin()
	w.take(policy.ProviderUserActionRequired{Attempted: w.tried(), Class: "login", Detail: "please log in"})
	w.is(policy.WaitingForUser, "message")
	return w
}

func byApproval(g *goal.Goal, _ *goal.SiteFacts) {
	g.Completion.Checks, g.Completion.OperatorApproval = nil, true
}

func TestFreshOccurrence(t *testing.T) {
	const (
		legal   = ""
		unknown = "unknown"
		done    = policy.CodeLineageComplete
		wait    = policy.CodeLineageWaiting
		person  = policy.CodeLineageWaitingForUser
		fuse    = policy.CodeLineageFailures
		budget  = policy.CodeLineageRounds
	)
	for left, want := range map[string]struct{ same, fresh, replanned string }{
		"nothing yet":                        {legal, legal, legal},
		"stopped before its admission":       {legal, legal, legal},
		"stopped in a turn":                  {legal, legal, legal},
		"terminated in a turn":               {legal, legal, legal},
		"cancelled":                          {legal, legal, legal},
		"refused over a complete goal":       {done, legal, done},
		"goal_complete":                      {done, legal, done},
		"waiting":                            {wait, legal, wait},
		"stopped while waiting":              {wait, legal, wait},
		"waiting_for_user":                   {person, person, legal},
		"stopped while waiting for a person": {person, person, legal},
		"waiting for a login":                {person, person, legal},
		"waiting for approval":               {person, person, legal},
		"consecutive_failures":               {fuse, fuse, legal},
		"stopped at the fuse":                {fuse, fuse, legal},
		"round_budget_exhausted":             {budget, budget, legal},
		"unknown":                            {unknown, unknown, unknown},
		"terminated during a send":           {unknown, unknown, unknown},
		"stopped while unknown and waiting":  {unknown, unknown, unknown},
	} {
		t.Run(left, func(t *testing.T) {
			past := lineages[left](t)
			judge := func(want string, options ...option) {
				t.Helper()
				if past.Budgets.MaxRounds > 0 && past.Budgets.MaxRounds < 50 {
					options = append([]option{rounds(past.Budgets.MaxRounds)}, options...)
				}
				w := later(t, past, options...)
				switch want {
				case legal:
					w.is(policy.Dispatching, policy.OweSend)
					require.Equal(t, policy.KindEnrollment, w.s.Effect.Kind)
				case unknown:
					w.is(policy.Dispatching, policy.OweReconcile)
					require.Equal(t, past.Effect.ID, w.s.Effect.ID)
					require.True(t, w.s.Effect.Inherited)
				default:
					w.is(policy.Failed, "finish")
					require.Contains(t, w.s.Failure.Problems[0], want)
					require.NotEmpty(t, w.s.Failure.Lineage.Status)
				}
			}
			judge(want.same)
			judge(want.fresh, scope("goal:other"))
			judge(want.replanned, replan)
		})
	}
	require.Len(t, lineages, 19, "every lineage is judged")
}

func TestLineageCarriesWhatItUsed(t *testing.T) {
	t.Run("budgets, identities, completion and occurrences are carried; authority and effects are new", func(t *testing.T) {
		w := start(t).round().round()
		w.begin()
		w.take(w.failed("composer_mismatch"))
		past := stopped(w)
		n := later(t, past)
		n.is(policy.Dispatching, policy.OweSend)
		require.Equal(t, past.Budgets, n.s.Budgets)
		require.Equal(t, 2, n.s.Budgets.Rounds)
		require.Equal(t, 1, n.s.Budgets.ProviderFailures.Streak)
		require.Equal(t, []any{past.TaskID, past.RelayScopeID}, []any{n.s.TaskID, n.s.RelayScopeID})
		require.NotEqual(t, past.AuthorityID, n.s.AuthorityID)
		require.NotEqual(t, past.Effect.ID, n.s.Effect.ID)
		require.Equal(t, past.Completion, n.s.Completion)
	})
	t.Run("a reset to before the admission never repeats an effect id of the same start", func(t *testing.T) {
		past := start(t).round().s
		n := zero(t)
		n.take(policy.OccurrenceRequested{Start: startOf(firstRun, &past)})
		require.Equal(t, past.RunID, n.s.RunID)
		for _, turn := range past.Chain() {
			require.NotEqual(t, turn.Effect, n.s.Effect.ID)
		}
	})
	t.Run("a maximum can only shrink, and every grown one is named", func(t *testing.T) {
		past := stopped(start(t, rounds(10), repeats(3)).round())
		w := later(t, past)
		w.is(policy.Failed, "finish")
		require.Len(t, w.s.Failure.Problems, 2)
		require.Contains(t, w.s.Failure.Problems[0], "maximum_grown: continuation.max_rounds is 50; the lineage began with 10")
		require.Contains(t, w.s.Failure.Problems[1], "continuation.max_repeated_state")

		w = later(t, past, rounds(5), repeats(2))
		require.Equal(t, 5, w.s.Budgets.MaxRounds)
		require.Equal(t, 2, w.s.Budgets.MaxRepeatedState)
	})
	t.Run("replan alone adds rounds and opens a new failure epoch; the history stays", func(t *testing.T) {
		past := start(t, rounds(1)).round().fused().s
		w := later(t, past, rounds(1), replan)
		w.is(policy.Dispatching, policy.OweSend)
		require.Equal(t, 21, w.s.Budgets.MaxRounds)
		require.Equal(t, 1, w.s.Budgets.Rounds)
		require.Equal(t, policy.Failures{Epoch: 1, Streak: 0, Total: 3, Max: 3}, w.s.Budgets.ProviderFailures)
	})
	t.Run("a refused start that could not see the lineage tells nothing about it", func(t *testing.T) {
		w := zero(t)
		s := startOf(secondRun, nil)
		s.LineageError = "the list of runs cannot be read"
		w.take(policy.OccurrenceRequested{Start: s})
		require.False(t, w.s.Tells(), "the next start has to look behind it")
		require.False(t, zero(t).s.Tells())
		stopping := zero(t)
		stopping.take(stopEvent(stopping))
		require.False(t, stopping.s.Tells())
		past := complete(t)
		require.True(t, past.Tells())
		refused := later(t, past).s
		require.True(t, refused.Tells())
	})
	t.Run("two refused starts in a row still see the lineage before them", func(t *testing.T) {
		first := later(t, complete(t))
		second := later(t, first.s)
		second.is(policy.Failed, "finish")
		require.Contains(t, second.s.Failure.Problems[0], policy.CodeLineageComplete)
		require.Equal(t, policy.GoalComplete, second.s.Failure.Lineage.Status)
		require.Nil(t, second.s.Failure.Lineage.Failure, "a refusal does not nest")
	})
}

func TestInheritedUnknown(t *testing.T) {
	inherited := func(t *testing.T) *walk { return later(t, start(t).unknown().s) }
	t.Run("the first obligation is to reconcile, and its marker begins an enrollment of this start", func(t *testing.T) {
		w := inherited(t)
		old := w.s.Effect.ID
		w.take(w.look(true, true))
		w.is(policy.Dispatching, policy.OweSend)
		require.Equal(t, policy.KindEnrollment, w.s.Effect.Kind)
		require.NotEqual(t, old, w.s.Effect.ID)
		require.Zero(t, w.s.Dispatches)
		require.Zero(t, w.s.Turns)
	})
	t.Run("an operator's word ends it the same way, for every word", func(t *testing.T) {
		for _, e := range []func(w *walk) policy.Event{
			func(w *walk) policy.Event { return w.word(policy.VerdictApplied) },
			func(w *walk) policy.Event {
				e := w.word(policy.VerdictNotApplied)
				e.WithoutObservation = true
				return e
			},
			func(w *walk) policy.Event {
				return policy.SupersedeRequested{EffectID: w.s.Effect.ID, Operator: "ann", Reason: "lost", AcceptDuplicate: true}
			},
		} {
			w := inherited(t)
			w.take(e(w))
			w.is(policy.Dispatching, policy.OweSend)
			require.Equal(t, policy.KindEnrollment, w.s.Effect.Kind)
			require.False(t, w.s.Effect.Inherited)
		}
	})
	t.Run("it is never sent, blocks at its bound, and is handed on by a stop", func(t *testing.T) {
		w := inherited(t)
		w.refused(kernel.Reject, policy.CodeIllegal, policy.ProviderDispatchStarted{EffectID: w.s.Effect.ID, Generation: 1})
		w.take(w.look(false, true))
		for range 3 {
			w.due()
			w.take(w.look(false, true))
		}
		w.blockedBy(policy.BlockedUnknown)
		require.Equal(t, 24*time.Hour, w.due())
		past := stopped(w)
		require.Equal(t, []string{past.Effect.ID}, past.Proof().Unknown)
		require.Equal(t, past.Effect.ID, later(t, past).s.Effect.ID)
	})
}
