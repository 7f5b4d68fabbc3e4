package recovery

import (
	"context"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"steward/activities"
	"steward/activities/recovery/home"
	"steward/activities/recovery/watchdog"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never came to: " + what)
		}
	}
}

// watching runs the watchdog with short times until the test ends.
func (l *lab) watching() {
	l.Watchdog = WatchdogOptions{Every: 20 * time.Millisecond, Policy: watchdog.Policy{
		RestartFailures: 2, RestartOver: 50 * time.Millisecond, Restarts: 2, RestartEvery: 100 * time.Millisecond, Healthy: time.Minute,
		RollbackFailures: 3, RollbackOver: 150 * time.Millisecond, Evidence: 2,
	}}
	ctx, cancel := context.WithCancel(l.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Watch(ctx)
	}()
	l.t.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestWatchdogRestartsWhatDied(t *testing.T) {
	l := newLab(t)
	l.mustWrite(2)
	l.watching()
	before := l.serving()
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, "another process of A", func() bool { now := l.serving(); return now.Release == l.a && now.PID != before.PID })
	if now := l.serving(); now.Epoch != before.Epoch+1 {
		t.Errorf("epoch %d follows %d", now.Epoch, before.Epoch)
	}
	if err := (home.Claim{Epoch: before.Epoch, Release: before.Release}).Check(l.plan.Service.Home); err == nil {
		t.Error("the killed incarnation may still write")
	}
}

// B dies again and again in its soak, with no Temporal: its own session's rollback brings A back.
func TestWatchdogRollsTheSoakingSessionBack(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B", "broken": "late_exit"})
	if result := l.cutover(b); result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	l.watching()
	await(t, "A serves again", func() bool { return l.serving().Release == l.a })
	await(t, "the rollback is settled", func() bool { record, err := l.i.locked(); return err == nil && record == nil })
	lane := l.look(t.Context(), l.i, labSession)
	if lane.RollbackReason() != reasonWatchdog || l.journal().Outcome != OutcomeRolledBack {
		t.Errorf("reason %q, outcome %q", lane.RollbackReason(), l.journal().Outcome)
	}
	l.settledOn(l.a)
}

func TestWatchdogKeepsAKnownGoodRelease(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	if result := l.cutover(b); result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	if session := l.wayBackSession(t.Context(), l.i, l.authority()); session != labSession {
		t.Errorf("while it soaks the way back is %q", session)
	}
	if got := l.bundle(b); !got.Validated {
		t.Fatalf("%+v", got)
	}
	if session := l.wayBackSession(t.Context(), l.i, l.authority()); session != "" {
		t.Errorf("from a known-good release the way back is %q", session)
	}
}

// An operation that was interrupted in this very process is finished by the watchdog's loop.
func TestWatchdogFinishesAnInterruptedOperation(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	l.killOperation(evidence.KindCutover, b, evidence.StepPublished)
	l.watching()
	await(t, "A serves again", func() bool { return l.serving().Release == l.a })
	await(t, "the outcome is typed", func() bool { return l.journal().Outcome == OutcomeRolledBack })
}

func TestSoakWindows(t *testing.T) {
	l := newLab(t)
	short, none := plan.Duration(150*time.Millisecond), plan.Duration(0)
	l.plan.Soak.Performance.Window, l.plan.Soak.Performance.WarmUp = &short, &none
	in := activities.ObserveSoakInput{ReleaseRef: l.ref(l.a), First: true, Windows: 3}
	got, err := l.ObserveSoak(t.Context(), in)
	if err != nil || len(got.Windows) != 3 || !got.Lane.Serving.Ready {
		t.Fatalf("%+v, %v", got, err)
	}
	pid := l.serving().PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	onSchedule := func(w evidence.Window) bool { return !w.OffSchedule }
	if got, err = l.ObserveSoak(t.Context(), in); err != nil || slices.ContainsFunc(got.Windows, onSchedule) {
		t.Errorf("windows of a dead service: %+v, %v", got.Windows, err)
	}
}

func TestActiveReleaseIsRestartedOnce(t *testing.T) {
	l := newLab(t)
	before := l.serving()
	in := activities.RestartActiveInput{ReleaseRef: l.ref(l.a), Before: int64(before.Epoch)}
	for range 2 {
		got, err := l.RestartActive(t.Context(), in)
		if err != nil || got.Lane.Serving.Incarnation != int64(before.Epoch)+1 || !got.Lane.Settled {
			t.Errorf("%+v, %v", got.Lane, err)
		}
	}
	l.settledOn(l.a)
}

// After a rollback the owner stays the same: A, in one epoch (argoproj/argo-rollouts#3078).
func TestPublic_C09_TheOwnerIsConstantAfterARollback(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	if result := l.cutover(b); result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	if result, err := l.operations().Rollback(t.Context(), l.input(b, "r1")); err != nil || result.Failed != nil {
		t.Fatalf("%+v, %v", result.Failed, err)
	}
	l.watching()
	looks := 20
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		looks = 600
	}
	first := l.serving()
	for range looks {
		if now := l.serving(); now != first || now.Release != l.a {
			t.Fatalf("the owner changed from %+v to %+v", first, now)
		}
		time.Sleep(100 * time.Millisecond) // looks are spread over the time in which it could change
	}
}
