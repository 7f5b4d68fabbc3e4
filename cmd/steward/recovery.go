package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"steward/activities"
	"steward/activities/recovery"
	"steward/activities/recovery/proof"
	"steward/activities/recovery/service"
	"steward/config"
	"steward/worker"
)

func newRecoveryCommand(app *app) *cobra.Command {
	cmd := &cobra.Command{
		Use: "recovery", Short: "Run the recovery process of this host, until it is told to stop", Args: cobra.NoArgs,
		Long: "Make the active release of every instance run, then look after it and carry releases out. An operation that was\n" +
			"interrupted is finished first, in the safe direction. All of that needs no Temporal server; new releases do, and wait\n" +
			"until one answers.",
		RunE: func(cmd *cobra.Command, _ []string) error { return app.recover(cmd.Context()) },
	}
	connectionFlags(cmd)
	config.AddFlags(cmd.Flags(), "worker.stop_timeout")
	cmd.AddCommand(newRecoveryStatusCommand(app), newRecoveryVerifyCommand(app), newRecoveryInstallCommand(app), newLaunchCommand())
	return cmd
}

// recovery is the recovery of the settings' data folder.
func (a *app) recovery() (*recovery.Recovery, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(filepath.Join(a.settings.DataDir, "recovery"))
	if err != nil {
		return nil, err
	}
	configDir, err := os.UserConfigDir()
	if err != nil {
		return nil, err
	}
	return recovery.New(recovery.Options{
		Root: root, Launcher: []string{exe, "recovery", launchVerb}, UnitDir: filepath.Join(configDir, "systemd", "user"),
		Worker: activities.Worker{Release: a.release(), Host: a.settings.Worker.Host}, Log: a.log,
	})
}

// recover makes the active releases run and then serves until ctx ends.
func (a *app) recover(ctx context.Context) error {
	r, err := a.recovery()
	if err != nil {
		return err
	}
	own, err := r.Own()
	if err != nil {
		return err
	}
	defer own.Close()
	if err := r.Recover(ctx); err != nil {
		a.log.Error("not every instance could be recovered", "error", err)
	}
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		r.Watch(ctx)
	}()
	a.serveReleases(ctx, r)
	<-watched
	return nil
}

// connectEvery is the time between two tries to reach a Temporal server.
const connectEvery = 5 * time.Second

// serveReleases carries releases out whenever a Temporal server answers. Without one the host is still looked after.
func (a *app) serveReleases(ctx context.Context, r *recovery.Recovery) {
	for ctx.Err() == nil {
		err := a.serveOnce(ctx, r)
		if ctx.Err() != nil {
			return
		}
		a.log.Warn("releases wait for a Temporal server", "error", err, "next_try_in", connectEvery)
		select {
		case <-ctx.Done():
		case <-time.After(connectEvery):
		}
	}
}

func (a *app) serveOnce(ctx context.Context, r *recovery.Recovery) error {
	c, connection, err := a.dial(ctx, a.workerIdentity())
	if err != nil {
		return err
	}
	defer c.Close()
	registry, err := a.sites()
	if err != nil {
		return err
	}
	w := a.settings.Worker
	return worker.Run(ctx, c, worker.Options{
		Namespace: cmp.Or(connection.Options.Namespace, client.DefaultNamespace), Host: w.Host, Roles: []worker.Role{worker.RoleRecovery},
		Recovery: recovery.Operations{
			Recovery: r, Beat: recovery.NewBeat(c), Proof: proof.Proof{Client: c, Sites: registry, Host: w.Host},
		},
		StopTimeout: w.StopTimeout, StickyTimeout: w.StickyTimeout, Log: a.log, Started: a.recordRecovery,
	})
}

func newRecoveryStatusCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Tell what every instance of this host is, from its files alone", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := app.recovery()
			if err != nil {
				return err
			}
			all, err := r.Status(cmd.Context())
			if err != nil {
				return err
			}
			return app.answer(all, func(w io.Writer) {
				if len(all) == 0 {
					fmt.Fprintln(w, "no instance is installed here; `steward recovery install` does that")
				}
				for _, s := range all {
					app.writeStatus(w, s)
				}
			})
		},
	}
}

