package embedded

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const (
	serveEnv  = "EMBEDDED_TEST_SERVE" // data folder of a test binary that only runs a server
	taskQueue = "test"
	goSignal  = "go"
)

var (
	site  = temporal.NewSearchAttributeKeyKeyword("TestSite")
	round = temporal.NewSearchAttributeKeyInt64("TestRound")
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveEnv); dir != "" {
		serve(dir)
		return
	}
	os.Exit(m.Run())
}

// serve runs a server until SIGTERM, or until it is killed.
func serve(dir string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := Start(ctx, Options{DataDir: dir, UIPort: NoUI, Logger: stderrLogger()})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	<-ctx.Done()
	if err := s.Stop(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func stderrLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

// startProcess runs a server in a process of its own and waits until it serves.
func startProcess(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveEnv+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	return cmd
}

func start(t *testing.T, o Options) *Server {
	t.Helper()
	o.Logger = stderrLogger()
	s, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

// dial connects a client to the server of a data folder.
func dial(t *testing.T, dir string) client.Client {
	t.Helper()
	e, err := ReadEndpoint(dir)
	require.NoError(t, err)
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort:  e.Address,
		Namespace: e.Namespace,
		Logger:    sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// greet answers after the signal "go".
func greet(ctx workflow.Context, name string) (string, error) {
	var greeting string
	workflow.GetSignalChannel(ctx, goSignal).Receive(ctx, &greeting)
	return greeting + " " + name, nil
}

func runWorker(t *testing.T, c client.Client) worker.Worker {
	t.Helper()
	w := worker.New(c, taskQueue, worker.Options{StickyScheduleToStartTimeout: time.Second})
	w.RegisterWorkflow(greet)
	require.NoError(t, w.Start())
	return w
}

func startGreet(t *testing.T, c client.Client, id string, attributes ...temporal.SearchAttributeUpdate) client.WorkflowRun {
	t.Helper()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: taskQueue, TypedSearchAttributes: temporal.NewSearchAttributes(attributes...),
	}, greet, "world")
	require.NoError(t, err)
	return run
}

func finishGreet(t *testing.T, c client.Client, run client.WorkflowRun) {
	t.Helper()
	require.NoError(t, c.SignalWorkflow(t.Context(), run.GetID(), run.GetRunID(), goSignal, "hello"))
	var answer string
	require.NoError(t, run.Get(t.Context(), &answer))
	require.Equal(t, "hello world", answer)
}

func requireListed(t *testing.T, c client.Client, query, id string) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := c.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{Query: query})
		return err == nil && len(list.GetExecutions()) == 1 && list.GetExecutions()[0].GetExecution().GetWorkflowId() == id
	}, 10*time.Second, 20*time.Millisecond, "no workflow %s for %s", id, query)
}

func describeNamespace(t *testing.T, c client.Client, namespace string) *workflowservice.DescribeNamespaceResponse {
	t.Helper()
	d, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	require.NoError(t, err)
	return d
}

func filesUnder(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return nil
	})
	require.NoError(t, err)
	return files
}

