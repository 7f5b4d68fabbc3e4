package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"steward/config"
	"steward/config/sites"
	"steward/worker"
	"steward/workflows/machine"
)

// app is what every command shares: the settings, the way to answer and the log.
type app struct {
	output
	settings config.Settings
	log      *slog.Logger
	// metrics takes those of the connections; nil for none.
	metrics *worker.Metrics
}

// load reads settings and output format, before a command runs.
func (a *app) load(cmd *cobra.Command, format string) error {
	var err error
	if a.output, err = newOutput(cmd.OutOrStdout(), cmd.ErrOrStderr(), format); err != nil {
		return err
	}
	if a.settings, err = config.Load(cmd.Flags()); err != nil {
		return &exitError{exitUsage, err}
	}
	a.log = slog.New(a.settings.Log.Handler(a.err))
	return nil
}

func (a *app) sites() (*sites.Registry, error) { return sites.Load(a.settings.SitesDir) }

// dial connects to the Temporal server of the settings. The identity is what journals name.
func (a *app) dial(ctx context.Context, identity string) (client.Client, config.Connection, error) {
	connection, err := a.settings.Connection()
	if err != nil {
		return nil, connection, err
	}
	if a.metrics != nil {
		connection.Options.MetricsHandler = a.metrics.Handler()
	}
	c, err := dial(ctx, connection, identity, a.log)
	return c, connection, err
}

func dial(ctx context.Context, connection config.Connection, identity string, log *slog.Logger) (client.Client, error) {
	options := connection.Options
	options.Logger = sdklog.NewStructuredLogger(log)
	options.Identity = identity
	options.Interceptors = append(options.Interceptors, machine.Caller(identity))
	c, err := client.DialContext(ctx, options)
	if err != nil {
		hint := "is it running?"
		if connection.Embedded {
			hint = "start it with `steward up`"
		}
		return nil, fmt.Errorf("no Temporal server answers at %s: %w; %s", cmp.Or(options.HostPort, client.DefaultHostPort), err, hint)
	}
	return c, nil
}

// runs connects as an operator. The function gives the connection back.
func (a *app) runs(ctx context.Context) (runs, func(), error) {
	c, connection, err := a.dial(ctx, currentUser())
	if err != nil {
		return runs{}, nil, err
	}
	return newRuns(c, connection), c.Close, nil
}

func newRuns(c client.Client, connection config.Connection) runs {
	return runs{
		client: c, namespace: cmp.Or(connection.Options.Namespace, client.DefaultNamespace), ui: strings.TrimSuffix(connection.UI, "/"),
	}
}
