package browser

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"go.temporal.io/sdk/activity"

	"steward/activities"
	"steward/config/sites"
	"steward/workflows/run/receipt"
)

// armWindow is the longest time between asking the server to arm and the press on the send control.
const armWindow = 2 * time.Second

// Kinds of prompts that may create a conversation.
const (
	kindBootstrap = "bootstrap"
	kindProbe     = "probe"
)

// openPatience is how long the page of a send may open before looks go on meanwhile.
const openPatience = 3 * time.Second

// sending is one attempt of one effect.
type sending struct {
	b      *Browser
	in     activities.SendInput
	place  place
	marker string
	lease  *lease
	tab    *tab
	pulse  *pulse
	base   look
	gate   *gate
	result activities.SendResult
}

// verdict ends an attempt. It is no failure: its result is the evidence.
type verdict struct{ result activities.SendResult }

func (v *verdict) Error() string {
	return string(v.result.Outcome) + " " + v.result.Class + " " + v.result.Code
}

func deferred(class, code, detail string, until time.Time) error {
	return &verdict{activities.SendResult{Outcome: activities.SendDeferred, Class: class, Code: code, Detail: detail, Until: until}}
}

func returned(code, detail string) error {
	return &verdict{activities.SendResult{Outcome: activities.SendReturned, Code: code, Detail: detail}}
}

func doubtful(code, detail string) error {
	return &verdict{activities.SendResult{Outcome: activities.SendDoubtful, Code: code, Detail: detail}}
}

// Send makes one attempt of one effect: it types the prompt into the exact conversation, arms, presses the send control
// once and waits for the message to stand there. Before arming every refusal is proof that nothing was sent; after it every
// doubt stays a doubt. (Exactly-once continuation and external-effect reconciliation.)
func (b *Browser) Send(ctx context.Context, in activities.SendInput) (activities.SendResult, error) {
	s := &sending{b: b, in: in, marker: marker(in.EffectID)}
	err := authorized(ctx, in.RunID)
	if err != nil {
		err = doubtful(codeReset, err.Error())
	} else {
		err = s.run(ctx)
	}
	var v *verdict
	switch {
	case errors.As(err, &v):
		s.merge(v.result)
	case err != nil:
		s.merge(unproven(ctx, err))
	}
	if r := s.result; r.Outcome == activities.SendDoubtful || r.Outcome == activities.SendDrift || r.Outcome == activities.SendReturned {
		s.result.Detail = pictured(s.result.Detail, b.snapshot(s.tab, in.EffectID))
	}
	s.result.Worker = b.opts.Worker
	s.result.Detail = cut(s.result.Detail)
	b.log.Info("send", "effect", in.EffectID, "generation", in.Generation, "outcome", s.result.Outcome, "class", s.result.Class,
		"code", s.result.Code, "detail", s.result.Detail)
	return s.result, nil
}

// merge lays a verdict over what the attempt learned before.
func (s *sending) merge(r activities.SendResult) {
	known := s.result
	s.result = r
	s.result.Armed = known.Armed || r.Armed
	s.result.BaselineUser, s.result.BaselineAssistant, s.result.SiteDigest = known.BaselineUser, known.BaselineAssistant, known.SiteDigest
	if r.ConversationID == "" {
		s.result.ConversationID, s.result.ConversationURL = known.ConversationID, known.ConversationURL
	}
}

// unproven is the evidence of an attempt that ended with an error. From the send ledger on everything has its own verdict,
// so that an error here happened before it: asked to stop, the attempt was not made and its generation is not used up.
func unproven(ctx context.Context, err error) activities.SendResult {
	r := activities.SendResult{Outcome: activities.SendReturned, Code: "failed", Detail: err.Error()}
	switch {
	case ctx.Err() != nil:
		return activities.SendResult{
			Outcome: activities.SendDeferred, Class: activities.DeferCancelled, Code: "cancelled",
			Detail: "the attempt was asked to stop before it was noted in the send ledger",
		}
	case errors.Is(err, errPageGone):
		r.Code = "page_gone"
	case errors.Is(err, errHung):
		r.Code = "hung"
	case errors.Is(err, errUnreachable):
		r.Code = activities.CodeUnreachable
	}
	return r
}

