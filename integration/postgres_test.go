package integration

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"steward/activities/browser"
	"steward/bench/target"
	"steward/integration/chatlab"
	"steward/worker"
	"steward/worker/embedded"
	"steward/worker/embedded/pgtest"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run/policy"
)

// simulatedEnv turns this test binary into a browser worker of the simulated site.
const simulatedEnv = "STEWARD_TEST_SIMULATED_WORKER"

type simulatedSpec struct{ Address, Namespace, Site string }

func simulatedWorker(data []byte) error {
	var spec simulatedSpec
	if err := json.Unmarshal(data, &spec); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	c, err := client.Dial(client.Options{HostPort: spec.Address, Namespace: spec.Namespace, Logger: quiet()})
	if err != nil {
		return err
	}
	defer c.Close()
	return worker.Run(ctx, c, worker.Options{
		Namespace: spec.Namespace, Host: "test", Roles: []worker.Role{worker.RoleBrowser}, StopTimeout: time.Second, Log: slog.Default(),
		Browsers: map[string]worker.Browser{"simulated": {
			Browser: &target.Browser{Site: target.Remote(spec.Site), Armer: browser.NewArmer(c)}, ProfileDir: "simulated",
		}},
	})
}

// kept is a process that is started again whenever it ends, until it is released.
type kept struct {
	make func() *exec.Cmd
	mu   sync.Mutex
	cmd  *exec.Cmd
	over bool
	done chan struct{}
}

func keep(t *testing.T, build func() *exec.Cmd) *kept {
	t.Helper()
	k := &kept{make: build, done: make(chan struct{})}
	go k.run()
	t.Cleanup(k.release)
	return k
}

func (k *kept) run() {
	defer close(k.done)
	for {
		k.mu.Lock()
		if k.over {
			k.mu.Unlock()
			return
		}
		k.cmd = k.make()
		err := k.cmd.Start()
		k.mu.Unlock()
		if err == nil {
			_ = k.cmd.Wait()
		}
		time.Sleep(200 * time.Millisecond) // a process that ends at once must not be started without a pause
	}
}

// signal reaches the process that runs now.
func (k *kept) signal(s os.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cmd != nil && k.cmd.Process != nil {
		_ = k.cmd.Process.Signal(s)
	}
}

func (k *kept) release() {
	k.mu.Lock()
	k.over = true
	k.mu.Unlock()
	k.signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { k.signal(syscall.SIGKILL) })
	defer kill.Stop()
	<-k.done
}

// crowd is an installation of many processes on PostgreSQL, with two sites.
type crowd struct {
	*stack
	site    *target.Site
	log     *os.File
	server  *kept
	workers []*kept
}

func newCrowd(t *testing.T) *crowd {
	t.Helper()
	address := pgtest.Start(t, "steward")
	dir := t.TempDir()
	c := &crowd{stack: &stack{dir: dir, sitesDir: filepath.Join(dir, "sites")}, site: target.NewSite()}
	var err error
	c.log, err = os.Create(filepath.Join(dir, "processes.log"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.log.Close() })
	c.lab, err = chatlab.Start(chatlab.Options{Dir: dir, Speed: 2})
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.lab.Close() })
	require.NoError(t, writeSite(c.sitesDir, c.lab.URL()))
	profile, err := os.ReadFile(filepath.Join(c.sitesDir, "chatlab.yaml"))
	require.NoError(t, err)
	simulated := strings.NewReplacer("site: chatlab", "site: simulated", c.lab.URL(), "http://127.0.0.1:1").Replace(string(profile))
	require.NoError(t, os.WriteFile(filepath.Join(c.sitesDir, "simulated.yaml"), []byte(simulated), 0o600))
	siteURL, err := c.site.Serve(t.Context())
	require.NoError(t, err)

	c.server = keep(t, c.command("PGPASSWORD="+pgtest.Password, "server", "--postgres", address, "--port", "0", "--ui-port", "-1"))
	c.connect(t)
	for range 3 {
		c.workers = append(c.workers, keep(t, c.command("STEWARD_WORKER_HOST=test", "worker", "--roles", "run,checks", "--sites-dir", c.sitesDir)))
	}
	spec := workerSpec{Address: c.endpoint.Address, Namespace: c.endpoint.Namespace, Name: "chatlab", SitesDir: c.sitesDir, ProfileDir: filepath.Join(dir, "profile")}
	c.workers = append(c.workers,
		keep(t, c.self(t, simulatedEnv, simulatedSpec{c.endpoint.Address, c.endpoint.Namespace, siteURL})), keep(t, c.self(t, workerEnv, spec)))
	return c
}

// command makes processes of the real command.
func (c *crowd) command(env string, args ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(binary, append(args, "--data-dir", filepath.Join(c.dir, "data"), "--log-level", "warn")...)
		cmd.Env = append(os.Environ(), "HOME="+c.dir, "XDG_CONFIG_HOME="+filepath.Join(c.dir, "config"), env)
		cmd.Stdout, cmd.Stderr = c.log, c.log
		return cmd
	}
}

// self makes processes of this test binary.
func (c *crowd) self(t *testing.T, env string, spec any) func() *exec.Cmd {
	t.Helper()
	data, err := json.Marshal(spec)
	require.NoError(t, err)
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), env+"="+string(data))
		cmd.Stdout, cmd.Stderr = c.log, c.log
		return cmd
	}
}

func (c *crowd) connect(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		if c.endpoint, err = embedded.ReadEndpoint(filepath.Join(c.dir, "data", "server")); err == nil {
			c.client, err = client.Dial(client.Options{HostPort: c.endpoint.Address, Namespace: c.endpoint.Namespace, Logger: quiet()})
		}
		return err == nil
	}, time.Minute, 50*time.Millisecond, "the server does not answer")
	t.Cleanup(c.client.Close)
}

