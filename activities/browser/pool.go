package browser

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool grants leases: the permission to use one conversation's tab for one look or one send. A waiting send goes first;
// among sends the one that was tried least recently; after a send at least one waiting look. While a send types and
// clicks no look begins. (Timely consumption.)
type pool struct {
	mu       sync.Mutex
	capacity int
	active   map[string]bool // by conversation: one lease each
	floor    *lease          // the send that no look may disturb
	owed     bool            // a look goes before the next send
	waiting  []*lease
	tried    map[string]time.Time // when a send of a conversation was last granted
}

// maxLeases bounds how many pages work at the same time, whatever the number of tabs.
const maxLeases = 6

func newPool(tabs int) *pool {
	return &pool{capacity: min(tabs, maxLeases), active: map[string]bool{}, tried: map[string]time.Time{}}
}

// lease is one grant.
type lease struct {
	pool    *pool
	key     string
	send    bool
	granted chan struct{}
	done    bool
}

// lease waits for the permission to use the tab of a conversation.
func (p *pool) lease(ctx context.Context, key string, send bool) (*lease, error) {
	l := &lease{pool: p, key: key, send: send, granted: make(chan struct{})}
	p.mu.Lock()
	p.waiting = append(p.waiting, l)
	p.grant()
	p.mu.Unlock()
	select {
	case <-l.granted:
		return l, nil
	case <-ctx.Done():
		l.release() // also when it was granted meanwhile
		return nil, ctx.Err()
	}
}

// pressed tells a look that holds its lease whether a send waits for one.
func (p *pool) pressed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.waiting, func(l *lease) bool { return l.send })
}

// yield lets looks go on while a send only waits.
func (l *lease) yield() {
	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.floor == l {
		p.floor = nil
		p.grant()
	}
}

// release gives the lease back; it may be called again.
func (l *lease) release() {
	p := l.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.done {
		return
	}
	l.done = true
	if i := slices.Index(p.waiting, l); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	} else {
		delete(p.active, l.key)
		p.owed = p.owed || l.send
	}
	if p.floor == l {
		p.floor = nil
	}
	p.grant()
}

// grant hands out what can be handed out. The caller holds p.mu.
func (p *pool) grant() {
	for p.floor == nil && len(p.active) < p.capacity {
		i := p.next()
		if i < 0 {
			return
		}
		l := p.waiting[i]
		p.waiting = slices.Delete(p.waiting, i, i+1)
		p.active[l.key] = true
		if l.send {
			p.floor = l
			p.tried[l.key] = time.Now()
		} else {
			p.owed = false
		}
		close(l.granted)
	}
}

// next is the index of the lease to grant next; -1 when none can be.
func (p *pool) next() int {
	look, send := -1, -1
	for i, l := range p.waiting {
		switch {
		case p.active[l.key]:
		case !l.send:
			if look < 0 {
				look = i
			}
		case send < 0 || p.tried[l.key].Before(p.tried[p.waiting[send].key]):
			send = i
		}
	}
	if look >= 0 && (p.owed || send < 0) {
		return look
	}
	return send
}

// leased tells whether somebody uses the tab of a conversation.
func (p *pool) leased(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active[key]
}
