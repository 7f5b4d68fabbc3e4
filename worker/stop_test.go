package worker

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
)

func TestAReadIsGivenUpWhenItsWorkerStops(t *testing.T) {
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	stopping := make(chan struct{})
	env.SetWorkerStopChannel(stopping)
	read := untilStop(func(ctx context.Context, waits bool) (string, error) {
		if !waits {
			return "an answer", nil
		}
		close(stopping)
		<-ctx.Done()
		return "", ctx.Err()
	})
	env.RegisterActivityWithOptions(read, activity.RegisterOptions{Name: "read"})
	result, err := env.ExecuteActivity("read", false)
	require.NoError(t, err)
	var answer string
	require.NoError(t, result.Get(&answer))
	require.Equal(t, "an answer", answer)
	_, err = env.ExecuteActivity("read", true)
	require.ErrorContains(t, err, errStopping.Error())
}
