package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"steward/workflows"
	"steward/workflows/release/evidence"
	"steward/workflows/release/policy"
)

func newReleaseWatchCommand(app *app) *cobra.Command {
	return &cobra.Command{
		Use: "watch INSTANCE", Short: "Follow a release: a line for each phase and proof, until it ends", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, done, err := app.runs(cmd.Context())
			if err != nil {
				return err
			}
			defer done()
			id, err := r.findRelease(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return app.watchRelease(cmd.Context(), r, id)
		},
	}
}

// watchRelease follows a release to its end. It fails when the release does not become known-good.
func (a *app) watchRelease(ctx context.Context, r runs, id string) error {
	found, err := r.describe(ctx, id)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	type ending struct {
		state policy.State
		err   error
	}
	end := make(chan ending, 1)
	go func() {
		state, err := ended[policy.State](ctx, r.client.GetWorkflow(ctx, id, ""))
		end <- ending{state, err}
	}()
	v := &releaseViewer{viewer: viewer{output: a.output}}
	look := time.NewTicker(watchPause)
	defer look.Stop()
	spin := time.NewTicker(spinPause)
	defer spin.Stop()
	for {
		select {
		case <-look.C:
			if found.Open {
				v.look(ctx, r, id)
			}
		case <-spin.C:
			v.spin()
		case e := <-end:
			v.clear()
			if e.err != nil {
				return fmt.Errorf("%s: %w", id, e.err)
			}
			return v.ended(id, e.state)
		}
	}
}

// releaseViewer shows what changed since its last look.
type releaseViewer struct {
	viewer
	phase string
	last  evidence.Receipt
}

func (v *releaseViewer) look(ctx context.Context, r runs, id string) {
	patience, cancel := context.WithTimeout(ctx, watchPatience)
	defer cancel()
	var state policy.State
	if err := r.query(patience, id, "", workflows.QueryState, &state); err != nil {
		v.waitsFor("a recovery process that answers for the release")
		return
	}
	v.changed(state)
	v.waitsFor(state.Explain().WaitsFor)
}

func (v *releaseViewer) changed(state policy.State) {
	v.receipts(state.Receipts)
	if phase := state.Shown(); phase != v.phase {
		v.phase = phase
		if v.json {
			_ = v.answer(map[string]any{"phase": phase, "since": state.Since}, nil)
		} else {
			v.clear()
			v.line("%s %s", v.paint(green, "●"), v.paint(bold, phase))
		}
	}
	told := ""
	if b := state.Back; b != nil {
		told = "goes back: " + b.Code + " " + b.Detail
	}
	if a := state.Attention(); a != nil {
		told = a.Ask + "\n  → " + a.Command
	}
	if told == v.told {
		return
	}
	if v.told = told; told != "" && !v.json {
		v.clear()
		v.line("%s %s", v.paint(yellow, "▲"), told)
	}
}

// receipts shows those that came since the last look.
func (v *releaseViewer) receipts(all []evidence.Receipt) {
	next := 0
	for i, r := range all {
		if r == v.last {
			next = i + 1
		}
	}
	for _, r := range all[next:] {
		v.last = r
		if v.json {
			_ = v.answer(map[string]any{"receipt": r}, nil)
			continue
		}
		mark, colour := "✓", green
		if r.Outcome != evidence.Passed {
			mark, colour = "✗", red
		}
		v.clear()
		v.line("  %s %-18s %s %s", v.paint(colour, mark), r.Gate, r.Outcome, v.paint(dim, r.Line))
	}
}

func (v *releaseViewer) ended(id string, state policy.State) error {
	v.changed(state)
	if v.json {
		_ = v.answer(map[string]any{"phase": state.Shown(), "end": state.End, "switch": state.Switch, "bundle": state.Soak.Bundle}, nil)
	}
	switch {
	case state.Good():
		if !v.json {
			v.line("%s is known-good; bundle %s, outage %d ms", shortHash(state.Release), state.Soak.Bundle, state.Switch.OutageMillis)
		}
		return nil
	case state.Refused():
		return refusedStart(exitRefused, state.End.Problems)
	}
	if state.WentBack() {
		return exitWith(exitUnfinished, "%s went back: release %s serves as before. Why: %s: %s", id, shortHash(state.Stable.Release),
			state.End.Code, state.End.Detail)
	}
	return exitWith(exitUnfinished, "%s failed: %s: %s", id, state.End.Code, state.End.Detail)
}
