package browser

import (
	"context"
	"errors"
	"strings"
	"time"

	"steward/activities"
	"steward/config/sites"
	"steward/workflows/run/receipt"
)

// observing follows one turn.
type observing struct {
	b      *Browser
	in     activities.ObserveInput
	place  place
	watch  watch
	result activities.ObserveResult
	// turn is the answer's id once it was seen.
	turn string
	last look
	// obstacle is a page state that keeps the turn from view, and since when.
	obstacle string
	since    time.Time
	// reloaded: the page was loaded again because it no longer shows the effect's message.
	reloaded bool
}

// Observe follows the turn that answers an effect until the site's settle rule holds, and returns its bounded evidence. It
// only reads; a lost tab, page or browser is opened again. It ends early when ctx does. (Provider observation.)
func (b *Browser) Observe(ctx context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
	o := &observing{b: b, in: in}
	var err error
	if o.place, err = b.place(in.Conversation); err != nil {
		return o.end(activities.TurnOpen, activities.DeferSiteMismatch, err.Error()), nil
	}
	o.watch.site = o.place.site
	stop := b.keepAlive(ctx)
	defer stop()
	if err := sleep(ctx, time.Until(in.NotBefore)); err != nil {
		return activities.ObserveResult{}, err
	}
	until := ctx
	if !in.Until.IsZero() {
		var cancel context.CancelFunc
		until, cancel = context.WithDeadline(ctx, in.Until)
		defer cancel()
	}
	follow := o.follow
	if o.place.unbound() {
		follow = o.locate
	}
	result, err := follow(until)
	switch {
	case ctx.Err() != nil:
		return activities.ObserveResult{}, ctx.Err()
	case err != nil && until.Err() != nil:
		return o.end(activities.TurnOpen, o.obstacle, "the turn had not ended when the observation did"), nil
	case err != nil:
		return activities.ObserveResult{}, err
	}
	if result.Turn == activities.TurnSettled {
		if err := sleep(ctx, time.Until(in.SettledNotBefore)); err != nil {
			return activities.ObserveResult{}, err
		}
	}
	return result, nil
}

// follow looks until something ends the turn. Between two looks the tab is given back, unless the turn looks finished and
// no send waits.
func (o *observing) follow(ctx context.Context) (activities.ObserveResult, error) {
	var failures int
	for {
		lease, err := o.b.pool.lease(ctx, o.place.key, false)
		if err != nil {
			return activities.ObserveResult{}, err
		}
		began := time.Now()
		result, wait, err := o.visit(ctx)
		o.b.log.Debug("look", "effect", o.in.EffectID, "took", time.Since(began), "error", err)
		crowded := errors.Is(err, errNoRoom)
		o.b.pool.troubled(o.place.key, err != nil && !crowded && ctx.Err() == nil)
		lease.release()
		switch {
		case err == nil && result != nil:
			return *result, nil
		case ctx.Err() != nil:
			return activities.ObserveResult{}, ctx.Err()
		case crowded:
			wait = o.place.site.Timings.LookMax
		case err != nil:
			failures++
			wait = min(time.Duration(failures)*time.Second, 30*time.Second)
			o.b.log.Warn("look failed", "effect", o.in.EffectID, "failures", failures, "error", err)
		default:
			failures = 0
		}
		if err := sleep(ctx, wait); err != nil {
			return activities.ObserveResult{}, err
		}
	}
}

// visit makes one look, and more of them as long as the turn is about to settle. It returns a result, or the time until
// the next visit.
func (o *observing) visit(ctx context.Context) (*activities.ObserveResult, time.Duration, error) {
	if p, err := o.b.place(o.in.Conversation); err == nil && p.site != o.place.site {
		o.place, o.watch = p, watch{site: p.site} // the profile was corrected meanwhile
	}
	t, err := o.b.tabs.ensure(ctx, o.place)
	if err != nil {
		return nil, 0, err
	}
	for {
		l, err := t.look(o.place.site, o.query(false))
		if err != nil {
			if errors.Is(err, errPageGone) {
				o.b.tabs.drop(t)
				o.watch.restart()
			}
			return nil, 0, err
		}
		at := time.Now()
		if result := o.blocked(t, l, at); result != nil {
			return result, 0, nil
		}
		if wait := o.limited(l, at); wait > 0 {
			return nil, wait, nil
		}
		o.note(l, at)
		s, quiet := o.watch.see(l, at)
		result, err := o.judge(ctx, t, s, quiet)
		if err != nil || result != nil {
			return result, 0, err
		}
		if !l.Found {
			if _, err := t.scroll(o.place.site, "end"); err != nil {
				return nil, 0, err
			}
		}
		wait := o.watch.wait(s, quiet)
		if s != stageLikely && s != stageFinished && !(t.fresh && !l.Found) || o.b.pool.pressed() {
			t.fresh = false
			return nil, wait, nil
		}
		if err := sleep(ctx, wait); err != nil {
			return nil, 0, err
		}
		if at.Sub(t.used) > o.place.site.Timings.Open {
			t.fresh = false
		}
	}
}

func (o *observing) query(texts bool) lookQuery {
	return lookQuery{Marker: marker(o.in.EffectID), Turn: o.turn, Texts: texts}
}

