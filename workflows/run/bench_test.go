package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

const (
	conversationID = "6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e"
	workflowID     = "run:chatgpt:" + conversationID
)

// bench runs WorkflowRun against activities that stand for a browser, a checks worker and a server. Each can be replaced;
// left alone, every send is committed, every turn ends with the next of replies, and every check passes.
type bench struct {
	*testsuite.TestWorkflowEnvironment
	t       *testing.T
	goal    goal.Goal
	site    goal.SiteFacts
	lineage *activities.Lineage
	replies []receipt.Action

	sends     []activities.SendInput
	observed  []activities.ObserveInput
	sendFn    func(ctx context.Context, in activities.SendInput) (activities.SendResult, error)
	observeFn func(ctx context.Context, in activities.ObserveInput) (activities.ObserveResult, error)
	lookFn    func(in activities.ReconcileInput) activities.ReconcileResult
	checkFn   func(in activities.CheckInput) []activities.CheckEvidence
	probeFn   func(in activities.ProbeInput) activities.ProbeResult
	pressFn   func(in activities.InterruptInput) activities.InterruptResult
	admitFn   func(in activities.AdmitInput) (activities.AdmitResult, error)
	looks     int
	probes    []activities.ProbeInput
	presses   int
	updates   int
}

func newBench(t *testing.T, replies ...receipt.Action) *bench {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	b := &bench{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, replies: replies}
	b.site = goal.SiteFacts{
		Site: "chatgpt", ConversationID: conversationID, ConversationURL: "https://chatgpt.com/c/" + conversationID,
		MinInterval: goal.Duration(time.Second), Host: "build-1", ProbeMessage: true,
	}
	b.goal = goal.Goal{
		Objective: "Make go test pass in the orders service. Keep its public API.", Target: goal.Target{Site: "chatgpt"},
		Completion: goal.Completion{Checks: []goal.Check{{Name: "tests", Command: &goal.Command{Argv: []string{"go", "test"}, Dir: "/src"}}}},
	}
	b.SetWorkerOptions(worker.Options{Interceptors: machine.Options()})
	b.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflowID, TaskQueue: workflows.QueueRun})
	b.RegisterWorkflowWithOptions(run.Workflow(run.Options{}), workflow.RegisterOptions{Name: workflows.TypeWorkflowRun})
	b.SetTestTimeout(30 * time.Second)
	b.register()
	return b
}

func (b *bench) register() {
	on := func(name string, fn any) { b.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name}) }
	on(workflows.ActivityAdmit, func(_ context.Context, in activities.AdmitInput) (activities.AdmitResult, error) {
		if b.admitFn != nil {
			return b.admitFn(in)
		}
		require.Equal(b.t, workflowID, in.WorkflowID)
		return activities.AdmitResult{Goal: b.goal.Normalize(b.site), Site: b.site, Lineage: b.lineage}, nil
	})
	on(workflows.ActivityBaseline, func(context.Context, activities.BaselineInput) (activities.BaselineResult, error) {
		return activities.BaselineResult{Totals: map[string]int64{"tests": 12}}, nil
	})
	on(workflows.ActivitySend, func(ctx context.Context, in activities.SendInput) (activities.SendResult, error) {
		b.sends = append(b.sends, in)
		if b.sendFn != nil {
			return b.sendFn(ctx, in)
		}
		return b.committed(), nil
	})
	on(workflows.ActivityObserve, func(ctx context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
		b.observed = append(b.observed, in)
		if b.observeFn != nil {
			return b.observeFn(ctx, in)
		}
		return b.reply(in), nil
	})
	on(workflows.ActivityReconcile, func(_ context.Context, in activities.ReconcileInput) (activities.ReconcileResult, error) {
		b.looks++
		return b.lookFn(in), nil
	})
	on(workflows.ActivityChecks, func(_ context.Context, in activities.CheckInput) (activities.CheckResult, error) {
		if b.checkFn != nil {
			return activities.CheckResult{Evidence: b.checkFn(in)}, nil
		}
		return activities.CheckResult{Evidence: []activities.CheckEvidence{{Name: "tests", Outcome: activities.CheckPass}}}, nil
	})
	on(workflows.ActivityProbe, func(_ context.Context, in activities.ProbeInput) (activities.ProbeResult, error) {
		b.probes = append(b.probes, in)
		return b.probeFn(in), nil
	})
	on(workflows.ActivityInterrupt, func(_ context.Context, in activities.InterruptInput) (activities.InterruptResult, error) {
		b.presses++
		return b.pressFn(in), nil
	})
	on(workflows.ActivityProgress, func(context.Context, activities.ProgressInput) (activities.ProgressResult, error) {
		return activities.ProgressResult{Digest: "unchanged"}, nil
	})
}

