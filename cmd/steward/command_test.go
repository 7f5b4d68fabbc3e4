package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/integration/chatlab"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

// isolated keeps the user's own settings out of a test.
func isolated(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "STEWARD_") || strings.HasPrefix(name, "TEMPORAL_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("XDG_DATA_HOME", t.TempDir())
}

// command runs the command in this process.
func command(ctx context.Context, stdin string, args ...string) (out string, err error) {
	var stdout bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&stdout)
	root.SetErr(io.Discard)
	err = execute(ctx, root)
	return stdout.String(), err
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

func TestDemoReachesAVerifiedDone(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server and a browser")
	}
	isolated(t)
	out, err := command(t.Context(), "", "demo", "--output", "json")
	require.NoError(t, err)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1, "one JSON object")
	got := decode[map[string]any](t, out)
	require.Equal(t, "goal_complete", got["status"])
	require.EqualValues(t, 3, got["turns"])
	require.EqualValues(t, 3, got["user_messages"])
	require.EqualValues(t, 3, got["dispatches"])
	require.Contains(t, got["run_id"], "run:chatlab:")
	require.Contains(t, got["web_ui"], "/namespaces/default/workflows/run:chatlab:")
	require.Greater(t, got["elapsed_ms"], 0.0)
}

const pausedScript = `
about: waits for the test before its first receipt
replies:
  - - text: working
    - gate: go
    - text: '{{receipt "CONTINUE" "half" "the report is missing"}}'
  - - write_file: {path: REPORT.md, content: "all green"}
    - text: '{{receipt "DONE" "all" "the report says so"}}'
`

// One run, steered through the command alone.
func TestTheCommandSteersARun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server and a browser")
	}
	isolated(t)
	d := &demo{app: &app{output: output{out: io.Discard, err: io.Discard}}, dir: t.TempDir()}
	t.Cleanup(d.close)
	require.NoError(t, d.start(t.Context(), chatlab.MustParse(pausedScript)))
	steward := func(args ...string) (string, error) {
		return command(t.Context(), string(d.goal()), append([]string{"--data-dir", d.dir, "--sites-dir", d.settings.SitesDir, "-o", "json"}, args...)...)
	}
	must := func(args ...string) string {
		t.Helper()
		out, err := steward(args...)
		require.NoError(t, err, args)
		return out
	}

	id := decode[row](t, must("run", "start", "-f", "-")).WorkflowID
	require.Equal(t, "run:chatlab:"+d.conversation, id)
	_, err := steward("run", "start", "-f", "-")
	require.Equal(t, exitRefused, exitCode(err), "one conversation has one run")
	require.ErrorContains(t, err, "already open")

	var why policy.Why
	require.Eventually(t, func() bool {
		why = decode[policy.Why](t, must("run", "why", id))
		return why.State == string(policy.EffectApplied)
	}, 30*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		listed := decode[[]row](t, must("run", "list", "--ask"))
		return len(listed) == 1 && listed[0].WorkflowID == id && listed[0].Status == "running" && listed[0].Rules > 0
	}, 30*time.Second, 50*time.Millisecond)
	require.Contains(t, must("run", "why", d.conversation), why.Effect, "a conversation id names its run")

	accepted := func(out string) machine.Answer {
		t.Helper()
		answer := decode[machine.Answer](t, out)
		require.Equal(t, kernel.Accept, answer.Decision, answer.Code)
		return answer
	}
	accepted(must("run", "pause", id, "--reason", "lunch", "--operator", "me"))
	require.NotNil(t, decode[policy.Why](t, must("run", "why", id)).Paused)
	accepted(must("run", "resume", id, "--reason", "back"))

	// Every message is understood, also where this run has no use for it.
	for verb, args := range map[string][]string{
		"applied":     {"--effect", why.Effect, "--generation", "1", "--reason", "seen"},
		"not-applied": {"--effect", why.Effect, "--generation", "1", "--reason", "looked", "--without-observation"},
		"unknown":     {"--effect", why.Effect, "--generation", "1", "--reason", "no idea"},
		"supersede":   {"--effect", why.Effect, "--reason", "again", "--accept-duplicate"},
		"approve":     {"--completion", "c_1", "--reason", "fine"},
		"decline":     {"--completion", "c_1", "--reason", "not yet"},
		"recover":     {"--effect", why.Effect, "--reason", "stuck"},
		"occurrence":  {"--occurrence", "monday"},
	} {
		out, err := steward(append([]string{"run", verb, id}, args...)...)
		answer := decode[machine.Answer](t, out)
		require.NotEqual(t, kernel.Accept, answer.Decision, verb)
		require.NotEmpty(t, answer.Code, verb)
		if answer.Decision != kernel.NoOp {
			require.Equal(t, exitRefused, exitCode(err), verb)
		}
	}
	_, err = steward("run", "pause", id, "--reason", "a\u0007b")
	require.Equal(t, exitUsage, exitCode(err), "a malformed message is not delivered")
	_, err = steward("run", "pause", "run:chatlab:nobody", "--reason", "x")
	require.Equal(t, exitNotFound, exitCode(err))
	_, err = steward("run", "pause", id)
	require.Equal(t, exitUsage, exitCode(err), "a reason is required")
	must("run", "pause", id, "--reason", "by signal", "--signal")
	require.Eventually(t, func() bool { return decode[policy.Why](t, must("run", "why", id)).Paused != nil }, 20*time.Second, 50*time.Millisecond)
	accepted(must("run", "resume", id, "--reason", "go on"))

	require.NoError(t, d.site.Release(d.conversation, "go"))
	watched := must("run", "watch", id)
	require.Contains(t, watched, `"status":"goal_complete"`)
	require.Equal(t, 2, strings.Count(watched, `"turn":`), watched)
	require.Len(t, d.site.Record(d.conversation), 2)
	require.Contains(t, must("run", "watch", id), `"status":"goal_complete"`, "also after the end")

	shown := decode[map[string]json.RawMessage](t, must("run", "show", id))
	for _, part := range []string{"run", "state", "why", "ledger", "journal", "proof"} {
		require.NotEmpty(t, shown[part], part)
	}
	journal := decode[[]machine.Entry](t, string(shown["journal"]))
	file := filepath.Join(t.TempDir(), "journal.jsonl")
	must("run", "export", id, "--file", file)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	require.Len(t, lines, len(journal), "the exported journal is the one that the run kept")
	for i, line := range lines {
		entry := decode[exported](t, line)
		require.Equal(t, journal[i], entry.Entry)
	}
	_, err = steward("run", "stop", id, "--reason", "too late")
	require.Equal(t, exitRefused, exitCode(err))

	text, err := command(t.Context(), "", "--data-dir", d.dir, "run", "show", id)
	require.NoError(t, err)
	require.Contains(t, text, "**Status:** `goal_complete`")
	text, err = command(t.Context(), "", "--data-dir", d.dir, "run", "list", "--all")
	require.NoError(t, err)
	require.Contains(t, text, "goal_complete")
}
