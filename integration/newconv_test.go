package integration

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/integration/chatlab"
	"steward/workflows/run/policy"
)

// project makes a project whose new conversations are scripted so, and returns the address of its page.
func (s *stack) project(t *testing.T, name, scenario string) string {
	t.Helper()
	sc, err := chatlab.ParseScenario([]byte(scenario))
	require.NoError(t, err)
	require.NoError(t, s.lab.SetNew(name, sc))
	return s.lab.URL() + "/g/" + name + "/project"
}

// create starts a run whose first message creates its conversation.
func (s *stack) create(t *testing.T, key, page, browser string) client.WorkflowRun {
	t.Helper()
	return s.start(t, "new:"+key, s.input("", browser, func(in map[string]any) {
		in["target"] = map[string]any{"site": "chatlab", "browser": browser, "new": map[string]any{"key": key, "page_url": page}}
	}))
}

// successor follows a run that was handed over.
func (s *stack) successor(t *testing.T, run client.WorkflowRun) policy.State {
	t.Helper()
	state := s.result(t, run)
	require.Equal(t, policy.HandedOff, state.Status)
	require.Equal(t, policy.SuccessionBootstrap, state.Succession.Kind)
	next := s.client.GetWorkflow(context.Background(), state.Succession.Successor, "")
	t.Cleanup(func() { _ = s.client.TerminateWorkflow(context.Background(), next.GetID(), "", "the test is over") })
	return s.result(t, next)
}

// in counts the user messages of a project's conversations, by conversation.
func (s *stack) in(project string) map[string]int {
	messages := map[string]int{}
	for _, c := range s.lab.Conversations() {
		if c.Project == project {
			messages[c.ID] = c.Received
		}
	}
	return messages
}

func TestANewConversationIsCreatedBoundAndWorkedOn(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.browserWorker(t, "created", fault{})
	const name = "g-p-00000000000000aa-created"
	page := s.project(t, name, `{page: {provisional: 1s}, replies: [[{text: '{{receipt "CONTINUE" "one" "more to do"}}'}], [{text: '{{receipt "DONE" "two" "ready"}}'}]]}`)
	run := s.create(t, "created", page, "created")
	first := s.result(t, run)
	require.Equal(t, "run:chatlab:new:created", first.WorkflowID)
	state := s.successor(t, run)
	require.Equal(t, policy.GoalComplete, state.Status)
	require.Equal(t, []any{first.TaskID, first.RelayScopeID, "goal:created", 2}, []any{state.TaskID, state.RelayScopeID, state.Scope, state.ClaimGeneration})
	require.Equal(t, "run:chatlab:"+state.Site.ConversationID, state.WorkflowID)
	require.Equal(t, s.lab.ConversationURL(state.Site.ConversationID), state.Site.ConversationURL)
	require.Equal(t, map[string]int{state.Site.ConversationID: 2}, s.in(name), "one conversation, a message for each turn")
	records := s.lab.Record(state.Site.ConversationID)
	require.Contains(t, records[0].Text, "conversation_id: new:created\n")
	require.Contains(t, records[1].Text, "conversation_id: "+state.Site.ConversationID+"\n")
	require.Equal(t, []policy.EffectKind{policy.KindBootstrap, policy.KindContinuation}, kinds(state))
	require.Equal(t, 2, state.Turns)
}

func kinds(s policy.State) (kinds []policy.EffectKind) {
	for _, t := range s.Chain() {
		kinds = append(kinds, t.Kind)
	}
	return kinds
}

// creationRounds of each fault.
func creationRounds() int {
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		return 20
	}
	return 1
}

func TestFaultsOfABootstrapNeverCreateTwoConversations(t *testing.T) {
	for i, f := range faults {
		if f.signal != syscall.SIGKILL {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			for round := range creationRounds() {
				name, key := fmt.Sprintf("g-p-0000000000fa%x%03x-fault", i, round), fmt.Sprintf("born-%d-%d", i, round)
				page := s.project(t, name, `page: {provisional: 300ms}`+oneTurn)
				p := s.browserWorker(t, key, fault{f.point, f.signal})
				run := s.create(t, key, page, key)
				p.hit(t)
				s.recover(t, p, run.GetID(), f.signal)
				if f.applied {
					state := s.successor(t, run)
					require.Equal(t, policy.GoalComplete, state.Status)
					require.Equal(t, f.generations, state.Effect.Generation)
					require.Equal(t, map[string]int{state.Site.ConversationID: 1}, s.in(name))
					require.Equal(t, 1, s.marked(state.Site.ConversationID, state.Effect.ID))
				} else {
					state := s.until(t, run.GetID(), "blocked by an unknown outcome", func(st policy.State) bool {
						return st.Blocker != nil && st.Blocker.Class == policy.BlockedUnknown
					})
					require.Equal(t, 1, state.Effect.Generation)
					require.Empty(t, s.in(name), "conversations of the project")
				}
				terminate(p.cmd)
			}
		})
	}
}

// A worker that is killed when the message has been seen, and before anybody was told the address.
func TestABootstrapWhoseAddressWasLostIsFoundAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	const name = "g-p-00000000000000ac-lost"
	page := s.project(t, name, `page: {provisional: 300ms}`+oneTurn)
	p := s.browserWorker(t, "lost", fault{"committed", syscall.SIGKILL})
	run := s.create(t, "lost", page, "lost")
	p.hit(t)
	s.recover(t, p, run.GetID(), syscall.SIGKILL)
	state := s.successor(t, run)
	require.Equal(t, policy.GoalComplete, state.Status)
	require.Equal(t, 1, state.Effect.Generation)
	require.Equal(t, map[string]int{state.Site.ConversationID: 1}, s.in(name))
	require.True(t, strings.HasPrefix(state.Effect.Alias, "new:"))
}
