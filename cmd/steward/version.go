package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"steward/worker"
)

func newVersionCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the revision of this binary", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			revision := cmp.Or(worker.Revision(), "unknown")
			return app.answer(map[string]string{"revision": revision, "go": runtime.Version()}, func(w io.Writer) {
				fmt.Fprintf(w, "steward %s, %s\n", revision, runtime.Version())
			})
		},
	}
}
