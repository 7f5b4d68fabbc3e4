package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// prepareDatabase creates the database of a data folder, or brings an older one to the schema of this release after a
// backup. The caller holds the lock of the folder.
func prepareDatabase(ctx context.Context, dataDir string, log *slog.Logger) error {
	file := filepath.Join(dataDir, databaseFile)
	if err := prepareDatabaseFile(ctx, file, filepath.Join(dataDir, "backup"), log); err != nil {
		return fmt.Errorf("database %s: %w", file, err)
	}
	return nil
}

func prepareDatabaseFile(ctx context.Context, file, backupDir string, log *slog.Logger) error {
	if err := createPrivate(file); err != nil {
		return err
	}
	db, err := openDatabase(file)
	if err != nil {
		return err
	}
	defer db.Close()
	recorded, err := readSchema(ctx, db)
	if err != nil {
		return err
	}
	if recorded == nil {
		return inTransaction(ctx, db, createSchema)
	}
	pending, err := pendingMigrations(recorded)
	if errors.Is(err, ErrNewerSchema) {
		return fmt.Errorf("%w. %s", err, wayBack(file, backupDir))
	}
	if err != nil || len(pending) == 0 {
		return err
	}
	backup, err := backUp(ctx, db, backupDir, recorded[mainSchema.name].version)
	if err != nil {
		return fmt.Errorf("backup before the schema change: %w", err)
	}
	log.Info("database backed up before a schema change", "backup", backup)
	if err := inTransaction(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
		return migrate(ctx, tx, pending)
	}); err != nil {
		return fmt.Errorf("schema change (undone; the database is as before, a copy is %s): %w", backup, err)
	}
	for _, m := range pending {
		log.Info("database schema changed", "schema", m.component.name, "from", m.from, "to", m.component.version)
	}
	return nil
}

func migrate(ctx context.Context, tx *sql.Tx, pending []migration) error {
	for _, m := range pending {
		for _, step := range m.steps {
			if err := step(ctx, tx); err != nil {
				return fmt.Errorf("%s schema from %s to %s: %w", m.component.name, m.from, m.component.version, err)
			}
		}
		if err := recordSchema(ctx, tx, m.component); err != nil {
			return err
		}
	}
	return nil
}

// createPrivate makes an empty file unless there is one: SQLite would create it readable by others. It must not open an
// existing database, because closing a descriptor drops the locks that SQLite holds on the file in this process.
func createPrivate(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// openDatabase opens an existing SQLite file with one connection.
func openDatabase(file string) (*sql.DB, error) {
	uri := url.URL{Scheme: "file", Path: file, RawQuery: url.Values{
		"mode":    {"rw"},
		"_txlock": {"immediate"},
		"_pragma": {"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)"},
	}.Encode()}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func inTransaction(ctx context.Context, db *sql.DB, do func(context.Context, *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// backUp writes a complete, checked copy of db into dir and returns its path.
func backUp(ctx context.Context, db *sql.DB, dir, version string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	partial := filepath.Join(dir, "partial.db")
	if err := os.Remove(partial); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := createPrivate(partial); err != nil {
		return "", err
	}
	if err := copyInto(ctx, db, partial); err != nil {
		return "", errors.Join(err, os.Remove(partial))
	}
	name := filepath.Join(dir, backupPrefix(version)+time.Now().UTC().Format("20060102T150405.000Z")+".db")
	if err := os.Rename(partial, name); err != nil {
		return "", err
	}
	return name, syncDir(dir)
}

func backupPrefix(version string) string { return "temporal-" + version + "-" }

func copyInto(ctx context.Context, db *sql.DB, file string) error {
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", file); err != nil {
		return err
	}
	if err := checkDatabase(ctx, file); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func checkDatabase(ctx context.Context, file string) error {
	uri := url.URL{Scheme: "file", Path: file, RawQuery: "mode=ro"}
	db, err := sql.Open("sqlite", uri.String())
	if err != nil {
		return err
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
		return err
	}
	if verdict != "ok" {
		return fmt.Errorf("the copy %s is damaged: %s", file, verdict)
	}
	return nil
}

// wayBack tells an operator how to run this release although a newer one has changed the database.
func wayBack(file, backupDir string) string {
	var backup string
	entries, _ := os.ReadDir(backupDir) // sorted, so the newest of a version comes last
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), backupPrefix(mainSchema.version)) {
			backup = filepath.Join(backupDir, e.Name())
		}
	}
	if backup == "" {
		return "Start the newer release; " + backupDir + " has no backup of a schema that this release knows"
	}
	return fmt.Sprintf("Start the newer release; or go back to the backup made before the change (what happened since is lost): "+
		"move %[1]s, %[1]s-wal and %[1]s-shm away and copy %[2]s to %[1]s", file, backup)
}

// checkpoint moves what the write-ahead log still holds into the database file, so that the file alone is complete.
func checkpoint(ctx context.Context, dataDir string) error {
	db, err := openDatabase(filepath.Join(dataDir, databaseFile))
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	return err
}
