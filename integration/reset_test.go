package integration

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"steward/workflows/machine"
	"steward/workflows/run/policy"
)

// update sends an operator's message and returns its answer.
func (s *stack) update(t *testing.T, id, name string, payload any) machine.Answer {
	t.Helper()
	handle, err := s.client.UpdateWorkflow(context.Background(), client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, UpdateID: uuid.NewString(), Args: []any{payload}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	require.NoError(t, err)
	var answer machine.Answer
	require.NoError(t, handle.Get(context.Background(), &answer))
	return answer
}

// A reset throws away what the history knew of a send. What the effect's id, its marker on the page and the send ledger
// know stays: nothing is sent twice, wherever the history is cut.
func TestResetSendsNothingTwice(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "reset", fault{})
	for _, where := range []string{"first", "middle", "last"} {
		t.Run(where, func(t *testing.T) {
			conversation := s.conversation(t, `
replies:
  - - text: '{{receipt "CONTINUE" "one" "more to do"}}'
  - - text: '{{receipt "CONTINUE" "two" "more to do"}}'
  - - text: working
    - gate: go
    - text: '{{receipt "DONE" "three" "all is well"}}'
  - - text: '{{receipt "DONE" "four" "all is well"}}'
`)
			run := s.start(t, conversation, s.input(conversation, "reset"))
			s.until(t, run.GetID(), "in its third turn", func(st policy.State) bool { return st.Turns == 3 })
			tasks := s.workflowTasks(t, run.GetID(), run.GetRunID())
			cut := map[string]int64{"first": tasks[0], "middle": tasks[len(tasks)/2], "last": tasks[len(tasks)-1]}[where]
			_, err := s.client.ResetWorkflowExecution(context.Background(), &workflowservice.ResetWorkflowExecutionRequest{
				Namespace: s.endpoint.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: run.GetID(), RunId: run.GetRunID()},
				Reason: "a test", WorkflowTaskFinishEventId: cut, RequestId: uuid.NewString(),
			})
			require.NoError(t, err)
			require.NoError(t, s.lab.Release(conversation, "go"))
			state := s.result(t, s.client.GetWorkflow(context.Background(), run.GetID(), ""))
			require.Equal(t, policy.GoalComplete, state.Status)
			seen := map[string]int{}
			for _, turn := range state.Chain() {
				seen[turn.Effect] = s.marked(conversation, turn.Effect)
			}
			for effect, n := range seen {
				require.Equal(t, 1, n, fmt.Sprintf("messages of %s", effect))
			}
		})
	}
}

// workflowTasks are the ids of the completed workflow tasks of a run.
func (s *stack) workflowTasks(t *testing.T, id, run string) (tasks []int64) {
	t.Helper()
	events := s.client.GetWorkflowHistory(context.Background(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			tasks = append(tasks, e.GetEventId())
		}
	}
	require.NotEmpty(t, tasks)
	return tasks
}
