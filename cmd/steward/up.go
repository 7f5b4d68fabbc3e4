package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"steward/config"
	"steward/worker/embedded"
	"steward/worker/supervisor"
)

func newUpCommand(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "up", Short: "Run server, worker and recovery as three processes, and start again what dies", Args: cobra.NoArgs,
		Long: "Run the embedded server, one worker and the recovery process as child processes of this one. A child that dies is\n" +
			"started again; a child that never becomes ready ends everything with its reason. Data is under --data-dir, logs of the\n" +
			"children in its folder logs too. Stop with Ctrl-C or SIGTERM.\n\n" +
			"Once a release of the instance " + workerInstance + " is installed, its worker is the recovery process's to run and to replace, and\n" +
			"goes on when this command ends.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return app.up(cmd)
		},
	}
	config.AddFlags(cmd.Flags(), "server.port", "server.ui_port", "worker.roles", "worker.stop_timeout")
	return cmd
}

func (a *app) up(cmd *cobra.Command) error {
	if t := a.settings.Temporal; t.Address != "" || t.Profile != "" {
		return exitWith(exitUsage, "`steward up` runs its own Temporal server, but temporal.address or temporal.profile is set; "+
			"unset it, or run `steward worker` against that server")
	}
	// The children talk to this server, whatever the caller's shell points the temporal CLI to.
	for _, variable := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"} {
		if err := os.Unsetenv(variable); err != nil {
			return err
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	logs := filepath.Join(a.settings.DataDir, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return err
	}
	began := time.Now()
	children := []supervisor.Child{{
		Name: "server", Args: childArgs(cmd, "server", "port", "ui-port"), Env: os.Environ(), LogFile: filepath.Join(logs, "server.log"),
		StopTimeout: serverStop, Ready: func(ctx context.Context) error { return a.serverReady(ctx, began) },
	}}
	r, err := a.recovery()
	if err != nil {
		return err
	}
	if !r.Installed(workerInstance) {
		children = append(children, supervisor.Child{
			Name: "worker", Args: childArgs(cmd, "worker", "roles", "stop-timeout"), Env: os.Environ(), LogFile: filepath.Join(logs, "worker.log"),
			StopTimeout: a.settings.Worker.StopTimeout + config.BrowserCloseTime + 5*time.Second,
			Ready:       func(context.Context) error { return workerReady(a.settings.DataDir, began) },
		})
	}
	children = append(children, supervisor.Child{
		Name: "recovery", Args: childArgs(cmd, "recovery", "stop-timeout"), Env: os.Environ(), LogFile: filepath.Join(logs, "recovery.log"),
		StopTimeout: a.settings.Worker.StopTimeout + 5*time.Second,
		Ready:       func(context.Context) error { return recoveryReady(a.settings.DataDir, began) },
	})
	return supervisor.Run(cmd.Context(), exe, children, a.log)
}

// workerInstance is the instance whose service is the worker of this host.
const workerInstance = "steward"

// serverStop is longer than the server takes to stop; a killed one loses nothing but starts slower.
const serverStop = 20 * time.Second

// childArgs hands on the flags that the user gave and that the child has.
func childArgs(cmd *cobra.Command, verb string, own ...string) []string {
	args := []string{verb}
	for _, name := range append([]string{"config", "data-dir", "sites-dir", "log-level", "log-format"}, own...) {
		if flag := cmd.Flag(name); flag != nil && flag.Changed {
			args = append(args, "--"+name+"="+strings.Trim(flag.Value.String(), "[]"))
		}
	}
	return args
}

// serverReady tells whether the server that was started since then answers.
func (a *app) serverReady(ctx context.Context, since time.Time) error {
	endpoint, err := embedded.ReadEndpoint(a.settings.ServerDir())
	if err != nil {
		return err
	}
	if endpoint.StartedAt.Before(since) {
		return errors.New("the server has not written its address yet")
	}
	connection, err := a.settings.Connection()
	if err != nil {
		return err
	}
	c, err := dial(ctx, connection, currentUser(), a.log)
	if err != nil {
		return err
	}
	c.Close()
	return nil
}

// workerRecord is what a running worker tells of itself in the data folder.
type workerRecord struct {
	PID       int       `json:"pid"`
	Roles     []string  `json:"roles"`
	Host      string    `json:"host"`
	Release   string    `json:"release,omitempty"`
	StartedAt time.Time `json:"started_at"`
}

func workerFile(dataDir string) string { return filepath.Join(dataDir, "worker.json") }

func readWorkerRecord(dataDir string) (workerRecord, error) {
	var w workerRecord
	data, err := os.ReadFile(workerFile(dataDir))
	if err != nil {
		return w, err
	}
	return w, json.Unmarshal(data, &w)
}

// recordWorker writes down that the worker of this process has started.
func (a *app) recordWorker() error {
	s := a.settings.Worker
	data, err := json.Marshal(workerRecord{os.Getpid(), s.Roles, s.Host, a.release(), time.Now()})
	if err != nil {
		return err
	}
	return writeFile(workerFile(a.settings.DataDir), append(data, '\n'))
}

func workerReady(dataDir string, since time.Time) error {
	w, err := readWorkerRecord(dataDir)
	if err != nil {
		return err
	}
	if w.StartedAt.Before(since) {
		return fmt.Errorf("the worker has not started its queues yet (the record is of process %d)", w.PID)
	}
	return nil
}