// begin starts runs on both sites and returns the conversation of each by workflow id.
func (c *crowd) begin(t *testing.T, simulated, real, turns int) map[string]string {
	t.Helper()
	runs := map[string]string{}
	start := func(id string, in map[string]any) {
		require.Eventually(t, func() bool {
			_, err := c.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueRun}, workflows.TypeWorkflowRun, in)
			return err == nil
		}, time.Minute, 100*time.Millisecond)
	}
	for range simulated {
		conversation := target.Conversation(turns)
		in := c.input(conversation, "simulated")
		in["target"] = map[string]any{"site": "simulated", "browser": "simulated", "conversation_url": "http://127.0.0.1:1/c/" + conversation}
		runs["run:simulated:"+conversation] = conversation
		start("run:simulated:"+conversation, in)
	}
	for range real {
		conversation := c.conversation(t, "replies:\n  - - text: '{{receipt \"CONTINUE\" \"one\" \"more to do\"}}'\n"+done)
		runs["run:chatlab:"+conversation] = conversation
		start("run:chatlab:"+conversation, c.input(conversation, "chatlab"))
	}
	return runs
}

// received are the effects that a conversation's site received, in order.
func (c *crowd) received(t *testing.T, id, conversation string) (effects []string) {
	t.Helper()
	if strings.HasPrefix(id, "run:chatlab:") {
		for _, r := range c.lab.Record(conversation) {
			effects = append(effects, r.EffectID)
		}
		return effects
	}
	messages, err := c.site.Sent(t.Context(), conversation)
	require.NoError(t, err)
	for _, m := range messages {
		effects = append(effects, m.Effect)
	}
	return effects
}

// operate does what a person has to: say of a send of unknown outcome what the site really received, and let a run go on whose
// worker was killed too often before it armed. It returns whether the run has ended.
func (c *crowd) operate(t *testing.T, id, conversation string, asked *int) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	described, err := c.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return false // the server is being restarted
	}
	if described.WorkflowExecutionInfo.Status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return true
	}
	if p := described.WorkflowExecutionInfo.SearchAttributes.GetIndexedFields()[workflows.AttributeBlocker.GetName()]; p == nil {
		return false
	}
	var s policy.State
	answer, err := c.client.QueryWorkflow(ctx, id, "", workflows.QueryState)
	if err != nil || answer.Get(&s) != nil || s.Blocker == nil {
		return false
	}
	var word string
	payload := map[string]any{"operator": "test"}
	switch s.Blocker.Class {
	case policy.BlockedUnknown:
		word = workflows.MessageNotApplied
		if slices.Contains(c.received(t, id, conversation), s.Effect.ID) {
			word = workflows.MessageApplied
		}
		payload["effect_id"], payload["generation"], payload["without_observation"] = s.Effect.ID, s.Effect.Generation, true
		payload["reason"] = "the site says so"
	case policy.BlockedFailures:
		word, payload["answers"], payload["reason"] = workflows.MessageResume, s.Blocker.ID, "its worker is back"
	default:
		return false
	}
	handle, err := c.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: word, WaitForStage: client.WorkflowUpdateStageCompleted, Args: []any{payload},
	})
	var decided machine.Answer
	if err == nil && handle.Get(ctx, &decided) == nil && decided.Decision == "accept" {
		*asked++
	}
	return false
}

// Five workers on one PostgreSQL server, one of them killed every few seconds, and the Temporal server killed once: each site
// receives every effect exactly once, and every run ends done.
func TestManyWorkersOnPostgres(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server and a browser")
	}
	simulated, real, every, limit := 20, 2, 3*time.Second, 70*time.Second
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		simulated, real, limit = 200, 20, 15*time.Minute
	}
	const turns = 3
	c := newCrowd(t)
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(c.log.Name())
			t.Logf("processes:\n%s", text[max(0, len(text)-20_000):])
		}
	})
	began := time.Now()
	open := c.begin(t, simulated, real, turns)
	runs := maps.Clone(open)
	kills, asked, restarted := 0, 0, false
	for next := time.Now().Add(every); len(open) > 0; {
		if time.Now().After(next) {
			if kills == 2 && !restarted {
				c.server.signal(syscall.SIGKILL)
				restarted = true
			} else {
				c.workers[kills%len(c.workers)].signal(syscall.SIGKILL)
				kills++
			}
			next = time.Now().Add(every)
		}
		for id, conversation := range open {
			if c.operate(t, id, conversation, &asked) {
				delete(open, id)
			}
		}
		if time.Since(began) > limit {
			for id := range open {
				s := c.state(t, id)
				why, _ := json.Marshal(s.Explain())
				t.Logf("%s: %s", id, why)
			}
			t.Fatalf("%d of %d runs have not ended after %v", len(open), len(runs), limit)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Logf("%d runs ended in %v; %d workers and the server were killed; an operator was needed %d times",
		len(runs), time.Since(began).Round(time.Second), kills, asked)
	require.True(t, restarted, "the server was killed once")
	require.Empty(t, c.site.Twice())
	for id, conversation := range runs {
		var s policy.State
		require.NoError(t, c.client.GetWorkflow(t.Context(), id, "").Get(t.Context(), &s), id)
		require.Equal(t, policy.GoalComplete, s.Status, id)
		effects := c.received(t, id, conversation)
		want := turns
		if strings.HasPrefix(id, "run:chatlab:") {
			want = 2
		}
		require.Len(t, effects, want, "messages of %s", id)
		var sent []string
		for _, turn := range s.Chain() {
			sent = append(sent, turn.Effect)
		}
		require.Equal(t, sent, effects, "%s: one message per effect, in the order of the ledger", id)
	}
	require.Empty(t, c.lab.Violations())
}
