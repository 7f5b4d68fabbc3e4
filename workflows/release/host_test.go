package release_test

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/strict"
	"steward/workflows/release"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
	"steward/workflows/release/policy"
	"steward/workflows/run/goal"
)

const (
	releaseA   = "aaaa0000"
	releaseB   = "bbbb1111"
	revisionB  = "3f786850e387550fdab836ed7e6dc881de23001b"
	workflowID = "release:shop"
)

// host is a recovery process whose activities touch nothing but this lane.
type host struct {
	*testsuite.TestWorkflowEnvironment
	t testing.TB

	mu     sync.Mutex
	lane   evidence.Lane
	calls  map[string]int
	record activities.CloseSessionInput
	// fail replaces an activity's result by an error.
	fail map[string]error
	// cutover and gate change what those answer.
	cutover func(*activities.OperationResult)
	gate    func(activities.GateInput, *activities.GateResult)
}

func newHost(t testing.TB) *host {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	h := &host{
		TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, calls: map[string]int{}, fail: map[string]error{},
		lane: evidence.Lane{
			Observed: true, Settled: true, Authority: evidence.Authority{Active: releaseA},
			Serving: evidence.Identity{Release: releaseA, Home: "/var/lib/shop", Label: "shop", Port: 8080, Incarnation: 3, Ready: true},
		},
	}
	h.SetWorkerOptions(worker.Options{Interceptors: machine.Options()})
	h.SetStartWorkflowOptions(workflowOptions())
	h.RegisterWorkflowWithOptions(release.Workflow(release.Options{}), workflow.RegisterOptions{Name: workflows.TypeReleaseSession})
	for name, function := range map[string]any{
		workflows.ActivityAdmitRelease: h.AdmitRelease, workflows.ActivityFreeze: h.Freeze, workflows.ActivityBuild: h.Build,
		workflows.ActivityGate: h.Gate, workflows.ActivityBootCandidate: h.BootCandidate, workflows.ActivityStopCandidate: h.StopCandidate,
		workflows.ActivityVerifyStable: h.VerifyStable, workflows.ActivityCutover: h.Cutover, workflows.ActivityRollback: h.Rollback,
		workflows.ActivityReconcileOperation: h.ReconcileOperation, workflows.ActivityObserveSoak: h.ObserveSoak,
		workflows.ActivityLiveProof: h.LiveProof, workflows.ActivityRestartActive: h.RestartActive, workflows.ActivityBundle: h.Bundle,
		workflows.ActivityCloseSession: h.CloseSession,
	} {
		h.RegisterActivityWithOptions(function, activity.RegisterOptions{Name: name})
	}
	h.SetTestTimeout(30 * time.Second)
	return h
}

// call counts a call and says how it fails.
func (h *host) call(name string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls[name]++
	return h.fail[name]
}

func (h *host) count(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[name]
}

func (h *host) seen() evidence.Lane {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lane
}

func (h *host) AdmitRelease(_ context.Context, in activities.AdmitReleaseInput) (activities.AdmitReleaseResult, error) {
	p, problems := plan.Decode(in.Start)
	if len(problems) > 0 {
		return activities.AdmitReleaseResult{Problems: problems}, h.call("admit")
	}
	return activities.AdmitReleaseResult{Plan: p.Normalize()}, h.call("admit")
}

func (h *host) Freeze(_ context.Context, in activities.FreezeInput) (activities.FreezeResult, error) {
	return activities.FreezeResult{Session: in.Session, Revision: in.Plan.Source.Revision, Source: "5555", Stable: h.seen().Serving}, h.call("freeze")
}

func (h *host) Build(context.Context, activities.BuildInput) (activities.BuildResult, error) {
	return activities.BuildResult{Release: releaseB}, h.call("build")
}

func (h *host) Gate(_ context.Context, in activities.GateInput) (activities.GateResult, error) {
	out := activities.GateResult{Receipt: evidence.Receipt{
		Gate: in.Name, Outcome: evidence.Passed, Revision: in.Plan.Source.Revision, Release: in.Release, Runner: in.Release,
	}}
	if h.gate != nil {
		h.gate(in, &out)
	}
	return out, h.call("gate:" + in.Place)
}

func (h *host) BootCandidate(_ context.Context, in activities.BootCandidateInput) (activities.BootCandidateResult, error) {
	c := in.Plan.Candidate
	return activities.BootCandidateResult{Candidate: evidence.Identity{
		Release: in.Release, Home: c.Home, Label: c.Label, Port: c.Port, Incarnation: 1, Ready: true,
	}}, h.call("boot")
}

func (h *host) StopCandidate(context.Context, activities.StopCandidateInput) (activities.StopCandidateResult, error) {
	return activities.StopCandidateResult{}, h.call("stop")
}

