package machine

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Times are the time-outs of an activity.
type Times struct {
	// ScheduleToStart is how long it may wait for a worker. Its expiry proves that the activity never ran.
	ScheduleToStart time.Duration
	// StartToClose is how long one attempt may run.
	StartToClose time.Duration
	// Heartbeat is how long an attempt may be silent before it is lost; cancellation reaches it with a heartbeat.
	Heartbeat time.Duration
	// ScheduleToClose bounds a read with all its retries; zero for no bound.
	ScheduleToClose time.Duration
}

// Effect are the options of an activity with consequences outside: one attempt, and a cancellation waits for its real end.
func Effect(queue, summary string, t Times) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              queue,
		Summary:                summary,
		ScheduleToStartTimeout: t.ScheduleToStart,
		StartToCloseTimeout:    t.StartToClose,
		HeartbeatTimeout:       t.Heartbeat,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
	}
}

// Read are the options of an activity without consequences: it is retried until it succeeds, fails for good or runs out
// of time, and a cancellation waits until it is gone.
func Read(queue, summary string, t Times) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              queue,
		Summary:                summary,
		ScheduleToStartTimeout: t.ScheduleToStart,
		StartToCloseTimeout:    t.StartToClose,
		HeartbeatTimeout:       t.Heartbeat,
		ScheduleToCloseTimeout: t.ScheduleToClose,
		WaitForCancellation:    true,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 30 * time.Second},
	}
}

// Cause is the class of a failed activity.
type Cause string

const (
	// NeverStarted is proven by the server: no worker was given the activity.
	NeverStarted Cause = "never_started"
	// Lost started and was not heard of again; its details are those of the last heartbeat that the server accepted.
	Lost Cause = "lost"
	// Cancelled started, and returned because it was asked to; its details are its own.
	Cancelled Cause = "cancelled"
	// Failed started and returned an application error; its details are its own.
	Failed Cause = "failed"
	// Unclear is anything else, like a result that cannot be decoded. It proves nothing.
	Unclear Cause = "unclear"
)

// Failure is how an activity failed.
type Failure struct {
	Cause Cause
	// Type is the type of an application error, or the kind of time-out: ScheduleToStart, StartToClose, Heartbeat.
	Type    string
	Message string
	details func(...any) error
}

// HasDetails tells whether Details has something to decode.
func (f Failure) HasDetails() bool { return f.details != nil }

// Details decodes the details into the value that v points to.
func (f Failure) Details(v any) error {
	if f.details == nil {
		return errors.New("the failure has no details")
	}
	return f.details(v)
}

// Do runs an activity by its registered name. The failure is nil when it succeeded.
func Do[R any](ctx workflow.Context, o workflow.ActivityOptions, activity string, args ...any) (R, *Failure) {
	var result R
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), activity, args...).Get(ctx, &result); err != nil {
		f := Classify(err)
		return result, &f
	}
	return result, nil
}

// Classify tells what the error of an activity proves. It is for activities with WaitForCancellation: without it the SDK
// reports a cancellation before the activity has ended.
//
// An operator's `temporal activity reset` makes the server forget that an attempt started: what follows may be classified
// as never started. A fence outside Temporal has to cover that.
func Classify(err error) Failure {
	var activity *temporal.ActivityError
	if !errors.As(err, &activity) {
		// The SDK cancels an activity that it has not yet handed to the server with a bare error.
		if cancelled, ok := err.(*temporal.CanceledError); ok {
			return Failure{Cause: NeverStarted, Type: "Cancelled", Message: cancelled.Error()}
		}
		return Failure{Cause: Unclear, Message: err.Error()}
	}
	// The history has no started event for an activity that no worker was given. A test environment has no event ids at all.
	unstarted := activity.StartedEventID() == 0 && activity.ScheduledEventID() != 0
	switch cause := activity.Unwrap().(type) {
	case *temporal.TimeoutError:
		f := Failure{Cause: Lost, Type: cause.TimeoutType().String(), Message: cause.Message()}
		if cause.TimeoutType() == enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START || unstarted {
			f.Cause = NeverStarted
		} else if cause.HasLastHeartbeatDetails() {
			f.details = cause.LastHeartbeatDetails
		}
		return f
	case *temporal.CanceledError:
		f := Failure{Cause: Cancelled, Type: "Cancelled", Message: cause.Error()}
		if unstarted {
			f.Cause = NeverStarted
		} else if cause.HasDetails() {
			f.details = cause.Details
		}
		return f
	case *temporal.ApplicationError:
		f := Failure{Cause: Failed, Type: cause.Type(), Message: cause.Message()}
		if cutByReset(cause) {
			f.Cause, f.Type = Lost, "Reset"
		}
		if cause.HasDetails() {
			f.details = cause.Details
		}
		return f
	case *temporal.PanicError:
		return Failure{Cause: Failed, Type: "PanicError", Message: cause.Error()}
	default:
		return Failure{Cause: Unclear, Message: err.Error()}
	}
}

// cutByReset recognizes what the server writes for an activity that was running when its workflow was reset: not the
// activity's own error, but its last heartbeat in the shape of one.
func cutByReset(err *temporal.ApplicationError) bool {
	return temporal.GetDefaultFailureConverter().ErrorToFailure(err).GetResetWorkflowFailureInfo() != nil
}
