package policy_test

import (
	"slices"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/policy"
)

// check is what must hold of every single decision, whatever came before it.
func (w *world) check(old policy.State, e policy.Event, next policy.State) {
	t := w.t
	t.Helper()
	from, to := slices.Index(policy.Order, old.Phase), slices.Index(policy.Order, next.Phase)
	_, never := e.(policy.OperationNotStarted)
	switch {
	case old.Terminal():
		require.Equal(t, old.Phase, next.Phase, "%s reopened an end", e.Name())
	case next.Terminal():
		require.NotNil(t, next.End)
	case next.Phase == policy.CutoverEligible && old.Phase == policy.CutoverAttempting:
		require.True(t, never, "%s took a cutover back", e.Name())
	case old.Phase == policy.Starting && next.Phase == policy.SourceFrozen:
	default:
		require.True(t, to == from || to == from+1, "%s went from %q to %q", e.Name(), old.Phase, next.Phase)
	}
	owed := policy.Policy{}.Obligation(next)
	require.NotEmpty(t, owed.Key)
	if !next.Terminal() {
		require.NotEqual(t, kernel.Finish, owed.Class, "%s led to an invalid state %q", e.Name(), next.Phase)
	}
	if owed.Class == kernel.Idle {
		require.True(t, next.Operation != nil && next.Operation.State == policy.OperationRunning, "%s waits without end", e.Name())
	}
	if owed.Class == kernel.Timer && !next.Deadline.IsZero() {
		require.False(t, owed.At.After(next.Deadline), "%s waits beyond the deadline", e.Name())
	}
	if owed.Kind == policy.OweCutover && next.Operation == nil {
		require.Nil(t, next.Aborted, "a cutover after an abort")
		require.False(t, next.VerifiedAt.IsZero(), "a cutover of an A that nobody verified")
		require.True(t, !next.Plan.NeedsPerson() || next.Promoted != nil, "a cutover without the person it needs")
	}
	if _, begins := e.(policy.OperationStarted); next.Cutovers != old.Cutovers {
		require.True(t, begins)
		require.Nil(t, old.Operation)
	}
	require.LessOrEqual(t, len(next.Receipts), policy.MaxReceipts)
	if next.Phase == policy.KnownGood && old.Phase != policy.KnownGood {
		require.IsType(t, policy.BundleAttested{}, e)
		for _, gate := range []string{"performance", "bundle"} {
			require.True(t, slices.ContainsFunc(next.Receipts, func(r evidence.Receipt) bool {
				return r.Gate == gate && r.Outcome == evidence.Passed && r.Release == next.Release
			}), "known-good without %s", gate)
		}
		require.Nil(t, next.Back)
	}
	if next.Phase == policy.RolledBack && old.Phase != policy.RolledBack {
		require.Greater(t, next.Cutovers, 0)
	}
}
