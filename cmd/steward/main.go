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
	err := newRoot().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "steward:", err)
	}
	os.Exit(exitCode(err))
}

func newRoot() *cobra.Command {
	app := &app{}
	var format string
	root := &cobra.Command{
		Use:           "steward",
		Short:         "Keep conversations with AI assistants working until their goals are verified done",
		SilenceErrors: true, SilenceUsage: true,
		Args: cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			return app.load(cmd, format)
		},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitWith(exitUsage, "%w\nSee `%s --help`", err, cmd.CommandPath())
	})
	root.PersistentFlags().StringVarP(&format, "output", "o", "text", "how to answer: text or json")
	config.AddFlags(root.PersistentFlags(), "data_dir", "sites_dir", "log.level", "log.format")
	root.AddCommand(
		newUpCommand(app), newServerCommand(app), newWorkerCommand(app), newRunCommand(app), newBrowserCommand(app),
		newSitesCommand(app), newDoctorCommand(app), newSetupCommand(app), newDemoCommand(app), newChatlabCommand(app), newVersionCommand(app),
	)
	return root
}

// connectionFlags are for commands that talk to a Temporal server.
func connectionFlags(cmd *cobra.Command) {
	config.AddFlags(cmd.PersistentFlags(), "temporal.address", "temporal.namespace", "temporal.profile")
}

func newRunCommand(app *app) *cobra.Command {
	cmd := &cobra.Command{Use: "run", Short: "Start, list, watch and steer runs", Args: cobra.NoArgs}
	connectionFlags(cmd)
	cmd.AddCommand(
		newRunStartCommand(app), newRunListCommand(app), newRunShowCommand(app), newRunWhyCommand(app),
		newRunWatchCommand(app), newRunExportCommand(app),
	)
	for _, m := range messages {
		cmd.AddCommand(newMessageCommand(app, m))
	}
	return cmd
}
