package recovery

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"steward/activities/recovery/home"
)

// ErrBusy is wrapped when a release is under way.
var ErrBusy = errors.New("a release is under way")

// Idle is nil when no instance has an operation that is not settled, or a session that has not ended.
func (r *Recovery) Idle() error {
	instances, err := r.instances()
	if err != nil {
		return err
	}
	for _, i := range instances {
		record, err := i.locked()
		if err != nil {
			return err
		}
		if record != nil {
			return fmt.Errorf("%w: an operation of session %s of instance %s is not settled; `steward recovery` settles it", ErrBusy, record.Session, i.name)
		}
		open, err := i.openSessions()
		if err != nil {
			return err
		}
		for _, id := range open {
			if _, err := os.Stat(i.frozenFile(id)); err == nil {
				return fmt.Errorf("%w: session %s of instance %s has not ended; wait for it, or `steward release abort %s`", ErrBusy, id, i.name, i.name)
			}
		}
	}
	return nil
}

// Hold takes the recovery locks of all instances and fences their homes against new work until the deadline, for a change of what
// recovery itself runs on. The function gives all of it back.
func (r *Recovery) Hold(ctx context.Context, session string, deadline time.Time) (func() error, error) {
	instances, err := r.instances()
	if err != nil {
		return nil, err
	}
	var held []func() error
	giveBack := func() error {
		var err error
		for _, f := range held {
			err = errors.Join(err, f())
		}
		held = nil
		return err
	}
	for _, i := range instances {
		authority, err := i.authority()
		if errors.Is(err, ErrNotInstalled) {
			continue
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(err, giveBack())
		}
		l, err := i.await(session)
		if err != nil {
			return nil, errors.Join(err, giveBack())
		}
		dir := authority.Active.Service.Home
		held = append(held, func() error { return errors.Join(home.ClearAdmission(dir), l.leave()) })
		if err := home.SetAdmission(dir, home.AdmissionFence{Session: session, Epoch: authority.Epoch, Deadline: deadline.UTC()}); err != nil {
			return nil, errors.Join(err, giveBack())
		}
	}
	return giveBack, nil
}
