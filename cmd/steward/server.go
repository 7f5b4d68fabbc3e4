package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"steward/config"
	"steward/worker"
	"steward/worker/embedded"
)

func newServerCommand(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "server", Short: "Run the embedded Temporal server with its Web UI, until it is told to stop", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			server, err := embedded.Start(cmd.Context(), app.serverOptions())
			if err != nil {
				return err
			}
			endpoint, err := embedded.ReadEndpoint(app.settings.ServerDir())
			if err == nil {
				err = app.answer(endpoint, func(w io.Writer) {
					fmt.Fprintf(w, "Temporal %s, namespace %s, Web UI %s\n", endpoint.Address, endpoint.Namespace, cmp.Or(endpoint.UI, "none"))
				})
			}
			if err != nil {
				_ = server.Stop()
				return err
			}
			<-cmd.Context().Done()
			return server.Stop()
		},
	}
	config.AddFlags(cmd.Flags(), "server.port", "server.ui_port")
	return cmd
}

func (a *app) serverOptions() embedded.Options {
	s := a.settings.Server
	return embedded.Options{
		DataDir: a.settings.ServerDir(), Host: s.Host, Port: s.Port, UIPort: s.UIPort, Namespace: s.Namespace,
		Logger: a.log, SearchAttributes: worker.SearchAttributes(),
	}
}
