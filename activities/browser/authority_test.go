package browser

import (
	"context"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"steward/activities"
)

func TestAnAttemptOfAnotherRunIsNotMadeAndStaysUnknown(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	b := &Browser{log: slog.New(slog.DiscardHandler)}
	var own string
	send := func(ctx context.Context, in activities.SendInput) (activities.SendResult, error) {
		own = activity.GetInfo(ctx).WorkflowExecution.RunID
		require.NoError(t, authorized(ctx, own))
		return b.Send(ctx, in)
	}
	env.RegisterActivity(send)
	value, err := env.ExecuteActivity(send, activities.SendInput{RunID: "another", EffectID: "fx_0", Generation: 1})
	require.NoError(t, err)
	var r activities.SendResult
	require.NoError(t, value.Get(&r))
	require.NotEmpty(t, own)
	require.Equal(t, activities.SendDoubtful, r.Outcome)
	require.Equal(t, "history_reset", r.Code)
}
