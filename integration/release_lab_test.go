package integration

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	_ "modernc.org/sqlite"

	"steward/activities/recovery/home"
	"steward/worker/embedded"
	"steward/workflows"
	release "steward/workflows/release/policy"
)

// releaseLab is a host of its own with a server, a recovery process and an HTTP service with a SQLite database.
type releaseLab struct {
	*testing.T
	dir              string
	port, second     int
	a                string // revision of the installed release
	server, recovery *exec.Cmd
	client           client.Client
	acknowledged     atomic.Int64
}

var fixtureService struct {
	once sync.Once
	path string
	err  error
}

// service is the fixture service, built once.
func serviceProgram(t *testing.T) string {
	t.Helper()
	f := &fixtureService
	f.once.Do(func() {
		f.path = filepath.Join(filepath.Dir(shared.dir), filepath.Base(shared.dir)+"-service")
		out, err := exec.Command("go", "build", "-o", f.path, "../activities/recovery/testdata/service").CombinedOutput()
		if err != nil {
			f.err = fmt.Errorf("%w: %s", err, out)
		}
		shared.stop = append(shared.stop, func() { os.Remove(f.path) })
	})
	require.NoError(t, f.err)
	return f.path
}

func newReleaseLab(t *testing.T) *releaseLab {
	t.Helper()
	start(t)
	l := &releaseLab{T: t, dir: t.TempDir(), port: freePort(t), second: freePort(t)}
	t.Cleanup(l.end)
	l.git("init", "--quiet")
	l.startServer()
	l.a = l.commit(map[string]any{"name": "A"})
	l.mustCommand("recovery", "install", "--plan", l.plan(l.a))
	l.startRecovery()
	return l
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (l *releaseLab) live() string       { return filepath.Join(l.dir, "live") }
func (l *releaseLab) candidate() string  { return filepath.Join(l.dir, "candidate") }
func (l *releaseLab) repository() string { return filepath.Join(l.dir, "repository") }
func (l *releaseLab) data() string       { return filepath.Join(l.dir, "data") }

func (l *releaseLab) cmd(args ...string) *exec.Cmd {
	cmd := exec.Command(binary, append(args, "--data-dir", l.data())...)
	cmd.Env = append(os.Environ(), "HOME="+l.dir, "XDG_CONFIG_HOME=", "XDG_DATA_HOME=")
	return cmd
}

// process starts a verb of the command that stays, and returns it.
func (l *releaseLab) process(args ...string) *exec.Cmd {
	l.Helper()
	cmd := l.cmd(args...)
	log, err := os.OpenFile(filepath.Join(l.dir, args[0]+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(l, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(l, cmd.Start())
	require.NoError(l, log.Close())
	return cmd
}

func (l *releaseLab) mustCommand(args ...string) {
	l.Helper()
	out, err := l.cmd(args...).CombinedOutput()
	require.NoError(l, err, "steward %s: %s", strings.Join(args, " "), out)
}

func (l *releaseLab) startServer() {
	l.Helper()
	began := time.Now()
	l.server = l.process("server", "--port", "0", "--ui-port", "-1")
	require.Eventually(l, func() bool {
		endpoint, err := embedded.ReadEndpoint(filepath.Join(l.data(), "server"))
		if err != nil || endpoint.StartedAt.Before(began) {
			return false
		}
		if l.client == nil {
			l.client, err = client.Dial(client.Options{HostPort: endpoint.Address, Namespace: endpoint.Namespace, Logger: quiet()})
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond, "the server does not answer")
}

func (l *releaseLab) startRecovery() {
	l.Helper()
	l.recovery = l.process("recovery", "--stop-timeout", "11s")
}

// end ends everything that the lab started.
func (l *releaseLab) end() {
	for _, cmd := range []*exec.Cmd{l.recovery, l.server} {
		terminate(cmd)
	}
	for _, dir := range []string{l.live(), l.candidate()} {
		if now, err := home.ReadIncarnation(dir); err == nil && now.Owner.Lives() {
			_ = syscall.Kill(-now.Owner.PID, syscall.SIGKILL)
		}
	}
	if l.client != nil {
		l.client.Close()
	}
	_ = exec.Command("chmod", "-R", "u+w", l.dir).Run()
	if l.Failed() {
		text, _ := os.ReadFile(filepath.Join(l.dir, "recovery.log"))
		l.Logf("steward recovery:\n%s", text[max(0, len(text)-5000):])
	}
}

func (l *releaseLab) git(args ...string) string {
	l.Helper()
	require.NoError(l, os.MkdirAll(l.repository(), 0o700))
	out, err := exec.Command("git", append([]string{"-C", l.repository(), "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...).CombinedOutput()
	require.NoError(l, err, string(out))
	return strings.TrimSpace(string(out))
}

// commit makes a revision whose build is the service with these settings. Each part of it takes long enough to be seen.
func (l *releaseLab) commit(settings map[string]any) string {
	l.Helper()
	data, err := json.Marshal(settings)
	require.NoError(l, err)
	program := serviceProgram(l.T)
	require.NoError(l, os.MkdirAll(l.repository(), 0o700))
	build := "set -e\nsleep 0.3\nmkdir out\ncp " + program + " out/service\ncp service.json out/\nprintf '#!/bin/sh\\nsleep 0.1\\n' >out/passes\nchmod +x out/passes\n"
	for name, text := range map[string]string{"service.json": string(data), "build.sh": build} {
		require.NoError(l, os.WriteFile(filepath.Join(l.repository(), name), []byte(text), 0o600))
	}
	l.git("add", "--all")
	l.git("commit", "--quiet", "--message", "a revision")
	return l.git("rev-parse", "HEAD")
}

// plan writes the plan of a revision and returns its file.
func (l *releaseLab) plan(revision string, change ...func(map[string]any)) string {
	l.Helper()
	passes := map[string]any{"argv": []string{"passes"}}
	check := map[string]any{"command": passes}
	probe := func(path string) map[string]any {
		return map[string]any{"http": map[string]any{"url": "http://127.0.0.1:{port}" + path}}
	}
	p := map[string]any{
		"instance": "shop",
		"source":   map[string]any{"repository": l.repository(), "revision": revision},
		"build":    map[string]any{"argv": []string{"sh", "build.sh"}, "output": "out"},
		"gates":    map[string]any{"type": passes, "architecture": passes, "architecture_sync": passes, "bootstrap": passes},
		"canaries": map[string]any{"recovery_restart": check, "mcp": probe("/identity"), "scheduler": check, "supervisor": check, "controller": check},
		"service": map[string]any{
			"label": "shop", "argv": []string{"service", "{port}", "{database}", "{release}/service.json"}, "home": l.live(), "port": l.port,
			"ready": probe("/ready"), "verify": []any{probe("/verify")}, "database": map[string]any{"file": "data.db", "backward_compatible": true},
			"token_file": "token", "start_timeout": "10s", "stop_timeout": "5s",
		},
		"candidate": map[string]any{"home": l.candidate(), "port": l.second, "label": "shop-candidate"},
		"soak": map[string]any{
			"time": "1s", "look_every": "1s",
			"performance": map[string]any{"warm_up": "0s", "windows": 2, "window": "300ms", "max_mean_cpu": 6400, "max_p95_cpu": 6400},
			"live_proof":  map[string]any{"kind": "command", "command": passes},
		},
	}
	for _, c := range change {
		c(p)
	}
	data, err := json.Marshal(p)
	require.NoError(l, err)
	file := filepath.Join(l.dir, "plan.json")
	require.NoError(l, os.WriteFile(file, data, 0o600))
	return file
}

// state is the session's state; false while nobody answers.
func (l *releaseLab) state(patience time.Duration) (state release.State, ok bool) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, err := l.client.QueryWorkflow(ctx, "release:shop", "", workflows.QueryState)
	return state, err == nil && answer.Get(&state) == nil
}

// reached waits until the session is in the phase, or past it.
func (l *releaseLab) reached(phase release.Phase) release.Phase {
	l.Helper()
	rank := func(p release.Phase) int {
		for i, one := range release.Order {
			if one == p {
				return i
			}
		}
		return len(release.Order)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if state, ok := l.state(5 * time.Second); ok && rank(state.Phase) >= rank(phase) {
			return state.Phase
		}
	}
	l.Fatalf("the session does not come to %s", phase)
	return ""
}

// ended waits for the end of the session and returns it.
func (l *releaseLab) ended(longest time.Duration) (release.State, enums.WorkflowExecutionStatus) {
	l.Helper()
	for deadline := time.Now().Add(longest); ; time.Sleep(100 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		described, err := l.client.DescribeWorkflowExecution(ctx, "release:shop", "")
		cancel()
		if status := described.GetWorkflowExecutionInfo().GetStatus(); err == nil && status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
			if state, ok := l.state(10 * time.Second); ok {
				return state, status
			}
		}
		if time.Now().After(deadline) {
			state, _ := l.state(5 * time.Second)
			why, _ := json.MarshalIndent(state.Explain(), "", " ")
			l.Fatalf("the session has not ended after %v:\n%s", longest, why)
		}
	}
}

// writeRows writes rows all the time and counts what the service acknowledged, until the function is called.
func (l *releaseLab) writeRows() func() {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if l.write() == nil {
				l.acknowledged.Add(1)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	stop := sync.OnceFunc(func() { cancel(); done.Wait() })
	l.Cleanup(stop)
	return stop
}

var impatient = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (l *releaseLab) write() error {
	answer, err := impatient.Post(fmt.Sprintf("http://127.0.0.1:%d/rows", l.port), "", nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

type serving struct {
	Name, Release string
	Epoch         uint64
	PID           int
}

// serving is who answers on the live port.
func (l *releaseLab) serving() (who serving, err error) {
	answer, err := impatient.Get(fmt.Sprintf("http://127.0.0.1:%d/identity", l.port))
	if err != nil {
		return who, err
	}
	defer answer.Body.Close()
	return who, json.NewDecoder(answer.Body).Decode(&who)
}

func (l *releaseLab) rows() int {
	l.Helper()
	db, err := sql.Open("sqlite", filepath.Join(l.live(), "data.db"))
	require.NoError(l, err)
	defer db.Close()
	var n int
	require.NoError(l, db.QueryRow("SELECT count(*) FROM rows").Scan(&n))
	return n
}

// owners are the processes that work in a folder.
func owners(t *testing.T, dir string) (pids []string) {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	require.NoError(t, err)
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == dir {
			pids = append(pids, filepath.Base(filepath.Dir(link)))
		}
	}
	return pids
}
