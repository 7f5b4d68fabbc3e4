package policy_test

import (
	"encoding/json"
	"slices"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

// maxState is the bound of a state's JSON without its goal, in bytes.
const maxState = 64 << 10

// step checks what must hold of every single decision, whatever came before it.
func step(t tester, old policy.State, e policy.Event, d policy.Decision) {
	if d.Verdict != kernel.Accept {
		return
	}
	next := d.Next
	require.False(t, old.Terminal(), "%s reopened a terminal state", e.Name())
	owed := policy.Policy{}.Obligation(next)
	require.Equal(t, next.Terminal(), owed.Class == kernel.Finish, "%s led to an invalid state: %s", e.Name(), policy.Policy{}.Ending(next).Message)
	if _, moved := e.(policy.SuccessorBound); moved || old.Status == "" {
		return
	}
	if next.ClaimGeneration != old.ClaimGeneration {
		seen, ok := e.(policy.EffectObserved)
		require.True(t, ok && seen.Worker != old.Turn.Claimer && next.ClaimGeneration == old.ClaimGeneration+1, "%s moved the claim", e.Name())
	}
	for _, fixed := range [][2]any{
		{old.TaskID, next.TaskID},
		{old.RunID, next.RunID},
		{old.RelayScopeID, next.RelayScopeID},
		{old.Budgets.MaxRounds, next.Budgets.MaxRounds},
		{old.Budgets.MaxRepeatedState, next.Budgets.MaxRepeatedState},
		{old.Budgets.ProviderFailures.Max, next.Budgets.ProviderFailures.Max},
	} {
		require.Equal(t, fixed[0], fixed[1], "%s changed what a run keeps for good", e.Name())
	}
	if registered := old.Adopting && !next.Adopting; !registered {
		require.Equal(t, []any{old.Scope, old.Adopting}, []any{next.Scope, next.Adopting}, "%s changed the scope", e.Name())
	}
	effectStep(t, old, e, next)
	roundStep(t, old, e, next)
	budgetStep(t, old, e, next)
	completionStep(t, old, e, next)
	blockerStep(t, old, e, next)
}

// effectStep: an effect has one way from reserved to its outcome, and only a beginning sends.
func effectStep(t tester, old policy.State, e policy.Event, next policy.State) {
	_, begins := e.(policy.ProviderDispatchStarted)
	if next.Dispatches != old.Dispatches {
		require.True(t, begins, "%s counted a dispatch", e.Name())
		require.Equal(t, old.Dispatches+1, next.Dispatches)
		require.Equal(t, []any{policy.Dispatching, policy.EffectReserved, true, true, true, true}, []any{
			old.Status, old.Effect.State, old.Stop == nil, old.Paused == nil, old.Blocker == nil, old.Effect.NotBefore.IsZero(),
		}, "a send began that may not")
	}
	if next.Effect.State == policy.EffectDispatching && old.Effect.State != policy.EffectDispatching {
		require.Equal(t, old.Dispatches+1, next.Dispatches)
	}
	if next.Effect.ID != old.Effect.ID {
		require.Contains(t, []policy.EffectState{policy.EffectApplied, policy.EffectUnknown, policy.EffectDispatching}, old.Effect.State,
			"%s dropped an effect that was reserved", e.Name())
		require.Equal(t, []any{policy.EffectReserved, 1}, []any{next.Effect.State, next.Effect.Generation})
		return
	}
	if next.Effect.Generation != old.Effect.Generation {
		require.Equal(t, old.Effect.Generation+1, next.Effect.Generation)
		require.Equal(t, policy.EffectReserved, next.Effect.State)
		last := next.Effect.Attempts[len(next.Effect.Attempts)-1]
		require.Equal(t, []any{old.Effect.Generation, policy.EffectNotApplied}, []any{last.Generation, last.Outcome},
			"%s authorized a generation without a proof that the last one was not applied", e.Name())
	}
	legal := map[policy.EffectState][]policy.EffectState{
		policy.EffectReserved:    {policy.EffectReserved, policy.EffectDispatching, policy.EffectUnknown, policy.EffectApplied},
		policy.EffectDispatching: {policy.EffectDispatching, policy.EffectReserved, policy.EffectApplied, policy.EffectNotApplied, policy.EffectUnknown},
		policy.EffectNotApplied:  {policy.EffectNotApplied, policy.EffectReserved, policy.EffectApplied},
		policy.EffectUnknown:     {policy.EffectUnknown, policy.EffectReserved, policy.EffectApplied},
		policy.EffectApplied:     {policy.EffectApplied},
	}
	require.Contains(t, legal[old.Effect.State], next.Effect.State, "%s moved the effect from %s", e.Name(), old.Effect.State)
	if old.Effect.State == policy.EffectUnknown && next.Effect.State == policy.EffectReserved {
		require.IsType(t, policy.ProviderEffectReconciled{}, e)
		require.Equal(t, old.Effect.Generation+1, next.Effect.Generation, "an unknown was authorized again")
	}
}

// roundStep: rounds and authority move only with a new round, or with an explicit authority recovery.
func roundStep(t tester, old policy.State, e policy.Event, next policy.State) {
	opened := next.Effect.ID != old.Effect.ID && next.Effect.NewRound
	_, rekeyed := e.(policy.AuthorityRecoveryRequested)
	require.Equal(t, opened, next.Budgets.Rounds == old.Budgets.Rounds+1, "%s: rounds %d to %d", e.Name(), old.Budgets.Rounds, next.Budgets.Rounds)
	require.Equal(t, opened, next.Budgets.Rounds != old.Budgets.Rounds)
	require.Equal(t, opened || rekeyed, next.AuthorityID != old.AuthorityID, "%s changed the authority", e.Name())
	require.LessOrEqual(t, next.Budgets.Rounds, next.Budgets.MaxRounds)
}

// budgetStep: every counter moves by its own evidence alone.
func budgetStep(t tester, old policy.State, e policy.Event, next policy.State) {
	committed := next.Completion.ID != old.Completion.ID && next.Completion.Action != "WAIT" && next.Completion.Action != "HANDOFF"
	blocked := policy.BlockerClass("")
	if old.Blocker != nil {
		blocked = old.Blocker.Class
	}
	a, b := old.Budgets.RepeatedState, next.Budgets.RepeatedState
	_, changed := e.(policy.SemanticStateChanged)
	_, answered := e.(policy.UserResumeRequested)
	switch {
	case committed && old.Completion.ID != "" && next.Completion.Progress == old.Completion.Progress:
		require.Equal(t, a+1, b, "%s: the same state again", e.Name())
	case committed:
		require.Zero(t, b, "%s: progress", e.Name())
	case blocked == policy.BlockedRepeatedState && (changed || answered):
		require.Contains(t, []int{a, 0}, b)
	default:
		require.Equal(t, a, b, "%s changed repeated_state", e.Name())
	}

	f, g := old.Budgets.ProviderFailures, next.Budgets.ProviderFailures
	applied := next.Effect.State == policy.EffectApplied && old.Effect.State != policy.EffectApplied
	_, probed := e.(policy.ProviderEnvironmentRecovered)
	switch {
	case g.Epoch != f.Epoch:
		require.True(t, blocked == policy.BlockedFailures && (probed || answered), "%s opened an epoch", e.Name())
		require.Equal(t, []any{f.Epoch + 1, 0, f.Total}, []any{g.Epoch, g.Streak, g.Total})
		require.NotEmpty(t, g.Opened)
	case g.Total != f.Total:
		require.Equal(t, []int{f.Streak + 1, f.Total + 1}, []int{g.Streak, g.Total})
		require.Equal(t, policy.EffectDispatching, old.Effect.State, "%s counted a failure of no attempt", e.Name())
	case applied:
		require.Zero(t, g.Streak)
	default:
		require.Equal(t, f, g, "%s changed the failure budget", e.Name())
	}
}

// completionStep: an effect that was applied is completed at most once, and a completion is never changed.
func completionStep(t tester, old policy.State, e policy.Event, next policy.State) {
	if next.Completion.ID != old.Completion.ID {
		require.Equal(t, old.Effect.ID, next.Completion.Effect)
		require.NotEqual(t, old.Effect.ID, old.Completion.Effect, "%s completed an effect again", e.Name())
		require.Equal(t, policy.EffectApplied, old.Effect.State)
	}
	if old.Next != nil && next.Next != nil && old.Next.ID != next.Next.ID {
		require.IsType(t, policy.UserResumeRequested{}, e, "a successor was replaced")
	}
	if next.Status == policy.GoalComplete {
		approved, given := e.(policy.ApprovalGiven)
		verified, checked := e.(policy.ProposalValidated)
		require.True(t, given || checked, "%s completed the goal", e.Name())
		require.Equal(t, next.Completion.ID, approved.Completion+verified.Completion)
		require.Equal(t, "DONE", next.Completion.Action)
	}
}

// exits are the events that can end a blocker and leave the run open.
var exits = map[policy.BlockerClass][]string{
	policy.BlockedRepeatedState: {"semantic_state_changed", "user_resume_requested"},
	policy.BlockedFailures:      {"provider_environment_recovered", "user_resume_requested"},
	policy.BlockedRounds:        {},
	policy.BlockedUnknown:       {"provider_effect_reconciled", "supersede_requested"},
	policy.BlockedUserAction:    {"provider_environment_recovered"},
	policy.BlockedProtocol:      {"user_resume_requested"},
	policy.BlockedRecovery:      {"recovery_requested", "effect_observed", "semantic_disposition_submitted"},
	policy.BlockedValidation:    {"proposal_validated", "user_resume_requested"},
	policy.BlockedDrift:         {"provider_environment_recovered", "user_resume_requested"},
	policy.BlockedMissing:       {"provider_environment_recovered"},
	policy.BlockedForeignDraft:  {"provider_environment_recovered", "user_resume_requested"},
}

func blockerStep(t tester, old policy.State, e policy.Event, next policy.State) {
	if old.Blocker == nil || next.Terminal() || next.Blocker != nil && next.Blocker.ID == old.Blocker.ID {
		return
	}
	if next.Effect.State == policy.EffectApplied && old.Effect.State != policy.EffectApplied {
		return // positive evidence of the send
	}
	require.True(t, slices.Contains(exits[old.Blocker.Class], e.Name()), "%s ended %s", e.Name(), old.Blocker.Class)
}

// carried checks that a state survives the way over continue-as-new unchanged.
func carried(t tester, s policy.State) policy.State {
	t.Helper()
	data, err := json.Marshal(s)
	require.NoError(t, err)
	var back policy.State
	require.NoError(t, json.Unmarshal(data, &back))
	require.Empty(t, cmp.Diff(s, back), "the state is not what it was after JSON")
	return back
}

// size is the length of a state's JSON without what its start brought.
func size(t tester, s policy.State) int {
	t.Helper()
	s.Goal, s.Failure = nil, nil
	return len(picture(t, s))
}

// history checks what must hold over the whole way of a run.
type history struct {
	outcome   map[string]string // what the last attempt of an effect came to
	completed map[string]string // the completion of an effect
	opened    map[string]string // the effect that opened a new round after a completion
	authority map[string]int    // authorities ever used
}

func newHistory() *history {
	return &history{outcome: map[string]string{}, completed: map[string]string{}, opened: map[string]string{}, authority: map[string]int{}}
}

func (h *history) decided(t tester, old policy.State, e policy.Event, d policy.Decision) {
	t.Helper()
	if d.Verdict != kernel.Accept {
		return
	}
	next := d.Next
	id := old.Effect.ID
	if next.Dispatches == old.Dispatches+1 && next.RunID == old.RunID {
		require.Contains(t, []string{"", "withdrawn", "not_applied"}, h.outcome[id], "%s begins after it was %s", id, h.outcome[id])
		h.outcome[id] = "begun"
	}
	if old.Effect.State == policy.EffectDispatching && next.Effect.State != policy.EffectDispatching {
		h.outcome[id] = "withdrawn"
	}
	if a := next.Effect.Attempts; next.Effect.ID == id && len(a) > 0 && !slices.Contains(old.Effect.Attempts, a[len(a)-1]) {
		h.outcome[id] = string(a[len(a)-1].Outcome)
	}
	if next.Completion.ID != old.Completion.ID {
		require.Empty(t, h.completed[next.Completion.Effect], "a second completion of %s", next.Completion.Effect)
		h.completed[next.Completion.Effect] = next.Completion.ID
	}
	if next.Effect.ID != id && next.Effect.NewRound {
		require.Empty(t, h.opened[next.Completion.ID], "a second successor of %s", next.Completion.ID)
		h.opened[next.Completion.ID] = next.Effect.ID
	}
	if next.AuthorityID != old.AuthorityID {
		h.authority[next.AuthorityID]++
		require.Equal(t, 1, h.authority[next.AuthorityID], "an authority came back")
	}
}
