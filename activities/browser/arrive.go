package browser

import (
	"context"
	"errors"
	"time"

	"steward/config/sites"
)

// arrival is what stands at the place of an activity.
type arrival struct {
	tab  *tab
	look look
	// state is a page state that stands in the way, with the text that shows it.
	state *sites.State
	text  string
	// missing: the exact conversation is not there. Ready: it can be read and typed into.
	missing bool
	ready   bool
}

// blocking are the kinds of states that hold for the page as a whole.
var blocking = []string{sites.UserAction, sites.Limited, sites.NotReady, sites.Missing}

// pace is the time between two looks at a page that is loading.
const pace = 50 * time.Millisecond

// arrive goes to the conversation and waits until its page can be read, or says what it shows instead. A page state on a
// page that was open before is believed only after a reload: what it shows may be long over.
func (b *Browser) arrive(ctx context.Context, p place, q lookQuery) (arrival, error) {
	tab, err := b.tabs.ensure(ctx, p)
	if err != nil {
		return arrival{}, err
	}
	for reloads := 0; ; reloads++ {
		a, err := b.await(ctx, p, tab, q)
		if err != nil || a.ready {
			return a, err
		}
		again := !tab.fresh || a.missing && reloads == 0
		if !again {
			return a, nil
		}
		if err := b.reopen(ctx, p, tab); err != nil {
			return a, err
		}
	}
}

// reopen loads the conversation's own address again, wherever the tab went; but not over a text in the composer that is
// somebody else's.
func (b *Browser) reopen(ctx context.Context, p place, t *tab) error {
	c, err := t.composer(p.site, "read")
	if errors.Is(err, errPageGone) {
		return err
	}
	if err == nil && c.Text != "" && digestOf(c.Text) != b.tabs.noted(t.key) {
		t.fresh = true // as fresh as it gets
		return nil
	}
	if p.shows(t.page.URL()) || !t.owned {
		return b.tabs.reload(ctx, t)
	}
	return b.tabs.load(ctx, t, p.url)
}

// await looks at a page until it is ready, shows a state for good, or the site's time for opening is over.
func (b *Browser) await(ctx context.Context, p place, t *tab, q lookQuery) (arrival, error) {
	deadline := time.Now().Add(p.site.Timings.Open)
	var since time.Time // since when the page has shown the same obstacle, or an empty conversation
	var seen string
	for {
		l, err := t.look(p.site, q)
		if errors.Is(err, errPageGone) {
			return arrival{tab: t}, err
		}
		if err == nil {
			a := b.judge(p, t, l)
			obstacle := a.obstacle(p)
			if a.ready && obstacle == "" {
				return a, nil
			}
			if obstacle != seen {
				since, seen = time.Now(), obstacle
			}
			if obstacle != "" && time.Since(since) >= p.site.Timings.Hydrate {
				a.ready = obstacle == emptyThread
				return a, nil
			}
			if time.Now().After(deadline) {
				return a, nil
			}
		} else if time.Now().After(deadline) {
			return arrival{tab: t}, err
		}
		if err := sleep(ctx, pace); err != nil {
			return arrival{tab: t}, err
		}
	}
}

const emptyThread = "empty"

// judge reads one look.
func (b *Browser) judge(p place, t *tab, l look) arrival {
	a := arrival{tab: t, look: l}
	t.generating.Store(l.generating())
	a.state, a.text = l.state(p.site, blocking...)
	address, err := p.site.Address(l.URL)
	there := err == nil && !p.unbound() && address.ID == p.id || p.unbound() && (l.Marker != nil || err == nil && p.onPage(address))
	a.missing = !there && err == nil && !address.Provisional && (a.state == nil || a.state.Kind == sites.Missing) ||
		there && a.state != nil && a.state.Kind == sites.Missing
	a.ready = there && l.Ready && a.state == nil
	return a
}

// obstacle names what must hold for a while before it is believed; empty when nothing stands in the way.
func (a arrival) obstacle(p place) string {
	switch {
	case a.state != nil:
		return a.state.Name
	case a.missing:
		return sites.Missing
	case a.ready && a.look.Items == 0 && !p.unbound():
		return emptyThread
	}
	return ""
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
