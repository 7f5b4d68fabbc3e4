package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"steward/activities/recovery/durable"
)

// lockRecord says whose operation the recovery lock belongs to. It stands until that operation is settled: a process that dies
// frees the lock of the kernel, and nobody but the session may go on while the record stands.
type lockRecord struct {
	Session string    `json:"session"`
	Epoch   uint64    `json:"epoch"`
	At      time.Time `json:"at"`
}

// ErrLocked is wrapped when another operation is under way or waits to be settled.
var ErrLocked = errors.New("another operation holds the recovery lock")

// lock is the recovery lock of one instance, held.
type lock struct {
	file *os.File
	i    instance
}

// hold takes the kernel lock alone, whatever record stands.
func (i instance) hold() (*lock, error) {
	if err := durable.MkdirAll(i.dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(i.lockFile(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("%w (instance %s)", ErrLocked, i.name)
		}
		return nil, errors.Join(err, f.Close())
	}
	return &lock{f, i}, nil
}

// lockPatience is how long the lock is waited for while nobody's operation stands: the watchdog and pruning hold it shortly.
const lockPatience = 10 * time.Second

// await is hold with patience. Where the record of another session stands, waiting would be in vain.
func (i instance) await(session string) (*lock, error) {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(20 * time.Millisecond) {
		l, err := i.hold()
		if !errors.Is(err, ErrLocked) || time.Now().After(deadline) {
			return l, err
		}
		if record, failed := i.locked(); failed != nil || record != nil && record.Session != session {
			return nil, errors.Join(err, failed)
		}
	}
}

// take takes the lock for a session and writes its record. The session may re-enter; everybody else is refused.
func (i instance) take(session string, epoch uint64) (*lock, error) {
	l, err := i.await(session)
	if err != nil {
		return nil, err
	}
	record, err := i.locked()
	switch {
	case err != nil:
	case record != nil && record.Session != session:
		err = fmt.Errorf("%w: session %s, since %s, is not settled", ErrLocked, record.Session, record.At.Format(time.RFC3339))
	case record != nil && record.Epoch > epoch:
		err = fmt.Errorf("%w: the lock has epoch %d, and this operation epoch %d", ErrLocked, record.Epoch, epoch)
	default:
		err = durable.WriteJSON(i.lockRecord(), lockRecord{session, epoch, time.Now().UTC()})
	}
	if err != nil {
		return nil, errors.Join(err, l.leave())
	}
	return l, nil
}

// locked is the record that stands, or nil.
func (i instance) locked() (*lockRecord, error) {
	var record lockRecord
	err := durable.ReadJSON(i.lockRecord(), &record)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &record, nil
}

// release removes the record and frees the lock.
func (l *lock) release() error { return errors.Join(durable.Remove(l.i.lockRecord()), l.leave()) }

// leave frees the lock and lets the record stand, if there is one. Leaving again does nothing.
func (l *lock) leave() error {
	if err := l.file.Close(); !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}
