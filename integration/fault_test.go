package integration

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/policy"
)

const oneTurn = `
replies:
  - - text: |
        All green.

        ✅ Done.

        {{receipt "DONE" "all green" "nothing is left"}}
`

// rounds of each fault; the full suite has 50.
func rounds() int {
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		return 50
	}
	return 2
}

// faults are the crash windows of a send, and what must come of each.
var faults = []struct {
	name, point string
	signal      syscall.Signal
	// applied: the run ends by itself with one message; else the effect stays unknown and the site has none.
	applied     bool
	generations int
}{
	{"killed before arming", "before_arm", syscall.SIGKILL, true, 2},
	{"killed after arming, before the click", "armed", syscall.SIGKILL, false, 1},
	{"killed after the click, before its confirmation", "clicked", syscall.SIGKILL, true, 1},
	{"frozen before arming and woken too late", "before_arm", syscall.SIGSTOP, true, 2},
	{"frozen after arming and woken too late", "armed", syscall.SIGSTOP, false, 1},
	{"frozen after the click and woken too late", "clicked", syscall.SIGSTOP, true, 1},
}

func TestFaultsOfASendNeverDuplicateAndNeverLose(t *testing.T) {
	for i, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			for round := range rounds() {
				t.Run(fmt.Sprint(round), func(t *testing.T) {
					conversation := s.conversation(t, oneTurn)
					name := fmt.Sprintf("fault-%d-%d", i, round)
					p := s.browserWorker(t, name, fault{f.point, f.signal})
					run := s.start(t, conversation, s.input(conversation, name))
					p.hit(t)
					s.recover(t, p, run.GetID(), f.signal)
					if f.applied {
						state := s.result(t, run)
						require.Equal(t, policy.GoalComplete, state.Status)
						require.Equal(t, f.generations, state.Effect.Generation)
						require.Len(t, s.lab.Record(conversation), 1, "user messages on the site")
						require.Equal(t, 1, s.marked(conversation, state.Effect.ID))
						return
					}
					state := s.until(t, run.GetID(), "blocked by an unknown outcome", func(st policy.State) bool {
						return st.Blocker != nil && st.Blocker.Class == policy.BlockedUnknown
					})
					require.Equal(t, policy.EffectUnknown, state.Effect.State)
					require.Equal(t, 1, state.Effect.Generation)
					require.Empty(t, s.lab.Record(conversation), "user messages on the site")
				})
			}
		})
	}
	t.Cleanup(func() {
		if shared != nil {
			require.Empty(t, shared.lab.Violations())
		}
	})
}

// recover brings the worker back: a new process for a killed one, SIGCONT for a frozen one after its time-out.
func (s *stack) recover(t *testing.T, p *browserProcess, id string, signal syscall.Signal) {
	t.Helper()
	if signal == syscall.SIGKILL {
		_ = p.cmd.Wait()
		p.start(t)
		return
	}
	s.until(t, id, "told that the worker is lost", func(st policy.State) bool { return len(st.Effect.Attempts) > 0 })
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
}
