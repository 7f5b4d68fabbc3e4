// Package browser drives one login of a chat site: it sends prompts, observes answers and proves what it saw. It decides
// nothing; its results are evidence. (ChatGPT Web adapter boundary; Disposable browser resources; Provider observation.)
package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"

	"steward/activities"
	"steward/config/sites"
)

// Options of a Browser.
type Options struct {
	// Name of the login.
	Name  string
	Sites *sites.Registry
	// ProfileDir is the browser's user data directory. Files that belong to it stand beside it.
	ProfileDir string
	// Executable of the browser; empty looks for an installed one.
	Executable string
	// CDPURL attaches to a running browser, which must run on ProfileDir, instead of starting one.
	CDPURL string
	// Headed shows a window. NoSandbox is for containers; as root it is always so.
	Headed    bool
	NoSandbox bool
	// MaxTabs bounds the tabs that are kept open; default 12.
	MaxTabs int
	// Screenshots of failed sends and unrecognised pages go to SnapshotDir.
	Screenshots bool
	SnapshotDir string
	Arm         Armer
	// Runs, where it is given, tells which tabs no run needs any more.
	Runs   Runs
	Worker activities.Worker
	// Fence says why this worker may not send any more; nil when it may.
	Fence func() error
	// Hook is called at the named points of a send (before_arm, armed, clicked, committed); for fault tests.
	Hook func(point string)
	Log  *slog.Logger
	// idle is how long nobody has used a tab before Runs is asked about it; default 5 s.
	idle time.Duration
}

// Browser is one login. Its methods are the activities; they are safe for concurrent use.
type Browser struct {
	opts   Options
	log    *slog.Logger
	lock   *os.File
	engine *engine
	ledger *ledger
	rest   *rest
	pool   *pool
	tabs   *tabs
	// reads counts the read-only activities that run.
	reads atomic.Int64
	// stop ends what runs in the background.
	stop func()
}

const defaultMaxTabs = 12

// Open takes the profile directory and reads what belongs to it. The browser itself starts with the first activity. A
// directory that another worker or browser uses is refused with ErrInUse.
func Open(ctx context.Context, opts Options) (*Browser, error) {
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	if opts.MaxTabs <= 0 {
		opts.MaxTabs = defaultMaxTabs
	}
	if opts.idle <= 0 {
		opts.idle = defaultIdle
	}
	if opts.Hook == nil {
		opts.Hook = func(string) {}
	}
	if opts.Fence == nil {
		opts.Fence = func() error { return nil }
	}
	if opts.Sites == nil || opts.ProfileDir == "" {
		return nil, errors.New("browser: site profiles and a profile directory are needed")
	}
	dir, err := filepath.Abs(opts.ProfileDir)
	if err != nil {
		return nil, fmt.Errorf("browser %s: %w", opts.Name, err)
	}
	opts.ProfileDir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("browser %s: %w", opts.Name, err)
	}
	lock, err := lockProfile(dir)
	if err != nil {
		return nil, fmt.Errorf("browser %s: %w", opts.Name, err)
	}
	b := &Browser{opts: opts, log: opts.Log.With("browser", opts.Name), lock: lock, pool: newPool(opts.MaxTabs)}
	b.engine = newEngine(opts, b.log)
	if err := b.read(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("browser %s: %w", opts.Name, err), lock.Close())
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	if opts.Runs != nil {
		running.Go(func() { b.retire(background) })
	}
	b.stop = func() { cancel(); running.Wait() }
	return b, nil
}

// read loads the files beside the profile directory and ends what a killed worker left behind.
func (b *Browser) read(ctx context.Context) error {
	dir := b.opts.ProfileDir
	if b.opts.CDPURL == "" {
		ctx, cancel := context.WithTimeout(ctx, stopLimit)
		defer cancel()
		if err := endLeftover(ctx, dir); err != nil {
			return err
		}
		if err := freeProfile(ctx, dir); err != nil {
			return err
		}
	}
	var err error
	if b.rest, err = openRest(beside(dir, ".rest.json")); err != nil {
		return err
	}
	if b.tabs, err = openTabs(b, beside(dir, ".tabs.json")); err != nil {
		return err
	}
	b.ledger, err = openLedger(beside(dir, ".ledger"))
	return err
}

// site is the current profile of a name: a file that was corrected takes effect without a restart.
func (b *Browser) site(name string) (*sites.Site, error) {
	if news, err := b.opts.Sites.Refresh(); news {
		b.log.Info("site profiles were read again", "error", err)
	}
	return b.opts.Sites.Site(name)
}

// Close ends the browser, if this worker started it, and gives the profile directory back. When that takes longer than ctx
// allows, the directory stays locked until the process ends.
func (b *Browser) Close(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.stop()
		b.engine.close()
	}()
	select {
	case <-done:
		return errors.Join(b.ledger.close(), b.lock.Close())
	case <-ctx.Done():
		return fmt.Errorf("browser %s does not close: %w", b.opts.Name, ctx.Err())
	}
}

// Heartbeats of a read-only activity: often enough to stop soon when asked to, and with many of them so many per second in all,
// until a third of their time-out bounds the pause. Each one is a commit of the server: at 200 a second a server on SQLite has time
// for little else.
const (
	aliveEvery  = 500 * time.Millisecond
	alivePerSec = 50
)

// AliveEvery is the pause between the heartbeats of a read-only activity when so many are open: never more than a third of
// their time-out.
func AliveEvery(open int64, timeout time.Duration) time.Duration {
	every := max(aliveEvery, time.Duration(open)*time.Second/alivePerSec)
	if timeout > 0 {
		every = min(every, timeout/3)
	}
	return every
}

// keepAlive heartbeats a read-only activity until it is stopped, and so lets its cancellation arrive.
func (b *Browser) keepAlive(ctx context.Context) (stop func()) {
	return KeepAlive(ctx, b.opts.Arm, &b.reads)
}

// KeepAlive heartbeats a read-only activity, one of so many that are open, until it is stopped. The SDK's own heartbeat gives the
// server no more time than its throttle (a second at least) and then cancels the activity, so that a busy server would lose all
// its observations at once: here a heartbeat has a third of the time-out, and the SDK hears only that the server wants no more.
// The start of an activity is as good as a heartbeat, so the first one comes a pause later. The end of the activity does not
// cancel one on its way: the server would doubt the commit of it, and hold its whole shard up to find out.
func KeepAlive(ctx context.Context, arm Armer, open *atomic.Int64) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	open.Add(1)
	quit := make(chan struct{})
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	go func() {
		defer open.Add(-1)
		for wait := AliveEvery(open.Load(), timeout); ; {
			select {
			case <-time.After(wait):
			case <-quit:
				return
			}
			began := time.Now()
			if arm == nil || errors.Is(beatWithin(context.WithoutCancel(ctx), arm, timeout/3), ErrRefused) {
				activity.RecordHeartbeat(ctx)
			}
			wait = AliveEvery(open.Load(), timeout) - time.Since(began) // one that hung does not put off the next
		}
	}()
	return func() { close(quit) }
}

func beatWithin(ctx context.Context, arm Armer, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(limit, time.Second))
	defer cancel()
	return arm.Beat(ctx, activities.SendProgress{Step: "read"})
}

// now is the wall clock without its monotonic part, as results carry it.
func now() time.Time { return time.Now().Round(time.Millisecond) }
