package browser

import (
	"context"
	"errors"
	"time"

	"steward/activities"
	"steward/config/sites"
	"steward/workflows/discover/scan"
)

// Discover lists the conversations of a project's page. It only reads. A conversation belongs to the project when its own
// address carries the project's id; a link alone proves nothing. (Disposable browser resources.)
func (b *Browser) Discover(ctx context.Context, in activities.DiscoverInput) (activities.DiscoverResult, error) {
	r := activities.DiscoverResult{Worker: b.opts.Worker}
	p, err := b.place(activities.Conversation{Site: in.Site, Browser: in.Browser, NewKey: "inventory", PageURL: in.PageURL})
	if err != nil {
		r.Class, r.Detail = activities.DeferSiteMismatch, cut(err.Error())
		return r, nil
	}
	p.key = "inventory:" + p.site.Name + ":" + p.project
	r.SiteDigest = p.site.Digest()
	stop := b.keepAlive(ctx)
	defer stop()
	lease, err := b.pool.lease(ctx, p.key, false)
	if err != nil {
		return r, err
	}
	defer lease.release()
	a, err := b.revisit(ctx, p, lookQuery{})
	if err == nil {
		defer b.tabs.drop(a.tab)
	}
	switch {
	case ctx.Err() != nil:
		return r, ctx.Err()
	case err != nil:
		r.Class, r.Detail = unreadable(err), cut(err.Error())
		return r, nil
	case !a.ready:
		r.Class, r.Detail = a.stands()
		r.Detail = cut(r.Detail)
		return r, nil
	}
	if err := b.list(ctx, p, a.tab, lease, in.Most, &r); err != nil {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Class, r.Detail = unreadable(err), cut(err.Error())
		return r, nil
	}
	r.Readable = true
	b.log.Info("discover", "project", p.project, "conversations", len(r.Conversations), "complete", r.Complete, "contradictions", r.Contradictions)
	return r, nil
}

// listQuiet is how long a list must not grow before it counts as complete.
const listQuiet = 1500 * time.Millisecond

// list reads the page until its list does not grow any more, or holds enough.
func (b *Browser) list(ctx context.Context, p place, t *tab, l *lease, most int, r *activities.DiscoverResult) error {
	since := time.Now()
	for seen := 0; ; {
		var links []link
		if err := t.evaluate(lookLimit, inventoryScript, argument{Rules: p.site.Page}, &links); err != nil {
			return err
		}
		r.Conversations, r.Contradictions = p.members(links, time.Now())
		if len(links) != seen {
			seen, since = len(links), time.Now()
		}
		r.Complete = time.Since(since) >= listQuiet
		if len(r.Conversations) > most {
			r.Conversations, r.Complete = r.Conversations[:most], false
			return nil
		}
		if r.Complete {
			return nil
		}
		if err := l.cede(ctx); err != nil {
			return err
		}
		if err := sleep(ctx, p.site.Timings.Look); err != nil {
			return err
		}
	}
}

// link is a link to a conversation, as the page shows it.
type link struct {
	Href  string `json:"href"`
	Title string `json:"title"`
}

// members are the conversations that their own addresses prove to belong to the place's project, each once. A link with the
// same id and another project contradicts: it changes neither address nor title.
func (p place) members(links []link, now time.Time) (members []scan.Conversation, contradictions int) {
	index := map[string]int{}
	addresses := make([]sites.Address, len(links))
	for i, one := range links {
		a, err := p.site.Address(one.Href)
		if err != nil || a.ID == "" {
			continue
		}
		addresses[i] = a
		if a.Project != p.project {
			continue
		}
		at, found := index[a.ID]
		if !found {
			at = len(members)
			index[a.ID] = at
			members = append(members, scan.Conversation{ID: a.ID, URL: a.URL, CreatedAt: p.site.CreatedAt(a.ID, now)})
		}
		if members[at].Title == "" {
			members[at].Title = one.Title
		}
	}
	for _, a := range addresses {
		if _, member := index[a.ID]; member && a.Project != p.project {
			contradictions++
		}
	}
	return members, contradictions
}

// Inspect looks into one conversation before it is enrolled: is it where it should be, and does it hold a message of
// Steward already. It reads to the beginning.
func (b *Browser) Inspect(ctx context.Context, in activities.InspectInput) (activities.InspectResult, error) {
	r := activities.InspectResult{Worker: b.opts.Worker}
	p, err := b.place(in.Conversation)
	if err != nil || p.unbound() {
		r.Class, r.Detail = activities.DeferSiteMismatch, "no address of a conversation"
		if err != nil {
			r.Detail = cut(err.Error())
		}
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
	if err := b.inspectInto(ctx, p, &r); err != nil {
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Class, r.Detail = unreadable(err), cut(err.Error())
	}
	b.log.Info("inspect", "conversation", p.id, "readable", r.Readable, "moved", r.Moved, "supervised", r.Supervised, "class", r.Class)
	return r, nil
}

func (b *Browser) inspectInto(ctx context.Context, p place, r *activities.InspectResult) error {
	q := lookQuery{Marker: markerPrefix}
	a, err := b.revisit(ctx, p, q)
	if err != nil {
		return err
	}
	if !a.ready {
		r.Class, r.Detail = a.stands()
		r.Detail = cut(r.Detail)
		r.Moved = a.missing
		return nil
	}
	asked, err := p.site.Address(p.url)
	if err != nil {
		return err
	}
	shown, err := p.site.Address(a.look.URL)
	if err != nil {
		return err
	}
	if shown.Project != asked.Project {
		r.Moved, r.Detail = true, cut("its page is "+a.look.URL)
		return nil
	}
	l := a.look
	if l.Marker == nil {
		if l, err = a.tab.search(ctx, p.site, q); err != nil {
			return err
		}
	}
	r.Supervised = l.Marker != nil
	r.Readable = r.Supervised || a.look.Last != nil || l.Last != nil
	if !r.Readable {
		r.Class, r.Detail = activities.DeferPageNotReady, "it shows no message"
	}
	return nil
}

// errUnsearched is returned for a conversation that is too long to be read to its beginning.
var errUnsearched = errors.New("the conversation is too long to be searched to its beginning")
