package service

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"steward/activities/recovery/durable"
	"steward/activities/recovery/home"
)

// launch is what the launcher of a service gets as its one argument. The environment is that of the process itself: values
// never reach the disk or a command line.
type launch struct {
	Nonce   string   `json:"nonce"`
	Lock    string   `json:"lock"`
	Record  string   `json:"record"`
	Dir     string   `json:"dir"`
	Argv    []string `json:"argv"`
	Home    string   `json:"home"`
	Epoch   uint64   `json:"epoch"`
	Release string   `json:"release"`
	// ReportFD takes the error text; closed without one means that the service runs. 0: nobody listens.
	ReportFD int `json:"report_fd,omitempty"`
}

func newLaunch(p places, spec Spec) (launch, error) {
	if err := CheckLabel(spec.Label); err != nil {
		return launch{}, err
	}
	if len(spec.Argv) == 0 || !filepath.IsAbs(spec.Argv[0]) {
		return launch{}, fmt.Errorf("the program of service %s has to be an absolute path: %q", spec.Label, spec.Argv)
	}
	if err := durable.MkdirAll(string(p)); err != nil {
		return launch{}, err
	}
	return launch{
		Nonce: rand.Text(), Lock: p.lock(spec.Label), Record: p.record(spec.Label), Dir: spec.Dir, Argv: spec.Argv,
		Home: spec.Home, Epoch: spec.Epoch, Release: spec.Release,
	}, nil
}

// lockWait bounds the wait for a lock that an observer holds for a moment.
const lockWait = time.Second

// Launch turns the calling process into a service. It takes the lock of the service, which the process and all that inherit
// from it hold as long as they live, writes down who it is, acquires the epoch of the home, and executes the program. It
// returns only with an error.
func Launch(argument string) error {
	var l launch
	if err := json.Unmarshal([]byte(argument), &l); err != nil {
		return fmt.Errorf("launch: %w", err)
	}
	err := l.run()
	if l.ReportFD > 0 {
		report := os.NewFile(uintptr(l.ReportFD), "report")
		_, _ = report.WriteString(err.Error())
		_ = report.Close()
	}
	return err
}

func (l launch) run() error {
	if l.ReportFD > 0 {
		syscall.CloseOnExec(l.ReportFD)
	}
	lock, err := takeLock(l.Lock)
	if err != nil {
		return err
	}
	defer lock.Close()
	self := home.ThisProcess()
	if err := home.Acquire(l.Home, l.Epoch, l.Release, self); err != nil {
		return err
	}
	if err := durable.WriteJSON(l.Record, record{l.Nonce, self, l.Release, l.Epoch, time.Now().UTC()}); err != nil {
		return err
	}
	if err := os.Chdir(l.Dir); err != nil {
		return err
	}
	// The lock goes on to the service: the descriptor stays open over exec.
	if _, err := unix.FcntlInt(lock.Fd(), unix.F_SETFD, 0); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", l.Argv[0], syscall.Exec(l.Argv[0], l.Argv, os.Environ()))
}

func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockWait); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		case time.Now().After(deadline):
			return nil, errors.Join(fmt.Errorf("%w: a process holds %s", ErrOwned, path), f.Close())
		}
	}
}

// wrote tells whether the record of a service is that of this launch.
func (l launch) wrote() (bool, error) {
	var r record
	err := durable.ReadJSON(l.Record, &r)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return r.Nonce == l.Nonce, err
}
