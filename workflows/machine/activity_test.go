package machine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"steward/workflows/machine"
)

// The failures are as a server writes them into a history.
func TestClassify(t *testing.T) {
	details := func(v any) *commonpb.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(v)
		require.NoError(t, err)
		return p
	}
	timeout := func(kind enumspb.TimeoutType, heartbeat *commonpb.Payloads) *failurepb.Failure {
		return &failurepb.Failure{Message: "timeout", FailureInfo: &failurepb.Failure_TimeoutFailureInfo{
			TimeoutFailureInfo: &failurepb.TimeoutFailureInfo{TimeoutType: kind, LastHeartbeatDetails: heartbeat},
		}}
	}
	cancelled := func(d *commonpb.Payloads) *failurepb.Failure {
		return &failurepb.Failure{FailureInfo: &failurepb.Failure_CanceledFailureInfo{
			CanceledFailureInfo: &failurepb.CanceledFailureInfo{Details: d},
		}}
	}
	application := func(kind string, cause *failurepb.Failure, d *commonpb.Payloads) *failurepb.Failure {
		return &failurepb.Failure{Message: "sorry", Cause: cause, FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
			ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: kind, Details: d},
		}}
	}
	reset := &failurepb.Failure{Message: "operator", FailureInfo: &failurepb.Failure_ResetWorkflowFailureInfo{
		ResetWorkflowFailureInfo: &failurepb.ResetWorkflowFailureInfo{LastHeartbeatDetails: details("armed")},
	}}
	const (
		toStart   = enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START
		toClose   = enumspb.TIMEOUT_TYPE_SCHEDULE_TO_CLOSE
		attempt   = enumspb.TIMEOUT_TYPE_START_TO_CLOSE
		heartbeat = enumspb.TIMEOUT_TYPE_HEARTBEAT
	)
	serverError := &failurepb.Failure{FailureInfo: &failurepb.Failure_ServerFailureInfo{ServerFailureInfo: &failurepb.ServerFailureInfo{}}}
	for name, test := range map[string]struct {
		started int64
		failure *failurepb.Failure
		cause   machine.Cause
		kind    string
		details string
	}{
		"no worker took it":                     {0, timeout(toStart, nil), machine.NeverStarted, "ScheduleToStart", ""},
		"no worker took it in the whole time":   {0, timeout(toClose, nil), machine.NeverStarted, "ScheduleToClose", ""},
		"cancelled before a worker took it":     {0, cancelled(details("ACTIVITY_ID_NOT_STARTED")), machine.NeverStarted, "Cancelled", ""},
		"silent worker, nothing recorded":       {7, timeout(heartbeat, nil), machine.Lost, "Heartbeat", ""},
		"silent worker, armed":                  {7, timeout(heartbeat, details("armed")), machine.Lost, "Heartbeat", "armed"},
		"too long":                              {7, timeout(attempt, details("armed")), machine.Lost, "StartToClose", "armed"},
		"out of time while running":             {7, timeout(toClose, details("armed")), machine.Lost, "ScheduleToClose", "armed"},
		"returned because it was asked to":      {7, cancelled(details("unarmed")), machine.Cancelled, "Cancelled", "unarmed"},
		"returned, asked to, without details":   {7, cancelled(nil), machine.Cancelled, "Cancelled", ""},
		"own error":                             {7, application("page_busy", nil, details("busy")), machine.Failed, "page_busy", "busy"},
		"own error about a cancellation inside": {7, application("x", cancelled(nil), nil), machine.Failed, "x", ""},
		"untyped error":                         {7, application("", nil, nil), machine.Failed, "", ""},
		"panic":                                 {7, application("PanicError", nil, nil), machine.Failed, "PanicError", ""},
		"running when the workflow was reset":   {7, reset, machine.Lost, "Reset", "armed"},
		"server error":                          {7, serverError, machine.Unclear, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := temporal.GetDefaultFailureConverter().FailureToError(&failurepb.Failure{
				Cause: test.failure,
				FailureInfo: &failurepb.Failure_ActivityFailureInfo{ActivityFailureInfo: &failurepb.ActivityFailureInfo{
					ScheduledEventId: 5, StartedEventId: test.started, ActivityType: &commonpb.ActivityType{Name: "send"},
				}},
			})
			got := machine.Classify(err)
			require.Equal(t, test.cause, got.Cause)
			require.Equal(t, test.kind, got.Type)
			require.NotEmpty(t, got.Message)
			require.Equal(t, test.details != "", got.HasDetails())
			if test.details != "" {
				var text string
				require.NoError(t, got.Details(&text))
				require.Equal(t, test.details, text)
			} else {
				require.Error(t, got.Details(new(string)))
			}
		})
	}
	require.Equal(t, machine.NeverStarted, machine.Classify(temporal.NewCanceledError()).Cause, "cancelled before the server knew of it")
	require.Equal(t, machine.Unclear, machine.Classify(errors.New("unable to decode the result")).Cause)
}
