package browser

import (
	"errors"
	"fmt"

	"steward/activities"
	"steward/config/sites"
)

// place is where an activity works: one conversation of one site, or the page that will create it.
type place struct {
	site *sites.Site
	// key names the conversation's tab.
	key string
	id  string
	url string
	// project is that of the page on which a new conversation begins; empty for none.
	project string
}

// unbound tells that the conversation has no durable id yet.
func (p place) unbound() bool { return p.id == "" }

// errPlace is wrapped by errors of an input that names no usable place.
var errPlace = errors.New("conversation")

// place resolves a conversation with this worker's site profiles. Only the site's origins pass.
func (b *Browser) place(c activities.Conversation) (place, error) {
	site, err := b.site(c.Site)
	if err != nil {
		return place{}, fmt.Errorf("%w: %w", errPlace, err)
	}
	if c.Browser != "" && c.Browser != b.opts.Name {
		return place{}, fmt.Errorf("%w: it belongs to browser %q, this is %q", errPlace, c.Browser, b.opts.Name)
	}
	if c.ID == "" && c.URL == "" {
		if c.NewKey == "" {
			return place{}, fmt.Errorf("%w: neither an address nor the key of a new one", errPlace)
		}
		url, err := site.NewChat(c.PageURL)
		if err != nil {
			return place{}, fmt.Errorf("%w: %w", errPlace, err)
		}
		page, err := site.Address(url)
		if err != nil {
			return place{}, fmt.Errorf("%w: %w", errPlace, err)
		}
		return place{site: site, key: newKey(site, c.NewKey), url: url, project: page.Project}, nil
	}
	id, url, err := site.Conversation(c.URL)
	if err != nil {
		return place{}, fmt.Errorf("%w: %w", errPlace, err)
	}
	if c.ID != "" && c.ID != id {
		return place{}, fmt.Errorf("%w: id %q and address %q are not the same", errPlace, c.ID, c.URL)
	}
	return place{site: site, key: boundKey(site, id), id: id, url: url}, nil
}

// unboundPrefix begins the keys of conversations without a durable id.
const unboundPrefix = "new:"

func newKey(site *sites.Site, key string) string  { return unboundPrefix + site.Name + ":" + key }
func boundKey(site *sites.Site, id string) string { return site.Name + ":" + id }

// shows tells whether an address is this conversation's.
func (p place) shows(url string) bool {
	a, err := p.site.Address(url)
	return err == nil && p.id != "" && a.ID == p.id
}
