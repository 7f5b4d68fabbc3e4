package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/activities/recovery/home"
	"steward/worker/embedded"
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
	scheduler := []string{"release", "list", "--data-dir", "{home}"}
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		scheduler = []string{"demo"}
	}
	p := map[string]any{
		"instance": "steward",
		"source":   map[string]any{"repository": h.repository, "revision": revision},
		"build":    map[string]any{"argv": []string{"sh", "build.sh"}, "output": "out", "env": []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOFLAGS"}},
		"gates": map[string]any{
			"type": command("version"), "architecture": command("version"), "architecture_sync": command("version"), "bootstrap": command("sites", "list"),
		},
		"canaries": map[string]any{
			"recovery_restart": check("worker", "ready", "--data-dir", "{home}"),
			"mcp":              check("run", "list", "--data-dir", "{home}"),
			"scheduler":        check(scheduler...),
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
	deadline := time.Now().Add(5 * time.Minute)
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
func (h *selfHosted) inTurn(t *testing.T, browser string) (client.WorkflowRun, string) {
	t.Helper()
	conversation := h.lab.ConversationURL(h.conversation(t, gated))
	id := conversation[strings.LastIndex(conversation, "/")+1:]
	in := h.input(id, browser, func(in map[string]any) {
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

// stray starts a browser worker with the claim of an incarnation, which recovery knows nothing of, and a run on it that waits for
// its first answer.
func (h *selfHosted) stray(t *testing.T, now home.Incarnation) (*exec.Cmd, client.WorkflowRun, string) {
	t.Helper()
	settings := fmt.Sprintf("sites_dir: %s\nbrowsers:\n  - {name: stray, site: chatlab}\n", h.sitesDir)
	own := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(own, "steward.yaml"), []byte(settings), 0o600))
	endpoint, err := embedded.ReadEndpoint(filepath.Join(h.data(), "server"))
	require.NoError(t, err)
	cmd := h.run(t, "worker", "--config", filepath.Join(own, "steward.yaml"), "--data-dir", own, "--roles", "browser",
		"--address", endpoint.Address, "--stop-timeout", "11s")
	cmd.Env = append(cmd.Env, home.EnvHome+"="+h.data(), home.EnvEpoch+"="+strconv.FormatUint(now.Epoch, 10), home.EnvRelease+"="+now.Release)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		terminate(cmd)
		if t.Failed() {
			t.Logf("stray worker:\n%s", said.String()[max(0, said.Len()-3000):])
		}
	})
	run, conversation := h.inTurn(t, "stray")
	return cmd, run, conversation
}

// compiled are builds of this very repository, each with a marker in its source.
func (h *selfHosted) compiled(t *testing.T) func(marker string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root, err := filepath.Abs("..")
	require.NoError(t, err)
	for _, top := range []string{"activities", "cmd", "config", "integration", "worker", "workflows", "go.mod", "go.sum"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				if entry != nil && entry.Name() == "node_modules" {
					return fs.SkipDir
				}
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil || strings.HasSuffix(name, "_test.go") || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			files[name] = string(data)
			return err
		}))
	}
	for _, name := range []string{"GOCACHE", "GOMODCACHE"} {
		out, err := exec.Command("go", "env", name).Output()
		require.NoError(t, err)
		t.Setenv(name, strings.TrimSpace(string(out))) // the home of the installation is another one
	}
	return func(marker string) map[string]string {
		all := maps.Clone(files)
		all["cmd/steward/marker.go"] = fmt.Sprintf("package main\n\nfunc init() { builtAs = %q }\n\nvar builtAs string\n", marker)
		all["build.sh"] = "set -e\ngo build -o out/bin/steward ./cmd/steward\n"
		return all
	}
}
