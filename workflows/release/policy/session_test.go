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

func TestAGoodReleaseBecomesKnownGood(t *testing.T) {
	w := newWorld(t, nil)
	s := w.end()
	require.Equal(t, policy.KnownGood, s.Phase, "%+v", s.End)
	require.True(t, s.Recorded)
	require.Equal(t, []string{policy.OweCutover}, w.effects)
	require.GreaterOrEqual(t, w.now.Sub(s.Soak.Since), 10*time.Minute, "the soak was served")
	require.Equal(t, kernel.Ending{}, policy.Policy{}.Ending(s))
	require.Equal(t, int64(40), s.Switch.OutageMillis)
}

func TestTheStewardProofRestartsOnceAfterTheFirstContinue(t *testing.T) {
	w := newWorld(t, stewardProof)
	s := w.end()
	require.Equal(t, policy.KnownGood, s.Phase, "%+v", s.End)
	require.Equal(t, []string{policy.OweCutover, policy.OweRestart}, w.effects)
	require.Equal(t, int64(11000), s.Soak.Proof.LatencyMillis)
}

func TestWhatEndsAReleaseBeforeTheSwitch(t *testing.T) {
	trouble := policy.Trouble{Code: "runner_missing", Detail: "gates/type"}
	type answer = func(w *world, o kernel.Obligation) policy.Event
	lane := func(change func(*policy.LaneVerified)) answer {
		return func(w *world, o kernel.Obligation) policy.Event {
			e := w.good(o).(policy.LaneVerified)
			change(&e)
			return e
		}
	}
	checks := func(change func(*policy.CheckRan)) answer {
		return func(w *world, o kernel.Obligation) policy.Event {
			e := w.good(o).(policy.CheckRan)
			change(&e)
			return e
		}
	}
	for name, c := range map[string]struct {
		kind, code string
		answer     answer
	}{
		"another revision frozen": {policy.OweFreeze, policy.CodeSourceChanged, func(w *world, o kernel.Obligation) policy.Event {
			e := w.good(o).(policy.SourceWasFrozen)
			e.Revision = "0000"
			return e
		}},
		"the build is what runs": {policy.OweBuild, policy.CodeAlreadyActive, func(_ *world, o kernel.Obligation) policy.Event {
			return policy.ReleaseWasBuilt{Outcome: of(o), Release: releaseA}
		}},
		"a gate fails":              {policy.OweGate, policy.CodeGateFailed, checks(func(e *policy.CheckRan) { e.Receipt.Outcome = evidence.Failed })},
		"a gate's runner is absent": {policy.OweGate, "runner_missing", checks(func(e *policy.CheckRan) { e.Trouble = trouble })},
		"a gate of another revision": {
			policy.OweGate, policy.CodeReleaseChanged,
			checks(func(e *policy.CheckRan) { e.Receipt.Revision = "0000" }),
		},
		"a gate by another runner": {
			policy.OweGate, policy.CodeReleaseChanged,
			checks(func(e *policy.CheckRan) { e.Receipt.Runner = releaseA }),
		},
		"a canary fails": {policy.OweCanary, policy.CodeCanaryFailed, checks(func(e *policy.CheckRan) { e.Receipt.Outcome = evidence.Failed })},
		"the candidate shares the token": {policy.OweBoot, policy.CodeLanesShared, func(w *world, o kernel.Obligation) policy.Event {
			e := w.good(o).(policy.CandidateServes)
			e.Candidate.TokenDigest = "ta"
			return e
		}},
		"A is another release now": {policy.OweVerify, policy.CodeStableDrift, lane(func(e *policy.LaneVerified) { e.Lane.Serving.Release = "cccc" })},
		"A moved":                  {policy.OweVerify, policy.CodeStableDrift, lane(func(e *policy.LaneVerified) { e.Lane.Serving.Home = "/elsewhere" })},
		"the authority changed":    {policy.OweVerify, policy.CodeStableDrift, lane(func(e *policy.LaneVerified) { e.Lane.Authority.Active = "cccc" })},
		"the store changed":        {policy.OweVerify, policy.CodeReleaseChanged, lane(func(e *policy.LaneVerified) { e.Stored = "cccc" })},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.answer[c.kind] = func(o kernel.Obligation) policy.Event { return c.answer(w, o) }
			s := w.end()
			require.Equal(t, policy.Failed, s.Phase)
			require.Equal(t, c.code, s.End.Code, s.End.Detail)
			require.Empty(t, w.effects, "A was never touched")
			require.True(t, s.Recorded)
			require.Equal(t, c.code, policy.Policy{}.Ending(s).Failure)
		})
	}
}

func TestEveryPhaseHasADeadline(t *testing.T) {
	for kind, during := range map[string]policy.Phase{
		policy.OweFreeze: policy.Starting, policy.OweBuild: policy.SourceFrozen, policy.OweGate: policy.Built,
		policy.OweBoot: policy.StaticVerified, policy.OweCanary: policy.CandidateBooted, policy.OweStop: policy.CandidateVerified,
		policy.OweVerify: policy.CandidateVerified,
	} {
		w := newWorld(t, nil)
		w.answer[kind] = func(o kernel.Obligation) policy.Event {
			return policy.StepFailed{Outcome: of(o), Trouble: policy.Trouble{Code: "no_answer"}}
		}
		s := w.end()
		require.Equal(t, policy.CodeDeadline, s.End.Code, kind)
		require.Equal(t, during, s.End.During, kind)
		require.Contains(t, s.End.Detail, "no_answer")
	}
	for _, kind := range []string{policy.OweLook, policy.OweWindows, policy.OweCommand, policy.OweBundle} {
		w := newWorld(t, nil)
		w.answer[kind] = func(o kernel.Obligation) policy.Event {
			return policy.StepFailed{Outcome: of(o), Trouble: policy.Trouble{Code: "no_answer"}}
		}
		s := w.end()
		require.Equal(t, policy.RolledBack, s.Phase, kind)
		require.Equal(t, policy.CodeDeadline, s.End.Code, kind)
		require.Equal(t, []string{policy.OweCutover, policy.OweRollback}, w.effects, kind)
	}
}

