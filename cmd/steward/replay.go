package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/workflows"
	"steward/workflows/discover"
	"steward/workflows/machine"
	"steward/workflows/release"
	"steward/workflows/run"
)

// replayed is how one open run came through.
type replayed struct {
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	Events     int    `json:"events"`
	Problem    string `json:"problem,omitempty"`
}

func newReplayCommand(app *app) *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use: "replay --open", Short: "Prove that this binary can take over every open run and release", Args: cobra.NoArgs,
		Long: "Decide the histories of all open runs and releases again, with this binary. It changes nothing. The command fails when one\n" +
			"of them would break under this binary; it ends with exit code 75 when that could not be found out.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !open {
				return exitWith(exitUsage, "say what to replay: --open")
			}
			ctx := cmd.Context()
			r, done, err := app.runs(ctx)
			if err != nil {
				return exitWith(exitInconclusive, "%w", err)
			}
			defer done()
			results, err := r.replayOpen(ctx)
			if err != nil {
				return exitWith(exitInconclusive, "%w", err)
			}
			if err := app.answer(results, func(w io.Writer) { writeReplayed(w, results) }); err != nil {
				return err
			}
			broken := 0
			for _, one := range results {
				if one.Problem != "" {
					broken++
				}
			}
			if broken > 0 {
				return exitWith(exitRefused, "%d of %d open runs would break under this binary", broken, len(results))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "all open runs and releases")
	connectionFlags(cmd)
	return cmd
}

// replayOpen replays every open run. A run that ended meanwhile counts as it ended.
func (r runs) replayOpen(ctx context.Context) ([]replayed, error) {
	results := []replayed{}
	query := fmt.Sprintf("WorkflowType IN ('%s', '%s', '%s') AND ExecutionStatus = 'Running'",
		workflows.TypeWorkflowRun, workflows.TypeReleaseSession, workflows.TypeDiscoveryScan)
	var token []byte
	for {
		page, err := r.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 200, NextPageToken: token})
		if err != nil {
			return nil, fmt.Errorf("list open runs: %w", err)
		}
		for _, info := range page.GetExecutions() {
			execution := workflow.Execution{ID: info.GetExecution().GetWorkflowId(), RunID: info.GetExecution().GetRunId()}
			history, err := r.history(ctx, execution.ID, execution.RunID)
			if err != nil {
				return nil, err
			}
			one := replayed{WorkflowID: execution.ID, RunID: execution.RunID, Events: len(history.GetEvents())}
			if err := replay(execution, history); err != nil {
				one.Problem = err.Error()
			}
			results = append(results, one)
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return results, nil
		}
	}
}

// replay makes the decisions of a history again and compares.
func replay(execution workflow.Execution, history *historypb.History) error {
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{Interceptors: machine.Options()})
	if err != nil {
		return err
	}
	replayer.RegisterWorkflowWithOptions(run.Workflow(run.Options{}), workflow.RegisterOptions{Name: workflows.TypeWorkflowRun})
	replayer.RegisterWorkflowWithOptions(release.Workflow(release.Options{}), workflow.RegisterOptions{Name: workflows.TypeReleaseSession})
	replayer.RegisterWorkflowWithOptions(discover.Workflow, workflow.RegisterOptions{Name: workflows.TypeDiscoveryScan})
	return replayer.ReplayWorkflowHistoryWithOptions(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), history,
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: execution})
}

func writeReplayed(w io.Writer, results []replayed) {
	for _, one := range results {
		if one.Problem == "" {
			fmt.Fprintf(w, "ok      %s, %d events\n", one.WorkflowID, one.Events)
		} else {
			fmt.Fprintf(w, "breaks  %s: %s\n", one.WorkflowID, one.Problem)
		}
	}
	fmt.Fprintf(w, "%d open runs\n", len(results))
}