func (h *host) VerifyStable(_ context.Context, in activities.VerifyStableInput) (activities.VerifyStableResult, error) {
	return activities.VerifyStableResult{
		Lane: h.seen(), Stored: in.Release, Receipt: evidence.Receipt{Gate: "lane", Outcome: evidence.Passed},
	}, h.call("verify")
}

func (h *host) operate(in activities.OperationInput, kind, to string) activities.OperationResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lane.Authority = evidence.Authority{Active: to, LastOperation: evidence.Operation{Kind: kind, Session: in.Session}}
	h.lane.Serving.Release = to
	h.lane.Serving.Incarnation++
	return activities.OperationResult{Lane: h.lane}
}

func (h *host) Cutover(_ context.Context, in activities.OperationInput) (activities.OperationResult, error) {
	if err := h.call("cutover"); err != nil {
		return activities.OperationResult{}, err
	}
	if h.cutover != nil {
		out := activities.OperationResult{Lane: h.seen()}
		h.cutover(&out)
		return out, nil
	}
	return h.operate(in, evidence.KindCutover, in.Release), nil
}

func (h *host) Rollback(_ context.Context, in activities.OperationInput) (activities.OperationResult, error) {
	if err := h.call("rollback"); err != nil {
		return activities.OperationResult{}, err
	}
	return h.operate(in, evidence.KindRollback, in.Stable.Release), nil
}

func (h *host) ReconcileOperation(context.Context, activities.ReconcileOperationInput) (activities.ReconcileOperationResult, error) {
	return activities.ReconcileOperationResult{Lane: h.seen()}, h.call("reconcile")
}

func (h *host) ObserveSoak(_ context.Context, in activities.ObserveSoakInput) (activities.ObserveSoakResult, error) {
	return activities.ObserveSoakResult{Windows: make([]evidence.Window, in.Windows), Lane: h.seen()}, h.call("windows")
}

func (h *host) LiveProof(_ context.Context, in activities.LiveProofInput) (activities.LiveProofResult, error) {
	lane := h.seen()
	at := time.Now().Add(24 * time.Hour)
	out := activities.LiveProofResult{WorkflowID: "run:chatlab:new:release", Status: "dispatching", Open: !in.Restarted, Lane: lane}
	source := ""
	for i, action := range []string{"CONTINUE", "CONTINUE", "DONE"} {
		turn := evidence.Turn{
			Effect: string(rune('a' + i)), Source: source, Generation: 1, Action: action, Completion: "c", Dispatches: 1, Dispatched: at,
			Applied: at, Committed: at.Add(time.Second), Release: in.Release, Incarnation: 4 + int64(i),
		}
		source, at = turn.Effect, turn.Committed
		out.Turns = append(out.Turns, turn)
		if !in.Restarted {
			break
		}
		out.Status = "goal_complete"
	}
	return out, h.call("proof")
}

func (h *host) RestartActive(context.Context, activities.RestartActiveInput) (activities.RestartActiveResult, error) {
	h.mu.Lock()
	h.lane.Serving.Incarnation++
	h.mu.Unlock()
	return activities.RestartActiveResult{Lane: h.seen()}, h.call("restart")
}

func (h *host) Bundle(_ context.Context, in activities.BundleInput) (activities.BundleResult, error) {
	return activities.BundleResult{ID: "kg-1", Release: in.Release, Digest: "d", Validated: true, Lane: h.seen()}, h.call("bundle")
}

func (h *host) CloseSession(_ context.Context, in activities.CloseSessionInput) (activities.CloseSessionResult, error) {
	h.mu.Lock()
	h.record = in
	h.mu.Unlock()
	return activities.CloseSessionResult{}, h.call("close")
}

// input is the plan of the docs, changed.
func input(t testing.TB, change func(*plan.Plan)) json.RawMessage {
	t.Helper()
	data, err := os.ReadFile("plan/testdata/plan.yaml")
	require.NoError(t, err)
	raw, err := goal.FromYAML(data)
	require.NoError(t, err)
	var p plan.Plan
	require.NoError(t, strict.Unmarshal(raw, &p))
	if change != nil {
		change(&p)
	}
	raw, err = json.Marshal(p)
	require.NoError(t, err)
	return raw
}

func (h *host) run(raw json.RawMessage) {
	h.ExecuteWorkflow(workflows.TypeReleaseSession, raw, nil)
	require.True(h.t, h.IsWorkflowCompleted())
}

func (h *host) result() policy.State {
	h.t.Helper()
	require.NoError(h.t, h.GetWorkflowError())
	var s policy.State
	require.NoError(h.t, h.GetWorkflowResult(&s))
	return s
}
