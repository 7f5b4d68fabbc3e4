package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"steward/activities/admission"
	"steward/workflows"
	"steward/workflows/discover/scan"
)

func newDiscoverCommand(app *app) *cobra.Command {
	cmd := group("discover", "Put conversations of a project to work as they appear")
	connectionFlags(cmd)
	cmd.AddCommand(newDiscoverStartCommand(app), newDiscoverListCommand(app), newDiscoverShowCommand(app), newDiscoverStopCommand(app))
	return cmd
}

// scanRow is a scan that is repeated, or a single one.
type scanRow struct {
	ID     string    `json:"id"`
	Every  string    `json:"every,omitempty"`
	Paused bool      `json:"paused,omitempty"`
	Last   time.Time `json:"last,omitzero"`
	// LastRun is the workflow id of the last scan.
	LastRun string    `json:"last_run,omitempty"`
	Next    time.Time `json:"next,omitzero"`
}

func newDiscoverStartCommand(app *app) *cobra.Command {
	var file string
	var every time.Duration
	var once bool
	cmd := &cobra.Command{
		Use: "start -f SCAN", Short: "Scan the page of a project now and at an interval, and enroll what the input chooses", Args: cobra.NoArgs,
		Long: "Create a Temporal Schedule that starts a DiscoveryScan now and at every interval. With --once a single scan is made, and\n" +
			"its result shown.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := readGoal(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			registry, err := app.sites()
			if err != nil {
				return err
			}
			resolved, problems := admission.ResolveScan(raw, registry)
			switch {
			case len(problems) > 0:
				return exitWith(exitUsage, "%s:\n- %s", workflows.FailureScanRefused, strings.Join(problemLines(problems), "\n- "))
			case every < time.Minute:
				return exitWith(exitUsage, "--every is %v; it must be at least 1m", every)
			}
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			if once {
				return app.scanOnce(cmd, r, resolved, raw)
			}
			return app.schedule(cmd, r, resolved, raw, every)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the scan in YAML or JSON; - reads standard input")
	cmd.Flags().DurationVar(&every, "every", time.Hour, "time between two scans")
	cmd.Flags().BoolVar(&once, "once", false, "make one scan, and no schedule")
	cobra.CheckErr(cmd.MarkFlagRequired("file"))
	return cmd
}

func (a *app) schedule(cmd *cobra.Command, r runs, s admission.ResolvedScan, raw json.RawMessage, every time.Duration) error {
	_, err := r.client.ScheduleClient().Create(cmd.Context(), client.ScheduleOptions{
		ID: s.WorkflowID, Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}},
		Action: &client.ScheduleWorkflowAction{
			ID: s.WorkflowID, Workflow: workflows.TypeDiscoveryScan, Args: []any{raw}, TaskQueue: workflows.QueueRun,
			StaticSummary: "scan of project " + s.Project, StaticDetails: s.Scan.PageURL,
		},
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: every, TriggerImmediately: true,
	})
	var already *serviceerror.AlreadyExists
	switch {
	case errors.As(err, &already), errors.Is(err, temporal.ErrScheduleAlreadyRunning):
		return exitWith(exitRefused, "%s is scanned already; `steward discover stop %[1]s` first to change it", s.WorkflowID)
	case err != nil:
		return fmt.Errorf("schedule %s: %w", s.WorkflowID, err)
	}
	started := scanRow{ID: s.WorkflowID, Every: every.String()}
	return a.answer(started, func(w io.Writer) {
		fmt.Fprintf(w, "%s is scanned now and every %s; `steward discover show %[1]s` tells what was found\n", started.ID, started.Every)
	})
}

func (a *app) scanOnce(cmd *cobra.Command, r runs, s admission.ResolvedScan, raw json.RawMessage) error {
	run, err := r.client.ExecuteWorkflow(cmd.Context(), client.StartWorkflowOptions{
		ID: s.WorkflowID, TaskQueue: workflows.QueueRun, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		StaticSummary:            "scan of project " + s.Project, StaticDetails: s.Scan.PageURL,
	}, workflows.TypeDiscoveryScan, raw)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return exitWith(exitRefused, "%s is being scanned; `steward discover show %[1]s`", s.WorkflowID)
	case err != nil:
		return fmt.Errorf("start %s: %w", s.WorkflowID, err)
	}
	a.note("started %s", run.GetID())
	var result scan.Result
	if err := run.Get(cmd.Context(), &result); err != nil {
		return scanFailure(err)
	}
	return a.answer(result, func(w io.Writer) { writeScan(w, result) })
}

// scanFailure is why a scan failed, in the words of the scan.
func scanFailure(err error) error {
	var failed *temporal.ApplicationError
	if errors.As(err, &failed) {
		return exitWith(exitRefused, "%s", failed.Message())
	}
	return err
}

func newDiscoverStopCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "stop ID", Short: "End the scans of a project; the runs that they started go on", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			err = r.client.ScheduleClient().GetHandle(cmd.Context(), args[0]).Delete(cmd.Context())
			var missing *serviceerror.NotFound
			if errors.As(err, &missing) {
				return exitWith(exitNotFound, "no project is scanned as %s; see `steward discover list`", args[0])
			}
			if err != nil {
				return fmt.Errorf("stop %s: %w", args[0], err)
			}
			return app.answer(map[string]string{"id": args[0], "status": "stopped"}, func(w io.Writer) {
				fmt.Fprintf(w, "%s is not scanned any more\n", args[0])
			})
		},
	}
}
