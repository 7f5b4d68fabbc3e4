package machine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
)

func TestServerOrderOfSignalsThatWaitedForAWorker(t *testing.T) {
	st := newStage(t, nil)
	run := st.start(1)
	for _, name := range []string{"pause", "resume", "pause", "paus", "resume"} {
		st.signal(name, nil)
	}
	st.signal("say", say{"a"})
	st.signal("pause", map[string]any{"why": "?"})
	st.signal("resume", nil)
	st.work()
	s := st.end(run)
	require.Equal(t, []string{"pause", "resume", "pause", "resume", "a", "resume", "sent:applied"}, s.Notes)
	entries := st.journal()
	require.Equal(t, machine.CodeUnknown, entries[3].Code)
	require.Equal(t, machine.CodeMalformed, entries[6].Code)
	require.Equal(t, "tester", entries[0].Caller)
	st.replay(run.GetRunID(), "signals")
}

// Every turn is two activities of 6 events each; the status does not change from turn to turn.
func TestServerTurnCostsTwelveEvents(t *testing.T) {
	st := newStage(t, nil)
	st.work()
	lengths := map[int]int{}
	for _, turns := range []int{5, 15} {
		run := st.start(turns)
		st.end(run)
		lengths[turns] = len(st.events(run.GetRunID()))
	}
	require.Equal(t, 12*10, lengths[15]-lengths[5])
}

func TestServerMessagesUnderContinueAsNew(t *testing.T) {
	const signals, updates, pace = 30, 30, 150 * time.Millisecond
	st := newStage(t, func(s *machine.Spec[toy, event]) { s.MaxTurns, s.MinLife = 5, time.Second })
	st.work()
	run := st.start(100000)
	first := run.GetRunID() // Get moves it on to the last one
	var wg sync.WaitGroup
	accepted := make([]machine.Answer, updates)
	wg.Go(func() {
		for i := range signals {
			st.signal("say", map[string]string{"text": fmt.Sprint("s", i), "request_id": fmt.Sprint("s", i)})
			st.signal("say", map[string]string{"text": fmt.Sprint("s", i), "request_id": fmt.Sprint("s", i)})
			time.Sleep(pace)
		}
	})
	wg.Go(func() {
		for i := range updates {
			require.Eventually(t, func() bool { // an update whose task is done again because of a continuation is to be repeated
				a, err := st.update("say", map[string]string{"text": fmt.Sprint("u", i), "request_id": fmt.Sprint("u", i)})
				accepted[i] = a
				return err == nil
			}, 10*time.Second, 50*time.Millisecond)
			time.Sleep(pace)
		}
	})
	wg.Wait()
	st.until("continued twice", func(s toy) bool { return s.Stalled >= 2 })
	st.signal("stop", stop{})
	s := st.end(run)
	seen := map[string]int{}
	for _, note := range s.Notes {
		seen[note]++
	}
	for i := range signals {
		require.Equal(t, 1, seen[fmt.Sprint("s", i)], "signal %d", i)
	}
	for i := range updates {
		require.Equal(t, 1, seen[fmt.Sprint("u", i)], "update %d", i)
		require.Equal(t, kernel.Accept, accepted[i].Decision)
	}
	require.GreaterOrEqual(t, len(st.replay(first)), 3, "runs")
	for effect, n := range st.sends {
		require.Equal(t, 1, n, effect)
	}
}

func TestServerUpdateThatIsRefusedLeavesNoTrace(t *testing.T) {
	st := newStage(t, nil)
	st.work()
	run := st.start(1000000)
	st.signal("pause", nil)
	st.until("paused", func(s toy) bool { return s.Paused && s.Phase == "reserved" })
	before := len(st.events(run.GetRunID()))

	_, err := st.update("say", map[string]any{"txet": 1})
	var refused *temporal.ApplicationError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, machine.CodeMalformed, refused.Type())
	_, err = st.update("boom", nil)
	require.ErrorContains(t, err, "boom")
	require.Len(t, st.events(run.GetRunID()), before)

	answer, err := st.update("prove", nil)
	require.NoError(t, err)
	require.Equal(t, kernel.NeedsEvidence, answer.Decision)
	require.Equal(t, []string{"proof"}, answer.Missing)
	require.Len(t, st.events(run.GetRunID()), before+5)
}

