package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/activities/recovery/home"
	"steward/workflows"
	release "steward/workflows/release/policy"
	"steward/workflows/run/policy"
)

// selfHosted is a Steward that releases itself: a server, a recovery process, and a worker that is the service of the instance
// "steward". The releases come from a repository of the test.
type selfHosted struct {
	*stack
	*installation
	repository string
	acceptance string
	server     *exec.Cmd
	recovery   *exec.Cmd
}

// acceptanceScript lets three acceptance runs come by.
const acceptanceScript = `
replies:
` + threeTurns + threeTurns + threeTurns

const threeTurns = `
  - - text: '{{receipt "CONTINUE" "one" "two more"}}'
  - - text: '{{receipt "CONTINUE" "two" "one more"}}'
  - - text: '{{receipt "DONE" "three" "nothing is left" (list "proof")}}'
`

func (s *stack) selfHost(t *testing.T) *selfHosted {
	t.Helper()
	h := &selfHosted{stack: s, installation: s.install(t), repository: t.TempDir()}
	own := *s
	h.stack = &own
	h.acceptance = s.lab.ConversationURL(s.conversation(t, acceptanceScript))
	h.git(t, "init", "--quiet")
	h.server = h.process(t, "server")
	own.client = h.installation.client(t)
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+w", h.data()).Run() // stored releases are read-only
	})
	t.Cleanup(func() { h.endService(t) })
	return h
}

// process starts a long-running verb of the command.
func (h *selfHosted) process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := h.run(t, args...)
	log, err := os.OpenFile(filepath.Join(h.home, args[0]+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		terminate(cmd)
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("steward %s:\n%s", args[0], text[max(0, len(text)-4000):])
		}
	})
	return cmd
}

// endService stops the worker that recovery started: it outlives the recovery process.
func (h *selfHosted) endService(t *testing.T) {
	for _, dir := range []string{h.data(), h.candidate()} {
		now, err := home.ReadIncarnation(dir)
		if err != nil || !now.Owner.Lives() {
			continue
		}
		_ = syscall.Kill(now.Owner.PID, syscall.SIGCONT)
		_ = syscall.Kill(-now.Owner.PID, syscall.SIGKILL)
	}
	if t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(h.data(), "recovery/logs/*.log"))
		for _, file := range logs {
			text, _ := os.ReadFile(file)
			t.Logf("%s:\n%s", filepath.Base(file), text[max(0, len(text)-4000):])
		}
	}
}

func (h *selfHosted) candidate() string { return filepath.Join(h.home, "candidate") }

func (h *selfHosted) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", h.repository, "-c", "user.name=test", "-c", "user.email=test@localhost"}, args...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.TrimSpace(string(out))
}

// commit makes a revision: files by name, with build.sh as the build.
func (h *selfHosted) commit(t *testing.T, files map[string]string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(h.repository, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
	}
	h.git(t, "add", "--all")
	h.git(t, "commit", "--quiet", "--message", "a revision")
	return h.git(t, "rev-parse", "HEAD")
}

// copied is a build that copies the tested binary beside the marker that tells it from others.
func copied(marker string) map[string]string {
	return map[string]string{
		"MARKER":   marker,
		"build.sh": "set -e\nmkdir -p out/bin\ncp " + binary + " out/bin/steward\ncp MARKER out/\n",
	}
}

// onlyAsCandidate is a build whose worker runs in the candidate's lane and in no other.
func onlyAsCandidate() map[string]string {
	files := copied("broken")
	files["start"] = "#!/bin/sh\n[ -e \"$STEWARD_SERVICE_HOME/steward-candidate.json\" ] || { echo broken on purpose >&2; exit 1; }\n" +
		"exec \"$(dirname \"$0\")/steward\" \"$@\"\n"
	files["build.sh"] += "cp start out/bin/start\nchmod +x out/bin/start\n"
	return files
}

