package recovery

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"steward/workflows/release/evidence"
)

// Public reports of release tools as small inputs; each names the report that it is made of. More of them stand beside what they
// are about, as TestPublic_C….

// The old one was down before the new one was up, and the tool died in between: an outage (argoproj/argo-rollouts#2235).
func TestPublic_C08_RecoveryKilledBetweenStopAndStartLeavesOneOwner(t *testing.T) {
	for _, at := range []string{evidence.StepStopped, evidence.StepReserved} {
		t.Run(at, func(t *testing.T) { killedCutover(t, at) })
	}
}

// Two records stood for one boot entry, and blessing one of them did nothing (systemd/systemd#33504).
func TestPublic_C19_ASecondRecordOfABundleIsNoBundle(t *testing.T) {
	l := newLab(t)
	first := l.bundle(l.a)
	for _, name := range []string{l.a + "-1", l.a[:len(l.a)-1], "known-good"} {
		if err := os.CopyFS(filepath.Join(l.i.bundles(), name), os.DirFS(filepath.Join(l.i.bundles(), l.a))); err != nil {
			t.Fatal(err)
		}
	}
	all, err := l.Bundles(t.Context(), l.i.name)
	if err != nil || len(all) != 1 || all[0].ID != l.a {
		t.Errorf("%+v, %v", all, err)
	}
	if again := l.bundle(l.a); again.Digest != first.Digest {
		t.Error("the bundle of the release is another one now")
	}
	if err := l.Prune(t.Context(), l.i.name, l.plan.Retention); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(l.i.bundles()); err != nil || len(entries) != 1 {
		t.Errorf("%d records are left, %v", len(entries), err)
	}
}

// Rows were written and checkpointed while the replicator was down, and the restore failed or lost them (benbjohnson/litestream#752).
func TestPublic_C20_RowsThatWereCheckpointedMeanwhileSurviveARollback(t *testing.T) {
	l := newLab(t)
	l.mustWrite(3)
	b := l.release(map[string]any{"name": "B"})
	if result := l.cutover(b); result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	l.mustWrite(4)
	db, err := sql.Open("sqlite", databaseFile(l.plan.Service))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	result, err := l.operations().Rollback(t.Context(), l.input(b, "r1"))
	if err != nil || result.Failed != nil || result.Database != "kept" {
		t.Fatalf("%+v, %v", result, err)
	}
	l.settledOn(l.a)
	if n := l.rows(); n != 3+4+1 {
		t.Errorf("%d rows are left of 8", n)
	}
}
