package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
	"steward/workflows/release/policy"
)

// Public reports of releases that went wrong elsewhere, as far as deciding prevents them.

var abortNow = policy.AbortRequested{Operator: "o", Reason: "r"}

// temporalio/temporal-worker-controller#37: going back while the new version was being rolled out did nothing.
func TestPublic_C01_GoingBackIsProvenWhateverIsUnderWay(t *testing.T) {
	w := newWorld(t, nil).until(policy.CutoverCommitted)
	w.accept(abortNow)
	require.Equal(t, policy.RolledBack, w.end().Phase)
	require.Equal(t, releaseA, w.lane.Authority.Active)
	require.Equal(t, releaseA, w.lane.Serving.Release)
}

// temporalio/temporal#10737: a new build could not register, and the rollout was stuck in silence.
func TestPublic_C03_ARecoveryThatNeverAnswersEndsTheRelease(t *testing.T) {
	w := newWorld(t, nil)
	w.operate(policy.OweCutover, nil, func(id string) policy.Event { return policy.OperationNotStarted{Operation: id} })
	s := w.end()
	require.Equal(t, policy.Failed, s.Phase)
	require.Contains(t, s.End.Detail, "took the cutover up in none")
}

// argoproj/argo-rollouts#1292: an abort without a rollout under way scaled the stable release to nothing.
func TestPublic_C04_AnAbortOfWhatHasEndedDoesNothing(t *testing.T) {
	w := newWorld(t, nil)
	w.end()
	effects := len(w.effects)
	said(t, w.take(abortNow), kernel.NoOp, policy.CodeTerminal)
	require.Len(t, w.effects, effects)
	require.Equal(t, policy.KnownGood, w.state.Phase)
}

// argoproj/argo-rollouts#4461: an abort after a promotion was ignored.
func TestPublic_C05_AnAbortAfterPromoteWins(t *testing.T) {
	w := newWorld(t, manual).until(policy.CutoverEligible)
	w.accept(policy.PromoteRequested{Operator: "o", Reason: "r"})
	w.serveUntil(w.owes(policy.OweCutover))
	w.begin(w.owed())
	w.accept(abortNow)
	w.now = w.now.Add(time.Second)
	w.switchTo(releaseB, evidence.KindCutover)
	w.accept(policy.OperationReturned{Operation: w.state.Operation.ID, Lane: w.lane})
	require.Equal(t, policy.OweRollback, w.owed().Kind)
	require.Equal(t, policy.RolledBack, w.end().Phase)
	require.Equal(t, releaseA, w.lane.Serving.Release)
}

// argoproj/argo-rollouts#3850: an inconclusive analysis ran again and again until it was promoted.
func TestPublic_C06_InconclusiveNeverAddsUpToAPass(t *testing.T) {
	for _, outcome := range []evidence.Outcome{evidence.Inconclusive, evidence.NoData, ""} {
		w := newWorld(t, nil)
		runs := 0
		w.answer[policy.OweCanary] = func(o kernel.Obligation) policy.Event {
			runs++
			e := w.good(o).(policy.CheckRan)
			e.Receipt.Outcome = outcome
			return e
		}
		w.until(policy.CandidateBooted)
		w.serveUntil(func() bool { return w.state.Work.Parked })
		require.Equal(t, 3, runs)
		require.Equal(t, "parked", w.state.Attention().Class)
		w.accept(policy.OperationJudged{Verdict: policy.VerdictUnknown, Operator: "o", Reason: "once more"})
		w.serve()
		require.Equal(t, 4, runs, "a person may ask for one more try")
		require.True(t, w.state.Work.Parked)
		require.Equal(t, policy.CodeDeadline, w.end().End.Code)
		require.Empty(t, w.effects)
	}
}

// fluxcd/flagger#1931: a promoted release failed, and the "rollback" went to the broken copy.
func TestPublic_C10_BackMeansExactA(t *testing.T) {
	w := newWorld(t, nil)
	w.operate(policy.OweCutover, func(l *evidence.Lane) {
		w.published(l)
		l.Serving.Ready = false
	}, w.returns("port_taken", false))
	w.answer[policy.OweRollback] = func(kernel.Obligation) policy.Event {
		w.switchTo(releaseA, evidence.KindRollback)
		broken := w.lane
		broken.Serving.Release = releaseB // B serves on: not exact A
		return policy.OperationReturned{Operation: w.state.Operation.ID, Lane: broken}
	}
	w.until(policy.CutoverCommitted)
	w.serveUntil(func() bool { return w.state.Operation != nil && w.state.Operation.State == policy.OperationUnknown })
	require.False(t, w.state.Terminal(), "what is not exact A is no return")
	require.Equal(t, policy.RolledBack, w.end().Phase)
	require.Equal(t, releaseA, w.lane.Serving.Release)
}