func (s *sending) run(ctx context.Context) error {
	if err := s.admit(); err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var err error
	if s.pulse, err = startPulse(context.WithoutCancel(ctx), s.b.opts.Arm, beatEvery(ctx), stop); err != nil {
		return s.unwanted(err)
	}
	defer s.pulse.stop()
	defer func() { s.gate.dispose() }()
	err = s.prepare(ctx)
	if s.lease != nil {
		defer s.lease.release()
	}
	switch cause := context.Cause(ctx); {
	case err == nil:
		return s.strike(ctx)
	case cause != nil && errors.Is(err, context.Canceled):
		return s.unwanted(cause)
	}
	return err
}

// unwanted is the verdict of an attempt whose heartbeat the server refused or did not answer.
func (s *sending) unwanted(err error) error {
	if errors.Is(err, ErrRefused) || errors.Is(err, context.Canceled) {
		return deferred(activities.DeferCancelled, "cancelled", err.Error(), time.Time{})
	}
	return deferred(activities.DeferWorkerUnavailable, "heartbeat_unanswered", err.Error(), time.Time{})
}

// admit checks what needs no browser.
func (s *sending) admit() error {
	var err error
	if s.place, err = s.b.place(s.in.Conversation); err != nil {
		return deferred(activities.DeferSiteMismatch, "place_refused", err.Error(), time.Time{})
	}
	site := s.place.site
	s.result.SiteDigest = site.Digest()
	s.result.ConversationID, s.result.ConversationURL = s.place.id, s.in.Conversation.URL
	switch {
	case s.place.unbound() && s.in.Kind != kindBootstrap && s.in.Kind != kindProbe:
		return returned("prompt_refused", "the conversation has no address yet; this prompt would create another one")
	case s.in.EffectID == "" || !strings.Contains(s.in.Prompt, s.marker):
		return returned("prompt_refused", "the prompt does not carry the marker of its effect")
	case utf8.RuneCountInString(s.in.Prompt) > site.Limits.Prompt:
		return returned("prompt_too_long", fmt.Sprintf("the site takes %d characters", site.Limits.Prompt))
	case strings.ContainsAny(s.in.Prompt, "\r\x00") || strings.HasSuffix(s.in.Prompt, "\n"):
		return returned("prompt_refused", "the prompt holds characters that a composer does not keep, or ends with a new line")
	}
	if next := s.b.rest.until(site.Timings.SendGap, time.Now()); next.After(time.Now()) {
		return deferred(activities.DeferCooldown, "cooldown", "the browser rests until then", next)
	}
	return nil
}

// prepare does everything that can still be taken back: it ends with the prompt in the composer and a closed gate before
// the send control.
func (s *sending) prepare(ctx context.Context) error {
	s.pulse.at("open")
	var err error
	if s.lease, err = s.b.pool.lease(ctx, s.place.key, true); err != nil {
		return err
	}
	// A page that opens slowly holds up no look of another conversation.
	slow := time.AfterFunc(openPatience, s.lease.yield)
	a, err := s.open(ctx)
	if err == nil && !slow.Stop() {
		err = s.lease.claim(ctx)
	}
	if err != nil {
		return s.unopened(err)
	}
	s.tab, s.base = a.tab, a.look
	if err := s.judge(a); err != nil {
		return err
	}
	if s.in.Fence != nil {
		if err := s.causal(ctx); err != nil {
			return err
		}
	}
	s.pulse.at("type")
	if err := s.compose(ctx); err != nil {
		return err
	}
	s.pulse.at("check")
	if s.gate, err = s.tab.closeGate(s.place.site, controlSend, s.in.Prompt); err != nil {
		return s.clearAfter(err)
	}
	return s.recheck(ctx)
}

// open goes to the conversation. A marker that only its open page shows is believed after loading it again.
func (s *sending) open(ctx context.Context) (arrival, error) {
	q := lookQuery{Marker: s.marker, Texts: true}
	a, err := s.b.arrive(ctx, s.place, q)
	if err != nil || a.look.Marker == nil || a.look.taken(s.place.site, a.tab.fresh) {
		return a, err
	}
	if a.look.Draft != "" {
		return a, deferred(activities.DeferForeignDraft, "foreign_draft", "the page cannot be loaded again over a text in its composer", time.Time{})
	}
	if err := s.b.reopen(ctx, s.place, a.tab); err != nil {
		return a, err
	}
	return s.b.arrive(ctx, s.place, q)
}

// unopened judges why there is no page of the conversation.
func (s *sending) unopened(err error) error {
	switch {
	case errors.Is(err, errNoBrowser):
		return deferred(activities.DeferBrowserMissing, "browser_missing", err.Error(), time.Time{})
	case errors.Is(err, errAmbiguous):
		return deferred(activities.DeferTabAmbiguous, "tab_ambiguous", err.Error(), time.Time{})
	case errors.Is(err, errNoRoom):
		return deferred(activities.DeferPageNotReady, "tabs_in_use", err.Error(), time.Time{})
	}
	return err
}

