package chatlab

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Steps is what the scripted assistant does, one after the other.
type Steps []Step

// Step is one thing that the assistant does: a word (`drop`) or a word with its argument (`pause: 2s`).
type Step struct {
	Name string
	Line int
	action
}

// action plays one step. An error ends the answer where it stands and is reported as a violation.
type action interface {
	play(p *performance) error
}

// actions is the vocabulary. A flag takes no argument.
var actions = map[string]func() action{
	"think":         func() action { return new(think) },
	"tool":          func() action { return new(tool) },
	"text":          func() action { return new(text) },
	"more":          func() action { return new(more) },
	"late":          func() action { return new(late) },
	"stream":        func() action { return new(stream) },
	"pause":         func() action { return new(pause) },
	"gate":          func() action { return new(gate) },
	"banner":        func() action { return new(banner) },
	"state":         func() action { return new(setState) },
	"draft":         func() action { return new(draft) },
	"write_file":    func() action { return new(writeFile) },
	"run":           func() action { return new(run) },
	"drop":          func() action { return flag(func(*performance) {}) },
	"finish":        func() action { return flag((*performance).finish) },
	"no_action_bar": func() action { return flag(func(p *performance) { p.noBar = true }) },
	"stall":         func() action { return flag((*performance).stall) },
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Step) UnmarshalYAML(n *yaml.Node) error {
	name, argument := n, (*yaml.Node)(nil)
	if n.Kind == yaml.MappingNode && len(n.Content) == 2 {
		name, argument = n.Content[0], n.Content[1]
	}
	if name.Kind != yaml.ScalarNode {
		return fmt.Errorf("line %d: a step is one word, or one word with its argument", n.Line)
	}
	construct, ok := actions[name.Value]
	if !ok {
		return fmt.Errorf("line %d: unknown step %q (known: %s)", name.Line, name.Value,
			strings.Join(slices.Sorted(maps.Keys(actions)), ", "))
	}
	s.Name, s.Line, s.action = name.Value, name.Line, construct()
	_, isFlag := s.action.(flag)
	switch {
	case isFlag && argument != nil:
		return fmt.Errorf("line %d: step %q takes no argument", name.Line, name.Value)
	case !isFlag && argument == nil:
		return fmt.Errorf("line %d: step %q needs an argument", name.Line, name.Value)
	case argument != nil:
		return argument.Decode(s.action)
	}
	return nil
}

func (steps Steps) commands() bool {
	return slices.ContainsFunc(steps, func(s Step) bool { return s.Name == "run" || s.Name == "write_file" })
}

func (steps Steps) drops() bool {
	return len(steps) == 0 || steps[0].Name == "drop"
}

type flag func(*performance)

func (f flag) play(p *performance) error {
	f(p)
	return nil
}

// think shows "Thinking" for a while and leaves a "Thought for N s" node behind.
type think struct {
	For     time.Duration `yaml:"for"`
	Text    string        `yaml:"text"`    // reasoning that the page shows meanwhile
	Seconds int           `yaml:"seconds"` // what the label says; default: For, rounded up
}

func (t *think) UnmarshalYAML(n *yaml.Node) error {
	type plain think
	if err := shorthand(n, &t.For, (*plain)(t)); err != nil {
		return err
	}
	return notNegative(n, "for", t.For)
}

func (t *think) play(p *performance) error {
	p.edit(func(turn *turn) { turn.Thinking, turn.Reasoning = true, t.Text })
	err := p.sleep(t.For)
	seconds := t.Seconds
	if seconds == 0 {
		seconds = int((t.For + time.Second - 1) / time.Second)
	}
	p.edit(func(turn *turn) { turn.Thinking, turn.Reasoning = false, "" })
	if err != nil {
		return err
	}
	p.add(node{Kind: kindThought, Role: roleAssistant, Seconds: seconds})
	return nil
}

// tool shows a tool card.
type tool struct {
	Name   string        `yaml:"name"`
	Output Template      `yaml:"output"`
	For    time.Duration `yaml:"for"`  // the card says "running" that long
	Role   string        `yaml:"role"` // role of its node: tool or assistant
}

func (t *tool) UnmarshalYAML(n *yaml.Node) error {
	type plain tool
	if err := strict(n, (*plain)(t)); err != nil {
		return err
	}
	return oneOf(n, "role", &t.Role, roleTool, roleAssistant)
}

func (t *tool) play(p *performance) error {
	output, err := t.Output.render(p.facts)
	if err != nil {
		return err
	}
	id := p.add(node{Kind: kindTool, Role: t.Role, Name: t.Name, Running: true})
	if err := p.sleep(t.For); err != nil {
		return err
	}
	p.edit(func(turn *turn) {
		card := turn.find(id)
		card.Running, card.Text = false, output
	})
	return nil
}

// text starts a new role node and streams its body into it.
type text struct {
	Body Template `yaml:"body"`
	In   string   `yaml:"in"` // markdown, or bare: outside the usual container
}

func (t *text) UnmarshalYAML(n *yaml.Node) error {
	type plain text
	if err := shorthand(n, &t.Body, (*plain)(t)); err != nil {
		return err
	}
	return oneOf(n, "in", &t.In, kindMarkdown, kindBare)
}

