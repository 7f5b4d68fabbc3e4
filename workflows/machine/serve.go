package machine

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine/kernel"
)

// serving is the one obligation that is being served.
type serving struct {
	key    string
	class  kernel.Class
	cancel workflow.CancelFunc
	asked  bool
}

// stop asks once for cancellation. The next obligation waits until this one is gone, so that two activities never meet.
func (s *serving) stop() {
	if !s.asked {
		s.asked = true
		s.cancel()
	}
}

// servable tells whether the obligation is one that the driver starts. An effect whose outcome the policy did not accept is
// not: the same debt would be paid twice.
func (m *machine[S, E]) servable(o kernel.Obligation) bool {
	switch o.Class {
	case kernel.Timer, kernel.ReadOnly:
		return true
	case kernel.Effect:
		return o.Key != m.carry.Spent
	default:
		return false
	}
}

// begin takes the event "this attempt starts". It returns the obligation after it, and whether that still is the effect.
func (m *machine[S, E]) begin(ctx workflow.Context, o kernel.Obligation) (kernel.Obligation, bool) {
	m.suspect = m.wasReset(ctx) || m.suspect
	d := m.take(ctx, m.Begin(m.carry.State, o, m.suspect), sender{})
	if d.Verdict != kernel.Accept {
		m.carry.Spent = o.Key
		workflow.GetLogger(ctx).Error("the policy refused the start of the effect that it owes; it is not started until the state changes",
			"key", o.Key, "code", d.Code)
		return o, false
	}
	m.suspect = false
	now := m.owed()
	return now, now.Class == kernel.Effect && now.Key == o.Key
}

// wasReset tells whether the history was reset since the last effect. A reset copies the history up to a point into a new
// run; what the old run did after that point is lost to it. The run id is written to the history before the first effect of
// a run, so a replay sees the id of the run that really was there: another one now is a reset. One marker event per run.
//
// An effect that was pending at the point of the reset is not begun again: the server hands its activity to a worker a second
// time. Only the activity can tell, when its input names the run that scheduled it and its info names another.
func (m *machine[S, E]) wasReset(ctx workflow.Context) bool {
	value := workflow.MutableSideEffectWithOptions(ctx, "run", workflow.MutableSideEffectOptions{Summary: "run that starts effects"},
		func(ctx workflow.Context) any { return workflow.GetInfo(ctx).WorkflowExecution.RunID },
		func(a, b any) bool { return a == b })
	var run string
	if err := value.Get(&run); err != nil {
		panic(fmt.Sprintf("machine: the recorded run id is unreadable: %v", err))
	}
	changed := run != m.run && run != m.life.known
	m.run = run
	return changed
}

// start serves an obligation in a coroutine of its own, which takes the outcome itself.
func (m *machine[S, E]) start(ctx workflow.Context, o kernel.Obligation) {
	ctx, cancel := workflow.WithCancel(ctx)
	s := &serving{key: o.Key, class: o.Class, cancel: cancel}
	m.running = s
	if o.Class == kernel.Effect {
		m.effects++
	}
	state, pause := m.carry.State, pause(m.refusals)
	workflow.GoNamed(ctx, o.Key, func(ctx workflow.Context) {
		e, ok := m.outcome(ctx, state, o, pause)
		m.running, m.news = nil, true
		if !ok || s.asked && o.Class != kernel.Effect {
			return // the next look finds it again
		}
		m.intake(ctx)
		if d := m.take(ctx, e, sender{}); d.Verdict != kernel.Accept && m.owed().Key == o.Key {
			m.refused(ctx, o, d.Code)
		}
	})
}

// outcome blocks until the obligation is served. It is false when a wait was cancelled before there was an outcome.
func (m *machine[S, E]) outcome(ctx workflow.Context, state S, o kernel.Obligation, pause time.Duration) (e E, ok bool) {
	if pause > 0 {
		if !sleep(ctx, pause, "pause after an outcome that changed nothing") {
			return e, false
		}
	}
	if o.Class != kernel.Timer {
		action, known := m.Actions[o.Kind]
		if !known {
			panic(fmt.Sprintf("machine: no action serves the obligation %q", o.Kind))
		}
		return action(ctx, state, o), true
	}
	if wait := o.At.Sub(workflow.Now(ctx)); wait > 0 && !sleep(ctx, wait, o.Summary) {
		return e, false
	}
	return m.Elapsed(state, o), true
}

func sleep(ctx workflow.Context, d time.Duration, summary string) bool {
	return workflow.NewTimerWithOptions(ctx, d, workflow.TimerOptions{Summary: summary}).Get(ctx, nil) == nil
}

// refused notes that an outcome left the obligation as it was. An effect is not served again before the state changes;
// a read or timer is, after a growing pause, so that a policy which keeps refusing cannot fill the history.
func (m *machine[S, E]) refused(ctx workflow.Context, o kernel.Obligation, code string) {
	m.refusals++
	if o.Class == kernel.Effect {
		m.carry.Spent = o.Key
	}
	workflow.GetLogger(ctx).Warn("the outcome did not change what is owed", "key", o.Key, "code", code, "in_a_row", m.refusals)
}

// pause grows from one second to one minute.
func pause(refusals int) time.Duration {
	if refusals == 0 {
		return 0
	}
	return min(time.Second<<min(refusals-1, 6), time.Minute)
}
