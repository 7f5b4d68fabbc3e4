package browser

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInUse is wrapped by the error of Open when somebody else uses the profile directory.
var ErrInUse = errors.New("browser profile is in use")

// lockProfile takes the one lock of a profile directory. The kernel releases it with the process; the pid inside only
// serves the message.
func lockProfile(profileDir string) (*os.File, error) {
	path := beside(profileDir, ".lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock of browser profile: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		owner, _ := io.ReadAll(io.LimitReader(f, 32))
		return nil, fmt.Errorf("%w: process %s drives %s; stop that worker, or give this one another profile directory",
			ErrInUse, strings.TrimSpace(string(owner)), profileDir)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// singletons are the files by which Chromium marks a profile directory as taken.
var singletons = []string{"SingletonLock", "SingletonSocket", "SingletonCookie"}

// singletonGrace is how long a browser may take to end after its driver did.
const singletonGrace = 3 * time.Second

// freeProfile removes what a killed browser left behind, and refuses when a live one keeps holding the directory.
func freeProfile(ctx context.Context, profileDir string) error {
	for deadline := time.Now().Add(singletonGrace); ; {
		err := clearSingletons(profileDir)
		if !errors.Is(err, errHeld) || time.Now().After(deadline) {
			return err
		}
		if err := sleep(ctx, pace); err != nil {
			return err
		}
	}
}

// errHeld is wrapped by the refusal of a directory that a live browser holds.
var errHeld = fmt.Errorf("%w: a browser runs on it", ErrInUse)

func clearSingletons(profileDir string) error {
	target, err := os.Readlink(filepath.Join(profileDir, singletons[0]))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("browser profile %s: %w", profileDir, err)
	}
	cut := strings.LastIndexByte(target, '-')
	pid, err := strconv.Atoi(target[cut+1:])
	host, hostErr := os.Hostname()
	switch {
	case cut < 0 || err != nil:
		return fmt.Errorf("%w: %s/SingletonLock names %q, which is no process; remove it if no browser runs there", ErrInUse, profileDir, target)
	case hostErr == nil && target[:cut] != host:
		return fmt.Errorf("%w: a browser on host %s holds %s; close it there", ErrInUse, target[:cut], profileDir)
	case alive(pid):
		return fmt.Errorf("%w: process %d on %s; close it first", errHeld, pid, profileDir)
	}
	for _, name := range singletons {
		if err := os.Remove(filepath.Join(profileDir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}
