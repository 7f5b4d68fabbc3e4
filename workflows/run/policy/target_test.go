package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

// leftThere is what another task left at the conversation that a run moves to.
func leftThere(past policy.State) *policy.Lineage {
	past.TaskID, past.WorkflowID = "t_another", "run:chatgpt:"+otherSite().ConversationID
	if past.Failure != nil && past.Failure.Lineage != nil {
		seen := *past.Failure.Lineage
		seen.TaskID, seen.WorkflowID = past.TaskID, past.WorkflowID
		failure := *past.Failure
		failure.Lineage, past.Failure = &seen, &failure
	}
	return &policy.Lineage{RunID: firstRun, Closed: "completed", State: &past}
}

// moving is a run that is to move to the other conversation as it is.
func moving(t *testing.T) *walk { return start(t).rebind() }

func TestAMoveIsNoWayAroundWhatTheOtherConversationWaitsFor(t *testing.T) {
	barred := map[string]string{
		"goal_complete": policy.CodeLineageComplete, "refused over a complete goal": policy.CodeLineageComplete,
		"waiting": policy.CodeLineageWaiting, "stopped while waiting": policy.CodeLineageWaiting,
		"waiting_for_user": policy.CodeLineageWaitingForUser, "stopped while waiting for a person": policy.CodeLineageWaitingForUser,
		"waiting for a login": policy.CodeLineageWaitingForUser, "waiting for approval": policy.CodeLineageWaitingForUser,
		"consecutive_failures": policy.CodeLineageFailures, "stopped at the fuse": policy.CodeLineageFailures,
		"round_budget_exhausted": policy.CodeLineageRounds,
	}
	for name, past := range lineages {
		t.Run(name, func(t *testing.T) {
			s := moving(t).s
			problems := s.Barred(leftThere(past(t)))
			if want := barred[name]; want != "" {
				require.Len(t, problems, 1)
				require.True(t, strings.HasPrefix(problems[0], want+": "), problems)
				return
			}
			require.Empty(t, problems)
		})
	}
	t.Run("another scope", func(t *testing.T) {
		s := start(t).handoff("goal:other", otherURL).s
		require.Empty(t, s.Barred(leftThere(complete(t))))
		require.NotEmpty(t, s.Barred(leftThere(asked(start(t)).s)))
	})
	t.Run("what the same task left there when it moved away bars nothing", func(t *testing.T) {
		s := moving(t).s
		left := leftThere(complete(t))
		left.State.TaskID = s.TaskID
		require.Empty(t, s.Barred(left))
	})
}

func TestAMoveInheritsADoubtOfTheOtherConversation(t *testing.T) {
	for name, past := range map[string]policy.State{"unknown": lineages["unknown"](t), "terminated during a send": lineages["terminated during a send"](t)} {
		t.Run(name, func(t *testing.T) {
			w := moving(t)
			next := &walk{tester: w.tester, h: newHistory(), s: carried(w, w.s.Successor(otherSite(), leftThere(past), w.at)), at: w.at}
			next.is(policy.Dispatching, policy.OweReconcile)
			require.Equal(t, past.Effect.ID, next.s.Effect.ID)
			next.refused(kernel.Reject, policy.CodeIllegal, beginEvent(next))
			next.take(next.look(true, true))
			next.is(policy.Dispatching, policy.OweSend)
			require.Equal(t, policy.KindEnrollment, next.s.Effect.Kind)
			require.NotEqual(t, past.Effect.ID, next.s.Effect.ID)
		})
	}
	t.Run("a run that waits goes on waiting, and watches for it", func(t *testing.T) {
		w := asked(start(t)).rebind()
		past := lineages["unknown"](t)
		s := w.s.Successor(otherSite(), leftThere(past), w.at)
		require.Equal(t, policy.WaitingForUser, s.Status)
		require.Equal(t, []string{past.Effect.ID}, s.Watched())
	})
	t.Run("a scope that has ended there stays ended", func(t *testing.T) {
		w := start(t).handoff("goal:other", otherURL)
		past := complete(t)
		s := w.s.Successor(otherSite(), leftThere(past), w.at)
		again := leftThere(s)
		again.State.WorkflowID = s.WorkflowID
		mover := start(t).rebind()
		require.Equal(t, past.Scope, mover.s.Scope)
		problems := mover.s.Barred(again)
		require.Len(t, problems, 1)
		require.True(t, strings.HasPrefix(problems[0], policy.CodeLineageComplete), problems)
	})
}
