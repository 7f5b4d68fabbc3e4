package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run"
)

func newRunExportCommand(app *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "export ID", Short: "Write the whole journal of a run as JSON lines", Args: cobra.ExactArgs(1),
		Long: "Write every decision of a run, from its start, as one JSON object per line. The journal that a run carries is bounded;\n" +
			"the whole one is its history, so the decisions are made again from the history, by this binary. That also proves that\n" +
			"this binary still decides as the run's workers did.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			r, done, err := app.runs(ctx)
			if err != nil {
				return err
			}
			defer done()
			id, err := r.find(ctx, args[0])
			if err != nil {
				return err
			}
			if file == "" {
				return r.export(ctx, id, app.out)
			}
			out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err != nil {
				return err
			}
			if err := r.export(ctx, id, out); err != nil {
				_ = out.Close()
				return err
			}
			return out.Close()
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "write to a new file (mode 0600) instead of standard output")
	return cmd
}

// exported is one line of an export.
type exported struct {
	RunID string `json:"run_id"`
	machine.Entry
}

// export replays every run of the chain, from the first to the last, and writes what each of them journaled.
func (r runs) export(ctx context.Context, id string, out io.Writer) error {
	described, err := r.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return r.explain(id, err)
	}
	runID := described.GetWorkflowExecutionInfo().GetFirstRunId()
	lines := json.NewEncoder(out)
	for runID != "" {
		history, err := r.history(ctx, id, runID)
		if err != nil {
			return err
		}
		entries, err := journal(id, runID, history)
		for _, entry := range entries {
			if err := lines.Encode(exported{RunID: runID, Entry: entry}); err != nil {
				return err
			}
		}
		if err != nil {
			return fmt.Errorf("run %s of %s: this binary decides otherwise than its workers did; use the release that it ran on: %w", runID, id, err)
		}
		last := history.GetEvents()[len(history.GetEvents())-1]
		runID = last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return nil
}

func (r runs) history(ctx context.Context, id, runID string) (*historypb.History, error) {
	history := &historypb.History{}
	events := r.client.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("history of run %s of %s: %w", runID, id, err)
		}
		history.Events = append(history.Events, event)
	}
	if len(history.Events) == 0 {
		return nil, exitWith(exitNotFound, "run %s of %s has no history any more", runID, id)
	}
	return history, nil
}

// journal makes the decisions of one run again. They depend on the run's ids.
func journal(id, runID string, history *historypb.History) ([]machine.Entry, error) {
	var entries []machine.Entry
	replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: machine.Record(func(e machine.Entry) { entries = append(entries, e) }),
	})
	if err != nil {
		return nil, err
	}
	replayer.RegisterWorkflowWithOptions(run.Workflow(run.Options{}), workflow.RegisterOptions{Name: workflows.TypeWorkflowRun})
	err = replayer.ReplayWorkflowHistoryWithOptions(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)), history,
		worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id, RunID: runID}})
	return entries, err
}
