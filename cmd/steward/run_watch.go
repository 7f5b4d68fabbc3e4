package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"golang.org/x/term"

	"steward/workflows"
	"steward/workflows/run/policy"
)

const (
	watchPause = 500 * time.Millisecond
	// watchPatience bounds one look: a run without a worker does not answer.
	watchPatience = 5 * time.Second
)

func newRunWatchCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "watch ID", Short: "Follow a run: one line per turn, until it ends", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			id, err := r.find(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return app.watch(cmd.Context(), r, id)
		},
	}
}

// watch follows a run to its end. It fails when the run ends as anything else than goal_complete.
func (a *app) watch(ctx context.Context, r runs, id string) error {
	state, err := a.follow(ctx, r, id)
	if err != nil {
		return err
	}
	status := string(state.Shown())
	if status != string(policy.GoalComplete) {
		return exitWith(exitUnfinished, "%s ended as %s", id, status)
	}
	return nil
}

// follow shows a run until it ends and returns its final state.
func (a *app) follow(ctx context.Context, r runs, id string) (policy.State, error) {
	if _, err := r.describe(ctx, id); err != nil {
		return policy.State{}, err
	}
	type ending struct {
		state policy.State
		err   error
	}
	end := make(chan ending, 1)
	go func() {
		state, err := ended(ctx, r.client.GetWorkflow(ctx, id, ""))
		end <- ending{state, err}
	}()
	v := &viewer{output: a.output}
	for {
		v.look(ctx, r, id)
		select {
		case e := <-end:
			v.clear()
			if e.err != nil {
				return e.state, fmt.Errorf("%s: %w", id, e.err)
			}
			v.turns(e.state, true)
			v.ending(e.state)
			return e.state, nil
		case <-time.After(watchPause):
		}
	}
}

// viewer shows what changed since its last look.
type viewer struct {
	output
	last    string // effect of the turn that was shown last
	status  string
	spinner int
	waiting string
}

func (v *viewer) look(ctx context.Context, r runs, id string) {
	ctx, cancel := context.WithTimeout(ctx, watchPatience)
	defer cancel()
	var state policy.State
	err := r.query(ctx, id, "", workflows.QueryState, &state)
	var failed *serviceerror.QueryFailed
	switch {
	case errors.As(err, &failed):
		v.waitsFor("the run answers a query: " + failed.Message)
		return
	case err != nil:
		v.waitsFor("a worker that answers for the run")
		return
	}
	v.turns(state, false)
	why := state.Explain()
	v.changed(why)
	v.waitsFor(why.WaitsFor)
}

// turns shows the turns that ended since the last look. The ledger is bounded; what it dropped meanwhile is not shown.
func (v *viewer) turns(state policy.State, all bool) {
	ledger := state.Ledger
	next := 1 + slices.IndexFunc(ledger, func(t policy.LedgerTurn) bool { return t.Effect == v.last })
	for i := next; i < len(ledger); i++ {
		open := i == len(ledger)-1 && ledger[i].Committed.IsZero()
		if open && !all {
			return
		}
		later := 0
		for _, t := range ledger[i+1:] {
			if !t.Applied.IsZero() {
				later++
			}
		}
		v.turn(state.Turns-later, ledger[i])
		v.last = ledger[i].Effect
	}
}

func (v *viewer) turn(number int, t policy.LedgerTurn) {
	if v.json {
		_ = v.answer(map[string]any{"turn": number, "entry": t}, nil)
		return
	}
	v.clear()
	outcome := t.Action
	if outcome == "" {
		outcome = "no receipt"
	}
	if t.Applied.IsZero() {
		outcome = "not sent"
	}
	v.line("%s turn %-3d %-12s %-10s %s", v.paint(green, "●"), number, t.Kind, v.paint(bold, outcome), v.paint(dim, turnTimes(t)))
}

func turnTimes(t policy.LedgerTurn) string {
	var parts []string
	span := func(what string, from, to time.Time) {
		if !from.IsZero() && !to.IsZero() {
			parts = append(parts, fmt.Sprintf("%s %s", what, to.Sub(from).Round(100*time.Millisecond)))
		}
	}
	span("sent in", t.Reserved, t.Applied)
	span("answered in", t.Applied, t.Settled)
	if t.Generation > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", t.Generation))
	}
	return strings.Join(parts, ", ")
}

// changed tells what a person should know when it becomes so: a blocker, a pause, a question.
func (v *viewer) changed(why policy.Why) {
	status := string(why.Status)
	var words []string
	if why.Paused != nil {
		words = append(words, "paused by "+why.Paused.By+": "+why.Paused.Reason)
	}
	if b := why.Blocker; b != nil {
		words = append(words, fmt.Sprintf("%s %s %s", b.Class, b.Code, b.Detail))
	}
	if n := why.Attention; n != nil {
		words = append(words, n.Ask, "→ "+n.Command)
	}
	key := status + strings.Join(words, "|")
	if len(words) == 0 {
		key = ""
	}
	if key == v.status {
		return
	}
	v.status = key
	if key == "" {
		return
	}
	if v.json {
		_ = v.answer(map[string]any{"status": status, "why": why}, nil)
		return
	}
	v.clear()
	v.line("%s %s: %s", v.paint(yellow, "▲"), status, strings.Join(words, "\n  "))
}

func (v *viewer) ending(state policy.State) {
	if v.json {
		_ = v.answer(map[string]any{"status": state.Shown(), "proof": state.Proof()}, nil)
		return
	}
	colour := red
	if string(state.Shown()) == string(policy.GoalComplete) {
		colour = green
	}
	v.line("%s after %d turns", v.paint(colour, string(state.Shown())), state.Turns)
	if state.Failure != nil {
		for _, problem := range state.Failure.Problems {
			v.line("  %s", problem)
		}
	}
}

var spinner = []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")

// waitsFor draws the line that is written over; without a terminal it says only what is new.
func (v *viewer) waitsFor(what string) {
	switch {
	case v.json || what == "" || !v.live && what == v.waiting:
	case !v.live:
		v.line("  waits for: %s", what)
	default:
		v.spinner = (v.spinner + 1) % len(spinner)
		width, _, err := term.GetSize(1)
		if err != nil || width < 20 {
			width = 80
		}
		text := []rune("waits for: " + what)
		if len(text) > width-4 {
			text = append(text[:width-5], '…')
		}
		fmt.Fprintf(v.out, "\r\x1b[K%c %s", spinner[v.spinner], v.paint(dim, string(text)))
	}
	v.waiting = what
}

// clear removes the line of waitsFor.
func (v *viewer) clear() {
	if v.live {
		fmt.Fprint(v.out, "\r\x1b[K")
	}
}
