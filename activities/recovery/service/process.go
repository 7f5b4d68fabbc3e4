package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"steward/activities/recovery/durable"
)

// Process is the portable provider: a service is a process in a session of its own, which outlives its starter.
type Process struct {
	// Dir holds locks and records.
	Dir string
	// Launcher is the command that calls Launch with one more argument.
	Launcher []string
}

// maxLog is the size in bytes at which a log is put aside when the service starts.
const maxLog = 10 << 20

// Start implements Provider.
func (p Process) Start(ctx context.Context, spec Spec) (Status, error) {
	l, err := newLaunch(places(p.Dir), spec)
	if err != nil {
		return Status{}, err
	}
	l.ReportFD = 3 // the first of ExtraFiles
	argument, err := json.Marshal(l)
	if err != nil {
		return Status{}, err
	}
	log, err := openLog(spec.LogFile)
	if err != nil {
		return Status{}, err
	}
	defer log.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return Status{}, err
	}
	defer read.Close()
	// The service outlives ctx.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), p.Launcher[0], append(append([]string{}, p.Launcher[1:]...), string(argument))...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = append([]string{}, spec.Env...), log, log, []*os.File{write}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = errors.Join(cmd.Start(), write.Close())
	if err != nil {
		return Status{}, fmt.Errorf("launch service %s: %w", spec.Label, err)
	}
	reaped := make(chan struct{})
	go func() {
		defer close(reaped)
		_ = cmd.Wait()
	}()
	if err := p.awaitLaunch(ctx, read, l); err != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // not reaped yet, so still its own
		<-reaped
		return Status{}, fmt.Errorf("service %s: %w", spec.Label, err)
	}
	return p.Observe(ctx, spec.Label)
}

// launchTime bounds the time from fork to exec.
const launchTime = 30 * time.Second

func (p Process) awaitLaunch(ctx context.Context, report *os.File, l launch) error {
	deadline := time.Now().Add(launchTime)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := report.SetReadDeadline(deadline); err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(report, 4<<10))
	switch {
	case err != nil:
		return fmt.Errorf("it was not launched: %w", err)
	case strings.HasPrefix(string(text), ErrOwned.Error()):
		return fmt.Errorf("%w%s", ErrOwned, strings.TrimPrefix(string(text), ErrOwned.Error()))
	case len(text) > 0:
		return errors.New(string(text))
	}
	wrote, err := l.wrote()
	if err == nil && !wrote {
		err = errors.New("the launcher ended before it became the service")
	}
	return err
}

// Stop implements Provider.
func (p Process) Stop(ctx context.Context, label string, grace time.Duration) error {
	return places(p.Dir).end(ctx, label, grace)
}

// Observe implements Provider.
func (p Process) Observe(_ context.Context, label string) (Status, error) {
	return places(p.Dir).observe(label)
}

// Listens implements Provider.
func (p Process) Listens(_ context.Context, label string, port int) (bool, error) {
	return places(p.Dir).listens(label, port)
}

func openLog(path string) (*os.File, error) {
	if err := durable.MkdirAll(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}
