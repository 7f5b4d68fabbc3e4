package chatlab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Scenario scripts one conversation: how it starts, how its page behaves, and what answers the 1st, 2nd, … user message.
// It is written in YAML (see README.md) and made by ParseScenario.
type Scenario struct {
	About     string  `yaml:"about"`
	Seed      Seed    `yaml:"conversation"`
	Page      Page    `yaml:"page"`
	Replies   []Reply `yaml:"replies"`
	Otherwise Steps   `yaml:"otherwise"` // answers every message that no reply is left for; without it such a message is a violation
}

// Seed is what a conversation holds before its first scripted message.
type Seed struct {
	ID      string    `yaml:"id"`
	Project string    `yaml:"project"`
	Title   string    `yaml:"title"`
	History []Message `yaml:"history"`
	Turns   int       `yaml:"filler_turns"` // that many turns of meaningless text stand before History
}

// Message is one turn of a history.
type Message struct {
	Role string `yaml:"role" json:"role"` // user or assistant
	Text string `yaml:"text" json:"text"`
}

// Reply says what happens to one user message.
type Reply struct {
	When     When     `yaml:"when"`
	Times    int      `yaml:"times"` // how many messages it serves: default 1, -1 for all that follow
	Click    Click    `yaml:"click"`
	Delivery Delivery `yaml:"delivery"`
	Steps    Steps    `yaml:"steps"`
	OnRetry  Steps    `yaml:"on_retry"` // answers the page's Retry; default: Steps again
}

// When narrows a reply to some messages. Empty fits all.
type When struct {
	Contains string `yaml:"contains"`
	Matches  string `yaml:"matches"`
	pattern  *regexp.Regexp
}

// Click is how the page treats the click on Send, before anything reaches the server. It is looked up in the first reply
// that still has messages to serve, whatever its matcher.
type Click struct {
	Ignore  int           `yaml:"ignore"`       // that many clicks do nothing; the draft stays
	Replace string        `yaml:"replace_form"` // click or pointerdown: the form is removed then, and a new one inserted
	Freeze  time.Duration `yaml:"freeze"`       // the page's main thread hangs that long, after the request went out
}

// Delivery is how the server treats the message.
type Delivery struct {
	Status    int           `yaml:"status"`     // refused with this HTTP status (429, 500, …), never stored
	Cut       bool          `yaml:"cut"`        // stored, but the connection is cut before the page hears of it
	Hide      bool          `yaml:"hide"`       // stored and acknowledged, but not shown before a reload
	Lose      bool          `yaml:"lose"`       // shown, but not stored: gone after a reload
	Truncate  int           `yaml:"truncate"`   // stored with its first n characters only
	ShowAfter time.Duration `yaml:"show_after"` // shown that long after it was received
}

// Page is how the page of a conversation looks and behaves.
type Page struct {
	Language     string        `yaml:"language" json:"language"`         // en, zh, de, ja
	Enter        string        `yaml:"enter" json:"enter"`               // send, or newline (then Ctrl+Enter sends)
	TurnElement  string        `yaml:"turn_element" json:"turn_element"` // article, section, div
	Code         string        `yaml:"code" json:"code"`                 // breaks (spans and <br>) or newlines
	Virtual      int           `yaml:"virtual" json:"virtual"`           // only that many turns are mounted; 0: all
	Draft        string        `yaml:"draft" json:"draft"`               // stands in the composer after a load
	KeepDraft    bool          `yaml:"keep_draft" json:"keep_draft"`     // unsent text survives a reload
	Autolink     bool          `yaml:"autolink" json:"autolink"`         // the composer wraps URLs in links
	Optimistic   bool          `yaml:"optimistic" json:"optimistic"`     // a message is shown before the server has it
	LongPoll     bool          `yaml:"long_poll" json:"long_poll"`       // the network is never idle
	Decoys       []string      `yaml:"decoys" json:"decoys"`             // submit, stop, busy
	Provisional  time.Duration `yaml:"provisional" json:"-"`             // a new chat stays that long on /c/WEB:…; default 300ms
	HydrateAfter time.Duration `yaml:"hydrate_after" json:"-"`           // until then the page is dead, with a bare textarea
	SendAfter    time.Duration `yaml:"send_after" json:"-"`              // Send is mounted that long after the first input
	State        State         `yaml:"state" json:"-"`                   // state of the page at the start
}

const defaultProvisional = 300 * time.Millisecond

// ParseScenario reads one scenario from YAML or JSON. Unknown and duplicate keys, unknown words and broken templates are
// errors with their line.
func ParseScenario(data []byte) (Scenario, error) {
	var sc Scenario
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&sc); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return Scenario{}, fmt.Errorf("scenario: %w", err)
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return Scenario{}, errors.New("scenario: want one YAML document, found more text after it")
	}
	return sc, nil
}

