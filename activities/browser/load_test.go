package browser

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
)

// looks is a log that notes when each effect was looked at.
type looks struct {
	slog.Handler
	mu   sync.Mutex
	seen map[string][]time.Time
}

func (h *looks) Enabled(context.Context, slog.Level) bool { return true }
func (h *looks) WithAttrs([]slog.Attr) slog.Handler       { return h }

func (h *looks) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "look" {
		return nil
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "effect" {
			h.mu.Lock()
			h.seen[a.Value.String()] = append(h.seen[a.Value.String()], r.Time)
			h.mu.Unlock()
		}
		return true
	})
	return nil
}

// of are the looks at an effect so far.
func (h *looks) of(fx string) []time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.seen[fx])
}

// load is how much a browser has to do in the test below.
type load struct{ conversations, tabs, sends, failing, looks, ends int }

// TestSendsAndLooksUnderLoad follows many conversations with few tabs, some of which never answer, and sends meanwhile. The
// ground truth is the site's: when a message arrived there, and that it arrived once.
func TestSendsAndLooksUnderLoad(t *testing.T) {
	full := os.Getenv("STEWARD_TEST_FULL") == "1"
	n := load{conversations: 25, tabs: 4, sends: 3, failing: 1, looks: 2, ends: 5}
	if full {
		n = load{conversations: 100, tabs: 12, sends: 20, failing: 3, looks: 3, ends: 30}
	}
	h := &looks{Handler: slog.DiscardHandler, seen: map[string][]time.Time{}}
	l := alone(t, func(o *Options) { o.MaxTabs, o.Log = n.tabs, slog.New(h) })
	silent := silentSite(t)
	l.profile(t, "drift_after: 3s, reload_after: 4s", "drift_after: 1h, reload_after: 1h", "origins: [", "origins: ["+l.URL()+", "+silent+", ")
	idle := l.sendTimes(t, n.sends)

	// Turns that go on without a stop control: their tabs may be given to others between two looks.
	var effects []string
	results := make(chan activities.ObserveResult, n.conversations)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var conversations []activities.Conversation
	for range n.conversations {
		c := l.conversation(t, `otherwise: [{text: begun}, {pause: {gate: go, stop_button: false, busy: false}}, {text: '`+valid+`'}]`)
		fx := effect()
		require.NoError(t, l.Say(c.ID, prompt(c, fx, "words")))
		conversations, effects = append(conversations, c), append(effects, fx)
		in := observeInput(c, fx)
		in.Until = time.Now().Add(20 * time.Minute)
		go func() {
			r, err := l.browser.Observe(ctx, in)
			if err != nil {
				r.Detail = err.Error()
			}
			results <- r
		}()
	}
	for i := range n.failing {
		id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		in := observeInput(activities.Conversation{Site: "chatlab", ID: id, URL: silent + "/c/" + id}, effect())
		in.Until = time.Now().Add(20 * time.Minute)
		go func() { _, _ = l.browser.Observe(ctx, in) }()
	}
	seen := func(times int) func() bool {
		return func() bool {
			return !slices.ContainsFunc(effects, func(fx string) bool { return len(h.of(fx)) < times })
		}
	}
	require.Eventually(t, seen(1), 5*time.Minute, 50*time.Millisecond, "every conversation is looked at")

	busy := l.sendTimes(t, n.sends)
	require.Eventually(t, seen(n.looks), 5*time.Minute, 50*time.Millisecond, "and again and again")
	var gaps []time.Duration
	for _, fx := range effects {
		at := h.of(fx)
		longest := time.Duration(0)
		for i := range at[1:] {
			longest = max(longest, at[i+1].Sub(at[i]))
		}
		gaps = append(gaps, longest)
	}
	slices.Sort(gaps)

	released := time.Now()
	for _, c := range conversations[:n.ends] {
		require.NoError(t, l.Release(c.ID, "go"))
	}
	for range n.ends {
		r := <-results
		require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
		require.NotNil(t, r.Reading.Receipt)
	}
	settled := time.Since(released)
	require.Empty(t, l.Violations())
	for _, c := range l.Conversations() {
		require.Equal(t, 1, c.Received)
	}
	ratio := float64(percentile(busy, 95)) / float64(percentile(idle, 95))
	t.Logf("%+v: send to its arrival p50 %s p95 %s idle, p50 %s p95 %s busy (ratio %.2f); longest time between two looks "+
		"p50 %s max %s; all that ended settled within %s", n, percentile(idle, 50), percentile(idle, 95), percentile(busy, 50),
		percentile(busy, 95), ratio, percentile(gaps, 50), gaps[len(gaps)-1], settled)
	if full {
		require.LessOrEqual(t, ratio, 2.0)
		require.LessOrEqual(t, gaps[len(gaps)-1], 3*percentile(gaps, 50), "no conversation waits much longer than the others")
	}
}

// sendTimes makes sends to conversations without a tab and returns how long each took to arrive on the site, in order of
// their length.
func (l *lab) sendTimes(t *testing.T, n int) (times []time.Duration) {
	t.Helper()
	for range n {
		c := l.conversation(t, `otherwise: [{text: ok}]`)
		began := time.Now()
		r := l.send(t, sendInput(c, effect(), "words"))
		require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
		got := l.Record(c.ID)
		require.Len(t, got, 1)
		times = append(times, got[0].At.Sub(began))
	}
	slices.Sort(times)
	return times
}

func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[(len(sorted)-1)*p/100]
}

// silentSite takes connections and never answers.
func silentSite(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
		}
	}()
	return "http://" + listener.Addr().String()
}

func TestACorrectedProfileTakesEffectWithoutARestart(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	const older = "version: 1\npage: {finished: ['[data-testid=an-older-mark]']}" // the finish mark of an older page
	probe := func() activities.ProbeResult {
		c := l.conversation(t, history+"\notherwise: [{text: ok}]")
		r, err := l.browser.Probe(t.Context(), activities.ProbeInput{ID: effect(), Level: activities.ProbePage, Conversation: c})
		require.NoError(t, err)
		return r
	}
	before := probe()
	require.True(t, before.Passed, "%+v", before)
	l.profile(t, "version: 1", older)
	drifted := probe()
	require.Equal(t, []string{"finished"}, drifted.Drifted, "%+v", drifted)

	// An observation that runs on the broken profile goes on with the corrected one.
	c := l.conversation(t, `otherwise: [{text: '`+valid+`'}]`)
	l.profile(t, "version: 1", older, "drift_after: 3s, reload_after: 4s", "drift_after: 1h, reload_after: 1h")
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	done := l.observing(t, observeInput(c, fx))
	select {
	case r := <-done:
		t.Fatalf("it has no finish mark, and yet: %+v", r)
	case <-time.After(2 * time.Second):
	}
	l.profile(t, "version: 1", "verzion: 1")
	_, err := l.browser.opts.Sites.Refresh()
	require.Error(t, err)
	require.False(t, probe().Passed, "a bad file changes nothing")
	l.profile(t)
	r := <-done
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.Equal(t, before.SiteDigest, r.SiteDigest)
	require.True(t, probe().Passed)
	require.Len(t, l.Record(c.ID), 1)
}
