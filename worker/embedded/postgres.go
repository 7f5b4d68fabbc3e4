package embedded

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"regexp"
	"time"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
)

const (
	// visibilitySuffix is what the database of the lists is called beside the one of the URL: the two schemas record their
	// versions in tables of the same name.
	visibilitySuffix = "_visibility"
	// postgresShards let as many tasks of one server commit side by side. Fixed for the life of a database.
	postgresShards = 16
	// postgresConns bounds the connections to each of the two databases; a PostgreSQL server takes 100 by default.
	postgresConns = 30
)

// postgres is a PostgreSQL server and the name of the main database on it.
type postgres struct {
	host, user, password, name string
	attributes                 map[string]string
}

var postgresName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,50}$`)

// parsePostgres reads postgres://user@host:5432/database?sslmode=…. No error repeats the URL: it may hold a password.
func parsePostgres(raw string) (postgres, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return postgres{}, errors.New("the address is not like postgres://user@host:5432/database")
	}
	p := postgres{
		host: net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "5432")), user: u.User.Username(), name: trimSlash(u.Path), attributes: map[string]string{},
	}
	var problems []error
	if u.Hostname() == "" {
		problems = append(problems, errors.New("the address names no host"))
	}
	for what, name := range map[string]string{"user": p.user, "database": p.name} {
		if !postgresName.MatchString(name) {
			problems = append(problems, fmt.Errorf("%s %q: want letters, digits and underscores, at most 51", what, name))
		}
	}
	for key, values := range u.Query() {
		p.attributes[key] = values[0]
	}
	if p.attributes["sslmode"] == "" {
		p.attributes["sslmode"] = "verify-full"
		if ip := net.ParseIP(u.Hostname()); u.Hostname() == "localhost" || ip != nil && ip.IsLoopback() {
			p.attributes["sslmode"] = "disable"
		}
	}
	var given bool
	if p.password, given = u.User.Password(); !given {
		p.password = os.Getenv("PGPASSWORD")
	}
	return p, errors.Join(problems...)
}

func trimSlash(path string) string {
	if path == "" {
		return ""
	}
	return path[1:]
}

// sql is how the Temporal server opens a database of p.
func (p postgres) sql(name string) *config.SQL {
	return &config.SQL{
		PluginName: postgresql.PluginName, User: p.user, Password: p.password, ConnectAddr: p.host, ConnectProtocol: "tcp", DatabaseName: name,
		ConnectAttributes: p.attributes, MaxConns: postgresConns, MaxIdleConns: postgresConns, MaxConnLifetime: time.Hour,
	}
}

func (p postgres) open(name string) (*sql.DB, error) {
	query := url.Values{"connect_timeout": {"10"}}
	for key, value := range p.attributes {
		query.Set(key, value)
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(p.user, p.password), Host: p.host, Path: "/" + name, RawQuery: query.Encode()}
	return sql.Open("postgres", u.String())
}

// database opens one database of p, and creates it when it is missing and the role may.
func (p postgres) database(ctx context.Context, name string, log *slog.Logger) (*sql.DB, error) {
	db, err := p.open(name)
	if err != nil {
		return nil, err
	}
	if err = db.PingContext(ctx); sqlState(err) == "3D000" { // invalid_catalog_name: there is no such database
		if err = p.create(ctx, name); err == nil {
			log.Info("database created", "postgres", p.host, "database", name)
			err = db.PingContext(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func (p postgres) create(ctx context.Context, name string) error {
	db, err := p.open("postgres")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, fmt.Sprintf("CREATE DATABASE %q", name)); err != nil {
		return fmt.Errorf("it is missing and cannot be created: %w; create it for this user: CREATE DATABASE %s OWNER %s", err, name, p.user)
	}
	return nil
}

// sqlState is PostgreSQL's code of an error; empty for one that the server did not answer.
func sqlState(err error) string {
	var answered interface{ SQLState() string }
	if errors.As(err, &answered) {
		return answered.SQLState()
	}
	return ""
}

// preparePostgres creates the two schemas or brings them to this release, and returns the lock of the main database.
func preparePostgres(ctx context.Context, p postgres, log *slog.Logger) (lock *databaseLock, err error) {
	for _, c := range []struct {
		component
		name string
	}{{postgresMain, p.name}, {postgresVisibility, p.name + visibilitySuffix}} {
		db, err := p.database(ctx, c.name, log)
		if err == nil && lock == nil {
			lock, err = p.lock(ctx, log)
		}
		if err == nil {
			err = preparePostgresSchema(ctx, db, c.component, c.name, log)
		}
		if db != nil {
			err = errors.Join(err, db.Close())
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("PostgreSQL %s, database %s: %w", p.host, c.name, err), lock.release())
		}
	}
	return lock, nil
}
