package embedded

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/worker/embedded/pgtest"
)

func TestPostgresAddresses(t *testing.T) {
	t.Setenv("PGPASSWORD", "from the environment")
	p, err := parsePostgres("postgres://me:p%40ss@db.example:6000/steward")
	require.NoError(t, err)
	require.Equal(t, postgres{"db.example:6000", "me", "p@ss", "steward", map[string]string{"sslmode": "verify-full"}}, p)

	p, err = parsePostgres("postgresql://me@127.0.0.1/steward")
	require.NoError(t, err)
	require.Equal(t, postgres{"127.0.0.1:5432", "me", "from the environment", "steward", map[string]string{"sslmode": "disable"}}, p)

	p, err = parsePostgres("postgres://me@db/steward?sslmode=require&application_name=x")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"sslmode": "require", "application_name": "x"}, p.attributes)

	for _, address := range []string{
		"", "mysql://me:hunter2@db/steward", "postgres://me:hunter2@db", "postgres://:hunter2@db/x", "postgres://me:hunter2@/x",
		"postgres://me:hunter2@db/x-y", "postgres://me:hunter2@db:port/x", "postgres://me:hunter2@db/x%00",
	} {
		_, err := parsePostgres(address)
		require.Error(t, err, address)
		require.NotContains(t, err.Error(), "hunter2", address)
	}
}

func postgresServer(t *testing.T, address string) (*Server, error) {
	t.Helper()
	t.Setenv("PGPASSWORD", pgtest.Password)
	s, err := Start(t.Context(), Options{DataDir: t.TempDir(), UIPort: NoUI, Logger: stderrLogger(), Postgres: address})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, s.Stop()) })
	}
	return s, err
}

func TestPostgresKeepsTheState(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server")
	}
	address := pgtest.Start(t, "steward_it")
	s, err := postgresServer(t, address)
	require.NoError(t, err)

	_, err = postgresServer(t, address)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, "another steward server")
	require.NotContains(t, err.Error(), pgtest.Password)

	c, err := client.Dial(client.Options{HostPort: s.Address(), Namespace: s.Namespace()})
	require.NoError(t, err)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "kept", TaskQueue: taskQueue}, "nobody")
	require.NoError(t, err)
	c.Close()
	require.NoError(t, s.Stop())

	again, err := postgresServer(t, address)
	require.NoError(t, err, "the lock was given back, and the schema is not made twice")
	c, err = client.Dial(client.Options{HostPort: again.Address(), Namespace: again.Namespace()})
	require.NoError(t, err)
	defer c.Close()
	described, err := c.DescribeWorkflowExecution(t.Context(), "kept", "")
	require.NoError(t, err)
	require.Equal(t, run.GetRunID(), described.WorkflowExecutionInfo.Execution.RunId)
}

// The lock of a database ends with its connection, which a restart of PostgreSQL ends.
func TestPostgresLockOutlivesItsConnection(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server")
	}
	address := pgtest.Start(t, "steward_lock")
	s, err := postgresServer(t, address)
	require.NoError(t, err)
	db := pgtest.Open(t, address, "steward_lock")
	holder := func() (pid int) {
		_ = db.QueryRow("SELECT coalesce(max(pid), 0) FROM pg_locks WHERE locktype = 'advisory' AND granted").Scan(&pid)
		return pid
	}
	first := holder()
	require.NotZero(t, first)
	_, err = db.Exec("SELECT pg_terminate_backend($1)", first)
	require.NoError(t, err)
	require.Eventually(t, func() bool { second := holder(); return second != 0 && second != first }, time.Minute, 50*time.Millisecond)

	// Another server waits for the lock and has it as soon as the connection is lost.
	locked := make(chan error, 1)
	go func() {
		_, err := db.Exec("SELECT pg_advisory_lock($1)", int64(postgresLock))
		locked <- err
	}()
	admin := pgtest.Open(t, address, "postgres")
	require.Eventually(t, func() bool {
		var waiting int
		_ = admin.QueryRow("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted").Scan(&waiting)
		return waiting == 1
	}, time.Minute, 50*time.Millisecond)
	select {
	case err := <-s.Lost():
		t.Fatal(err)
	default:
	}
	_, err = admin.Exec("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
	require.NoError(t, err)
	require.NoError(t, <-locked)
	require.ErrorIs(t, <-s.Lost(), ErrInUse)
}

