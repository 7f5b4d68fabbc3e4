package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"steward/activities/recovery"
	"steward/workflows/machine/kernel"
	"steward/workflows/release/policy"
)

func newReleaseBundlesCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "bundles INSTANCE", Short: "List the known-good bundles of an instance of this host, from its files alone", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := app.recovery()
			if err != nil {
				return err
			}
			whole, err := r.Bundles(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if whole == nil {
				whole = []recovery.Bundle{}
			}
			return app.answer(whole, func(w io.Writer) {
				if len(whole) == 0 {
					fmt.Fprintln(w, "no known-good bundle")
				}
				for _, b := range whole {
					database := "no database"
					if b.Database != nil {
						database = "with its database"
					}
					fmt.Fprintf(w, "%s  %s  by session %s, %s\n", shortHash(b.ID), b.At.Local().Format(time.DateTime), b.Session, database)
				}
			})
		},
	}
}

// newAbortCommand aborts what is open. Where nothing is, there is nothing to do, and that is no failure.
func newAbortCommand(app *app, m message) *cobra.Command {
	cmd := newMessageCommand(app, m, runs.findRelease)
	abort := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, done, err := app.runs(cmd.Context())
		if err != nil {
			return err
		}
		defer done()
		id, err := r.findRelease(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		found, err := r.describe(cmd.Context(), id)
		if err != nil && exitCode(err) != exitNotFound {
			return err
		}
		if found.Open {
			return abort(cmd, args)
		}
		return app.answer(map[string]any{"workflow_id": id, "decision": kernel.NoOp, "code": policy.CodeNothing}, func(w io.Writer) {
			fmt.Fprintf(w, "%s: no release is open; nothing to abort, the service stays as it is\n", id)
		})
	}
	return cmd
}
