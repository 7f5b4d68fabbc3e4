package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"steward/activities/recovery"
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
			"goes on when this command ends.\n\n" +
			"Started with another build than the last one, it upgrades server and recovery: it ends the other `steward up`, saves the\n" +
			"server's database, and starts both. When they do not become healthy in time, the database is put back and the last build\n" +
			"runs again. An upgrade is refused while a release is under way.",
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
	r, err := a.recovery()
	if err != nil {
		return err
	}
	p, err := a.openPlatform()
	if err != nil {
		return err
	}
	own, err := p.takeOver(cmd.Context(), r)
	if err != nil {
		return err
	}
	defer own.Close()
	return a.upgraded(cmd, p, r)
}

// upgradeTime bounds an upgrade: that long no new work is admitted at most.
const upgradeTime = 5 * time.Minute

// upgraded runs the children on this build. When another one ran last, they have to prove themselves before anything else is
// started, or that one runs again.
func (a *app) upgraded(cmd *cobra.Command, p *platform, r *recovery.Recovery) error {
	if err := p.undo(); err != nil {
		return fmt.Errorf("an upgrade was interrupted, and the database cannot be put back: %w", err)
	}
	if !p.upgrades() {
		return a.supervise(cmd, p, r, p.commit)
	}
	if err := r.Idle(); err != nil {
		return exitWith(exitRefused, "nothing was upgraded: %w; run the last build: %s up", err, p.binary(p.record.Current))
	}
	giveBack, err := r.Hold(cmd.Context(), "upgrade", time.Now().Add(upgradeTime))
	if err != nil {
		return fmt.Errorf("nothing was upgraded: %w", err)
	}
	if err := p.begin(); err != nil {
		return errors.Join(fmt.Errorf("nothing was upgraded: %w", err), giveBack())
	}
	a.log.Info("server and recovery are upgraded", "from", p.record.Current[:12], "to", p.own[:12])
	proven := false
	err = a.supervise(cmd, p, r, func() error {
		proven = true
		return errors.Join(p.commit(), giveBack())
	})
	if proven || cmd.Context().Err() != nil {
		return errors.Join(err, giveBack()) // what was interrupted is put back at the next start
	}
	a.log.Error("the upgrade failed; the last build runs again", "error", err)
	return errors.Join(err, p.undo(), giveBack(), p.again())
}

// supervise runs the children. healthy is called once server and recovery are.
func (a *app) supervise(cmd *cobra.Command, p *platform, r *recovery.Recovery, healthy func() error) error {
	logs := filepath.Join(a.settings.DataDir, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return err
	}
	began := time.Now()
	var once sync.Once
	var failed error
	children := []supervisor.Child{
		{
			Name: "server", Args: childArgs(cmd, "server", "port", "ui-port"), Env: os.Environ(), LogFile: filepath.Join(logs, "server.log"),
			StopTimeout: serverStop, Ready: func(ctx context.Context) error { return a.serverReady(ctx, began) },
		},
		{
			Name: "recovery", Args: childArgs(cmd, "recovery", "stop-timeout"), Env: os.Environ(), LogFile: filepath.Join(logs, "recovery.log"),
			StopTimeout: a.settings.Worker.StopTimeout + 5*time.Second,
			Ready: func(context.Context) error {
				if err := recoveryReady(a.settings.DataDir, began); err != nil {
					return err
				}
				once.Do(func() { failed = healthy() })
				return failed
			},
		},
	}
	if !r.Installed(workerInstance) {
		children = append(children, supervisor.Child{
			Name: "worker", Args: childArgs(cmd, "worker", "roles", "stop-timeout"), Env: os.Environ(), LogFile: filepath.Join(logs, "worker.log"),
			StopTimeout: a.settings.Worker.StopTimeout + config.BrowserCloseTime + 5*time.Second,
			Ready:       func(context.Context) error { return workerReady(a.settings.DataDir, began) },
		})
	}
	return supervisor.Run(cmd.Context(), p.binary(p.own), children, a.log)
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
