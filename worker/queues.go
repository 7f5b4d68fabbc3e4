package worker

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/workflows"
	"steward/workflows/discover"
	"steward/workflows/machine"
	"steward/workflows/run"
)

// pollers of a queue that many runs share. The SDK's two would hand out a full backlog one by one.
const pollers = 8

// deadlockTimeout: the SDK takes 1 s without a yield for a deadlock. A decision takes microseconds, but a busy two-core
// machine can be slow to schedule it.
const deadlockTimeout = 5 * time.Second

type adder func(queue string, options worker.Options) worker.Registry

// baseOptions are common to all queues.
func baseOptions(stop time.Duration, deployment worker.DeploymentOptions) worker.Options {
	return worker.Options{
		Interceptors:      machine.Options(),
		DeploymentOptions: deployment,
		WorkerStopTimeout: stop,
		// A cancelled observation has to be gone before the next activity meets its tab; cancellation arrives with a
		// heartbeat. The SDK's default holds heartbeats back for 80 % of the heartbeat time-out.
		MaxHeartbeatThrottleInterval: 500 * time.Millisecond,
		// Names are constants; a function reference would be a second name for the same thing.
		DisableRegistrationAliasing: true,
	}
}

// runQueue are the options of the queue of WorkflowRun.
func runQueue(base worker.Options, sticky time.Duration) worker.Options {
	base.MaxConcurrentWorkflowTaskPollers = pollers
	base.StickyScheduleToStartTimeout = sticky
	base.DeadlockDetectionTimeout = deadlockTimeout
	return base
}

// sendQueue are the options of a browser's queue of effects: one at a time.
func sendQueue(base worker.Options) worker.Options {
	base.DisableWorkflowWorker = true
	base.MaxConcurrentActivityExecutionSize = 1
	base.MaxConcurrentActivityTaskPollers = 1
	return base
}

// readQueue are the options of a browser's queue of observations.
func readQueue(base worker.Options, slots int) worker.Options {
	base.DisableWorkflowWorker = true
	base.MaxConcurrentActivityExecutionSize = slots
	base.MaxConcurrentActivityTaskPollers = pollers
	return base
}

// QueueOptions are the options of the three queues of a run, for a baseline that differs in nothing but its workflow.
type QueueOptions struct{ Run, Send, Read worker.Options }

// DefaultQueueOptions are what an unversioned worker uses.
func DefaultQueueOptions(readSlots int) QueueOptions {
	base := baseOptions(defaultStopTimeout, worker.DeploymentOptions{})
	return QueueOptions{Run: runQueue(base, defaultStickyTimeout), Send: sendQueue(base), Read: readQueue(base, readSlots)}
}

// addRun serves WorkflowRun and DiscoveryScan.
func addRun(o Options, base worker.Options, add adder) error {
	if o.Admission == nil {
		return errors.New("it needs an admission")
	}
	base = runQueue(base, o.StickyTimeout)
	registry := add(workflows.QueueRun, base)
	registry.RegisterWorkflowWithOptions(run.Workflow(o.Run), workflow.RegisterOptions{
		Name: workflows.TypeWorkflowRun, VersioningBehavior: behavior(base.DeploymentOptions),
	})
	registry.RegisterWorkflowWithOptions(discover.Workflow, workflow.RegisterOptions{
		Name: workflows.TypeDiscoveryScan, VersioningBehavior: behavior(base.DeploymentOptions),
	})
	registry.RegisterActivityWithOptions(o.Admission.AdmitScan, activity.RegisterOptions{Name: workflows.ActivityAdmitScan})
	registry.RegisterActivityWithOptions(o.Admission.KnownRuns, activity.RegisterOptions{Name: workflows.ActivityKnownRuns})
	registry.RegisterActivityWithOptions(o.Admission.Admit, activity.RegisterOptions{Name: workflows.ActivityAdmit})
	registry.RegisterActivityWithOptions(o.Admission.ResolveConversation, activity.RegisterOptions{Name: workflows.ActivityResolve})
	return nil
}

// behavior is AutoUpgrade on a versioned worker; an unversioned one may not name any.
func behavior(d worker.DeploymentOptions) workflow.VersioningBehavior {
	if d.UseVersioning {
		return workflow.VersioningBehaviorAutoUpgrade
	}
	return workflow.VersioningBehaviorUnspecified
}

func addChecks(o Options, base worker.Options, add adder) error {
	if o.Checks == nil {
		return errors.New("it needs the checks")
	}
	base.DisableWorkflowWorker = true
	registry := add(workflows.QueueChecks(o.Host), base)
	registry.RegisterActivityWithOptions(o.Checks.Run, activity.RegisterOptions{Name: workflows.ActivityChecks})
	registry.RegisterActivityWithOptions(o.Checks.Baseline, activity.RegisterOptions{Name: workflows.ActivityBaseline})
	registry.RegisterActivityWithOptions(o.Checks.ReadProgress, activity.RegisterOptions{Name: workflows.ActivityProgress})
	return nil
}

// addBrowsers serves two queues for each login: effects one after the other, reads side by side.
func addBrowsers(ctx context.Context, c client.Client, o Options, base worker.Options, add adder) error {
	if len(o.Browsers) == 0 {
		return errors.New("it needs at least one browser in the settings")
	}
	for name, b := range o.Browsers {
		finder, discovers := b.Browser.(Finder)
		if o.Metrics != nil {
			b.Browser = metered{b.Browser, name, o.Metrics}
		}
		send := sendQueue(base)
		send.Identity = sendIdentity(o.Host, b.ProfileDir)
		if err := refuseSecondSender(ctx, c, name, send.Identity); err != nil {
			return err
		}
		effects := add(workflows.QueueSend(name), send)
		effects.RegisterActivityWithOptions(b.Browser.Send, activity.RegisterOptions{Name: workflows.ActivitySend})
		effects.RegisterActivityWithOptions(b.Browser.Interrupt, activity.RegisterOptions{Name: workflows.ActivityInterrupt})
		effects.RegisterActivityWithOptions(b.Browser.Probe, activity.RegisterOptions{Name: workflows.ActivityProbe})

		reads := add(workflows.QueueRead(name), readQueue(base, b.ReadSlots))
		reads.RegisterActivityWithOptions(untilStop(b.Browser.Observe), activity.RegisterOptions{Name: workflows.ActivityObserve})
		reads.RegisterActivityWithOptions(untilStop(b.Browser.Reconcile), activity.RegisterOptions{Name: workflows.ActivityReconcile})
		if discovers {
			reads.RegisterActivityWithOptions(untilStop(finder.Discover), activity.RegisterOptions{Name: workflows.ActivityDiscover})
			reads.RegisterActivityWithOptions(untilStop(finder.Inspect), activity.RegisterOptions{Name: workflows.ActivityInspect})
		}
	}
	return nil
}
