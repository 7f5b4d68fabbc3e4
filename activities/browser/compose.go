package browser

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf16"

	"steward/activities"
	"steward/config/sites"
)

// composer is what the page's editor holds.
type composer struct {
	Present bool   `json:"present"`
	Focused bool   `json:"focused"`
	Text    string `json:"text"`
	Control bool   `json:"control"`
	Stop    bool   `json:"stop"`
}

func (t *tab) composer(site *sites.Site, op string) (composer, error) {
	var c composer
	err := t.evaluate(lookLimit, draftScript, argument{Rules: site.Page, Query: map[string]string{"op": op}}, &c)
	return c, err
}

// insert types a text into the focused composer, in the profile's way.
func (t *tab) insert(site *sites.Site, text string) error {
	if site.Page.Newline == sites.NewlineBreak {
		return t.evaluate(typeLimit, draftScript, argument{Rules: site.Page, Query: map[string]string{"op": "lines"}, Text: text}, new(composer))
	}
	if err := do(typeLimit, func() error { return t.page.Keyboard().InsertText(text) }); err != nil {
		return t.failed("type the prompt", err)
	}
	return nil
}

// typeLimit bounds the one call that types a whole prompt: a long one with many lines takes seconds.
const typeLimit = 60 * time.Second

// compose ends with exactly the prompt in the composer and the send control ready. Somebody else's text is never touched.
func (s *sending) compose(ctx context.Context) error {
	c, err := s.tab.composer(s.place.site, "read")
	if err != nil {
		return err
	}
	if !c.Present {
		return drift("composer", "the composer is not there")
	}
	if c.Text != "" && c.Text != s.in.Prompt {
		if err := s.residue(c.Text); err != nil {
			return err
		}
		c.Text = ""
	}
	if c.Text == "" {
		if err := s.enter(ctx); err != nil {
			return err
		}
	}
	return s.awaitControl(ctx)
}

// residue clears a text that an earlier attempt of ours typed and never armed, once; any other text is foreign.
func (s *sending) residue(text string) error {
	key, note := s.place.key, s.b.tabs.record(s.place.key).Note
	if other, shared := s.b.tabs.residueOf(s.place, text); note == nil && s.place.unbound() && shared != nil {
		key, note = other, shared
	}
	foreign := deferred(activities.DeferForeignDraft, "foreign_draft", "the composer holds a text that is not ours", time.Time{})
	switch {
	case note == nil || note.Cleared || note.Length != length(text) || note.Digest != digestOf(text):
		return foreign
	case s.b.ledger.holds(note.Effect):
		return foreign
	}
	spent := *note
	spent.Cleared = true
	if err := s.b.tabs.change(key, func(r *record) { r.Note = &spent }); err != nil {
		return err
	}
	return s.tab.clear(s.place.site, text)
}

// enter types the prompt with trusted input, and reads it back.
func (s *sending) enter(ctx context.Context) error {
	site, prompt := s.place.site, s.in.Prompt
	note := &draftNote{Effect: s.in.EffectID, Length: length(prompt), Digest: digestOf(prompt)}
	if err := s.b.tabs.change(s.place.key, func(r *record) { r.Note = note }); err != nil {
		return err
	}
	c, err := s.tab.composer(site, "focus")
	if err != nil {
		return err
	}
	if !c.Focused {
		return drift("composer", "the composer does not take the focus")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.tab.insert(site, prompt); err != nil {
		return err
	}
	return s.readBack(ctx)
}

// readBack waits until the composer holds exactly the prompt. What differs is cleared, unless somebody else typed there.
func (s *sending) readBack(ctx context.Context) error {
	deadline := time.Now().Add(s.place.site.Timings.Control)
	for {
		c, err := s.tab.composer(s.place.site, "read")
		if err != nil {
			return err
		}
		if c.Text == s.in.Prompt {
			return nil
		}
		if time.Now().After(deadline) {
			return s.mismatch(c.Text)
		}
		if err := sleep(ctx, pace); err != nil {
			return s.clearAfter(err)
		}
	}
}

func (s *sending) mismatch(text string) error {
	if strings.Contains(text, s.in.Prompt) {
		return deferred(activities.DeferForeignDraft, "draft_contention", "somebody types into the same composer", time.Time{})
	}
	detail := fmt.Sprintf("the composer holds %d characters, the prompt has %d", length(text), length(s.in.Prompt))
	if text != "" {
		if err := s.tab.clear(s.place.site, text); err != nil {
			detail += "; it could not be cleared: " + err.Error()
		}
	}
	return returned("composer_mismatch", detail)
}

// awaitControl waits until the send control is there and enabled. A control that takes its place is never pressed.
func (s *sending) awaitControl(ctx context.Context) error {
	deadline := time.Now().Add(s.place.site.Timings.Control)
	for {
		c, err := s.tab.composer(s.place.site, "read")
		switch {
		case err != nil:
			return s.clearAfter(err)
		case c.Text != s.in.Prompt:
			return deferred(activities.DeferForeignDraft, "draft_contention", "the prompt was changed in the composer", time.Time{})
		case c.Control:
			return nil
		case c.Stop:
			return s.clearAfter(deferred(activities.DeferBusy, "busy", "an answer is being written", time.Time{}))
		case time.Now().After(deadline):
			return s.clearAfter(drift("send", "the send control did not appear"))
		}
		if err := sleep(ctx, pace); err != nil {
			return s.clearAfter(err)
		}
	}
}

func drift(rule, detail string) error {
	return &verdict{activities.SendResult{Outcome: activities.SendDrift, Class: rule, Code: "ui_drift", Detail: detail}}
}

// clearAfter takes our text out of the composer, if it still stands there unchanged, and passes the reason on. The note in
// the tab file stays when that fails: the text is then found as our own residue.
func (s *sending) clearAfter(reason error) error {
	if s.tab.lost() {
		return reason
	}
	if s.gate != nil {
		s.gate.dispose()
	}
	c, err := s.tab.composer(s.place.site, "read")
	if err == nil && c.Text == s.in.Prompt {
		err = s.tab.clear(s.place.site, c.Text)
	}
	if err == nil {
		err = s.b.tabs.change(s.place.key, func(r *record) { r.Note = nil })
	}
	if err != nil {
		s.b.log.Warn("our text may still stand in the composer", "effect", s.in.EffectID, "error", err)
	}
	return reason
}

// clear empties the composer if it holds exactly the text.
func (t *tab) clear(site *sites.Site, text string) error {
	c, err := t.composer(site, "focus")
	if err != nil {
		return err
	}
	if c.Text != text || !c.Focused {
		return errors.New("the composer changed")
	}
	keys := t.page.Keyboard()
	err = do(typeLimit, func() error { return errors.Join(keys.Press("ControlOrMeta+a"), keys.Press("Delete")) })
	if err != nil {
		return t.failed("clear the composer", err)
	}
	if c, err = t.composer(site, "read"); err == nil && c.Text != "" {
		err = errors.New("the composer does not become empty")
	}
	return err
}

// length counts as the page does, in UTF-16 code units.
func length(text string) int { return len(utf16.Encode([]rune(text))) }