func TestServerPanicLosesNothing(t *testing.T) {
	st := newStage(t, nil)
	broken := st.worker()
	require.NoError(t, broken.Start())
	run := st.start(1)
	st.signal("pause", nil)
	st.signal("boom", nil)
	require.Eventually(t, func() bool {
		d, err := st.client.DescribeWorkflowExecution(st.ctx(), st.queue, "")
		return err == nil && d.PendingWorkflowTask.GetAttempt() > 1
	}, 20*time.Second, 50*time.Millisecond)
	broken.Stop()
	st.adjust = func(s *machine.Spec[toy, event]) { s.Policy = mended{} }
	st.work()
	st.signal("resume", nil)
	require.Equal(t, "done", st.end(run).Phase)
	st.replay(run.GetRunID())
}

type mended struct{ policy }

func (p mended) Decide(s toy, e event, meta kernel.Meta) kernel.Decision[toy] {
	if _, ok := e.(boom); ok {
		return kernel.Decision[toy]{Verdict: kernel.Reject, Code: "mended", Next: s}
	}
	return p.policy.Decide(s, e, meta)
}

func TestServerReadsNeverMeet(t *testing.T) {
	st := newStage(t, nil)
	var running, most, looks atomic.Int32
	st.look = func(ctx context.Context, _, _ int) (string, error) {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		looks.Add(1)
		for ctx.Err() == nil {
			activity.RecordHeartbeat(ctx)
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond) // closing a page takes time
		return "", ctx.Err()
	}
	st.work()
	run := st.start(1)
	for i := range int32(3) {
		require.Eventually(t, func() bool { return looks.Load() == i+1 }, 20*time.Second, 10*time.Millisecond)
		st.signal("relook", nil)
	}
	st.signal("stop", stop{})
	st.end(run)
	require.EqualValues(t, 1, most.Load())
	st.replay(run.GetRunID())
}

func TestServerResetMakesTheNextEffectSuspect(t *testing.T) {
	st := newStage(t, nil)
	st.work()
	run := st.start(3)
	st.end(run)
	markers := 0
	var tasks []int64
	for _, e := range st.events(run.GetRunID()) {
		switch e.EventType {
		case enumspb.EVENT_TYPE_MARKER_RECORDED:
			markers++
		case enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
			tasks = append(tasks, e.EventId)
		}
	}
	require.Equal(t, 2, markers, "the terms of the chain and the id of the run")
	for name, point := range map[string]int64{"before the first effect": tasks[0], "after the first turn": tasks[3]} {
		resp, err := st.client.ResetWorkflowExecution(st.ctx(), &workflowservice.ResetWorkflowExecutionRequest{
			Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: st.queue, RunId: run.GetRunID()},
			Reason: "test", RequestId: name, WorkflowTaskFinishEventId: point,
		})
		require.NoError(t, err, name)
		s := st.end(st.client.GetWorkflow(st.ctx(), st.queue, resp.RunId))
		count := map[string]int{}
		for _, note := range s.Notes {
			count[note]++
		}
		require.Equal(t, map[string]int{"suspect": 1, "reconciled": 1, "sent:applied": 2}, count, name)
		st.replay(resp.RunId, "reset-"+strings.ReplaceAll(name, " ", "-"))
	}
}

