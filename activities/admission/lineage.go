package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run/policy"
)

const (
	// lineageTime bounds the whole reading of a lineage.
	lineageTime = 25 * time.Second
	// listPause is the pause between two looks at the list while this run is not in it yet.
	listPause = 50 * time.Millisecond
	// listed is how many earlier runs are looked at.
	listed = 100
)

// errNeverBegan is wrapped by the error of a run that was closed before its first decision and carried no state.
var errNeverBegan = errors.New("it was closed before it began")

// lineage reads what the last run of a workflow id left behind; nil when there is none. The list of runs lags behind
// their histories, so it is only used to find the runs: a list that shows this run, which started last, shows the older
// ones too. All else is read from the runs themselves.
func lineage(ctx context.Context, c client.Client, id, self string) (*activities.Lineage, error) {
	ctx, cancel := context.WithTimeout(ctx, lineageTime)
	defer cancel()
	earlier, err := earlierRuns(ctx, c, id, self)
	if err != nil {
		return nil, err
	}
	for _, run := range earlier {
		left, err := finalState(ctx, c, id, run, self)
		if errors.Is(err, errNeverBegan) || err == nil && !tells(left.State) {
			continue // closed before its admission: what counts is what it found
		}
		return left, err
	}
	if len(earlier) == listed {
		return nil, fmt.Errorf("the last %d runs of %s were closed before they were admitted; none tells what there was before", listed, id)
	}
	return nil, nil
}

// lineageBefore reads what the last run of a workflow id left behind, for a run that is yet to be started under it; nil when there
// is none or when it is open, which that start will find out.
func lineageBefore(ctx context.Context, c client.Client, id string) (*activities.Lineage, error) {
	described, err := c.DescribeWorkflowExecution(ctx, id, "")
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &missing):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("the last run of %s: %w", id, err)
	case described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return nil, nil
	}
	last := described.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	left, err := finalState(ctx, c, id, last, "")
	if errors.Is(err, errNeverBegan) || err == nil && !tells(left.State) {
		return lineage(ctx, c, id, last)
	}
	return left, err
}

// earlierRuns are the runs of a workflow id beside self, the newest first.
func earlierRuns(ctx context.Context, c client.Client, id, self string) ([]string, error) {
	quoted := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(id)
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			PageSize: listed + 1, Query: fmt.Sprintf("WorkflowId = '%s'", quoted),
		})
		if err != nil {
			return nil, fmt.Errorf("list the runs of %s: %w", id, err)
		}
		if others, complete := newestFirst(page.GetExecutions(), self); complete {
			return others, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the list of the runs of %s does not show this run yet: %w", id, ctx.Err())
		case <-time.After(listPause):
		}
	}
}

// newestFirst sorts the runs beside self by their start. It is complete when the list shows self.
func newestFirst(runs []*workflowpb.WorkflowExecutionInfo, self string) (others []string, complete bool) {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b *workflowpb.WorkflowExecutionInfo) int {
		return b.GetStartTime().AsTime().Compare(a.GetStartTime().AsTime())
	})
	for _, r := range runs {
		if run := r.GetExecution().GetRunId(); run == self {
			complete = true
		} else {
			others = append(others, run)
		}
	}
	return others, complete
}

// finalState follows a run over continue-as-new to its end and reads the state that it left.
func finalState(ctx context.Context, c client.Client, id, run, self string) (*activities.Lineage, error) {
	for {
		described, err := c.DescribeWorkflowExecution(ctx, id, run)
		if err != nil {
			return nil, fmt.Errorf("run %s of %s: %w", run, id, err)
		}
		info := described.GetWorkflowExecutionInfo()
		left := &activities.Lineage{RunID: run, ClosedAt: info.GetCloseTime().AsTime()}
		switch info.GetStatus() {
		case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			left.Closed = activities.ClosedCompleted
		case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
			left.Closed = activities.ClosedFailed
		case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
			left.Closed = activities.ClosedCanceled
		case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
			left.Closed = activities.ClosedTerminated
		case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
			left.Closed = activities.ClosedTimedOut
		case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
			next, err := successor(ctx, c, id, run)
			if err != nil {
				return nil, err
			}
			if next == self {
				return nil, fmt.Errorf("run %s of %s continued as this run, which carries no state", run, id)
			}
			run = next
			continue
		default:
			return nil, fmt.Errorf("run %s of %s is %v; only one run of a workflow id can be open", run, id, info.GetStatus())
		}
		left.State, err = stateOf(ctx, c, id, run, left.Closed)
		if err != nil {
			return nil, fmt.Errorf("run %s of %s (%s): its final state is unreadable: %w", run, id, left.Closed, err)
		}
		return left, nil
	}
}

