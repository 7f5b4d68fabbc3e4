package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"steward/config"
	"steward/worker"
	"steward/worker/embedded"
)

func newServerCommand(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "server", Short: "Run the embedded Temporal server with its Web UI, until it is told to stop", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := refusePasswordFlag(cmd); err != nil {
				return err
			}
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
			select {
			case <-cmd.Context().Done():
				return server.Stop()
			case err := <-server.Lost():
				return errors.Join(err, server.Stop())
			}
		},
	}
	config.AddFlags(cmd.Flags(), "server.port", "server.ui_port", "server.postgres")
	return cmd
}

// refusePasswordFlag refuses a password where every user of the machine could read it.
func refusePasswordFlag(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup("postgres")
	if flag == nil || !flag.Changed {
		return nil
	}
	if u, err := url.Parse(flag.Value.String()); err == nil {
		if _, given := u.User.Password(); !given && !u.Query().Has("password") {
			return nil
		}
	}
	return exitWith(exitUsage, "--postgres: not an address, or it holds a password, which the process list would show; "+
		"set PGPASSWORD, or give the whole address as STEWARD_SERVER_POSTGRES or as server.postgres in the settings file")
}

func (a *app) serverOptions() embedded.Options {
	s := a.settings.Server
	return embedded.Options{
		DataDir: a.settings.ServerDir(), Host: s.Host, Port: s.Port, UIPort: s.UIPort, Namespace: s.Namespace, Postgres: s.Postgres,
		Logger: a.log, SearchAttributes: worker.SearchAttributes(),
	}
}
