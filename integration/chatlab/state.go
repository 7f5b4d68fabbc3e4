package chatlab

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"
)

// State is a page state that is not an answer: a wall, a limit, a dialog. The zero State is a normal page.
type State struct {
	Kind     string        `yaml:"kind"`     // see stateKinds
	For      time.Duration `yaml:"for"`      // it ends that long after it began; pages that show it go on until a reload
	Loads    *int          `yaml:"loads"`    // it ends after that many page loads; 0: a reload ends it
	Where    string        `yaml:"where"`    // dialog or alert
	Composer bool          `yaml:"composer"` // login only: a composer that looks as if it worked
}

// stateKinds are the known page states.
var stateKinds = []string{
	"",                   // a normal page
	"login",              // signed out: "Log in" is visible, no history
	"consent",            // new terms to accept
	"challenge",          // "Just a moment…", on load only
	"rate_limit",         // "Too many requests"; messages are answered with 429
	"rate_limit_on_load", // a load of the conversation ends on / with the dialog of rate_limit
	"usage_limit",        // the plan's limit, with the time at which it ends
	"conversation_limit", // this conversation is full
	"disconnected",       // "Connection lost"
	"error",              // "Something went wrong", page wide
}

// UnmarshalYAML implements yaml.Unmarshaler. A state without details is just its kind.
func (s *State) UnmarshalYAML(n *yaml.Node) error {
	type plain State
	if err := shorthand(n, &s.Kind, (*plain)(s)); err != nil {
		return err
	}
	return s.check(n.Line)
}

func (s *State) check(line int) error {
	n := &yaml.Node{Line: line}
	if err := oneOf(n, "state", &s.Kind, stateKinds...); err != nil {
		return err
	}
	if err := oneOf(n, "where", &s.Where, "dialog", "alert"); err != nil {
		return err
	}
	if s.Loads != nil && *s.Loads < 0 {
		return fmt.Errorf("line %d: loads is %d, want 0 or more", line, *s.Loads)
	}
	return notNegative(n, "for", s.For)
}

// activeState is a State in force.
type activeState struct {
	State
	until time.Time // zero: no end by time
	loads int       // page loads since it began
}

func (a *activeState) begin(st State, length time.Duration) {
	*a = activeState{State: st}
	if length > 0 {
		a.until = time.Now().Add(length)
	}
}

// current is the state in force now.
func (a *activeState) current() State {
	if !a.until.IsZero() && !time.Now().Before(a.until) {
		*a = activeState{}
	}
	return a.State
}

// load counts one page load and tells what that page shows.
func (a *activeState) load() State {
	if a.Loads != nil && a.loads >= *a.Loads {
		*a = activeState{}
	}
	a.loads++
	return a.current()
}

// blocks tells with which HTTP status a message is refused; 0 means that it is taken.
func (s State) blocks() int {
	switch s.Kind {
	case "rate_limit", "rate_limit_on_load", "usage_limit":
		return 429
	case "challenge", "consent", "conversation_limit":
		return 403
	case "disconnected", "error":
		return 503
	case "login":
		if !s.Composer {
			return 401
		}
	}
	return 0
}

// stateView is a State as the page reads it.
type stateView struct {
	Kind     string     `json:"kind"`
	Where    string     `json:"where"`
	Composer bool       `json:"composer"`
	Until    *time.Time `json:"until,omitempty"`
}

func (a *activeState) view() stateView {
	st := a.current()
	v := stateView{Kind: st.Kind, Where: st.Where, Composer: st.Composer}
	if !a.until.IsZero() {
		v.Until = &a.until
	}
	return v
}
