package integration

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"steward/integration/chatlab"
	"steward/workflows/run/policy"
)

// histories is where the replay tests of WorkflowRun find what is recorded here, by rules version.
const histories = "../workflows/run/testdata/histories/v1"

// recordings are the scenarios; play drives one to the point where its history is worth keeping.
var recordings = []struct {
	name, scenario string
	change         func(s *stack, in map[string]any)
	fault          fault
	play           func(t *testing.T, s *stack, p *browserProcess, conversation, id string)
}{
	{name: "continue_continue_done", scenario: `
replies:
  - - text: '{{receipt "CONTINUE" "one" "more to do"}}'
  - - text: '{{receipt "CONTINUE" "two" "more to do"}}'
  - - text: '{{receipt "DONE" "three" "all is well"}}'
`},
	{name: "protocol_corrections", scenario: "replies:\n  - - text: DONE\n  - - text: I am continuing.\n" + done},
	{name: "rejected_done_then_needs_user", scenario: `
replies:
  - - text: '{{receipt "DONE" "claimed" "all is well"}}'
  - - text: '{{needs_user "blocked" "no password" "credentials" "Give me the password" "I looked for it"}}'
  - - write_file: {path: recorded.md, content: "green"}
    - text: '{{receipt "DONE" "green" "all is well"}}'
`, change: func(s *stack, in map[string]any) {
		in["completion"] = map[string]any{"checks": []any{map[string]any{"name": "report", "file": map[string]any{"path": s.dir + "/recorded.md"}}}}
	}, play: func(t *testing.T, s *stack, _ *browserProcess, _, id string) {
		state := s.until(t, id, "waiting for its user", func(st policy.State) bool { return st.Status == policy.WaitingForUser })
		s.update(t, id, "resume", map[string]any{"operator": "me", "reason": "done", "answers": state.Completion.ID, "note": "it is in place"})
	}},
	{name: "paused_resumed_and_stopped", scenario: `
replies:
  - - gate: go
    - text: '{{receipt "CONTINUE" "one" "more to do"}}'
  - - gate: never
    - text: '{{receipt "CONTINUE" "two" "more to do"}}'
`, play: func(t *testing.T, s *stack, _ *browserProcess, conversation, id string) {
		s.until(t, id, "observing", func(st policy.State) bool { return st.Turns == 1 })
		s.update(t, id, "pause", map[string]any{"operator": "me", "reason": "lunch"})
		require.NoError(t, s.lab.Release(conversation, "go"))
		s.until(t, id, "in its second round", func(st policy.State) bool { return st.Budgets.Rounds == 1 })
		require.Len(t, s.lab.Record(conversation), 1)
		s.update(t, id, "resume", map[string]any{"operator": "me", "reason": "back"})
		s.until(t, id, "observing again", func(st policy.State) bool { return st.Turns == 2 })
		s.update(t, id, "stop", map[string]any{"operator": "me", "reason": "enough"})
	}},
	{name: "unknown_found_by_its_marker", scenario: oneTurn, fault: fault{"clicked", syscall.SIGKILL}, play: restarted},
	{name: "lost_before_arming_and_sent_again", scenario: oneTurn, fault: fault{"before_arm", syscall.SIGKILL}, play: restarted},
	{
		name: "unknown_blocked_then_not_applied", scenario: oneTurn, fault: fault{"armed", syscall.SIGKILL},
		play: func(t *testing.T, s *stack, p *browserProcess, _, id string) {
			restarted(t, s, p, "", id)
			state := s.until(t, id, "blocked", func(st policy.State) bool { return st.Blocker != nil })
			s.update(t, id, "not_applied", map[string]any{
				"effect_id": state.Effect.ID, "generation": 1, "operator": "me", "reason": "I looked",
			})
		},
	},
	{name: "continued_as_new", scenario: `
replies:
  - - text: '{{receipt "CONTINUE" "one" "more to do"}}'
  - - gate: go
    - text: '{{receipt "CONTINUE" "two" "more to do"}}'
` + done, play: func(t *testing.T, s *stack, _ *browserProcess, conversation, id string) {
		s.until(t, id, "in its second turn", func(st policy.State) bool { return st.Turns == 2 })
		require.NoError(t, s.client.SignalWorkflow(context.Background(), id, "", "upgrade", map[string]any{}))
		require.Eventually(t, func() bool {
			d, err := s.client.DescribeWorkflowExecution(context.Background(), id, "")
			return err == nil && d.GetWorkflowExecutionInfo().GetFirstRunId() != d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
		}, time.Minute, 200*time.Millisecond, "the run does not continue as new")
		require.NoError(t, s.lab.Release(conversation, "go"))
	}},
	{name: "handed_off_to_a_new_scope", scenario: gated, play: func(t *testing.T, s *stack, _ *browserProcess, conversation, id string) {
		state := s.until(t, id, "working", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
		s.submit(t, id, "semantic_disposition_submitted", map[string]any{
			"effect_id": state.Effect.ID, "disposition": "handoff", "scope": "goal:second", "objective": "Write the second report.",
		})
		require.NoError(t, s.lab.Release(conversation, "go"))
		s.until(t, id, "in its second scope", func(st policy.State) bool { return st.Scope == "goal:second" })
	}},
	{name: "rebound", scenario: gated, play: func(t *testing.T, s *stack, _ *browserProcess, conversation, id string) {
		s.until(t, id, "working", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
		to := s.conversation(t, done)
		s.submit(t, id, "conversation_rebound", map[string]any{"conversation_url": s.lab.ConversationURL(to), "operator": "me"})
		require.NoError(t, s.lab.Release(conversation, "go"))
		next := s.until(t, id, "handed off", func(st policy.State) bool { return st.Status == policy.HandedOff }).Succession.Successor
		s.result(t, s.client.GetWorkflow(context.Background(), next, ""))
		s.save(t, next, "", "rebound_successor")
	}},
	{name: "unknown_superseded", scenario: oneTurn, fault: fault{"armed", syscall.SIGKILL}, play: func(t *testing.T, s *stack, p *browserProcess, _, id string) {
		restarted(t, s, p, "", id)
		state := s.until(t, id, "blocked", func(st policy.State) bool { return st.Blocker != nil })
		s.update(t, id, "supersede", map[string]any{
			"effect_id": state.Effect.ID, "operator": "me", "reason": "a second message is all right", "accept_duplicate": true,
		})
	}},
	{
		name: "usage_limit_waited_out", scenario: "page: {state: {kind: usage_limit, for: 120s}}\n" + done, // the page says the minute
		play: func(t *testing.T, s *stack, _ *browserProcess, conversation, id string) {
			s.until(t, id, "waiting for the limit", func(st policy.State) bool { return st.Effect.Deferral != nil })
			require.Empty(t, s.lab.Record(conversation))
			require.NoError(t, s.lab.SetState(conversation, chatlab.State{}))
			s.until(t, id, "sending after the limit", func(st policy.State) bool { return st.Turns == 1 })
			require.Len(t, s.lab.Record(conversation), 1)
		},
	},
	{name: "repeated_state_and_a_note", scenario: `
replies:
  - times: 3
    steps: [{text: '{{receipt "CONTINUE" "the same" "more to do"}}'}]
` + done, change: func(_ *stack, in map[string]any) {
		in["continuation"] = map[string]any{"stagnation_after": 1, "max_repeated_state": 2}
	}, play: func(t *testing.T, s *stack, _ *browserProcess, _, id string) {
		state := s.until(t, id, "blocked", func(st policy.State) bool { return st.Blocker != nil })
		s.update(t, id, "resume", map[string]any{"operator": "me", "reason": "I looked", "answers": state.Blocker.ID, "note": "Use the other API."})
	}},
	{name: "stopped_with_an_interrupt", scenario: gated, play: func(t *testing.T, s *stack, _ *browserProcess, conversation, id string) {
		s.until(t, id, "working", func(st policy.State) bool { return !st.Effect.AppliedAt.IsZero() })
		require.NoError(t, s.lab.AwaitGate(t.Context(), conversation, "go"))
		s.update(t, id, "stop", map[string]any{"operator": "me", "reason": "enough", "interrupt": true})
	}},
}

func restarted(t *testing.T, s *stack, p *browserProcess, _, id string) {
	p.hit(t)
	s.recover(t, p, id, syscall.SIGKILL)
}

// TestRecordHistories writes the fixtures of the replay tests; see CONTRIBUTING.md before running it.
func TestRecordHistories(t *testing.T) {
	if os.Getenv("STEWARD_RECORD_HISTORIES") == "" {
		t.Skip("writes fixtures; set STEWARD_RECORD_HISTORIES=1")
	}
	s := start(t)
	require.NoError(t, os.MkdirAll(histories, 0o755))
	for _, r := range recordings {
		t.Run(r.name, func(t *testing.T) {
			conversation := s.conversation(t, r.scenario)
			p := s.browserWorker(t, "record-"+r.name, r.fault)
			in := s.input(conversation, "record-"+r.name)
			if r.change != nil {
				r.change(s, in)
			}
			run := s.start(t, conversation, in)
			if r.play != nil {
				r.play(t, s, p, conversation, run.GetID())
			}
			last := s.client.GetWorkflow(context.Background(), run.GetID(), "")
			s.result(t, last)
			s.save(t, run.GetID(), run.GetRunID(), r.name)
			if last.GetRunID() != run.GetRunID() {
				s.save(t, run.GetID(), last.GetRunID(), r.name+"_2")
			}
		})
	}
}

func (s *stack) save(t *testing.T, id, run, name string) {
	t.Helper()
	data, err := s.history(id, run)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(histories, name+".json"), data, 0o600))
}

// history is the whole history of a run, as the replay tests read it.
func (s *stack) history(id, run string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var history historypb.History
	events := s.client.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, err
		}
		history.Events = append(history.Events, e)
	}
	data, err := protojson.MarshalOptions{Indent: " "}.Marshal(&history)
	return append(data, '\n'), err
}
