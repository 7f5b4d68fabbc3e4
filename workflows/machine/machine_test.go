package machine_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
)

// bench is a test environment with the toy and activities that succeed at once.
type bench struct {
	*testsuite.TestWorkflowEnvironment
	t     *testing.T
	sends int
}

func newBench(t *testing.T, adjust func(*machine.Spec[toy, event])) *bench {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	b := &bench{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t}
	b.SetWorkerOptions(worker.Options{Interceptors: machine.Options()})
	b.RegisterWorkflowWithOptions(toyRun(adjust), workflow.RegisterOptions{Name: toyWorkflow})
	ok := func(context.Context, int, int) (string, error) { return "", nil }
	for _, name := range []string{"admit", "observe", "reconcile"} {
		b.RegisterActivityWithOptions(ok, activity.RegisterOptions{Name: name})
	}
	b.RegisterActivityWithOptions(func(context.Context, int, int) (string, error) {
		b.sends++
		return "applied", nil
	}, activity.RegisterOptions{Name: "send"})
	b.SetTestTimeout(20 * time.Second)
	return b
}

// slow makes every look take a second, so that the run grows older.
func (b *bench) slow() {
	b.OnActivity("observe", anyArg, anyArg, anyArg).Return("", nil).After(time.Second)
}

// idle makes the toy paused from the start, so that only messages move it.
func idle() *machine.Carry[toy] {
	return &machine.Carry[toy]{State: toy{Phase: "reserved", Max: 1, Paused: true, RulesVer: 1}}
}

// after runs f in mock time.
func (b *bench) after(d time.Duration, f func()) { b.RegisterDelayedCallback(f, d) }

// signals sends names in one workflow task; a pair is a name and its payload.
func (b *bench) signals(pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		if i+2 < len(pairs) {
			b.SignalWorkflowSkippingWorkflowTask(pairs[i].(string), pairs[i+1])
		} else {
			b.SignalWorkflow(pairs[i].(string), pairs[i+1])
		}
	}
}

// outcome is what became of an update.
type outcome struct {
	answer  machine.Answer
	refused error
	failed  error
	done    bool
}

func (b *bench) update(name, id string, payload any) *outcome {
	o := &outcome{}
	b.UpdateWorkflow(name, id, &testsuite.TestUpdateCallback{
		OnReject: func(err error) { o.refused, o.done = err, true },
		OnComplete: func(v any, err error) {
			o.answer, _ = v.(machine.Answer)
			o.failed, o.done = err, true
		},
	}, payload)
	return o
}

// state is the state at the end, whatever way the workflow ended.
func (b *bench) state() toy {
	b.t.Helper()
	var s toy
	require.True(b.t, b.IsWorkflowCompleted())
	if err := b.GetWorkflowError(); err == nil {
		require.NoError(b.t, b.GetWorkflowResult(&s))
		return s
	}
	return b.carry().State
}

// carry is what the run hands on.
func (b *bench) carry() *machine.Carry[toy] {
	b.t.Helper()
	var next *workflow.ContinueAsNewError
	require.ErrorAs(b.t, b.GetWorkflowError(), &next)
	var input any
	var carry *machine.Carry[toy]
	require.NoError(b.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &input, &carry))
	require.Nil(b.t, input)
	require.Equal(b.t, toyWorkflow, next.WorkflowType.Name)
	return carry
}

func (b *bench) journal() []machine.Entry {
	b.t.Helper()
	value, err := b.QueryWorkflow(machine.JournalQuery)
	require.NoError(b.t, err)
	var entries []machine.Entry
	require.NoError(b.t, value.Get(&entries))
	return entries
}

func TestRunsToTheEnd(t *testing.T) {
	b := newBench(t, nil)
	b.ExecuteWorkflow(toyWorkflow, 3, nil)
	require.NoError(t, b.GetWorkflowError())
	s := b.state()
	require.Equal(t, "done", s.Phase)
	require.Equal(t, 1, s.RulesVer)
	require.Equal(t, 3, b.sends)

	var turn []int
	value, err := b.QueryWorkflow("turn")
	require.NoError(t, err)
	require.NoError(t, value.Get(&turn))
	require.Equal(t, []int{3, 0}, turn)
	entries := b.journal()
	require.Len(t, entries, 1+3*3)
	require.Equal(t, "machine_test.admitted", entries[0].Event)
	require.Equal(t, kernel.Accept, entries[0].Decision)
	require.False(t, entries[0].At.IsZero())
}

