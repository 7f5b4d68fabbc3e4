package browser

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"google.golang.org/grpc"

	"steward/activities"
)

// service is a workflow service that takes one heartbeat.
type service struct {
	workflowservice.WorkflowServiceClient
	got    *workflowservice.RecordActivityTaskHeartbeatRequest
	answer *workflowservice.RecordActivityTaskHeartbeatResponse
	err    error
}

func (s *service) RecordActivityTaskHeartbeat(
	ctx context.Context, in *workflowservice.RecordActivityTaskHeartbeatRequest, _ ...grpc.CallOption,
) (*workflowservice.RecordActivityTaskHeartbeatResponse, error) {
	s.got = in
	return s.answer, s.err
}

type labClient struct {
	client.Client
	service *service
}

func (c labClient) WorkflowService() workflowservice.WorkflowServiceClient { return c.service }

// oneBeat makes one heartbeat inside of an activity.
func oneBeat(t *testing.T, s *service, p activities.SendProgress) error {
	t.Helper()
	var result error
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	run := func(ctx context.Context) error {
		result = NewArmer(labClient{service: s}).Beat(ctx, p)
		return nil
	}
	env.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: "run"})
	_, err := env.ExecuteActivity("run")
	require.NoError(t, err)
	return result
}

func TestAnArmerAsksTheServerItself(t *testing.T) {
	s := &service{answer: &workflowservice.RecordActivityTaskHeartbeatResponse{}}
	require.NoError(t, oneBeat(t, s, activities.SendProgress{Step: "armed", Armed: 3}))
	require.NotEmpty(t, s.got.TaskToken)
	require.NotEmpty(t, s.got.Namespace)
	var p activities.SendProgress
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(s.got.Details, &p))
	require.Equal(t, activities.SendProgress{Step: "armed", Armed: 3}, p)
}

func TestWhatAServerDoesNotAcceptIsRefused(t *testing.T) {
	for name, s := range map[string]*service{
		"timed out": {err: serviceerror.NewNotFound("activity task not found")},
		"cancelled": {answer: &workflowservice.RecordActivityTaskHeartbeatResponse{CancelRequested: true}},
		"paused":    {answer: &workflowservice.RecordActivityTaskHeartbeatResponse{ActivityPaused: true}},
		"reset":     {answer: &workflowservice.RecordActivityTaskHeartbeatResponse{ActivityReset: true}},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, oneBeat(t, s, activities.SendProgress{}), ErrRefused) })
	}
	err := oneBeat(t, &service{err: serviceerror.NewUnavailable("no connection")}, activities.SendProgress{})
	require.Error(t, err)
	require.NotErrorIs(t, err, ErrRefused)
}

func TestAPulseWithADoubtDoesNotArm(t *testing.T) {
	a := &armer{}
	p, err := startPulse(t.Context(), a, 1<<40, func(error) {})
	require.NoError(t, err)
	defer p.stop()
	a.answer = func(activities.SendProgress) error { return errors.New("no answer") }
	require.Error(t, p.beat(t.Context()))
	a.answer = nil
	require.Error(t, p.unsure())
	require.ErrorContains(t, p.arm(t.Context(), 1), "earlier heartbeat")
	for _, b := range a.beats {
		require.Zero(t, b.Armed)
	}
}
