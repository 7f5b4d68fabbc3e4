package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/policy"
)

// busy makes every window show so many hundredths of a percent.
func (w *world) busy(cpu int) {
	w.answer[policy.OweWindows] = func(o kernel.Obligation) policy.Event {
		n, _ := w.state.Batch()
		windows := idle(n)
		for i := range windows {
			windows[i].CPU = cpu
		}
		return policy.WindowsObserved{Outcome: of(o), Windows: windows, Lane: w.lane}
	}
}

func TestRunawayCPUIsRejectedAtOnce(t *testing.T) {
	for cpu, phase := range map[int]policy.Phase{10000: policy.RolledBack, 501: policy.RolledBack, 500: policy.KnownGood, 0: policy.KnownGood} {
		w := newWorld(t, nil)
		w.busy(cpu)
		require.Equal(t, phase, w.end().Phase, cpu)
		if phase == policy.RolledBack {
			require.Equal(t, policy.CodePerformance, w.state.End.Code)
		}
		if cpu == 10000 {
			require.Less(t, len(w.state.Soak.Windows), 30, "not sampled again")
		}
	}
	w := newWorld(t, nil)
	w.answer[policy.OweWindows] = func(o kernel.Obligation) policy.Event {
		windows := idle(5)
		windows[0].CPU, windows[1].CPU = 1001, 1001
		return policy.WindowsObserved{Outcome: of(o), Windows: windows, Lane: w.lane}
	}
	require.Equal(t, policy.CodePerformance, w.end().End.Code, "two of thirty above the percentile's limit are more than 5 %")
}

func TestWindowsOffScheduleProveNothing(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweWindows] = func(o kernel.Obligation) policy.Event {
		windows := idle(5)
		for i := range windows {
			windows[i].OffSchedule, windows[i].CPU = true, 10000
		}
		return policy.WindowsObserved{Outcome: of(o), Windows: windows, Lane: w.lane}
	}
	w.until(policy.Soaking)
	for range 20 {
		w.serve()
	}
	require.Equal(t, policy.Soaking, w.state.Phase)
	require.Empty(t, w.state.Soak.Windows)
	require.Equal(t, policy.CodeDeadline, w.end().End.Code)
}

func TestTheWatchdogsRollbackIsThisSessionsRollback(t *testing.T) {
	for _, kind := range []string{policy.OweWindows, policy.OweLook, policy.OweProof, policy.OweVerify} {
		w := newWorld(t, stewardProof).until(policy.Soaking)
		w.serveUntil(w.owes(kind))
		w.wentBack(&w.lane)
		w.lane.Steps = append(w.lane.Steps, evidence.Step{Name: evidence.StepRollbackPublished, Reason: "watchdog"})
		s := w.end()
		require.Equal(t, policy.RolledBack, s.Phase, kind)
		require.Equal(t, policy.CodeWatchdog, s.End.Code)
		require.NotContains(t, w.effects, policy.OweRollback, "it is recorded, not done again")
	}
}

func TestAForeignAuthorityEndsTheSession(t *testing.T) {
	w := newWorld(t, nil).until(policy.Soaking)
	w.lane.Authority = evidence.Authority{Active: "cccc", LastOperation: evidence.Operation{Kind: "cutover", Session: "rs_other"}}
	require.Equal(t, policy.CodeAuthorityDrift, w.end().End.Code)
	require.NotContains(t, w.effects, policy.OweRollback)
}

func TestAForeignReleaseInTheLaneGoesBack(t *testing.T) {
	w := newWorld(t, nil).until(policy.Soaking)
	w.lane.Serving.Release = "cccc"
	require.Equal(t, policy.CodeIdentityMismatch, w.end().End.Code)
	require.Equal(t, policy.RolledBack, w.state.Phase)
}

func TestTheLiveProofIsTheWholeCausalChain(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*policy.ProofObserved)
		code   string
	}{
		"complete":           {func(*policy.ProofObserved) {}, ""},
		"two turns":          {func(e *policy.ProofObserved) { e.Turns = e.Turns[:2] }, policy.CodeProofFailed},
		"ended otherwise":    {func(e *policy.ProofObserved) { e.Status = "stopped" }, policy.CodeProofFailed},
		"done at once":       {func(e *policy.ProofObserved) { e.Turns[0].Action = "DONE" }, policy.CodeProofFailed},
		"sent twice":         {func(e *policy.ProofObserved) { e.Turns[1].Dispatches = 2 }, policy.CodeProofFailed},
		"no applied receipt": {func(e *policy.ProofObserved) { e.Turns[1].Applied = time.Time{} }, policy.CodeProofFailed},
		"the same effect":    {func(e *policy.ProofObserved) { e.Turns[1].Effect = e.Turns[0].Effect }, policy.CodeProofFailed},
		"by another release": {func(e *policy.ProofObserved) { e.Turns[2].Release = releaseA }, policy.CodeProofFailed},
		"before the switch":  {func(e *policy.ProofObserved) { e.Turns[0].Dispatched = start }, policy.CodeProofFailed},
		"not causal":         {func(e *policy.ProofObserved) { e.Turns[2].Source = e.Turns[0].Effect }, policy.CodeProofFailed},
		"sent before its cause": {
			func(e *policy.ProofObserved) { e.Turns[1].Dispatched = e.Turns[0].Committed.Add(-time.Second) },
			policy.CodeProofFailed,
		},
		"one incarnation": {func(e *policy.ProofObserved) {
			for i := range e.Turns {
				e.Turns[i].Incarnation = 4
			}
		}, policy.CodeProofFailed},
		"late": {func(e *policy.ProofObserved) { e.Turns[2].Applied = e.Turns[1].Committed.Add(31 * time.Second) }, policy.CodeProofLate},
		"slow by its own pace": {func(e *policy.ProofObserved) {
			e.MinInterval = time.Minute
			e.Turns[2].Applied = e.Turns[1].Committed.Add(80 * time.Second)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, stewardProof)
			w.answer[policy.OweProof] = func(o kernel.Obligation) policy.Event {
				e := w.proof(o)
				if !e.Open {
					c.change(&e)
				}
				return e
			}
			s := w.end()
			if c.code == "" {
				require.Equal(t, policy.KnownGood, s.Phase, "%+v", s.End)
				return
			}
			require.Equal(t, policy.RolledBack, s.Phase)
			require.Equal(t, c.code, s.End.Code, s.End.Detail)
			require.Equal(t, evidence.Failed, s.Receipts[len(s.Receipts)-1].Outcome, "the failed proof stays in the record")
		})
	}
}

func TestALostRestartIsMadeOnce(t *testing.T) {
	w := newWorld(t, stewardProof)
	tries := 0
	w.answer[policy.OweRestart] = func(o kernel.Obligation) policy.Event {
		if tries++; tries == 1 {
			w.lane.Serving.Incarnation++ // it was made, and its answer lost
			return policy.StepFailed{Outcome: of(o)}
		}
		return policy.RestartReturned{Outcome: of(o), Lane: w.lane}
	}
	require.Equal(t, policy.KnownGood, w.end().Phase)
	require.Equal(t, 2, tries)
}

func TestABundleMustBeReadBack(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweBundle] = func(o kernel.Obligation) policy.Event {
		return policy.BundleAttested{Outcome: of(o), Lane: w.lane, ID: "kg-1", Release: releaseA, Digest: "d", Validated: true}
	}
	require.Equal(t, policy.CodeDeadline, w.end().End.Code, "a bundle of another release protects nothing")
}
