// Command steward keeps conversations with AI assistants working until their goals are verified done.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"steward/config"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := execute(ctx, newRoot())
	if err != nil && ctx.Err() != nil {
		err = &exitError{exitInterrupted, err}
	}
	stop()
	code := exitCode(err)
	if code != 0 && code != exitInterrupted {
		fmt.Fprintln(os.Stderr, "steward:", err)
	}
	os.Exit(code)
}

// execute runs the command. What goes wrong before its own code begins is wrong usage.
func execute(ctx context.Context, root *cobra.Command) error {
	begun := false
	var wrap func(*cobra.Command)
	wrap = func(cmd *cobra.Command) {
		if run := cmd.RunE; run != nil {
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				begun = true
				return run(cmd, args)
			}
		}
		for _, sub := range cmd.Commands() {
			wrap(sub)
		}
	}
	wrap(root)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !begun {
		return exitWith(exitUsage, "%w; see `%s --help`", err, cmd.CommandPath())
	}
	return err
}

// group is a command that only holds others.
func group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

func newRoot() *cobra.Command {
	app := &app{}
	var format string
	root := group("steward", "Keep conversations with AI assistants working until their goals are verified done")
	root.SilenceErrors, root.SilenceUsage = true, true
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		return app.load(cmd, format)
	}
	root.PersistentFlags().StringVarP(&format, "output", "o", "text", "how to answer: text or json")
	config.AddFlags(root.PersistentFlags(), "data_dir", "sites_dir", "log.level", "log.format")
	root.AddCommand(
		newUpCommand(app), newServerCommand(app), newWorkerCommand(app), newRecoveryCommand(app), newRunCommand(app),
		newInboxCommand(app), newDiscoverCommand(app), newReleaseCommand(app),
		newReplayCommand(app), newBrowserCommand(app),
		newSitesCommand(app), newDoctorCommand(app), newSetupCommand(app), newDemoCommand(app), newChatlabCommand(app), newVersionCommand(app),
	)
	return root
}

// connectionFlags are for commands that talk to a Temporal server.
func connectionFlags(cmd *cobra.Command) {
	config.AddFlags(cmd.PersistentFlags(), "temporal.address", "temporal.namespace", "temporal.profile")
}

func newRunCommand(app *app) *cobra.Command {
	cmd := group("run", "Start, list, watch and steer runs")
	connectionFlags(cmd)
	cmd.AddCommand(
		newRunStartCommand(app), newRunListCommand(app), newRunShowCommand(app), newRunWhyCommand(app), newRunProofCommand(app),
		newRunWatchCommand(app), newRunExportCommand(app),
	)
	for _, m := range messages {
		cmd.AddCommand(newMessageCommand(app, m, runs.find))
	}
	return cmd
}
