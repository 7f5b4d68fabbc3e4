package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/policy"
)

// canaries are the conversations that are worked on. Each stands at its gate when everything is restarted around it.
var canaries = []struct {
	name, scenario string
	status         policy.Status
	kinds          string
}{
	{
		name: "a DONE that the checks validate, after one that they refuse", status: policy.GoalComplete,
		kinds: "enrollment continuation continuation correction", scenario: `
replies:
  - - text: '{{receipt "CONTINUE" "first" "more to do"}}'
  - - gate: go
    - text: '{{receipt "CONTINUE" "second" "more to do"}}'
  - - text: '{{receipt "DONE" "it should be green" "nothing is left"}}'
  - - write_file: {path: first.md, content: all green}
    - text: '{{receipt "DONE" "the report is there" "nothing is left"}}'
`,
	},
	{
		name: "a NEEDS_USER for what only a person has, after one that is none", status: policy.WaitingForUser,
		kinds: "enrollment continuation correction continuation", scenario: `
replies:
  - - text: '{{receipt "CONTINUE" "first" "more to do"}}'
  - - gate: go
    - text: '{{needs_user "second" "a test fails" "test_failure" "Make the test pass" "I ran it"}}'
  - - tool: {name: command, output: ok, for: 200ms}
    - text: '{{receipt "CONTINUE" "third" "more to do"}}'
  - - text: '{{needs_user "fourth" "no password" "credentials" "Give me the password" "I looked for it"}}'
`,
	},
	{
		name: "a technical failure of the provider, recovered by itself", status: policy.GoalComplete,
		kinds: "enrollment continuation recovery continuation", scenario: `
replies:
  - - text: '{{receipt "CONTINUE" "first" "more to do"}}'
  - - gate: go
    - text: I look around
    - banner: stopped_thinking
  - - text: '{{receipt "CONTINUE" "second" "more to do"}}'
  - - write_file: {path: third.md, content: all green}
    - text: '{{receipt "DONE" "third" "nothing is left"}}'
`,
	},
}

// TestCanary works on three conversations of one site at once, unattended, while server, workers and browser are replaced
// under them; a fourth conversation beside them is nobody's business. `go tool task canary` runs it alone.
func TestCanary(t *testing.T) {
	full(t)
	k := startKillable(t)
	p := k.browserWorker(t, "canary", fault{})
	excluded := k.conversation(t, "replies: []")
	var conversations, ids []string
	for i, c := range canaries {
		conversation := k.conversation(t, c.scenario)
		// None finds the report of another, or of an earlier time.
		report := filepath.Join(k.dir, []string{"first.md", "second.md", "third.md"}[i])
		require.NoError(t, os.RemoveAll(report))
		run := k.start(t, conversation, k.input(conversation, "canary", func(in map[string]any) {
			in["completion"] = map[string]any{"checks": []any{
				map[string]any{"name": "report", "file": map[string]any{"path": report, "contains": "all green"}},
			}}
		}))
		conversations, ids = append(conversations, conversation), append(ids, run.GetID())
	}
	for _, conversation := range conversations {
		require.NoError(t, k.lab.AwaitGate(t.Context(), conversation, "go"))
	}
	require.NoError(t, k.restartServer())
	require.NoError(t, k.worker.restart())
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGKILL)) // its browser goes with it: the site meets a new client
	_ = p.cmd.Wait()
	p.start(t)
	for _, conversation := range conversations {
		require.NoError(t, k.lab.Release(conversation, "go"))
	}
	messages := 0
	for i, c := range canaries {
		state := k.until(t, ids[i], c.name, func(st policy.State) bool { return st.Terminal() || st.Status == c.status })
		require.Equal(t, c.status, state.Status, c.name)
		var kinds []string
		for _, turn := range state.Chain() {
			kinds = append(kinds, string(turn.Kind))
			require.Equal(t, 1, k.marked(conversations[i], turn.Effect), "%s: messages of %s", c.name, turn.Effect)
		}
		require.Equal(t, c.kinds, strings.Join(kinds, " "), c.name)
		require.Len(t, k.lab.Record(conversations[i]), len(kinds), c.name)
		messages += len(kinds)
		for _, e := range k.journal(t, ids[i]) {
			require.NotContains(t, []string{"user_resume_requested", "pause_requested", "recovery_requested"}, e.Event, "nobody helps")
		}
	}
	require.Equal(t, "credentials", k.state(t, ids[1]).Completion.Ask.Kind)
	require.Empty(t, k.lab.Record(excluded))
	for _, c := range k.lab.Conversations() {
		if c.ID == excluded {
			require.Zero(t, c.Watching, "nobody looks at the excluded conversation")
		}
	}
	require.Empty(t, k.lab.Violations())
	fmt.Printf("canary: 3 conversations, %d turns, %d messages, none to the excluded one\n", messages, messages)
}
