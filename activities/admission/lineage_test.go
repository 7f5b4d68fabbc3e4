package admission

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/worker/embedded"
	"steward/workflows"
	"steward/workflows/machine"
)

// end says how the fake run of this test closes, after it has admitted itself.
type end struct {
	How   string `json:"how"`
	State string `json:"state"`
	// Runs is how often it continues as new first.
	Runs int `json:"runs"`
}

type left struct {
	Mark string                 `json:"mark"`
	Saw  activities.AdmitResult `json:"saw"`
	// Goal stands in the state of every run that was admitted.
	Goal *struct{} `json:"goal,omitempty"`
}

// fakeRun admits itself like a run and then closes as it was told.
func fakeRun(ctx workflow.Context, e end, carry *machine.Carry[*left]) (*left, error) {
	var state *left
	if carry != nil {
		state = carry.State
	} else {
		state = &left{Mark: e.State, Goal: &struct{}{}}
		if e.How == "unadmitted" {
			state.Goal, e.How = nil, "result"
		}
		ctx := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		info := workflow.GetInfo(ctx).WorkflowExecution
		in := activities.AdmitInput{Start: json.RawMessage(`{}`), WorkflowID: info.ID, RunID: info.RunID}
		if err := workflow.ExecuteActivity(ctx, workflows.ActivityAdmit, in).Get(ctx, &state.Saw); err != nil {
			return nil, err
		}
	}
	if e.How == "mute" {
		ctx.Done().Receive(ctx, nil)
	}
	if err := workflow.SetQueryHandler(ctx, workflows.QueryState, func() (*left, error) { return state, nil }); err != nil {
		return nil, err
	}
	if e.Runs > 0 {
		e.Runs--
		return nil, workflow.NewContinueAsNewError(ctx, workflows.TypeWorkflowRun, e, machine.Carry[*left]{State: state})
	}
	switch e.How {
	case "result":
		return state, nil
	case "failure":
		return nil, temporal.NewNonRetryableApplicationError("no", workflows.FailureStartRefused, nil, state)
	case "failure without details":
		return nil, temporal.NewNonRetryableApplicationError("no", "other", nil)
	case "cancel":
		ctx.Done().Receive(ctx, nil)
		return nil, temporal.NewCanceledError(state)
	}
	ctx.Done().Receive(ctx, nil)
	return nil, workflow.Await(ctx, func() bool { return false })
}

func TestLineageOfEveryEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server")
	}
	quiet := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(t.Context(), embedded.Options{DataDir: t.TempDir(), UIPort: embedded.NoUI, Logger: quiet})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Stop()) })
	c, err := client.Dial(client.Options{HostPort: server.Address(), Namespace: server.Namespace(), Logger: sdklog.NewStructuredLogger(quiet)})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	w := worker.New(c, workflows.QueueRun, worker.Options{DisableRegistrationAliasing: true})
	w.RegisterWorkflowWithOptions(fakeRun, workflow.RegisterOptions{Name: workflows.TypeWorkflowRun})
	admission := &Admission{Client: c, Sites: registry(t)}
	w.RegisterActivityWithOptions(admission.Admit, activity.RegisterOptions{Name: workflows.ActivityAdmit})
	require.NoError(t, w.Start())
	t.Cleanup(w.Stop)

	ctx := t.Context()
	run := func(t *testing.T, id string, e end) client.WorkflowRun {
		t.Helper()
		started, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueRun}, workflows.TypeWorkflowRun, e)
		require.NoError(t, err)
		return started
	}
	// see starts one more run and returns the lineage that it saw.
	see := func(t *testing.T, id string) activities.AdmitResult {
		t.Helper()
		var got left
		require.NoError(t, run(t, id, end{How: "result", State: "looker"}).Get(ctx, &got))
		return got.Saw
	}
	admitted := func(t *testing.T, id string) {
		t.Helper()
		require.Eventually(t, func() bool {
			var got left
			value, err := c.QueryWorkflow(ctx, id, "", workflows.QueryState)
			return err == nil && value.Get(&got) == nil && got.Mark != ""
		}, 20*time.Second, 20*time.Millisecond)
	}

	for name, e := range map[string]struct {
		end    end
		close  func(t *testing.T, id string)
		closed string
	}{
		"result":                     {end{How: "result"}, nil, activities.ClosedCompleted},
		"failure":                    {end{How: "failure"}, nil, activities.ClosedFailed},
		"failure without details":    {end{How: "failure without details"}, nil, activities.ClosedFailed},
		"continued, then a result":   {end{How: "result", Runs: 2}, nil, activities.ClosedCompleted},
		"continued, then terminated": {end{How: "wait", Runs: 1}, terminate(c), activities.ClosedTerminated},
		"cancelled":                  {end{How: "cancel"}, func(t *testing.T, id string) { require.NoError(t, c.CancelWorkflow(ctx, id, "")) }, activities.ClosedCanceled},
		"terminated":                 {end{How: "wait"}, terminate(c), activities.ClosedTerminated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id := "run:lab:" + name
			e.end.State = name
			first := run(t, id, e.end)
			if e.close != nil {
				admitted(t, id)
				e.close(t, id)
			}
			_ = first.Get(ctx, nil)
			before, err := lineageBefore(ctx, c, id)
			require.NoError(t, err)
			saw := see(t, id)
			require.Equal(t, saw.Lineage, before, "a run that moves to this id reads the same")
			require.Empty(t, saw.LineageError)
			require.NotNil(t, saw.Lineage)
			require.Equal(t, e.closed, saw.Lineage.Closed)
			require.False(t, saw.Lineage.ClosedAt.IsZero())
			var state left
			require.NoError(t, json.Unmarshal(saw.Lineage.State, &state))
			require.Equal(t, name, state.Mark)
		})
	}
	t.Run("the first run has none, the newest counts", func(t *testing.T) {
		t.Parallel()
		id := "run:lab:newest's"
		require.Nil(t, see(t, id).Lineage)
		for _, mark := range []string{"one", "two", "three"} {
			require.NoError(t, run(t, id, end{How: "result", State: mark}).Get(ctx, nil))
			var state left
			saw := see(t, id)
			require.Empty(t, saw.LineageError)
			require.NoError(t, json.Unmarshal(saw.Lineage.State, &state))
			require.Equal(t, mark, state.Mark)
		}
	})
	t.Run("timed out", func(t *testing.T) {
		t.Parallel()
		id := "run:lab:late"
		started, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: id, TaskQueue: workflows.QueueRun, WorkflowExecutionTimeout: 3 * time.Second,
		}, workflows.TypeWorkflowRun, end{How: "wait", State: "late"})
		require.NoError(t, err)
		require.Error(t, started.Get(ctx, nil))
		saw := see(t, id)
		require.Empty(t, saw.LineageError)
		require.Equal(t, activities.ClosedTimedOut, saw.Lineage.Closed)
	})
	// unserved is a run that no worker ever takes.
	unserved := func(t *testing.T, id string, args ...any) string {
		t.Helper()
		started, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"}, workflows.TypeWorkflowRun, args...)
		require.NoError(t, err)
		require.NoError(t, c.TerminateWorkflow(ctx, id, started.GetRunID(), "test"))
		return started.GetRunID()
	}
	t.Run("runs that never began do not hide what was before", func(t *testing.T) {
		t.Parallel()
		id := "run:lab:never-began"
		unserved(t, id)
		saw := see(t, id)
		require.Empty(t, saw.LineageError)
		require.Nil(t, saw.Lineage)
		require.NoError(t, run(t, id, end{How: "result", State: "before"}).Get(ctx, nil))
		unserved(t, id)
		unserved(t, id)
		saw = see(t, id)
		require.Empty(t, saw.LineageError)
		var state left
		require.NoError(t, json.Unmarshal(saw.Lineage.State, &state))
		require.Equal(t, "before", state.Mark)
		unserved(t, id+"'s")
		none, err := lineageBefore(ctx, c, id+"'s")
		require.NoError(t, err)
		require.Nil(t, none)
	})
	t.Run("what an open run will leave is not read before it ends", func(t *testing.T) {
		t.Parallel()
		id := "run:lab:open"
		require.NoError(t, run(t, id, end{How: "result", State: "before"}).Get(ctx, nil))
		run(t, id, end{How: "wait"})
		none, err := lineageBefore(ctx, c, id)
		require.NoError(t, err)
		require.Nil(t, none)
		none, err = lineageBefore(ctx, c, "run:lab:never")
		require.NoError(t, err)
		require.Nil(t, none)
		require.NoError(t, c.TerminateWorkflow(ctx, id, "", "test"))
	})
	t.Run("runs that ended before their admission do not hide what was before", func(t *testing.T) {
		t.Parallel()
		id := "run:lab:unadmitted"
		require.NoError(t, run(t, id, end{How: "unadmitted", State: "first"}).Get(ctx, nil))
		require.Nil(t, see(t, id).Lineage)
		require.NoError(t, run(t, id, end{How: "result", State: "before"}).Get(ctx, nil))
		require.NoError(t, run(t, id, end{How: "unadmitted", State: "stopped at once"}).Get(ctx, nil))
		var state left
		require.NoError(t, json.Unmarshal(see(t, id).Lineage.State, &state))
		require.Equal(t, "before", state.Mark)
	})
	t.Run("a continued run that never began left what it was given", func(t *testing.T) {
		t.Parallel()
		id := "run:lab:carried"
		run := unserved(t, id, nil, machine.Carry[*left]{State: &left{Mark: "carried", Goal: &struct{}{}}})
		saw := see(t, id)
		require.Empty(t, saw.LineageError)
		require.Equal(t, run, saw.Lineage.RunID)
		var state left
		require.NoError(t, json.Unmarshal(saw.Lineage.State, &state))
		require.Equal(t, "carried", state.Mark)
	})
	t.Run("a run that tells nothing is not taken for none", func(t *testing.T) {
		t.Parallel()
		id := "run:lab:mute"
		started := run(t, id, end{How: "mute"})
		require.Eventually(t, func() bool {
			described, err := c.DescribeWorkflowExecution(ctx, id, started.GetRunID())
			return err == nil && described.GetWorkflowExecutionInfo().GetHistoryLength() > 9 && len(described.GetPendingActivities()) == 0
		}, 20*time.Second, 20*time.Millisecond)
		require.NoError(t, c.TerminateWorkflow(ctx, id, started.GetRunID(), "test"))
		saw := see(t, id)
		require.Nil(t, saw.Lineage)
		require.Contains(t, saw.LineageError, "its final state is unreadable")
	})
}

func terminate(c client.Client) func(*testing.T, string) {
	return func(t *testing.T, id string) {
		require.NoError(t, c.TerminateWorkflow(context.Background(), id, "", "test"))
	}
}
