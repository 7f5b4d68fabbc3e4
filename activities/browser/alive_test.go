package browser

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"

	"steward/activities"
)

// slowServer answers a heartbeat when it is told to.
type slowServer struct {
	asked  chan context.Context
	answer chan struct{}
}

func (s slowServer) Beat(ctx context.Context, _ activities.SendProgress) error {
	s.asked <- ctx
	<-s.answer
	return ctx.Err()
}

// readFor runs a read-only activity that is kept alive until done returns.
func readFor(t *testing.T, arm Armer, open *atomic.Int64, done func()) {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	run := func(ctx context.Context) error {
		defer KeepAlive(ctx, arm, open)()
		done()
		return nil
	}
	env.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: "run"})
	_, err := env.ExecuteActivity("run")
	require.NoError(t, err)
}

func TestAShortReadMakesNoHeartbeat(t *testing.T) {
	server := slowServer{asked: make(chan context.Context, 1), answer: make(chan struct{})}
	var open atomic.Int64
	readFor(t, server, &open, func() { require.EqualValues(t, 1, open.Load()) })
	require.Eventually(t, func() bool { return open.Load() == 0 }, 10*time.Second, time.Millisecond)
	require.Empty(t, server.asked)
}

// A server whose call is cancelled during a commit does not know whether it has committed, and takes its shard anew.
func TestTheEndOfAReadDoesNotCutItsHeartbeatOff(t *testing.T) {
	server := slowServer{asked: make(chan context.Context), answer: make(chan struct{})}
	var open atomic.Int64
	beats := make(chan context.Context, 1)
	readFor(t, server, &open, func() { beats <- <-server.asked })
	require.NotErrorIs(t, (<-beats).Err(), context.Canceled)
	close(server.answer)
	require.Eventually(t, func() bool { return open.Load() == 0 }, 10*time.Second, time.Millisecond)
}
