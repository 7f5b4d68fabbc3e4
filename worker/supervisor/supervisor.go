// Package supervisor runs the processes of one installation as children: starts them in order, restarts what dies, stops
// them in reverse order, and leaves no process behind.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"time"
)

// Child is one process of the same executable.
type Child struct {
	// Name marks its lines in our output.
	Name string
	Args []string
	// Env is its whole environment; nothing is inherited.
	Env []string
	// Ready is asked until it returns nil; the next child starts only then. Nil means ready as soon as it runs.
	Ready func(context.Context) error
	// StopTimeout is the time between SIGTERM and SIGKILL; default 10 s.
	StopTimeout time.Duration
	// LogFile also takes its output when set; see maxLogFile for the size.
	LogFile string
}

// timing holds the durations of Run; tests shorten them.
type timing struct {
	// minDelay to maxDelay, doubling, lie between the end of a child and its restart.
	minDelay, maxDelay time.Duration
	// healthy is how long a child has to be ready to start again from minDelay.
	healthy time.Duration
	// readyTimeout bounds the time from start to ready; a child that takes longer is killed.
	readyTimeout, readyInterval time.Duration
}

var defaultTiming = timing{
	minDelay: time.Second, maxDelay: 30 * time.Second, healthy: time.Minute,
	readyTimeout: 2 * time.Minute, readyInterval: 100 * time.Millisecond,
}

// Run starts exe once per child, in order, and keeps all of them running until ctx is cancelled; then it stops them in
// reverse order and returns nil. A child that ends before it was ever ready is misconfigured: Run stops the others
// and returns an error that names it.
func Run(ctx context.Context, exe string, children []Child, log *slog.Logger) error {
	return run(ctx, exe, children, log, os.Stderr, defaultTiming)
}

func run(ctx context.Context, exe string, children []Child, log *slog.Logger, stderr io.Writer, t timing) error {
	out := &sharedWriter{to: stderr}
	var kept []*keeper
	defer func() {
		for _, k := range slices.Backward(kept) {
			k.stop()
			<-k.done
		}
	}()
	for _, c := range children {
		k := keep(ctx, exe, c, log.With("child", c.Name), out, t)
		kept = append(kept, k)
		select {
		case <-ctx.Done():
			return nil
		case err := <-k.firstReady:
			if err != nil {
				return fmt.Errorf("start %s: %w", c.Name, err)
			}
		}
	}
	<-ctx.Done()
	return nil
}

// keeper keeps one child running.
type keeper struct {
	child Child
	exe   string
	log   *slog.Logger
	out   *sharedWriter
	timing
	stop context.CancelFunc
	done chan struct{}
	// firstReady gets nil when the child is ready for the first time, or the error that kept it from it.
	firstReady chan error
}

// keep starts a keeper. It outlives ctx until it is stopped, because children are stopped one by one.
func keep(ctx context.Context, exe string, c Child, log *slog.Logger, out *sharedWriter, t timing) *keeper {
	if c.StopTimeout <= 0 {
		c.StopTimeout = 10 * time.Second
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	k := &keeper{
		child: c, exe: exe, log: log, out: out, timing: t, stop: stop,
		done: make(chan struct{}), firstReady: make(chan error, 1),
	}
	go func() {
		defer close(k.done)
		k.loop(ctx)
	}()
	return k
}

func (k *keeper) loop(ctx context.Context) {
	var delay time.Duration
	everReady := false
	for {
		var readyAt time.Time
		err := k.runOnce(ctx, func() {
			readyAt = time.Now()
			if !everReady {
				everReady = true
				k.firstReady <- nil
			}
		})
		if ctx.Err() != nil {
			k.log.Info("stopped", "status", err)
			return
		}
		if !everReady {
			k.firstReady <- err
			return
		}
		delay = k.nextDelay(delay, readyAt)
		k.log.Warn("ended; it is started again", "status", err, "after", delay)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}

// nextDelay is the wait before the next start; readyAt is zero for a child that did not become ready.
func (t timing) nextDelay(last time.Duration, readyAt time.Time) time.Duration {
	if last == 0 || !readyAt.IsZero() && time.Since(readyAt) >= t.healthy {
		return t.minDelay
	}
	return min(2*last, t.maxDelay)
}

// awaitReady asks ready until it agrees or ctx ends.
func (k *keeper) awaitReady(ctx context.Context) error {
	if k.child.Ready == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, k.readyTimeout, errors.New("time is up"))
	defer cancel()
	for {
		err := k.child.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready (%w): %w", context.Cause(ctx), err)
		case <-time.After(k.readyInterval):
		}
	}
}
