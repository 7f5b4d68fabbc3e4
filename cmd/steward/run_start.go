package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"steward/activities/admission"
	"steward/workflows"
	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
)

func newRunStartCommand(app *app) *cobra.Command {
	var file string
	var wait time.Duration
	var watch bool
	cmd := &cobra.Command{
		Use: "start -f GOAL", Short: "Start a run from a goal in YAML or JSON", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			raw, err := readGoal(cmd.InOrStdin(), file)
			if err != nil {
				return err
			}
			registry, err := app.sites()
			if err != nil {
				return err
			}
			start, problems := admission.Resolve(raw, registry, "")
			if len(problems) > 0 {
				return refusedStart(exitUsage, problemLines(problems))
			}
			r, done, err := app.runs(ctx)
			if err != nil {
				return err
			}
			defer done()
			started, err := r.start(ctx, start, raw)
			if err != nil {
				return err
			}
			app.note("started %s", started.WorkflowID)
			if started, err = r.awaitAdmission(ctx, started, wait); err != nil {
				return err
			}
			if watch {
				return app.watch(ctx, r, started.WorkflowID)
			}
			return app.answer(started, func(w io.Writer) {
				fmt.Fprintf(w, "%s is %s\n", started.WorkflowID, started.Status)
				if started.WebUI != "" {
					fmt.Fprintln(w, started.WebUI)
				}
			})
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "the goal; - reads standard input")
	cmd.Flags().DurationVar(&wait, "wait", 20*time.Second, "longest wait until a worker has accepted or refused the start; 0 does not wait")
	cmd.Flags().BoolVar(&watch, "watch", false, "then watch the run until it ends")
	cobra.CheckErr(cmd.MarkFlagRequired("file"))
	return cmd
}

// readGoal reads a start input and makes JSON of it.
func readGoal(stdin io.Reader, file string) ([]byte, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(io.LimitReader(stdin, strict.MaxBytes+1))
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, exitWith(exitUsage, "the goal cannot be read: %w", err)
	}
	raw, err := goal.FromYAML(data)
	var unreadable *strict.Error
	if errors.As(err, &unreadable) {
		return nil, refusedStart(exitUsage, problemLines(unreadable.Problems))
	}
	return raw, err
}

func problemLines(problems []strict.Problem) []string {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return lines
}

// refusedStart reads the same whether this command or the run refuses: like the failure of a refused run.
func refusedStart(code int, problems []string) error {
	return exitWith(code, "%s:\n- %s", workflows.FailureStartRefused, strings.Join(problems, "\n- "))
}

// start starts a run. The workflow id is the lock: one open run per conversation.
func (r runs) start(ctx context.Context, start admission.Start, raw json.RawMessage) (row, error) {
	run, err := r.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: start.WorkflowID, TaskQueue: workflows.QueueRun,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            start.Goal.Outcome,
		StaticDetails:                            start.Goal.Objective,
	}, workflows.TypeWorkflowRun, raw)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return row{}, exitWith(exitRefused, "%s is already open; one conversation has one run: `steward run show %[1]s`", start.WorkflowID)
	case err != nil:
		return row{}, fmt.Errorf("start %s: %w", start.WorkflowID, err)
	}
	return row{
		WorkflowID: run.GetID(), RunID: run.GetRunID(), Status: "started", Open: true, Started: time.Now(),
		WebUI: r.link(run.GetID(), run.GetRunID()),
	}, nil
}

// awaitAdmission waits until a worker has accepted the start, and returns its refusal as an error.
func (r runs) awaitAdmission(ctx context.Context, started row, wait time.Duration) (row, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for wait > 0 {
		var state policy.State
		err := r.query(ctx, started.WorkflowID, started.RunID, workflows.QueryState, &state)
		switch {
		case err == nil && state.Failure != nil:
			return started, refusedStart(exitRefused, state.Failure.Problems)
		case err == nil && state.Goal != nil:
			started.Status = string(state.Shown())
			return started, nil
		}
		select {
		case <-ctx.Done():
			return started, fmt.Errorf("%s is started, but no worker accepted it within %v; `steward doctor` tells what is missing: %w",
				started.WorkflowID, wait, errors.Join(err, ctx.Err()))
		case <-time.After(100 * time.Millisecond):
		}
	}
	return started, nil
}

// ended reads how a run or a release ended: its final state, wherever Temporal keeps it.
func ended[S any](ctx context.Context, run client.WorkflowRun) (S, error) {
	var state S
	err := run.Get(ctx, &state)
	var failed *temporal.ApplicationError
	var canceled *temporal.CanceledError
	switch {
	case errors.As(err, &failed) && failed.HasDetails():
		return state, failed.Details(&state)
	case errors.As(err, &canceled) && canceled.HasDetails():
		return state, canceled.Details(&state)
	}
	return state, err
}
