package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"steward/activities"
	"steward/activities/admission"
	"steward/activities/browser"
	"steward/activities/checks"
	"steward/activities/recovery/home"
	"steward/config"
	"steward/config/sites"
	"steward/worker"
)

func newWorkerCommand(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker", Short: "Run a worker, until it is told to stop", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			done, err := app.isolate(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			if app.settings.Worker.Metrics != "" {
				app.metrics = worker.NewMetrics()
				if _, err := app.metrics.Serve(cmd.Context(), app.settings.Worker.Metrics, app.log); err != nil {
					return err
				}
			}
			c, connection, err := app.dial(cmd.Context(), app.workerIdentity())
			if err != nil {
				return err
			}
			defer c.Close()
			return app.work(cmd.Context(), c, connection)
		},
	}
	connectionFlags(cmd)
	config.AddFlags(cmd.Flags(), "worker.roles", "worker.deployment.name", "worker.deployment.build_id", "worker.stop_timeout", "worker.metrics")
	cmd.AddCommand(newWorkerReadyCommand(app))
	return cmd
}

func (a *app) workerIdentity() string {
	return fmt.Sprintf("%d@%s", os.Getpid(), a.settings.Worker.Host)
}

// work runs the worker of the settings until ctx ends.
func (a *app) work(ctx context.Context, c client.Client, connection config.Connection) error {
	w := a.settings.Worker
	roles, err := worker.ParseRoles(w.Roles)
	if err != nil {
		return err
	}
	registry, err := a.sites()
	if err != nil {
		return err
	}
	sdkworker.SetStickyWorkflowCacheSize(w.StickyCacheSize)
	options := worker.Options{
		Namespace: cmp.Or(connection.Options.Namespace, client.DefaultNamespace), Host: w.Host, Roles: roles,
		StopTimeout: w.StopTimeout, StickyTimeout: w.StickyTimeout,
		Deployment: worker.Deployment{Name: w.Deployment.Name, BuildID: w.Deployment.BuildID},
		Log:        a.log, Started: a.recordWorker, Metrics: a.metrics,
	}
	claimed, err := home.FromEnvironment()
	if err != nil {
		return err
	}
	if options.Run.RulesCap, err = rulesCap(claimed); err != nil {
		return err
	}
	ctx, unwatch := whileOwner(ctx, claimed)
	defer unwatch()
	self := activities.Worker{Release: a.release(), Host: w.Host}
	if claimed != nil {
		// A stale worker neither polls nor sends.
		if err := claimed.Check(claimed.Dir); err != nil {
			return err
		}
		self.Release, self.Incarnation = claimed.Release, int64(claimed.Epoch)
	}
	for _, role := range roles {
		switch role {
		case worker.RoleRun:
			if a.metrics != nil {
				a.metrics.Watch(c, options.Namespace, a.log)
			}
			options.Admission = &admission.Admission{Client: c, Sites: registry, Host: w.Host, Worker: self}
		case worker.RoleChecks:
			options.Checks, err = a.checks(connection.Embedded, self)
		case worker.RoleBrowser:
			options.Browsers, err = a.openBrowsers(ctx, c, registry, self, claimed)
			defer closeBrowsers(options.Browsers)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(worker.Run(ctx, c, options), stale(ctx))
}

// release names the build of this worker in results.
func (a *app) release() string {
	return cmp.Or(a.settings.Worker.Deployment.BuildID, worker.Revision())
}

func (a *app) checks(embedded bool, self activities.Worker) (*checks.Checks, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	allowed := a.settings.Checks.Within(embedded, home)
	limits := checks.Limits{Roots: allowed.Roots, HTTPHosts: allowed.HTTPHosts, Env: allowed.Env}
	for _, command := range allowed.Commands {
		if command == config.AnyCommand {
			limits.AnyCommand = true
		} else {
			limits.Commands = append(limits.Commands, command)
		}
	}
	return checks.New(checks.Options{Limits: limits, Folder: allowed.OutputDir, Worker: self})
}

// openBrowsers takes the profile directories of all logins of this host. On an error it gives back what it took.
func (a *app) openBrowsers(
	ctx context.Context, c client.Client, registry *sites.Registry, self activities.Worker, claimed *home.Claimed,
) (map[string]worker.Browser, error) {
	opened := map[string]worker.Browser{}
	for _, b := range a.settings.Browsers {
		options, err := a.browserOptions(b, registry)
		if err != nil {
			closeBrowsers(opened)
			return nil, err
		}
		options.Arm, options.Runs, options.Worker = browser.NewArmer(c), browser.NewRuns(c), self
		if claimed != nil {
			options.Fence = claimed.Fence
		}
		live, err := browser.Open(ctx, options)
		if err != nil {
			closeBrowsers(opened)
			return nil, err
		}
		opened[b.Name] = worker.Browser{Browser: live, ProfileDir: b.ProfileDir, ReadSlots: b.ReadSlots}
	}
	return opened, nil
}

// browserOptions are the options of one login, without what only a worker has.
func (a *app) browserOptions(b config.Browser, registry *sites.Registry) (browser.Options, error) {
	site, err := registry.Site(b.Site)
	if err != nil {
		return browser.Options{}, fmt.Errorf("browser %s: %w", b.Name, err)
	}
	return browser.Options{
		Name: b.Name, Sites: registry, ProfileDir: b.ProfileDir, Executable: b.Executable, CDPURL: b.CDPURL,
		Headed: b.Headed.Resolve(site.Headed), NoSandbox: b.NoSandbox.Resolve(os.Geteuid() == 0), MaxTabs: b.MaxTabs,
		Screenshots: b.Screenshots, SnapshotDir: filepath.Join(a.settings.DataDir, "browsers", b.Name, "snapshots"),
		Log: a.log,
	}, nil
}

func closeBrowsers(opened map[string]worker.Browser) {
	ctx, cancel := context.WithTimeout(context.Background(), config.BrowserCloseTime)
	defer cancel()
	var failed error
	for _, b := range opened {
		failed = errors.Join(failed, b.Browser.Close(ctx))
	}
	if failed != nil {
		fmt.Fprintln(os.Stderr, "closing the browsers:", failed)
	}
}