func (a *app) writeStatus(w io.Writer, s recovery.Status) {
	serving, colour := "does not serve", red
	if s.Serving.Ready {
		serving, colour = fmt.Sprintf("serves, process %d, incarnation %d", s.Serving.Process.PID, s.Serving.Incarnation), green
	}
	fmt.Fprintf(w, "%s: release %.12s %s\n", a.paint(bold, s.Instance), s.Authority.Active, a.paint(colour, serving))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(w, "  %-12s %s\n", name, text)
		}
	}
	line("revision", s.Revision)
	line("home", s.Serving.Home)
	line("previous", s.Authority.Previous)
	if last := s.Authority.LastOperation; last.Kind != "" {
		of := ""
		if last.Session != "" {
			of = " of session " + last.Session
		}
		line("last", fmt.Sprintf("%s%s: %s", last.Kind, of, cmp.Or(s.Outcome, "done")))
	}
	if s.Operation != nil {
		o := s.Operation
		line("operation", fmt.Sprintf("session %s, since %s, last step %s", o.Session, o.Since.Format(time.RFC3339), o.Last))
	}
	if s.Fence != nil {
		line("fence", "no new work until "+s.Fence.Deadline.Format(time.RFC3339)+" at the latest")
	}
	line("failure", s.Failure)
	line("attention", s.Attention)
	for _, id := range s.KnownGood {
		line("known-good", id)
	}
	line("problem", s.Problem)
}

func newRecoveryVerifyCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Prove stored releases, backups, known-good bundles and the live service once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := app.recovery()
			if err != nil {
				return err
			}
			found, err := r.Verify(cmd.Context())
			if err != nil {
				return err
			}
			err = app.answer(found, func(w io.Writer) {
				for _, f := range found {
					if f.OK {
						fmt.Fprintf(w, "%s %s: %s\n", app.paint(green, "✓"), f.Instance, f.What)
					} else {
						fmt.Fprintf(w, "%s %s: %s: %s\n", app.paint(red, "✗"), f.Instance, f.What, f.Detail)
					}
				}
			})
			if err == nil && slices.ContainsFunc(found, func(f recovery.Finding) bool { return !f.OK }) {
				err = exitWith(exitFailed, "something does not hold; see above")
			}
			return err
		},
	}
}

func newRecoveryInstallCommand(app *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "install", Short: "Build and start the first release of an instance", Args: cobra.NoArgs,
		Long: "Build the plan's exact revision, store it, start it as the plan's service and verify it. Later releases are made by\n" +
			"sessions, which go back to this one when theirs fails.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, p, err := readPlan(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			r, err := app.recovery()
			if err != nil {
				return err
			}
			release, err := r.Install(cmd.Context(), p)
			if err != nil {
				return err
			}
			return app.answer(release, func(w io.Writer) {
				fmt.Fprintf(w, "%s runs release %s\n", p.Instance, release.Tree)
			})
		},
	}
	cmd.Flags().StringVar(&file, "plan", "", "the plan; - reads standard input")
	cobra.CheckErr(cmd.MarkFlagRequired("plan"))
	return cmd
}

const launchVerb = "launch"

// newLaunchCommand is how recovery starts a service: the process takes the service's lock and becomes it.
func newLaunchCommand() *cobra.Command {
	return &cobra.Command{
		Use: launchVerb + " SPEC", Hidden: true, Args: cobra.ExactArgs(1),
		// Settings of this process are not the service's business.
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE:              func(_ *cobra.Command, args []string) error { return service.Launch(args[0]) },
	}
}

// recoveryRecord is what a running recovery process tells of itself in the data folder.
type recoveryRecord struct {
	PID       int       `json:"pid"`
	StartedAt time.Time `json:"started_at"`
}

func recoveryFile(dataDir string) string { return filepath.Join(dataDir, "recovery.json") }

// recordRecovery writes down that releases are served.
func (a *app) recordRecovery() error {
	data, err := json.Marshal(recoveryRecord{os.Getpid(), time.Now()})
	if err != nil {
		return err
	}
	return writeFile(recoveryFile(a.settings.DataDir), append(data, '\n'))
}

// recoveryReady tells whether the recovery process that was started since then serves releases.
func recoveryReady(dataDir string, since time.Time) error {
	data, err := os.ReadFile(recoveryFile(dataDir))
	if err != nil {
		return err
	}
	var record recoveryRecord
	if err := json.Unmarshal(data, &record); err != nil {
		return err
	}
	if record.StartedAt.Before(since) {
		return errors.New("the recovery process does not serve releases yet")
	}
	return nil
}
