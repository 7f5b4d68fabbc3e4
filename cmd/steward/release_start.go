package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"steward/config"
	"steward/workflows"
	"steward/workflows/machine/strict"
	"steward/workflows/release/plan"
	"steward/workflows/release/policy"
	"steward/workflows/run/goal"
)

func newReleaseStartCommand(app *app) *cobra.Command {
	var file, host string
	var wait time.Duration
	var watch bool
	cmd := &cobra.Command{
		Use: "start --plan PLAN", Short: "Start a release from a plan in YAML or JSON", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			raw, p, err := readPlan(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			r, done, err := app.runs(ctx)
			if err != nil {
				return err
			}
			defer done()
			started, err := r.startRelease(ctx, p, raw, host)
			if err != nil {
				return err
			}
			app.note("started %s", started.WorkflowID)
			if started, err = r.awaitRelease(ctx, started, host, wait); err != nil {
				return err
			}
			if watch {
				return app.watchRelease(ctx, r, started.WorkflowID)
			}
			return app.answer(started, func(w io.Writer) {
				fmt.Fprintf(w, "%s is %s\n", started.WorkflowID, started.Phase)
				if started.WebUI != "" {
					fmt.Fprintln(w, started.WebUI)
				}
			})
		},
	}
	cmd.Flags().StringVar(&file, "plan", "", "the plan; - reads standard input")
	cmd.Flags().StringVar(&host, "host", config.Host(), "host whose recovery process carries the release out")
	cmd.Flags().DurationVar(&wait, "wait", 20*time.Second, "longest wait until the start was accepted or refused; 0 does not wait")
	cmd.Flags().BoolVar(&watch, "watch", false, "then watch the release until it ends")
	cobra.CheckErr(cmd.MarkFlagRequired("plan"))
	return cmd
}

// readPlan reads a plan, makes JSON of it and checks what can be checked here.
func readPlan(stdin io.Reader, file string) (json.RawMessage, plan.Plan, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(stdin, strict.MaxBytes+1))
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, plan.Plan{}, exitWith(exitUsage, "the plan cannot be read: %w", err)
	}
	raw, err := goal.FromYAML(data)
	var unreadable *strict.Error
	if errors.As(err, &unreadable) {
		return nil, plan.Plan{}, refusedStart(exitUsage, problemLines(unreadable.Problems))
	}
	if err != nil {
		return nil, plan.Plan{}, err
	}
	p, problems := plan.Decode(raw)
	if len(problems) > 0 {
		return nil, p, refusedStart(exitUsage, problemLines(problems))
	}
	return raw, p, nil
}

// startRelease starts a session. The workflow id is the lock: one open session per instance.
func (r runs) startRelease(ctx context.Context, p plan.Plan, raw json.RawMessage, host string) (releaseRow, error) {
	id := plan.WorkflowID(p.Instance)
	run, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueRecovery(host),
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            fmt.Sprintf("release %s of %s", shortHash(p.Source.Revision), p.Instance),
	}, workflows.TypeReleaseSession, raw)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return releaseRow{}, exitWith(exitRefused, "%s is already open; one instance has one release at a time: `steward release show %s`", id, p.Instance)
	case err != nil:
		return releaseRow{}, fmt.Errorf("start %s: %w", id, err)
	}
	return releaseRow{
		WorkflowID: id, RunID: run.GetRunID(), Phase: "started", Open: true, Started: time.Now(), WebUI: r.link(id, run.GetRunID()),
	}, nil
}

// awaitRelease waits until the start was accepted, and returns its refusal as an error.
func (r runs) awaitRelease(ctx context.Context, started releaseRow, host string, wait time.Duration) (releaseRow, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for wait > 0 {
		var state policy.State
		err := r.query(ctx, started.WorkflowID, started.RunID, workflows.QueryState, &state)
		switch {
		case err == nil && state.Refused():
			return started, refusedStart(exitRefused, state.End.Problems)
		case err == nil && state.Plan != nil:
			started.Phase = state.Shown()
			return started, nil
		}
		select {
		case <-ctx.Done():
			return started, fmt.Errorf("%s is started, but no recovery process on %s accepted it within %v; is `steward recovery` running there? %w",
				started.WorkflowID, host, wait, errors.Join(err, ctx.Err()))
		case <-time.After(100 * time.Millisecond):
		}
	}
	return started, nil
}
