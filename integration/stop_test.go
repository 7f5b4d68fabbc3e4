package integration

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

// A stop is accepted and visible at once, also while nobody serves the browser, and ends the run without it: what waits for
// the dead worker's observation waits at most for its heartbeat.
func TestStopWithTheBrowserWorkerGone(t *testing.T) {
	full(t)
	const heartbeat = 30 * time.Second // of an observation
	s := start(t)
	p := s.browserWorker(t, "gone", fault{})
	conversation := s.conversation(t, gated)
	run := s.start(t, conversation, s.input(conversation, "gone"))
	s.until(t, run.GetID(), "observing", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	require.NoError(t, s.lab.AwaitGate(t.Context(), conversation, "go"))
	require.NoError(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()

	began := time.Now()
	answer := s.update(t, run.GetID(), "stop", map[string]any{"operator": "me", "reason": "enough"})
	accepted := time.Since(began)
	require.Equal(t, kernel.Accept, answer.Decision)
	state := s.state(t, run.GetID())
	visible := time.Since(began)
	require.True(t, state.Stop != nil || state.Status == policy.Stopped)
	state = s.result(t, run)
	closed := time.Since(began)
	require.Equal(t, policy.Stopped, state.Status)
	require.Less(t, closed, heartbeat+20*time.Second)
	require.NoError(t, s.lab.Release(conversation, "go"))
	require.Len(t, s.lab.Record(conversation), 1)
	t.Logf("stop: accepted after %v, visible after %v, closed after %v", accepted, visible, closed)
}