// One server, started twice on a folder whose name needs escaping.
func TestServerKeepsItsDataOverARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data %41 #1 [?]")
	o := Options{DataDir: dir, Namespace: "orders", SearchAttributes: map[string]enumspb.IndexedValueType{
		site.GetName(): enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	}}
	s := start(t, o)
	require.Equal(t, "orders", s.Namespace())
	c := dial(t, dir)
	w := runWorker(t, c)

	run := startGreet(t, c, "first", site.ValueSet("chatgpt"))
	finishGreet(t, c, run)
	requireListed(t, c, `TestSite = "chatgpt"`, "first")

	t.Run("the Web UI answers", func(t *testing.T) {
		resp, err := http.Get(s.UI() + "/api/v1/namespaces/orders/workflows")
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	})
	t.Run("the Web UI serves the API only under names of this machine", func(t *testing.T) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.UI()+"/api/v1/namespaces/orders/workflows", nil)
		require.NoError(t, err)
		req.Host = "rebound.example:80"
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusForbidden, resp.StatusCode)
	})
	t.Run("closed workflows are kept for 30 days and archived in the data folder", func(t *testing.T) {
		config := describeNamespace(t, c, "orders").GetConfig()
		require.Equal(t, 30*24*time.Hour, config.GetWorkflowExecutionRetentionTtl().AsDuration())
		require.Equal(t, enumspb.ARCHIVAL_STATE_ENABLED, config.GetHistoryArchivalState())
		require.Eventually(t, func() bool {
			return len(filesUnder(t, filepath.Join(dir, "archive", "history"))) == 1 &&
				len(filesUnder(t, filepath.Join(dir, "archive", "visibility"))) == 1
		}, 20*time.Second, 50*time.Millisecond)
	})
	t.Run("files are private", func(t *testing.T) {
		for _, file := range append(filesUnder(t, dir), dir) {
			info, err := os.Stat(file)
			require.NoError(t, err)
			require.Zero(t, info.Mode().Perm()&0o077, file)
		}
	})
	t.Run("a second server on the folder is refused", func(t *testing.T) {
		_, err := Start(t.Context(), o)
		require.ErrorIs(t, err, ErrInUse)
		require.ErrorContains(t, err, strconv.Itoa(os.Getpid()))
		require.ErrorContains(t, err, dir)
	})

	w.Stop()
	require.NoError(t, s.Stop())
	wal, err := os.Stat(filepath.Join(dir, "temporal.db-wal"))
	require.NoError(t, err)
	require.Zero(t, wal.Size(), "after a stop the database file is complete")

	// What retention does to a workflow after 30 days.
	db := open(t, filepath.Join(dir, databaseFile))
	execSQL(t, db, `DELETE FROM executions WHERE workflow_id = 'first'; DELETE FROM current_executions WHERE workflow_id = 'first'`)

	o.SearchAttributes[round.GetName()] = enumspb.INDEXED_VALUE_TYPE_INT
	again := start(t, o)
	require.Equal(t, s.Address(), again.Address(), "the port is reused")
	require.Equal(t, s.UI(), again.UI())
	w = runWorker(t, c)
	defer w.Stop()
	requireListed(t, c, `TestSite = "chatgpt"`, "first")
	second := startGreet(t, c, "second", site.ValueSet("other"), round.ValueSet(7))
	finishGreet(t, c, second)
	requireListed(t, c, `TestRound = 7`, "second")

	t.Run("the history of a workflow that is gone is read from the archive", func(t *testing.T) {
		history, err := c.WorkflowService().GetWorkflowExecutionHistory(t.Context(), &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: "orders", Execution: &commonpb.WorkflowExecution{WorkflowId: "first", RunId: run.GetRunID()},
		})
		require.NoError(t, err)
		require.True(t, history.GetArchived())
		events := history.GetHistory().GetEvents()
		require.Equal(t, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, events[len(events)-1].GetEventType())
	})
}

func TestWorkflowSurvivesAKilledServer(t *testing.T) {
	dir := t.TempDir()
	server := startProcess(t, dir)
	c := dial(t, dir)
	w := runWorker(t, c)
	run := startGreet(t, c, "survivor")
	requireListed(t, c, `ExecutionStatus = "Running"`, "survivor")
	w.Stop()

	require.NoError(t, server.Process.Kill())
	_ = server.Wait()
	_, err := net.Dial("tcp", mustEndpoint(t, dir).Address)
	require.Error(t, err, "the server is gone")

	server = startProcess(t, dir)
	w = runWorker(t, c)
	finishGreet(t, c, run)
	w.Stop()

	t.Run("another process is refused", func(t *testing.T) {
		_, err := Start(t.Context(), Options{DataDir: dir})
		require.ErrorIs(t, err, ErrInUse)
		require.ErrorContains(t, err, "process "+strconv.Itoa(server.Process.Pid))
		require.ErrorContains(t, err, dir)
	})

	t.Run("an older database is migrated with its data", func(t *testing.T) {
		require.NoError(t, server.Process.Kill())
		_ = server.Wait()
		downgrade(t, filepath.Join(dir, databaseFile), "0.8")
		startProcess(t, dir)
		require.Equal(t, mainSchema.version, recordedVersion(t, filepath.Join(dir, databaseFile)))
		var answer string
		require.NoError(t, c.GetWorkflow(t.Context(), "survivor", "").Get(t.Context(), &answer))
		require.Equal(t, "hello world", answer)
		backups := filesUnder(t, filepath.Join(dir, "backup"))
		require.Len(t, backups, 1)
		require.Equal(t, "0.8", recordedVersion(t, backups[0]))
	})
}

func mustEndpoint(t *testing.T, dir string) Endpoint {
	t.Helper()
	e, err := ReadEndpoint(dir)
	require.NoError(t, err)
	return e
}

// BenchmarkStart times Start alone: a new folder, and one that has run before.
func BenchmarkStart(b *testing.B) {
	used := b.TempDir()
	for name, dir := range map[string]func() string{"new": b.TempDir, "again": func() string { return used }} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s, err := Start(b.Context(), Options{DataDir: dir(), Logger: stderrLogger()})
				require.NoError(b, err)
				b.StopTimer()
				require.NoError(b, s.Stop())
				b.StartTimer()
			}
		})
	}
}
