package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
	"steward/workflows/release/policy"
)

// chance answers obligations at random: well, badly, not at all. The lane follows what the operations really did.
type chance struct {
	*world
	r *rapid.T
	// calm is how rarely something goes wrong: once in so many.
	calm int
	// applied counts the operations that really took hold, whatever was heard of them.
	applied map[string]int
}

func (c *chance) one(of ...string) string { return rapid.SampledFrom(of).Draw(c.r, "chance") }

func (c *chance) wrong() bool { return rapid.IntRange(1, c.calm).Draw(c.r, "wrong") == c.calm }

// or is the first word as a rule, and one of the others when something goes wrong.
func (c *chance) or(well string, wrong ...string) string {
	if c.wrong() {
		return c.one(wrong...)
	}
	return well
}

// event is what an obligation's activity brings back.
func (c *chance) event(o kernel.Obligation) policy.Event {
	if o.Class != kernel.Effect && c.wrong() {
		return policy.StepFailed{Outcome: of(o), Trouble: policy.Trouble{Code: "lost"}}
	}
	switch o.Kind {
	case policy.OweCutover, policy.OweRollback:
		return c.operation(o)
	case policy.OweRestart:
		if c.wrong() {
			return policy.StepFailed{Outcome: of(o)}
		}
	}
	e := c.good(o)
	switch e := e.(type) {
	case policy.CheckRan:
		e.Receipt.Outcome = evidence.Outcome(c.or("passed", "failed", "inconclusive", "no_data"))
		return e
	case policy.LaneVerified:
		e.Lane.Observed = !c.wrong()
		return e
	case policy.WindowsObserved:
		for i := range e.Windows {
			if c.wrong() {
				e.Windows[i].CPU, e.Windows[i].OffSchedule = rapid.IntRange(0, 1500).Draw(c.r, "cpu"), rapid.Bool().Draw(c.r, "off")
			}
		}
		return e
	}
	return e
}

// operation is one attempt: it does something or nothing, and is heard of or not.
func (c *chance) operation(o kernel.Obligation) policy.Event {
	id := c.state.Operation.ID
	if c.wrong() {
		return policy.OperationNotStarted{Operation: id}
	}
	to := map[string]string{evidence.KindCutover: releaseB, evidence.KindRollback: releaseA}[o.Kind]
	switch c.or("through", "nothing", "down", "stuck") {
	case "through":
		c.switchTo(to, o.Kind)
		c.applied[o.Kind]++
	case "down":
		c.switchTo(to, o.Kind)
		c.applied[o.Kind]++
		c.lane.Serving.Ready = false
	case "stuck":
		c.lane.Settled = false
	}
	if c.wrong() {
		return policy.OperationLost{Operation: id, Armed: rapid.Bool().Draw(c.r, "armed")}
	}
	return policy.OperationReturned{Operation: id, Lane: c.lane, Restored: rapid.Bool().Draw(c.r, "restored")}
}

// meanwhile is what happens beside: people, and a recovery process that finishes what was stuck.
func (c *chance) meanwhile() {
	operation := "op_none"
	if c.state.Operation != nil {
		operation = c.state.Operation.ID
	}
	said := []string{"o", "r"}
	if c.state.Phase == policy.CutoverEligible && !c.wrong() {
		c.take(policy.PromoteRequested{Operator: said[0], Reason: said[1]})
	}
	if !c.wrong() {
		return
	}
	switch rapid.IntRange(0, 12).Draw(c.r, "meanwhile") {
	case 0:
		c.take(policy.AbortRequested{Operator: said[0], Reason: said[1]})
	case 1:
		c.take(policy.CancelRequested{})
	case 2:
		c.take(policy.PromoteRequested{Operator: said[0], Reason: said[1]})
	case 6:
		c.take(policy.OperationJudged{Operation: operation, Verdict: c.one("applied", "not_applied", "unknown"), Operator: said[0], Reason: said[1]})
	case 7:
		c.take(policy.OperationJudged{Verdict: policy.VerdictUnknown, Operator: said[0], Reason: said[1]})
	case 8, 9:
		c.lane.Settled = true
	case 10:
		c.lane.Serving.Ready = true
	case 11:
		if c.lane.Authority.Active == releaseB && c.state.Phase == policy.Soaking {
			c.switchTo(releaseA, evidence.KindRollback)
			c.lane.Steps[len(c.lane.Steps)-1].Reason = "watchdog"
			c.applied[evidence.KindRollback]++
		}
	}
}

// Whatever happens, in any order: a session ends typed, cuts over at most once, and its end is what the lane is.
func TestAnySessionEndsAsWhatIs(t *testing.T) {
	ends := map[policy.Phase]int{}
	rapid.Check(t, func(r *rapid.T) {
		adjust := rapid.SampledFrom([]func(*plan.Plan){nil, stewardProof, manual}).Draw(r, "plan")
		c := &chance{world: newWorld(r, adjust), r: r, applied: map[string]int{}, calm: rapid.SampledFrom([]int{4, 20, 100}).Draw(r, "calm")}
		for range 3000 {
			c.meanwhile()
			o := c.owed()
			switch o.Class {
			case kernel.Finish:
				c.judge(r)
				ends[c.state.Phase]++
				return
			case kernel.Idle:
				c.take(c.operation(kernel.Obligation{Kind: c.state.Operation.Kind}))
				continue
			case kernel.Timer:
				c.now = latest(c.now, o.At)
				c.take(policy.TimerElapsed{Outcome: of(o)})
				continue
			case kernel.Effect:
				c.begin(o)
				if c.owed().Key != o.Key {
					continue
				}
			}
			c.now = c.now.Add(time.Duration(rapid.IntRange(0, 120).Draw(r, "seconds")) * time.Second)
			c.take(c.event(o))
		}
		require.Fail(r, "the session does not end", "%s owes %s", c.state.Phase, c.owed().Key)
	})
	for _, p := range []policy.Phase{policy.KnownGood, policy.RolledBack, policy.Failed} {
		require.NotZero(t, ends[p], "no session ended as %s: the test lost its reach", p)
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// judge compares the end with the lane.
func (c *chance) judge(r *rapid.T) {
	s := c.state
	require.NotNil(r, s.End)
	require.LessOrEqual(r, c.applied[evidence.KindCutover], 1, "two cutovers took hold")
	attempts := len(slices.DeleteFunc(slices.Clone(c.effects), func(kind string) bool { return kind != policy.OweCutover }))
	require.LessOrEqual(r, attempts, 3)
	switch s.Phase {
	case policy.KnownGood:
		require.Equal(r, releaseB, c.lane.Authority.Active)
		require.Equal(r, 1, c.applied[evidence.KindCutover])
	case policy.RolledBack:
		require.Equal(r, releaseA, c.lane.Authority.Active)
	case policy.Failed:
		if attempts == 0 {
			require.Equal(r, releaseA, c.lane.Authority.Active, "A was touched without a cutover")
		}
		if s.End.Code == policy.CodeNotApplied {
			require.Equal(r, releaseA, c.lane.Authority.Active)
		}
	}
}
