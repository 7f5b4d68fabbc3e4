// Package worker runs the roles of a Steward worker: WorkflowRun with the resolution of starts, the checks of one host,
// and the browsers of one host. It owns the task queues and their options; what an activity does is not its concern.
package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"steward/activities"
	"steward/activities/admission"
	"steward/activities/checks"
	"steward/workflows/release"
	"steward/workflows/run"
)

// Role is a part of the work that one process may take.
type Role string

// The roles.
const (
	// RoleRun decides: WorkflowRun and the resolution of starts.
	RoleRun Role = "run"
	// RoleChecks carries out completion checks and progress probes on this host.
	RoleChecks Role = "checks"
	// RoleBrowser drives the browsers of this host.
	RoleBrowser Role = "browser"
)

// Roles are all roles, in the order in which they start: work is only taken on when it can be carried out.
var Roles = []Role{RoleBrowser, RoleChecks, RoleRun}

// ParseRoles reads a list like "run,checks".
func ParseRoles(names []string) ([]Role, error) {
	var roles []Role
	for _, name := range names {
		role := Role(strings.TrimSpace(name))
		if !slices.Contains(Roles, role) {
			return nil, fmt.Errorf("there is no role %q; the roles are run, checks and browser", name)
		}
		if !slices.Contains(roles, role) {
			roles = append(roles, role)
		}
	}
	if len(roles) == 0 {
		return nil, errors.New("no role is given; the roles are run, checks and browser")
	}
	return roles, nil
}

// Options say what a worker does and with what. A role needs its part.
type Options struct {
	Namespace string
	// Host names this machine in task queues.
	Host  string
	Roles []Role
	// Run are the settings of WorkflowRun, Admission resolves starts (role run).
	Run       run.Options
	Admission *admission.Admission
	// Checks carries out checks (role checks).
	Checks *checks.Checks
	// Browsers are the logins that this worker drives (role browser), by name.
	Browsers map[string]Browser
	// Release are the settings of ReleaseSession, Recovery carries releases out (role recovery).
	Release  release.Options
	Recovery Recovery
	// StopTimeout is how long a stop waits for running activities; longer than closing a browser takes; default 30 s.
	StopTimeout time.Duration
	// StickyTimeout is how long the next task of a run waits for the worker that has it in memory (role run); default 1 s.
	StickyTimeout time.Duration
	Deployment    Deployment
	// Metrics takes what the activities and the list of runs tell; nil takes nothing.
	Metrics *Metrics
	// Started is called once every queue is served; its error stops the worker.
	Started func() error
	Log     *slog.Logger
}

// BrowserActivities drive one login: a browser.Browser, or what stands for it in a measurement.
type BrowserActivities interface {
	Send(context.Context, activities.SendInput) (activities.SendResult, error)
	Interrupt(context.Context, activities.InterruptInput) (activities.InterruptResult, error)
	Probe(context.Context, activities.ProbeInput) (activities.ProbeResult, error)
	Observe(context.Context, activities.ObserveInput) (activities.ObserveResult, error)
	Reconcile(context.Context, activities.ReconcileInput) (activities.ReconcileResult, error)
	// Close ends the browser and gives its profile directory back.
	Close(context.Context) error
}

// Finder finds the conversations of a project: a browser.Browser does, what stands for it in a measurement need not.
type Finder interface {
	Discover(context.Context, activities.DiscoverInput) (activities.DiscoverResult, error)
	Inspect(context.Context, activities.InspectInput) (activities.InspectResult, error)
}

// Browser is a login with its profile directory and the number of observations that it may have open: each run that waits
// for an answer holds one.
type Browser struct {
	Browser    BrowserActivities
	ProfileDir string
	ReadSlots  int
}

const (
	// defaultStickyTimeout is short, because a dead worker's runs wait it out; the SDK's default is 5 s.
	defaultStickyTimeout = time.Second
	// defaultStopTimeout covers an armed send's wait for its confirmation. With the SDK's default of none, what runs would
	// be lost.
	defaultStopTimeout = 30 * time.Second
)

// Run serves the roles until ctx ends, then stops gracefully: what runs gets StopTimeout to return its real outcome. The
// error says why the worker could not start or had to stop; it is nil after ctx ended.
func Run(ctx context.Context, c client.Client, o Options) error {
	o.StickyTimeout = cmp.Or(o.StickyTimeout, defaultStickyTimeout)
	o.StopTimeout = cmp.Or(o.StopTimeout, defaultStopTimeout)
	failed := make(chan error, 1)
	workers, err := build(ctx, c, o, func(err error) {
		select {
		case failed <- err:
		default:
		}
	})
	if err != nil {
		return err
	}
	for i, w := range workers {
		if err := w.Start(); err != nil {
			stopAll(workers[:i])
			return fmt.Errorf("task queue %s: %w", w.queue, err)
		}
	}
	defer stopAll(workers)
	if o.Started != nil {
		if err := o.Started(); err != nil {
			return err
		}
	}
	select {
	case <-ctx.Done():
		o.Log.Info("worker stops", "at_most", o.StopTimeout)
		return nil
	case err := <-failed:
		return err
	}
}

// queueWorker is the SDK's worker of one task queue.
type queueWorker struct {
	worker.Worker
	queue string
}

func build(ctx context.Context, c client.Client, o Options, onFatal func(error)) ([]queueWorker, error) {
	deployment, err := o.Deployment.options()
	if err != nil {
		return nil, err
	}
	base := baseOptions(o.StopTimeout, deployment)
	var workers []queueWorker
	add := func(queue string, options worker.Options) worker.Registry {
		options.OnFatalError = func(err error) { onFatal(fmt.Errorf("task queue %s: %w", queue, err)) }
		w := queueWorker{worker.New(c, queue, options), queue}
		workers = append(workers, w)
		return w
	}
	for _, role := range append(slices.Clone(Roles), RoleRecovery) {
		if !slices.Contains(o.Roles, role) {
			continue
		}
		switch role {
		case RoleBrowser:
			err = addBrowsers(ctx, c, o, base, add)
		case RoleChecks:
			err = addChecks(o, base, add)
		case RoleRun:
			if err = checkNamespace(ctx, c, o); err == nil {
				err = addRun(o, base, add)
			}
		case RoleRecovery:
			if err = checkNamespace(ctx, c, o); err == nil {
				err = addRecovery(o, base, add)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("role %s: %w", role, err)
		}
	}
	return workers, nil
}

// checkNamespace refuses a namespace in which no run could publish its state. Where the server does not show its search
// attributes to everybody (Temporal Cloud), the first run will tell.
func checkNamespace(ctx context.Context, c client.Client, o Options) error {
	err := CheckSearchAttributes(ctx, c, o.Namespace)
	var denied *serviceerror.PermissionDenied
	var unimplemented *serviceerror.Unimplemented
	if errors.As(err, &denied) || errors.As(err, &unimplemented) {
		o.Log.Warn("the search attributes of the namespace cannot be checked", "namespace", o.Namespace, "error", err)
		return nil
	}
	return err
}

// stopAll stops all workers at once: each may take the whole stop time-out.
func stopAll(workers []queueWorker) {
	var stopping sync.WaitGroup
	for _, w := range workers {
		stopping.Go(w.Stop)
	}
	stopping.Wait()
}
