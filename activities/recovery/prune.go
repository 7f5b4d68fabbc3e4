package recovery

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"steward/activities/recovery/durable"
	"steward/workflows/release/plan"
)

// Prune bounds what an instance keeps: whole known-good bundles, finished sessions, and releases of the store. The active
// release, the previous one, those of open sessions and everything that a whole bundle protects stay.
func (r *Recovery) Prune(ctx context.Context, name string, keep plan.Retention) (err error) {
	i := r.instance(name)
	l, err := i.await("") // nothing is removed under an operation
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.leave()) }()
	return errors.Join(
		r.removeOrphans(i), r.pruneBundles(ctx, i, *keep.Bundles), i.pruneSessions(*keep.Sessions), r.pruneStore(ctx, *keep.Releases),
	)
}

// pruneBundles keeps the newest whole bundles. A damaged one protects nothing and goes.
func (r *Recovery) pruneBundles(ctx context.Context, i instance, keep int) error {
	whole, err := r.Bundles(ctx, i.name)
	if err != nil {
		return err
	}
	authority, err := i.authority()
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, b := range whole {
		current := b.ID == authority.Active.Tree || authority.Previous != nil && b.ID == authority.Previous.Tree
		if current || len(kept) < keep {
			kept[b.ID] = true
		}
	}
	entries, err := os.ReadDir(i.bundles())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if !kept[entry.Name()] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(i.bundles(), entry.Name())))
		}
	}
	return errors.Join(err, durable.SyncDir(i.bundles()))
}

// pruneSessions keeps the newest sessions. The one of the last operation stays, and so does one that is not finished, unless a
// later one is: then it was abandoned.
func (i instance) pruneSessions(keep int) error {
	open, err := i.openSessions()
	if err != nil {
		return err
	}
	authority, err := i.authority()
	if err != nil {
		return err
	}
	finished, err := i.finished()
	if err != nil {
		return err
	}
	stays := map[string]bool{authority.LastOperation.Session: true}
	for _, id := range open {
		stays[id] = true
	}
	for _, s := range finished[:min(keep, len(finished))] {
		stays[s.ID] = true
	}
	ids, err := i.sessionIDs()
	for _, id := range ids {
		if !stays[id] {
			err = errors.Join(err, os.RemoveAll(i.session(id)), os.RemoveAll(i.sourceFolder(id)))
		}
	}
	return err
}

// openSessions are the sessions that are not finished and were begun after the last one that is.
func (i instance) openSessions() ([]string, error) {
	finished, err := i.finished()
	if err != nil {
		return nil, err
	}
	ids, err := i.sessionIDs()
	if err != nil {
		return nil, err
	}
	var open []string
	for _, id := range ids {
		if _, err := os.Stat(i.closedFile(id)); err == nil {
			continue
		}
		info, err := os.Stat(i.session(id))
		if err != nil {
			return nil, err
		}
		if len(finished) == 0 || info.ModTime().After(finished[0].At) {
			open = append(open, id)
		}
	}
	return open, nil
}

// pruneStore keeps the newest releases beside those that any instance of the host needs.
func (r *Recovery) pruneStore(ctx context.Context, keep int) error {
	instances, err := r.instances()
	if err != nil {
		return err
	}
	protected := map[string]bool{}
	for _, i := range instances {
		needed, err := r.needed(ctx, i)
		if err != nil {
			return err // what cannot be read protects everything
		}
		for _, tree := range needed {
			protected[tree] = true
		}
	}
	removed, err := r.store.Prune(keep, protected)
	if len(removed) > 0 {
		r.Log.Info("releases were removed from the store", "releases", removed)
	}
	return err
}

// needed are the releases that an instance cannot do without.
func (r *Recovery) needed(ctx context.Context, i instance) ([]string, error) {
	authority, err := i.authority()
	if errors.Is(err, ErrNotInstalled) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	trees := []string{authority.Active.Tree}
	if authority.Previous != nil {
		trees = append(trees, authority.Previous.Tree)
	}
	bundles, err := r.Bundles(ctx, i.name)
	if err != nil {
		return nil, err
	}
	for _, b := range bundles {
		trees = append(trees, b.Release.Tree)
	}
	open, err := i.openSessions()
	if err != nil {
		return nil, err
	}
	for _, id := range open {
		var built builtRelease
		if durable.ReadJSON(i.builtFile(id), &built) == nil {
			trees = append(trees, built.Release)
		}
	}
	return trees, nil
}
