package integration

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows"
	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

const gated = `
replies:
  - - text: working
    - gate: go
    - text: '{{receipt "CONTINUE" "one" "more to do"}}'
` + done

// submit submits one event by its name.
func (s *stack) submit(t *testing.T, id, event string, payload map[string]any) {
	t.Helper()
	payload["reason"] = "test"
	answer := s.update(t, id, workflows.UpdateSubmit, map[string]any{"event": event, "payload": payload})
	require.Equal(t, kernel.Accept, answer.Decision, answer.Code)
}

func TestSuccession(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "moved", fault{})
	working := func(st policy.State) bool { return st.Effect.State == policy.EffectApplied }

	t.Run("handoff to a new scope of the same conversation", func(t *testing.T) {
		conversation := s.conversation(t, gated)
		run := s.start(t, conversation, s.input(conversation, "moved"))
		before := s.until(t, run.GetID(), "working", working)
		s.submit(t, run.GetID(), "semantic_disposition_submitted", map[string]any{
			"effect_id": before.Effect.ID, "disposition": "handoff", "scope": "goal:second", "objective": "Write the second report.",
		})
		require.NoError(t, s.lab.Release(conversation, "go"))
		state := s.result(t, run)
		require.Equal(t, policy.GoalComplete, state.Status)
		require.Equal(t, "goal:second", state.Scope)
		require.Equal(t, policy.HandedOff, state.Predecessors[0].Status)
		require.NotEqual(t, before.AuthorityID, state.AuthorityID)
		records := s.lab.Record(conversation)
		require.Len(t, records, 2)
		require.Contains(t, records[1].Text, "Write the second report.")
	})

	t.Run("rebind to another conversation", func(t *testing.T) {
		from, to := s.conversation(t, gated), s.conversation(t, done)
		run := s.start(t, from, s.input(from, "moved"))
		before := s.until(t, run.GetID(), "working", working)
		s.submit(t, run.GetID(), "conversation_rebound", map[string]any{"conversation_url": s.lab.ConversationURL(to), "operator": "me"})
		require.Equal(t, policy.Dispatched, s.state(t, run.GetID()).Status, "the turn that was sent is observed")
		require.NoError(t, s.lab.Release(from, "go"))
		state := s.result(t, run)
		require.Equal(t, policy.HandedOff, state.Status)
		require.Equal(t, "run:chatlab:"+to, state.Succession.Successor)
		next := s.result(t, s.client.GetWorkflow(context.Background(), "run:chatlab:"+to, ""))
		require.Equal(t, policy.GoalComplete, next.Status)
		require.Equal(t, []any{before.TaskID, before.RelayScopeID, 2}, []any{next.TaskID, next.RelayScopeID, next.ClaimGeneration})
		require.Len(t, s.lab.Record(from), 1)
		require.Len(t, s.lab.Record(to), 1)
	})

	t.Run("an open run of the other conversation is not disturbed", func(t *testing.T) {
		from, to := s.conversation(t, gated), s.conversation(t, gated)
		owner := s.start(t, to, s.input(to, "moved"))
		s.until(t, owner.GetID(), "working", working)
		run := s.start(t, from, s.input(from, "moved"))
		s.until(t, run.GetID(), "working", working)
		s.submit(t, run.GetID(), "conversation_rebound", map[string]any{"conversation_url": s.lab.ConversationURL(to), "operator": "me"})
		require.NoError(t, s.lab.Release(from, "go"))
		state := s.until(t, run.GetID(), "blocked", func(st policy.State) bool { return st.Blocker != nil })
		require.Equal(t, policy.BlockedOwned, state.Blocker.Class)
		require.Equal(t, 5*time.Minute, state.Blocker.NotBefore.Sub(state.Blocker.Since))
		s.update(t, run.GetID(), "stop", map[string]any{"operator": "me", "reason": "enough"})
		require.Equal(t, policy.Stopped, s.result(t, run).Status)
		require.Equal(t, policy.Dispatched, s.state(t, owner.GetID()).Status)
		require.Len(t, s.lab.Record(from), 1)
		require.Len(t, s.lab.Record(to), 1)
	})
}
