package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/workflows/run/receipt"
)

// scripted answers with what it is told.
type scripted struct {
	BrowserActivities
	send    activities.SendResult
	observe activities.ObserveResult
	err     error
}

func (s *scripted) Send(context.Context, activities.SendInput) (activities.SendResult, error) {
	return s.send, s.err
}

func (s *scripted) Observe(context.Context, activities.ObserveInput) (activities.ObserveResult, error) {
	return s.observe, s.err
}

func (s *scripted) Reconcile(context.Context, activities.ReconcileInput) (activities.ReconcileResult, error) {
	return activities.ReconcileResult{Readable: true, Marker: true}, s.err
}

func TestMetricsCountWhatTheActivitiesProve(t *testing.T) {
	m := NewMetrics()
	page := &scripted{}
	b := metered{page, "work", m}
	settled := time.Now().Add(-3 * time.Second).Round(time.Millisecond)
	page.observe = activities.ObserveResult{Turn: activities.TurnSettled, SettledAt: settled, Reading: receipt.Reading{Receipt: &receipt.Receipt{}}}
	_, err := b.Observe(t.Context(), activities.ObserveInput{EffectID: "fx_1"})
	require.NoError(t, err)

	page.send = activities.SendResult{Outcome: activities.SendCommitted, CommittedAt: settled.Add(2 * time.Second)}
	next := activities.SendInput{Kind: "continuation", Fence: &activities.Fence{SourceEffect: "fx_1"}}
	for range 2 { // the second is a repetition of the same send
		_, err = b.Send(t.Context(), next)
		require.NoError(t, err)
	}
	page.err = errors.New("lost")
	_, err = b.Send(t.Context(), next)
	require.Error(t, err)
	page.err = nil
	_, err = b.Reconcile(t.Context(), activities.ReconcileInput{})
	require.NoError(t, err)

	text := scrape(t, m)
	for _, line := range []string{
		`steward_sends_total{browser="work",kind="continuation",outcome="committed"} 2`,
		`steward_sends_total{browser="work",kind="continuation",outcome="failed"} 1`,
		`steward_turns_total{browser="work",receipt="valid",turn="settled"} 1`,
		`steward_reconciliations_total{browser="work",seen="marker"} 1`,
		`steward_successor_seconds_count{browser="work"} 1`, // one successor of one settled turn
		`steward_successor_seconds_sum{browser="work"} 2`,
	} {
		require.Contains(t, text, line+"\n")
	}
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	address, err := m.Serve(t.Context(), "127.0.0.1:0", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	response, err := http.Get("http://" + address + "/metrics")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body)
}

func TestMetricsOfTheSDKKeepKnownTagsOnly(t *testing.T) {
	m := NewMetrics()
	h := m.Handler().WithTags(map[string]string{"namespace": "n"}).WithTags(map[string]string{"operation": "o", "run_id": "a run"})
	h.Counter("temporal_request").Inc(2)
	h.Gauge("temporal_num_pollers").Update(3)
	h.Timer("temporal_request_latency").Record(20 * time.Millisecond)
	m.Handler().Counter("temporal_request").Inc(1)

	text := scrape(t, m)
	require.Contains(t, text, `namespace="n",operation="o"`)
	require.Contains(t, text, "temporal_request_latency_seconds_bucket")
	require.NotContains(t, text, "a run")

	address, err := m.Serve(t.Context(), "127.0.0.1:0", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	_, err = m.Serve(t.Context(), address, slog.Default())
	require.ErrorContains(t, err, "a port of its own")
}
