package machine

import (
	"context"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// callerHeader carries the identity of the client that sent a signal or an update. Workflow code cannot see the identity
// that the server wrote beside the event; who must be sure reads it in the history.
const callerHeader = "steward-caller"

// arrival is one signal that waits in the channel of its name.
type arrival struct {
	name     string
	caller   string
	payloads int
}

// arrivals are the signals of one run in the order of its history.
type arrivals struct {
	pending []arrival
}

type (
	arrivalsKey struct{}
	callerKey   struct{}
	recordKey   struct{}
)

// Options are the interceptors that a machine needs: give them to worker.Options, worker.WorkflowReplayerOptions and, by
// SetWorkerOptions, to a test environment.
func Options() []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{&workerInterceptor{}}
}

// Record is Options for a replayer that wants every entry of the journals that it replays: the journal of a run is
// bounded, the whole one is its history.
func Record(each func(Entry)) []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{&workerInterceptor{record: each}}
}

type workerInterceptor struct {
	interceptor.WorkerInterceptorBase
	record func(Entry)
}

func (w *workerInterceptor) InterceptWorkflow(
	_ workflow.Context, next interceptor.WorkflowInboundInterceptor,
) interceptor.WorkflowInboundInterceptor {
	i := &inbound{record: w.record}
	i.Next = next
	return i
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	arrivals arrivals
	record   func(Entry)
}

func (i *inbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	if i.record != nil {
		ctx = workflow.WithValue(ctx, recordKey{}, i.record)
	}
	return i.Next.ExecuteWorkflow(workflow.WithValue(ctx, arrivalsKey{}, &i.arrivals), in)
}

// HandleSignal is called in the order of the history, before any workflow code of the task runs.
func (i *inbound) HandleSignal(ctx workflow.Context, in *interceptor.HandleSignalInput) error {
	i.arrivals.pending = append(i.arrivals.pending, arrival{in.SignalName, callerOf(ctx), len(in.Arg.GetPayloads())})
	return i.Next.HandleSignal(ctx, in)
}

func (i *inbound) ExecuteUpdate(ctx workflow.Context, in *interceptor.UpdateInput) (any, error) {
	return i.Next.ExecuteUpdate(workflow.WithValue(ctx, callerKey{}, callerOf(ctx)), in)
}

func callerOf(ctx workflow.Context) string {
	var caller string
	payload, ok := interceptor.WorkflowHeader(ctx)[callerHeader]
	if !ok || converter.GetDefaultDataConverter().FromPayload(payload, &caller) != nil {
		return ""
	}
	return clip(caller, 128)
}

// Caller is a client interceptor that sends the client's identity along with signals and updates, so that the journal
// names who sent them.
func Caller(identity string) interceptor.ClientInterceptor {
	return &callerInterceptor{identity: identity}
}

type callerInterceptor struct {
	interceptor.ClientInterceptorBase
	identity string
}

func (c *callerInterceptor) InterceptClient(next interceptor.ClientOutboundInterceptor) interceptor.ClientOutboundInterceptor {
	o := &callerOutbound{identity: c.identity}
	o.Next = next
	return o
}

type callerOutbound struct {
	interceptor.ClientOutboundInterceptorBase
	identity string
}

func (o *callerOutbound) SignalWorkflow(ctx context.Context, in *interceptor.ClientSignalWorkflowInput) error {
	if err := o.sign(ctx); err != nil {
		return err
	}
	return o.Next.SignalWorkflow(ctx, in)
}

func (o *callerOutbound) UpdateWorkflow(
	ctx context.Context, in *interceptor.ClientUpdateWorkflowInput,
) (client.WorkflowUpdateHandle, error) {
	if err := o.sign(ctx); err != nil {
		return nil, err
	}
	return o.Next.UpdateWorkflow(ctx, in)
}

func (o *callerOutbound) sign(ctx context.Context) error {
	payload, err := converter.GetDefaultDataConverter().ToPayload(o.identity)
	if err == nil {
		interceptor.Header(ctx)[callerHeader] = payload
	}
	return err
}
