// Package beat makes heartbeats that the server has answered before they return: what an effect needs to know before it does what
// cannot be undone. (Effects: at most one authorized attempt, fenced by the server.)
package beat

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
)

// ErrRefused is wrapped when the server no longer wants this attempt.
var ErrRefused = errors.New("the server does not want this attempt any more")

// Record makes one heartbeat of the running activity, past the SDK's own batching. It returns nil only when the server has recorded
// the details and does not ask the activity to stop, and an error that wraps ErrRefused when the server answered otherwise; any
// other error leaves open whether the server has recorded it.
func Record(ctx context.Context, c client.Client, progress any) error {
	info := activity.GetInfo(ctx)
	details, err := converter.GetDefaultDataConverter().ToPayloads(progress)
	if err != nil {
		return fmt.Errorf("heartbeat details: %w", err)
	}
	answer, err := c.WorkflowService().RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{
		Namespace: info.Namespace,
		TaskToken: info.TaskToken,
		Details:   details,
	})
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return fmt.Errorf("%w: it has timed out or its workflow has ended", ErrRefused)
	case err != nil:
		return fmt.Errorf("heartbeat: %w", err)
	case answer.GetCancelRequested():
		return fmt.Errorf("%w: cancellation was requested", ErrRefused)
	case answer.GetActivityPaused() || answer.GetActivityReset():
		return fmt.Errorf("%w: the activity was paused or reset", ErrRefused)
	}
	return nil
}
