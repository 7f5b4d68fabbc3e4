package chatlab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// performance plays the answer to one message.
type performance struct {
	server   *Server
	chat     *chat
	facts    Facts
	received Received
	steps    Steps
	retry    Steps // answer Retry
	answer   *turn // nil: no answer; guarded by Server.mu
	noBar    bool
	pace     stream
	ctx      context.Context
	cancel   context.CancelCauseFunc
	ended    chan struct{}
}

var errStopped = errors.New("stopped by the person at the page")

// begin puts the empty answer on the page and plays its steps in the background. The caller holds Server.mu.
func (p *performance) begin(hidden bool, before func()) {
	p.ctx, p.cancel = context.WithCancelCause(p.server.ctx)
	p.ended = make(chan struct{})
	p.chat.playing = p
	if !p.steps.drops() {
		p.answer = newTurn(roleAssistant)
		p.answer.Stop, p.answer.Busy = true, true
		if hidden {
			p.chat.mute(p.answer.ID)
		}
	}
	p.server.work.Go(func() {
		defer close(p.ended)
		before()
		p.perform()
	})
}

func (p *performance) perform() {
	if p.answer == nil {
		return
	}
	p.server.mu.Lock()
	p.chat.turns = append(p.chat.turns, p.answer)
	p.chat.sendTurn(p.answer)
	p.server.mu.Unlock()
	for _, step := range p.steps {
		err := step.play(p)
		switch {
		case err == nil:
			continue
		case errors.Is(context.Cause(p.ctx), errStopped):
			p.edit(func(t *turn) { t.Note, t.Thinking, t.Reasoning = &note{Kind: "stopped_thinking"}, false, "" })
		case p.ctx.Err() == nil:
			p.server.mu.Lock()
			p.server.violate(p.chat.id, fmt.Sprintf("step %q of line %d failed: %v", step.Name, step.Line, err))
			p.server.mu.Unlock()
		}
		break
	}
	p.finish()
}

// over tells whether the answer has its finish marks. The caller holds Server.mu.
func (p *performance) over() bool { return p.answer == nil || p.answer.Done }

// edit changes the answer and tells the pages, unless a person has replaced the answer meanwhile.
func (p *performance) edit(change func(*turn)) {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	change(p.answer)
	if slices.Contains(p.chat.turns, p.answer) {
		p.chat.sendTurn(p.answer)
	}
}

// add appends a role node and returns its id.
func (p *performance) add(n node) string {
	n.ID = uuid.NewString()
	p.edit(func(t *turn) { t.Nodes = append(t.Nodes, &n) })
	return n.ID
}

// lastText is the id of the last text node; it makes one if there is none.
func (p *performance) lastText() string {
	p.server.mu.Lock()
	id := ""
	for _, n := range p.answer.Nodes {
		if n.Kind == kindMarkdown || n.Kind == kindBare {
			id = n.ID
		}
	}
	p.server.mu.Unlock()
	if id == "" {
		id = p.add(node{Kind: kindMarkdown, Role: roleAssistant})
	}
	return id
}

// write streams text into a node at the pace in force.
func (p *performance) write(id, text string) error {
	runes := []rune(text)
	pieces := max(1, min(p.pace.Pieces, len(runes)))
	for i := range pieces {
		if i > 0 {
			if err := p.sleep(p.pace.Every); err != nil {
				return err
			}
		}
		piece := string(runes[len(runes)*i/pieces : len(runes)*(i+1)/pieces])
		p.server.mu.Lock()
		p.answer.find(id).Text += piece
		p.chat.send(p.answer.ID, map[string]any{"type": "append", "turn_id": p.answer.ID, "node_id": id, "text": piece})
		p.server.mu.Unlock()
	}
	return p.ctx.Err()
}

// finish shows the finish marks. It may be called more than once.
func (p *performance) finish() {
	p.edit(func(t *turn) {
		t.Stop, t.Busy, t.Thinking, t.Done = false, false, false, true
		t.Bar = !p.noBar
	})
}

// stall cuts the pages that are open now off from the rest of the answer.
func (p *performance) stall() {
	p.server.mu.Lock()
	defer p.server.mu.Unlock()
	p.chat.mute(p.answer.ID)
}

// sleep waits for a scripted duration, or until the answer is stopped.
func (p *performance) sleep(d time.Duration) error {
	return pauseFor(p.ctx, p.server.scaled(d))
}

// wait stands at a gate until it is opened.
func (p *performance) wait(g *gateState) error {
	p.server.mu.Lock()
	select {
	case <-g.reached:
	default:
		close(g.reached)
	}
	p.server.mu.Unlock()
	select {
	case <-g.opened:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

func pauseFor(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
