// Package service starts, stops and observes the process of one release on this host. A helper's error or time-out is never
// taken for the state of a service: the exact process identity and its kernel lock are.
package service

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"golang.org/x/sys/unix"

	"steward/activities/recovery/durable"
	"steward/activities/recovery/home"
)

// Spec is one start of a service.
type Spec struct {
	// Label names the service on this host.
	Label string
	// Argv has an absolute program.
	Argv []string
	// Dir is the working folder; Env the whole environment.
	Dir string
	Env []string
	// Home is the state folder whose Epoch the start acquires, for Release (a tree hash).
	Home    string
	Epoch   uint64
	Release string
	// LogFile takes the output.
	LogFile string
}

// Status is what a service is now.
type Status struct {
	// Running: the main process lives, or something that it left behind does.
	Running bool         `json:"running"`
	Process home.Process `json:"process"`
	Release string       `json:"release,omitempty"`
	Epoch   uint64       `json:"epoch,omitempty"`
	// Leftover: the main process is gone, and processes of it are not.
	Leftover bool `json:"leftover,omitempty"`
}

// Owned tells whether the service runs as exactly this release and epoch.
func (s Status) Owned(release string, epoch uint64) bool {
	return s.Running && !s.Leftover && s.Release == release && s.Epoch == epoch
}

// Provider does physical work on services of one host.
type Provider interface {
	// Start starts a service that does not run. It returns when the process has taken the service's lock and the epoch of its
	// home, not when it is ready. The error wraps ErrOwned when somebody else has the lock.
	Start(ctx context.Context, spec Spec) (Status, error)
	// Stop ends a service with everything that it started: asked at first, by force after grace. It returns nil only with the
	// proof that nothing of it runs.
	Stop(ctx context.Context, label string, grace time.Duration) error
	// Observe never changes anything.
	Observe(ctx context.Context, label string) (Status, error)
	// Listens tells whether the service itself takes connections on a TCP port: somebody else might.
	Listens(ctx context.Context, label string, port int) (bool, error)
}

// ErrOwned is wrapped when a start meets a service that runs.
var ErrOwned = errors.New("the service runs already")

// ErrNotStopped is wrapped when the end of a service cannot be proven.
var ErrNotStopped = errors.New("the service does not stop")

var labelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$`)

// CheckLabel refuses a label that is no plain name.
func CheckLabel(label string) error {
	if !labelName.MatchString(label) {
		return fmt.Errorf("%q is no service label: letters, digits, '.', '_' and '-', at most 100", label)
	}
	return nil
}

// record is what a started process writes down of itself before it becomes the service.
type record struct {
	Nonce   string       `json:"nonce"`
	Process home.Process `json:"process"`
	Release string       `json:"release"`
	Epoch   uint64       `json:"epoch"`
	At      time.Time    `json:"at"`
}

// places are the files of services. The lock is held by the service process itself and by all that inherit it: the kernel
// says whether one lives.
type places string

func (p places) lock(label string) string   { return filepath.Join(string(p), label+".lock") }
func (p places) record(label string) string { return filepath.Join(string(p), label+".json") }

// observe reads the state of a service from its record, its lock and the processes of its session.
func (p places) observe(label string) (Status, error) {
	if err := CheckLabel(label); err != nil {
		return Status{}, err
	}
	var r record
	if err := durable.ReadJSON(p.record(label), &r); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Status{}, err
	}
	held, err := isLocked(p.lock(label))
	if err != nil {
		return Status{}, err
	}
	status := Status{Process: r.Process, Release: r.Release, Epoch: r.Epoch, Running: r.Process.Lives()}
	if !status.Running && (held || len(members(r.Process)) > 0) {
		status.Running, status.Leftover = true, true
	}
	return status, nil
}

// listens tells whether a process of the service takes connections on a port.
func (p places) listens(label string, port int) (bool, error) {
	status, err := p.observe(label)
	if err != nil || !status.Running {
		return false, err
	}
	return listens(append(members(status.Process), holders(p.lock(label))...), port), nil
}

// isLocked tells whether a process holds the lock of a file.
func isLocked(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// endTime is how long what was killed may take to be gone.
const endTime = 10 * time.Second

// end ends all of a service: SIGTERM, SIGKILL after grace, proof.
func (p places) end(ctx context.Context, label string, grace time.Duration) error {
	for _, step := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, grace}, {unix.SIGKILL, endTime}} {
		status, err := p.observe(label)
		if err != nil {
			return err
		}
		if !status.Running {
			break
		}
		stopped, err := p.signalAndWait(ctx, label, status, step.signal, step.wait)
		if err != nil {
			return err
		}
		if stopped {
			break
		}
	}
	status, err := p.observe(label)
	if err != nil {
		return err
	}
	if status.Running {
		return fmt.Errorf("%w: %s, process %d of release %.12s", ErrNotStopped, label, status.Process.PID, status.Release)
	}
	return nil
}

// signalAndWait signals what lives of a service until nothing does or the wait is over. New members get SIGKILL too; SIGTERM is
// sent once.
func (p places) signalAndWait(ctx context.Context, label string, s Status, signal unix.Signal, wait time.Duration) (bool, error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	p.signal(label, s, signal)
	for {
		now, err := p.observe(label)
		if err != nil || !now.Running {
			return err == nil, err
		}
		if signal == unix.SIGKILL {
			p.signal(label, now, signal)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

func (p places) signal(label string, s Status, signal unix.Signal) {
	if s.Process.Lives() {
		_ = unix.Kill(-s.Process.PID, signal)
		_ = unix.Kill(s.Process.PID, signal)
	}
	if signal != unix.SIGKILL && !s.Leftover {
		return
	}
	for _, pid := range append(members(s.Process), holders(p.lock(label))...) {
		_ = unix.Kill(pid, signal)
	}
}

// ListenerFree proves that nobody listens at a loopback address.
func ListenerFree(ctx context.Context, address string) error {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("%s is still taken: %w", address, err)
	}
	return l.Close()
}
