package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/policy"
)

// temporal runs the temporal CLI, which an operator looks at first.
func (s *stack) temporal(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cli := os.Getenv("STEWARD_TEMPORAL_CLI")
	if cli == "" {
		cli = "../.cache/bin/temporal"
	}
	if _, err := os.Stat(cli); err != nil {
		t.Skip("needs the temporal CLI: go tool task test installs it")
	}
	cmd := exec.Command(cli, append(args, "--address", s.endpoint.Address, "--namespace", s.endpoint.Namespace)...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "TEMPORAL_DISABLE_CONFIG_FILE=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (s *stack) mustTemporal(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.temporal(t, args...)
	require.NoError(t, err, out)
	return out
}

func TestTemporalCLIOperatesARun(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "cli", fault{})
	conversation := s.conversation(t, `
replies:
  - - text: working
    - gate: go
    - text: '{{receipt "CONTINUE" "one" "more to do"}}'
`+done)
	data, err := json.Marshal(s.input(conversation, "cli"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "goal.json")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	id := "run:chatlab:" + conversation

	s.mustTemporal(t, "workflow", "start", "--type", "WorkflowRun", "--task-queue", "steward", "--workflow-id", id, "--input-file", file)
	s.until(t, id, "observing", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	require.Eventually(t, func() bool {
		out, err := s.temporal(t, "workflow", "list", "--query", `StewardStatus="running" AND StewardConversation="`+conversation+`"`)
		return err == nil && strings.Contains(out, id)
	}, 20*time.Second, 200*time.Millisecond, "the run is not listed by its search attributes")

	require.Contains(t, s.mustTemporal(t, "workflow", "query", "--workflow-id", id, "--type", "why"), "follow the turn")
	s.mustTemporal(t, "workflow", "signal", "--workflow-id", id, "--name", "pause", "--input", `{"operator":"me","reason":"lunch"}`)
	s.until(t, id, "paused", func(st policy.State) bool { return st.Paused != nil })
	require.Contains(t, s.mustTemporal(t, "workflow", "update", "execute", "--workflow-id", id, "--name", "resume",
		"--input", `{"operator":"me","reason":"back"}`), "accept")

	out, err := s.temporal(t, "workflow", "update", "execute", "--workflow-id", id, "--name", "stop", "--input", `{"operator":"me","raeson":"typo"}`)
	require.Error(t, err)
	require.Contains(t, out, "raeson")
	s.mustTemporal(t, "workflow", "signal", "--workflow-id", id, "--name", "stop", "--input", `{"operator":"me","raeson":"typo"}`)
	require.Contains(t, s.mustTemporal(t, "workflow", "query", "--workflow-id", id, "--type", "journal"), "payload_malformed")

	require.NoError(t, s.lab.Release(conversation, "go"))
	state := s.result(t, s.client.GetWorkflow(t.Context(), id, ""))
	require.Equal(t, policy.GoalComplete, state.Status)
	require.Contains(t, s.mustTemporal(t, "workflow", "result", "--workflow-id", id), "goal_complete")
}

func TestARefusedStartListsEveryProblem(t *testing.T) {
	s := start(t)
	file := filepath.Join(t.TempDir(), "goal.json")
	checks := make([]any, 100)
	for i := range checks {
		checks[i] = map[string]any{"name": "same", "command": map[string]any{"argv": []string{"true"}, "dir": "relative"}}
	}
	objective := make([]byte, 8001)
	for i := range objective {
		objective[i] = 'x'
	}
	data, err := json.Marshal(map[string]any{
		"objective": string(objective), "objektive": "typo", "outcome": "a bell \x07",
		"target":       map[string]any{"site": "chatlab", "conversation_url": "https://evil.example/c/6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e"},
		"completion":   map[string]any{"checks": checks},
		"continuation": map[string]any{"max_rounds": "fifty"},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	id := "run:chatlab:refused"
	s.mustTemporal(t, "workflow", "start", "--type", "WorkflowRun", "--task-queue", "steward", "--workflow-id", id, "--input-file", file)
	require.Error(t, s.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	out := s.mustTemporal(t, "workflow", "show", "--workflow-id", id)
	for _, problem := range []string{
		"start_refused", "objektive", "objective", "8000", "control", "completion.checks", "32", "continuation.max_rounds",
		"target.conversation_url", "evil.example",
	} {
		require.Contains(t, out, problem)
	}
}
