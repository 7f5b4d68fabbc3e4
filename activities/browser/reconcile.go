package browser

import (
	"context"
	"errors"
	"time"

	"steward/activities"
	"steward/config/sites"
)

// Reconcile loads the conversation afresh and looks for the marker of an effect, scrolling up through a long one. It only
// reads. A marker that is not seen proves nothing.
func (b *Browser) Reconcile(ctx context.Context, in activities.ReconcileInput) (activities.ReconcileResult, error) {
	r := activities.ReconcileResult{Worker: b.opts.Worker}
	p, err := b.place(in.Conversation)
	if err != nil {
		r.Class, r.Detail = activities.DeferSiteMismatch, cut(err.Error())
		return r, nil
	}
	r.SiteDigest = p.site.Digest()
	stop := b.keepAlive(ctx)
	defer stop()
	lease, err := b.pool.lease(ctx, p.key, false)
	if err != nil {
		return r, err
	}
	defer lease.release()
	if p.unbound() {
		return b.reconcileNew(ctx, p, in, r, lease)
	}
	q := lookQuery{Marker: marker(in.EffectID)}
	a, err := b.revisit(ctx, p, q)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		r.Class, r.Detail = unreadable(err), cut(err.Error())
		return r, nil
	}
	l := a.look
	if a.ready && l.Marker == nil {
		if l, err = a.tab.search(ctx, p.site, q); err != nil {
			r.Class, r.Detail = unreadable(err), cut(err.Error())
			return r, ctx.Err()
		}
	}
	switch {
	case l.Marker != nil:
		r.Readable, r.Marker, r.UserMessageID, r.LaterMessages = true, true, l.Marker.ID, l.Later
		r.ConversationID, r.ConversationURL = p.id, p.url
	case !a.ready:
		r.Class, r.Detail = a.stands()
		r.Detail = cut(r.Detail)
	default:
		r.Readable = true
	}
	b.log.Info("reconcile", "effect", in.EffectID, "readable", r.Readable, "marker", r.Marker, "class", r.Class)
	return r, nil
}

// revisit arrives at the conversation with a freshly loaded page.
func (b *Browser) revisit(ctx context.Context, p place, q lookQuery) (arrival, error) {
	t, err := b.tabs.ensure(ctx, p)
	if err != nil {
		return arrival{}, err
	}
	if !t.fresh {
		if err := b.reopen(ctx, p, t); err != nil {
			if !errors.Is(err, errPageGone) {
				return arrival{}, err
			}
			b.tabs.drop(t)
		}
	}
	return b.arrive(ctx, p, q)
}

// unreadable is the class of a page that could not be looked at.
func unreadable(err error) string {
	switch {
	case errors.Is(err, errNoBrowser):
		return activities.DeferBrowserMissing
	case errors.Is(err, errAmbiguous):
		return activities.DeferTabAmbiguous
	}
	return activities.DeferPageNotReady
}

// links are the addresses of the conversations that the page lists, in its order.
func (t *tab) links(site *sites.Site) ([]string, error) {
	var links []string
	err := t.evaluate(lookLimit, linksScript, argument{Rules: site.Page}, &links)
	return links, err
}

// searchLimit bounds the way up through a long conversation.
const searchLimit = 60 * time.Second

// scrolled is what one step of a search saw.
type scrolled struct {
	Top   bool   `json:"top"`
	First string `json:"first"`
}

// How long a search stays at the top before it believes to have seen the beginning, and how long a page must show no message
// at all: it may still fetch them.
const (
	topTime   = time.Second
	emptyTime = 5 * time.Second
)

// search scrolls up through the conversation until the marker is seen, or its beginning.
func (t *tab) search(ctx context.Context, site *sites.Site, q lookQuery) (look, error) {
	deadline := time.Now().Add(searchLimit)
	var first string
	var since time.Time // since when the same message stands at the top
	for {
		l, err := t.look(site, q)
		if err != nil || l.Marker != nil {
			return l, err
		}
		step, err := t.scroll(site, "up")
		if err != nil {
			return l, err
		}
		if now := time.Now(); !step.Top || step.First != first || since.IsZero() {
			first, since = step.First, now
		}
		patience := topTime
		if l.Items == 0 {
			patience = emptyTime
		}
		if top, late := time.Since(since) > patience, time.Now().After(deadline); top || late {
			_, err := t.scroll(site, "end")
			if err == nil && !top {
				err = errUnsearched
			}
			return l, err
		}
		if err := sleep(ctx, pace/2); err != nil {
			return l, err
		}
	}
}

// scroll moves through the conversation: up by a part of a screen, or to its end.
func (t *tab) scroll(site *sites.Site, op string) (scrolled, error) {
	var step scrolled
	err := t.evaluate(lookLimit, scrollScript, argument{Rules: site.Page, Query: map[string]string{"op": op}}, &step)
	return step, err
}