// fluxcd/flagger#30: a revision that came during the analysis was promoted half tested.
func TestPublic_C11_WhatChangedSinceTheFreezeStops(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweCanary] = func(o kernel.Obligation) policy.Event {
		e := w.good(o).(policy.CheckRan)
		e.Receipt.Release = "cccc"
		return e
	}
	require.Equal(t, policy.CodeReleaseChanged, w.end().End.Code)
}

// fluxcd/flagger#1591: a deadline during the promotion looped for ever.
func TestPublic_C12_ANewReleaseThatNeverServesGoesBackOnce(t *testing.T) {
	w := newWorld(t, nil).until(policy.CutoverCommitted)
	w.lane.Serving.Ready = false
	s := w.end()
	require.Equal(t, policy.RolledBack, s.Phase)
	require.Equal(t, policy.CodeDeadline, s.End.Code)
	require.Equal(t, []string{policy.OweCutover, policy.OweRollback}, w.effects)
}

// hashicorp/nomad#10465: a canary that could never start stalled the deployment.
func TestPublic_C13_ACandidateThatCannotStartFailsInTime(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweBoot] = func(o kernel.Obligation) policy.Event {
		return policy.CandidateServes{Outcome: of(o), Trouble: policy.Trouble{Code: "runner_missing", Detail: "bin/shop"}}
	}
	s := w.end()
	require.Equal(t, "runner_missing", s.End.Code)
	require.Less(t, w.now.Sub(start), time.Minute)
}

// spinnaker/kayenta#377: no data made the canary pass.
func TestPublic_C15_NoDataIsNoPass(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweWindows] = func(o kernel.Obligation) policy.Event { return policy.WindowsObserved{Outcome: of(o), Lane: w.lane} }
	require.Equal(t, policy.CodeDeadline, w.end().End.Code)
	require.Equal(t, policy.RolledBack, w.state.Phase)

	w = newWorld(t, stewardProof)
	w.answer[policy.OweProof] = func(o kernel.Obligation) policy.Event {
		return policy.ProofObserved{Outcome: of(o), Status: "goal_complete", Lane: w.lane}
	}
	require.Equal(t, policy.CodeProofFailed, w.end().End.Code, "a run without turns proves nothing")
}

// rauc/rauc#1140: "marked good" was printed while the status stayed bad.
func TestPublic_C16_KnownGoodNeedsTheBundleReadBack(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweBundle] = func(o kernel.Obligation) policy.Event {
		return policy.BundleAttested{Outcome: of(o), Lane: w.lane, ID: "kg-1", Release: releaseB, Digest: "d1", Trouble: policy.Trouble{Code: "disk_full"}}
	}
	s := w.end()
	require.Equal(t, policy.RolledBack, s.Phase)
	require.Contains(t, s.End.Detail, "disk_full")
}

// p2pool-starter-stack/pithead#793: nothing ever marked the slot good.
func TestPublic_C17_ASoakWithoutAMarkIsNotGood(t *testing.T) {
	w := newWorld(t, nil).until(policy.Soaking)
	w.serveUntil(w.owes(policy.OweBundle))
	require.Equal(t, policy.Soaking, w.state.Phase, "everything is proven but the bundle: not known-good")
	require.Equal(t, []string{policy.OweCutover}, w.effects)
}

// Azure/iot-hub-device-update#460: the same update was offered again after each failure.
func TestPublic_C18_AFinishedRevisionIsNotTriedAgainByItself(t *testing.T) {
	automatic := func(p *plan.Plan) { p.Origin = plan.Automatic }
	earlier := []evidence.Session{{ID: "rs_1", Revision: revisionB, Phase: "rolled_back", Code: "performance_rejected"}}
	again := func(w *world) *world {
		w.answer[policy.OweAdmit] = func(o kernel.Obligation) policy.Event {
			e := w.admission(o)
			e.Earlier = earlier
			return e
		}
		return w
	}
	w := again(newWorld(t, automatic))
	s := w.end()
	require.True(t, s.Refused())
	require.Contains(t, s.End.Problems[0], policy.CodeRevisionFinished)
	require.Equal(t, policy.KnownGood, again(newWorld(t, nil)).end().Phase, "a person may")

	w = newWorld(t, automatic)
	w.answer[policy.OweBuild] = func(o kernel.Obligation) policy.Event {
		return policy.ReleaseWasBuilt{Outcome: of(o), Release: releaseB, Repeated: &earlier[0]}
	}
	require.Equal(t, policy.CodeReleaseRepeated, w.end().End.Code, "another revision with the same content is the same release")

	failed := evidence.Session{ID: "rs_1", Phase: "failed", Code: "gate_failed"}
	w = newWorld(t, automatic)
	w.answer[policy.OweBuild] = func(o kernel.Obligation) policy.Event {
		return policy.ReleaseWasBuilt{Outcome: of(o), Release: releaseB, Repeated: &failed}
	}
	require.Equal(t, policy.KnownGood, w.end().Phase, "a failure before the switch blocks no later revision")
}
