package recovery

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"steward/activities"
	"steward/activities/recovery/database"
	"steward/activities/recovery/home"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

func stepNames(steps []evidence.Step) []string {
	var names []string
	for _, s := range steps {
		names = append(names, s.Name)
	}
	return names
}

var cutoverSteps = []string{
	evidence.StepLocked, evidence.StepSnapshot, evidence.StepFenced, evidence.StepStopped, evidence.StepBackup, evidence.StepPublished,
	evidence.StepReserved, evidence.StepStarted, evidence.StepRebound, evidence.StepVerified, evidence.StepCleared,
}

var rollbackSteps = []string{
	evidence.StepRollbackStopped, evidence.StepRollbackDatabase, evidence.StepRollbackPublished, evidence.StepRollbackStarted,
	evidence.StepRollbackVerified, evidence.StepRollbackCleared,
}

func TestCutoverAndRollback(t *testing.T) {
	l := newLab(t)
	l.mustWrite(3)
	b := l.release(map[string]any{"name": "B"})
	before := l.serving()
	result := l.cutover(b)
	if result.Failed != nil || !slices.Equal(stepNames(result.Lane.Steps), cutoverSteps) {
		t.Fatalf("%+v, steps %v", result.Failed, stepNames(result.Lane.Steps))
	}
	if !result.Lane.Observed || !result.Lane.Settled || !result.Lane.Serving.Ready || result.Lane.Serving.Release != b {
		t.Errorf("the lane: %+v", result.Lane)
	}
	if result.OutageMillis <= 0 || result.Backup == "" || result.Receipt.Outcome != evidence.Passed || l.journal().Outcome != OutcomeApplied {
		t.Errorf("%+v", result)
	}
	t.Logf("outage %d ms", result.OutageMillis)
	l.settledOn(b)
	if now := l.serving(); now.Epoch != before.Epoch+1 {
		t.Errorf("epoch %d follows %d", now.Epoch, before.Epoch)
	}
	if err := (home.Claim{Epoch: before.Epoch, Release: l.a}).Check(l.plan.Service.Home); !errors.Is(err, home.ErrStale) {
		t.Errorf("the old incarnation may write: %v", err)
	}

	n := l.rows()
	in := l.input(b, "r1")
	in.Reason = "session"
	back, err := l.operations().Rollback(t.Context(), in)
	if err != nil || back.Failed != nil || !back.Restored {
		t.Fatalf("%+v, %v", back, err)
	}
	if !slices.Equal(stepNames(back.Lane.Steps), append(slices.Clone(cutoverSteps), rollbackSteps...)) ||
		back.Lane.RollbackReason() != "session" {
		t.Errorf("steps %v, reason %q", stepNames(back.Lane.Steps), back.Lane.RollbackReason())
	}
	if back.Database != database.Kept || l.rows() != n {
		t.Errorf("the database was %s with %d rows of %d", back.Database, l.rows(), n)
	}
	if last := back.Lane.Authority.LastOperation; last != (evidence.Operation{Kind: evidence.KindRollback, Session: labSession}) {
		t.Errorf("last operation %+v", last)
	}
	l.settledOn(l.a)
}

func TestRollbackRestoresAnUnchangedDatabase(t *testing.T) {
	l := newLab(t)
	l.mustWrite(3)
	b := l.release(map[string]any{"name": "B", "broken": "unverified"})
	result := l.cutover(b)
	if result.Failed == nil || result.Database != database.Restored || !result.Restored || l.journal().Outcome != OutcomeRolledBack {
		t.Errorf("%+v, database %s: %s", result.Failed, result.Database, l.journal().DatabaseNote)
	}
	if got := l.rows(); got != 3 {
		t.Errorf("%d rows", got)
	}
	l.settledOn(l.a)
}

