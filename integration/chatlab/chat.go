package chatlab

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// chat is one conversation. Its fields are guarded by Server.mu. The chat with an empty id is the page for a new
// conversation (of a project, or of none): it holds what the chats that begin there start with.
type chat struct {
	id       string
	project  string
	title    string
	request  string    // id in the provisional address /c/WEB:<request>
	durable  time.Time // when the provisional address gives way to the final one
	scenario Scenario
	state    activeState
	used     []int // messages served, per reply
	ignored  int   // clicks that the page swallowed for the reply whose turn it is
	turns    []*turn
	received []Received
	byID     map[string]bool // message ids that were received
	gates    map[string]*gateState
	playing  *performance
	watchers map[*watcher]struct{}
}

// watcher is one open page.
type watcher struct {
	events chan []byte
	muted  map[string]bool // turns that this page does not hear of any more
}

// gateState is a point at which a script waits.
type gateState struct {
	reached chan struct{} // closed when a script waits there
	opened  chan struct{} // closed by Release
}

func newChat(id, project string) *chat {
	return &chat{
		id: id, project: project,
		byID: map[string]bool{}, gates: map[string]*gateState{}, watchers: map[*watcher]struct{}{},
	}
}

// setScenario replaces the script. What was said so far stays.
func (c *chat) setScenario(sc Scenario, stateLength time.Duration) {
	c.scenario = sc
	c.used = make([]int, len(sc.Replies))
	c.ignored = 0
	c.state.begin(sc.Page.State, stateLength)
}

// pick finds the reply for a message and its place in the scenario (-1 for Otherwise). Nil means that none is left.
func (c *chat) pick(message string) (int, *Reply) {
	for i := range c.scenario.Replies {
		if r := &c.scenario.Replies[i]; c.left(i) && r.When.fits(message) {
			return i, r
		}
	}
	if len(c.scenario.Otherwise) > 0 {
		return -1, &Reply{Steps: c.scenario.Otherwise}
	}
	return -1, nil
}

// use marks a picked reply used.
func (c *chat) use(s *Server, index int) {
	if index >= 0 {
		c.used[index]++
	}
	c.ignored = 0
	c.sendClick(s)
}

func (c *chat) left(i int) bool {
	times := c.scenario.Replies[i].Times
	return times == -1 || c.used[i] < times
}

// clickView is the Click of the reply whose turn it is, as the page reads it.
type clickView struct {
	Ignore  int    `json:"ignore"`
	Replace string `json:"replace_form"`
	Freeze  int64  `json:"freeze_ms"`
}

func (c *chat) click(s *Server) clickView {
	for i, r := range c.scenario.Replies {
		if c.left(i) {
			return clickView{max(0, r.Click.Ignore-c.ignored), r.Click.Replace, s.scaled(r.Click.Freeze).Milliseconds()}
		}
	}
	return clickView{}
}

// path is the address of the conversation now.
func (c *chat) path() string {
	prefix := ""
	if c.project != "" {
		prefix = "/g/" + c.project
	}
	switch {
	case c.id == "" && c.project == "":
		return "/"
	case c.id == "":
		return prefix + "/project"
	case time.Now().Before(c.durable):
		return prefix + "/c/WEB:" + c.request
	}
	return prefix + "/c/" + c.id
}

// send tells every open page something. A page that does not hear of the turn any more is left out; one that is too slow
// is disconnected, comes back and reads the whole conversation.
func (c *chat) send(turnID string, event any) {
	data, err := json.Marshal(event)
	if err != nil {
		panic(err) // our own types: cannot fail
	}
	for w := range c.watchers {
		if turnID != "" && w.muted[turnID] {
			continue
		}
		select {
		case w.events <- data:
		default:
			c.drop(w)
		}
	}
}

func (c *chat) drop(w *watcher) {
	if _, ok := c.watchers[w]; ok {
		delete(c.watchers, w)
		close(w.events)
	}
}

// mute hides a turn from the pages that are open now: they learn of it only by a reload.
func (c *chat) mute(turnID string) {
	for w := range c.watchers {
		w.muted[turnID] = true
	}
}

func (c *chat) sendTurn(t *turn) {
	c.send(t.ID, map[string]any{"type": "turn", "turn": t})
}

func (c *chat) sendClick(s *Server) {
	c.send("", map[string]any{"type": "click", "click": c.click(s)})
}

// lastAnswer is the last turn of the assistant, or nil.
func (c *chat) lastAnswer() *turn {
	for _, t := range slices.Backward(c.turns) {
		if t.Role == roleAssistant {
			return t
		}
	}
	return nil
}

func (c *chat) remove(t *turn) {
	c.turns = slices.DeleteFunc(c.turns, func(other *turn) bool { return other == t })
	c.send(t.ID, map[string]any{"type": "remove", "turn_id": t.ID})
}

// gate finds or makes a named gate.
func (c *chat) gate(s *Server, name string) *gateState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return c.gateNamed(name)
}

// newGate is a closed gate in place of the one that had the name.
func (c *chat) newGate(s *Server, name string) *gateState {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(c.gates, name)
	return c.gateNamed(name)
}

func (c *chat) gateNamed(name string) *gateState {
	g := c.gates[name]
	if g == nil {
		g = &gateState{reached: make(chan struct{}), opened: make(chan struct{})}
		c.gates[name] = g
	}
	return g
}

// projectKey is the part of a project's name that identifies it: without the slug.
func projectKey(project string) string {
	parts := strings.SplitN(project, "-", 4)
	return strings.Join(parts[:min(3, len(parts))], "-")
}