// judge reads the baseline: is this the conversation, and may it be written to now.
func (s *sending) judge(a arrival) error {
	l := a.look
	if l.Marker != nil {
		return s.committed(l, true)
	}
	if a.missing {
		return &verdict{activities.SendResult{Outcome: activities.SendMissing, Code: "conversation_missing", Detail: "the page shows " + l.URL}}
	}
	if err := s.b.obstacle(s.place.site, a); err != nil {
		return err
	}
	if !a.ready {
		return deferred(activities.DeferPageNotReady, "page_not_ready", "the page shows neither composer nor a known state", time.Time{})
	}
	if l.generating() {
		return deferred(activities.DeferBusy, "busy", "an answer is being written", time.Time{})
	}
	if l.Last != nil {
		s.result.BaselineUser = receipt.TextDigest([]string{l.Last.Text})
		s.result.BaselineAssistant = receipt.TextDigest(l.LastAnswer.Texts)
	}
	return nil
}

// obstacle is the verdict of a send over a page state; nil when none stands in the way.
func (b *Browser) obstacle(site *sites.Site, a arrival) error {
	if a.state == nil {
		return nil
	}
	end := a.state.End(a.text, time.Now())
	switch {
	case a.state.Kind == sites.Limited || a.state.Kind == sites.UserAction && end.After(time.Now()):
		if end.IsZero() {
			end = time.Now().Add(site.Timings.Cooldown)
		}
		if err := b.rest.cool(end); err != nil {
			return err
		}
		return deferred(activities.DeferRateLimited, a.state.Class, a.text, end)
	case a.state.Kind == sites.UserAction:
		return &verdict{activities.SendResult{
			Outcome: activities.SendUserAction, Class: a.state.Class, Code: a.state.Class, Detail: a.state.Ask,
		}}
	case a.state.Kind == sites.NotReady:
		return deferred(activities.DeferPageNotReady, a.state.Class, a.text, time.Time{})
	}
	return nil
}

// recheck looks once more, after typing and before arming, at everything that a person may have changed meanwhile.
func (s *sending) recheck(ctx context.Context) error {
	l, err := s.tab.look(s.place.site, lookQuery{Marker: s.marker, Texts: true})
	if err != nil {
		return s.clearAfter(err)
	}
	if l.Marker != nil {
		return s.committed(l, true)
	}
	a := s.b.judge(s.place, s.tab, l)
	err = s.b.obstacle(s.place.site, a)
	fence, unsure := s.b.opts.Fence(), s.pulse.unsure()
	site, unknown := s.b.site(s.place.site.Name)
	switch {
	case err != nil:
	case unknown != nil || site.Digest() != s.place.site.Digest():
		err = deferred(activities.DeferPageNotReady, "profile_changed", "the site's profile changed while the prompt was typed", time.Time{})
	case !a.ready:
		err = deferred(activities.DeferPageNotReady, "page_not_ready", "the page changed while the prompt was typed", time.Time{})
	case l.generating():
		err = deferred(activities.DeferBusy, "busy", "an answer began while the prompt was typed", time.Time{})
	case !sameEnd(s.base, l):
		err = deferred(activities.DeferConversationMoved, "conversation_moved", "it moved on while the prompt was typed", time.Time{})
	case fence != nil:
		err = deferred(activities.DeferFenced, "fenced", fence.Error(), time.Time{})
	case unsure != nil:
		err = deferred(activities.DeferWorkerUnavailable, "heartbeat_unanswered", unsure.Error(), time.Time{})
	default:
		err = ctx.Err()
	}
	if err != nil {
		return s.clearAfter(err)
	}
	return nil
}

// marker is what a prompt carries so that its message is found again.
func marker(effect string) string { return markerPrefix + effect + "]" }

// markerPrefix begins the marker of every effect.
const markerPrefix = "[steward "

// beatEvery is the interval of a send's heartbeats.
func beatEvery(ctx context.Context) time.Duration {
	const usual = 2 * time.Second
	if !activity.IsActivity(ctx) {
		return usual
	}
	if timeout := activity.GetInfo(ctx).HeartbeatTimeout; timeout > 0 {
		return min(usual, timeout/3)
	}
	return usual
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// cut bounds a detail to what a result may carry.
func cut(s string) string {
	const most = 300
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
