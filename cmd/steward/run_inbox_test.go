package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/policy"
)

// The inbox is read from the list alone, in the words of the run's state.
func TestInboxHasWhatWaitsForAPerson(t *testing.T) {
	since := time.Now().Add(-2 * time.Hour)
	attention, err := json.Marshal(policy.Attention{
		Class: "provider_dispatch_outcome_unknown", Since: since, Ask: "was it\nsent?", Command: "steward run applied run:a --reason …",
	})
	require.NoError(t, err)
	late, err := json.Marshal(policy.Attention{
		Class: "decision", Since: time.Now().Add(-time.Minute), Ask: "Which database?", Command: "steward run resume run:c",
	})
	require.NoError(t, err)
	errands := errandsOf([]row{
		{WorkflowID: "run:quiet", Status: "running", Open: true},
		{WorkflowID: "run:c", Status: "waiting_for_user", Open: true, Attention: late},
		{WorkflowID: "run:a", Status: "blocked", Blocker: "provider_dispatch_outcome_unknown", Open: true, Attention: attention},
		{WorkflowID: "run:p", Status: "paused", Open: true},
	})
	require.Len(t, errands, 3)
	require.Equal(t, []string{"paused", "provider_dispatch_outcome_unknown", "decision"}, []string{errands[0].Class, errands[1].Class, errands[2].Class})

	var out bytes.Buffer
	a := &app{}
	a.writeErrands(&out, errands)
	require.Contains(t, out.String(), "run:a  provider_dispatch_outcome_unknown, since 2 h ago\n  was it sent?\n  steward run applied run:a --reason …\n")
	require.Contains(t, out.String(), "steward run resume run:p --reason …")
	out.Reset()
	a.writeErrands(&out, errandsOf(nil))
	require.Equal(t, "nothing waits for you\n", out.String())
}

func TestProofIsTheChainOfTurns(t *testing.T) {
	at := time.Date(2026, 9, 1, 8, 0, 0, 0, time.Local)
	var out bytes.Buffer
	(&app{}).writeProof(&out, policy.Proof{
		RunID: "run:a", TaskID: "t_1", Status: policy.Blocked, Turns: 1, Dispatches: 2, Unknown: []string{"fx_2"},
		Chain: []policy.LedgerTurn{
			{Effect: "fx_1", Kind: "enrollment", Generation: 1, Reserved: at, Applied: at, Action: "CONTINUE", Release: "r1", Incarnation: 3},
			{Effect: "fx_2", Kind: "continuation", Round: 1, Generation: 1, Reserved: at},
		},
	})
	for _, want := range []string{"run:a (task t_1) is blocked: 1 turns, 2 attempts", "09-01 08:00:00", "CONTINUE", "r1", "fx_2 was armed"} {
		require.Contains(t, out.String(), want)
	}
}
