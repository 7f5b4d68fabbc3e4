package run_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// The same conversation with a new scope goes on by continue-as-new; the scope that was left stays in the lineage.
func TestHandoffToANewScopeContinuesAsNew(t *testing.T) {
	b := newBench(t)
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(
		func(_ context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
			return b.settled(in, receipt.Continue), nil
		},
	).After(time.Hour)
	var handed *answer
	b.after(time.Minute, func() {
		handed = b.update(workflows.UpdateSubmit, map[string]any{"event": "semantic_disposition_submitted", "payload": map[string]any{
			"effect_id": b.present().Effect.ID, "disposition": "handoff", "scope": "goal:next", "reason": "the next part",
		}})
	})
	b.execute()
	require.Equal(t, "accept", string(handed.Decision), handed.Code)
	var renewed *workflow.ContinueAsNewError
	require.True(t, errors.As(b.GetWorkflowError(), &renewed), "%v", b.GetWorkflowError())
	var carry machine.Carry[policy.State]
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(renewed.Input.GetPayloads()[1], &carry))
	s := carry.State
	require.Equal(t, "goal:next", s.Scope)
	require.Equal(t, policy.HandedOff, s.Predecessors[0].Status)
	require.Equal(t, []any{policy.Dispatching, policy.KindEnrollment, policy.EffectReserved}, []any{s.Status, s.Effect.Kind, s.Effect.State})
	require.Len(t, b.sends, 1)
}

// A superseded effect is looked for with every turn, and its late marker is told to people.
func TestASupersededEffectIsWatched(t *testing.T) {
	b := newBench(t, receipt.Continue, receipt.Done)
	var lost string
	b.sendFn = func(_ context.Context, in activities.SendInput) (activities.SendResult, error) {
		if len(b.sends) == 1 {
			lost = in.EffectID
			return activities.SendResult{Outcome: activities.SendDoubtful, Armed: true, Code: "commit_not_seen"}, nil
		}
		return b.committed(), nil
	}
	visible := false
	var superseded *answer
	b.lookFn = func(in activities.ReconcileInput) activities.ReconcileResult {
		return activities.ReconcileResult{Readable: true, Marker: visible && in.EffectID == lost}
	}
	b.after(time.Second, func() {
		visible = true
		superseded = b.update(workflows.MessageSupersede, by("effect_id", lost, "accept_duplicate", true))
	})
	b.execute()
	require.Equal(t, "accept", string(superseded.Decision), superseded.Code)
	s := b.state()
	require.Equal(t, policy.GoalComplete, s.Status)
	require.Equal(t, []string{lost}, s.Explain().Duplicates)
	require.Contains(t, b.page(), "**May stand twice:** the superseded `"+lost+"`")
	require.Equal(t, 1, b.looks, "once it was seen it is not looked for again")
}
