package browser

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool grants leases: the permission to use one conversation's tab for one look or one send. A waiting send goes first, and
// a place is kept free for it; among sends the one that was tried least recently; after a send at least one waiting look.
// Looks go in the order in which they came. While a send types and clicks no look begins. (Timely consumption.)
type pool struct {
	mu       sync.Mutex
	capacity int
	active   map[string]*lease // by conversation: one lease each
	floor    *lease            // the send that no look may disturb
	free     chan struct{}     // closed when the floor becomes free
	owed     bool              // a look goes before the next send
	waiting  []*lease
	tried    map[string]time.Time // when a send of a conversation was last granted
	failed   map[string]bool      // conversations whose last look failed
}

// maxLeases bounds how many pages work at the same time, whatever the number of tabs.
const maxLeases = 6

func newPool(tabs int) *pool {
	return &pool{
		capacity: min(tabs, maxLeases), active: map[string]*lease{}, tried: map[string]time.Time{}, failed: map[string]bool{},
		free: make(chan struct{}),
	}
}

// lease is one grant.
type lease struct {
	pool    *pool
	key     string
	send    bool
	granted chan struct{}
	done    bool
}

// lease waits for the permission to use the tab of a conversation. A send has the floor from then on.
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
	p.leave(l)
	p.grant()
}

// leave frees the floor, if it is this lease's. The caller holds p.mu.
func (p *pool) leave(l *lease) {
	if p.floor == l {
		p.floor = nil
		close(p.free)
		p.free = make(chan struct{})
	}
}

// claim takes the floor again after a yield.
func (l *lease) claim(ctx context.Context) error {
	p := l.pool
	for {
		p.mu.Lock()
		if p.floor == nil {
			p.floor = l
		}
		mine, free := p.floor == l, p.free
		p.mu.Unlock()
		if mine {
			return nil
		}
		select {
		case <-free:
		case <-ctx.Done():
			return ctx.Err()
		}
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
	p.leave(l)
	p.grant()
}

// troubled notes whether the looks of a conversation fail: such ones never take more than a part of the places.
func (p *pool) troubled(key string, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failed {
		p.failed[key] = true
	} else {
		delete(p.failed, key)
	}
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
		p.active[l.key] = l
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
	looks, failing := p.looking()
	for i, l := range p.waiting {
		switch {
		case p.active[l.key] != nil:
		case !l.send:
			// One place is a send's; a third of the others at most is for conversations that fail.
			full := looks >= max(p.capacity-1, 1) || p.failed[l.key] && failing >= max(p.capacity/3, 1)
			if look < 0 && !full {
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

// looking counts the looks that hold a lease, and those among them whose conversations fail.
func (p *pool) looking() (looks, failing int) {
	for key, l := range p.active {
		if !l.send {
			looks++
			if p.failed[key] {
				failing++
			}
		}
	}
	return looks, failing
}

// leased tells whether somebody uses the tab of a conversation.
func (p *pool) leased(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.active[key] != nil
}

// sends tells whether it is a send that uses the tab of a conversation.
func (p *pool) sends(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.active[key]
	return l != nil && l.send
}
