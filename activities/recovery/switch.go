package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"steward/activities"
	"steward/activities/recovery/database"
	"steward/activities/recovery/home"
	"steward/workflows/release/evidence"
)

// work is one physical operation under the recovery lock.
type work struct {
	*Recovery
	i    instance
	lock *lock
	j    *journal
	// fenceTime is how long the admission fence stands at most.
	fenceTime time.Duration
	// progress is told of the step that begins.
	progress func(step string)

	watch     *database.Watch
	backup    *database.Backup
	stoppedAt time.Time
	result    activities.OperationResult
}

// Reasons of a rollback.
const (
	reasonCutoverFailed = "cutover_failed"
	reasonWatchdog      = "watchdog"
)

// step records a completed step durably.
func (w *work) step(name, reason string) error {
	w.j.Steps = append(w.j.Steps, evidence.Step{Name: name, At: time.Now().UTC(), Reason: reason})
	if err := w.j.write(); err != nil {
		return err
	}
	w.afterStep(name)
	w.progress(name)
	return nil
}

// steps runs parts one after the other and records each when it is complete.
func (w *work) steps(ctx context.Context, parts ...part) error {
	for _, p := range parts {
		if err := p.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		w.afterStep(p.name + unrecorded)
		if err := w.step(p.name, ""); err != nil {
			return err
		}
	}
	return nil
}

// unrecorded follows the name of a step that is done and not recorded yet.
const unrecorded = " (not recorded)"

type part struct {
	name string
	do   func(context.Context) error
}

// cutover switches the service from the authority's active release to next. arm is asked directly before the service is
// stopped, and only nil permits it; from then on ctx no longer ends the operation.
func (w *work) cutover(ctx context.Context, now Authority, next Release, arm func(context.Context) error) error {
	err := w.steps(ctx,
		part{evidence.StepLocked, func(context.Context) error { return nil }},
		part{evidence.StepSnapshot, func(ctx context.Context) error { return w.speculate(ctx, now.Active) }},
		part{evidence.StepFenced, func(context.Context) error { return w.fence(now.Active, now.Epoch) }},
	)
	defer w.endWatch()
	if err == nil {
		err = arm(ctx)
	}
	if err != nil {
		return w.notBegun(err)
	}
	ctx = context.WithoutCancel(ctx)
	if err := w.switchOver(ctx, now, next); err != nil {
		return w.wayBack(ctx, now, err)
	}
	w.j.Outcome = OutcomeApplied
	return w.settle(evidence.StepCleared)
}

// switchOver is the part of a cutover in which the service does not serve, and what follows until it is verified.
func (w *work) switchOver(ctx context.Context, now Authority, next Release) error {
	return w.steps(ctx,
		part{evidence.StepStopped, func(ctx context.Context) error {
			err := w.stop(ctx, now.Active.Service)
			w.stoppedAt = time.Now()
			return err
		}},
		part{evidence.StepBackup, func(ctx context.Context) error { return w.confirmBackup(ctx, now.Active) }},
		part{evidence.StepPublished, func(context.Context) error { return w.switchAuthority(now, next) }},
		part{evidence.StepReserved, func(context.Context) error { return w.reserve(next) }},
		part{evidence.StepStarted, func(ctx context.Context) error {
			err := w.start(ctx, next, w.j.Reserved)
			w.j.OutageMillis = time.Since(w.stoppedAt).Milliseconds()
			return err
		}},
		part{evidence.StepRebound, func(ctx context.Context) error { return w.rebind(ctx, next) }},
		part{evidence.StepVerified, func(ctx context.Context) error { return w.verifyOnce(ctx, next, "active") }},
	)
}

// notBegun ends an operation that has not touched the service.
func (w *work) notBegun(cause error) error {
	w.j.Outcome, w.j.Failure = OutcomeNotApplied, shortError(cause)
	return errors.Join(cause, w.settle(""))
}

// wayBack ends a cutover that failed after the stop of the stable release had begun.
func (w *work) wayBack(ctx context.Context, before Authority, cause error) error {
	w.Log.Warn("the cutover failed", "session", w.j.Session, "error", cause)
	w.endWatch()
	w.j.Failure = shortError(cause)
	now, err := w.i.authority()
	if err == nil && now.Revision != before.Revision {
		// The authority is what counts, not how far the steps came.
		return errors.Join(cause, w.rollback(ctx, reasonCutoverFailed))
	}
	return errors.Join(cause, err, w.standDown(ctx, before.Active))
}

// standDown starts the exact stable release again after a cutover that had not changed the authority.
func (w *work) standDown(ctx context.Context, stable Release) error {
	w.result.Restored = true
	w.j.Outcome = OutcomeNotApplied
	err := w.bringUp(ctx, stable)
	if err != nil {
		w.unserviceable(stable, err)
	}
	return errors.Join(err, w.settle(""))
}

