package discover_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/discover"
	"steward/workflows/discover/scan"
	"steward/workflows/machine"
	"steward/workflows/machine/strict"
)

const (
	project = "g-p-0123456789abcdef"
	page    = "https://chatgpt.com/g/" + project + "-orders/project"
)

// bench runs DiscoveryScan against activities that stand for a browser and a server.
type bench struct {
	*testsuite.TestWorkflowEnvironment
	t         *testing.T
	scan      scan.Scan
	problems  []strict.Problem
	page      activities.DiscoverResult
	known     map[string]string
	inspected []string
	inspect   map[string]activities.InspectResult
	started   map[string]json.RawMessage
}

func newBench(t *testing.T, ids ...string) *bench {
	var suite testsuite.WorkflowTestSuite
	b := &bench{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, inspect: map[string]activities.InspectResult{}, started: map[string]json.RawMessage{}}
	b.scan = scan.Scan{
		Site: "chatgpt", PageURL: page, Goal: json.RawMessage(`{"objective":"Finish it.","completion":{"operator_approval":true}}`),
		Enroll: scan.Enroll{Listed: ids},
	}.Normalize()
	b.page = activities.DiscoverResult{Readable: true, Complete: true}
	for _, id := range ids {
		b.page.Conversations = append(b.page.Conversations, scan.Conversation{ID: id, URL: "https://chatgpt.com/g/" + project + "/c/" + id, Title: "Title " + id})
	}
	b.SetWorkerOptions(worker.Options{Interceptors: machine.Options()})
	b.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: scan.WorkflowID("chatgpt", project), TaskQueue: workflows.QueueRun})
	b.RegisterWorkflowWithOptions(discover.Workflow, workflow.RegisterOptions{Name: workflows.TypeDiscoveryScan})
	b.RegisterWorkflowWithOptions(func(ctx workflow.Context, in json.RawMessage) error {
		b.started[workflow.GetInfo(ctx).WorkflowExecution.ID] = in
		return workflow.Sleep(ctx, time.Hour)
	}, workflow.RegisterOptions{Name: workflows.TypeWorkflowRun})
	on := func(name string, fn any) { b.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name}) }
	on(workflows.ActivityAdmitScan, func(_ context.Context, in activities.AdmitScanInput) (activities.AdmitScanResult, error) {
		require.Equal(t, "discover:chatgpt:"+project, in.WorkflowID)
		return activities.AdmitScanResult{Problems: b.problems, Scan: b.scan, Project: project}, nil
	})
	on(workflows.ActivityDiscover, func(_ context.Context, in activities.DiscoverInput) (activities.DiscoverResult, error) {
		require.Equal(t, activities.DiscoverInput{Site: "chatgpt", Browser: "chatgpt", PageURL: page, Most: 200}, in)
		return b.page, nil
	})
	on(workflows.ActivityKnownRuns, func(context.Context, activities.KnownRunsInput) (activities.KnownRunsResult, error) {
		return activities.KnownRunsResult{Status: b.known}, nil
	})
	on(workflows.ActivityInspect, func(_ context.Context, in activities.InspectInput) (activities.InspectResult, error) {
		b.inspected = append(b.inspected, in.Conversation.ID)
		if r, ok := b.inspect[in.Conversation.ID]; ok {
			return r, nil
		}
		return activities.InspectResult{Readable: true}, nil
	})
	return b
}

func (b *bench) run() (scan.Result, error) {
	b.t.Helper()
	b.ExecuteWorkflow(workflows.TypeDiscoveryScan, json.RawMessage(`{}`))
	require.True(b.t, b.IsWorkflowCompleted())
	var result scan.Result
	if err := b.GetWorkflowError(); err != nil {
		return result, err
	}
	return result, b.GetWorkflowResult(&result)
}

func standings(r scan.Result) map[string]scan.Standing {
	all := map[string]scan.Standing{}
	for _, e := range r.Inventory {
		all[e.ID] = e.Standing
	}
	return all
}

