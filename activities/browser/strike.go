package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"steward/activities"
	"steward/config/sites"
	"steward/workflows/run/receipt"
)

// strike is the irreversible part. It notes the attempt in the ledger, arms, presses once, and from then on says only what
// it can prove.
func (s *sending) strike(ctx context.Context) error {
	s.pulse.at("arm")
	err := s.b.ledger.append(attempt{Effect: s.in.EffectID, Generation: s.in.Generation, At: now()})
	if errors.Is(err, errLedgered) {
		return s.clearAfter(doubtful("ledger_refused", err.Error()))
	}
	if err != nil {
		return s.clearAfter(returned("ledger_failed", err.Error()))
	}
	s.b.opts.Hook("before_arm")
	if err := ctx.Err(); err != nil {
		return s.clearAfter(returned("cancelled", "the attempt was asked to stop before it armed"))
	}
	// From before the call: the server may have accepted it at any moment since.
	deadline := time.Now().Add(armWindow)
	if err := s.pulse.arm(context.WithoutCancel(ctx), s.in.Generation); err != nil {
		return s.clearAfter(returned("arming_refused", err.Error()))
	}
	s.result.Armed = true
	s.b.opts.Hook("armed")
	if proven, code, why := s.gate.press(s.b.tabs, deadline); proven {
		return s.clearAfter(returned(code, why))
	}
	s.b.opts.Hook("clicked")
	if err := s.b.rest.sent(now()); err != nil {
		s.b.log.Warn("time of the last send", "error", err)
	}
	s.lease.yield()
	s.pulse.at("commit")
	return s.commit(context.WithoutCancel(ctx))
}

// commit waits until the message stands in the conversation, and for a new conversation until its durable address is known.
func (s *sending) commit(ctx context.Context) error {
	t := s.place.site.Timings
	began := time.Now()
	noted, loaded := false, false
	reloadAt := began.Add(t.Commit / 2)
	for {
		l, err := s.tab.look(s.place.site, lookQuery{Marker: s.marker})
		if err == nil {
			noted = noted || s.limited(l)
			if l.taken(s.place.site, loaded || s.place.unbound()) {
				s.b.opts.Hook("committed")
				return s.bound(ctx, l)
			}
		}
		if time.Since(began) > t.Commit {
			return doubtful("commit_not_seen", "the message was not seen in the conversation: "+s.sight(l, err))
		}
		lost := errors.Is(err, errPageGone)
		if !s.place.unbound() && (lost || time.Now().After(reloadAt)) {
			reloadAt = reloadAt.Add(t.Commit)
			loaded = s.revisit(ctx, lost)
		}
		if err == nil && l.Marker == nil {
			_, _ = s.tab.scroll(s.place.site, "end") // a page that mounts only what is in view may hide it
		}
		if lost && s.place.unbound() {
			return doubtful("page_lost", "the page of the new conversation was lost after the press: "+err.Error())
		}
		if err := sleep(ctx, pace); err != nil {
			return doubtful("commit_not_seen", err.Error())
		}
	}
}

// revisit loads the conversation afresh to look for a message that its page did not show, and tells whether that worked. It
// only reads.
func (s *sending) revisit(ctx context.Context, lost bool) bool {
	if lost {
		s.b.tabs.drop(s.tab)
	}
	t, err := s.b.tabs.ensure(ctx, s.place)
	if err == nil && !lost {
		err = s.b.reopen(ctx, s.place, t)
	}
	if err != nil {
		s.b.log.Warn("conversation is not readable after the press", "effect", s.in.EffectID, "error", err)
		return false
	}
	s.tab = t
	return true
}

// limited notes a limit that the site shows after the press.
func (s *sending) limited(l look) bool {
	state, text := l.state(s.place.site, sites.Limited, sites.UserAction)
	if state == nil {
		return false
	}
	verdict := s.b.obstacle(s.place.site, arrival{state: state, text: text})
	s.b.log.Info("the site shows an obstacle after the press", "effect", s.in.EffectID, "state", state.Name, "verdict", verdict)
	return true
}

func (s *sending) sight(l look, err error) string {
	switch {
	case err != nil:
		return err.Error()
	case len(l.States) > 0:
		return "the page shows " + l.States[0].State
	case l.Draft != "":
		return "the text still stands in the composer"
	}
	return "the page shows " + l.URL
}

// bound waits for the durable address of a new conversation.
func (s *sending) bound(ctx context.Context, l look) error {
	deadline := time.Now().Add(s.place.site.Timings.Address)
	for {
		if id, _, err := s.place.site.Conversation(l.URL); err == nil && (s.place.unbound() || id == s.place.id) {
			return s.committed(l, false)
		}
		if !s.place.unbound() {
			return s.committed(l, false)
		}
		if time.Now().After(deadline) || s.tab.lost() {
			return s.committed(l, false) // it stands there; the observation goes on looking for its address
		}
		if err := sleep(ctx, pace); err != nil {
			return s.committed(l, false)
		}
		if next, err := s.tab.look(s.place.site, lookQuery{Marker: s.marker}); err == nil && next.Marker != nil {
			l = next
		}
	}
}

// committed is the verdict of a message that was seen with the marker of this effect.
func (s *sending) committed(l look, before bool) error {
	r := activities.SendResult{
		Outcome: activities.SendCommitted, AlreadyThere: before, UserMessageID: l.Marker.ID, CommittedAt: now(),
		ConversationID: s.place.id, ConversationURL: s.place.url,
	}
	if id, url, err := s.place.site.Conversation(l.URL); err == nil {
		r.ConversationID, r.ConversationURL = id, url
		if s.place.unbound() {
			if err := s.b.tabs.born(s.place, s.tab, s.in.EffectID, id, url); err != nil {
				s.b.log.Warn("tab file", "error", err)
			}
		}
	} else if s.place.unbound() {
		r.ConversationID, r.ConversationURL = "", ""
	}
	sent, shown := receipt.CanonicalText([]string{s.in.Prompt}), receipt.CanonicalText([]string{l.Marker.Text})
	if sent != shown && !s.place.site.Page.UserMarkdown {
		r.Code = "text_differs"
		r.Detail = fmt.Sprintf("the message stands there with %d of %d characters", len([]rune(shown)), len([]rune(sent)))
		if strings.HasPrefix(sent, shown) {
			r.Code = "text_cut"
		}
	}
	if err := s.b.tabs.change(s.tab.key, func(rec *record) { rec.Note = nil }); err != nil {
		s.b.log.Warn("tab file", "error", err)
	}
	return &verdict{r}
}
