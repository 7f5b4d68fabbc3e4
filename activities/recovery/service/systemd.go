package service

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"steward/activities/recovery/durable"
)

// Systemd runs services as user units. systemd starts, stops and keeps the processes of a unit together; whether one runs is
// read from the same lock and record as with Process.
type Systemd struct {
	Dir      string
	Launcher []string
	// UnitDir is the folder of user units; systemctl reads $XDG_CONFIG_HOME/systemd/user.
	UnitDir string
	// Systemctl runs it with arguments; nil runs the real one for the user.
	Systemctl func(ctx context.Context, args ...string) error
}

func unitName(label string) string { return "steward-" + label + ".service" }

// Unit is the text of the user unit of one start. systemd never starts it again by itself: that is the watchdog's.
func (s Systemd) Unit(spec Spec) (string, error) {
	unit, _, err := s.unit(spec)
	return unit, err
}

func (s Systemd) unit(spec Spec) (string, launch, error) {
	l, err := newLaunch(places(s.Dir), spec)
	if err != nil {
		return "", l, err
	}
	argument, err := json.Marshal(l)
	if err != nil {
		return "", l, err
	}
	var exec []string
	for _, word := range append(append([]string{}, s.Launcher...), string(argument)) {
		exec = append(exec, strings.ReplaceAll(quoteUnit(word), "$", "$$"))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "[Unit]\nDescription=Steward service %s\n\n[Service]\nType=exec\nRestart=no\nKillMode=control-group\n", spec.Label)
	fmt.Fprintf(&b, "WorkingDirectory=%s\nExecStart=%s\n", strings.ReplaceAll(spec.Dir, "%", "%%"), strings.Join(exec, " "))
	fmt.Fprintf(&b, "StandardOutput=append:%s\nStandardError=inherit\n", strings.ReplaceAll(spec.LogFile, "%", "%%"))
	for _, entry := range spec.Env {
		fmt.Fprintf(&b, "Environment=%s\n", quoteUnit(entry))
	}
	return b.String(), l, nil
}

// quoteUnit is one word of a unit file.
func quoteUnit(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "\n", `\n`, "\t", `\t`).Replace(word) + `"`
}

// Start implements Provider.
func (s Systemd) Start(ctx context.Context, spec Spec) (Status, error) {
	now, err := s.Observe(ctx, spec.Label)
	if err != nil {
		return now, err
	}
	if now.Running {
		return now, fmt.Errorf("%w: process %d", ErrOwned, now.Process.PID)
	}
	unit, l, err := s.unit(spec)
	if err != nil {
		return Status{}, err
	}
	if err := durable.MkdirAll(filepath.Dir(spec.LogFile)); err != nil {
		return Status{}, err
	}
	if err := durable.WriteFile(filepath.Join(s.UnitDir, unitName(spec.Label)), []byte(unit)); err != nil {
		return Status{}, err
	}
	if err := s.systemctl(ctx, "daemon-reload"); err != nil {
		return Status{}, err
	}
	failed := s.systemctl(ctx, "start", unitName(spec.Label))
	// What systemctl says is no proof; the record of the service is.
	for deadline := time.Now().Add(launchTime); ; {
		now, err := s.Observe(ctx, spec.Label)
		if err != nil {
			return now, err
		}
		if wrote, err := l.wrote(); err != nil || wrote && now.Running {
			return now, err
		}
		if failed != nil || time.Now().After(deadline) {
			return now, fmt.Errorf("service %s was not launched within %v: %w", spec.Label, launchTime, failed)
		}
		select {
		case <-ctx.Done():
			return now, context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop implements Provider.
func (s Systemd) Stop(ctx context.Context, label string, grace time.Duration) error {
	limited, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	// An error here proves nothing; end goes on from what it observes.
	_ = s.systemctl(limited, "stop", unitName(label))
	return places(s.Dir).end(ctx, label, time.Second)
}

// Observe implements Provider.
func (s Systemd) Observe(_ context.Context, label string) (Status, error) {
	return places(s.Dir).observe(label)
}

// Listens implements Provider.
func (s Systemd) Listens(_ context.Context, label string, port int) (bool, error) {
	return places(s.Dir).listens(label, port)
}

func (s Systemd) systemctl(ctx context.Context, args ...string) error {
	if s.Systemctl != nil {
		return s.Systemctl(ctx, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "systemctl", append([]string{"--user", "--no-ask-password"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", args[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
