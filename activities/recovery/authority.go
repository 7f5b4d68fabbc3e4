package recovery

import (
	"errors"
	"fmt"
	"io/fs"

	"steward/activities/recovery/database"
	"steward/activities/recovery/durable"
	"steward/activities/recovery/home"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// Release is a stored release with the contract by which it runs in one place.
type Release struct {
	// Tree is the tree hash: the name of the release in the store.
	Tree     string       `json:"tree"`
	Revision string       `json:"revision"`
	Service  plan.Service `json:"service"`
}

// Authority says which release is the service. It carries no phase and no intent.
type Authority struct {
	Schema int `json:"schema"`
	// Revision grows by one with every change.
	Revision uint64 `json:"revision"`
	// Epoch is the writer epoch of the home when it was published.
	Epoch    uint64   `json:"epoch"`
	Active   Release  `json:"active"`
	Previous *Release `json:"previous,omitempty"`
	// Backup is the database backup that belongs to the switch.
	Backup        *database.Backup   `json:"backup,omitempty"`
	LastOperation evidence.Operation `json:"last_operation"`
}

const authoritySchema = 1

// ErrNotInstalled is wrapped when an instance has no authority.
var ErrNotInstalled = errors.New("no release of the instance is installed on this host; `steward recovery install` does that")

// ErrAuthority is wrapped when the authority is not what a change expects.
var ErrAuthority = errors.New("the release authority was changed meanwhile")

// authority reads the authority of an instance.
func (i instance) authority() (Authority, error) {
	var a Authority
	err := durable.ReadJSON(i.authorityFile(), &a)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return a, fmt.Errorf("%w (instance %s)", ErrNotInstalled, i.name)
	case err != nil:
		return a, err
	case a.Schema != authoritySchema:
		return a, fmt.Errorf("%s has schema %d, and this release reads %d", i.authorityFile(), a.Schema, authoritySchema)
	}
	return a, nil
}

// Installed tells whether an instance has a release here. One that cannot be read has.
func (r *Recovery) Installed(name string) bool {
	_, err := r.instance(name).authority()
	return !errors.Is(err, ErrNotInstalled)
}

// publish replaces the authority that had the revision, and reads it back. A writer of a lower epoch than the home's is stale.
func (i instance) publish(next Authority, revision uint64) error {
	now, err := i.authority()
	if err != nil && !errors.Is(err, ErrNotInstalled) {
		return err
	}
	if now.Revision != revision {
		return fmt.Errorf("%w: it has revision %d, not %d", ErrAuthority, now.Revision, revision)
	}
	owner, err := home.ReadIncarnation(next.Active.Service.Home)
	if err != nil {
		return err
	}
	if next.Epoch < owner.Epoch || next.Epoch < now.Epoch {
		return fmt.Errorf("%w: authority of epoch %d, and the home is at epoch %d", home.ErrStale, next.Epoch, max(owner.Epoch, now.Epoch))
	}
	next.Schema, next.Revision = authoritySchema, revision+1
	if err := durable.WriteJSON(i.authorityFile(), next); err != nil {
		return err
	}
	back, err := i.authority()
	if err == nil && (back.Revision != next.Revision || back.Active.Tree != next.Active.Tree) {
		err = fmt.Errorf("%w: it does not hold what was just written", ErrAuthority)
	}
	return err
}

// evidence is what results say of an authority.
func (a Authority) evidence() evidence.Authority {
	e := evidence.Authority{Active: a.Active.Tree, LastOperation: a.LastOperation}
	if a.Previous != nil {
		e.Previous = a.Previous.Tree
	}
	if a.Backup != nil {
		e.Backup = a.Backup.SHA256
	}
	return e
}
