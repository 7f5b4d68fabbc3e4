package policy_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// contracts are goals that differ in what a run may do.
var contracts = [][]option{
	nil,
	{rounds(3), failures(2), generations(2)},
	{gitProgress, repeats(2)},
	{byApproval, epochs(1)},
	{approval, noMessages, recoveries(0)},
	{adopt},
	{created},
	{violations(1), epochs(0), func(g *goal.Goal, _ *goal.SiteFacts) { g.UserBlocker.Allowed = []string{"other"} }},
}

// beginnings are the states that a random walk sets out from.
var beginnings = []func(w *walk){
	func(*walk) {}, begun, applied, func(w *walk) { w.claimed() }, func(w *walk) { w.round() }, doubted, bounded, fused, repeated, exhausted,
	done, unavailable, func(w *walk) { asked(w) }, func(w *walk) { login(w) }, func(w *walk) { waiting(w) }, paused,
	func(w *walk) { w.begin(); w.take(stopEvent(w)) }, func(w *walk) { w.claimed(); w.take(interruptEvent(w)) },
	func(w *walk) { w.claimed(); early(w, receipt.Continue) },
}

// known is a conversation that was asked for its task before.
func known(g *goal.Goal, _ *goal.SiteFacts) { g.Adopt = nil }

// Whatever happens, in whatever order, late or twice: every decision keeps the invariants of invariant_test.go.
func TestAnyOrderOfEvents(t *testing.T) {
	seen := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		options := rapid.SampledFrom(contracts).Draw(rt, "contract")
		x := &world{walk: start(rt, options...), rt: rt}
		if len(options) == 0 {
			beginnings[rapid.IntRange(0, len(beginnings)-1).Draw(rt, "beginning")](x.walk)
		}
		for i := range rapid.IntRange(10, 120).Draw(rt, "steps") {
			if i%20 == 0 {
				x.mood = pick(x, "mood", moods...)
			}
			if x.s.Terminal() {
				past := x.s
				x.walk = later(rt, past, append(options, scope(fmt.Sprint("goal:", i)), replan, known)...)
				x.past = nil
				require.Equal(rt, past.TaskID, x.s.TaskID)
				require.GreaterOrEqual(rt, x.s.Budgets.Rounds, past.Budgets.Rounds)
			}
			switch c := rapid.IntRange(1, 100).Draw(rt, "what"); {
			case c <= 65:
				x.serve()
			case c <= 75 || x.mood == "people" && c <= 85:
				x.person()
			default:
				x.echo()
			}
			seen[string(x.s.Status)]++
			if x.s.Blocker != nil {
				seen[string(x.s.Blocker.Class)]++
			}
		}
	})
	t.Log("decisions by status and blocker:", seen)
}

// echo delivers something again, late, or addressed to something else.
func (x *world) echo() {
	if len(x.past) == 0 {
		return
	}
	e := rapid.SampledFrom(x.past).Draw(x.rt, "again")
	old := x.s
	d := x.happen(e.Event)
	if d.Verdict != kernel.Accept {
		require.Equal(x, old.Revision, x.s.Revision)
		return
	}
	require.True(x, !e.accepted || repeatable(e.Event), "%s was accepted twice: %+v", e.Name(), e.Event)
}

// repeatable tells the events that mean something each time they come: of people's messages the driver tells by their
// request_id two of them from one that came twice.
func repeatable(e policy.Event) bool {
	switch e := e.(type) {
	case policy.PauseRequested, policy.UserResumeRequested, policy.StopRequested, policy.CancelRequested,
		policy.StalledRoundObserved, policy.SemanticStateChanged:
		return true
	case policy.ProviderEffectReconciled:
		return e.Verdict != "" || e.Marker
	case policy.ProviderDispatchStarted:
		return true // the same attempt after a deferral
	}
	return false
}
