package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// process names one process for ever: a process id alone is used again.
type process struct {
	PID     int    `json:"pid"`
	Started string `json:"started"`
}

// ownProcess is the file that names the browser process which this profile's worker started.
func ownProcess(profileDir string) string { return beside(profileDir, ".browser.json") }

// alive tells whether a process exists and does not only wait to be reaped.
func alive(pid int) bool {
	err := unix.Kill(pid, 0)
	return (err == nil || errors.Is(err, unix.EPERM)) && started(pid) != ""
}

// lives tells whether it is still that process.
func (p process) lives() bool {
	return p.PID > 1 && alive(p.PID) && started(p.PID) == p.Started
}

// end kills the process, with its group when it leads one, and waits until it is gone.
func (p process) end(ctx context.Context) error {
	if !p.lives() {
		return nil
	}
	if group, err := unix.Getpgid(p.PID); err == nil && group == p.PID {
		_ = unix.Kill(-p.PID, unix.SIGKILL)
	}
	_ = unix.Kill(p.PID, unix.SIGKILL)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for p.lives() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("process %d does not end: %w", p.PID, ctx.Err())
		}
	}
	return nil
}

// endLeftover ends the browser that a killed worker left behind.
func endLeftover(ctx context.Context, profileDir string) error {
	var left process
	path := ownProcess(profileDir)
	if err := readJSON(path, &left); err != nil {
		left = process{}
	}
	if err := left.end(ctx); err != nil {
		return fmt.Errorf("browser of an earlier worker on %s: %w", filepath.Base(profileDir), err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