// note keeps what the look tells of the turn's life.
func (o *observing) note(l look, at time.Time) {
	if l.Found && l.Answer.Present {
		if o.result.SeenAt.IsZero() {
			o.result.SeenAt = at.Round(time.Millisecond)
		}
		if l.Answer.ID != "" {
			o.turn = l.Answer.ID
		}
		if l.Answer.Signature != o.last.Answer.Signature {
			o.result.ActivityAt = at.Round(time.Millisecond)
			o.result.ActivityDigest = digestOf(l.Answer.Signature)
		}
	}
	o.last = l
}

// blocked judges a page that does not show the conversation: only what lasts is believed.
func (o *observing) blocked(t *tab, l look, at time.Time) *activities.ObserveResult {
	a := o.b.judge(o.place, t, l)
	name := ""
	switch {
	case a.missing:
		name = sites.Missing
	case a.state != nil && a.state.Kind == sites.UserAction && !(l.Found && (l.Answer.Finished || l.generating())):
		name = a.state.Name
	}
	if name != o.obstacle {
		o.obstacle, o.since = name, at
	}
	if name == "" || at.Sub(o.since) < o.place.site.Settle.Stable+o.place.site.Timings.Hydrate {
		return nil
	}
	var result activities.ObserveResult
	if a.missing {
		result = o.end(activities.TurnMissing, "conversation_missing", "the page shows "+l.URL)
	} else {
		result = o.end(activities.TurnUserAction, a.state.Class, a.state.Ask)
		if end := a.state.End(a.text, time.Now()); end.After(time.Now()) {
			result.Until = end
		}
	}
	return &result
}

// limitPause is the shortest time to leave a site alone that refuses to show the conversation for now.
const limitPause = 30 * time.Second

// limited is how long to wait when the site shows a limit in place of the conversation; 0 when it shows the conversation.
func (o *observing) limited(l look, at time.Time) time.Duration {
	state, text := l.state(o.place.site, sites.Limited)
	if state == nil || l.Found {
		return 0
	}
	o.watch.restart()
	return min(max(state.End(text, at).Sub(at), limitPause), 10*limitPause)
}

// judge turns a stage into a result; nil when the turn is to be looked at further.
func (o *observing) judge(ctx context.Context, t *tab, s stage, quiet time.Duration) (*activities.ObserveResult, error) {
	switch s {
	case stageFinished:
		long, superseded := o.watch.extra(quiet), o.last.Later > 0
		result, err := o.read(t, activities.TurnSettled, "", "", superseded || !long)
		if result == nil && err == nil && superseded && long && o.last.quietAtEnd() {
			return o.moved(), nil
		}
		return result, err
	case stageFailed:
		state, text := o.last.state(o.place.site, sites.Failed)
		return o.read(t, activities.TurnFailed, state.Class, text, false)
	case stageDrift:
		return o.read(t, activities.TurnDrift, "finish_signs", pictured(
			"the turn is quiet but shows no sign of its end that the profile knows", o.b.snapshot(t, o.in.EffectID)), false)
	case stageMoved:
		return o.moved(), nil
	case stageGone:
		return o.gone(ctx, t)
	case stageStuck:
		o.watch.restart()
		return nil, o.b.reopen(ctx, o.place, t)
	}
	return nil, nil
}

func (o *observing) moved() *activities.ObserveResult {
	result := o.end(activities.TurnMoved, "", "another message follows the effect's turn")
	return &result
}

// gone judges a conversation that ends with another message and does not show the effect's: it is loaded again, and then
// searched from its end to its beginning.
func (o *observing) gone(ctx context.Context, t *tab) (*activities.ObserveResult, error) {
	o.watch.restart()
	if !o.reloaded {
		o.reloaded = true
		return nil, o.b.reopen(ctx, o.place, t)
	}
	l, err := t.search(ctx, o.place.site, o.query(false))
	if err != nil {
		return nil, err
	}
	result := o.moved()
	if l.Marker == nil {
		result.Detail = "the conversation ends with another message and no longer shows the effect's"
	}
	return result, nil
}

// read takes the whole text of the turn and its receipt. onlyValid leaves a turn open that has no valid receipt yet: its
// last part may still be on its way. A turn that changed meanwhile stays open too.
func (o *observing) read(t *tab, turn activities.TurnState, class, detail string, onlyValid bool) (*activities.ObserveResult, error) {
	l, err := t.look(o.place.site, o.query(true))
	if err != nil {
		return nil, err
	}
	if l.Answer.Signature != o.last.Answer.Signature || l.Answer.Finished != o.last.Answer.Finished || !l.Found {
		return nil, nil
	}
	reading := receipt.Read(strings.Join(l.Answer.Texts, "\n"), o.in.Want)
	if onlyValid && reading.Receipt == nil {
		return nil, nil
	}
	text := receipt.CanonicalText(l.Answer.Texts)
	o.result.Reading = reading
	o.result.TurnID = l.Answer.ID
	if text != "" {
		o.result.AnswerDigest, o.result.AnswerChars = receipt.TextDigest(l.Answer.Texts), len([]rune(text))
	}
	o.result.SettledAt = now()
	t.generating.Store(l.generating())
	result := o.end(turn, class, detail)
	return &result, nil
}

func (o *observing) end(turn activities.TurnState, class, detail string) activities.ObserveResult {
	r := o.result
	r.Turn, r.Class, r.Detail, r.Worker = turn, class, cut(detail), o.b.opts.Worker
	if o.place.site != nil {
		r.SiteDigest = o.place.site.Digest()
	}
	o.b.log.Info("observe", "effect", o.in.EffectID, "turn", turn, "class", class, "receipt", r.Reading.Receipt != nil, "code", r.Reading.Code)
	return r
}
