package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"steward/workflows"
)

// errand is something that waits for a person.
type errand struct {
	WorkflowID string `json:"workflow_id"`
	Status     string `json:"status"`
	// Class is the word of the blocker or of what is asked; the same as in the run's state and search attributes.
	Class string    `json:"class"`
	Since time.Time `json:"since,omitzero"`
	Ask   string    `json:"ask"`
	// Command resolves it.
	Command string `json:"command"`
	WebUI   string `json:"web_ui,omitempty"`
}

func newInboxCommand(app *app) *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "inbox", Short: "Show everything that waits for a person, the longest wait first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			rows, err := r.list(cmd.Context(), inboxQuery, limit)
			if err != nil {
				return err
			}
			errands := errandsOf(rows)
			return app.answer(errands, func(w io.Writer) { app.writeErrands(w, errands) })
		},
	}
	connectionFlags(cmd)
	cmd.Flags().IntVar(&limit, "limit", 1000, "look at no more than so many open runs, the newest")
	return cmd
}

var inboxQuery = fmt.Sprintf("WorkflowType IN ('%s', '%s') AND ExecutionStatus = 'Running'", workflows.TypeWorkflowRun, workflows.TypeReleaseSession)

// errandsOf reads the list alone: no run is asked. A paused run waits for a person too.
func errandsOf(rows []row) []errand {
	errands := []errand{}
	for _, r := range rows {
		e := errand{WorkflowID: r.WorkflowID, Status: r.Status, WebUI: r.WebUI}
		if r.Attention != nil && json.Unmarshal(r.Attention, &e) == nil && e.Class != "" {
			errands = append(errands, e)
		} else if r.Status == "paused" {
			e.Class, e.Ask, e.Command = "paused", "nothing new is sent until resume", "steward run resume "+r.WorkflowID+" --reason …"
			errands = append(errands, e)
		}
	}
	slices.SortStableFunc(errands, func(a, b errand) int { return a.Since.Compare(b.Since) })
	return errands
}

func (a *app) writeErrands(w io.Writer, errands []errand) {
	if len(errands) == 0 {
		fmt.Fprintln(w, "nothing waits for you")
		return
	}
	for _, e := range errands {
		since := ""
		if !e.Since.IsZero() {
			since = ", since " + ago(e.Since)
		}
		fmt.Fprintf(w, "%s  %s%s\n  %s\n  %s\n", e.WorkflowID, a.paint(yellow, e.Class), since,
			strings.Join(strings.Fields(e.Ask), " "), e.Command)
	}
}
