package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"steward/activities/recovery/durable"
	"steward/activities/recovery/home"
	"steward/workflows/release/evidence"
)

// Status is what an instance is now, read from its files and its service alone.
type Status struct {
	Instance  string             `json:"instance"`
	Authority evidence.Authority `json:"authority"`
	Revision  string             `json:"revision"`
	Serving   evidence.Identity  `json:"serving"`
	// Operation is the one that is under way or waits to be finished.
	Operation *OperationStatus `json:"operation,omitempty"`
	// Fence refuses new work until its deadline.
	Fence *home.AdmissionFence `json:"fence,omitempty"`
	// Outcome is how the last operation ended, Attention what a person has to do.
	Outcome   string `json:"outcome,omitempty"`
	Failure   string `json:"failure,omitempty"`
	Attention string `json:"attention,omitempty"`
	// KnownGood are the releases with a whole bundle, the newest first.
	KnownGood []string `json:"known_good,omitempty"`
	Problem   string   `json:"problem,omitempty"`
}

// OperationStatus is an operation that is not settled.
type OperationStatus struct {
	Session string    `json:"session"`
	Since   time.Time `json:"since"`
	Last    string    `json:"last_step,omitempty"`
}

// Status reads every instance of the host. It changes nothing.
func (r *Recovery) Status(ctx context.Context) ([]Status, error) {
	instances, err := r.instances()
	var all []Status
	for _, i := range instances {
		s := Status{Instance: i.name}
		if err := r.status(ctx, i, &s); err != nil {
			s.Problem = err.Error()
		}
		all = append(all, s)
	}
	return all, err
}

func (r *Recovery) status(ctx context.Context, i instance, s *Status) error {
	authority, err := i.authority()
	if err != nil {
		return err
	}
	s.Authority, s.Revision = authority.evidence(), authority.Active.Revision
	if s.Serving, err = r.identity(ctx, authority.Active); err != nil {
		return err
	}
	if s.Fence, err = home.ReadAdmission(authority.Active.Service.Home, time.Now()); err != nil {
		return err
	}
	record, err := i.locked()
	if err != nil {
		return err
	}
	session := authority.LastOperation.Session
	if record != nil {
		session = record.Session
	}
	if session != "" {
		j, err := i.journal(session)
		if err != nil {
			return err
		}
		s.Outcome, s.Failure, s.Attention = j.Outcome, j.Failure, j.Attention
		if record != nil {
			s.Operation = &OperationStatus{Session: session, Since: record.At}
			if n := len(j.Steps); n > 0 {
				s.Operation.Last = j.Steps[n-1].Name
			}
		}
	}
	bundles, err := r.Bundles(ctx, i.name)
	for _, b := range bundles {
		s.KnownGood = append(s.KnownGood, b.ID)
	}
	return err
}

// Finding is one thing that Verify proved or could not prove.
type Finding struct {
	Instance string `json:"instance"`
	What     string `json:"what"`
	OK       bool   `json:"ok"`
	Detail   string `json:"detail,omitempty"`
}

// Verify proves what recovery needs on a bad day: the stored releases, every bundle, and the live lane once. It changes nothing.
func (r *Recovery) Verify(ctx context.Context) ([]Finding, error) {
	instances, err := r.instances()
	var all []Finding
	for _, i := range instances {
		all = append(all, r.findings(ctx, i)...)
	}
	return all, err
}

func (r *Recovery) findings(ctx context.Context, i instance) []Finding {
	var found []Finding
	add := func(what string, err error) {
		f := Finding{Instance: i.name, What: what, OK: err == nil}
		if err != nil {
			f.Detail = err.Error()
		}
		found = append(found, f)
	}
	authority, err := i.authority()
	add("authority", err)
	if err != nil {
		return found
	}
	add("active release "+authority.Active.Tree, r.store.Verify(authority.Active.Tree))
	if authority.Previous != nil {
		add("previous release "+authority.Previous.Tree, r.store.Verify(authority.Previous.Tree))
	}
	if authority.Backup != nil {
		add("database backup of the switch", authority.Backup.Check(ctx))
	}
	receipt, err := r.verify(ctx, authority.Active, "active", "")
	if err == nil && receipt.Outcome != evidence.Passed {
		err = fmt.Errorf("%s: %s", receipt.Outcome, receipt.Line)
	}
	if err == nil && !r.serves(ctx, authority.Active) {
		err = errors.New("what answers is not exactly the active release")
	}
	add("service "+authority.Active.Service.Label, err)
	entries, err := os.ReadDir(i.bundles())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		add("known-good bundles", err)
	}
	for _, entry := range entries {
		_, err := r.validate(ctx, i, entry.Name())
		add("known-good bundle "+entry.Name(), err)
	}
	return found
}

// Own makes this process the one recovery process of the folder, until it ends or the file is closed.
func (r *Recovery) Own() (*os.File, error) {
	if err := durable.MkdirAll(r.Root); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(r.Root, "recovery.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = fmt.Errorf("another recovery process works on %s", r.Root)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
