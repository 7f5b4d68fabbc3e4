package integration

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/workflows/run/policy"
)

// crashWindows are the rows of the tables "Crash-window contract" and "Fault-injection matrix" in which a process can die. A
// browser worker is held at the point of its send, or the run stands in the window by itself.
var crashWindows = []struct {
	name, point string
	scenario    string
	stands      func(policy.State) bool
	// doubt: the run may end in the typed unknown, with no message on the site.
	doubt bool
}{
	{name: "before_provider_call", point: "before_arm", scenario: oneTurn},
	{name: "armed_before_the_click", point: "armed", scenario: oneTurn, doubt: true},
	{name: "provider_acted_but_its_receipt_is_lost", point: "clicked", scenario: oneTurn},
	{name: "receipt_exists_but_dispatched_is_lost", point: "committed", scenario: oneTurn},
	{name: "dispatched_or_claimed", scenario: gated, stands: func(s policy.State) bool { return s.Effect.State == policy.EffectApplied }},
	{name: "disposition_persisted_before_release", scenario: oneTurn, stands: func(s policy.State) bool { return s.Proposal != nil }},
	{name: "handoff_between_predecessor_and_successor", scenario: gated, stands: func(s policy.State) bool { return s.Succession != nil }},
}

// window is one run that stands in its window.
type window struct {
	conversation, successor, hold string
	browser                       *browserProcess
	run                           client.WorkflowRun
	before                        policy.State
}

func TestCrashWindowsWithKilledProcesses(t *testing.T) {
	victims := []string{"server"}
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		victims = append(victims, "worker", "browsers", "browser workers", "server and worker")
	}
	k := startKillable(t)
	for _, victim := range victims {
		t.Run(victim+" killed", func(t *testing.T) {
			var windows []*window
			for i := range crashWindows {
				windows = append(windows, k.enter(t, victim, i))
			}
			for i, w := range windows {
				k.stand(t, i, w)
			}
			k.strikeAll(t, victim, windows)
			for _, w := range windows {
				_ = w.browser.cmd.Process.Signal(syscall.SIGCONT)
				require.NoError(t, os.WriteFile(w.hold, nil, 0o600))
				require.NoError(t, k.lab.Release(w.conversation, "go"))
			}
			for i, w := range windows {
				t.Run(crashWindows[i].name, func(t *testing.T) { k.leave(t, i, w) })
			}
			require.Empty(t, k.lab.Violations())
		})
	}
}

// enter starts the run of a window.
func (k *killable) enter(t *testing.T, victim string, i int) *window {
	c := crashWindows[i]
	name := fmt.Sprintf("window-%d-%c%d", i, victim[0], len(victim))
	w := &window{conversation: k.conversation(t, c.scenario), hold: filepath.Join(k.dir, name)}
	w.browser = k.browserWorker(t, name, fault{c.point, syscall.SIGSTOP})
	w.run = k.start(t, w.conversation, k.input(w.conversation, name, func(in map[string]any) {
		// The checks pass once the test lets them.
		in["completion"] = map[string]any{"checks": []any{map[string]any{
			"name": "held", "command": map[string]any{"argv": []string{"sh", "-c", "until [ -e " + w.hold + " ]; do sleep 0.1; done"}, "dir": k.dir},
		}}}
	}))
	return w
}

// stand waits until the run stands in its window.
func (k *killable) stand(t *testing.T, i int, w *window) {
	c := crashWindows[i]
	if c.point != "" {
		w.browser.hit(t)
		return
	}
	if c.name == "handoff_between_predecessor_and_successor" {
		k.until(t, w.run.GetID(), "working", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
		w.successor = k.conversation(t, done)
		k.submit(t, w.run.GetID(), "conversation_rebound", map[string]any{"conversation_url": k.lab.ConversationURL(w.successor), "operator": "me"})
		require.NoError(t, k.lab.Release(w.conversation, "go"))
	}
	w.before = k.until(t, w.run.GetID(), c.name, c.stands)
}

func (k *killable) strikeAll(t *testing.T, victim string, windows []*window) {
	t.Helper()
	switch victim {
	case "server":
		require.NoError(t, k.restartServer())
	case "worker":
		require.NoError(t, k.worker.restart())
	case "server and worker":
		require.NoError(t, errors.Join(k.worker.kill(), k.restartServer(), k.worker.start()))
	case "browsers":
		for _, w := range windows {
			process, err := w.browser.chromium()
			require.NoError(t, err)
			require.NoError(t, process.Kill())
		}
	case "browser workers":
		for _, w := range windows {
			require.NoError(t, w.browser.cmd.Process.Kill())
			_ = w.browser.cmd.Wait()
			w.browser.start(t)
		}
	}
}

// leave waits for the end of a window's run: nothing was sent twice, nothing is lost, and what was known before is kept.
func (k *killable) leave(t *testing.T, i int, w *window) {
	c := crashWindows[i]
	id, conversation := w.run.GetID(), w.conversation
	if w.successor != "" {
		state := k.until(t, id, "handed off", func(st policy.State) bool { return st.Terminal() })
		require.Equal(t, policy.HandedOff, state.Status)
		require.Len(t, k.lab.Record(conversation), 1)
		id, conversation = state.Succession.Successor, w.successor
	}
	state := k.until(t, id, "at its end", func(st policy.State) bool {
		return st.Terminal() || st.Blocker != nil && st.Blocker.Class == policy.BlockedUnknown
	})
	if c.doubt && !state.Terminal() {
		require.Equal(t, policy.EffectUnknown, state.Effect.State)
		require.Empty(t, k.lab.Record(conversation))
		return
	}
	require.Equal(t, policy.GoalComplete, state.Status)
	if w.successor != "" {
		require.Len(t, k.lab.Record(conversation), 1)
		return
	}
	for _, turn := range state.Chain() {
		require.Equal(t, 1, k.marked(conversation, turn.Effect), "messages of %s", turn.Effect)
	}
	require.Len(t, k.lab.Record(conversation), len(state.Chain()))
	require.Equal(t, []int{len(state.Chain()) - 1, 0}, []int{state.Budgets.Rounds, state.Budgets.RepeatedState})
	if before := w.before; before.Effect.ID != "" {
		first := state.Chain()[0]
		require.Equal(t, []any{before.Effect.ID, before.Effect.Generation, before.RelayScopeID}, []any{first.Effect, first.Generation, state.RelayScopeID})
	}
}