func TestCancellationIsAnEventAndEndsTheRunAsCancelled(t *testing.T) {
	b := newBench(t, nil)
	b.after(time.Minute, func() { b.CancelWorkflow() })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, b.GetWorkflowError(), &cancelled)
	var s toy
	require.NoError(t, cancelled.Details(&s))
	require.True(t, s.Closed)
}

func TestFailureIsTypedAndHoldsTheState(t *testing.T) {
	b := newBench(t, nil)
	b.after(time.Minute, func() { b.SignalWorkflow("fail", nil) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	var failure *temporal.ApplicationError
	require.ErrorAs(t, b.GetWorkflowError(), &failure)
	require.Equal(t, "toy_failed", failure.Type())
	require.True(t, failure.NonRetryable())
	require.NoError(t, failure.Unwrap())
	var s toy
	require.NoError(t, failure.Details(&s))
	require.Equal(t, 1, s.Seen)
}

func TestTimerFiresAtItsTime(t *testing.T) {
	b := newBench(t, nil)
	var fired time.Time
	b.after(time.Minute, func() { b.signals("wait", wait{Seconds: 3600}, "resume", nil) })
	b.SetOnTimerFiredListener(func(string) { fired = b.Now() })
	start := b.Now()
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.Contains(t, b.state().Notes, "elapsed")
	require.Equal(t, 1, b.sends)
	require.WithinDuration(t, start.Add(61*time.Minute), fired, time.Second)
}

func TestTimerIsCancelledWhenTheStateOwesSomethingElse(t *testing.T) {
	b := newBench(t, nil)
	cancelled := 0
	b.SetOnTimerCanceledListener(func(string) { cancelled++ })
	b.after(time.Minute, func() { b.SignalWorkflow("wait", wait{Seconds: 3600}) })
	b.after(2*time.Minute, func() { b.SignalWorkflow("stop", stop{}) })
	start := b.Now()
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.NotContains(t, b.state().Notes, "elapsed")
	require.Equal(t, 1, cancelled)
	require.WithinDuration(t, start.Add(2*time.Minute), b.Now(), time.Second)
}

func TestTimerThatIsDueAlreadyCostsNoTimer(t *testing.T) {
	b := newBench(t, nil)
	timers := 0
	b.SetOnTimerScheduledListener(func(string, time.Duration) { timers++ })
	carry := idle()
	carry.State.Phase, carry.State.Until, carry.State.Paused = "waiting", b.Now().Add(-time.Hour), false
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	require.Contains(t, b.state().Notes, "elapsed")
	require.Zero(t, timers)
}

func TestReadIsReplacedByAnotherKeyAndLeftAloneByTheSame(t *testing.T) {
	b := newBench(t, nil)
	var looks []int
	b.OnActivity("observe", anyArg, anyArg, anyArg).Return(func(_ context.Context, _, look int) (string, error) {
		looks = append(looks, look)
		return "", nil
	}).After(time.Hour)
	b.after(10*time.Minute, func() { b.SignalWorkflow("say", say{"hello"}) })
	b.after(20*time.Minute, func() { b.SignalWorkflow("relook", nil) })
	start := b.Now()
	b.ExecuteWorkflow(toyWorkflow, 1, nil)
	require.Equal(t, "done", b.state().Phase)
	require.Equal(t, 1, b.sends)
	require.Contains(t, looks, 1)
	for _, e := range b.journal() {
		require.NotEqual(t, "machine_test.nothing", e.Event, "what a cancelled read returns is dropped")
	}
	require.WithinDuration(t, start.Add(80*time.Minute), b.Now(), time.Second, "the first look is dropped, the second one counts")
}

func TestStopAsksARunningEffectToEndAndTakesItsRealOutcome(t *testing.T) {
	b := newBench(t, func(s *machine.Spec[toy, event]) {
		s.Actions["send"] = func(ctx workflow.Context, s toy, _ kernel.Obligation) event {
			_ = workflow.Await(ctx, func() bool { return false })
			if ctx.Err() == nil {
				return sent{s.Gen, "nobody asked"}
			}
			free, _ := workflow.NewDisconnectedContext(ctx)
			_ = workflow.Sleep(free, time.Minute)
			return sent{s.Gen, "applied"}
		}
	})
	carry := idle()
	carry.State.Paused = false
	b.after(time.Hour, func() { b.SignalWorkflow("pause", nil) })
	b.after(2*time.Hour, func() { b.SignalWorkflow("stop", stop{}) })
	start := b.Now()
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	require.Equal(t, []string{"pause", "sent:applied"}, b.state().Notes)
	require.WithinDuration(t, start.Add(2*time.Hour+time.Minute), b.Now(), time.Second)
}

func TestCancellationDuringAnEffectTakesItsOutcomeFirst(t *testing.T) {
	b := newBench(t, nil)
	b.OnActivity("send", anyArg, anyArg, anyArg).Return("applied", nil).After(time.Minute)
	b.after(30*time.Second, func() { b.CancelWorkflow() })
	carry := idle()
	carry.State.Paused = false
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, b.GetWorkflowError(), &cancelled)
	var s toy
	require.NoError(t, cancelled.Details(&s))
	require.Equal(t, []string{"sent:deferred"}, s.Notes, "the test environment cancels at once: a bare error, never started")
}

func TestEffectWithARefusedOutcomeIsNotStartedAgainBeforeTheStateChanges(t *testing.T) {
	b := newBench(t, nil)
	sends := 0
	b.OnActivity("send", anyArg, anyArg, anyArg).Return(func(context.Context, int, int) (string, error) {
		if sends++; sends == 1 {
			return "refuse", nil
		}
		return "applied", nil
	})
	carry := idle()
	carry.State.Paused = false
	b.after(1*time.Hour, func() {
		require.Equal(t, 1, sends)
		b.SignalWorkflow("say", say{"go on"})
	})
	b.after(2*time.Hour, func() {
		require.Equal(t, 1, sends, "the toy owes the same effect, but refuses to begin it twice")
		b.SignalWorkflow("wait", wait{Seconds: 1})
	})
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	require.Equal(t, []string{"go on", "elapsed", "sent:applied"}, b.state().Notes)
	require.Equal(t, 2, sends)
}

func TestReadWhoseOutcomeChangesNothingIsServedAgainAfterAGrowingPause(t *testing.T) {
	b := newBench(t, nil)
	var pauses []time.Duration
	b.SetOnTimerScheduledListener(func(_ string, d time.Duration) { pauses = append(pauses, d) })
	carry := idle()
	carry.State.Phase, carry.State.Paused, carry.State.Look = "observing", false, 100
	b.after(time.Minute, func() { b.SignalWorkflow("relook", nil) })
	b.ExecuteWorkflow(toyWorkflow, nil, carry)
	require.Equal(t, "done", b.state().Phase)
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 32}, seconds(pauses))
}

