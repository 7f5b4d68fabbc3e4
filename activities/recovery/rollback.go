package recovery

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"steward/activities/recovery/database"
	"steward/workflows/release/evidence"
)

// errNoWayBack is wrapped when a session has no rollback identity.
var errNoWayBack = errors.New("the session has no rollback identity")

// rollback brings the exact stable release of the session back. It goes on from whatever an interrupted rollback recorded.
func (w *work) rollback(ctx context.Context, reason string) error {
	ctx = context.WithoutCancel(ctx)
	back := w.j.Rollback
	if back == nil {
		return errors.Join(fmt.Errorf("%w: %s", errNoWayBack, w.j.path), w.settle(""))
	}
	stable := back.Before.Active
	if !w.j.rollingBack() {
		if err := w.j.begin(operation{ID: w.j.last().ID + ".rollback", Kind: evidence.KindRollback, Reason: reason}); err != nil {
			return err
		}
	}
	if err := w.goBack(ctx, back, reason); err != nil {
		// The authority still names the candidate. The record of the lock stays, so that nobody starts the candidate again and
		// Recover goes on with the way back.
		w.j.Failure = shortError(err)
		return errors.Join(err, w.j.write(), w.lock.leave())
	}
	w.result.Restored = true
	if err := w.bringUp(ctx, stable); err != nil {
		w.unserviceable(stable, err)
		return errors.Join(err, w.settle(""))
	}
	if err := w.once(evidence.StepRollbackStarted, ""); err != nil {
		return err
	}
	w.j.Outcome = OutcomeRolledBack
	err := w.rebind(ctx, stable)
	if err == nil {
		err = w.verifyOnce(ctx, stable, "stable")
	}
	if err == nil {
		err = w.once(evidence.StepRollbackVerified, "")
	}
	return errors.Join(err, w.settle(evidence.StepRollbackCleared))
}

// goBack stops the candidate, decides about the database and changes the authority back, once each.
func (w *work) goBack(ctx context.Context, back *rollbackIdentity, reason string) error {
	stable := back.Before.Active
	if w.j.done(evidence.StepRollbackPublished) {
		return nil
	}
	now, err := w.i.authority()
	if err != nil {
		return err
	}
	if now.LastOperation == (evidence.Operation{Kind: evidence.KindRollback, Session: w.j.Session}) {
		return w.once(evidence.StepRollbackPublished, "") // published, and interrupted before it was recorded
	}
	if now.Active.Tree != back.Candidate.Tree {
		return fmt.Errorf("%w: release %.12s is active, and the session's is %.12s", ErrAuthority, now.Active.Tree, back.Candidate.Tree)
	}
	if err := w.fence(stable, now.Epoch); err != nil {
		return err
	}
	// Who else listens on the port does not matter to what is published, only to whether the stable release can start.
	if err := w.stopProcess(ctx, back.Candidate.Service); err != nil {
		return err
	}
	if err := w.once(evidence.StepRollbackStopped, reason); err != nil {
		return err
	}
	if !w.j.done(evidence.StepRollbackDatabase) {
		w.returnDatabase(ctx, back)
		if err := w.once(evidence.StepRollbackDatabase, ""); err != nil {
			return err
		}
	}
	epoch, err := nextEpoch(stable.Service.Home)
	if err != nil {
		return err
	}
	before := back.Before
	before.Epoch, before.LastOperation = epoch, evidence.Operation{Kind: evidence.KindRollback, Session: w.j.Session}
	if err := w.i.publish(before, now.Revision); err != nil {
		return err
	}
	w.afterStep(evidence.StepRollbackPublished + unrecorded)
	return w.once(evidence.StepRollbackPublished, "")
}

// returnDatabase never loses a row: the live database stays unless it is the backup, row for row.
func (w *work) returnDatabase(ctx context.Context, back *rollbackIdentity) {
	if back.Backup == nil {
		w.j.Database = "none"
		return
	}
	scratch := filepath.Join(w.i.session(w.j.Session), "live.db")
	done, note, err := database.Return(ctx, databaseFile(back.Before.Active.Service), *back.Backup, scratch)
	if err != nil {
		note = shortError(err)
	}
	w.j.Database, w.j.DatabaseNote = done, note
}

// once records a step that an interrupted rollback may have recorded already.
func (w *work) once(step, reason string) error {
	if w.j.done(step) {
		return nil
	}
	return w.step(step, reason)
}