func TestATransientFailureToVerifyAKeepsTheSessionEligible(t *testing.T) {
	w := newWorld(t, manual).until(policy.CutoverEligible)
	w.now = w.now.Add(time.Hour)
	w.accept(policy.PromoteRequested{Operator: "o", Reason: "r"})
	failures := 0
	w.answer[policy.OweVerify] = func(o kernel.Obligation) policy.Event {
		if failures++; failures <= 3 {
			return policy.LaneVerified{Outcome: of(o), Receipt: evidence.Receipt{Gate: "stable", Outcome: evidence.Inconclusive}}
		}
		return w.good(o)
	}
	w.serveUntil(func() bool {
		require.Equal(t, policy.CutoverEligible, w.state.Phase)
		return failures == 3
	})
	require.Equal(t, policy.KnownGood, w.end().Phase)
	require.Equal(t, []string{policy.OweCutover}, w.effects)
}

func TestPromoteCountsOnlyWhenEligible(t *testing.T) {
	w := newWorld(t, manual)
	promote := policy.PromoteRequested{Operator: "o", Reason: "r"}
	w.until(policy.Built)
	said(t, w.take(promote), kernel.Reject, policy.CodeIllegal)
	w.until(policy.CutoverEligible)
	require.Equal(t, "promote", w.state.Attention().Class)
	said(t, w.take(policy.PromoteRequested{Operator: "o"}), kernel.NeedsEvidence, policy.CodeReason)
	w.accept(promote)
	said(t, w.take(promote), kernel.NoOp, policy.CodeDuplicate)
	require.Nil(t, w.state.Attention())
	w.until(policy.Soaking)
	said(t, w.take(promote), kernel.Reject, policy.CodeIllegal)

	w = newWorld(t, manual).until(policy.CutoverEligible)
	s := w.end()
	require.Equal(t, policy.CodeDeadline, s.End.Code, "nobody promoted")
}

func TestADatabaseWithoutAWayBackNeedsAPerson(t *testing.T) {
	no := false
	w := newWorld(t, func(p *plan.Plan) { p.Service.Database.BackwardCompatible = &no }).until(policy.CutoverEligible)
	require.Equal(t, kernel.Timer, w.owed().Class)
	require.Empty(t, w.effects)
}

func TestAnInterruptedPreparationIsResumed(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweAdmit] = func(o kernel.Obligation) policy.Event {
		e := w.admission(o)
		e.Standing = ""
		e.Resume = &policy.Freeze{Session: "rs_old", Revision: revisionB, Source: "5555", Stable: w.lane.Serving}
		return e
	}
	w.serve()
	require.Equal(t, policy.SourceFrozen, w.state.Phase)
	require.Equal(t, "rs_old", w.state.Session)
	require.Equal(t, policy.KnownGood, w.end().Phase)
}

func TestRefusedStarts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*policy.Admitted)
		want   string
	}{
		"problems":        {func(e *policy.Admitted) { e.Plan, e.Problems = nil, []string{"source.revision: is missing"} }, "source.revision"},
		"another id":      {func(e *policy.Admitted) { e.WorkflowID = "release:other" }, `must have the id "release:shop"`},
		"a standing lock": {func(e *policy.Admitted) { e.Standing = "rs_other" }, "lock record of session rs_other stands"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.answer[policy.OweAdmit] = func(o kernel.Obligation) policy.Event {
				e := w.admission(o)
				c.change(&e)
				return e
			}
			s := w.end()
			ending := policy.Policy{}.Ending(s)
			require.Equal(t, policy.CodeStartRefused, ending.Failure)
			require.Contains(t, ending.Message, c.want)
			require.Nil(t, s.Attention())
		})
	}
}

func TestAnEndThatCannotBeRecordedStillEnds(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweGate] = func(o kernel.Obligation) policy.Event {
		return policy.CheckRan{Outcome: of(o), Trouble: policy.Trouble{Code: "runner_missing"}}
	}
	w.answer[policy.OweClose] = func(o kernel.Obligation) policy.Event {
		return policy.StepFailed{Outcome: of(o), Trouble: policy.Trouble{Code: "disk_full"}}
	}
	require.Equal(t, "runner_missing", w.end().End.Code)
}

func TestStaleOutcomesProveNothing(t *testing.T) {
	w := newWorld(t, nil).until(policy.Built)
	said(t, w.take(policy.ReleaseWasBuilt{Outcome: policy.Outcome{Key: "build:old"}, Release: "x"}), kernel.Reject, policy.CodeStale)
	said(t, w.take(policy.TimerElapsed{}), kernel.Reject, policy.CodeStale)
}

func TestATimerThatIsNotDueIsNoTime(t *testing.T) {
	w := newWorld(t, manual).until(policy.CutoverEligible)
	said(t, w.take(policy.TimerElapsed{Outcome: of(w.owed())}), kernel.Reject, policy.CodeNotDue)
}