// plan is a release plan of Steward for Steward. change may adapt it.
func (h *selfHosted) plan(t *testing.T, revision string, change ...func(map[string]any)) string {
	t.Helper()
	command := func(args ...string) map[string]any {
		return map[string]any{"argv": append([]string{"bin/steward"}, args...), "env": []string{"PLAYWRIGHT_DRIVER_PATH"}}
	}
	check := func(args ...string) map[string]any { return map[string]any{"command": command(args...)} }
	p := map[string]any{
		"instance": "steward",
		"source":   map[string]any{"repository": h.repository, "revision": revision},
		"build":    map[string]any{"argv": []string{"sh", "build.sh"}, "output": "out"},
		"gates": map[string]any{
			"type": command("version"), "architecture": command("version"), "architecture_sync": command("version"), "bootstrap": command("sites", "list"),
		},
		"canaries": map[string]any{
			"recovery_restart": check("worker", "ready", "--data-dir", "{home}"),
			"mcp":              check("run", "list", "--data-dir", "{home}"),
			"scheduler":        check("release", "list", "--data-dir", "{home}"),
			"supervisor":       check("replay", "--open", "--data-dir", h.data()),
			"controller":       check("run", "list", "--data-dir", "{home}"),
		},
		"service": map[string]any{
			"label": "steward-worker", "argv": []string{"bin/steward", "worker", "--data-dir", "{home}", "--stop-timeout", "11s"}, "home": h.data(),
			"env": []string{"PLAYWRIGHT_DRIVER_PATH"}, "ready": check("worker", "ready", "--data-dir", "{home}"),
			"start_timeout": "30s", "stop_timeout": "15s",
		},
		"candidate": map[string]any{"home": h.candidate(), "label": "steward-candidate"},
		"soak": map[string]any{
			"time": "1s", "look_every": "1s",
			"performance": map[string]any{"warm_up": "0s", "windows": 1, "window": "1s", "max_mean_cpu": 6400, "max_p95_cpu": 6400},
			"live_proof": map[string]any{"kind": "steward", "steward": map[string]any{
				"site": "chatlab", "browser": "home", "conversation_url": h.acceptance,
			}},
		},
	}
	for _, c := range change {
		c(p)
	}
	file := filepath.Join(h.home, "plan-"+revision[:12]+".json")
	data, err := json.Marshal(p)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

// command runs a verb to its end.
func (h *selfHosted) command(t *testing.T, args ...string) string {
	t.Helper()
	cmd := h.run(t, args...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "steward %s: %s", strings.Join(args, " "), out)
	return string(out)
}

// owner is who owns the home of the live worker.
func (h *selfHosted) owner(t *testing.T) home.Incarnation {
	t.Helper()
	now, err := home.ReadIncarnation(h.data())
	require.NoError(t, err)
	return now
}

// session is the state of the session of the instance.
func (h *selfHosted) session(t *testing.T) release.State {
	t.Helper()
	var state release.State
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		answer, err := h.stack.client.QueryWorkflow(ctx, "release:steward", "", workflows.QueryState)
		return err == nil && answer.Get(&state) == nil
	}, time.Minute, 100*time.Millisecond, "the session does not answer")
	return state
}

