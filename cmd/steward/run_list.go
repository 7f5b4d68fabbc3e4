package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"steward/workflows"
	"steward/workflows/run/policy"
)

func newRunListCommand(app *app) *cobra.Command {
	var all, attention, ask bool
	var status, query string
	var limit int
	cmd := &cobra.Command{
		Use: "list", Short: "List runs; what needs a person first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			rows, err := r.list(cmd.Context(), listQuery(all || status != "", status, query), limit)
			if err != nil {
				return err
			}
			rows = attentionFirst(rows, attention)
			if ask {
				r.ask(cmd.Context(), rows)
			}
			return app.answer(rows, func(w io.Writer) { app.writeRows(w, rows) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&all, "all", false, "ended runs too")
	flags.BoolVar(&attention, "attention", false, "only runs that need a person")
	flags.BoolVar(&ask, "ask", false, "also ask each run what it waits for and for its rules version: one call per run")
	flags.StringVar(&status, "status", "", "only runs of this status, like running, blocked or goal_complete")
	flags.StringVar(&query, "query", "", "a further condition in Temporal's list filter language")
	flags.IntVar(&limit, "limit", 200, "at most so many runs, the newest")
	return cmd
}

func listQuery(ended bool, status, further string) string {
	conditions := []string{fmt.Sprintf("WorkflowType = '%s'", workflows.TypeWorkflowRun)}
	if !ended {
		conditions = append(conditions, "ExecutionStatus = 'Running'")
	}
	if status != "" {
		conditions = append(conditions, fmt.Sprintf("%s = '%s'", workflows.AttributeStatus.GetName(), strings.ReplaceAll(status, "'", "")))
	}
	if further != "" {
		conditions = append(conditions, "("+further+")")
	}
	return strings.Join(conditions, " AND ")
}

// ask completes the rows with what only the runs themselves know. A run that does not answer keeps its row as it is.
func (r runs) ask(ctx context.Context, rows []row) {
	for i := range rows {
		asked, cancel := context.WithTimeout(ctx, watchPatience)
		var state policy.State
		if r.query(asked, rows[i].WorkflowID, rows[i].RunID, workflows.QueryState, &state) == nil {
			rows[i].Rules, rows[i].WaitsFor = state.Rules, state.Explain().WaitsFor
		}
		cancel()
	}
}

// attentionFirst keeps the order among equals.
func attentionFirst(rows []row, only bool) []row {
	needs, rest := []row{}, []row{}
	for _, r := range rows {
		if r.Open && r.Attention != nil {
			needs = append(needs, r)
		} else {
			rest = append(rest, r)
		}
	}
	if only {
		return needs
	}
	return append(needs, rest...)
}

func (a *app) writeRows(w io.Writer, rows []row) {
	if len(rows) == 0 {
		fmt.Fprintln(w, "no runs")
		return
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATUS\tROUND\tSTARTED\tNEEDS\tWAITS FOR")
	for _, r := range rows {
		status := r.Status
		if r.Blocker != "" {
			status += " " + r.Blocker
		}
		fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", r.WorkflowID, status, r.Round, ago(r.Started), needs(r), r.WaitsFor)
	}
	_ = table.Flush()
}

// needs is what a run asks a person for, in one line.
func needs(r row) string {
	var attention struct{ Ask, Class string }
	if !r.Open || json.Unmarshal(r.Attention, &attention) != nil {
		return ""
	}
	text := strings.Join(strings.Fields(attention.Ask), " ")
	if text == "" {
		text = attention.Class
	}
	if runes := []rune(text); len(runes) > 60 {
		return string(runes[:59]) + "…"
	}
	return text
}

func ago(t time.Time) string {
	switch d := time.Since(t); {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return t.Local().Format(time.DateOnly)
}
