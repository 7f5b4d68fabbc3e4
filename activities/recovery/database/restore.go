package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"steward/activities/recovery/durable"
)

// What a rollback did with a database.
const (
	// Restored: the live database was the backup, row for row, and the backup's file took its place.
	Restored = "restored"
	// Kept: the live database has something that the backup has not, or could not be compared; it stays.
	Kept = "kept"
)

// Return decides what a rollback does with the live database of a stopped service. A fresh snapshot of it is compared with the
// backup of the switch as a whole. Only when both are the same the backup is put in place; in every other case the live file
// stays untouched. scratch is the file for the fresh snapshot, which is removed. The reason says why the live one was kept.
func Return(ctx context.Context, database string, backup Backup, scratch string) (done, reason string, err error) {
	if err := backup.Check(ctx); err != nil {
		return Kept, err.Error(), nil //nolint:nilerr // a bad backup is a reason to keep the live one
	}
	live, err := Snapshot(ctx, database, scratch)
	err = errors.Join(err, durable.Remove(scratch))
	if err != nil {
		return Kept, "", fmt.Errorf("the live database cannot be read: %w", err)
	}
	if live.SHA256 != backup.SHA256 {
		return Kept, "it was changed after the switch", nil
	}
	err = restore(ctx, database, backup)
	switch {
	case errors.Is(err, ErrInUse):
		return Kept, err.Error(), nil
	case err != nil:
		return Kept, "", err
	}
	return Restored, "", nil
}

// restore puts a backup in the place of a database that nobody has open. A crash in it leaves the one or the other, whole.
func restore(ctx context.Context, database string, backup Backup) error {
	if err := quiesce(ctx, database); err != nil {
		return err
	}
	part := database + ".restore"
	if err := durable.Remove(part); err != nil {
		return err
	}
	if err := durable.CopyFile(backup.File, part, 0o600); err != nil {
		return errors.Join(err, durable.Remove(part))
	}
	if info, err := os.Stat(database); err == nil {
		if err := os.Chmod(part, info.Mode().Perm()); err != nil {
			return err
		}
	}
	sum, _, err := hashFile(part)
	if err == nil && sum != backup.SHA256 {
		err = fmt.Errorf("%w: the copy of %s differs from it", ErrDamaged, backup.File)
	}
	if err != nil {
		return errors.Join(err, durable.Remove(part))
	}
	// A sidecar of the old file would be replayed into the new one.
	for _, suffix := range sidecars {
		if err := durable.Remove(database + suffix); err != nil {
			return err
		}
	}
	if err := os.Rename(part, database); err != nil {
		return err
	}
	if err := durable.SyncDir(filepath.Dir(database)); err != nil {
		return err
	}
	_, err = Inspect(ctx, database)
	return err
}

var sidecars = []string{"-wal", "-shm", "-journal"}

// quiesce proves that nobody has a database open and moves what stands in its -wal into it.
func quiesce(ctx context.Context, database string) error {
	for _, suffix := range append([]string{""}, sidecars...) {
		if pid := openedBy(database + suffix); pid != 0 {
			return fmt.Errorf("%w: process %d has %s open", ErrInUse, pid, database+suffix)
		}
	}
	db, err := open(database)
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "PRAGMA busy_timeout = 1000"); err != nil {
		return err
	}
	// Leaving WAL mode needs the database for oneself alone.
	var mode string
	err = conn.QueryRowContext(ctx, "PRAGMA journal_mode = DELETE").Scan(&mode)
	if err == nil && !strings.EqualFold(mode, "delete") {
		err = fmt.Errorf("it stays in journal mode %s", mode)
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if err == nil {
		_, err = conn.ExecContext(ctx, "ROLLBACK")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInUse, err)
	}
	return errors.Join(conn.Close(), db.Close())
}
