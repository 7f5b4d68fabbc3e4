package machine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
)

func TestServerEffect(t *testing.T) {
	t.Run("that no worker has started", func(t *testing.T) {
		st := newStage(t, func(s *machine.Spec[toy, event]) {
			s.Actions["send"] = func(ctx workflow.Context, s toy, o kernel.Obligation) event {
				_, failure := machine.Do[string](ctx, machine.Effect("nobody-"+o.Key, "", machine.Times{StartToClose: time.Minute}), "send", 0, 0)
				return sent{s.Gen, string(failure.Cause)}
			}
		})
		st.work()
		run := st.start(1)
		st.until("sending", func(s toy) bool { return s.Phase == "dispatching" })
		st.signal("stop", stop{})
		require.Equal(t, []string{"sent:never_started"}, st.end(run).Notes)
		st.replay(run.GetRunID())
	})
	t.Run("that nobody starts in time", func(t *testing.T) {
		st := newStage(t, func(s *machine.Spec[toy, event]) {
			s.Actions["send"] = func(ctx workflow.Context, s toy, o kernel.Obligation) event {
				options := machine.Effect("nobody-"+o.Key, "", machine.Times{ScheduleToStart: time.Second, StartToClose: time.Minute})
				_, failure := machine.Do[string](ctx, options, "send", 0, 0)
				return sent{s.Gen, string(failure.Cause) + failure.Type}
			}
		})
		st.work()
		run := st.start(1)
		st.until("given up", func(s toy) bool { return s.Phase == "observing" || s.Phase == "unknown" || s.Phase == "done" })
		require.Equal(t, "sent:never_startedScheduleToStart", st.end(run).Notes[0])
	})
	t.Run("that returns when asked to", func(t *testing.T) {
		st := newStage(t, nil)
		st.send = func(ctx context.Context, _, _ int) (string, error) {
			for ctx.Err() == nil {
				activity.RecordHeartbeat(ctx)
				time.Sleep(20 * time.Millisecond)
			}
			return "", temporal.NewCanceledError("not armed")
		}
		st.work()
		run := st.start(1)
		require.Eventually(t, func() bool { st.mu.Lock(); defer st.mu.Unlock(); return len(st.sends) == 1 }, 20*time.Second, 10*time.Millisecond)
		st.signal("stop", stop{})
		require.Equal(t, []string{"sent:cancelled"}, st.end(run).Notes)
	})
	t.Run("that is lost, armed", func(t *testing.T) {
		st := newStage(t, func(s *machine.Spec[toy, event]) {
			s.Actions["send"] = func(ctx workflow.Context, s toy, o kernel.Obligation) event {
				options := machine.Effect("", "", machine.Times{StartToClose: time.Minute, Heartbeat: time.Second})
				_, failure := machine.Do[string](ctx, options, "send", 0, 0)
				var last string
				_ = failure.Details(&last)
				return sent{s.Gen, string(failure.Cause) + failure.Type + last}
			}
		})
		silent := make(chan struct{})
		st.send = func(ctx context.Context, _, _ int) (string, error) {
			activity.RecordHeartbeat(ctx, "armed")
			<-silent
			return "", errors.New("too late")
		}
		st.work()
		t.Cleanup(func() { close(silent) }) // before the worker stops
		run := st.start(1)
		require.Equal(t, "sent:lostHeartbeatarmed", st.end(run).Notes[0])
	})
	t.Run("that ends normally all the same", func(t *testing.T) {
		st := newStage(t, nil)
		st.send = func(ctx context.Context, _, _ int) (string, error) {
			for ctx.Err() == nil {
				activity.RecordHeartbeat(ctx)
				time.Sleep(20 * time.Millisecond)
			}
			return "applied", nil
		}
		st.work()
		run := st.start(1)
		require.Eventually(t, func() bool { st.mu.Lock(); defer st.mu.Unlock(); return len(st.sends) == 1 }, 20*time.Second, 10*time.Millisecond)
		require.NoError(t, st.client.CancelWorkflow(st.ctx(), st.queue, ""))
		var cancelled *temporal.CanceledError
		require.ErrorAs(t, run.Get(st.ctx(), nil), &cancelled)
		var s toy
		require.NoError(t, cancelled.Details(&s))
		require.Equal(t, []string{"sent:applied"}, s.Notes)
		st.replay(run.GetRunID())
	})
}