// phase waits until the session shows a phase.
func (h *selfHosted) phase(t *testing.T, want string) release.State {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for {
		state := h.session(t)
		if state.Shown() == want {
			if state.End != nil {
				h.ended(t)
			}
			return state
		}
		if state.End != nil && state.End.Code != "" || time.Now().After(deadline) {
			why, _ := json.MarshalIndent(state, "", " ")
			t.Fatalf("the session is %s, not %s:\n%s", state.Shown(), want, why)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// ended waits until the session is closed, so that the next one may start.
func (h *selfHosted) ended(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	require.NoError(t, h.stack.client.GetWorkflow(ctx, "release:steward", "").Get(ctx, nil))
}

// inTurn starts a run on the self-hosted Steward and waits until the assistant works on its first message.
func (h *selfHosted) inTurn(t *testing.T) (client.WorkflowRun, string) {
	t.Helper()
	conversation := h.lab.ConversationURL(h.conversation(t, gated))
	id := conversation[strings.LastIndex(conversation, "/")+1:]
	in := h.input(id, "home", func(in map[string]any) {
		in["completion"] = map[string]any{"checks": []any{map[string]any{"name": "true", "command": map[string]any{"argv": []string{"true"}, "dir": h.home}}}}
	})
	run := h.stack.start(t, id, in)
	h.until(t, run.GetID(), "waiting for its first answer", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	return run, id
}

// finished proves that a run ended well with one message per turn, and tells which releases and incarnations sent.
func (h *selfHosted) finished(t *testing.T, run client.WorkflowRun, conversation string) []policy.LedgerTurn {
	t.Helper()
	state := h.result(t, run)
	require.Equal(t, policy.GoalComplete, state.Status)
	require.Len(t, h.lab.Record(conversation), state.Turns)
	for _, turn := range state.Ledger {
		require.Equal(t, 1, h.marked(conversation, turn.Effect))
	}
	return state.Chain()
}

func TestSelfHosting(t *testing.T) {
	h := start(t).selfHost(t)
	began := time.Now()
	lap := func(what string) { t.Logf("%6.1fs  %s", time.Since(began).Seconds(), what) }

	h.command(t, "recovery", "install", "--plan", h.plan(t, h.commit(t, copied("A"))))
	a := h.owner(t)
	h.recovery = h.process(t, "recovery")
	lap("A is installed")

	// A run in progress on A goes on with B.
	open, conversation := h.inTurn(t)
	h.command(t, "release", "start", "--plan", h.plan(t, h.commit(t, copied("B"))))
	lap("B is started")
	h.phase(t, "soaking")
	b := h.owner(t)
	require.NotEqual(t, a.Release, b.Release)
	require.Greater(t, b.Epoch, a.Epoch)
	require.False(t, a.Owner.Lives(), "A is gone")
	lap("B soaks")
	require.NoError(t, h.lab.Release(conversation, "go"))
	ledger := h.finished(t, open, conversation)
	require.Equal(t, []string{a.Release, b.Release}, []string{ledger[0].Release, ledger[1].Release})
	lap("the run of A ended on B")
	good := h.phase(t, "known_good")
	proof := good.Soak.Proof
	require.True(t, proof.Passed)
	require.Len(t, proof.Turns, 3)
	require.Less(t, proof.Turns[0].Incarnation, proof.Turns[2].Incarnation)
	require.Equal(t, b.Release, good.Release)
	lap(fmt.Sprintf("B is known-good; outage %d ms, latency %d ms", good.Switch.OutageMillis, proof.LatencyMillis))

	// A broken C is rolled back to B.
	broken := h.commit(t, onlyAsCandidate())
	h.command(t, "release", "start", "--plan", h.plan(t, broken, func(p map[string]any) {
		service := maps.Clone(p["service"].(map[string]any))
		service["argv"] = append([]string{"bin/start"}, service["argv"].([]string)[1:]...)
		p["service"] = service
	}))
	back := h.phase(t, "rolled_back")
	require.Equal(t, b.Release, h.owner(t).Release)
	lap("C is rolled back: " + back.End.Code)

	// A rollback in soak hands the open runs back.
	h.command(t, "release", "start", "--plan", h.plan(t, h.commit(t, copied("D"))))
	d := h.phase(t, "soaking")
	require.Equal(t, d.Release, h.owner(t).Release)
	open, conversation = h.inTurn(t)
	h.command(t, "release", "abort", "steward", "--reason", "the test says so")
	h.phase(t, "rolled_back")
	require.Equal(t, b.Release, h.owner(t).Release)
	require.NoError(t, h.lab.Release(conversation, "go"))
	ledger = h.finished(t, open, conversation)
	require.Equal(t, []string{d.Release, b.Release}, []string{ledger[0].Release, ledger[1].Release})
	lap("D went back in soak, B ended the run")
}
