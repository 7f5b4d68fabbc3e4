package worker

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
)

// errStopping is the outcome of a read that was given up; the server gives it to the next worker.
var errStopping = errors.New("the worker stops; the next one reads again")

// untilStop gives a read up as soon as its worker stops: a restart does not wait until an assistant has answered.
func untilStop[I, R any](read func(context.Context, I) (R, error)) func(context.Context, I) (R, error) {
	return func(ctx context.Context, in I) (R, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stopping := activity.GetWorkerStopChannel(ctx)
		go func() {
			select {
			case <-stopping:
				cancel(errStopping)
			case <-ctx.Done():
			}
		}()
		result, err := read(ctx, in)
		if err != nil && errors.Is(context.Cause(ctx), errStopping) {
			err = errStopping
		}
		return result, err
	}
}
