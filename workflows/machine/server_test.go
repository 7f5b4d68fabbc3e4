package machine_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/encoding/protojson"

	"steward/workflows/machine"
)

// lab is a real server with one client. It is started once; every test has its own task queue and worker.
type lab struct {
	client client.Client
	stop   func() error
}

var (
	theLab    *lab
	labOnce   sync.Once
	labErr    error
	testCalls = log.NewStructuredLogger(slog.New(slog.DiscardHandler))
)

func TestMain(m *testing.M) {
	code := m.Run()
	if theLab != nil {
		theLab.client.Close()
		if err := theLab.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the dev server:", err)
		}
	}
	os.Exit(code)
}

// server starts the dev server of the temporal CLI.
func server(t *testing.T) *lab {
	t.Helper()
	path := os.Getenv("STEWARD_TEMPORAL_CLI")
	if path == "" || testing.Short() {
		t.Skip("needs a temporal CLI: set STEWARD_TEMPORAL_CLI to its path (task test does)")
	}
	labOnce.Do(func() {
		status := temporal.NewSearchAttributeKeyKeyword("ToyStatus")
		dev, err := testsuite.StartDevServer(context.Background(), testsuite.DevServerOptions{
			ExistingPath: path,
			ClientOptions: &client.Options{
				Logger: testCalls, Identity: "tester", Interceptors: []interceptor.ClientInterceptor{machine.Caller("tester")},
			},
			SearchAttributes: temporal.NewSearchAttributes(status.ValueSet("")),
			LogLevel:         "never",
			ExtraArgs: []string{
				"--dynamic-config-value", "history.transferProcessorMaxPollRPS=2000",
				"--dynamic-config-value", "history.timerProcessorMaxPollRPS=2000",
			},
		})
		if err != nil {
			labErr = err
			return
		}
		theLab = &lab{client: dev.Client(), stop: dev.Stop}
	})
	require.NoError(t, labErr)
	return theLab
}

// stage is one test on the server: a task queue, what its activities do, and the worker.
type stage struct {
	*lab
	t      *testing.T
	queue  string
	adjust func(*machine.Spec[toy, event])
	send   func(ctx context.Context, turn, gen int) (string, error)
	look   func(ctx context.Context, turn, look int) (string, error)

	mu    sync.Mutex
	sends map[string]int
}

func newStage(t *testing.T, adjust func(*machine.Spec[toy, event])) *stage {
	t.Parallel()
	st := &stage{lab: server(t), t: t, queue: strings.ReplaceAll(t.Name(), "/", "-"), adjust: adjust, sends: map[string]int{}}
	st.send = func(context.Context, int, int) (string, error) { return "applied", nil }
	st.look = func(context.Context, int, int) (string, error) { return "", nil }
	return st
}

func (st *stage) worker() worker.Worker {
	w := worker.New(st.client, st.queue, worker.Options{
		Interceptors: machine.Options(), DisableRegistrationAliasing: true,
		MaxHeartbeatThrottleInterval: 100 * time.Millisecond, DeadlockDetectionTimeout: 5 * time.Second,
	})
	w.RegisterWorkflowWithOptions(toyRun(st.adjust), workflow.RegisterOptions{Name: toyWorkflow})
	for _, name := range []string{"admit", "reconcile"} {
		w.RegisterActivityWithOptions(func(context.Context, int, int) (string, error) { return "", nil }, activity.RegisterOptions{Name: name})
	}
	w.RegisterActivityWithOptions(func(ctx context.Context, turn, look int) (string, error) { return st.look(ctx, turn, look) },
		activity.RegisterOptions{Name: "observe"})
	w.RegisterActivityWithOptions(func(ctx context.Context, turn, gen int) (string, error) {
		st.mu.Lock()
		st.sends[fmt.Sprint(activity.GetInfo(ctx).WorkflowExecution.RunID, " ", turn, "/", gen)]++
		st.mu.Unlock()
		return st.send(ctx, turn, gen)
	}, activity.RegisterOptions{Name: "send"})
	return w
}

// work starts a worker until the end of the test.
func (st *stage) work() {
	w := st.worker()
	require.NoError(st.t, w.Start())
	st.t.Cleanup(w.Stop)
}

func (st *stage) start(turns int) client.WorkflowRun {
	st.t.Helper()
	run, err := st.client.ExecuteWorkflow(st.ctx(), client.StartWorkflowOptions{ID: st.queue, TaskQueue: st.queue}, toyWorkflow, turns)
	require.NoError(st.t, err)
	st.t.Cleanup(func() { _ = st.client.TerminateWorkflow(context.Background(), st.queue, "", "end of test") })
	return run
}

