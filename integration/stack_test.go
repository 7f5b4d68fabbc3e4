package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/activities"
	"steward/activities/admission"
	"steward/activities/browser"
	"steward/activities/checks"
	"steward/config/sites"
	"steward/integration/chatlab"
	"steward/integration/chatpages"
	"steward/worker"
	"steward/worker/embedded"
	"steward/workflows"
	"steward/workflows/run/policy"
)

// stack is what the tests share: one server process, one chat site, one worker that decides and checks. Browsers are
// processes of their own, one per test.
type stack struct {
	dir      string
	endpoint embedded.Endpoint
	client   client.Client
	lab      *chatlab.Server
	pages    map[string]*chatlab.Server // behind the interfaces of chatpages, by site
	sitesDir string
	logins   map[string]*browser.Browser // in this process
	stop     []func()
}

var (
	shared     *stack
	sharedErr  error
	sharedOnce sync.Once
)

func start(t *testing.T) *stack {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server and a browser")
	}
	sharedOnce.Do(func() { shared, sharedErr = newStack() })
	require.NoError(t, sharedErr)
	return shared
}

func stopShared() {
	if shared != nil {
		shared.close()
	}
}

func (s *stack) close() {
	for _, v := range slices.Backward(s.stop) {
		v()
	}
}

func newStack() (*stack, error) {
	s, err := newSite()
	if err != nil {
		return s, err
	}
	if err := s.servePages(); err != nil {
		return s, err
	}
	server := s.command("server", "--data-dir", s.serverData(), "--port", "0", "--ui-port", "-1")
	s.stop = append(s.stop, server.end)
	if err := server.start(); err != nil {
		return s, err
	}
	if err := s.dial(); err != nil {
		return s, err
	}
	return s, s.decide()
}

// newSite starts the chat site of a stack, which has no server yet.
func newSite() (*stack, error) {
	dir, err := os.MkdirTemp("", "steward-stack-")
	if err != nil {
		return nil, err
	}
	s := &stack{dir: dir, sitesDir: filepath.Join(dir, "sites"), pages: map[string]*chatlab.Server{}, logins: map[string]*browser.Browser{}}
	s.stop = append(s.stop, func() { os.RemoveAll(dir) })
	if s.lab, err = chatlab.Start(chatlab.Options{Dir: dir, Speed: 2}); err != nil {
		return s, err
	}
	s.stop = append(s.stop, func() { _ = s.lab.Close() })
	return s, writeSite(s.sitesDir, s.lab.URL())
}

// servePages starts a site behind each interface of chatpages.
func (s *stack) servePages() error {
	for _, name := range chatpages.Names() {
		ui, err := chatpages.UI(name)
		if err != nil {
			return err
		}
		site, err := chatlab.Start(chatlab.Options{Dir: s.dir, Speed: 2, UI: ui})
		if err != nil {
			return err
		}
		s.stop = append(s.stop, func() { _ = site.Close() })
		s.pages[name] = site
		if err := writeProfile(s.sitesDir, name, name, site.URL(), "settle: {stable: 600ms, extra: 1s}"); err != nil {
			return err
		}
	}
	return nil
}

// writeSite points a profile with the facts of the real site to the fixture site, without its waits.
func writeSite(dir, origin string) error { return writeProfile(dir, "chatlab", "chatgpt", origin, "") }

// writeProfile writes the profile of a site that is served for the tests, with more keys of its own.
func writeProfile(dir, name, base, origin, more string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	profile := fmt.Sprintf(`site: %s
extends: %s
version: 1
origins: [%q]
headed: false
timings:
  send_gap: 0s
  min_interval: 0s
  look: 100ms
  look_max: 500ms
  open: 15s
  commit: 10s
  pace:
    retry: 100ms
    defer: 300ms
    reconcile: [100ms, 300ms, 500ms, 1s]
    unclear: [200ms, 200ms, 200ms]
    heartbeat: 3s
%s
`, name, base, origin, more)
	return os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(profile), 0o600)
}