func (t *text) play(p *performance) error {
	body, err := t.Body.render(p.facts)
	if err != nil {
		return err
	}
	return p.write(p.add(node{Kind: t.In, Role: roleAssistant}), body)
}

// more goes on in the last text node.
type more struct{ Template }

func (m *more) play(p *performance) error {
	body, err := m.render(p.facts)
	if err != nil {
		return err
	}
	return p.write(p.lastText(), body)
}

// late finishes the answer and adds text after the finish marker.
type late struct {
	Text  Template      `yaml:"text"`
	After time.Duration `yaml:"after"`
	Node  string        `yaml:"node"` // same or new
}

func (l *late) UnmarshalYAML(n *yaml.Node) error {
	type plain late
	if err := shorthand(n, &l.Text, (*plain)(l)); err != nil {
		return err
	}
	if err := notNegative(n, "after", l.After); err != nil {
		return err
	}
	return oneOf(n, "node", &l.Node, "same", "new")
}

func (l *late) play(p *performance) error {
	body, err := l.Text.render(p.facts)
	if err != nil {
		return err
	}
	p.finish()
	if err := p.sleep(l.After); err != nil {
		return err
	}
	id := p.lastText()
	if l.Node == "new" {
		id = p.add(node{Kind: kindMarkdown, Role: roleAssistant})
	}
	return p.write(id, body)
}

// stream sets the pace of the texts that follow.
type stream struct {
	Pieces int           `yaml:"pieces"`
	Every  time.Duration `yaml:"every"`
}

func (s *stream) UnmarshalYAML(n *yaml.Node) error {
	type plain stream
	if err := strict(n, (*plain)(s)); err != nil {
		return err
	}
	if s.Pieces < 1 {
		return fmt.Errorf("line %d: pieces is %d, want 1 or more", n.Line, s.Pieces)
	}
	return notNegative(n, "every", s.Every)
}

func (s *stream) play(p *performance) error {
	p.pace = *s
	return nil
}

// pause does nothing for a while, or until a gate is opened.
type pause struct {
	For        time.Duration `yaml:"for"`
	Gate       string        `yaml:"gate"`
	StopButton *bool         `yaml:"stop_button"` // false: no stop button meanwhile
	Busy       *bool         `yaml:"busy"`        // false: no aria-busy meanwhile
}

func (s *pause) UnmarshalYAML(n *yaml.Node) error {
	type plain pause
	if err := shorthand(n, &s.For, (*plain)(s)); err != nil {
		return err
	}
	return notNegative(n, "for", s.For)
}

func (s *pause) play(p *performance) error {
	p.edit(func(turn *turn) {
		turn.Stop = turn.Stop && (s.StopButton == nil || *s.StopButton)
		turn.Busy = turn.Busy && (s.Busy == nil || *s.Busy)
	})
	err := p.sleep(s.For)
	if err == nil && s.Gate != "" {
		err = p.wait(p.chat.gate(p.server, s.Gate))
	}
	if err == nil {
		p.edit(func(turn *turn) { turn.Stop, turn.Busy = !turn.Done, !turn.Done })
	}
	return err
}

// gate waits until Server.Release opens it.
type gate struct{ name string }

func (g *gate) UnmarshalYAML(n *yaml.Node) error { return n.Decode(&g.name) }

func (g *gate) play(p *performance) error { return p.wait(p.chat.gate(p.server, g.name)) }

// banner shows a status region in the turn.
type banner struct {
	Kind      string        `yaml:"kind"`
	ActionBar bool          `yaml:"action_bar"` // the turn still gets its action bar
	AutoRetry time.Duration `yaml:"auto_retry"` // the page itself presses Retry after that time
}

func (b *banner) UnmarshalYAML(n *yaml.Node) error {
	type plain banner
	if err := shorthand(n, &b.Kind, (*plain)(b)); err != nil {
		return err
	}
	if err := notNegative(n, "auto_retry", b.AutoRetry); err != nil {
		return err
	}
	return oneOf(n, "kind", &b.Kind, "error", "network_error", "stopped_thinking", "analysis_paused", "delivery_timed_out",
		"continue_button")
}

func (b *banner) play(p *performance) error {
	resumed := p.chat.newGate(p.server, continueGate)
	p.noBar = p.noBar || !b.ActionBar
	p.edit(func(turn *turn) {
		turn.Note = &note{Kind: b.Kind, AutoRetry: p.server.scaled(b.AutoRetry).Milliseconds()}
		turn.Stop, turn.Busy = false, false
	})
	if b.Kind != "continue_button" {
		return nil
	}
	if err := p.wait(resumed); err != nil {
		return err
	}
	p.noBar = false
	p.edit(func(turn *turn) { turn.Note, turn.Stop, turn.Busy = nil, true, true })
	return nil
}

const continueGate = "continue_button"

// setState puts the page into a state.
type setState struct{ State }

func (s *setState) UnmarshalYAML(n *yaml.Node) error { return s.State.UnmarshalYAML(n) }

func (s *setState) play(p *performance) error {
	p.server.setState(p.chat, s.State)
	return nil
}

// draft is a person who types into the composer of every open page of the conversation.
type draft struct{ text string }

func (d *draft) UnmarshalYAML(n *yaml.Node) error { return n.Decode(&d.text) }

func (d *draft) play(p *performance) error {
	p.server.draft(p.chat, d.text)
	return nil
}