func (b *bench) committed() activities.SendResult {
	return activities.SendResult{
		Outcome: activities.SendCommitted, Armed: true, CommittedAt: b.Now(), UserMessageID: fmt.Sprint("m", len(b.sends)),
		Worker: activities.Worker{Release: "r1", Incarnation: 2},
	}
}

// reply is the next of the scripted answers.
func (b *bench) reply(in activities.ObserveInput) activities.ObserveResult {
	require.NotEmpty(b.t, b.replies, "no answer is left for %s", in.EffectID)
	action := b.replies[0]
	b.replies = b.replies[1:]
	return b.settled(in, action)
}

// settled is a turn that ended with a receipt, as the real parser reads it.
func (b *bench) settled(in activities.ObserveInput, action receipt.Action) activities.ObserveResult {
	body := map[string]any{
		"action": action, "conversation_id": in.Want.ConversationID, "task_id": in.Want.TaskID, "supervisor_state": action.State(),
		"active_scope": in.Want.Scope, "source_effect_id": in.Want.EffectID, "checkpoint": fmt.Sprint("step ", len(b.sends)), "reason": "because",
		"evidence": []string{"commit"},
	}
	if action == receipt.NeedsUser {
		body["user_action"] = map[string]string{"kind": "decision", "ask": "Which database?", "tried": "the documentation"}
	}
	data, err := json.Marshal(body)
	require.NoError(b.t, err)
	answer := "Done so far.\n\n🔄 Still working\n" + receipt.StartMarker + "\n" + string(data) + "\n" + receipt.EndMarker
	return activities.ObserveResult{
		Turn: activities.TurnSettled, SeenAt: b.Now(), SettledAt: b.Now(), Reading: receipt.Read(answer, in.Want),
		AnswerDigest: receipt.TextDigest([]string{answer}),
	}
}

func (b *bench) after(d time.Duration, f func()) { b.RegisterDelayedCallback(f, d) }

func (b *bench) execute() { b.ExecuteWorkflow(workflows.TypeWorkflowRun, json.RawMessage(`{}`), nil) }

// state is the final state, whichever way the run ended.
func (b *bench) state() policy.State {
	b.t.Helper()
	require.True(b.t, b.IsWorkflowCompleted())
	var s policy.State
	var failure *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	switch err := b.GetWorkflowError(); {
	case err == nil:
		require.NoError(b.t, b.GetWorkflowResult(&s))
	case asError(err, &failure):
		require.NoError(b.t, failure.Details(&s))
	case asError(err, &cancelled):
		require.NoError(b.t, cancelled.Details(&s))
	default:
		require.NoError(b.t, err)
	}
	return s
}

func (b *bench) query(name string, into any) {
	b.t.Helper()
	value, err := b.QueryWorkflow(name)
	require.NoError(b.t, err)
	require.NoError(b.t, value.Get(into))
}

// present is the state at this moment.
func (b *bench) present() policy.State {
	b.t.Helper()
	var s policy.State
	b.query(workflows.QueryState, &s)
	return s
}

// attention is the class of what a person is needed for; empty when nobody is.
func (b *bench) attention() string {
	b.t.Helper()
	s := b.present()
	if a := s.Attention(); a != nil {
		return a.Class
	}
	return ""
}

// page is what the Web UI shows.
func (b *bench) page() string {
	b.t.Helper()
	var metadata sdkpb.WorkflowMetadata
	b.query("__temporal_workflow_metadata", &metadata)
	return metadata.CurrentDetails
}

// journal lists the decisions that were taken, as "event code".
func (b *bench) journal() []string {
	b.t.Helper()
	var entries []machine.Entry
	b.query(workflows.QueryJournal, &entries)
	var lines []string
	for _, e := range entries {
		lines = append(lines, strings.TrimSpace(e.Event+" "+e.Code))
	}
	return lines
}

func (b *bench) update(name string, payload any) *answer {
	a := &answer{}
	b.updates++
	b.UpdateWorkflow(name, fmt.Sprint("update-", b.updates), &testsuite.TestUpdateCallback{
		OnReject: func(err error) { a.refused = err },
		OnComplete: func(v any, err error) {
			require.NoError(b.t, err)
			a.Answer, _ = v.(machine.Answer)
			a.done = true
		},
	}, payload)
	return a
}

// answer is what an update was answered.
type answer struct {
	machine.Answer
	refused error
	done    bool
}

func by(fields ...any) map[string]any {
	m := map[string]any{"operator": "ann", "reason": "because"}
	for pair := range slices.Chunk(fields, 2) {
		m[pair[0].(string)] = pair[1]
	}
	return m
}
