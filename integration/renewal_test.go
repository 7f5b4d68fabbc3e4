package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

// Public report A30: messages that arrive around a continue-as-new are neither lost nor taken twice. Signals are taken in the
// order sent, updates in the order accepted.
func TestPublic_A30_thirty_signals_and_thirty_updates_across_a_continue_as_new(t *testing.T) {
	const each, inFlight = 30, 10
	s := start(t)
	s.browserWorker(t, "renewal", fault{})
	conversation := s.conversation(t, `
replies:
  - - text: working
    - gate: never
    - text: '{{receipt "CONTINUE" "one" "more to do"}}'
`)
	began := time.Now()
	run := s.start(t, conversation, s.input(conversation, "renewal"))
	id, ctx := run.GetID(), context.Background()
	s.until(t, id, "observing", func(st policy.State) bool { return st.Turns == 1 })
	require.NoError(t, s.client.SignalWorkflow(ctx, id, "", workflows.SignalUpgrade, nil))

	// A run continues as new when it is ten seconds old: the messages are spread around that.
	time.Sleep(time.Until(began.Add(8500 * time.Millisecond)))
	payload := func(kind string, i int) map[string]any {
		return map[string]any{"operator": "me", "reason": "test", "request_id": fmt.Sprintf("%s%02d", kind, i)}
	}
	var wait sync.WaitGroup
	var answers [each]machine.Answer
	var failures [each]error
	wait.Add(2)
	go func() {
		defer wait.Done()
		for i := range each {
			if failures[i] = s.client.SignalWorkflow(ctx, id, "", workflows.MessagePause, payload("s", i)); failures[i] != nil {
				return
			}
			time.Sleep(120 * time.Millisecond)
		}
	}()
	slots := make(chan struct{}, inFlight)
	go func() {
		defer wait.Done()
		for i := range each {
			slots <- struct{}{}
			handle := s.accepted(ctx, id, fmt.Sprintf("u%02d", i), payload("u", i))
			wait.Add(1)
			go func() {
				defer func() { <-slots; wait.Done() }()
				for range 20 {
					if handle == nil || handle.Get(ctx, &answers[i]) == nil {
						return
					}
					handle = s.accepted(ctx, id, fmt.Sprintf("u%02d", i), payload("u", i))
				}
			}()
			time.Sleep(120 * time.Millisecond)
		}
	}()
	wait.Wait()
	for i := range each {
		require.NoError(t, failures[i])
		require.Contains(t, []kernel.Verdict{kernel.Accept, kernel.NoOp}, answers[i].Decision, "update %d", i)
	}

	var journal []machine.Entry
	require.Eventually(t, func() bool {
		answer, err := s.client.QueryWorkflow(ctx, id, "", workflows.QueryJournal)
		return err == nil && answer.Get(&journal) == nil && len(taken(journal, "s")) == each
	}, 20*time.Second, 100*time.Millisecond)
	want := func(kind string) (ids []string) {
		for i := range each {
			ids = append(ids, fmt.Sprintf("%s%02d", kind, i))
		}
		return ids
	}
	require.Equal(t, want("s"), taken(journal, "s"))
	require.Equal(t, want("u"), taken(journal, "u"))
	boundary := slices.IndexFunc(journal, func(e machine.Entry) bool { return e.Event == "stalled_round_observed" })
	require.Positive(t, boundary, "the run did not continue as new among the messages")
	before, after := journal[:boundary], journal[boundary:]
	for _, kind := range []string{"s", "u"} {
		require.NotEmpty(t, taken(before, kind))
		require.NotEmpty(t, taken(after, kind))
	}
	described, err := s.client.DescribeWorkflowExecution(ctx, id, "")
	require.NoError(t, err)
	require.NotEqual(t, run.GetRunID(), described.GetWorkflowExecutionInfo().GetExecution().GetRunId())
	state := s.state(t, id)
	require.NotNil(t, state.Paused)
	require.Len(t, s.lab.Record(conversation), 1)
}

// accepted sends an update until it is accepted: the same update id is the same update.
func (s *stack) accepted(ctx context.Context, id, update string, payload map[string]any) client.WorkflowUpdateHandle {
	for range 50 {
		handle, err := s.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			UpdateID: update, WorkflowID: id, UpdateName: workflows.MessagePause, Args: []any{payload},
			WaitForStage: client.WorkflowUpdateStageAccepted,
		})
		if err == nil {
			return handle
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// taken are the request ids of one kind in the order in which they were decided.
func taken(journal []machine.Entry, kind string) (ids []string) {
	for _, e := range journal {
		if strings.HasPrefix(e.RequestID, kind) {
			ids = append(ids, e.RequestID)
		}
	}
	return ids
}
