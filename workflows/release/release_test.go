package release_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
	"steward/workflows/release/policy"
)

func workflowOptions() client.StartWorkflowOptions {
	return client.StartWorkflowOptions{ID: workflowID, TaskQueue: workflows.QueueRecovery("here")}
}

func manual(p *plan.Plan) { p.Cutover = plan.Manual }

func TestAReleaseBecomesKnownGood(t *testing.T) {
	h := newHost(t)
	h.run(input(t, func(p *plan.Plan) {
		p.Soak.LiveProof = plan.LiveProof{Kind: plan.ProofSteward, Steward: &plan.AcceptanceRun{Site: "chatlab"}}
	}))
	s := h.result()
	require.Equal(t, policy.KnownGood, s.Phase)
	require.Equal(t, map[string]int{
		"admit": 1, "freeze": 1, "build": 1, "gate:source": 4, "boot": 1, "gate:candidate": 5, "stop": 1, "verify": 2, "cutover": 1,
		"reconcile": 12, "windows": 6, "proof": 2, "restart": 1, "bundle": 1, "close": 1,
	}, h.calls)
	require.Equal(t, "known_good", h.record.Record.Phase)
	require.Equal(t, policy.SessionID(workflowID, "default-test-run-id"), s.Session)
}

func TestARefusedStartIsATypedFailureWithItsState(t *testing.T) {
	h := newHost(t)
	h.run([]byte(`{"instance":"shop","what":1}`))
	var failed *temporal.ApplicationError
	require.ErrorAs(t, h.GetWorkflowError(), &failed)
	require.Equal(t, workflows.FailureStartRefused, failed.Type())
	require.True(t, failed.NonRetryable())
	var s policy.State
	require.NoError(t, failed.Details(&s))
	require.Greater(t, len(s.End.Problems), 5)
	require.Zero(t, h.count("close"), "there is no session to record")
}

func TestAFailedGateEndsTypedAndRecorded(t *testing.T) {
	h := newHost(t)
	h.gate = func(in activities.GateInput, out *activities.GateResult) {
		if in.Name == "supervisor" {
			out.Receipt.Outcome, out.Receipt.ExitCode = evidence.Failed, 3
		}
	}
	h.run(input(t, nil))
	var failed *temporal.ApplicationError
	require.ErrorAs(t, h.GetWorkflowError(), &failed)
	require.Equal(t, policy.CodeCanaryFailed, failed.Type())
	require.Zero(t, h.count("cutover"))
	require.Equal(t, policy.CodeCanaryFailed, h.record.Record.Code)
	require.NotEmpty(t, h.record.Receipts)
}

func TestAGateRunsWithTheRunnerOfItsPlace(t *testing.T) {
	h := newHost(t)
	places := map[string]string{}
	h.gate = func(in activities.GateInput, _ *activities.GateResult) { places[in.Name] = in.Place }
	h.run(input(t, nil))
	require.Equal(t, policy.KnownGood, h.result().Phase)
	require.Equal(t, activities.PlaceSource, places["type"])
	require.Equal(t, activities.PlaceCandidate, places["recovery_restart"])
	require.Equal(t, activities.PlaceActive, places["live_proof"])
}

func TestAnUnclearCutoverIsReadNotRepeated(t *testing.T) {
	h := newHost(t)
	h.fail["cutover"] = errors.New("connection reset")
	h.run(input(t, nil))
	var failed *temporal.ApplicationError
	require.ErrorAs(t, h.GetWorkflowError(), &failed)
	require.Equal(t, policy.CodeNotApplied, failed.Type())
	require.Equal(t, 1, h.count("cutover"))
	require.Positive(t, h.count("reconcile"))
}

func TestACutoverThatWentBackItselfIsRolledBack(t *testing.T) {
	h := newHost(t)
	h.cutover = func(out *activities.OperationResult) {
		out.Lane.Authority.LastOperation = evidence.Operation{Kind: evidence.KindRollback, Session: policy.SessionID(workflowID, "default-test-run-id")}
		out.Failed = &activities.ReleaseFailure{Code: "not_ready"}
	}
	h.run(input(t, nil))
	s := h.result()
	require.Equal(t, policy.RolledBack, s.Phase)
	require.Equal(t, "not_ready", s.End.Code)
	require.Zero(t, h.count("rollback"))
}

func TestPromoteBySignalAndAbortByUpdate(t *testing.T) {
	h := newHost(t)
	h.RegisterDelayedCallback(func() {
		h.SignalWorkflow(workflows.MessagePromote, map[string]any{"operator": "o"}) // no reason: malformed, changes nothing
		h.SignalWorkflow(workflows.MessagePromote, map[string]any{"operator": "o", "reason": "looks good"})
	}, time.Hour)
	var answer machine.Answer
	h.RegisterDelayedCallback(func() {
		h.UpdateWorkflow(workflows.MessageAbort, "abort-1", h.updated(&answer), map[string]any{"operator": "o", "reason": "second thoughts"})
	}, time.Hour+5*time.Minute)
	h.run(input(t, manual))
	require.Equal(t, kernel.Accept, answer.Decision)
	require.Equal(t, string(policy.Soaking), answer.Status)
	s := h.result()
	require.Equal(t, policy.RolledBack, s.Phase)
	require.Equal(t, policy.CodeAborted, s.End.Code)
	require.Equal(t, 1, h.count("rollback"))
}

func TestCancelEndsTheReleaseAsCancelled(t *testing.T) {
	h := newHost(t)
	h.RegisterDelayedCallback(h.CancelWorkflow, time.Hour)
	h.run(input(t, manual))
	require.True(t, temporal.IsCanceledError(h.GetWorkflowError()), "%v", h.GetWorkflowError())
	require.Zero(t, h.count("cutover"))
	require.Equal(t, 1, h.count("close"))
}

func TestWhatAnOperatorSees(t *testing.T) {
	h := newHost(t)
	h.RegisterDelayedCallback(func() {
		value, err := h.QueryWorkflow(workflows.QueryWhy)
		require.NoError(t, err)
		var why policy.Why
		require.NoError(t, value.Get(&why))
		require.Equal(t, "cutover_eligible", why.Phase)
		require.Equal(t, "promote", why.Attention.Class)
		require.Equal(t, "steward release promote release:shop --reason …", why.Attention.Command)

		value, err = h.QueryWorkflow(workflows.QueryReceipts)
		require.NoError(t, err)
		var receipts []evidence.Receipt
		require.NoError(t, value.Get(&receipts))
		require.Len(t, receipts, 10)

		value, err = h.QueryWorkflow("__temporal_workflow_metadata")
		require.NoError(t, err)
		var metadata sdkpb.WorkflowMetadata
		require.NoError(t, value.Get(&metadata))
		require.Contains(t, metadata.GetCurrentDetails(), "**Needs a person** (`promote`")
		require.Contains(t, metadata.GetCurrentDetails(), "| B, isolated | `bbbb1111`")
		h.CancelWorkflow()
	}, time.Hour)
	h.run(input(t, manual))
}

// updated takes the answer of an update.
func (h *host) updated(answer *machine.Answer) *updateAnswer { return &updateAnswer{h, answer} }

type updateAnswer struct {
	h      *host
	answer *machine.Answer
}

func (u *updateAnswer) Accept()          {}
func (u *updateAnswer) Reject(err error) { require.NoError(u.h.t, err) }
func (u *updateAnswer) Complete(success any, err error) {
	require.NoError(u.h.t, err)
	*u.answer = success.(machine.Answer)
}
