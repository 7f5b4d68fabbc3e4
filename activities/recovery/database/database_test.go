package database

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The test binary is also another process that has a database open: `hold FILE`.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "hold" {
		if err := hold(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func hold(path string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(context.Background(), "SELECT count(*) FROM rows").Scan(&n); err != nil {
		return err
	}
	fmt.Println("holds")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return nil
}

type live struct {
	t    *testing.T
	path string
	db   *sql.DB
}

func newLive(t *testing.T, mode string) live {
	t.Helper()
	l := live{t: t, path: filepath.Join(t.TempDir(), "state", "data with space.db")}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		t.Fatal(err)
	}
	l.open()
	l.exec("PRAGMA journal_mode = " + mode)
	l.exec("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)")
	for range 50 {
		l.insert()
	}
	return l
}

func (l *live) open() {
	db, err := sql.Open("sqlite", "file:"+l.path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = db.Close() })
	l.db = db
}

func (l live) exec(statement string) {
	l.t.Helper()
	if _, err := l.db.ExecContext(l.t.Context(), statement); err != nil {
		l.t.Fatalf("%s: %v", statement, err)
	}
}

func (l live) insert() { l.exec("INSERT INTO rows (text) VALUES (hex(randomblob(20)))") }

func (l live) rows() int64 {
	l.t.Helper()
	var n int64
	if err := l.db.QueryRowContext(l.t.Context(), "SELECT count(*) FROM rows").Scan(&n); err != nil {
		l.t.Fatal(err)
	}
	return n
}

func (l live) close() {
	l.t.Helper()
	if err := l.db.Close(); err != nil {
		l.t.Fatal(err)
	}
}

