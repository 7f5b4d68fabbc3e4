package browser

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"
)

// codeReset: the attempt belongs to a run whose history was reset since.
const codeReset = "history_reset"

// authorized refuses an attempt that another run authorized: after a workflow reset the server dispatches a pending
// activity once more, for the new run, and what became of it before is not known.
func authorized(ctx context.Context, runID string) error {
	if runID == "" || !activity.IsActivity(ctx) {
		return nil
	}
	if now := activity.GetInfo(ctx).WorkflowExecution.RunID; now != runID {
		return fmt.Errorf("run %s authorized this attempt, and run %s dispatched it again after a reset", runID, now)
	}
	return nil
}
