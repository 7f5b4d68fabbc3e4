package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"steward/workflows"
	"steward/workflows/discover/scan"
)

func newDiscoverListCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the projects that are scanned", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			rows, err := r.scans(cmd.Context())
			if err != nil {
				return err
			}
			return app.answer(rows, func(w io.Writer) { writeScans(w, rows) })
		},
	}
}

const maxScans = 1000

// scans are the schedules of scans.
func (r runs) scans(ctx context.Context) ([]scanRow, error) {
	list, err := r.client.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: 100})
	if err != nil {
		return nil, fmt.Errorf("list the schedules: %w", err)
	}
	rows := []scanRow{}
	for list.HasNext() && len(rows) < maxScans {
		entry, err := list.Next()
		if err != nil {
			return nil, fmt.Errorf("list the schedules: %w", err)
		}
		if entry.WorkflowType.Name == workflows.TypeDiscoveryScan {
			rows = append(rows, scheduled(entry.ID, entry.Spec, entry.Paused, entry.RecentActions, entry.NextActionTimes))
		}
	}
	return rows, nil
}

func scheduled(id string, spec *client.ScheduleSpec, paused bool, recent []client.ScheduleActionResult, next []time.Time) scanRow {
	row := scanRow{ID: id, Paused: paused}
	if spec != nil && len(spec.Intervals) > 0 {
		row.Every = spec.Intervals[0].Every.String()
	}
	if len(recent) > 0 {
		last := recent[len(recent)-1]
		row.Last = last.ActualTime
		if last.StartWorkflowResult != nil {
			row.LastRun = last.StartWorkflowResult.WorkflowID
		}
	}
	if len(next) > 0 {
		row.Next = next[0]
	}
	return row
}

func writeScans(w io.Writer, rows []scanRow) {
	if len(rows) == 0 {
		fmt.Fprintln(w, "no project is scanned")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tEVERY\tLAST\tNEXT")
	for _, row := range rows {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", row.ID, row.Every, lastScan(row), nextScan(row))
	}
	_ = table.Flush()
}

func lastScan(row scanRow) string {
	if row.Last.IsZero() {
		return "none"
	}
	return ago(row.Last)
}

func nextScan(row scanRow) string {
	switch {
	case row.Paused:
		return "paused"
	case row.Next.IsZero():
		return "none"
	}
	return row.Next.Local().Format(time.DateTime)
}

// shownScan is what show answers.
type shownScan struct {
	scanRow
	Result *scan.Result `json:"result,omitempty"`
	// Problem says why the last scan has no result.
	Problem string `json:"problem,omitempty"`
}

func newDiscoverShowCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show what the last scan of a project saw and did", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			shown, err := r.showScan(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return app.answer(shown, func(w io.Writer) {
				if shown.Every != "" {
					writeScans(w, []scanRow{shown.scanRow})
					fmt.Fprintln(w)
				}
				if shown.Problem != "" {
					fmt.Fprintln(w, shown.Problem)
				}
				if shown.Result != nil {
					writeScan(w, *shown.Result)
				}
			})
		},
	}
}

// showScan reads the schedule and its last scan, or a single scan.
func (r runs) showScan(ctx context.Context, id string) (shownScan, error) {
	shown := shownScan{scanRow: scanRow{ID: id, LastRun: id}}
	described, err := r.client.ScheduleClient().GetHandle(ctx, id).Describe(ctx)
	var missing *serviceerror.NotFound
	switch {
	case err == nil:
		paused := described.Schedule.State != nil && described.Schedule.State.Paused
		shown.scanRow = scheduled(id, described.Schedule.Spec, paused, described.Info.RecentActions, described.Info.NextActionTimes)
	case !errors.As(err, &missing):
		return shown, fmt.Errorf("%s: %w", id, err)
	}
	if shown.LastRun == "" {
		shown.Problem = "no scan has begun yet"
		return shown, nil
	}
	info, err := r.client.DescribeWorkflowExecution(ctx, shown.LastRun, "")
	if errors.As(err, &missing) {
		if shown.Every == "" {
			return shown, exitWith(exitNotFound, "there is no scan %s; see `steward discover list`", id)
		}
		shown.Problem = "the last scan is not kept any more"
		return shown, nil
	}
	if err != nil {
		return shown, fmt.Errorf("%s: %w", shown.LastRun, err)
	}
	var result scan.Result
	if info.GetWorkflowExecutionInfo().GetCloseTime() == nil {
		shown.Problem = "the scan is under way"
		if err := r.query(ctx, shown.LastRun, "", workflows.QueryState, &result); err != nil {
			shown.Problem += ", and no worker answers for it"
			return shown, nil //nolint:nilerr // the problem says it
		}
	} else if err := r.client.GetWorkflow(ctx, shown.LastRun, "").Get(ctx, &result); err != nil {
		shown.Problem = scanFailure(err).Error()
		return shown, nil
	}
	shown.Result = &result
	return shown, nil
}

// writeScan tells what a scan saw and did.
func writeScan(w io.Writer, r scan.Result) {
	fmt.Fprintf(w, "%s\n%d conversations listed, %d runs started", r.PageURL, r.Listed, len(r.Started))
	if r.Listed > 0 && !r.Complete {
		fmt.Fprint(w, "; the page lists more than a scan reads")
	}
	if r.Contradictions > 0 {
		fmt.Fprintf(w, "; %d links name another project and were not used", r.Contradictions)
	}
	fmt.Fprintln(w)
	if len(r.Inventory) == 0 {
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "CONVERSATION\tSTANDING\tCREATED\tTITLE")
	entries := slices.Clone(r.Inventory)
	slices.SortStableFunc(entries, func(a, b scan.Entry) int { return strings.Compare(string(a.Standing), string(b.Standing)) })
	for _, e := range entries {
		created := ""
		if !e.CreatedAt.IsZero() {
			created = e.CreatedAt.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.ID, strings.TrimSpace(string(e.Standing)+" "+e.Detail), created, e.Title)
	}
	_ = table.Flush()
}