func (l live) backup() Backup {
	l.t.Helper()
	b, err := Snapshot(l.t.Context(), l.path, filepath.Join(l.t.TempDir(), "backup.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	return b
}

func (l live) giveBack(b Backup) (string, string) {
	l.t.Helper()
	done, reason, err := Return(l.t.Context(), l.path, b, filepath.Join(l.t.TempDir(), "scratch.db"))
	if err != nil {
		l.t.Fatal(err)
	}
	return done, reason
}

var modes = []string{"WAL", "DELETE"}

// A file copy missed pages that stood only in the WAL (vavallee/bindery#900).
func TestPublic_C22_ASnapshotHasRowsThatAreNotCheckpointed(t *testing.T) {
	l := newLive(t, "WAL")
	l.exec("PRAGMA wal_autocheckpoint = 0")
	l.insert()
	if info, err := os.Stat(l.path + "-wal"); err != nil || info.Size() == 0 {
		t.Fatalf("nothing stands in the WAL: %v", err)
	}
	if b := l.backup(); b.Rows["rows"] != l.rows() {
		t.Errorf("the snapshot has %d rows of %d", b.Rows["rows"], l.rows())
	}
}

func TestSameContentHasTheSameHash(t *testing.T) {
	for _, mode := range modes {
		l := newLive(t, mode)
		first := l.backup()
		l.close()
		l.open()
		if second := l.backup(); second.SHA256 != first.SHA256 {
			t.Errorf("%s: two snapshots of the same content differ", mode)
		}
		l.insert()
		if third := l.backup(); third.SHA256 == first.SHA256 {
			t.Errorf("%s: a new row changed nothing", mode)
		}
	}
}

func TestWatchSeesEveryForeignCommit(t *testing.T) {
	for _, mode := range modes {
		l := newLive(t, mode)
		w, err := StartWatch(t.Context(), l.path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Snapshot(t.Context(), filepath.Join(t.TempDir(), "backup.db")); err != nil {
			t.Fatal(err)
		}
		if err := w.Unchanged(t.Context()); err != nil {
			t.Errorf("%s: after the snapshot alone: %v", mode, err)
		}
		l.rows()
		l.close()
		if err := w.Unchanged(t.Context()); err != nil {
			t.Errorf("%s: after reads and the end of the writer: %v", mode, err)
		}
		l.open()
		l.exec("UPDATE rows SET text = 'x' WHERE id = 1")
		if err := w.Unchanged(t.Context()); !errors.Is(err, ErrChanged) {
			t.Errorf("%s: after a commit: %v", mode, err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestUnchangedDatabaseIsRestored(t *testing.T) {
	for _, mode := range modes {
		l := newLive(t, mode)
		b, n := l.backup(), l.rows()
		l.close()
		if done, reason := l.giveBack(b); done != Restored {
			t.Fatalf("%s: %s, %s", mode, done, reason)
		}
		if got, _, err := hashFile(l.path); err != nil || got != b.SHA256 {
			t.Errorf("%s: the file in place is not the backup: %v", mode, err)
		}
		for _, suffix := range append(sidecars, ".restore") {
			if _, err := os.Stat(l.path + suffix); err == nil {
				t.Errorf("%s: %s is left", mode, suffix)
			}
		}
		l.open()
		l.insert()
		if got := l.rows(); got != n+1 {
			t.Errorf("%s: %d rows after the restore and one insert, want %d", mode, got, n+1)
		}
	}
}

// Writes and a checkpoint while nobody watched are newer data (benbjohnson/litestream#752).
func TestNewerDatabaseIsKept(t *testing.T) {
	l := newLive(t, "WAL")
	b := l.backup()
	l.insert()
	l.exec("PRAGMA wal_checkpoint(TRUNCATE)")
	n := l.rows()
	l.close()
	if done, reason := l.giveBack(b); done != Kept || reason == "" {
		t.Errorf("%s, %s", done, reason)
	}
	l.open()
	if got := l.rows(); got != n {
		t.Errorf("%d rows are left of %d", got, n)
	}
}

// The last commits may stand only in a WAL that a killed service left behind.
func TestCommitInALeftWALIsNewerData(t *testing.T) {
	l := newLive(t, "WAL")
	l.exec("PRAGMA wal_autocheckpoint = 0")
	b := l.backup()
	l.insert()
	n := l.rows()
	copied := live{t: t, path: filepath.Join(t.TempDir(), "killed.db")} // as a kill would leave it: WAL not checkpointed
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(l.path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(copied.path+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if done, _ := copied.giveBack(b); done != Kept {
		t.Errorf("the database was %s", done)
	}
	copied.open()
	if got := copied.rows(); got != n {
		t.Errorf("%d rows are left of %d", got, n)
	}
}

// A restore over a database that is open replayed a stale WAL (vavallee/bindery#2337).
func TestPublic_C21_AnOpenDatabaseIsNotReplaced(t *testing.T) {
	for _, mode := range modes {
		l := newLive(t, mode)
		b := l.backup()
		before, err := os.Stat(l.path)
		if err != nil {
			t.Fatal(err)
		}
		l.close()
		release := holdOpen(t, l.path)
		if done, reason := l.giveBack(b); done != Kept || reason == "" {
			t.Errorf("%s: with a reader: %s, %s", mode, done, reason)
		}
		after, err := os.Stat(l.path)
		if err != nil || !os.SameFile(before, after) {
			t.Errorf("%s: the file was replaced under a reader: %v", mode, err)
		}
		release()
		if done, reason := l.giveBack(b); done != Restored {
			t.Errorf("%s: after it ended: %s, %s", mode, done, reason)
		}
	}
}

func holdOpen(t *testing.T, path string) func() {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "hold", path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "holds\n" {
		t.Fatalf("the other process says %q, %v", line, err)
	}
	return func() {
		if err := in.Close(); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

func TestDamagedBackupRestoresNothing(t *testing.T) {
	l := newLive(t, "WAL")
	b, n := l.backup(), l.rows()
	l.close()
	f, err := os.OpenFile(b.File, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("damaged"), b.Bytes-100); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, backup := range []Backup{b, {File: b.File}, {File: b.File + ".not", SHA256: b.SHA256}} {
		if done, reason := l.giveBack(backup); done != Kept || reason == "" {
			t.Errorf("%+v: %s, %s", backup, done, reason)
		}
	}
	l.open()
	if got := l.rows(); got != n {
		t.Errorf("%d rows are left of %d", got, n)
	}
}
