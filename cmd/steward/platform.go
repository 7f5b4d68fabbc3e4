package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"steward/activities/recovery"
	"steward/activities/recovery/durable"
)

// platform is what server and recovery run on: one build of the command, of which the data folder keeps a copy, so that a
// replaced file changes nothing under running processes, and the build before it can run again.
type platform struct {
	dir    string // folder of the kept builds and of platform.json
	server string // data folder of the Temporal server
	own    string // digest of this build
	record platformRecord
}

type platformRecord struct {
	// Current and Previous are the SHA-256 of builds.
	Current  string `json:"current,omitempty"`
	Previous string `json:"previous,omitempty"`
	// Attempt is an upgrade that has not been proven healthy; its backup is put back before anything else is tried.
	Attempt *upgradeAttempt `json:"attempt,omitempty"`
}

type upgradeAttempt struct {
	To     string    `json:"to"`
	Backup string    `json:"backup"`
	At     time.Time `json:"at"`
}

// openPlatform keeps this build in the data folder and reads which one ran last.
func (a *app) openPlatform() (*platform, error) {
	dir, err := filepath.Abs(a.settings.DataDir)
	if err != nil {
		return nil, err
	}
	p := &platform{dir: filepath.Join(dir, "platform"), server: a.settings.ServerDir()}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if p.own, err = digestOfFile(exe); err != nil {
		return nil, err
	}
	if err := p.keep(exe); err != nil {
		return nil, err
	}
	return p, p.read()
}

func (p *platform) read() error {
	p.record = platformRecord{}
	err := durable.ReadJSON(p.file(), &p.record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (p *platform) file() string               { return filepath.Join(p.dir, "platform.json") }
func (p *platform) lock() string               { return filepath.Join(p.dir, "up.lock") }
func (p *platform) binary(build string) string { return filepath.Join(p.dir, build, "steward") }

func digestOfFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// keep copies a build into the data folder, once.
func (p *platform) keep(exe string) error {
	kept := p.binary(p.own)
	if digest, err := digestOfFile(kept); err == nil && digest == p.own {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(kept)); err != nil {
		return err
	}
	part := kept + ".part"
	if err := durable.CopyFile(exe, part, 0o700); err != nil {
		return err
	}
	return errors.Join(os.Rename(part, kept), durable.SyncDir(filepath.Dir(kept)))
}

// upgrades tells whether another build ran last.
func (p *platform) upgrades() bool { return p.record.Current != "" && p.record.Current != p.own }

// begin saves the server's database, which nobody has open now, and writes down what is tried.
func (p *platform) begin() error {
	attempt := upgradeAttempt{To: p.own, Backup: filepath.Join(p.dir, "backup"), At: time.Now().UTC()}
	if err := os.RemoveAll(attempt.Backup); err != nil {
		return err
	}
	if err := durable.MkdirAll(attempt.Backup); err != nil {
		return err
	}
	for _, file := range databaseFiles {
		if err := copyIfThere(filepath.Join(p.server, file), filepath.Join(attempt.Backup, file)); err != nil {
			return fmt.Errorf("save the database of the server: %w", err)
		}
	}
	if err := durable.SyncTree(attempt.Backup); err != nil {
		return err
	}
	p.record.Attempt = &attempt
	return durable.WriteJSON(p.file(), p.record)
}

// databaseFiles are the files of the Temporal server's database.
var databaseFiles = []string{"temporal.db", "temporal.db-wal", "temporal.db-shm"}

func copyIfThere(from, to string) error {
	err := durable.CopyFile(from, to, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// undo puts the database back that was saved for an upgrade. The one that it replaces is kept beside it.
func (p *platform) undo() error {
	attempt := p.record.Attempt
	if attempt == nil {
		return nil
	}
	aside := filepath.Join(p.dir, "replaced-"+time.Now().UTC().Format("20060102T150405.000Z"))
	if err := durable.MkdirAll(aside); err != nil {
		return err
	}
	for _, file := range databaseFiles {
		live := filepath.Join(p.server, file)
		if err := os.Rename(live, filepath.Join(aside, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := copyIfThere(filepath.Join(attempt.Backup, file), live); err != nil {
			return err
		}
	}
	if err := durable.SyncDir(p.server); err != nil {
		return err
	}
	p.record.Attempt = nil
	return durable.WriteJSON(p.file(), p.record)
}

// commit makes this build the current one. Builds that are neither that nor the previous one go.
func (p *platform) commit() error {
	if p.upgrades() {
		p.record.Previous = p.record.Current
	}
	p.record.Current, p.record.Attempt = p.own, nil
	if err := durable.WriteJSON(p.file(), p.record); err != nil {
		return err
	}
	entries, err := os.ReadDir(p.dir)
	for _, entry := range entries {
		name := entry.Name()
		if len(name) == hex.EncodedLen(sha256.Size) && name != p.record.Current && name != p.record.Previous {
			err = errors.Join(err, os.RemoveAll(filepath.Join(p.dir, name)))
		}
	}
	return err
}

// upOwner is the `steward up` that runs on a data folder; its lock file holds it.
type upOwner struct {
	PID   int    `json:"pid"`
	Build string `json:"build"`
}

// takeOverTime is longer than another `steward up` needs to stop its children.
const takeOverTime = 2 * time.Minute

// takeOver makes this process the only `steward up` of the data folder. One of another build is asked to end, unless a release is
// under way; one of the same build stays. Closing the file ends it.
func (p *platform) takeOver(ctx context.Context, r *recovery.Recovery) (f *os.File, err error) {
	if f, err = os.OpenFile(p.lock(), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	asked := false
	for deadline := time.Now().Add(takeOverTime); ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, p.claim(f)
		case !errors.Is(err, unix.EWOULDBLOCK):
			return f, err
		case time.Now().After(deadline):
			return f, fmt.Errorf("another `steward up` holds %s and does not end within %v", p.lock(), takeOverTime)
		case !asked:
			if asked, err = p.askToEnd(r); err != nil {
				return f, err
			}
		}
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// askToEnd asks the owner of the lock to end. It is false when the owner has not said yet who it is.
func (p *platform) askToEnd(r *recovery.Recovery) (bool, error) {
	var owner upOwner
	data, err := os.ReadFile(p.lock())
	if err != nil || json.Unmarshal(data, &owner) != nil {
		return false, err
	}
	if owner.Build == p.own {
		return false, exitWith(exitRefused, "process %d runs this build on %s already", owner.PID, filepath.Dir(p.dir))
	}
	if err := r.Idle(); err != nil {
		return false, exitWith(exitRefused, "nothing was upgraded: %w", err)
	}
	if err := syscall.Kill(owner.PID, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return false, err
	}
	return true, nil
}

// claim writes this process into the lock file. The record is read again: the one before may have changed it.
func (p *platform) claim(f *os.File) error {
	owner, err := json.Marshal(upOwner{os.Getpid(), p.own})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(owner, 0)
	return errors.Join(err, p.read())
}

// again runs the previous build in the place of this process.
func (p *platform) again() error {
	build := p.binary(p.record.Current)
	return fmt.Errorf("run %s again: %w", build, syscall.Exec(build, append([]string{build}, os.Args[1:]...), os.Environ()))
}
