// Package home owns the records inside the home (the state folder) of a service: who may write there, and whether new work is
// admitted. Services written for Steward read them too.
package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"steward/activities/recovery/durable"
)

// Incarnation is the writer epoch of a home: a number that only grows. Every start of the service takes the next one, so
// whoever still holds an earlier one is stale, whether or not it ended properly.
// (Stable A / Candidate B and ReleaseSession authority, Incarnation and writer fence.)
type Incarnation struct {
	Epoch uint64 `json:"epoch"`
	// Release is the tree hash of the owner.
	Release    string    `json:"release"`
	Owner      Process   `json:"owner"`
	AcquiredAt time.Time `json:"acquired_at"`
}

// ErrStale is wrapped when a claim has been overtaken by a newer epoch.
var ErrStale = errors.New("stale writer")

// ErrConflict is wrapped when a live owner holds the home.
var ErrConflict = errors.New("the home has a live owner")

func incarnationFile(dir string) string { return filepath.Join(dir, "incarnation.json") }

// ReadIncarnation is who owns a home. A home that nobody ever owned has epoch 0.
func ReadIncarnation(dir string) (Incarnation, error) {
	var i Incarnation
	err := durable.ReadJSON(incarnationFile(dir), &i)
	if errors.Is(err, fs.ErrNotExist) {
		return Incarnation{}, nil
	}
	return i, err
}

// Acquire makes owner the owner of a home with exactly this epoch. It is refused when the epoch is neither newer than the one
// that stands there nor reserved for this release by Fence (ErrStale), and when the owner that stands there still lives
// (ErrConflict).
func Acquire(dir string, epoch uint64, release string, owner Process) error {
	return locked(dir, func() error {
		now, err := ReadIncarnation(dir)
		switch {
		case err != nil:
			return err
		case now.Epoch > epoch, now.Epoch == epoch && !now.reservedFor(release):
			return fmt.Errorf("%w: epoch %d was asked for, and %s is at epoch %d of release %.12s", ErrStale, epoch, dir, now.Epoch, now.Release)
		case now.Owner != owner && now.Owner.Lives():
			return fmt.Errorf("%w: process %d of release %.12s, epoch %d", ErrConflict, now.Owner.PID, now.Release, now.Epoch)
		}
		return durable.WriteJSON(incarnationFile(dir), Incarnation{epoch, release, owner, time.Now().UTC()})
	})
}

// reservedFor tells whether nobody has acquired the epoch yet that Fence made for a release.
func (i Incarnation) reservedFor(release string) bool {
	return i.Owner == Process{} && i.Release == release
}

// Fence raises the epoch of a home and reserves it for a release: everybody who holds a lower one is stale from now on. A home
// that is at the epoch or past it stays as it is.
func Fence(dir string, epoch uint64, release string) error {
	return locked(dir, func() error {
		now, err := ReadIncarnation(dir)
		if err != nil || now.Epoch >= epoch {
			return err
		}
		return durable.WriteJSON(incarnationFile(dir), Incarnation{Epoch: epoch, Release: release, AcquiredAt: time.Now().UTC()})
	})
}

// Claim is what a writer carries.
type Claim struct {
	Epoch   uint64 `json:"epoch"`
	Release string `json:"release"`
}

// Check tells whether a claim is the one that owns the home now.
func (c Claim) Check(dir string) error {
	now, err := ReadIncarnation(dir)
	if err != nil {
		return err
	}
	if now.Epoch != c.Epoch || now.Release != c.Release {
		return fmt.Errorf("%w: this is epoch %d of release %.12s, and epoch %d of release %.12s owns %s",
			ErrStale, c.Epoch, c.Release, now.Epoch, now.Release, dir)
	}
	return nil
}

// locked serializes changes of the records of one home between processes.
func locked(dir string, change func() error) error {
	if err := durable.MkdirAll(dir); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, "incarnation.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return change()
}
