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

	"steward/workflows"
	"steward/workflows/run/policy"
)

const (
	watchPause = 500 * time.Millisecond
	spinPause  = 120 * time.Millisecond
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

// watch follows a run to its end, and over to the run that it was handed to. It fails when the last one ends as anything
// else than goal_complete.
func (a *app) watch(ctx context.Context, r runs, id string) error {
	state, err := a.follow(ctx, r, id)
	for err == nil && state.HandedTo() != "" {
		id = state.HandedTo()
		a.note("goes on as %s", id)
		state, err = a.follow(ctx, r, id)
	}
	if err != nil {
		return err
	}
	status := string(state.Shown())
	if status != string(policy.GoalComplete) {
		return exitWith(exitUnfinished, "%s ended as %s", id, status)
	}
	return nil
}

// ending is how a run ended.
type ending struct {
	state policy.State
	err   error
}

// glance is one look at a run that is open.
type glance struct {
	state policy.State
	err   error
}

// follow shows a run until it ends and returns its final state.
func (a *app) follow(ctx context.Context, r runs, id string) (policy.State, error) {
	found, err := r.describe(ctx, id)
	if err != nil {
		return policy.State{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	end := make(chan ending, 1)
	go func() {
		state, err := ended[policy.State](ctx, r.client.GetWorkflow(ctx, id, ""))
		end <- ending{state, err}
	}()
	looks := make(chan glance)
	if found.Open {
		go r.watch(ctx, id, looks)
	}
	v := &viewer{output: a.output}
	spin := time.NewTicker(spinPause)
	defer spin.Stop()
	for {
		select {
		case g := <-looks:
			v.look(g)
		case <-spin.C:
			v.spin()
		case e := <-end:
			v.clear()
			if e.err != nil {
				return e.state, fmt.Errorf("%s: %w", id, e.err)
			}
			v.turns(e.state, true)
			v.ending(e.state)
			return e.state, nil
		}
	}
}

// watch looks at a run again and again until ctx ends.
func (r runs) watch(ctx context.Context, id string, looks chan<- glance) {
	for {
		var g glance
		patience, cancel := context.WithTimeout(ctx, watchPatience)
		g.err = r.query(patience, id, "", workflows.QueryState, &g.state)
		cancel()
		select {
		case looks <- g:
		case <-ctx.Done():
			return
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return
		}
	}
}

// viewer shows what changed since its last look.
type viewer struct {
	output
	last    string // effect of the turn that was shown last
	told    string // what changed last told
	waiting string
	since   time.Time
	frame   int
}

func (v *viewer) look(g glance) {
	var failed *serviceerror.QueryFailed
	switch {
	case errors.As(g.err, &failed):
		v.waitsFor("an answer of the run: " + failed.Message)
	case g.err != nil:
		v.waitsFor("a worker that answers for the run")
	default:
		v.turns(g.state, false)
		why := g.state.Explain()
		v.changed(why)
		v.waitsFor(why.WaitsFor)
	}
}

// turns shows the turns that ended since the last look. The ledger is bounded; what it dropped meanwhile is not shown.
func (v *viewer) turns(state policy.State, all bool) {
	ledger := state.Chain()
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
	text := strings.Join(words, "\n  ")
	if text == v.told {
		return
	}
	v.told = text
	if text == "" {
		return
	}
	if v.json {
		_ = v.answer(map[string]any{"status": status, "why": why}, nil)
		return
	}
	v.clear()
	v.line("%s %s: %s", v.paint(yellow, "▲"), status, text)
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

// waitsFor notes what the run waits for; without a terminal it is a line of its own.
func (v *viewer) waitsFor(what string) {
	if what == v.waiting {
		return
	}
	v.waiting, v.since = what, time.Now()
	if !v.live && !v.json && what != "" {
		v.line("  waits for: %s", what)
	}
}

// spin draws the line that is written over: what the run waits for, and for how long.
func (v *viewer) spin() {
	if !v.live || v.waiting == "" {
		return
	}
	v.frame = (v.frame + 1) % len(spinner)
	text := []rune(fmt.Sprintf("waits for: %s (%s)", v.waiting, time.Since(v.since).Round(time.Second)))
	if most := v.width() - 4; len(text) > most {
		text = append(text[:most-1], '…')
	}
	fmt.Fprintf(v.out, "\r\x1b[K%c %s", spinner[v.frame], v.paint(dim, string(text)))
}

// clear removes the line of waitsFor.
func (v *viewer) clear() {
	if v.live {
		fmt.Fprint(v.out, "\r\x1b[K")
	}
}
