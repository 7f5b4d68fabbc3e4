package chatlab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

const (
	viaClick = "click"
	viaSay   = "say"
)

// Record lists the user messages that a conversation received, in order. Refused and lost ones are events.
func (s *Server) Record(id string) []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.chats[id]; c != nil {
		return slices.Clone(c.received)
	}
	return nil
}

// Records lists the user messages of the whole site, in order.
func (s *Server) Records() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// Await waits until a conversation (of the whole site for the empty id) has received n messages, and returns them.
func (s *Server) Await(ctx context.Context, id string, n int) ([]Received, error) {
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		got := s.Records()
		if id != "" {
			got = s.Record(id)
		}
		if len(got) >= n {
			return got, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return got, fmt.Errorf("chatlab: %d of %d messages in conversation %q: %w", len(got), n, id, ctx.Err())
		}
	}
}

// Violations lists what no driver may do (the voice button, Enter, a click on a decoy, a message without a reply, …) and
// every step of a script that failed.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// Events lists what happened at the pages beside received messages, in order.
func (s *Server) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// OnMessage adds a function that is called with every received message, before its answer starts.
func (s *Server) OnMessage(f func(Received)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = append(slices.Clip(s.hooks), f)
}

// ConversationInfo is a line of Conversations.
type ConversationInfo struct {
	ID       string `json:"id"`
	URL      string `json:"url"`
	Project  string `json:"project,omitempty"`
	Title    string `json:"title"`
	Received int    `json:"received"`
	Watching int    `json:"watching"` // open pages
}

// Conversations lists all conversations in the order in which they began.
func (s *Server) Conversations() []ConversationInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	infos := make([]ConversationInfo, len(s.order))
	for i, c := range s.order {
		infos[i] = ConversationInfo{c.id, s.url + c.path(), c.project, c.title, len(c.received), len(c.watchers)}
	}
	return infos
}

// TurnText is one turn as a reload would show it.
type TurnText struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	Text string `json:"text"`
	Done bool   `json:"done"`
	Note string `json:"note,omitempty"` // kind of its status region
}

// Transcript is what a conversation holds.
func (s *Server) Transcript(id string) ([]TurnText, error) {
	var turns []TurnText
	err := s.with(id, func(c *chat) {
		for _, t := range c.turns {
			line := TurnText{ID: t.ID, Role: t.Role, Text: t.text(), Done: t.Done}
			if t.Note != nil {
				line.Note = t.Note.Kind
			}
			turns = append(turns, line)
		}
	})
	return turns, err
}

// SetState puts a page state in force, of one conversation or (empty id) of every page that has none of its own. The zero
// State ends it.
func (s *Server) SetState(id string, st State) error {
	if err := st.check(0); err != nil {
		return fmt.Errorf("chatlab: %w", err)
	}
	if id != "" {
		return s.with(id, func(c *chat) { s.beginState(c, st) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.site.begin(st, s.scaled(st.For))
	for _, c := range s.chats {
		s.sendState(c)
	}
	for _, c := range s.fresh {
		s.sendState(c)
	}
	return nil
}

func (s *Server) setState(c *chat, st State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beginState(c, st)
}

func (s *Server) beginState(c *chat, st State) {
	c.state.begin(st, s.scaled(st.For))
	s.sendState(c)
}

// stateOf is the state that a page of the conversation is in: its own, else the site's.
func (s *Server) stateOf(c *chat) *activeState {
	if c.state.current().Kind != "" {
		return &c.state
	}
	return &s.site
}

func (s *Server) sendState(c *chat) {
	c.send("", map[string]any{"type": "state", "state": s.stateOf(c).view()})
}

// Draft is a person who types into the composer of every open page of a conversation.
func (s *Server) Draft(id, text string) error {
	return s.with(id, func(c *chat) { c.send("", draftEvent(text)) })
}

func (s *Server) draft(c *chat, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.send("", draftEvent(text))
}

func draftEvent(text string) map[string]any { return map[string]any{"type": "draft", "text": text} }

// Say is a person who sends a message of their own from another device. It uses up a reply like any other message.
func (s *Server) Say(id, text string) error {
	v := s.take(posted{ConversationID: id, MessageID: uuid.NewString(), Text: text, Via: viaSay})
	if v.Status != 200 {
		return fmt.Errorf("chatlab: conversation %s refused the message with status %d", id, v.Status)
	}
	return nil
}

// Regenerate is a person who has the last message answered again: the answer is replaced by another turn.
func (s *Server) Regenerate(id string, steps Steps) error {
	var err error
	return errors.Join(s.with(id, func(c *chat) { err = s.again(c, steps) }), err)
}

// Edit is a person who edits the last message: its turn and the answer give way to new ones.
func (s *Server) Edit(id, text string) error {
	err := s.with(id, func(c *chat) {
		if c.playing != nil {
			c.playing.cancel(errStopped)
		}
		for _, v := range slices.Backward(c.turns) {
			t := v
			c.remove(t)
			if t.Role == roleUser {
				break
			}
		}
	})
	if err != nil {
		return err
	}
	return s.Say(id, text)
}

// Release opens a gate of a conversation's script, now or before the script comes there.
func (s *Server) Release(id, name string) error {
	return s.with(id, func(c *chat) { c.release(name) })
}

func (c *chat) release(name string) {
	g := c.gateNamed(name)
	select {
	case <-g.opened:
	default:
		close(g.opened)
	}
}

// AwaitGate waits until a script stands at a gate.
func (s *Server) AwaitGate(ctx context.Context, id, name string) error {
	var g *gateState
	if err := s.with(id, func(c *chat) { g = c.gateNamed(name) }); err != nil {
		return err
	}
	select {
	case <-g.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("chatlab: the script of %s is not at gate %q: %w", id, name, ctx.Err())
	}
}

// violate notes a violation. The caller holds s.mu.
func (s *Server) violate(id, what string) {
	s.violations = append(s.violations, fmt.Sprintf("%s: %s", pageName(id), what))
	s.opts.Log.Warn("violation", "conversation", id, "what", what)
}

// note notes an event. The caller holds s.mu.
func (s *Server) note(id, kind, detail string) {
	s.events = append(s.events, Event{time.Now(), id, kind, detail})
	s.opts.Log.Info("event", "conversation", id, "kind", kind, "detail", detail)
}

func pageName(id string) string {
	if id == "" {
		return "new chat"
	}
	return id
}
