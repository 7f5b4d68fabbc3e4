package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
)

func currentDetails(t *testing.T, b *bench) string {
	t.Helper()
	value, err := b.QueryWorkflow("__temporal_workflow_metadata")
	require.NoError(t, err)
	var metadata sdkpb.WorkflowMetadata
	require.NoError(t, value.Get(&metadata))
	return metadata.CurrentDetails
}

func TestContinuesAsNewAfterMaxTurnsAndCarriesEverything(t *testing.T) {
	short := func(s *machine.Spec[toy, event]) { s.MaxTurns, s.MinLife = 2, time.Nanosecond }
	b := newBench(t, short)
	b.slow()
	b.after(0, func() { b.SignalWorkflow("say", map[string]string{"text": "first run", "request_id": "r"}) })
	b.ExecuteWorkflow(toyWorkflow, 5, nil)
	first := b.carry()
	require.Equal(t, 2, b.sends)
	require.Equal(t, "observing", first.State.Phase, "due after the second effect, before its observation")
	require.Equal(t, 1, first.Runs)
	require.False(t, first.Started.IsZero())

	carry, sends, runs := first, b.sends, 1
	for ; runs < 10; runs++ {
		b = newBench(t, short)
		b.slow()
		b.after(0, func() { b.SignalWorkflow("say", map[string]string{"text": "first run", "request_id": "r"}) })
		b.ExecuteWorkflow(toyWorkflow, nil, carry)
		sends += b.sends
		if b.GetWorkflowError() == nil {
			break
		}
		carry = b.carry()
	}
	s := b.state()
	require.Equal(t, "done", s.Phase)
	require.Equal(t, 5, sends, "no turn is lost or done twice")
	require.Equal(t, 2, runs)
	require.Equal(t, 2, s.Stalled, "each continued run starts with the stalled event")
	require.Equal(t, 1, s.Seen, "the repeated request_id is known over the runs")
}

func TestYoungRunDoesNotContinueAsNew(t *testing.T) {
	b := newBench(t, func(s *machine.Spec[toy, event]) { s.MaxTurns, s.MinLife = 1, time.Hour })
	b.ExecuteWorkflow(toyWorkflow, 4, nil)
	require.NoError(t, b.GetWorkflowError())
	require.Equal(t, 4, b.sends)
}

