package proof

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"steward/workflows/release/evidence"
	"steward/workflows/run/policy"
)

func TestLedgerBecomesACausalChain(t *testing.T) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	got := Turns([]policy.LedgerTurn{
		{
			Effect: "fx_1", Generation: 1, Dispatched: at, Applied: at, Committed: at, Action: "CONTINUE", Receipt: "r1",
			Release: "b", Incarnation: 4,
		},
		{Effect: "fx_2", Generation: 2, Dispatched: at, Release: "b", Incarnation: 5},
		{Effect: "fx_3", Generation: 1},
	})
	want := []evidence.Turn{
		{
			Effect: "fx_1", Generation: 1, Dispatches: 1, Dispatched: at, Applied: at, Committed: at, Action: "CONTINUE", Completion: "r1",
			Release: "b", Incarnation: 4,
		},
		{Effect: "fx_2", Source: "fx_1", Generation: 2, Dispatches: 2, Dispatched: at, Release: "b", Incarnation: 5},
		{Effect: "fx_3", Source: "fx_2", Generation: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// lastRun is a client that knows one run at most.
type lastRun struct {
	client.Client
	err     error
	memo    string
	started []client.StartWorkflowOptions
}

func (l *lastRun) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if l.err != nil {
		return nil, l.err
	}
	info := &workflowpb.WorkflowExecutionInfo{}
	if l.memo != "" {
		value, err := converter.GetDefaultDataConverter().ToPayload(l.memo)
		if err != nil {
			return nil, err
		}
		info.Memo = &commonpb.Memo{Fields: map[string]*commonpb.Payload{memoKey: value}}
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

func (l *lastRun) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, _ ...any) (client.WorkflowRun, error) {
	l.started = append(l.started, o)
	return nil, nil
}

// A conversation may serve the acceptance runs of many sessions, one after the other; each session starts its own once.
func TestASessionStartsItsRunOnce(t *testing.T) {
	unreachable := errors.New("unreachable")
	for name, c := range map[string]struct {
		last  lastRun
		start bool
		err   error
	}{
		"none yet":            {lastRun{err: serviceerror.NewNotFound("")}, true, nil},
		"its own":             {lastRun{memo: "mine"}, false, nil},
		"another session's":   {lastRun{memo: "theirs"}, true, nil},
		"of a person":         {lastRun{}, true, nil},
		"nobody can tell now": {lastRun{err: unreachable}, false, unreachable},
	} {
		err := Proof{Client: &c.last}.start(t.Context(), "run:site:c", "mine", nil)
		if !errors.Is(err, c.err) || (len(c.last.started) == 1) != c.start {
			t.Errorf("%s: %d starts, %v", name, len(c.last.started), err)
		}
		if c.start && c.last.started[0].Memo[memoKey] != "mine" {
			t.Errorf("%s: started with the memo %v", name, c.last.started[0].Memo)
		}
	}
	if _, err := (Proof{Client: &lastRun{memo: "theirs"}}).look(t.Context(), "run:site:c", "mine"); !errors.Is(err, errForeign) {
		t.Errorf("the run of another session was looked at: %v", err)
	}
}

// twoRuns is a client that knows the run of a new conversation and the one that goes on for it.
type twoRuns struct {
	lastRun
	states map[string]policy.State
}

func (r *twoRuns) QueryWorkflow(_ context.Context, id, _, _ string, _ ...any) (converter.EncodedValue, error) {
	payload, err := converter.GetDefaultDataConverter().ToPayloads(r.states[id])
	return client.NewValue(payload), err
}

func TestTheRunOfANewConversationIsFollowed(t *testing.T) {
	const first, next = "run:site:new:k", "run:site:c"
	moved := policy.State{Status: policy.HandedOff, Succession: &policy.Succession{Successor: next}}
	runs := &twoRuns{lastRun{memo: "k"}, map[string]policy.State{first: moved, next: {Status: policy.Dispatched, Ledger: []policy.LedgerTurn{{Effect: "fx_1"}}}}}
	seen, err := Proof{Client: runs}.look(t.Context(), first, "k")
	if err != nil || seen.WorkflowID != next || seen.Status != "dispatched" || len(seen.Turns) != 1 {
		t.Errorf("%+v, %v", seen, err)
	}
}