func quiet() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// decide runs the roles run and checks in this process.
func (s *stack) decide() error {
	registry, err := sites.Load(s.sitesDir)
	if err != nil {
		return err
	}
	checker, err := checks.New(checks.Options{
		Limits: checks.Limits{Roots: []string{s.dir}, AnyCommand: true}, Folder: filepath.Join(s.dir, "output"), Worker: activities.Worker{Host: "test"},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		defer close(done)
		failed <- worker.Run(ctx, s.client, worker.Options{
			Namespace: s.endpoint.Namespace, Host: "test", Roles: []worker.Role{worker.RoleRun, worker.RoleChecks},
			Admission: &admission.Admission{Client: s.client, Sites: registry, Host: "test"},
			Checks:    checker, Log: quiet(), StopTimeout: time.Second,
		})
	}()
	s.stop = append(s.stop, func() { cancel(); <-done })
	select {
	case err := <-failed:
		return err
	case <-time.After(200 * time.Millisecond):
		return nil
	}
}

// fault says where a browser worker hits itself, and how.
type fault struct {
	point  string
	signal syscall.Signal
}

// browserProcess is a browser worker that a test owns.
type browserProcess struct {
	spec workerSpec
	cmd  *exec.Cmd
}

// browserWorker starts the worker of one login; name must be unique among all tests.
func (s *stack) browserWorker(t *testing.T, name string, f fault) *browserProcess {
	t.Helper()
	p := &browserProcess{spec: workerSpec{
		Address: s.endpoint.Address, Namespace: s.endpoint.Namespace, Name: name, SitesDir: s.sitesDir,
		ProfileDir: filepath.Join(s.dir, "profiles", name), Point: f.point, Signal: int(f.signal), Hit: filepath.Join(t.TempDir(), "hit"),
	}}
	p.start(t)
	t.Cleanup(func() { terminate(p.cmd) })
	return p
}

func (p *browserProcess) start(t *testing.T) {
	t.Helper()
	data, err := json.Marshal(p.spec)
	require.NoError(t, err)
	log, err := os.OpenFile(filepath.Join(filepath.Dir(p.spec.Hit), "worker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	p.cmd = exec.Command(os.Args[0])
	p.cmd.Env = append(os.Environ(), workerEnv+"="+string(data))
	p.cmd.Stdout, p.cmd.Stderr = log, log
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = log.Close()
		if t.Failed() {
			if text, err := os.ReadFile(log.Name()); err == nil {
				t.Logf("browser worker %s:\n%s", p.spec.Name, text[max(0, len(text)-8000):])
			}
		}
	})
}

// hit waits until the process has hit itself.
func (p *browserProcess) hit(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { _, err := os.Stat(p.spec.Hit); return err == nil }, 40*time.Second, 20*time.Millisecond,
		"the worker never came to %s", p.spec.Point)
}

// terminate ends a process gently, then for certain, and waits for it.
func terminate(cmd *exec.Cmd) {
	if cmd == nil || cmd.Process == nil || cmd.ProcessState != nil {
		return
	}
	_ = cmd.Process.Signal(syscall.SIGCONT)
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	_ = cmd.Wait()
}

// conversation makes one on the chat site, with this script.
func (s *stack) conversation(t *testing.T, scenario string) string {
	t.Helper()
	sc, err := chatlab.ParseScenario([]byte(scenario))
	require.NoError(t, err)
	id, err := s.lab.NewConversation(chatlab.Conversation{Scenario: sc, History: []chatlab.Message{{Role: "user", Text: "Hello"}, {Role: "assistant", Text: "Hi."}}})
	require.NoError(t, err)
	return id
}

// input is a start input; change may adapt it.
func (s *stack) input(conversation, browser string, change ...func(map[string]any)) map[string]any {
	in := map[string]any{
		"objective":  "Make the report say all green.",
		"target":     map[string]any{"site": "chatlab", "browser": browser, "conversation_url": s.lab.ConversationURL(conversation)},
		"completion": map[string]any{"checks": []any{map[string]any{"name": "true", "command": map[string]any{"argv": []string{"true"}, "dir": s.dir}}}},
	}
	for _, c := range change {
		c(in)
	}
	return in
}

func (s *stack) start(t *testing.T, conversation string, in map[string]any) client.WorkflowRun {
	t.Helper()
	run, err := s.client.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{
		ID: "run:chatlab:" + conversation, TaskQueue: workflows.QueueRun,
	}, workflows.TypeWorkflowRun, in)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.client.TerminateWorkflow(ctx, run.GetID(), "", "the test is over")
	})
	return run
}

// result waits for the end of a run that ends with a result.
func (s *stack) result(t *testing.T, run client.WorkflowRun) policy.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var state policy.State
	if err := run.Get(ctx, &state); err != nil {
		state = s.state(t, run.GetID())
		why, _ := json.MarshalIndent(state.Explain(), "", " ")
		t.Fatalf("run %s: %v\n%s", run.GetID(), err, why)
	}
	return state
}

// state is what the state query answers.
func (s *stack) state(t *testing.T, id string) policy.State {
	t.Helper()
	var state policy.State
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		answer, err := s.client.QueryWorkflow(ctx, id, "", workflows.QueryState)
		return err == nil && answer.Get(&state) == nil
	}, 30*time.Second, 100*time.Millisecond, "the run does not answer")
	return state
}

// until waits for a state.
func (s *stack) until(t *testing.T, id, what string, is func(policy.State) bool) policy.State {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		state := s.state(t, id)
		if is(state) {
			return state
		}
		if time.Now().After(deadline) {
			why, _ := json.MarshalIndent(state.Explain(), "", " ")
			t.Fatalf("run %s is not %s:\n%s", id, what, why)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// marked are the user messages that carry an effect's marker.
func (s *stack) marked(conversation, effect string) int {
	n := 0
	for _, r := range s.lab.Record(conversation) {
		if strings.Contains(r.Text, effect) {
			n++
		}
	}
	return n
}
