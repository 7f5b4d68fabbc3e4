package worker

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"steward/activities"
	"steward/activities/admission"
	"steward/config/sites"
	"steward/worker/embedded"
	"steward/workflows"
	"steward/workflows/run/policy"
)

var quiet = slog.New(slog.DiscardHandler)

func startServer(t *testing.T, o embedded.Options) client.Client {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a server")
	}
	o.DataDir, o.UIPort, o.Logger = t.TempDir(), embedded.NoUI, quiet
	server, err := embedded.Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	c, err := client.Dial(client.Options{HostPort: server.Address(), Logger: sdklog.NewStructuredLogger(quiet)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func runOptions(t *testing.T, c client.Client) Options {
	t.Helper()
	registry, err := sites.Load("")
	require.NoError(t, err)
	return Options{
		Namespace: "default", Host: "here", Roles: []Role{RoleRun}, StopTimeout: time.Second, Log: quiet,
		Admission: &admission.Admission{Client: c, Sites: registry, Host: "here"},
	}
}

// serve runs a worker until the test ends, and returns when its queues are served.
func serve(t *testing.T, c client.Client, o Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	started, ended := make(chan struct{}), make(chan error, 1)
	o.Started = func() error { close(started); return nil }
	go func() { ended <- Run(ctx, c, o) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	select {
	case <-started:
	case err := <-ended:
		ended <- nil
		require.NoError(t, err)
	}
}

func TestAForeignClusterWithoutSearchAttributesIsRefused(t *testing.T) {
	c := startServer(t, embedded.Options{})
	err := Run(t.Context(), c, runOptions(t, c))
	require.ErrorContains(t, err, "temporal operator search-attribute create --namespace default --name StewardBlocker --type Keyword")
}

// refused starts a run with an input that is wrong in two ways, and returns the final state that the failure carries.
func refused(t *testing.T, c client.Client, id string) policy.State {
	t.Helper()
	started, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueRun},
		workflows.TypeWorkflowRun, map[string]any{"objective": "", "extra": true})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var failure *temporal.ApplicationError
	require.ErrorAs(t, started.Get(ctx, nil), &failure)
	require.Equal(t, workflows.FailureStartRefused, failure.Type())
	require.True(t, failure.NonRetryable())
	var state policy.State
	require.NoError(t, failure.Details(&state))
	return state
}

func TestAVersionedWorkerServesOnceItIsCurrent(t *testing.T) {
	c := startServer(t, embedded.Options{SearchAttributes: SearchAttributes()})
	o := runOptions(t, c)
	o.Deployment = Deployment{Name: "steward", BuildID: "r1"}
	serve(t, c, o)
	deployment := c.WorkerDeploymentClient().GetHandle("steward")
	require.Eventually(t, func() bool {
		_, err := deployment.SetCurrentVersion(t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: "r1"})
		return err == nil
	}, 30*time.Second, 100*time.Millisecond, "the version never became current")
	state := refused(t, c, "run:chatgpt:versioned")
	require.NotNil(t, state.Failure)
	require.Greater(t, len(state.Failure.Problems), 2, "every problem at once")

	described, err := c.DescribeWorkflowExecution(t.Context(), "run:chatgpt:versioned", "")
	require.NoError(t, err)
	versioning := described.GetWorkflowExecutionInfo().GetVersioningInfo()
	require.Equal(t, enumspb.VERSIONING_BEHAVIOR_AUTO_UPGRADE, versioning.GetBehavior())
	require.Equal(t, "r1", versioning.GetDeploymentVersion().GetBuildId())
}

// Two workers behind one login could both be sending, so the second refuses to start.
func TestASecondWorkerOfALoginIsRefused(t *testing.T) {
	c := startServer(t, embedded.Options{})
	first := worker.New(c, workflows.QueueSend("main"), worker.Options{
		Identity: "1@elsewhere:profile", DisableWorkflowWorker: true, DisableRegistrationAliasing: true,
	})
	first.RegisterActivityWithOptions(func(context.Context, activities.SendInput) error { return errors.New("never called") },
		activity.RegisterOptions{Name: workflows.ActivitySend})
	require.NoError(t, first.Start())
	t.Cleanup(first.Stop)

	var err error
	require.Eventually(t, func() bool {
		err = refuseSecondSender(t.Context(), c, "main", sendIdentity("here", "/profile"))
		return err != nil
	}, 30*time.Second, 50*time.Millisecond, "the other poller was never seen")
	require.ErrorContains(t, err, "polled by 1@elsewhere:profile")
	require.NoError(t, refuseSecondSender(t.Context(), c, "main", "2@elsewhere:profile"))
	require.NoError(t, refuseSecondSender(t.Context(), c, "other", sendIdentity("here", "/profile")))

	alive, err := Polled(t.Context(), c, workflows.QueueSend("main"), enumspb.TASK_QUEUE_TYPE_ACTIVITY)
	require.NoError(t, err)
	require.Equal(t, []string{"1@elsewhere:profile"}, alive)
}
