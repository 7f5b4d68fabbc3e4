package machine

import (
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/workflow"
)

// Succeed starts the workflow id as an abandoned child of the same type that goes on with the given state, and returns
// when it has started. It is for actions: afterwards the policy owes Finish. When an open workflow has that id already,
// temporal.IsWorkflowExecutionAlreadyStartedError is true of the error.
func Succeed[S any](ctx workflow.Context, id, summary string, state S) error {
	// Once asked for, the start is not taken back: a cancellation would reach the child.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            id,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         summary,
	})
	child := workflow.ExecuteChildWorkflow(ctx, workflow.GetInfo(ctx).WorkflowType.Name, nil, &Carry[S]{State: state})
	return child.GetChildWorkflowExecution().Get(ctx, nil)
}
