package chatlab

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// posted is a user message on its way from the page.
type posted struct {
	ConversationID string `json:"conversation_id"` // empty: a new chat
	Project        string `json:"project"`
	MessageID      string `json:"message_id"`
	Text           string `json:"text"`
	Via            string `json:"via"`
}

// verdict answers a posted message.
type verdict struct {
	Status         int    `json:"-"`
	Cut            bool   `json:"-"` // cut the connection in the middle of the answer
	ConversationID string `json:"conversation_id,omitempty"`
	Path           string `json:"path,omitempty"`
	SignedOut      bool   `json:"signed_out,omitempty"`
}

// take is the one way by which a message comes in.
func (s *Server) take(m posted) verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[m.ConversationID]
	if m.ConversationID == "" {
		c = s.freshChat(m.Project)
	}
	if c == nil {
		return verdict{Status: http.StatusNotFound}
	}
	if m.Via != viaClick && m.Via != viaSay {
		s.violate(c.id, "submitted by "+m.Via+" instead of a click on Send")
	}
	if c.byID[m.MessageID] {
		s.note(c.id, "duplicate_post", m.MessageID)
		return verdict{Status: http.StatusOK, ConversationID: c.id, Path: c.path()}
	}
	state := s.stateOf(c).current()
	if status := state.blocks(); status != 0 {
		s.note(c.id, "refused", fmt.Sprintf("%d by the state %s", status, state.Kind))
		return verdict{Status: status}
	}
	if state.Kind == "login" {
		return s.takeSignedOut(c, m)
	}
	return s.deliver(c, m)
}

// takeSignedOut accepts a message into nowhere, as the composer of a signed-out page does.
func (s *Server) takeSignedOut(c *chat, m posted) verdict {
	s.violate(c.id, "a message was sent while signed out")
	s.receive(c, m, m.Text, true)
	return verdict{Status: http.StatusOK, SignedOut: true}
}

// deliver stores a message as its reply says, and starts the answer.
func (s *Server) deliver(c *chat, m posted) verdict {
	index, reply := c.pick(m.Text)
	if reply == nil {
		s.violate(c.id, fmt.Sprintf("no reply is left for message %d", len(c.received)+1))
		reply = &Reply{}
	}
	how := reply.Delivery
	if how.Status != 0 {
		c.use(s, index)
		s.note(c.id, "refused", fmt.Sprintf("%d by the scenario", how.Status))
		return verdict{Status: how.Status}
	}
	if c.id == "" {
		c = s.founded(c, m.Text)
	}
	c.use(s, index)
	shown := m.Text
	if runes := []rune(m.Text); how.Truncate > 0 && how.Truncate < len(runes) {
		shown = string(runes[:how.Truncate])
	}
	answer := verdict{Status: http.StatusOK, Cut: how.Cut, ConversationID: c.id, Path: c.path()}
	question := userTurn(m.MessageID, shown)
	if how.Lose {
		s.note(c.id, "lost", m.MessageID)
		c.sendTurn(question)
		return answer
	}
	if c.playing != nil && !c.playing.over() {
		s.violate(c.id, "a message was sent while the answer before it was still generated")
		c.playing.cancel(errStopped)
	}
	received := s.receive(c, m, shown, false)
	hidden := how.Hide || how.Cut
	if hidden {
		c.mute(question.ID)
	}
	show := func() {
		c.turns = append(c.turns, question)
		c.sendTurn(question)
	}
	if how.ShowAfter == 0 {
		show()
	}
	s.answer(c, received, reply.Steps, hidden, func(ctx context.Context) {
		if how.ShowAfter > 0 && pauseFor(ctx, s.scaled(how.ShowAfter)) == nil {
			s.mu.Lock()
			show()
			s.mu.Unlock()
		}
	})
	if len(reply.OnRetry) > 0 {
		c.playing.retry = reply.OnRetry
	}
	return answer
}

// founded makes the conversation that a first message creates.
func (s *Server) founded(page *chat, message string) *chat {
	c := newChat(newID(), page.project)
	c.request = uuid.NewString()
	line, _, _ := strings.Cut(message, "\n")
	c.title = string([]rune(line)[:min(60, utf8.RuneCountInString(line))])
	c.setScenario(page.scenario, 0)
	c.state = activeState{}
	c.used = slices.Clone(page.used)
	s.requests[c.request] = c.id
	provisional := s.scaled(page.scenario.Page.Provisional)
	c.durable = time.Now().Add(provisional)
	s.register(c)
	if provisional > 0 {
		s.work.Go(func() {
			if pauseFor(s.ctx, provisional) == nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				c.send("", map[string]any{"type": "route", "path": c.path()})
			}
		})
	}
	return c
}

// receive records a message and wakes those who wait for one.
func (s *Server) receive(c *chat, m posted, shown string, signedOut bool) Received {
	r := Received{
		At: time.Now(), ConversationID: c.id, MessageID: m.MessageID, Text: m.Text, Shown: shown, Via: m.Via,
		EffectID: factsOf(m.Text).EffectID, SignedOut: signedOut,
	}
	c.byID[m.MessageID] = true
	c.received = append(c.received, r)
	s.all = append(s.all, r)
	close(s.changed)
	s.changed = make(chan struct{})
	s.opts.Log.Info("message received", "conversation", c.id, "via", m.Via, "characters", len(m.Text), "effect", r.EffectID)
	return r
}

// answer starts the answer to a received message, after the hooks have run. The caller holds s.mu.
func (s *Server) answer(c *chat, r Received, steps Steps, hidden bool, before func(context.Context)) {
	facts := factsOf(r.Text)
	facts.Number, facts.ChatID = len(c.received), c.id
	facts.URL, facts.Dir, facts.Vars = s.url, s.opts.Dir, s.opts.Vars
	hooks := s.hooks
	p := &performance{server: s, chat: c, facts: facts, steps: steps, retry: steps, received: r}
	p.begin(hidden, func() {
		before(p.ctx)
		for _, hook := range hooks {
			hook(r)
		}
	})
}

// again answers the last message once more in place of its answer. The caller holds s.mu.
func (s *Server) again(c *chat, steps Steps) error {
	last := c.playing
	if last == nil {
		return fmt.Errorf("chatlab: conversation %s has no scripted message that could be answered again", c.id)
	}
	last.cancel(errStopped)
	if t := c.lastAnswer(); t != nil && t == last.answer {
		c.remove(t)
	}
	s.answer(c, last.received, steps, false, func(context.Context) {})
	return nil
}