// B is healthy as a candidate and fails in the live lane: back to exact A, not to a broken B (fluxcd/flagger#1931).
func TestBrokenReleaseGoesBackToExactA(t *testing.T) {
	for _, broken := range []string{"exit", "unready", "unverified"} {
		t.Run(broken, func(t *testing.T) {
			l := newLab(t)
			short := plan.Duration(time.Second)
			l.plan.Service.StartTimeout = &short
			b := l.release(map[string]any{"name": "B", "broken": broken, "write_at_start": broken == "unready"})
			result := l.cutover(b)
			if result.Failed == nil || result.Lane.RollbackReason() != reasonCutoverFailed || l.journal().Outcome != OutcomeRolledBack {
				t.Errorf("%+v, steps %v", result.Failed, stepNames(result.Lane.Steps))
			}
			l.settledOn(l.a)
		})
	}
}

func TestPortTakenAfterTheStopGoesBackToA(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	var foreign net.Listener
	l.afterStep = func(step string) {
		if step == evidence.StepReserved {
			var err error
			if foreign, err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(l.plan.Service.Port)); err != nil {
				t.Error(err)
			}
		}
	}
	l.TryEvery = 100 * time.Millisecond
	result := l.cutover(b)
	if foreign == nil {
		t.Fatal("nobody took the port")
	}
	if result.Failed == nil || l.journal().Outcome != OutcomeUnserviceable || l.journal().Attention == "" {
		t.Errorf("%+v, outcome %s", result.Failed, l.journal().Outcome)
	}
	if active := l.authority().Active.Tree; active != l.a {
		t.Errorf("release %.12s is active; a restart must never start the broken one again", active)
	}
	if err := foreign.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.settledOn(l.a)
}

func TestNothingHappensBeforeArming(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	before := l.serving()
	o := l.operations()
	o.Beat = func(_ context.Context, p activities.OperationProgress) error {
		if p.Armed != 0 {
			return errors.New("it has timed out")
		}
		return nil
	}
	result, err := o.Cutover(t.Context(), l.input(b, "c1"))
	if err != nil || result.Failed == nil || result.Failed.Code != "not_armed" || result.Restored {
		t.Errorf("%+v, %v", result, err)
	}
	l.settledOn(l.a)
	if l.serving() != before {
		t.Error("the service was touched")
	}
	o.Beat = func(context.Context, activities.OperationProgress) error { return errors.New("it has timed out") }
	if _, err := o.Cutover(t.Context(), l.input(b, "c2")); err == nil || len(l.journal().Operations) != 1 {
		t.Errorf("an operation that the server does not want was begun: %v", err)
	}
}

// A lost answer never replays an operation.
func TestOperationIsNeverRepeated(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	in := l.input(b, "c1")
	l.cutover(b)
	before := l.serving()
	_, err := l.operations().Cutover(t.Context(), in)
	var refused *temporal.ApplicationError
	if !errors.As(err, &refused) || refused.Type() != activities.OperationRepeated || !refused.NonRetryable() {
		t.Errorf("%v", err)
	}
	l.settledOn(b)
	if l.serving() != before {
		t.Error("the service was touched")
	}
}

func TestDriftOfTheStableReleaseRefusesTheCutover(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	in := l.input(b, "c1")
	in.Stable.Release = strings.Repeat("0", 64)
	result, err := l.operations().Cutover(t.Context(), in)
	if err != nil || result.Failed == nil || result.Failed.Code != "authority_changed" {
		t.Errorf("%+v, %v", result.Failed, err)
	}
	in = l.input(strings.Repeat("1", 64), "c2")
	if result, err = l.operations().Cutover(t.Context(), in); err != nil || result.Failed == nil ||
		result.Failed.Code != activities.ReleaseChanged {
		t.Errorf("%+v, %v", result.Failed, err)
	}
	l.settledOn(l.a)
}

func TestCommitDuringTheStopTakesTheStoppedBackup(t *testing.T) {
	l := newLab(t)
	l.mustWrite(1)
	b := l.release(map[string]any{"name": "B"})
	l.afterStep = func(step string) {
		if step != evidence.StepSnapshot {
			return
		}
		l.mustWrite(1) // the fence does not stand yet
	}
	result := l.cutover(b)
	if result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	if got := l.journal().Rollback.Backup.Rows["rows"]; got != 2 {
		t.Errorf("the backup has %d rows of 2", got)
	}
}

