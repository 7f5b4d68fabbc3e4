package browser

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// ask waits for a lease in the background and reports its key when it is granted.
func ask(t *testing.T, p *pool, key string, send bool, granted chan<- *lease) {
	t.Helper()
	before := p.queued()
	go func() {
		l, err := p.lease(t.Context(), key, send)
		if err == nil {
			granted <- l
		}
	}()
	require.Eventually(t, func() bool { return p.queued() > before || len(granted) > 0 }, time.Second, time.Millisecond)
}

func (p *pool) queued() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting)
}

// order releases what is granted, one after the other, and returns the keys in that order.
func order(granted chan *lease, held *lease, n int) []string {
	var keys []string
	held.release()
	for range n {
		l := <-granted
		keys = append(keys, l.key)
		l.release()
	}
	return keys
}

func TestAWaitingSendGoesFirstAndAfterItAWaitingLook(t *testing.T) {
	p := newPool(1)
	granted := make(chan *lease, 10)
	held, err := p.lease(t.Context(), "held", false)
	require.NoError(t, err)
	for _, key := range []string{"look 1", "look 2", "look 3"} {
		ask(t, p, key, false, granted)
	}
	ask(t, p, "send 1", true, granted)
	ask(t, p, "send 2", true, granted)
	require.True(t, p.pressed())
	require.Equal(t, []string{"send 1", "look 1", "send 2", "look 2", "look 3"}, order(granted, held, 5))
	require.False(t, p.pressed())
}

func TestAmongSendsTheOneTriedLongestAgoGoesFirst(t *testing.T) {
	p := newPool(1)
	granted := make(chan *lease, 10)
	for _, key := range []string{"a", "b", "c"} {
		l, err := p.lease(t.Context(), key, true)
		require.NoError(t, err)
		l.release()
	}
	held, err := p.lease(t.Context(), "held", false)
	require.NoError(t, err)
	for _, key := range []string{"c", "a", "b"} {
		ask(t, p, key, true, granted)
	}
	require.Equal(t, []string{"a", "b", "c"}, order(granted, held, 3))
}

func TestNoLookBeginsWhileASendTypes(t *testing.T) {
	p := newPool(4)
	granted := make(chan *lease, 10)
	send, err := p.lease(t.Context(), "send", true)
	require.NoError(t, err)
	ask(t, p, "look", false, granted)
	require.Empty(t, granted)
	send.yield()
	require.Equal(t, "look", (<-granted).key)
	send.release()
}

func TestOneConversationHasOneLease(t *testing.T) {
	p := newPool(4)
	granted := make(chan *lease, 10)
	first, err := p.lease(t.Context(), "same", false)
	require.NoError(t, err)
	ask(t, p, "same", true, granted)
	require.Empty(t, granted)
	other, err := p.lease(t.Context(), "other", false)
	require.NoError(t, err, "a send that cannot go yet holds nobody up")
	other.release()
	first.release()
	require.Equal(t, "same", (<-granted).key)
}

func TestACancelledWaitLeavesNothingBehind(t *testing.T) {
	p := newPool(1)
	held, err := p.lease(t.Context(), "held", false)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.lease(ctx, "gone", true)
	require.ErrorIs(t, err, context.Canceled)
	held.release()
	require.Zero(t, p.queued())
	require.Empty(t, p.active)
	again, err := p.lease(t.Context(), "gone", true)
	require.NoError(t, err)
	again.release()
}

func TestAPlaceIsKeptForASend(t *testing.T) {
	p := newPool(4)
	for _, key := range []string{"a", "b", "c"} {
		_, err := p.lease(t.Context(), key, false)
		require.NoError(t, err)
	}
	granted := make(chan *lease, 10)
	ask(t, p, "d", false, granted)
	require.Empty(t, granted)
	send, err := p.lease(t.Context(), "send", true)
	require.NoError(t, err, "it waits for no look to end")
	require.True(t, p.sends("send"))
	send.release()
	require.Empty(t, granted)
}

func TestConversationsThatFailTakeAPartOfThePlacesOnly(t *testing.T) {
	p := newPool(6)
	granted := make(chan *lease, 10)
	for _, key := range []string{"bad 1", "bad 2", "bad 3"} {
		p.troubled(key, true)
	}
	first, err := p.lease(t.Context(), "bad 1", false)
	require.NoError(t, err)
	_, err = p.lease(t.Context(), "bad 2", false)
	require.NoError(t, err)
	ask(t, p, "bad 3", false, granted)
	for _, key := range []string{"good 1", "good 2", "good 3"} {
		ask(t, p, key, false, granted)
		require.Equal(t, key, (<-granted).key, "it passes the one that fails")
	}
	first.release()
	require.Equal(t, "bad 3", (<-granted).key, "whose turn comes too")
}

func TestASendClaimsTheFloorAgain(t *testing.T) {
	p := newPool(4)
	granted := make(chan *lease, 10)
	slow, err := p.lease(t.Context(), "slow", true)
	require.NoError(t, err)
	slow.yield()
	other, err := p.lease(t.Context(), "other", true)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, slow.claim(ctx), context.Canceled)
	claimed := make(chan error, 1)
	go func() { claimed <- slow.claim(t.Context()) }()
	select {
	case <-claimed:
		t.Fatal("two sends type at once")
	case <-time.After(50 * time.Millisecond):
	}
	other.release()
	require.NoError(t, <-claimed)
	ask(t, p, "look", false, granted)
	require.Empty(t, granted)
	slow.release()
	require.Equal(t, "look", (<-granted).key)
}