func (st *stage) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	st.t.Cleanup(cancel)
	return ctx
}

func (st *stage) signal(name string, payload any) {
	st.t.Helper()
	require.NoError(st.t, st.client.SignalWorkflow(st.ctx(), st.queue, "", name, payload))
}

func (st *stage) update(name string, payload any) (machine.Answer, error) {
	var answer machine.Answer
	handle, err := st.client.UpdateWorkflow(st.ctx(), client.UpdateWorkflowOptions{
		WorkflowID: st.queue, UpdateName: name, Args: []any{payload}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(st.ctx(), &answer)
	}
	return answer, err
}

func (st *stage) end(run client.WorkflowRun) toy {
	st.t.Helper()
	var s toy
	require.NoError(st.t, run.Get(st.ctx(), &s))
	return s
}

func (st *stage) journal() []machine.Entry {
	st.t.Helper()
	value, err := st.client.QueryWorkflow(st.ctx(), st.queue, "", machine.JournalQuery)
	require.NoError(st.t, err)
	var entries []machine.Entry
	require.NoError(st.t, value.Get(&entries))
	return entries
}

// until waits for a state.
func (st *stage) until(what string, is func(toy) bool) toy {
	st.t.Helper()
	var s toy
	require.Eventually(st.t, func() bool {
		value, err := st.client.QueryWorkflow(st.ctx(), st.queue, "", machine.StateQuery)
		return err == nil && value.Get(&s) == nil && is(s)
	}, 30*time.Second, 20*time.Millisecond, what)
	return s
}

// events is the history of one run.
func (st *stage) events(runID string) []*historypb.HistoryEvent {
	st.t.Helper()
	var all []*historypb.HistoryEvent
	for it := st.client.GetWorkflowHistory(st.ctx(), st.queue, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		require.NoError(st.t, err)
		all = append(all, e)
	}
	return all
}

// replay replays every run of the chain that began with the given one, and returns their histories. It writes those of the
// given name to testdata when STEWARD_RECORD is set.
func (st *stage) replay(firstRunID string, name ...string) []*historypb.History {
	st.t.Helper()
	var all []*historypb.History
	defer func() {
		if os.Getenv("STEWARD_RECORD") == "" || len(name) == 0 {
			return
		}
		for i, h := range all {
			data, err := protojson.MarshalOptions{Indent: " "}.Marshal(h)
			require.NoError(st.t, err)
			require.NoError(st.t, os.WriteFile(fmt.Sprintf("testdata/%s-%d.json", name[0], i), append(data, '\n'), 0o600))
		}
	}()
	for id := firstRunID; id != ""; {
		h := &historypb.History{Events: st.events(id)}
		require.NoError(st.t, replayer(st.t, st.adjust).ReplayWorkflowHistory(testCalls, h))
		all = append(all, h)
		id = h.Events[len(h.Events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return all
}

// The histories were recorded on a server: what they hold a later driver must do again. They are recorded anew only when
// no run of an earlier release can be open any more: STEWARD_RECORD=1 STEWARD_TEMPORAL_CLI=… go test -run TestServer.
func TestReplaysRecordedHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		for name, adjust := range map[string]func(*machine.Spec[toy, event]){
			"same limits":  nil,
			"other limits": func(s *machine.Spec[toy, event]) { s.MaxTurns, s.MinLife = 1, time.Nanosecond },
			"newer rules":  func(s *machine.Spec[toy, event]) { s.Rules.Current = 2 },
		} {
			require.NoError(t, replayer(t, adjust).ReplayWorkflowHistoryFromJSONFile(testCalls, file), "%s, %s", file, name)
		}
	}
}

func TestReplayerRecordsTheWholeJournal(t *testing.T) {
	var names []string
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: machine.Record(func(e machine.Entry) { names = append(names, e.Event) }), DisableRegistrationAliasing: true,
	})
	require.NoError(t, err)
	r.RegisterWorkflowWithOptions(toyRun(nil), workflow.RegisterOptions{Name: toyWorkflow})
	require.NoError(t, r.ReplayWorkflowHistoryFromJSONFile(testCalls, "testdata/upgrade-0.json"))
	require.Equal(t, []string{
		"machine_test.wait", "machine_test.elapsed", "machine_test.begun", "machine_test.sent", machine.UpgradeSignal,
	}, names)
}

func replayer(t *testing.T, adjust func(*machine.Spec[toy, event])) worker.WorkflowReplayer {
	t.Helper()
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
		Interceptors: machine.Options(), DisableRegistrationAliasing: true,
	})
	require.NoError(t, err)
	r.RegisterWorkflowWithOptions(toyRun(adjust), workflow.RegisterOptions{Name: toyWorkflow})
	return r
}
