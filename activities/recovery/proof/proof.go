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
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

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

// Look starts the acceptance run of the key when there is none, and looks at it until enough says that there is something to
// judge, the run has ended, or patience is over.
func (p Proof) Look(ctx context.Context, key string, run plan.AcceptanceRun, patience time.Duration, enough func(Seen) bool) (Seen, error) {
	site, err := p.Sites.Site(run.Site)
	if err != nil {
		return Seen{}, fmt.Errorf("the acceptance run cannot be started: %w", err)
	}
	raw, err := json.Marshal(p.goal(key, run, max(site.Timings.MinInterval, restartTime)))
	if err != nil {
		return Seen{}, err
	}
	start, problems := admission.Resolve(raw, p.Sites, p.Host)
	if len(problems) > 0 {
		return Seen{}, fmt.Errorf("the acceptance run cannot be started: %s", problems[0])
	}
	seen := Seen{WorkflowID: start.WorkflowID, Status: "started", Open: true}
	if err := p.start(ctx, start.WorkflowID, key, raw); err != nil {
		return seen, err
	}
	for deadline := time.Now().Add(patience); ; {
		now, err := p.look(ctx, start.WorkflowID, key)
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

// restartTime lies between two turns at least: the restart of the proof begins in it, so that no message is on its way then.
const restartTime = 5 * time.Second

func (p Proof) goal(key string, run plan.AcceptanceRun, pace time.Duration) goal.Goal {
	target := goal.Target{Site: run.Site, Browser: run.Browser, ConversationURL: run.ConversationURL}
	if run.ConversationURL == "" {
		target.New = &goal.NewConversation{Key: key, PageURL: run.PageURL}
	}
	interval := goal.Duration(pace)
	return goal.Goal{
		Continuation: goal.Continuation{MinInterval: &interval},
		Objective:    run.Objective, Outcome: "Acceptance run of a release", Scope: "release:" + key, Target: target,
		Completion: goal.Completion{Host: p.Host, Checks: []goal.Check{{Name: "session", File: &goal.File{Path: p.Evidence}}}},
	}
}

// memoKey names the memo of an acceptance run that says whose it is: a conversation may serve more than one session.
const memoKey = "steward_acceptance"

// errForeign is wrapped when the last run of the conversation is not the one of the key.
var errForeign = errors.New("the last run of the conversation is not this session's acceptance run")

// start starts the run of the key once: one that exists or has ended is not started again.
func (p Proof) start(ctx context.Context, id, key string, raw json.RawMessage) error {
	_, err := p.describe(ctx, id, key)
	var none *serviceerror.NotFound
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &none) && !errors.Is(err, errForeign):
		return err
	}
	_, err = p.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueRun, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		StaticSummary:            "Acceptance run of a release", Memo: map[string]any{memoKey: key},
	}, workflows.TypeWorkflowRun, raw)
	if err != nil {
		return fmt.Errorf("start the acceptance run %s: %w", id, err)
	}
	return nil
}

// describe is the last run of the id; errForeign when that is not the one of the key.
func (p Proof) describe(ctx context.Context, id, key string) (*workflowpb.WorkflowExecutionInfo, error) {
	described, err := p.Client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, err
	}
	info := described.GetWorkflowExecutionInfo()
	var owner string
	if memo := info.GetMemo().GetFields()[memoKey]; memo != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(memo, &owner); err != nil {
			return info, fmt.Errorf("the memo of %s: %w", id, err)
		}
	}
	if owner != key {
		return info, fmt.Errorf("%w: %s", errForeign, id)
	}
	return info, nil
}

// look reads the run of the key. One of a new conversation goes on under the conversation's own id.
func (p Proof) look(ctx context.Context, id, key string) (Seen, error) {
	info, err := p.describe(ctx, id, key)
	if err != nil {
		return Seen{WorkflowID: id}, err
	}
	state, err := p.state(ctx, id)
	if err != nil {
		return Seen{WorkflowID: id}, err
	}
	if next := state.HandedTo(); next != "" {
		id = next
		described, err := p.Client.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return Seen{WorkflowID: id}, err
		}
		if state, err = p.state(ctx, id); err != nil {
			return Seen{WorkflowID: id}, err
		}
		info = described.GetWorkflowExecutionInfo()
	}
	seen := Seen{WorkflowID: id, Open: info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	seen.Status, seen.Turns = string(state.Shown()), Turns(state.Chain())
	if state.Goal != nil && state.Goal.Continuation.MinInterval != nil {
		seen.MinInterval = state.Goal.Continuation.MinInterval.Std()
	}
	return seen, nil
}

func (p Proof) state(ctx context.Context, id string) (policy.State, error) {
	var state policy.State
	value, err := p.Client.QueryWorkflow(ctx, id, "", workflows.QueryState)
	if err != nil {
		return state, err
	}
	return state, value.Get(&state)
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
