package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"steward/workflows"
	"steward/workflows/release/plan"
)

var operation = field{"operation", "operation", "operation id, op_…", "", true}

// releaseMessages are an operator's messages to a release.
var releaseMessages = []message{
	{"promote", workflows.MessagePromote, "Let an eligible release switch", []field{reason}},
	{"abort", workflows.MessageAbort, "End a release: before the switch at once, after it by going back", []field{reason}},
	{"applied", workflows.MessageApplied, "Say that a cutover or rollback of unknown outcome took hold", []field{operation, reason}},
	{"not-applied", workflows.MessageNotApplied, "Say that a cutover or rollback of unknown outcome did not take hold", []field{operation, reason}},
	{
		"unknown", workflows.MessageUnknown, "Look once more now, at an operation of unknown outcome or at a check that could not tell",
		[]field{{operation.key, operation.flag, operation.usage, "", false}, reason},
	},
}

func newReleaseCommand(app *app) *cobra.Command {
	cmd := group("release", "Start, list, watch and steer releases")
	connectionFlags(cmd)
	cmd.AddCommand(newReleaseStartCommand(app), newReleaseListCommand(app), newReleaseShowCommand(app), newReleaseWatchCommand(app),
		newReleaseBundlesCommand(app))
	for _, m := range releaseMessages {
		if m.name == workflows.MessageAbort {
			cmd.AddCommand(newAbortCommand(app, m))
		} else {
			cmd.AddCommand(newMessageCommand(app, m, runs.findRelease))
		}
	}
	return cmd
}

// findRelease turns the name of an instance into the id of its session.
func (r runs) findRelease(_ context.Context, typed string) (string, error) {
	if strings.HasPrefix(typed, plan.WorkflowID("")) {
		return typed, nil
	}
	return plan.WorkflowID(typed), nil
}

// releaseRow is a release as a list shows it, read from the list alone.
type releaseRow struct {
	WorkflowID string          `json:"workflow_id"`
	RunID      string          `json:"run_id"`
	Phase      string          `json:"phase"`
	Release    string          `json:"release,omitempty"`
	Open       bool            `json:"open"`
	Started    time.Time       `json:"started"`
	Closed     time.Time       `json:"closed,omitzero"`
	Attention  json.RawMessage `json:"attention,omitempty"`
	WebUI      string          `json:"web_ui,omitempty"`
}

func (r runs) releaseRow(info *workflowpb.WorkflowExecutionInfo) releaseRow {
	common := r.row(info)
	shown := releaseRow{
		WorkflowID: common.WorkflowID, RunID: common.RunID, Open: common.Open, Started: common.Started, Closed: common.Closed,
		Attention: common.Attention, WebUI: common.WebUI,
	}
	attributes := info.GetSearchAttributes().GetIndexedFields()
	read(attributes[workflows.AttributeReleasePhase.GetName()], &shown.Phase)
	read(attributes[workflows.AttributeRelease.GetName()], &shown.Release)
	return shown
}

func newReleaseListCommand(app *app) *cobra.Command {
	var all bool
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List releases", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			rows, err := r.releases(cmd.Context(), all, limit)
			if err != nil {
				return err
			}
			return app.answer(rows, func(w io.Writer) { writeReleases(w, rows, all) })
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "ended releases too")
	cmd.Flags().IntVar(&limit, "limit", 50, "at most so many releases, the newest")
	return cmd
}

func (r runs) releases(ctx context.Context, all bool, limit int) ([]releaseRow, error) {
	query := fmt.Sprintf("WorkflowType = '%s'", workflows.TypeReleaseSession)
	if !all {
		query += " AND ExecutionStatus = 'Running'"
	}
	page, err := r.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: int32(max(1, min(limit, 1000)))})
	if err != nil {
		return nil, fmt.Errorf("list releases: %w", err)
	}
	rows := []releaseRow{}
	for _, info := range page.GetExecutions() {
		rows = append(rows, r.releaseRow(info))
	}
	return rows, nil
}

func writeReleases(w io.Writer, rows []releaseRow, all bool) {
	if len(rows) == 0 && !all {
		fmt.Fprintln(w, "no open releases; --all lists those that ended too")
		return
	}
	if len(rows) == 0 {
		fmt.Fprintln(w, "no releases")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tPHASE\tRELEASE\tSTARTED\tNEEDS")
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.WorkflowID, cmp.Or(r.Phase, "starting"), shortHash(r.Release), ago(r.Started),
			needs(row{Open: r.Open, Attention: r.Attention}))
	}
	_ = table.Flush()
}

func shortHash(hash string) string { return hash[:min(12, len(hash))] }

// releaseQueries are what a release tells of itself.
var releaseQueries = []string{workflows.QueryState, workflows.QueryWhy, workflows.QueryReceipts, workflows.QueryJournal}

func newReleaseShowCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "show INSTANCE", Short: "Show a release: its page of current details; with --output json everything it knows", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			r, done, err := app.runs(ctx)
			if err != nil {
				return err
			}
			defer done()
			id, err := r.findRelease(ctx, args[0])
			if err != nil {
				return err
			}
			described, err := r.client.DescribeWorkflowExecution(ctx, id, "")
			if err != nil {
				return r.explain(id, err)
			}
			shown := r.releaseRow(described.GetWorkflowExecutionInfo())
			return app.show(ctx, r, id, shown.WebUI, map[string]any{"release": shown}, releaseQueries)
		},
	}
}
