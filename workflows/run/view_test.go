package run

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
)

// A blocker has one word: in the state, the search attribute, the memo of the inbox, the page and the answer of why.
func TestABlockerHasOneWordEverywhere(t *testing.T) {
	site := goal.SiteFacts{Site: "chatgpt", ConversationID: "6710a2f4", ConversationURL: "https://chatgpt.com/c/6710a2f4"}
	g := goal.Goal{Objective: "Make it green.", Target: goal.Target{Site: "chatgpt"}}.Normalize(site)
	for _, class := range []policy.BlockerClass{
		policy.BlockedRepeatedState, policy.BlockedFailures, policy.BlockedRounds, policy.BlockedUnknown, policy.BlockedUserAction,
		policy.BlockedProtocol, policy.BlockedRecovery, policy.BlockedValidation, policy.BlockedDrift, policy.BlockedMissing,
		policy.BlockedOwned, policy.BlockedForeignDraft,
	} {
		s := policy.State{
			Rules: policy.CurrentRules, Status: policy.Blocked, Stage: policy.StageDispatching, WorkflowID: "run:chatgpt:6710a2f4", Goal: &g, Site: &site,
			Blocker: &policy.Blocker{Class: class, ID: "bl_1", Since: time.Unix(0, 0), NotBefore: time.Unix(60, 0)},
		}
		if class == policy.BlockedUserAction {
			s.Status = policy.WaitingForUser
		}
		v := view(s, machine.Book{})
		require.Equal(t, string(s.Status), v.Keywords[workflows.AttributeStatus.GetName()])
		require.Equal(t, string(class), v.Keywords[workflows.AttributeBlocker.GetName()])
		require.Contains(t, v.Details, "**Blocked:** `"+string(class)+"`")
		require.Contains(t, v.Details, "**Needs a person** (`"+string(class)+"`")
		attention, ok := v.Attention.(*policy.Attention)
		require.True(t, ok)
		require.Equal(t, string(class), attention.Class)
		require.Contains(t, attention.Command, "steward run ")
		require.Contains(t, attention.Command, s.WorkflowID)
		require.Equal(t, class, s.Explain().Blocker.Class)
	}
}

// What submit takes is what the table of events says.
func TestSubmitTakesWhatTheTableSays(t *testing.T) {
	for _, row := range policy.Events {
		name := row.Event.Name()
		e, err := submit(Submit{Event: name})
		_, refused := e.(policy.NotSubmittable)
		require.Equal(t, row.Submittable, !refused, "%s: %v", name, err)
	}
}
