package recovery

import (
	"context"
	"fmt"
	"time"

	"steward/activities"
	"steward/activities/recovery/home"
	"steward/activities/recovery/service"
	"steward/workflows/release/evidence"
)

// ObserveSoak observes windows of processor use of the active release, one after the other.
func (r *Recovery) ObserveSoak(ctx context.Context, in activities.ObserveSoakInput) (activities.ObserveSoakResult, error) {
	defer heartbeat(ctx)()
	i, result := r.instance(in.Plan.Instance), activities.ObserveSoakResult{Worker: r.Worker}
	performance := in.Plan.Soak.Performance
	if in.First {
		if err := sleep(ctx, performance.WarmUp.Std()); err != nil {
			return result, err
		}
	}
	for range in.Windows {
		authority, err := i.authority()
		if err != nil {
			return result, err
		}
		window, err := r.window(ctx, authority.Active, performance.Window.Std())
		if err != nil {
			return result, err
		}
		result.Windows = append(result.Windows, window)
	}
	result.Lane = r.look(ctx, i, in.Session)
	return result, nil
}

// scheduleSlack is how much a window may be longer than planned, as a part of it.
const scheduleSlack = 5

// window measures the processor use of a service over a time. The error is that of ctx.
func (r *Recovery) window(ctx context.Context, release Release, length time.Duration) (evidence.Window, error) {
	w := evidence.Window{At: time.Now().UTC(), OffSchedule: true}
	before, err := r.provider(release.Service).Observe(ctx, release.Service.Label)
	began := time.Now()
	used, cpuErr := service.CPU(before.Process)
	if err := sleep(ctx, length); err != nil {
		return w, err
	}
	took := time.Since(began)
	if err != nil || cpuErr != nil || before.Release != release.Tree {
		return w, nil //nolint:nilerr // what cannot be measured is off schedule
	}
	after, err := r.provider(release.Service).Observe(ctx, release.Service.Label)
	if err != nil || after != before {
		return w, nil //nolint:nilerr // same
	}
	now, err := service.CPU(after.Process)
	if err != nil || now < used {
		return w, nil //nolint:nilerr // same
	}
	w.CPU = int((now - used) * 10_000 / took)
	w.OffSchedule = took > length+length/scheduleSlack
	return w, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// RestartActive restarts the active release once: an incarnation that is not the one to replace is left alone.
func (r *Recovery) RestartActive(ctx context.Context, in activities.RestartActiveInput) (activities.RestartActiveResult, error) {
	defer heartbeat(ctx)()
	i := r.instance(in.Plan.Instance)
	if err := r.restartActive(ctx, i, in); err != nil {
		return activities.RestartActiveResult{}, err
	}
	return activities.RestartActiveResult{Lane: r.look(ctx, i, in.Session), Worker: r.Worker}, nil
}

func (r *Recovery) restartActive(ctx context.Context, i instance, in activities.RestartActiveInput) (err error) {
	authority, err := i.authority()
	if err != nil {
		return err
	}
	if authority.Active.Tree != in.Release {
		return fmt.Errorf("%w: release %.12s is active, not %.12s", ErrAuthority, authority.Active.Tree, in.Release)
	}
	now, err := home.ReadIncarnation(authority.Active.Service.Home)
	if err != nil || int64(now.Epoch) != in.Before {
		return err
	}
	l, err := i.take(in.Session, authority.Epoch)
	if err != nil {
		return err
	}
	defer func() {
		if failed := l.release(); err == nil {
			err = failed
		}
	}()
	return r.bringUpAfterStop(ctx, authority.Active)
}

// bringUpAfterStop restarts a release that serves.
func (r *Recovery) bringUpAfterStop(ctx context.Context, release Release) error {
	if err := r.stop(ctx, release.Service); err != nil {
		return err
	}
	return r.bringUp(ctx, release)
}
