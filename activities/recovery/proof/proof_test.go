package proof

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
