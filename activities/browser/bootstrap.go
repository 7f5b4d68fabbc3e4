package browser

import (
	"context"
	"errors"
	"strings"
	"time"

	"steward/activities"
	"steward/config/sites"
)

// A new conversation has no address before its first message, and sometimes a temporary one for a while after it. Until
// its durable address is known, its only tab is kept, and what was sent is found again by its marker: in that tab, at the
// address that the tab file knows, or in the conversations that the page of its project lists.

// sighting is where the message of a new conversation was seen.
type sighting struct {
	// look has a Marker when the message was seen.
	look look
	// id and url are its durable address, once it has one.
	id, url string
	// waits: its own tab shows a temporary address.
	waits bool
	// class and detail say what could not be read; empty when everything that was looked at could be.
	class, detail string
}

// onPage tells whether an address is the page on which the first message creates the conversation.
func (p place) onPage(a sites.Address) bool { return a.NewChat && a.Project == p.project }

// seek looks for the message with the effect's marker. It opens no tab for the conversation itself, and gives its lease up
// between two pages when a send waits. (Disposable browser resources; Timely consumption.)
func (b *Browser) seek(ctx context.Context, p place, effect string, l *lease) (sighting, error) {
	q := lookQuery{Marker: marker(effect)}
	own, err := b.tabs.held(ctx, p.key)
	if err != nil {
		return sighting{class: unreadable(err), detail: err.Error()}, ctx.Err()
	}
	if own != nil {
		seen, err := b.lookAt(p, own, q)
		if err == nil && (seen.look.Marker != nil || seen.waits) {
			return b.placed(p, own, effect, seen), nil
		}
		if errors.Is(err, errPageGone) {
			b.tabs.drop(own)
		}
	}
	seen, err := b.trace(ctx, p, effect, q, l)
	if err != nil {
		return sighting{class: unreadable(err), detail: err.Error()}, ctx.Err()
	}
	return b.placed(p, nil, effect, seen), nil
}

// lookAt looks at the conversation's own tab as it is: loading it again could lose it.
func (b *Browser) lookAt(p place, t *tab, q lookQuery) (sighting, error) {
	l, err := t.look(p.site, q)
	if err != nil {
		return sighting{}, err
	}
	t.generating.Store(l.generating())
	a, err := p.site.Address(l.URL)
	seen := sighting{look: l, waits: err == nil && a.Provisional}
	if err == nil && l.Marker != nil {
		seen.id, seen.url = a.ID, a.URL
	}
	if seen.waits {
		seen.class, seen.detail = activities.DeferPageNotReady, "the conversation has a temporary address: "+l.URL
	}
	return seen, nil
}

// placed notes the durable address of a sighting in the tab file.
func (b *Browser) placed(p place, own *tab, effect string, seen sighting) sighting {
	if seen.look.Marker == nil || seen.id == "" {
		return seen
	}
	if err := b.tabs.born(p, own, effect, seen.id, seen.url); err != nil {
		b.log.Warn("tab file", "error", err)
	}
	return seen
}

// maxTraced bounds how many conversations are looked into for one message.
const maxTraced = 20

// trace looks for the message in a tab of its own: first at the address that the tab file has for the effect, then in the
// newest conversations that the page lists.
func (b *Browser) trace(ctx context.Context, p place, effect string, q lookQuery, l *lease) (sighting, error) {
	side := place{site: p.site, key: "trace:" + p.key, url: p.url, project: p.project}
	t, err := b.tabs.ensure(ctx, side)
	if err != nil {
		return sighting{}, err
	}
	defer b.tabs.drop(t)
	if known, ok := b.tabs.bornOf(effect); ok {
		seen, err := b.peek(ctx, side, t, known, q)
		if err != nil || seen.look.Marker != nil {
			return seen, err
		}
		if err := b.tabs.load(ctx, t, p.url); err != nil {
			return sighting{}, err
		}
	}
	page, err := b.await(ctx, side, t, q)
	if err != nil {
		return sighting{}, err
	}
	if !page.ready {
		class, detail := page.stands()
		return sighting{look: page.look, class: class, detail: detail}, nil
	}
	links, err := t.links(p.site)
	if err != nil {
		return sighting{}, err
	}
	return b.walk(ctx, side, t, b.candidates(p, effect, links), q, l)
}

// walk looks into one conversation after the other.
func (b *Browser) walk(ctx context.Context, side place, t *tab, urls []string, q lookQuery, l *lease) (sighting, error) {
	var all sighting
	for _, url := range urls {
		if err := l.cede(ctx); err != nil {
			return all, err
		}
		seen, err := b.peek(ctx, side, t, url, q)
		if err != nil || seen.look.Marker != nil {
			return seen, err
		}
		if all.class == "" {
			all.class, all.detail = seen.class, seen.detail
		}
	}
	return all, nil
}

// candidates are the listed conversations that the message may stand in, newest first: of the page's project, by their own
// address, and created by no other effect that we know of.
func (b *Browser) candidates(p place, effect string, links []string) (urls []string) {
	for _, link := range links {
		a, err := p.site.Address(link)
		if err != nil || a.ID == "" || a.Project != p.project {
			continue
		}
		if other := b.tabs.record(boundKey(p.site, a.ID)).Born; other != "" && other != effect {
			continue
		}
		if urls = append(urls, a.URL); len(urls) == maxTraced {
			break
		}
	}
	return urls
}

