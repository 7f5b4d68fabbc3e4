package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"steward/activities/recovery/home"
	"steward/config"
	"steward/worker/embedded"
	"steward/workflows/run/policy"
)

// isolate gives the candidate of a release a Temporal server, logins and folders of its own, whatever the settings say: it must
// not touch what the running release works on. For every other worker it does nothing. The function ends the server.
func (a *app) isolate(ctx context.Context) (func(), error) {
	claimed, err := home.FromEnvironment()
	if err != nil || claimed == nil {
		return func() {}, err
	}
	session, err := home.CandidateOf(claimed.Dir)
	if err != nil || session == "" {
		return func() {}, err
	}
	if filepath.Clean(a.settings.DataDir) != filepath.Clean(claimed.Dir) {
		return nil, fmt.Errorf("the candidate of session %s has its home in %s and its data in %s; write --data-dir {home} in the plan",
			session, claimed.Dir, a.settings.DataDir)
	}
	for _, variable := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"} {
		if err := os.Unsetenv(variable); err != nil {
			return nil, err
		}
	}
	s := &a.settings
	s.Temporal = config.Temporal{}
	s.Server.Port, s.Server.UIPort, s.Server.Postgres = 0, -1, ""
	s.Worker.Metrics = ""
	s.Checks.OutputDir = filepath.Join(s.DataDir, "checks")
	s.Browsers = slices.DeleteFunc(s.Browsers, func(b config.Browser) bool { return b.Mode == config.CDP })
	for i := range s.Browsers {
		s.Browsers[i].ProfileDir = filepath.Join(s.DataDir, "browsers", s.Browsers[i].Name, "profile")
	}
	server, err := embedded.Start(ctx, a.serverOptions())
	if err != nil {
		return nil, err
	}
	return func() {
		if err := server.Stop(); err != nil {
			a.log.Error("stop the candidate's server", "error", err)
		}
	}, nil
}

// claimEvery is the time between two looks at who owns the home.
const claimEvery = 500 * time.Millisecond

// whileOwner ends the context when another incarnation owns the home: a worker that was frozen during a switch and woken after
// it does not go on polling. Until then it renews the record of the worker in the home. The function ends the watch.
func whileOwner(ctx context.Context, claimed *home.Claimed) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	if claimed != nil {
		go func() {
			tick := time.NewTicker(claimEvery)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					if err := claimed.Check(claimed.Dir); errors.Is(err, home.ErrStale) {
						cancel(err)
						return
					}
					now := time.Now()
					_ = os.Chtimes(workerFile(claimed.Dir), now, now) // where there is none yet, it does not serve yet
				}
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// stale is why a worker had to stop that another incarnation has overtaken; nil when it was not.
func stale(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, home.ErrStale) {
		return err
	}
	return nil
}

// rulesCap is the rules version to which the runs of this worker are held; 0 for none.
func rulesCap(claimed *home.Claimed) (int, error) {
	if claimed == nil {
		return 0, nil
	}
	return home.RulesCap(claimed.Dir, claimed.Release, policy.CurrentRules)
}

func newWorkerReadyCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "ready", Short: "Tell whether the worker of the data folder serves its queues", Args: cobra.NoArgs,
		Long: "Exit code 0: the process that owns the data folder has said that it serves, and lives. Exit code 75: not yet. It asks no server; a\n" +
			"release plan for Steward itself uses it as service.ready.",
		RunE: func(*cobra.Command, []string) error {
			w, err := servingWorker(app.settings.DataDir)
			if err != nil {
				return exitWith(exitInconclusive, "%w", err)
			}
			return app.answer(w, func(out io.Writer) {
				fmt.Fprintf(out, "process %d serves since %s\n", w.PID, w.StartedAt.Format(time.RFC3339))
			})
		},
	}
}

// silence is how long a living worker is quiet at most: it renews its record every claimEvery.
const silence = 20 * time.Second

// servingWorker is the record of the worker that owns a data folder and serves.
func servingWorker(dataDir string) (workerRecord, error) {
	w, err := readWorkerRecord(dataDir)
	if err != nil {
		return w, err
	}
	owner, err := home.ReadIncarnation(dataDir)
	if err != nil {
		return w, err
	}
	if w.PID != owner.Owner.PID || !owner.Owner.Lives() {
		return w, fmt.Errorf("process %d owns %s in epoch %d, and the last to say that it serves was process %d", owner.Owner.PID, dataDir, owner.Epoch, w.PID)
	}
	info, err := os.Stat(workerFile(dataDir))
	if err == nil && time.Since(info.ModTime()) > silence {
		err = fmt.Errorf("process %d was last heard of at %s; it hangs or is frozen", w.PID, info.ModTime().Format(time.RFC3339))
	}
	return w, err
}
