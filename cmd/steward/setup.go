package main

import (
	"io"

	"github.com/spf13/cobra"

	"steward/cmd/steward/setup"
)

func newSetupCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "setup", Short: "Get what a browser worker needs: the Playwright driver and Chromium; safe to repeat", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			progress := app.out
			if app.json {
				progress = app.err
			}
			err := setup.Run(cmd.Context(), progress)
			if app.json {
				return firstError(app.answer(setup.Check(cmd.Context()), func(io.Writer) {}), err)
			}
			return err
		},
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