// peek looks into one conversation for the marker, scrolling up through a long one.
func (b *Browser) peek(ctx context.Context, side place, t *tab, url string, q lookQuery) (sighting, error) {
	id, url, err := side.site.Conversation(url)
	if err != nil {
		return sighting{}, err
	}
	if err := b.tabs.load(ctx, t, url); err != nil {
		return sighting{}, err
	}
	a, err := b.await(ctx, place{site: side.site, key: side.key, id: id, url: url}, t, q)
	if err != nil {
		return sighting{}, err
	}
	seen := sighting{look: a.look}
	if a.ready && a.look.Marker == nil {
		if seen.look, err = t.search(ctx, side.site, q); err != nil {
			return sighting{}, err
		}
	}
	switch {
	case seen.look.Marker != nil:
		seen.id, seen.url = id, url
	case !a.ready:
		seen.class, seen.detail = a.stands()
	}
	return seen, nil
}

// stands says what keeps a page from being read.
func (a arrival) stands() (class, detail string) {
	switch {
	case a.missing:
		return sites.Missing, "the page shows " + a.look.URL
	case a.state != nil:
		return a.state.Class, a.text
	}
	return activities.DeferPageNotReady, "the page shows neither composer nor a known state"
}

// reconcileNew is Reconcile for a conversation without a durable address.
func (b *Browser) reconcileNew(ctx context.Context, p place, in activities.ReconcileInput, r activities.ReconcileResult, l *lease) (
	activities.ReconcileResult, error,
) {
	seen, err := b.seek(ctx, p, in.EffectID, l)
	if err != nil {
		return r, err
	}
	r.Class, r.Detail = seen.class, cut(seen.detail)
	r.Readable = seen.class == ""
	if m := seen.look.Marker; m != nil {
		r.Readable, r.Marker, r.UserMessageID, r.LaterMessages = true, true, m.ID, seen.look.Later
		r.ConversationID, r.ConversationURL = seen.id, seen.url
	}
	b.log.Info("reconcile", "effect", in.EffectID, "new", true, "readable", r.Readable, "marker", r.Marker, "class", r.Class)
	return r, nil
}

// Longest time between two searches for a new conversation whose own tab is lost.
const seekLimit = time.Minute

// locate follows a new conversation until it has its durable address. The turn itself is read there, by the next
// observation: whatever is said next needs the address too.
func (o *observing) locate(ctx context.Context) (activities.ObserveResult, error) {
	for searches := 0; ; {
		l, err := o.b.pool.lease(ctx, o.place.key, false)
		if err != nil {
			return activities.ObserveResult{}, err
		}
		seen, err := o.b.seek(ctx, o.place, o.in.EffectID, l)
		l.release()
		if err != nil {
			return activities.ObserveResult{}, err
		}
		if seen.look.Marker != nil {
			o.note(seen.look, time.Now())
			o.result.ConversationID, o.result.ConversationURL = seen.id, seen.url
		}
		if seen.id != "" {
			return o.end(activities.TurnOpen, "", "the conversation has its durable address"), nil
		}
		o.obstacle = seen.class
		wait := o.place.site.Timings.Look
		if !seen.waits {
			searches++
			wait = min(time.Duration(searches)*5*time.Second, seekLimit)
		}
		if err := sleep(ctx, wait); err != nil {
			return activities.ObserveResult{}, err
		}
	}
}

// cede gives the lease up for a send that waits, and takes it again.
func (l *lease) cede(ctx context.Context) error {
	if !l.pool.pressed() {
		return nil
	}
	l.release()
	again, err := l.pool.lease(ctx, l.key, l.send)
	if err == nil {
		*l = *again
	}
	return err
}

// held is the conversation's own tab as far as it is open; nil when it is not. It opens none.
func (t *tabs) held(ctx context.Context, key string) (*tab, error) {
	s, err := t.browser.engine.session(ctx)
	if err != nil {
		return nil, err
	}
	t.adopt(s)
	t.mu.Lock()
	tb := t.open[key]
	t.mu.Unlock()
	if tb != nil && (tb.session != s || tb.lost()) {
		t.drop(tb)
		return nil, nil
	}
	return tb, nil
}

// born moves a new conversation to its durable id, with the effect that created it. Its own tab moves along when that is
// where it was seen; else there is nothing left that it had to be kept for.
func (t *tabs) born(p place, own *tab, effect, id, url string) error {
	key := boundKey(p.site, id)
	if own != nil {
		if err := t.bind(own, key, url); err != nil {
			return err
		}
	} else {
		t.mu.Lock()
		left := t.open[p.key]
		delete(t.records, p.key)
		t.mu.Unlock()
		if left != nil {
			t.drop(left)
		}
	}
	return t.change(key, func(r *record) { r.URL, r.Born = url, effect })
}

// bornOf is the address of the conversation that an effect created, as far as the tab file knows it.
func (t *tabs) bornOf(effect string) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.records {
		if r.Born == effect {
			return r.URL, true
		}
	}
	return "", false
}

// residueOf is the note of the text that another new conversation of the same page left in the composer that they share.
func (t *tabs) residueOf(p place, text string) (key string, note *draftNote) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, r := range t.records {
		if n := r.Note; n != nil && r.URL == p.url && strings.HasPrefix(key, unboundPrefix) && n.Length == length(text) && n.Digest == digestOf(text) {
			return key, n
		}
	}
	return "", nil
}
