package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"

	"steward/activities/admission"
	"steward/activities/checks"
	"steward/bench/target"
	"steward/config/sites"
	"steward/worker"
	"steward/worker/embedded"
	"steward/workflows"
)

const (
	// host names this machine in the queues of checks.
	host = "bench"
	// simulated is the site and the login without a page.
	simulated = "simulated"
	// slots are how many observations a login may have open.
	slots = 20_000
)

// rig is one server of the real command, with data of its own, and what runs against it.
type rig struct {
	dir      string
	dataDir  string
	endpoint embedded.Endpoint
	client   client.Client
	server   *exec.Cmd
	stop     []func()
	log      io.Writer
	// reads are how many observations each login may have open.
	reads int
	// fail ends the measurement with its cause.
	fail context.CancelCauseFunc
}

// newRig starts a server and writes the profile of the simulated site.
func (b *bench) newRig(ctx context.Context, name string) (*rig, error) {
	r := &rig{dir: filepath.Join(b.dir, name), log: b.logs, reads: slots, fail: b.fail}
	r.dataDir = filepath.Join(r.dir, "data", "server")
	if err := os.MkdirAll(r.sites(), 0o700); err != nil {
		return nil, err
	}
	if err := r.profile(simulated, "http://127.0.0.1:1", ""); err != nil {
		return nil, err
	}
	r.server = exec.Command(b.steward, "server", "--data-dir", filepath.Join(r.dir, "data"), "--port", "0", "--ui-port", "-1", "--log-level", "error")
	if b.postgres != nil {
		address := *b.postgres
		address.Path = fmt.Sprintf("/bench_%s_%d", name, os.Getpid())
		r.server.Args = append(r.server.Args, "--postgres", address.String())
	}
	r.server.Env = append(os.Environ(), "HOME="+r.dir, "XDG_CONFIG_HOME="+filepath.Join(r.dir, "config"))
	r.server.Stderr = r.log
	if err := r.server.Start(); err != nil {
		return nil, fmt.Errorf("start the server (build it with `go tool task build`): %w", err)
	}
	gone := watch(r.server)
	r.stop = append(r.stop, func() { terminate(r.server, gone) })
	for deadline := time.Now().Add(time.Minute); ; {
		var err error
		select {
		case <-gone:
			r.close()
			return nil, errors.New("the server ended at once")
		default:
		}
		if r.endpoint, err = embedded.ReadEndpoint(r.dataDir); err == nil {
			r.client, err = dial(ctx, r.endpoint.Address, r.endpoint.Namespace)
		}
		if err == nil {
			r.stop = append(r.stop, r.client.Close)
			return r, nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			r.close()
			return nil, fmt.Errorf("the server does not answer: %w", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func dial(ctx context.Context, address, namespace string) (client.Client, error) {
	return client.DialContext(ctx, client.Options{HostPort: address, Namespace: namespace, Logger: sdklog.NewStructuredLogger(slog.Default())})
}

func (r *rig) sites() string { return filepath.Join(r.dir, "sites") }

// profile writes a site profile with the facts of the real site and without its pauses.
func (r *rig) profile(name, origin, extra string) error {
	text := fmt.Sprintf(`site: %s
extends: chatgpt
version: 1
origins: [%q]
headed: false
%stimings:
  send_gap: 0s
  min_interval: 0s
  hydrate: 0s
  look: 20ms
  look_max: 20ms
  pace: {heartbeat: 10s}
`, name, origin, extra)
	return os.WriteFile(filepath.Join(r.sites(), name+".yaml"), []byte(text), 0o600)
}

func (r *rig) close() {
	for _, f := range slices.Backward(r.stop) {
		f()
	}
}

// watch returns what is closed when a started process has ended.
func watch(cmd *exec.Cmd) <-chan struct{} {
	gone := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(gone)
	}()
	return gone
}

// terminate ends a process gently, then for certain, and waits for it.
func terminate(cmd *exec.Cmd, gone <-chan struct{}) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	<-gone
}

// serve runs something in this process until the rig is closed.
func (r *rig) serve(ctx context.Context, run func(context.Context, func() error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	done, started := make(chan error, 1), make(chan struct{})
	go func() {
		err := run(ctx, func() error { close(started); return nil })
		if ctx.Err() == nil {
			r.fail(fmt.Errorf("a worker ended: %w", err))
		}
		done <- err
	}()
	r.stop = append(r.stop, func() { cancel(); <-done })
	select {
	case err := <-done:
		done <- err
		return errors.Join(errors.New("a worker ended"), err)
	case <-started:
		return nil
	}
}

// decide runs the roles run and checks in this process.
func (r *rig) decide(ctx context.Context) error {
	return r.serve(ctx, func(ctx context.Context, started func() error) error {
		return decide(ctx, r.client, workerSpec{Namespace: r.endpoint.Namespace, Sites: r.sites(), Dir: r.dir}, started)
	})
}

func decide(ctx context.Context, c client.Client, spec workerSpec, started func() error) error {
	registry, err := sites.Load(spec.Sites)
	if err != nil {
		return err
	}
	checker, err := checks.New(checks.Options{
		Limits: checks.Limits{Roots: []string{spec.Dir}, AnyCommand: true}, Folder: filepath.Join(spec.Dir, "output"),
	})
	if err != nil {
		return err
	}
	return worker.Run(ctx, c, worker.Options{
		Namespace: spec.Namespace, Host: host, Roles: []worker.Role{worker.RoleRun, worker.RoleChecks},
		Admission: &admission.Admission{Client: c, Sites: registry, Host: host}, Checks: checker,
		StopTimeout: time.Second, Started: started, Log: slog.Default(),
	})
}

// browse serves one login in this process.
func (r *rig) browse(ctx context.Context, name string, b worker.BrowserActivities) error {
	return r.serve(ctx, func(ctx context.Context, started func() error) error {
		return worker.Run(ctx, r.client, worker.Options{
			Namespace: r.endpoint.Namespace, Host: host, Roles: []worker.Role{worker.RoleBrowser},
			Browsers:    map[string]worker.Browser{name: {Browser: b, ProfileDir: filepath.Join(r.dir, "profiles", name), ReadSlots: r.reads}},
			StopTimeout: time.Second, Started: started, Log: slog.Default(),
		})
	})
}

// start begins a run on the simulated site. It ends when an operator approves its DONE, and so stays open.
func (r *rig) start(ctx context.Context, conversation string, change ...func(map[string]any)) (client.WorkflowRun, error) {
	return r.client.ExecuteWorkflow(ctx, startOptions(simulated, conversation), workflows.TypeWorkflowRun,
		input(simulated, simulated, "http://127.0.0.1:1/c/"+conversation, change...))
}

// runID is the workflow id of the run of a conversation on the simulated site.
func runID(conversation string) string { return startOptions(simulated, conversation).ID }

func startOptions(site, conversation string) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: "run:" + site + ":" + conversation, TaskQueue: workflows.QueueRun}
}

func input(site, browser, url string, change ...func(map[string]any)) map[string]any {
	in := map[string]any{
		"objective":    "Make go test pass in the orders service. Keep its public API.",
		"target":       map[string]any{"site": site, "browser": browser, "conversation_url": url},
		"completion":   map[string]any{"operator_approval": true},
		"continuation": map[string]any{"max_rounds": 1000},
	}
	for _, c := range change {
		c(in)
	}
	return in
}

// workerEnv turns this program into a worker: a process that a measurement may kill.
const workerEnv = "STEWARD_BENCH_WORKER"

// workerSpec says what a worker process serves: WorkflowRun, or the baseline workflow.
type workerSpec struct {
	Address, Namespace string
	Sites, Dir         string
	Bare               bool
	// Ready is a file that is written once every queue is served.
	Ready string
}

func serveWorker(ctx context.Context, data []byte) error {
	var spec workerSpec
	if err := json.Unmarshal(data, &spec); err != nil {
		return err
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	sdkworker.SetStickyWorkflowCacheSize(stickyCache)
	c, err := dial(ctx, spec.Address, spec.Namespace)
	if err != nil {
		return err
	}
	defer c.Close()
	ready := func() error { return os.WriteFile(spec.Ready, nil, 0o600) }
	if spec.Bare {
		return serveBare(ctx, c, ready)
	}
	return decide(ctx, c, spec, ready)
}

// stickyCache is the default of worker.sticky_cache_size.
const stickyCache = 10_000

// process starts a worker process and waits until it serves. It is ended by what is returned, or with the rig.
func (r *rig) process(ctx context.Context, spec workerSpec) (cmd *exec.Cmd, end func(), err error) {
	spec.Address, spec.Namespace, spec.Sites, spec.Dir = r.endpoint.Address, r.endpoint.Namespace, r.sites(), r.dir
	spec.Ready = filepath.Join(r.dir, "ready-"+strconv.FormatInt(time.Now().UnixNano(), 36))
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command(self)
	cmd.Env = append(os.Environ(), workerEnv+"="+string(data))
	cmd.Stderr = r.log
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	gone := watch(cmd)
	end = func() { terminate(cmd, gone) }
	r.stop = append(r.stop, end)
	return cmd, end, poll(ctx, time.Minute, "the worker process serves", func() (bool, error) {
		_, err := os.Stat(spec.Ready)
		return err == nil, nil
	})
}

// poll waits for a condition.
func poll(ctx context.Context, limit time.Duration, what string, is func() (bool, error)) error {
	for deadline := time.Now().Add(limit); ; {
		ok, err := is()
		switch {
		case err != nil:
			return err
		case ok:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return fmt.Errorf("%v passed and it is not so that %s", limit, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// memory is the resident memory of a process in MB.
func memory(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.SplitSeq(string(data), "\n") {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024, err
		}
	}
	return 0, errors.New("the system does not tell the memory of a process")
}

// intervals are the times between the messages of a conversation in ms, without the first.
func intervals(messages []target.Message) (out []float64) {
	for i := 2; i < len(messages); i++ {
		out = append(out, millis(messages[i].At.Sub(messages[i-1].At)))
	}
	return out
}
