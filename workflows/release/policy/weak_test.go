package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/policy"
)

// Evidence that does not prove enough moves nothing: the same is owed again, and the release goes on once it is there.
func TestWhatIsNotProvenDoesNotAdvance(t *testing.T) {
	verified := func(change func(*policy.LaneVerified)) func(policy.Event) policy.Event {
		return func(e policy.Event) policy.Event {
			v := e.(policy.LaneVerified)
			change(&v)
			return v
		}
	}
	for name, c := range map[string]struct {
		kind string
		weak func(policy.Event) policy.Event
	}{
		"a store that cannot be read": {policy.OweVerify, verified(func(e *policy.LaneVerified) { e.Stored = "" })},
		"an A that is not ready":      {policy.OweVerify, verified(func(e *policy.LaneVerified) { e.Lane.Serving.Ready = false })},
		"an A that does not verify":   {policy.OweVerify, verified(func(e *policy.LaneVerified) { e.Receipt.Outcome = evidence.Failed })},
		"an A that cannot be told":    {policy.OweVerify, verified(func(e *policy.LaneVerified) { e.Receipt.Outcome = evidence.NoData })},
		"an A that does not run":      {policy.OweVerify, verified(func(e *policy.LaneVerified) { e.Lane.Serving = evidence.Identity{} })},
		"the receipt of another gate": {policy.OweGate, func(e policy.Event) policy.Event {
			ran := e.(policy.CheckRan)
			ran.Receipt.Gate = "bootstrap"
			return ran
		}},
		"a candidate that is not ready": {policy.OweBoot, func(e policy.Event) policy.Event {
			serves := e.(policy.CandidateServes)
			serves.Candidate.Ready = false
			return serves
		}},
		"a source without a hash": {policy.OweFreeze, func(e policy.Event) policy.Event {
			frozen := e.(policy.SourceWasFrozen)
			frozen.Source = ""
			return frozen
		}},
		"no A at the freeze": {policy.OweFreeze, func(e policy.Event) policy.Event {
			frozen := e.(policy.SourceWasFrozen)
			frozen.Stable = evidence.Identity{}
			return frozen
		}},
		"a restart without another incarnation": {policy.OweRestart, func(e policy.Event) policy.Event {
			returned := e.(policy.RestartReturned)
			returned.Lane.Serving.Incarnation = 4
			return returned
		}},
		"a bundle while nothing serves": {policy.OweBundle, func(e policy.Event) policy.Event {
			attested := e.(policy.BundleAttested)
			attested.Lane.Serving.Ready = false
			return attested
		}},
		"a bundle that does not validate": {policy.OweBundle, func(e policy.Event) policy.Event {
			attested := e.(policy.BundleAttested)
			attested.Validated = false
			return attested
		}},
		"a look in soak at what is not ready": {policy.OweLook, func(e policy.Event) policy.Event {
			observed := e.(policy.LaneObserved)
			observed.Lane.Serving.Ready = false
			return observed
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, stewardProof)
			w.serveUntil(w.owes(c.kind))
			before, tries := w.state.Phase, 0
			w.answer[c.kind] = func(o kernel.Obligation) policy.Event {
				if tries++; tries == 1 {
					return c.weak(w.good(o))
				}
				return w.good(o)
			}
			w.serve()
			require.Equal(t, before, w.state.Phase)
			require.Equal(t, 1, w.state.Work.Try, "it is tried again")
			require.Equal(t, policy.KnownGood, w.end().Phase, "%+v", w.state.End)
			require.Greater(t, tries, 1)
		})
	}
}

func TestAFailedVerificationOfTheNewReleaseGoesBack(t *testing.T) {
	w := newWorld(t, nil).until(policy.Soaking)
	w.answer[policy.OweVerify] = func(o kernel.Obligation) policy.Event {
		e := w.good(o).(policy.LaneVerified)
		e.Receipt.Outcome = evidence.Failed
		return e
	}
	require.Equal(t, policy.CodeVerification, w.end().End.Code)
	require.Equal(t, policy.RolledBack, w.state.Phase)
}

func TestAPreparationOfAnotherRevisionIsNotResumed(t *testing.T) {
	w := newWorld(t, nil)
	w.answer[policy.OweAdmit] = func(o kernel.Obligation) policy.Event {
		e := w.admission(o)
		e.Resume = &policy.Freeze{Session: "rs_old", Revision: "0000", Source: "5555", Stable: w.lane.Serving}
		return e
	}
	w.serve()
	require.Equal(t, policy.Starting, w.state.Phase)
	require.NotEqual(t, "rs_old", w.state.Session)
}
