package recovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"steward/activities/recovery/home"
	"steward/activities/recovery/watchdog"
	"steward/workflows/release/evidence"
)

// WatchdogOptions are the numbers of the watchdog and the time between two looks; zero values mean the defaults.
type WatchdogOptions struct {
	watchdog.Policy
	// Every is the time between two looks; default 2 s.
	Every time.Duration
}

func (o WatchdogOptions) withDefaults() WatchdogOptions {
	if (o.Policy == watchdog.Policy{}) {
		o.Policy = watchdog.Default
	}
	o.Every = cmp.Or(o.Every, 2*time.Second)
	return o
}

// watched is what the watchdog remembers of one release in one place.
type watched struct {
	tree  string
	state watchdog.State
}

// Watch looks after the active release of every instance until ctx ends. It needs no Temporal, acts only while no operation is
// under way, and finishes one that was interrupted in this process.
func (r *Recovery) Watch(ctx context.Context) {
	memory := map[string]*watched{}
	tick := time.NewTicker(r.Watchdog.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		instances, err := r.instances()
		if err != nil {
			r.Log.Warn("the watchdog cannot read the instances", "error", err)
		}
		for _, i := range instances {
			if err := r.watch(ctx, i, memory); err != nil && !errors.Is(err, ErrLocked) && ctx.Err() == nil {
				r.Log.Warn("watchdog", "instance", i.name, "error", err)
			}
		}
	}
}

// watch takes one look at an instance and does what the policy says. The look holds no lock, so that it never keeps an operation
// from beginning; one that meanwhile began makes the look worthless.
func (r *Recovery) watch(ctx context.Context, i instance, memory map[string]*watched) error {
	authority, err := i.authority()
	if errors.Is(err, ErrNotInstalled) {
		return nil
	}
	if err != nil {
		return err
	}
	record, err := i.locked()
	if err != nil {
		return err
	}
	if record != nil {
		return r.recover(ctx, i)
	}
	m := memory[i.name]
	if m == nil || m.tree != authority.Active.Tree {
		m = &watched{tree: authority.Active.Tree}
		memory[i.name] = m
	}
	look, session := r.health(ctx, authority.Active), ""
	if len(look.Evidence) > 0 {
		session = r.wayBackSession(ctx, i, authority)
		look.RollbackTo = session != ""
	}
	state, action := r.Watchdog.Decide(m.state, look)
	if action != watchdog.Nothing {
		return r.act(ctx, i, authority, action, look, session, func() { m.state = state })
	}
	if record, err = i.locked(); err == nil && record == nil {
		m.state = state
	}
	return err
}

// act does what the policy says, under the lock and only while nothing changed since the look; then decided is called first.
func (r *Recovery) act(
	ctx context.Context, i instance, authority Authority, action watchdog.Action, look watchdog.Look, session string, decided func(),
) (err error) {
	l, err := i.hold()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.leave()) }()
	record, err := i.locked()
	if err != nil || record != nil {
		return err
	}
	now, err := i.authority()
	if err != nil || now.Revision != authority.Revision {
		return err
	}
	decided()
	switch action {
	case watchdog.Restart:
		r.Log.Warn("the service is not well and is restarted", "instance", i.name, "evidence", look.Evidence)
		return r.restart(ctx, authority.Active)
	case watchdog.Rollback:
		r.Log.Error("the service is not well and goes back to the known-good release", "instance", i.name, "session", session)
		if err := l.leave(); err != nil {
			return err
		}
		return r.watchdogRollback(ctx, i, session, authority.Epoch)
	case watchdog.Stop:
		r.Log.Error("the service is not well, and a person is needed: `steward recovery status`", "instance", i.name, "evidence", look.Evidence)
	}
	return nil
}

// health is one look at a release, by kinds of evidence that do not depend on one another.
func (r *Recovery) health(ctx context.Context, release Release) watchdog.Look {
	look := watchdog.Look{At: time.Now()}
	s := release.Service
	now, err := home.ReadIncarnation(s.Home)
	if err != nil {
		look.Unknown = true
		return look
	}
	if r.owned(ctx, release, now.Epoch) != nil {
		look.Evidence = append(look.Evidence, watchdog.NotRunning)
	}
	receipt, err := r.check(ctx, release, "ready", s.Ready)
	if err == nil && receipt.Outcome != evidence.Passed {
		look.Evidence = append(look.Evidence, watchdog.NotReady)
	}
	if s.Port != 0 {
		dialer := net.Dialer{Timeout: time.Second}
		conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)))
		if err != nil {
			look.Evidence = append(look.Evidence, watchdog.NotListening)
		} else {
			_ = conn.Close()
		}
	}
	look.Unknown = ctx.Err() != nil
	return look
}

// wayBackSession is the session that made the active release active, when the release is not known-good itself and the exact
// one before it has a whole bundle.
func (r *Recovery) wayBackSession(ctx context.Context, i instance, authority Authority) string {
	last := authority.LastOperation
	if last.Kind != evidence.KindCutover {
		return ""
	}
	j, err := i.journal(last.Session)
	if err != nil || j.Rollback == nil || j.Rollback.Candidate.Tree != authority.Active.Tree {
		return ""
	}
	if _, err := r.validate(ctx, i, authority.Active.Tree); err == nil {
		return ""
	}
	if _, err := r.validate(ctx, i, j.Rollback.Before.Active.Tree); err != nil {
		return ""
	}
	return last.Session
}

// watchdogRollback is the rollback of the session itself, in its own steps.
func (r *Recovery) watchdogRollback(ctx context.Context, i instance, session string, epoch uint64) error {
	l, err := i.take(session, epoch)
	if err != nil {
		return err
	}
	j, err := i.journal(session)
	if err != nil {
		return errors.Join(err, l.leave())
	}
	id := fmt.Sprintf("watchdog-%d", len(j.Operations)+1)
	if err := j.begin(operation{ID: id, Kind: evidence.KindRollback, Reason: reasonWatchdog}); err != nil {
		return errors.Join(err, l.leave())
	}
	return errors.Join(r.work(i, l, j, interruptedFence).rollback(ctx, reasonWatchdog), l.leave())
}
