package main

import (
	"context"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/activities/browser"
	"steward/bench/target"
	"steward/worker"
	"steward/workflows/machine"
)

// The baseline of the engine: a workflow that does nothing but two activities a turn, with the time-outs, heartbeats (two of them
// in a send) and queue options of a run.
const (
	bareQueue = "bench-bare"
	bareSend  = "bench-bare-send"
	bareRead  = "bench-bare-read"
)

func bareWorkflow(ctx workflow.Context, conversation string, turns int) error {
	effect := machine.Effect(bareSend, "", machine.Times{ScheduleToStart: 10 * time.Minute, StartToClose: 5 * time.Minute, Heartbeat: 10 * time.Second})
	read := machine.Read(bareRead, "", machine.Times{StartToClose: 55 * time.Minute, Heartbeat: 30 * time.Second})
	for range turns {
		if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, effect), "BareSend", conversation).Get(ctx, nil); err != nil {
			return err
		}
		if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, read), "BareRead", conversation).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

// serveBare serves the baseline workflow until ctx ends.
func serveBare(ctx context.Context, c client.Client, started func() error) error {
	options := worker.DefaultQueueOptions(slots)
	options.Run.WorkerStopTimeout = time.Second
	w := sdkworker.New(c, bareQueue, options.Run)
	w.RegisterWorkflowWithOptions(bareWorkflow, workflow.RegisterOptions{Name: "Bare"})
	return serveAll(ctx, started, w)
}

// serveBareActivities serves its activities: like the simulated browser, they wait only while the site holds its answers.
func serveBareActivities(ctx context.Context, c client.Client, site target.Seam, started func() error) error {
	options := worker.DefaultQueueOptions(slots)
	options.Send.WorkerStopTimeout, options.Read.WorkerStopTimeout = time.Second, time.Second
	armer, open := browser.NewArmer(c), atomic.Int64{}
	send, read := sdkworker.New(c, bareSend, options.Send), sdkworker.New(c, bareRead, options.Read)
	send.RegisterActivityWithOptions(func(ctx context.Context, conversation string) error {
		if err := target.Arm(ctx, armer, 1); err != nil {
			return err
		}
		return site.Take(ctx, target.Message{Conversation: conversation})
	}, activity.RegisterOptions{Name: "BareSend"})
	read.RegisterActivityWithOptions(func(ctx context.Context, conversation string) error {
		stop := browser.KeepAlive(ctx, armer, &open)
		defer stop()
		return site.Answered(ctx, conversation)
	}, activity.RegisterOptions{Name: "BareRead"})
	return serveAll(ctx, started, send, read)
}

func serveAll(ctx context.Context, started func() error, workers ...sdkworker.Worker) error {
	for _, w := range workers {
		if err := w.Start(); err != nil {
			return err
		}
		defer w.Stop()
	}
	if err := started(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func (r *rig) startBare(ctx context.Context, conversation string, turns int) (client.WorkflowRun, error) {
	return r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "bare:" + conversation, TaskQueue: bareQueue}, "Bare", conversation, turns)
}
