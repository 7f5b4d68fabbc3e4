package recovery

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"steward/activities"
	"steward/activities/recovery/durable"
	"steward/workflows/release/evidence"
)

func (l *lab) bundle(release string) activities.BundleResult {
	l.t.Helper()
	got, err := l.Bundle(l.t.Context(), activities.BundleInput{ReleaseRef: l.ref(release)})
	if err != nil {
		l.t.Fatal(err)
	}
	return got
}

func TestBundleHoldsTogetherOrProtectsNothing(t *testing.T) {
	l := newLab(t)
	l.mustWrite(2)
	dir := filepath.Join(l.i.bundles(), l.a)
	damage := map[string]func() error{
		"database":    func() error { return os.Truncate(filepath.Join(dir, bundleDatabase), 100) },
		"no database": func() error { return os.Remove(filepath.Join(dir, bundleDatabase)) },
		"contract":    func() error { return os.WriteFile(filepath.Join(dir, bundleContract), []byte("{}"), 0o600) },
		"record":      func() error { return os.WriteFile(filepath.Join(dir, bundleRecord), []byte("{"), 0o600) },
		"schema":      func() error { return durable.WriteJSON(filepath.Join(dir, bundleRecord), Bundle{Schema: 1, ID: l.a}) },
	}
	for name, breakIt := range damage {
		first := l.bundle(l.a)
		if !first.Validated || first.ID != l.a || first.Database == "" || !first.Lane.Observed {
			t.Fatalf("%s: %+v", name, first)
		}
		if again := l.bundle(l.a); again.Digest != first.Digest {
			t.Errorf("%s: attesting again made another record", name)
		}
		if err := breakIt(); err != nil {
			t.Fatal(err)
		}
		if _, err := l.validate(t.Context(), l.i, l.a); !errors.Is(err, errBundle) {
			t.Errorf("%s: a damaged bundle is taken: %v", name, err)
		}
	}
	bundles, err := l.Bundles(t.Context(), l.i.name)
	if err != nil || len(bundles) != 0 {
		t.Errorf("%d whole bundles, %v", len(bundles), err)
	}
}

// The record cannot be written: the answer is a failure, and no good mark (rauc/rauc#1140).
func TestBundleThatCannotBeWrittenFails(t *testing.T) {
	l := newLab(t)
	if err := os.RemoveAll(l.i.bundles()); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteFile(l.i.bundles(), []byte("not a folder")); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Bundle(t.Context(), activities.BundleInput{ReleaseRef: l.ref(l.a)}); err == nil && got.Failed == nil || got.Validated {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestOrphanOfACrashIsNoBundleAndIsRemoved(t *testing.T) {
	l := newLab(t)
	orphan := filepath.Join(l.i.bundles(), bundlePart+"1")
	if err := l.fillBundle(t.Context(), orphan, labSession, l.authority().Active); err != nil {
		t.Fatal(err)
	}
	bundles, err := l.Bundles(t.Context(), l.i.name)
	if err != nil || len(bundles) != 1 {
		t.Errorf("%d bundles, %v", len(bundles), err)
	}
	if session := l.wayBackSession(t.Context(), l.i, l.authority()); session != "" {
		t.Errorf("an installed release has a way back: %q", session)
	}
	if err := l.Prune(t.Context(), l.i.name, l.plan.Retention); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(orphan); !os.IsNotExist(err) {
		t.Errorf("the orphan is left: %v", err)
	}
}

func TestOnlyTheActiveReleaseBecomesKnownGood(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	if got := l.bundle(b); got.Failed == nil || got.Validated {
		t.Errorf("%+v", got)
	}
}

// small stores a release that is never run.
func (l *lab) small(name string) string {
	l.t.Helper()
	dir := l.t.TempDir()
	if err := durable.WriteFile(filepath.Join(dir, "name"), []byte(name)); err != nil {
		l.t.Fatal(err)
	}
	tree, err := l.store.Import(dir)
	if err != nil {
		l.t.Fatal(err)
	}
	return tree
}

// Many releases leave bounded folders, and the known-good one is never deleted (temporalio/temporal-worker-controller#377).
func TestRetentionIsBounded(t *testing.T) {
	l := newLab(t)
	keep := l.plan.Retention
	*keep.Releases, *keep.Bundles, *keep.Sessions = 2, 2, 10
	const releases = 15
	for n := range releases {
		id := fmt.Sprint("s", n)
		tree := l.small(id)
		record := evidence.Session{ID: id, Release: tree, At: time.Now()}
		if err := durable.WriteJSON(l.i.closedFile(id), closedSession{Session: record}); err != nil {
			t.Fatal(err)
		}
		if err := durable.WriteJSON(l.i.builtFile("abandoned-"+id), builtRelease{tree}); err != nil { // never closed
			t.Fatal(err)
		}
		release := l.authority().Active
		release.Tree = tree
		if n < 4 {
			if _, err := l.attest(t.Context(), l.i, id, release); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Prune(t.Context(), l.i.name, keep); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := l.store.List()
	if err != nil || len(stored) > 2+3+1 { // the newest two, those of three bundles, and one that might still be needed
		t.Errorf("%d releases are stored, %v", len(stored), err)
	}
	bundles, err := l.Bundles(t.Context(), l.i.name)
	if err != nil || len(bundles) != 3 { // the newest two, and that of the active release
		t.Errorf("%d bundles, %v", len(bundles), err)
	}
	for _, b := range append(bundles, Bundle{Release: Release{Tree: l.a}}) {
		if err := l.store.Verify(b.Release.Tree); err != nil {
			t.Error(err)
		}
	}
	ids, err := l.i.sessionIDs()
	if err != nil || len(ids) > 10+2 { // with the installation's own, and one that might still be open
		t.Errorf("%d sessions are kept, %v", len(ids), err)
	}
}
