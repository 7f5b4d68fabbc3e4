package integration

import (
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run/policy"
)

// line is the way to a site, which can be cut.
type line struct {
	to, addr string
	mu       sync.Mutex
	open     []net.Conn
	listener net.Listener
}

func newLine(t *testing.T, to string) *line {
	l := &line{to: strings.TrimPrefix(to, "http://"), addr: "127.0.0.1:0"}
	l.restore(t)
	t.Cleanup(l.cut)
	return l
}

// cut closes every connection, and refuses new ones.
func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.listener.Close()
	for _, c := range l.open {
		_ = c.Close()
	}
	l.open = nil
}

// restore takes connections again, at the same address.
func (l *line) restore(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", l.addr)
	require.NoError(t, err)
	l.listener, l.addr = listener, listener.Addr().String()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", l.to)
			if err != nil {
				_ = near.Close()
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, near, far)
			l.mu.Unlock()
			for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					_, _ = io.Copy(ends[0], ends[1])
					_ = ends[0].Close()
				}()
			}
		}
	}()
}

// build starts the worker of one build of the deployment, and makes that build the current one.
func (k *killable) build(t *testing.T, id string) {
	t.Helper()
	k.worker = k.command("worker", "--deployment-name", "steward", "--build-id", id, "--stop-timeout", "11s")
	make := k.worker.make
	k.worker.make = func() *exec.Cmd {
		cmd := make()
		cmd.Env = append(cmd.Env, "STEWARD_BROWSERS=[{name: taken, site: chatlab}]")
		return cmd
	}
	require.NoError(t, k.worker.start())
	t.Cleanup(k.worker.end)
	require.Eventually(t, func() bool {
		_, err := k.client.WorkerDeploymentClient().GetHandle("steward").SetCurrentVersion(t.Context(),
			client.WorkerDeploymentSetCurrentVersionOptions{BuildID: id})
		return err == nil
	}, time.Minute, 200*time.Millisecond, "the build does not become the current one")
}

// A run that an earlier build left blocked by a site that did not answer is taken over by the next build, probed, rearmed with
// all that it knew, sends once and goes on. Nobody says anything to it.
func TestTakeoverOfABlockedRunByTheNextBuild(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server and a browser")
	}
	s, err := newSite()
	require.NoError(t, err)
	t.Cleanup(s.close)
	site := newLine(t, s.lab.URL())
	require.NoError(t, writeSite(s.sitesDir, "http://"+site.addr))
	require.NoError(t, s.tune("heartbeat: 3s", "heartbeat: 3s\n    probe: 1s"))
	k, err := serveKillable(s)
	require.NoError(t, err)

	conversation := k.conversation(t, `
replies:
  - - text: '{{receipt "CONTINUE" "one" "more to do"}}'
  - - gate: go
    - text: '{{receipt "CONTINUE" "one" "more to do"}}'
`+done)
	k.build(t, "one")
	run := k.start(t, conversation, k.input(conversation, "taken", func(in map[string]any) {
		in["target"].(map[string]any)["conversation_url"] = "http://" + site.addr + "/c/" + conversation
	}))
	id := run.GetID()
	k.until(t, id, "in its second turn", func(st policy.State) bool { return st.Turns == 2 })
	k.update(t, id, "pause", map[string]any{"operator": "me", "reason": "before the outage"})
	require.NoError(t, k.lab.Release(conversation, "go"))
	k.until(t, id, "in its third round", func(st policy.State) bool { return st.Budgets.Rounds == 2 })
	require.NoError(t, k.worker.kill())
	site.cut()
	require.NoError(t, k.worker.start())
	k.update(t, id, "resume", map[string]any{"operator": "me", "reason": "go on"})
	before := k.until(t, id, "blocked", func(st policy.State) bool { return st.Blocker != nil })
	require.Equal(t, policy.BlockedFailures, before.Blocker.Class)
	require.Equal(t, 1, before.Budgets.RepeatedState)
	require.NoError(t, k.worker.kill())

	site.restore(t)
	k.build(t, "two")
	state := k.result(t, k.client.GetWorkflow(t.Context(), id, ""))
	require.Equal(t, policy.GoalComplete, state.Status)
	require.Equal(t, []any{before.Effect.ID, 4, before.AuthorityID, before.RelayScopeID, before.Scope, 2},
		[]any{state.Effect.ID, state.Effect.Generation, state.AuthorityID, state.RelayScopeID, state.Scope, state.Budgets.Rounds})
	require.Equal(t, []int{1, 0, 3}, []int{state.Budgets.ProviderFailures.Epoch, state.Budgets.ProviderFailures.Streak, state.Budgets.ProviderFailures.Total})
	require.Contains(t, state.Budgets.ProviderFailures.Opened, "pr_", "a probe opened the epoch")
	var attempts []string
	for _, a := range state.Effect.Attempts {
		attempts = append(attempts, string(a.Outcome)+" "+a.Code+" "+a.Worker.Release)
	}
	require.Equal(t, []string{"not_applied unreachable one", "not_applied unreachable one", "not_applied unreachable one", "applied  two"}, attempts)
	require.Len(t, k.lab.Record(conversation), 3)
	require.Equal(t, 1, k.marked(conversation, state.Effect.ID))
	require.Empty(t, k.lab.Violations())

	for _, e := range slices.Backward(k.journal(t, id)) {
		if e.Event == "provider_dispatch_failed" {
			break
		}
		require.Contains(t, []string{
			"stalled_round_observed", "timer_elapsed", "provider_dispatch_started", "provider_environment_recovered", "provider_dispatch_succeeded",
			"effect_observed", "proposal_validated",
		}, e.Event, "nothing that a person says")
	}
	if os.Getenv("STEWARD_RECORD_HISTORIES") != "" {
		k.save(t, id, run.GetRunID(), "taken_over_by_the_next_build")
	}
}

func (s *stack) journal(t *testing.T, id string) (journal []machine.Entry) {
	t.Helper()
	answer, err := s.client.QueryWorkflow(t.Context(), id, "", workflows.QueryJournal)
	require.NoError(t, err)
	require.NoError(t, answer.Get(&journal))
	return journal
}
