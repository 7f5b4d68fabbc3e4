package machine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine"
)

type bench struct {
	*testsuite.TestWorkflowEnvironment
	sends int
}

func newBench(t *testing.T, adjust func(*machine.Spec[toy, event])) *bench {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	b := &bench{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment()}
	b.SetWorkerOptions(worker.Options{Interceptors: machine.Options()})
	b.RegisterWorkflowWithOptions(toyRun(adjust), workflow.RegisterOptions{Name: toyWorkflow})
	ok := func(context.Context, int, int) (string, error) { return "", nil }
	for _, name := range []string{"admit", "observe", "reconcile"} {
		b.RegisterActivityWithOptions(ok, activity.RegisterOptions{Name: name})
	}
	b.RegisterActivityWithOptions(func(context.Context, int, int) (string, error) {
		b.sends++
		return "applied", nil
	}, activity.RegisterOptions{Name: "send"})
	b.SetTestTimeout(20 * time.Second)
	return b
}

func TestRunsToTheEnd(t *testing.T) {
	b := newBench(t, nil)
	b.ExecuteWorkflow(toyWorkflow, 3, nil)
	require.NoError(t, b.GetWorkflowError())
	var s toy
	require.NoError(t, b.GetWorkflowResult(&s))
	require.Equal(t, "done", s.Phase)
	require.Equal(t, 3, b.sends)
}