// MustParse is ParseScenario for scenarios that stand in test code; it panics on an error.
func MustParse(text string) Scenario {
	sc, err := ParseScenario([]byte(text))
	if err != nil {
		panic(err)
	}
	return sc
}

// commands tells whether the scenario writes files or runs programs.
func (sc Scenario) commands() bool {
	lists := []Steps{sc.Otherwise}
	for _, r := range sc.Replies {
		lists = append(lists, r.Steps, r.OnRetry)
	}
	for _, steps := range lists {
		if steps.commands() {
			return true
		}
	}
	return false
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (sc *Scenario) UnmarshalYAML(n *yaml.Node) error {
	type plain Scenario
	sc.Page.Provisional = defaultProvisional
	if err := strict(n, (*plain)(sc)); err != nil {
		return err
	}
	return sc.Page.complete(n)
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (s *Seed) UnmarshalYAML(n *yaml.Node) error {
	type plain Seed
	if err := strict(n, (*plain)(s)); err != nil {
		return err
	}
	if s.Turns < 0 || s.Turns > 10000 {
		return fmt.Errorf("line %d: filler_turns is %d, want 0 to 10000", n.Line, s.Turns)
	}
	return nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (m *Message) UnmarshalYAML(n *yaml.Node) error {
	type plain Message
	if err := strict(n, (*plain)(m)); err != nil {
		return err
	}
	return oneOf(n, "role", &m.Role, roleUser, roleAssistant)
}

// UnmarshalYAML implements yaml.Unmarshaler. A reply without extras is just its list of steps.
func (r *Reply) UnmarshalYAML(n *yaml.Node) error {
	r.Times = 1
	if n.Kind == yaml.SequenceNode {
		return n.Decode(&r.Steps)
	}
	type plain Reply
	if err := strict(n, (*plain)(r)); err != nil {
		return err
	}
	if r.Times < -1 || r.Times == 0 {
		return fmt.Errorf("line %d: times is %d, want 1 or more, or -1 for all messages that follow", n.Line, r.Times)
	}
	if len(r.Steps) == 0 && r.Delivery.Status == 0 && !r.Delivery.Lose {
		return fmt.Errorf("line %d: a reply needs steps (a message that gets no answer: steps: [drop])", n.Line)
	}
	return nil
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (w *When) UnmarshalYAML(n *yaml.Node) error {
	type plain When
	err := strict(n, (*plain)(w))
	if err == nil && w.Matches != "" {
		if w.pattern, err = regexp.Compile(w.Matches); err != nil {
			err = fmt.Errorf("line %d: matches: %w", n.Line, err)
		}
	}
	return err
}

func (w When) fits(text string) bool {
	return strings.Contains(text, w.Contains) && (w.pattern == nil || w.pattern.MatchString(text))
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (c *Click) UnmarshalYAML(n *yaml.Node) error {
	type plain Click
	if err := strict(n, (*plain)(c)); err != nil {
		return err
	}
	if err := notNegative(n, "freeze", c.Freeze); err != nil {
		return err
	}
	return oneOf(n, "replace_form", &c.Replace, "", "click", "pointerdown")
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (d *Delivery) UnmarshalYAML(n *yaml.Node) error {
	type plain Delivery
	if err := strict(n, (*plain)(d)); err != nil {
		return err
	}
	if d.Status != 0 && (d.Status < 400 || d.Status > 599) {
		return fmt.Errorf("line %d: status is %d, want 400 to 599", n.Line, d.Status)
	}
	return notNegative(n, "show_after", d.ShowAfter)
}

// UnmarshalYAML implements yaml.Unmarshaler.
func (p *Page) UnmarshalYAML(n *yaml.Node) error {
	type plain Page
	if err := strict(n, (*plain)(p)); err != nil {
		return err
	}
	return p.complete(n)
}

// complete fills in the defaults and refuses unknown words.
func (p *Page) complete(n *yaml.Node) error {
	for _, decoy := range p.Decoys {
		if err := oneOf(n, "decoys", &decoy, "submit", "stop", "busy"); err != nil {
			return err
		}
	}
	return errors.Join(
		oneOf(n, "language", &p.Language, "en", "zh", "de", "ja"),
		oneOf(n, "enter", &p.Enter, "send", "newline"),
		oneOf(n, "turn_element", &p.TurnElement, "article", "section", "div"),
		oneOf(n, "code", &p.Code, "breaks", "newlines"),
		notNegative(n, "provisional", p.Provisional),
		notNegative(n, "hydrate_after", p.HydrateAfter),
		notNegative(n, "send_after", p.SendAfter),
	)
}
