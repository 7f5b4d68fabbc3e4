package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	sdkpb "go.temporal.io/api/sdk/v1"

	"steward/workflows"
	"steward/workflows/run/policy"
)

// queries are what a run tells of itself.
var queries = []string{workflows.QueryState, workflows.QueryWhy, workflows.QueryLedger, workflows.QueryJournal, workflows.QueryProof}

// metadataQuery is the SDK's own query for what the Web UI shows beside the history.
const metadataQuery = "__temporal_workflow_metadata"

func newRunShowCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show a run: its page of current details; with --output json everything it knows", Args: cobra.ExactArgs(1),
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
			shown, err := r.describe(ctx, id)
			if err != nil {
				return err
			}
			return app.show(ctx, r, id, shown.WebUI, map[string]any{"run": shown}, queries)
		},
	}
}

func newRunWhyCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "why ID", Short: "Say why a run stands where it stands, and what would move it", Args: cobra.ExactArgs(1),
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
			var why policy.Why
			if err := r.query(ctx, id, "", workflows.QueryWhy, &why); err != nil {
				return err
			}
			return app.answer(why, func(w io.Writer) { app.writeWhy(w, id, why) })
		},
	}
}

func (a *app) writeWhy(w io.Writer, id string, why policy.Why) {
	fmt.Fprintf(w, "%s is %s and waits for: %s\n", id, a.paint(bold, string(why.Status)), why.WaitsFor)
	fmt.Fprintf(w, "obligation:  %s\n", why.Owes)
	if !why.DueAt.IsZero() {
		fmt.Fprintf(w, "due:         %s\n", why.DueAt.Local().Format("2006-01-02 15:04:05"))
	}
	if p := why.Paused; p != nil {
		fmt.Fprintf(w, "paused:      by %s, %s: %s\n", p.By, ago(p.At), p.Reason)
	}
	if b := why.Blocker; b != nil {
		fmt.Fprintf(w, "blocked:     %s since %s: %s %s\n", b.Class, ago(b.Since), b.Code, b.Detail)
	}
	if why.Effect != "" {
		fmt.Fprintf(w, "effect:      %s generation %d, %s\n", why.Effect, why.Attempt, why.State)
	}
	if d := why.Deferral; d != nil {
		fmt.Fprintf(w, "deferred:    %s since %s, %d times\n", d.Class, ago(d.Since), d.Count)
	}
	if !why.LastProof.IsZero() {
		fmt.Fprintf(w, "last sign:   %s\n", ago(why.LastProof))
	}
	if m := why.Succession; m != nil {
		fmt.Fprintf(w, "moves:       %s to %s %s %s\n", m.Kind, m.ConversationURL, m.Scope, m.Successor)
	}
	for _, id := range why.Duplicates {
		fmt.Fprintf(w, "duplicate:   the superseded %s was seen in the conversation\n", id)
	}
	for _, problem := range why.Failure {
		fmt.Fprintf(w, "problem:     %s\n", problem)
	}
	if n := why.Attention; n != nil {
		fmt.Fprintf(w, "%s %s: %s\n             %s\n", a.paint(yellow, "needs you:  "), n.Class, n.Ask, n.Command)
	}
}

// show prints the page of a workflow as the Web UI has it, or everything that its queries answer.
func (a *app) show(ctx context.Context, r runs, id, webUI string, whole map[string]any, queries []string) error {
	if !a.json {
		var metadata sdkpb.WorkflowMetadata
		if err := r.query(ctx, id, "", metadataQuery, &metadata); err != nil {
			return err
		}
		a.line("%s\n%s", id, metadata.GetCurrentDetails())
		if webUI != "" {
			a.line("%s", webUI)
		}
		return nil
	}
	for _, query := range queries {
		var answer json.RawMessage
		if err := r.query(ctx, id, "", query, &answer); err != nil {
			return err
		}
		whole[query] = answer
	}
	return a.answer(whole, nil)
}
