// Package database backs up and restores the SQLite file of a service, without ever losing a committed row.
package database

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	_ "modernc.org/sqlite" // the driver

	"steward/activities/recovery/durable"
)

// Backup is one snapshot file with the identity of the whole database.
type Backup struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	// Rows are counts by table; they serve people, never a decision.
	Rows map[string]int64 `json:"rows,omitempty"`
}

// ErrChanged is wrapped when another connection committed after a watch began.
var ErrChanged = errors.New("the database was changed meanwhile")

// ErrInUse is wrapped when somebody has the database open.
var ErrInUse = errors.New("the database is in use")

// ErrDamaged is wrapped when a file is not the whole database that it should be.
var ErrDamaged = errors.New("the database file is damaged")

// open opens a file for single connections; it never makes one.
func open(path string) (*sql.DB, error) {
	address := url.URL{Scheme: "file", Path: path, RawQuery: "mode=rw&_pragma=busy_timeout(10000)"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(4)
	return db, nil
}

// Snapshot writes a consistent copy of a database that may be in use to a new file, and the hash of it. Content that was
// committed and not yet checkpointed is in it.
func Snapshot(ctx context.Context, database, destination string) (Backup, error) {
	db, err := open(database)
	if err != nil {
		return Backup{}, err
	}
	defer db.Close()
	return snapshot(ctx, db, destination)
}

func snapshot(ctx context.Context, db *sql.DB, destination string) (Backup, error) {
	if err := durable.MkdirAll(filepath.Dir(destination)); err != nil {
		return Backup{}, err
	}
	if err := durable.Remove(destination); err != nil {
		return Backup{}, err
	}
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", destination); err != nil {
		return Backup{}, fmt.Errorf("snapshot of the database: %w", errors.Join(err, durable.Remove(destination)))
	}
	err := errors.Join(os.Chmod(destination, 0o600), durable.SyncDir(destination), durable.SyncDir(filepath.Dir(destination)))
	if err != nil {
		return Backup{}, err
	}
	return Inspect(ctx, destination)
}

// Inspect checks a snapshot file as a whole and tells what is in it.
func Inspect(ctx context.Context, file string) (Backup, error) {
	backup := Backup{File: file, Rows: map[string]int64{}}
	var err error
	if backup.SHA256, backup.Bytes, err = hashFile(file); err != nil {
		return backup, err
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: file, RawQuery: "mode=ro&immutable=1"}).String())
	if err != nil {
		return backup, err
	}
	defer db.Close()
	if err := integrity(ctx, db); err != nil {
		return backup, fmt.Errorf("%s: %w", file, err)
	}
	tables, err := tableNames(ctx, db)
	if err != nil {
		return backup, err
	}
	for _, table := range tables {
		var n int64
		quoted := `"` + strings.ReplaceAll(table, `"`, `""`) + `"`
		if err := db.QueryRowContext(ctx, "SELECT count(*) FROM "+quoted).Scan(&n); err != nil {
			return backup, err
		}
		backup.Rows[table] = n
	}
	return backup, nil
}

// Check proves that the file of a backup still is what was backed up.
func (b Backup) Check(ctx context.Context) error {
	if b.SHA256 == "" {
		return fmt.Errorf("%w: no hash was kept of %s", ErrDamaged, b.File)
	}
	now, err := Inspect(ctx, b.File)
	if err != nil {
		return err
	}
	if now.SHA256 != b.SHA256 {
		return fmt.Errorf("%w: %s has another hash than the backup had", ErrDamaged, b.File)
	}
	return nil
}

func integrity(ctx context.Context, db *sql.DB) error {
	var answer string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&answer); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if answer != "ok" {
		return fmt.Errorf("%w: %.200s", ErrDamaged, answer)
	}
	return nil
}

func tableNames(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return slices.Clip(names), rows.Err()
}

func hashFile(path string) (string, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), n, err
}