// successor is the run that a run continued as.
func successor(ctx context.Context, c client.Client, id, run string) (string, error) {
	events := c.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return "", fmt.Errorf("run %s of %s: %w", run, id, err)
		}
		if next := event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId(); next != "" {
			return next, nil
		}
	}
	return "", fmt.Errorf("run %s of %s continued as a run that its history does not name", run, id)
}

// stateOf reads the state that a closed run left in its result or in the details of its failure or cancellation, and asks
// the run itself when it left none there.
func stateOf(ctx context.Context, c client.Client, id, run, closed string) (json.RawMessage, error) {
	var state json.RawMessage
	var err error
	if closed != activities.ClosedTerminated && closed != activities.ClosedTimedOut {
		err = c.GetWorkflow(ctx, id, run).GetWithOptions(ctx, &state, client.WorkflowRunGetOptions{DisableFollowingRuns: true})
		var failed *temporal.ApplicationError
		var canceled *temporal.CanceledError
		switch {
		case err == nil && holdsState(state):
			return state, nil
		case errors.As(err, &failed) && failed.HasDetails():
			err = failed.Details(&state)
		case errors.As(err, &canceled) && canceled.HasDetails():
			err = canceled.Details(&state)
		}
		if err == nil && holdsState(state) {
			return state, nil
		}
		var missing *serviceerror.NotFound
		if errors.As(err, &missing) {
			return nil, err
		}
	}
	carried, began, beganErr := beginning(ctx, c, id, run)
	switch {
	case beganErr != nil:
		return nil, errors.Join(err, beganErr)
	case !began && holdsState(carried):
		return carried, nil
	case !began:
		return nil, errNeverBegan
	}
	value, queryErr := c.QueryWorkflow(ctx, id, run, workflows.QueryState)
	if queryErr == nil {
		queryErr = value.Get(&state)
	}
	if queryErr != nil {
		return nil, errors.Join(err, fmt.Errorf("query %s: %w", workflows.QueryState, queryErr))
	}
	if !holdsState(state) {
		return nil, errors.Join(err, fmt.Errorf("query %s answered no state", workflows.QueryState))
	}
	return state, nil
}

// beginning is the state that a run was started with, when it continued another, and whether it ever decided anything.
func beginning(ctx context.Context, c client.Client, id, run string) (carried json.RawMessage, began bool, err error) {
	events := c.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, false, fmt.Errorf("history: %w", err)
		}
		switch event.GetEventType() {
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:
			if input := event.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads(); len(input) > 1 {
				var carry machine.Carry[json.RawMessage]
				if err := converter.GetDefaultDataConverter().FromPayload(input[1], &carry); err != nil {
					return nil, false, fmt.Errorf("what it continued: %w", err)
				}
				carried = carry.State
			}
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			return carried, true, nil
		}
	}
	return carried, false, nil
}

// tells says whether the policy can judge a start by the state. One that cannot be read is for the policy to refuse.
func tells(raw json.RawMessage) bool {
	var state policy.State
	return json.Unmarshal(raw, &state) != nil || state.Tells()
}

// holdsState tells a state, a JSON object, from an absent one.
func holdsState(raw json.RawMessage) bool {
	return strings.HasPrefix(strings.TrimSpace(string(raw)), "{")
}
