package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"steward/activities/recovery/home"
	"steward/workflows/release/evidence"
)

// Recover makes exactly the active release of every instance run, without Temporal. Where an operation was interrupted it is
// finished in the safe direction: back to the stable release, or to its end when the new release was verified already. One
// instance that cannot be recovered does not keep the others from it.
func (r *Recovery) Recover(ctx context.Context) error {
	instances, err := r.instances()
	for _, i := range instances {
		if failed := r.recover(ctx, i); failed != nil {
			err = errors.Join(err, fmt.Errorf("instance %s: %w", i.name, failed))
		}
	}
	return err
}

func (r *Recovery) recover(ctx context.Context, i instance) (err error) {
	authority, err := i.authority()
	if errors.Is(err, ErrNotInstalled) {
		return nil
	}
	if err != nil {
		return err
	}
	l, err := i.hold()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.leave()) }()
	record, err := i.locked()
	if err != nil {
		return err
	}
	if record == nil {
		return errors.Join(home.ClearAdmission(authority.Active.Service.Home), r.bringUp(ctx, authority.Active))
	}
	j, err := i.journal(record.Session)
	if err != nil {
		return err
	}
	r.Log.Warn("an operation was interrupted", "instance", i.name, "session", record.Session, "operation", j.last().Kind)
	return r.work(i, l, j, interruptedFence).finish(ctx, authority)
}

// interruptedFence is how long new work is refused at most while an interrupted operation is finished.
const interruptedFence = 15 * time.Minute

func (r *Recovery) work(i instance, l *lock, j *journal, fence time.Duration) *work {
	return &work{Recovery: r, i: i, lock: l, j: j, fenceTime: fence, progress: func(string) {}}
}

const interrupted = "the operation was interrupted"

// finish ends an interrupted operation.
func (w *work) finish(ctx context.Context, now Authority) error {
	switched := now.LastOperation == evidence.Operation{Kind: evidence.KindCutover, Session: w.j.Session}
	switch {
	case w.j.done(evidence.StepRollbackCleared), w.j.done(evidence.StepCleared) && !w.j.rollingBack(), len(w.j.Operations) == 0:
		// Only the release of the lock was missing.
		return errors.Join(w.bringUp(ctx, now.Active), w.settle(""))
	case w.j.rollingBack():
		return w.rollback(ctx, w.j.last().Reason)
	case switched && w.j.done(evidence.StepVerified) && w.bringUp(ctx, now.Active) == nil:
		w.j.Outcome = OutcomeApplied
		return w.settle(evidence.StepCleared)
	case switched:
		w.j.Failure = interrupted
		return w.rollback(ctx, reasonCutoverFailed)
	}
	w.j.Failure = interrupted
	return w.standDown(ctx, now.Active)
}
