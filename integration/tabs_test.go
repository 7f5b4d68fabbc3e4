package integration

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

// watching is how many pages show a conversation, as the site knows.
func (s *stack) watching(conversation string) int {
	for _, c := range s.lab.Conversations() {
		if c.ID == conversation {
			return c.Watching
		}
	}
	return 0
}

// stops counts the presses of the page's Stop.
func (s *stack) stops(conversation string) int {
	n := 0
	for _, e := range s.lab.Events() {
		if e.ConversationID == conversation && e.Kind == "stop" {
			n++
		}
	}
	return n
}

const endless = `
otherwise:
  - text: working
  - gate: never
`

// B15: a cancellation after the message was accepted lets the attempt come to its end and sends nothing more; only a stop
// that asks for it presses the page's Stop, once.
func TestPublic_B15_a_cancellation_after_acceptance(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "b15", fault{})
	begin := func() (string, string) {
		conversation := s.conversation(t, endless)
		run := s.start(t, conversation, s.input(conversation, "b15"))
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
		defer cancel()
		_, err := s.lab.Await(ctx, conversation, 1)
		require.NoError(t, err)
		return conversation, run.GetID()
	}

	conversation, id := begin() // the message is there, its send may still wait for it to be shown
	require.NoError(t, s.client.CancelWorkflow(t.Context(), id, ""))
	var state policy.State
	require.Eventually(t, func() bool { state = s.state(t, id); return state.Status == policy.Stopped }, 30*time.Second, 50*time.Millisecond)
	require.Equal(t, policy.EffectApplied, state.Effect.State, "the turn is known as applied")
	require.True(t, state.Stop.Canceled)

	interrupted, id := begin()
	s.until(t, id, "applied", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	answer := s.update(t, id, "stop", map[string]any{"operator": "me", "reason": "enough", "interrupt": true})
	require.Equal(t, kernel.Accept, answer.Decision, answer.Code)
	require.Eventually(t, func() bool { state = s.state(t, id); return state.Status == policy.Stopped }, 30*time.Second, 50*time.Millisecond)
	require.Equal(t, policy.InterruptStopped, state.Stop.Interrupted)
	require.Equal(t, policy.EffectApplied, state.Effect.State)

	require.Equal(t, 0, s.stops(conversation), "a cancellation presses nothing")
	require.Equal(t, 1, s.stops(interrupted))
	require.Len(t, s.lab.Record(conversation), 1)
	require.Len(t, s.lab.Record(interrupted), 1)
}

// TestTheTabsOfEndedAndWaitingRunsAreRetired: done, a validated NEEDS_USER and a stop give the tab back, and none of that is
// in a history.
func TestTheTabsOfEndedAndWaitingRunsAreRetired(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "retired", fault{})
	finished := s.conversation(t, done)
	state := s.result(t, s.start(t, finished, s.input(finished, "retired")))
	require.Equal(t, policy.GoalComplete, state.Status)

	asking := s.conversation(t, `
otherwise:
  - text: '{{needs_user "half" "no password" "credentials" "Give me the password" "I looked for it"}}'
`)
	run := s.start(t, asking, s.input(asking, "retired"))
	s.until(t, run.GetID(), "waiting", func(st policy.State) bool { return st.Status == policy.WaitingForUser })

	stopped := s.conversation(t, `
otherwise:
  - text: working
  - gate: go
`)
	run = s.start(t, stopped, s.input(stopped, "retired"))
	s.until(t, run.GetID(), "applied", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	s.update(t, run.GetID(), "stop", map[string]any{"operator": "me", "reason": "enough"})
	require.NoError(t, s.lab.Release(stopped, "go"))

	working := s.conversation(t, endless)
	run = s.start(t, working, s.input(working, "retired"))
	s.until(t, run.GetID(), "applied", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	for name, conversation := range map[string]string{"done": finished, "waiting": asking, "stopped": stopped} {
		require.Eventually(t, func() bool { return s.watching(conversation) == 0 }, 30*time.Second, 50*time.Millisecond, name)
	}
	require.Equal(t, 1, s.watching(working))
}

// B29: a second worker process on the profile directory of the first ends at once, says who drives it, and sends nothing.
func TestPublic_B29_a_second_worker_process_is_fenced_out(t *testing.T) {
	s := start(t)
	first := s.browserWorker(t, "b29", fault{})
	conversation := s.conversation(t, done)
	require.Equal(t, policy.GoalComplete, s.result(t, s.start(t, conversation, s.input(conversation, "b29"))).Status)
	second := exec.Command(first.cmd.Path)
	second.Env = first.cmd.Env
	out, err := second.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "browser profile is in use")
	require.Contains(t, string(out), "stop that worker")
	require.Len(t, s.lab.Record(conversation), 1)
	require.False(t, strings.Contains(string(out), "browser is ready"), "it starts no browser")
}