func TestFenceRefusesNewWorkWhileItStands(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	var fenced error
	l.afterStep = func(step string) {
		if step == evidence.StepFenced {
			fenced = l.write()
		}
	}
	if result := l.cutover(b); result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	if fenced == nil || !strings.Contains(fenced.Error(), home.ErrFenced.Error()) {
		t.Errorf("under the fence a write gave %v", fenced)
	}
	l.settledOn(b)
}

// The start of A fails at first: it is tried again, and only then a person is called (hashicorp/nomad#3836).
func TestPublic_C14_TheStartOfAIsRetriedDuringARollback(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	if result := l.cutover(b); result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	stored := l.store.Path(l.a)
	l.afterStep = func(step string) {
		if step == evidence.StepRollbackPublished {
			if err := os.Rename(stored, stored+".away"); err != nil {
				t.Error(err)
			}
			time.AfterFunc(150*time.Millisecond, func() { _ = os.Rename(stored+".away", stored) })
		}
	}
	l.TryEvery = 200 * time.Millisecond
	result, err := l.operations().Rollback(t.Context(), l.input(b, "r1"))
	if err != nil || result.Failed != nil {
		t.Fatalf("%+v, %v", result.Failed, err)
	}
	l.settledOn(l.a)
}

func TestUnserviceableRollbackCallsAPersonAndDeletesNothing(t *testing.T) {
	l := newLab(t)
	l.mustWrite(2)
	b := l.release(map[string]any{"name": "B"})
	if result := l.cutover(b); result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	n := l.rows()
	stored := l.store.Path(l.a)
	if err := os.Rename(stored, stored+".away"); err != nil {
		t.Fatal(err)
	}
	result, err := l.operations().Rollback(t.Context(), l.input(b, "r1"))
	if err != nil || result.Failed == nil || !result.Restored || result.Lane.Serving.Ready || !result.Lane.Settled {
		t.Fatalf("%+v, %v", result, err)
	}
	j := l.journal()
	if j.Outcome != OutcomeUnserviceable || !strings.Contains(j.Attention, "steward recovery") || l.rows() != n {
		t.Errorf("%+v", j)
	}
	if err := j.Rollback.Backup.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.Rename(stored+".away", stored); err != nil {
		t.Fatal(err)
	}
	if err := l.Recover(t.Context()); err != nil { // what the attention asks for
		t.Fatal(err)
	}
	l.settledOn(l.a)
}

func TestOnlyTheSessionOfALockRecordGoesOn(t *testing.T) {
	l := newLab(t)
	held, err := l.i.take("other", l.authority().Epoch)
	if err != nil {
		t.Fatal(err)
	}
	b := l.release(map[string]any{"name": "B"})
	if result := l.cutover(b); result.Failed == nil || result.Failed.Code != "locked" {
		t.Errorf("beside a live operation: %+v", result.Failed)
	}
	if err := held.leave(); err != nil {
		t.Fatal(err)
	}
	if result := l.cutover(b); result.Failed == nil || result.Failed.Code != "locked" {
		t.Errorf("beside the record of a dead one: %+v", result.Failed)
	}
	again, err := l.i.take("other", l.authority().Epoch)
	if err != nil {
		t.Fatalf("the session itself: %v", err)
	}
	if err := again.release(); err != nil {
		t.Fatal(err)
	}
	if result := l.cutover(b); result.Failed != nil {
		t.Errorf("after it was released: %+v", result.Failed)
	}
}

// Who looks after the service holds the lock for a moment; an operation waits for that instead of failing.
func TestOperationWaitsForAShortHold(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	held, err := l.i.hold()
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = held.leave() })
	if result := l.cutover(b); result.Failed != nil {
		t.Errorf("%+v", result.Failed)
	}
}

func TestStaleWriterPublishesNoAuthority(t *testing.T) {
	l := newLab(t)
	now := l.authority()
	stale := now
	stale.Epoch = 0
	if err := l.i.publish(stale, now.Revision); !errors.Is(err, home.ErrStale) {
		t.Errorf("a lower epoch: %v", err)
	}
	if err := l.i.publish(now, now.Revision-1); !errors.Is(err, ErrAuthority) {
		t.Errorf("an old revision: %v", err)
	}
}