// An older release's database: everything up to one version before this one's.
func TestPostgresSchemaIsUpgraded(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server")
	}
	address := pgtest.Start(t, "old")
	t.Setenv("PGPASSWORD", pgtest.Password)
	p, err := parsePostgres(address)
	require.NoError(t, err)
	databases := map[string]component{"old": postgresMain, "old" + visibilitySuffix: postgresVisibility}
	for name, c := range databases {
		db, err := p.database(t.Context(), name, stderrLogger())
		require.NoError(t, err)
		versions, err := versionsAfter(c, "0.0")
		require.NoError(t, err)
		_, err = db.Exec(versionTables)
		require.NoError(t, err)
		for _, version := range versions[:len(versions)-1] {
			m, statements, err := postgresStep(c.dir + "/versioned/v" + version)
			require.NoError(t, err)
			for _, s := range statements {
				_, err := db.Exec(s)
				require.NoError(t, err, "%s: %s", version, s)
			}
			require.NoError(t, recordPostgres(t.Context(), db, name, "", m))
		}
		require.NoError(t, db.Close())
	}
	s, err := postgresServer(t, address)
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	for name, c := range databases {
		db := pgtest.Open(t, address, name)
		have, err := postgresVersion(t.Context(), db, name)
		require.NoError(t, err)
		require.Equal(t, c.version, have)
		fresh := pgtest.Open(t, address, name+"_fresh")
		admin := pgtest.Open(t, address, "postgres")
		_, err = admin.Exec("CREATE DATABASE " + name + "_fresh")
		require.NoError(t, err)
		require.NoError(t, preparePostgresSchema(t.Context(), fresh, c, name+"_fresh", stderrLogger()))
		require.Subset(t, columns(t, db), columns(t, fresh), "an upgraded schema has all of a new one; it may keep what is no longer used")
	}

	newer := pgtest.Open(t, address, "old")
	_, err = newer.Exec("UPDATE schema_version SET curr_version = '99.0'")
	require.NoError(t, err)
	_, err = postgresServer(t, address)
	require.ErrorIs(t, err, ErrNewerSchema)

	_, err = newer.Exec("DROP TABLE schema_version")
	require.NoError(t, err)
	_, err = postgresServer(t, address)
	require.ErrorContains(t, err, "no recorded schema version")
}

func columns(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.Query(`SELECT table_name || ' ' || column_name || ' ' || data_type FROM information_schema.columns
		WHERE table_schema = 'public' ORDER BY 1`)
	require.NoError(t, err)
	defer rows.Close()
	var all []string
	for rows.Next() {
		var line string
		require.NoError(t, rows.Scan(&line))
		all = append(all, line)
	}
	require.NoError(t, rows.Err())
	return all
}

func TestPostgresThatRefusesIsToldClearly(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a server")
	}
	address := pgtest.Start(t, "refused")
	_, err := pgtest.Open(t, address, "postgres").Exec("CREATE ROLE guest LOGIN PASSWORD 'guest'")
	require.NoError(t, err)
	t.Setenv("PGPASSWORD", "guest")
	guest := strings.Replace(address, pgtest.User+"@", "guest@", 1)
	_, err = Start(t.Context(), Options{DataDir: t.TempDir(), UIPort: NoUI, Logger: stderrLogger(), Postgres: guest})
	require.ErrorContains(t, err, "CREATE DATABASE refused OWNER guest")

	t.Setenv("PGPASSWORD", "wrong-password")
	_, err = Start(t.Context(), Options{DataDir: t.TempDir(), UIPort: NoUI, Logger: stderrLogger(), Postgres: guest})
	require.ErrorContains(t, err, "password authentication failed")
	require.NotContains(t, err.Error(), "wrong-password")

	_, err = Start(t.Context(), Options{DataDir: t.TempDir(), UIPort: NoUI, Logger: stderrLogger(), Postgres: "postgres://me@127.0.0.1:1/x"})
	require.ErrorContains(t, err, "127.0.0.1:1")
	require.ErrorContains(t, err, "refused")
}