func seconds(all []time.Duration) []time.Duration {
	out := make([]time.Duration, len(all))
	for i, d := range all {
		out[i] = d / time.Second
	}
	return out
}

func TestRunWithoutTheInterceptorSaysSo(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(toyRun(nil), workflow.RegisterOptions{Name: toyWorkflow})
	env.ExecuteWorkflow(toyWorkflow, 1, nil)
	require.ErrorContains(t, env.GetWorkflowError(), "machine.Options()")
}

func TestUnknownObligationFailsTheTaskAndNamesIt(t *testing.T) {
	b := newBench(t, func(s *machine.Spec[toy, event]) { delete(s.Actions, "admit") })
	b.ExecuteWorkflow(toyWorkflow, 1, nil)
	require.ErrorContains(t, b.GetWorkflowError(), `no action serves the obligation "admit"`)
}

func TestSpecIsChecked(t *testing.T) {
	for name, adjust := range map[string]func(*machine.Spec[toy, event]){
		"needs":         func(s *machine.Spec[toy, event]) { s.Name = nil },
		`named "pause"`: func(s *machine.Spec[toy, event]) { s.Messages = append(s.Messages, on[pause]("pause", machine.Signal)) },
		`named "upgrade"`: func(s *machine.Spec[toy, event]) {
			s.Messages = append(s.Messages, on[pause]("upgrade", machine.Signal))
		},
		`"state" is built in`: func(s *machine.Spec[toy, event]) { s.Queries["state"] = s.Queries["turn"] },
		"above the current":   func(s *machine.Spec[toy, event]) { s.Rules.Oldest = 2 },
	} {
		b := newBench(t, adjust)
		b.ExecuteWorkflow(toyWorkflow, 1, nil)
		require.ErrorContains(t, b.GetWorkflowError(), name)
	}
}
