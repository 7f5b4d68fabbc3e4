// Package proof lets Steward prove of itself that the active release does its work: a disposable acceptance run whose ledger
// shows CONTINUE, CONTINUE, DONE over a restart.
package proof

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"steward/activities/admission"
	"steward/config/sites"
	"steward/workflows"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
)

// Proof starts acceptance runs and reads their ledgers.
type Proof struct {
	Client client.Client
	Sites  *sites.Registry
	// Host is where the completion check of the run is carried out.
	Host string
	// Evidence is a file that exists as long as the session does: the completion check of the run. A DONE needs one.
	Evidence string
}

// Seen is one look at an acceptance run.
type Seen struct {
	WorkflowID  string
	Status      string
	Open        bool
	Turns       []evidence.Turn
	MinInterval time.Duration
}

// lookEvery is the time between two looks at a run that goes on.
const lookEvery = 500 * time.Millisecond

// Look starts the acceptance run with the key when it does not exist, and looks at it until enough says that there is
// something to judge, the run has ended, or patience is over.
func (p Proof) Look(ctx context.Context, key string, run plan.AcceptanceRun, patience time.Duration, enough func(Seen) bool) (Seen, error) {
	raw, err := json.Marshal(p.goal(key, run))
	if err != nil {
		return Seen{}, err
	}
	start, problems := admission.Resolve(raw, p.Sites, p.Host)
	if len(problems) > 0 {
		return Seen{}, fmt.Errorf("the acceptance run cannot be started: %s", problems[0])
	}
	seen := Seen{WorkflowID: start.WorkflowID, Status: "started", Open: true}
	if err := p.start(ctx, start.WorkflowID, raw); err != nil {
		return seen, err
	}
	for deadline := time.Now().Add(patience); ; {
		now, err := p.look(ctx, start.WorkflowID)
		if err == nil {
			seen = now
		}
		if err == nil && (!seen.Open || enough(seen)) || time.Now().After(deadline) {
			return seen, err
		}
		select {
		case <-ctx.Done():
			return seen, context.Cause(ctx)
		case <-time.After(lookEvery):
		}
	}
}

func (p Proof) goal(key string, run plan.AcceptanceRun) goal.Goal {
	return goal.Goal{
		Objective: run.Objective, Outcome: "Acceptance run of a release",
		Target:     goal.Target{Site: run.Site, Browser: run.Browser, New: &goal.NewConversation{Key: key, PageURL: run.PageURL}},
		Completion: goal.Completion{Host: p.Host, Checks: []goal.Check{{Name: "session", File: &goal.File{Path: p.Evidence}}}},
	}
}

// start starts a run once: one that exists or has ended is not started again.
func (p Proof) start(ctx context.Context, id string, raw json.RawMessage) error {
	_, err := p.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueRun, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		StaticSummary:            "Acceptance run of a release",
	}, workflows.TypeWorkflowRun, raw)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if err != nil && !errors.As(err, &already) {
		return fmt.Errorf("start the acceptance run %s: %w", id, err)
	}
	return nil
}

func (p Proof) look(ctx context.Context, id string) (Seen, error) {
	seen := Seen{WorkflowID: id}
	described, err := p.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return seen, err
	}
	seen.Open = described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	value, err := p.Client.QueryWorkflow(ctx, id, "", workflows.QueryState)
	if err != nil {
		return seen, err
	}
	var state policy.State
	if err := value.Get(&state); err != nil {
		return seen, err
	}
	seen.Status, seen.Turns = string(state.Shown()), Turns(state.Chain())
	if state.Goal != nil && state.Goal.Continuation.MinInterval != nil {
		seen.MinInterval = state.Goal.Continuation.MinInterval.Std()
	}
	return seen, nil
}

// Turns is the ledger of a run as evidence. Each turn continues the one before it.
func Turns(ledger []policy.LedgerTurn) []evidence.Turn {
	var turns []evidence.Turn
	source := ""
	for _, t := range ledger {
		dispatches := t.Generation
		if t.Dispatched.IsZero() {
			dispatches = 0
		}
		turns = append(turns, evidence.Turn{
			Effect: t.Effect, Source: source, Generation: t.Generation, Action: t.Action, Completion: t.Receipt, Dispatches: dispatches,
			Dispatched: t.Dispatched, Applied: t.Applied, Committed: t.Committed, Release: t.Release, Incarnation: t.Incarnation,
		})
		source = cmp.Or(t.Effect, source)
	}
	return turns
}