// speculate takes the backup while the service serves. When that fails the backup is taken after the stop.
func (w *work) speculate(ctx context.Context, stable Release) error {
	if stable.Service.Database == nil {
		return nil
	}
	watch, err := database.StartWatch(ctx, databaseFile(stable.Service))
	if err != nil {
		w.Log.Info("no backup while the service serves", "error", err)
		return nil
	}
	w.watch = watch
	backup, err := watch.Snapshot(ctx, w.i.backupFile(w.j.Session))
	if err != nil {
		w.Log.Info("no backup while the service serves", "error", err)
		w.endWatch()
		return nil
	}
	w.backup = &backup
	return nil
}

func (w *work) endWatch() {
	if w.watch == nil {
		return
	}
	if err := w.watch.Close(); err != nil {
		w.Log.Warn("the watch on the database", "error", err)
	}
	w.watch = nil
}

// confirmBackup keeps the backup when nobody committed since, and takes it from the stopped service otherwise.
func (w *work) confirmBackup(ctx context.Context, stable Release) (err error) {
	if w.watch != nil && w.watch.Unchanged(ctx) == nil {
		w.endWatch()
	} else {
		w.endWatch()
		if w.backup, err = snapshotTo(ctx, stable.Service, w.i.backupFile(w.j.Session)); err != nil {
			return err
		}
	}
	if w.backup != nil {
		w.result.Backup = w.backup.SHA256
	}
	return nil
}

// fence refuses new work in the home until the operation is settled.
func (w *work) fence(release Release, epoch uint64) error {
	return home.SetAdmission(release.Service.Home, home.AdmissionFence{
		Session: w.j.Session, Epoch: epoch, Deadline: time.Now().Add(w.fenceTime).UTC(),
	})
}

// switchAuthority writes down the way back, then makes next the active release.
func (w *work) switchAuthority(now Authority, next Release) error {
	epoch, err := nextEpoch(next.Service.Home)
	if err != nil {
		return err
	}
	w.j.Rollback = &rollbackIdentity{Before: now, Candidate: next, Backup: w.backup}
	if err := w.j.write(); err != nil {
		return err
	}
	before := now.Active
	return w.i.publish(Authority{
		Epoch: epoch, Active: next, Previous: &before, Backup: w.backup,
		LastOperation: evidence.Operation{Kind: evidence.KindCutover, Session: w.j.Session},
	}, now.Revision)
}

// reserve fences the old incarnation: the next epoch belongs to the release that is started.
func (w *work) reserve(next Release) error {
	epoch, err := nextEpoch(next.Service.Home)
	if err != nil {
		return err
	}
	w.j.Reserved = epoch
	if err := w.j.write(); err != nil {
		return err
	}
	return home.Fence(next.Service.Home, epoch, next.Tree)
}

// rebind points clients at the release that serves now.
func (w *work) rebind(ctx context.Context, release Release) error {
	if release.Service.Connector == nil {
		return nil
	}
	command := w.command(release, "", *release.Service.Connector)
	command.Name = "connector"
	receipt, err := command.Run(ctx)
	if err == nil && receipt.Outcome != evidence.Passed {
		err = fmt.Errorf("the connector ended as %s: %s", receipt.Outcome, receipt.Line)
	}
	return err
}

// verifyOnce is the one strict verification after a switch. What failed it stays in the result, also when the way back passes.
func (w *work) verifyOnce(ctx context.Context, release Release, gate string) error {
	receipt, err := w.verify(ctx, release, gate, w.i.outputs(w.j.Session))
	if err != nil {
		return err
	}
	if w.result.Receipt.Gate == "" || receipt.Outcome != evidence.Passed {
		w.result.Receipt = receipt
	}
	if receipt.Outcome != evidence.Passed {
		return fmt.Errorf("the verification ended as %s: %s", receipt.Outcome, receipt.Line)
	}
	return nil
}

// settle ends an operation: the fence is cleared, the outcome recorded, and the lock released, in this order.
func (w *work) settle(step string) error {
	authority, err := w.i.authority()
	if err == nil {
		err = home.ClearAdmission(authority.Active.Service.Home)
	}
	if step != "" {
		err = errors.Join(err, w.step(step, ""))
	} else {
		err = errors.Join(err, w.j.write())
	}
	if err != nil {
		return errors.Join(err, w.lock.leave()) // the record stands, and Recover ends what is left
	}
	return w.lock.release()
}

// unserviceable records that a person has to start the stable release.
func (w *work) unserviceable(stable Release, cause error) {
	w.j.Outcome = OutcomeUnserviceable
	w.j.Attention = fmt.Sprintf("release %s of %s does not serve: %s. Find the cause in %s, then start it with: steward recovery",
		stable.Tree, stable.Service.Label, shortError(cause), w.spec(stable, 0).LogFile)
	w.Log.Error("a person is needed", "instance", w.i.name, "attention", w.j.Attention)
}

// maxFailure bounds the text of a failure, in bytes.
const maxFailure = 1000

func shortError(err error) string {
	text := err.Error()
	if len(text) > maxFailure {
		text = text[:maxFailure] + "…"
	}
	return text
}