func TestOnlyWhatWasReadAndHoldsNothingOfStewardIsEnrolled(t *testing.T) {
	b := newBench(t, "a", "b", "c", "d", "e")
	b.known = map[string]string{"run:chatgpt:b": "COMPLETED"}
	b.inspect["c"] = activities.InspectResult{Readable: true, Supervised: true}
	b.inspect["d"] = activities.InspectResult{Class: "login"}
	b.inspect["e"] = activities.InspectResult{Readable: true, Moved: true}
	b.page.Contradictions = 1
	r, err := b.run()
	require.NoError(t, err)
	require.Equal(t, map[string]scan.Standing{
		"a": scan.Enrolled, "b": scan.Known, "c": scan.Supervised, "d": scan.Unreadable, "e": scan.Moved,
	}, standings(r))
	require.Equal(t, []string{"run:chatgpt:a"}, r.Started)
	require.Equal(t, []string{"a", "c", "d", "e"}, b.inspected, "what has a run is not opened")
	require.Len(t, b.started, 1)
	require.JSONEq(t, `{"target":{"site":"chatgpt","browser":"chatgpt","conversation_url":"https://chatgpt.com/g/`+project+`/c/a"},"adopt":{},
		"objective":"Finish it.","completion":{"operator_approval":true}}`, string(b.started["run:chatgpt:a"]))
	require.Equal(t, 1, r.Contradictions)
}

func TestAScanStartsABoundedNumberAndTheNextGoesOn(t *testing.T) {
	b := newBench(t, "a", "b", "c")
	one := 1
	b.scan.MaxEnrollments = &one
	first, err := b.run()
	require.NoError(t, err)
	require.Equal(t, map[string]scan.Standing{"a": scan.Enrolled, "b": scan.Postponed, "c": scan.Postponed}, standings(first))

	b = newBench(t, "a", "b", "c")
	b.scan.MaxEnrollments = &one
	b.known = map[string]string{"run:chatgpt:a": "RUNNING"}
	b.page.Conversations = b.page.Conversations[:2]
	b.SetLastCompletionResult(first)
	second, err := b.run()
	require.NoError(t, err)
	require.Equal(t, map[string]scan.Standing{"a": scan.Known, "b": scan.Enrolled, "c": scan.Postponed}, standings(second), "c is not forgotten")
	require.Equal(t, first.Inventory[0].FirstSeen.UTC(), second.Inventory[0].FirstSeen.UTC())
}

func TestAScanFailsWithWhatIsWrong(t *testing.T) {
	b := newBench(t, "a")
	b.problems = []strict.Problem{{Path: "page_url", Message: "is wrong"}, {Path: "goal.objective", Message: "is missing"}}
	_, err := b.run()
	var failed *temporal.ApplicationError
	require.True(t, errors.As(err, &failed))
	require.Equal(t, workflows.FailureScanRefused, failed.Type())
	require.True(t, failed.NonRetryable())
	require.Contains(t, failed.Message(), "\n- page_url: is wrong\n- goal.objective: is missing")
	var problems []strict.Problem
	require.NoError(t, failed.Details(&problems))
	require.Equal(t, b.problems, problems)

	b = newBench(t, "a")
	b.page = activities.DiscoverResult{Class: "login", Detail: "Log in to the site"}
	_, err = b.run()
	require.True(t, errors.As(err, &failed))
	require.Equal(t, workflows.FailureScanUnreadable, failed.Type())
	require.Contains(t, failed.Message(), "(login): Log in to the site")
	require.Empty(t, b.started)
}

// TestReplay replays every recorded history with the present code: where it breaks, an open scan would.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: machine.Options(), DisableDeadlockDetection: true})
		require.NoError(t, err)
		replayer.RegisterWorkflowWithOptions(discover.Workflow, workflow.RegisterOptions{Name: workflows.TypeDiscoveryScan})
		f, err := os.Open(file)
		require.NoError(t, err)
		history, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
		require.NoError(t, errors.Join(err, f.Close()))
		require.NoError(t, replayer.ReplayWorkflowHistory(nil, history), file)
	}
}
