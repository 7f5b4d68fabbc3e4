package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

const (
	// postgresLock is the advisory lock of the one server of a database.
	postgresLock = 0x5374657761726400
	// lockPatience is how long a server waits for the lock: PostgreSQL needs a moment to notice that a killed one has gone.
	lockPatience = 5 * time.Second
	// lockEvery is the time between two looks at the connection that holds it.
	lockEvery = 2 * time.Second
)

// databaseLock is the lock of the one server of a PostgreSQL database. It ends with its connection, which a restart of PostgreSQL or a
// lost network ends too, so it is watched, and taken again on another connection.
type databaseLock struct {
	db   *sql.DB
	conn *sql.Conn // nil while there is none
	log  *slog.Logger
	lost chan error
	quit context.CancelFunc
	done chan struct{}
}

// lock takes the lock of p's main database, or says with ErrInUse that another server has it.
func (p postgres) lock(ctx context.Context, log *slog.Logger) (*databaseLock, error) {
	db, err := p.open(p.name)
	if err != nil {
		return nil, err
	}
	l := &databaseLock{db: db, log: log, lost: make(chan error, 1), done: make(chan struct{})}
	if err := l.take(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	watching, quit := context.WithCancel(context.Background())
	l.quit = quit
	go l.watch(watching)
	return l, nil
}

// take takes the lock on a new connection.
func (l *databaseLock) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	for {
		var locked bool
		err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", int64(postgresLock)).Scan(&locked)
		if err == nil && locked {
			l.conn = conn
			return nil
		}
		if err == nil {
			select {
			case <-ctx.Done():
				err = fmt.Errorf("%w: another steward server runs on this database; stop it, or use another database", ErrInUse)
			case <-time.After(lockPatience / 25):
				continue
			}
		}
		return errors.Join(err, conn.Close())
	}
}

// watch looks after the lock until it is released, or until another server has it.
func (l *databaseLock) watch(ctx context.Context) {
	defer close(l.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(lockEvery):
		}
		if l.held(ctx) || ctx.Err() != nil {
			continue
		}
		switch err := l.take(ctx); {
		case ctx.Err() != nil:
		case errors.Is(err, ErrInUse):
			l.lost <- fmt.Errorf("the connection that held the lock of the database was lost: %w", err)
			return
		case err != nil:
			l.log.Warn("the lock of the database is not held: PostgreSQL does not answer", "error", err)
		default:
			l.log.Warn("the lock of the database was taken again, on a new connection")
		}
	}
}

// held tells whether the connection of the lock still answers, and gives it up when it does not.
func (l *databaseLock) held(ctx context.Context) bool {
	if l.conn == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if _, err := l.conn.ExecContext(ctx, "SELECT 1"); err == nil {
		return true
	}
	_ = l.conn.Close() // it is of no use any more, whatever that says
	l.conn = nil
	return false
}

// release gives the lock back. Nil has none.
func (l *databaseLock) release() error {
	if l == nil {
		return nil
	}
	l.quit()
	<-l.done
	if l.conn != nil {
		return errors.Join(l.conn.Close(), l.db.Close())
	}
	return l.db.Close()
}