func TestEndComesBeforeAContinuation(t *testing.T) {
	b := newBench(t, nil)
	b.SetContinueAsNewSuggested(true)
	b.after(time.Hour, func() { b.SignalWorkflow("stop", stop{}) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.NoError(t, b.GetWorkflowError())
}

func TestContinuesAsNewWhenSuggested(t *testing.T) {
	b := newBench(t, nil)
	b.SetContinueAsNewSuggested(true)
	b.after(time.Hour, func() { b.SignalWorkflow("say", say{"hello"}) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.Equal(t, []string{"hello"}, b.carry().State.Notes)
}

func TestUpgradeWaitsUntilTheRunIsOldEnough(t *testing.T) {
	b := newBench(t, nil)
	start := b.Now()
	b.after(time.Second, func() { b.signals("upgrade", map[string]string{"request_id": "r"}, "upgrade", nil) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	carry := b.carry()
	require.Equal(t, machine.UpgradeSignal, carry.Journal[len(carry.Journal)-1].Event)
	require.WithinDuration(t, start.Add(10*time.Second), b.Now(), time.Second)
}

func TestUpgradeCancelsAReadAndWaitsForAnEffect(t *testing.T) {
	for _, phase := range []string{"observing", "reserved"} {
		b := newBench(t, nil)
		start := b.Now()
		b.OnActivity("observe", anyArg, anyArg, anyArg).Return("", nil).After(time.Hour)
		b.OnActivity("send", anyArg, anyArg, anyArg).Return("applied", nil).After(time.Hour)
		carry := idle()
		carry.State.Phase, carry.State.Paused = phase, false
		b.after(time.Minute, func() { b.SignalWorkflow("upgrade", nil) })
		b.ExecuteWorkflow(toyWorkflow, nil, carry)
		next := b.carry()
		require.Equal(t, "observing", next.State.Phase)
		if phase == "observing" {
			require.WithinDuration(t, start.Add(time.Minute), b.Now(), time.Second)
		} else {
			require.Equal(t, []string{"sent:applied"}, next.State.Notes)
			require.WithinDuration(t, start.Add(time.Hour), b.Now(), time.Minute)
		}
	}
}

func TestActionAsksForContinueAsNew(t *testing.T) {
	b := newBench(t, func(s *machine.Spec[toy, event]) {
		s.MinLife = time.Nanosecond
		s.Actions["observe"] = func(ctx workflow.Context, s toy, _ kernel.Obligation) event {
			_ = workflow.Sleep(ctx, time.Minute)
			machine.Renew(ctx)
			return observed{s.Look}
		}
	})
	carry := idle()
	carry.State.Phase, carry.State.Max = "observing", 9
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	require.Equal(t, 1, b.carry().State.Turn)
}

func TestCancellationIsTakenOnceOverContinueAsNew(t *testing.T) {
	carry := idle()
	carry.Cancelled = true
	b := newBench(t, nil)
	b.after(time.Minute, func() { b.CancelWorkflow() })
	b.after(time.Hour, func() { b.SignalWorkflow("stop", stop{}) })
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	require.False(t, b.state().Closed)
}

func TestEffectOfARefusedOutcomeStaysSpentOverContinueAsNew(t *testing.T) {
	carry := idle()
	carry.State.Paused, carry.Spent = false, "send/0/0"
	b := newBench(t, func(s *machine.Spec[toy, event]) { s.Stalled = nil })
	b.after(time.Minute, func() {
		require.Zero(t, b.sends)
		b.SignalWorkflow("say", say{"go on"})
	})
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	require.Equal(t, 1, b.sends)
}

func TestRulesVersionOfARun(t *testing.T) {
	rules := func(oldest, current, limit int) func(*machine.Spec[toy, event]) {
		return func(s *machine.Spec[toy, event]) {
			s.Rules = machine.Rules{Oldest: oldest, Current: current, Cap: limit}
		}
	}
	carrying := func(version int) *machine.Carry[toy] {
		c := idle()
		c.State.RulesVer = version
		return c
	}
	t.Run("fresh run gets the current one", func(t *testing.T) {
		b := newBench(t, rules(2, 4, 0))
		b.ExecuteWorkflow(toyWorkflow, 1, nil)
		require.Equal(t, 4, b.state().RulesVer)
	})
	t.Run("or the cap", func(t *testing.T) {
		b := newBench(t, rules(2, 4, 3))
		b.ExecuteWorkflow(toyWorkflow, 1, nil)
		require.Equal(t, 3, b.state().RulesVer)
	})
	for _, test := range []struct{ carried, limit, want int }{{2, 0, 4}, {2, 3, 3}, {4, 3, 4}} {
		t.Run(fmt.Sprintf("continue-as-new of %d under cap %d", test.carried, test.limit), func(t *testing.T) {
			b := newBench(t, rules(2, 4, test.limit))
			b.after(time.Minute, func() {
				value, err := b.QueryWorkflow(machine.StateQuery)
				require.NoError(t, err)
				var s toy
				require.NoError(t, value.Get(&s))
				require.Equal(t, test.carried, s.RulesVer, "an open run keeps its version")
				b.SignalWorkflow("upgrade", nil)
			})
			b.ExecuteWorkflow(toyWorkflow, nil, carrying(test.carried))
			require.Equal(t, test.want, b.carry().State.RulesVer)
		})
	}
	for _, version := range []int{1, 5} {
		b := newBench(t, rules(2, 4, 0))
		b.ExecuteWorkflow(toyWorkflow, nil, carrying(version))
		require.ErrorContains(t, b.GetWorkflowError(), fmt.Sprintf("rules version %d and this worker knows 2 to 4", version))
	}
}

func TestLimitsOfARunAreThoseItStartedWith(t *testing.T) {
	b := newBench(t, func(s *machine.Spec[toy, event]) { s.MaxTurns, s.MinLife = 1, time.Nanosecond })
	b.slow()
	b.ExecuteWorkflow(toyWorkflow, 3, nil)
	carry := b.carry()
	require.Equal(t, 1, carry.Terms.MaxTurns)

	b = newBench(t, func(s *machine.Spec[toy, event]) { s.MaxTurns, s.MinLife = 50, time.Nanosecond })
	b.slow()
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	next := b.carry()
	require.Equal(t, 1, b.sends, "the carried limit counts, whatever worker continues")
	require.Equal(t, 50, next.Terms.MaxTurns, "the worker that continues a run gives its own to the next")
}

func TestFirstEffectAfterAResetIsSuspect(t *testing.T) {
	b := newBench(t, nil)
	b.OnMutableSideEffect("run").Return("another run")
	b.ExecuteWorkflow(toyWorkflow, 2, nil)
	require.NoError(t, b.GetWorkflowError())
	require.Equal(t, []string{"suspect", "reconciled", "sent:applied"}, b.state().Notes, "only the first")
	require.Equal(t, 1, b.sends)
}

// shy refuses to begin before somebody spoke.
type shy struct{ policy }

func (p shy) Decide(s toy, e event, meta kernel.Meta) kernel.Decision[toy] {
	if _, ok := e.(begun); ok && s.Seen == 0 {
		return kernel.Decision[toy]{Verdict: kernel.Reject, Code: "too_shy", Next: s}
	}
	return p.policy.Decide(s, e, meta)
}

func TestEffectStaysSuspectUntilItsBeginIsAccepted(t *testing.T) {
	b := newBench(t, func(s *machine.Spec[toy, event]) { s.Policy = shy{} })
	b.OnMutableSideEffect("run").Return("another run")
	b.after(time.Minute, func() { b.SignalWorkflow("say", say{"go on"}) })
	b.ExecuteWorkflow(toyWorkflow, 1, nil)
	require.NoError(t, b.GetWorkflowError())
	require.Equal(t, []string{"go on", "suspect", "reconciled"}, b.state().Notes)
	require.Zero(t, b.sends)
}

func TestSearchAttributesAndMemoAreWrittenOnlyWhenTheyChange(t *testing.T) {
	b := newBench(t, nil)
	status := temporal.NewSearchAttributeKeyKeyword("ToyStatus")
	var statuses, memos []string
	b.OnUpsertTypedSearchAttributes(anyArg).Run(func(args mock.Arguments) {
		value, _ := args.Get(0).(temporal.SearchAttributes).GetKeyword(status)
		statuses = append(statuses, value)
	}).Return(nil)
	b.OnUpsertMemo(anyArg).Run(func(args mock.Arguments) {
		memos = append(memos, fmt.Sprint(args.Get(0)))
	}).Return(nil)
	b.after(time.Minute, func() { b.SignalWorkflow("say", say{"no change"}) })
	b.after(2*time.Minute, func() { b.signals("resume", nil, "pause", nil) })
	b.after(3*time.Minute, func() { b.SignalWorkflow("stop", stop{}) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.NoError(t, b.GetWorkflowError())
	require.Equal(t, []string{"paused", "stopped"}, statuses)
	require.Equal(t, []string{"map[steward_attention:map[class:paused]]"}, memos)
}