// One run has everything: an update that starts it, a timer, an upgrade in the middle of an observation, a cancellation.
func TestServerUpgradeKeepsTheRun(t *testing.T) {
	st := newStage(t, func(s *machine.Spec[toy, event]) { s.MinLife = 2 * time.Second })
	st.look = func(ctx context.Context, _, _ int) (string, error) {
		for ctx.Err() == nil {
			activity.RecordHeartbeat(ctx)
			time.Sleep(20 * time.Millisecond)
		}
		return "", ctx.Err()
	}
	st.work()
	start := st.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: st.queue, TaskQueue: st.queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	}, toyWorkflow, 1)
	handle, err := st.client.UpdateWithStartWorkflow(st.ctx(), client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: st.queue, UpdateName: "wait", Args: []any{wait{Seconds: 1}}, WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	require.NoError(t, err)
	var answer machine.Answer
	require.NoError(t, handle.Get(st.ctx(), &answer))
	require.Equal(t, kernel.Accept, answer.Decision)
	run, err := start.Get(st.ctx())
	require.NoError(t, err)
	first := run.GetRunID()
	st.until("observing", func(s toy) bool { return s.Phase == "observing" })
	st.signal("upgrade", nil)
	st.until("continued", func(s toy) bool { return s.Stalled == 1 })

	d, err := st.client.DescribeWorkflowExecution(st.ctx(), st.queue, "")
	require.NoError(t, err)
	var status string
	fields := d.WorkflowExecutionInfo.SearchAttributes.GetIndexedFields()
	require.NoError(t, converter.GetDefaultDataConverter().FromPayload(fields["ToyStatus"], &status))
	require.Equal(t, "running", status)

	require.NoError(t, st.client.CancelWorkflow(st.ctx(), st.queue, ""))
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, run.Get(st.ctx(), nil), &cancelled)
	var s toy
	require.NoError(t, cancelled.Details(&s))
	require.Equal(t, []string{"elapsed", "sent:applied"}, s.Notes)
	require.Len(t, st.replay(first, "upgrade"), 2)
}

func TestServerShowsAndSucceeds(t *testing.T) {
	const successor = "successor-of-the-toy"
	st := newStage(t, func(s *machine.Spec[toy, event]) {
		s.Actions["observe"] = func(ctx workflow.Context, s toy, _ kernel.Obligation) event {
			if s.Look > 0 {
				s.Phase, s.Paused = "reserved", true
				err := machine.Succeed(ctx, successor, "goes on", s)
				return stop{fmt.Sprint(temporal.IsWorkflowExecutionAlreadyStartedError(err), err == nil)}
			}
			_ = workflow.Await(ctx, func() bool { return false })
			return nothing{}
		}
	})
	st.work()
	run := st.start(1)
	st.until("observing", func(s toy) bool { return s.Phase == "observing" })
	st.signal("pause", nil)
	attention := func() string {
		d, err := st.client.DescribeWorkflowExecution(st.ctx(), st.queue, run.GetRunID())
		require.NoError(t, err)
		var memo map[string]string
		payload, ok := d.WorkflowExecutionInfo.Memo.GetFields()[machine.AttentionMemo]
		if ok {
			require.NoError(t, converter.GetDefaultDataConverter().FromPayload(payload, &memo))
		}
		return memo["class"]
	}
	require.Eventually(t, func() bool { return attention() == "paused" }, 10*time.Second, 20*time.Millisecond)
	st.signal("resume", nil)
	require.Eventually(t, func() bool { return attention() == "" }, 10*time.Second, 20*time.Millisecond)

	value, err := st.client.QueryWorkflow(st.ctx(), st.queue, "", "__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&metadata))
	require.Contains(t, metadata.CurrentDetails, "phase observing")
	docs := map[string]string{}
	for _, list := range [][]*sdkpb.WorkflowInteractionDefinition{
		metadata.Definition.SignalDefinitions, metadata.Definition.UpdateDefinitions, metadata.Definition.QueryDefinitions,
	} {
		for _, d := range list {
			docs[d.Name] = d.Description
		}
	}
	require.Equal(t, "the toy's pause", docs["pause"])
	require.NotEmpty(t, docs[machine.UpgradeSignal])
	require.NotEmpty(t, docs[machine.StateQuery])

	st.signal("relook", nil)
	require.Contains(t, st.end(run).Notes, "stop:false true")
	var s toy
	require.Eventually(t, func() bool {
		value, err := st.client.QueryWorkflow(st.ctx(), successor, "", machine.StateQuery)
		return err == nil && value.Get(&s) == nil
	}, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, "reserved", s.Phase)
	require.True(t, s.Paused)
	require.Equal(t, 1, s.RulesVer)
	d, err := st.client.DescribeWorkflowExecution(st.ctx(), successor, "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, d.WorkflowExecutionInfo.Status)

	again := st.start(1)
	st.until("observing", func(s toy) bool { return s.Phase == "observing" })
	st.signal("relook", nil)
	require.Contains(t, st.end(again).Notes, "stop:true false", "the id has an open run")
	require.NoError(t, st.client.SignalWorkflow(st.ctx(), successor, "", "stop", nil))
	require.NoError(t, st.client.GetWorkflow(st.ctx(), successor, "").Get(st.ctx(), nil))
}
