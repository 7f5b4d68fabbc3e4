package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Watch is one pinned connection that notices every commit of others. A snapshot that was taken under it while the service
// wrote on is the state of the stopped service exactly when nothing was committed until then.
// (Stable A / Candidate B and ReleaseSession authority, ReleaseSession state.)
type Watch struct {
	db      *sql.DB
	conn    *sql.Conn
	version int64
}

// StartWatch begins to watch. The connection stays open until Close, so that nobody else is the last one on the database.
func StartWatch(ctx context.Context, database string) (*Watch, error) {
	db, err := open(database)
	if err != nil {
		return nil, err
	}
	w := &Watch{db: db}
	if w.conn, err = db.Conn(ctx); err == nil {
		if _, err = w.conn.ExecContext(ctx, "PRAGMA query_only = ON"); err == nil {
			w.version, err = w.read(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch %s: %w", database, err), w.Close())
	}
	return w, nil
}

// read is the counter that changes with every commit of another connection.
func (w *Watch) read(ctx context.Context) (int64, error) {
	// The counter is that of the connection's last read, so there has to be one.
	var tables, version int64
	if err := w.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return 0, err
	}
	err := w.conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
	return version, err
}

// Snapshot is Snapshot under the watch.
func (w *Watch) Snapshot(ctx context.Context, destination string) (Backup, error) {
	return snapshot(ctx, w.db, destination)
}

// Unchanged returns nil when nobody committed since the watch began, else an error that wraps ErrChanged.
func (w *Watch) Unchanged(ctx context.Context) error {
	now, err := w.read(ctx)
	if err != nil {
		return err
	}
	if now != w.version {
		return ErrChanged
	}
	return nil
}

// Close ends the watch.
func (w *Watch) Close() error {
	if w.conn == nil {
		return w.db.Close()
	}
	return errors.Join(w.conn.Close(), w.db.Close())
}
