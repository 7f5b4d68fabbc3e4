package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"steward/workflows"
	"steward/workflows/run/policy"
)

func newRunProofCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "proof ID", Short: "Show what a run did: its turns with their times, releases and incarnations", Args: cobra.ExactArgs(1),
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
			var proof policy.Proof
			if err := r.query(ctx, id, "", workflows.QueryProof, &proof); err != nil {
				return err
			}
			return app.answer(proof, func(w io.Writer) { app.writeProof(w, proof) })
		},
	}
}

func (a *app) writeProof(w io.Writer, p policy.Proof) {
	fmt.Fprintf(w, "%s (task %s) is %s: %d turns, %d attempts\n", p.RunID, p.TaskID, a.paint(bold, string(p.Status)), p.Turns, p.Dispatches)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ROUND\tEFFECT\tKIND\tGEN\tRESERVED\tDISPATCHED\tAPPLIED\tSEEN\tSETTLED\tCOMMITTED\tRESULT\tRELEASE\tINCARNATION")
	for _, t := range p.Chain {
		result := t.Action
		if result == "" {
			result = t.Receipt
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.12s\t%d\n", t.Round, t.Effect, t.Kind, t.Generation,
			stamp(t.Reserved), stamp(t.Dispatched), stamp(t.Applied), stamp(t.Seen), stamp(t.Settled), stamp(t.Committed),
			result, t.Release, t.Incarnation)
	}
	_ = table.Flush()
	for _, id := range p.Unknown {
		fmt.Fprintf(w, "unknown:     %s was armed, and neither found nor disproven\n", id)
	}
	if c := p.Completion; c.ID != "" {
		fmt.Fprintf(w, "last commit: %s %s of %s\n", c.Action, c.ID, c.Effect)
	}
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.Local().Format("01-02 15:04:05")
}
