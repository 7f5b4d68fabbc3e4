package browser

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mxschmitt/playwright-go"

	"steward/config/sites"
	"steward/workflows/run/receipt"
)

//go:embed js/*.js
var scripts embed.FS

// script joins parts into one function of one JSON argument.
func script(parts ...string) string {
	var b strings.Builder
	b.WriteString("(raw) => {\nconst {rules, states, query, text} = JSON.parse(raw)\n")
	for _, part := range parts {
		source, err := scripts.ReadFile("js/" + part + ".js")
		if err != nil {
			panic(err) // embedded: cannot fail
		}
		b.Write(source)
	}
	b.WriteString("}")
	return b.String()
}

var (
	lookScript   = script("lib", "thread", "states", "look")
	draftScript  = script("lib", "draft")
	gateScript   = script("lib", "gate")
	rulesScript  = script("lib", "thread", "rules")
	scrollScript = script("lib", "thread", "scroll")
	linksScript  = script("lib", "links")

	inventoryScript = script("lib", "inventory")
)

// argument is what a script is given.
type argument struct {
	Rules  sites.Page    `json:"rules"`
	States []sites.State `json:"states"`
	Query  any           `json:"query,omitempty"`
	Text   string        `json:"text,omitempty"`
}

// lookQuery says what a look asks for.
type lookQuery struct {
	Marker string `json:"marker"`
	// Turn is the id of the answer when it was seen before.
	Turn string `json:"turn"`
	// Texts asks for whole texts, of up to Limit characters.
	Texts bool `json:"texts"`
	Limit int  `json:"limit"`
}

// look is what one look saw.
type look struct {
	URL    string `json:"url"`
	Title  string `json:"title"`
	Ready  bool   `json:"ready"`
	Draft  string `json:"draft"`
	Stop   bool   `json:"stop"`
	Items  int    `json:"items"`
	States []seen `json:"states"`
	Marker *struct {
		message
		Count int `json:"count"`
	} `json:"marker"`
	// Found: the answer's place is known, by the marker or by its turn id. Later counts the messages after it that do not
	// carry the marker.
	Found bool     `json:"found"`
	Later int      `json:"later"`
	Last  *message `json:"last"`
	// Answer follows the marked message (without one: the last message), LastAnswer the last message.
	Answer     answer `json:"answer"`
	LastAnswer answer `json:"lastAnswer"`
}

// seen is a page state that holds, by its name, with the text that shows it.
type seen struct {
	State string `json:"state"`
	Text  string `json:"text"`
}

type message struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

type answer struct {
	Present   bool     `json:"present"`
	ID        string   `json:"id"`
	Signature string   `json:"signature"`
	Finished  bool     `json:"finished"`
	Busy      bool     `json:"busy"`
	Texts     []string `json:"texts"`
	Cut       bool     `json:"cut"`
}

// generating tells whether the page still works on the last message.
func (l *look) generating() bool { return l.Stop || l.LastAnswer.Busy }

// quietAtEnd tells whether the last message has an answer that bears its finish marks.
func (l *look) quietAtEnd() bool { return l.LastAnswer.Finished && !l.generating() }

// taken tells whether the page proves that the site has the marked message. A page that shows messages before the site has
// them proves it by an answer, or when it was loaded afterwards.
func (l *look) taken(site *sites.Site, loaded bool) bool {
	if l.Marker == nil || !site.Page.Optimistic || loaded {
		return l.Marker != nil
	}
	failed, _ := l.state(site, sites.Failed)
	return l.Answer.Present && failed == nil
}

// state is the first of the profile's states that holds and is of one of the kinds.
func (l *look) state(site *sites.Site, kinds ...string) (*sites.State, string) {
	for _, seen := range l.States {
		for i := range site.States {
			state := &site.States[i]
			if state.Name != seen.State {
				continue
			}
			if slices.Contains(kinds, state.Kind) {
				return state, seen.Text
			}
		}
	}
	return nil, ""
}

// Bounds of calls into a page.
const (
	lookLimit = 10 * time.Second
	readLimit = 30 * time.Second
)

// maxText bounds the text that is taken out of a page, in characters: an answer that is longer than a receipt may be.
const maxText = receipt.MaxAnswer + 1

// look reads the page.
func (t *tab) look(site *sites.Site, q lookQuery) (look, error) {
	limit := lookLimit
	if q.Texts {
		limit = readLimit
	}
	q.Limit = maxText
	var l look
	err := t.evaluate(limit, lookScript, argument{Rules: site.Page, States: site.States, Query: q}, &l)
	return l, err
}

// evaluate runs a script and decodes its answer, which is JSON.
func (t *tab) evaluate(limit time.Duration, source string, arg argument, into any) error {
	raw, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	value, err := within(limit, func() (any, error) { return t.page.Evaluate(source, string(raw)) })
	if err != nil {
		return t.failed("read the page", err)
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("the page answered %T, not JSON", value)
	}
	return json.Unmarshal([]byte(text), into)
}

// errPageGone is wrapped by errors of a page that cannot be used any more.
var errPageGone = errors.New("the page is gone")

// failed judges the error of a call into the page. A page that does not answer is given up.
func (t *tab) failed(what string, err error) error {
	switch {
	case errors.Is(err, errHung) && strings.HasPrefix(t.key, unboundPrefix):
		return fmt.Errorf("%s: %w", what, err) // this tab is the only way to its conversation
	case errors.Is(err, errHung):
		t.broken.Store(true)
		return fmt.Errorf("%s: %w: %w", what, errPageGone, err)
	case errors.Is(err, playwright.ErrTargetClosed) || t.lost():
		t.broken.Store(true)
		return fmt.Errorf("%s: %w: %w", what, errPageGone, firstLine(err))
	}
	return fmt.Errorf("%s: %w", what, firstLine(err))
}
