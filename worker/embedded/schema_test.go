package embedded

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

var discard = slog.New(slog.DiscardHandler)

// undo reverses the versioned steps, newest first: undo["0.11"] turns 0.11 into 0.10.
var undo = []struct{ version, statements string }{
	{"0.11", `DROP TABLE current_chasm_executions`},
	{"0.10", `DROP TABLE tasks_v2; DROP TABLE task_queues_v2`},
	{"0.9", `DROP TABLE chasm_node_maps`},
	{"0.8", `ALTER TABLE current_executions DROP COLUMN data_encoding;
		ALTER TABLE current_executions ADD COLUMN data_encoding VARCHAR(16) NULL`},
	{"0.7", `ALTER TABLE current_executions DROP COLUMN data; ALTER TABLE current_executions DROP COLUMN data_encoding`},
	{"0.6", `ALTER TABLE current_executions DROP COLUMN start_time`},
	{"0.5", `DROP TABLE nexus_endpoints; DROP TABLE nexus_endpoints_partition_status;
		CREATE TABLE nexus_incoming_services (service_id BINARY(16) PRIMARY KEY);
		CREATE TABLE nexus_incoming_services_partition_status (id INT PRIMARY KEY)`},
	{"0.4", `DROP TABLE nexus_incoming_services; DROP TABLE nexus_incoming_services_partition_status`},
	{"0.3", `DROP TABLE queues; DROP TABLE queue_messages`},
	{"0.2", `DROP TABLE task_queue_user_data; DROP TABLE build_id_to_task_queue`},
}

// downgrade turns a database of this release into one that an older server would have left.
func downgrade(t *testing.T, file, to string) {
	t.Helper()
	db := open(t, file)
	for _, u := range undo {
		order, err := compareVersions(u.version, to)
		require.NoError(t, err)
		if order > 0 {
			execSQL(t, db, u.statements)
		}
	}
	execSQL(t, db, `UPDATE steward_schema SET version = ? WHERE component = 'temporal'`, to)
	require.NoError(t, db.Close())
}

func open(t *testing.T, file string) *sql.DB {
	t.Helper()
	db, err := openDatabase(file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execSQL(t *testing.T, db *sql.DB, statements string, args ...any) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statements, args...)
	require.NoError(t, err, statements)
}

func recordedVersion(t *testing.T, file string) string {
	t.Helper()
	recorded, err := readSchema(t.Context(), open(t, file))
	require.NoError(t, err)
	return recorded[mainSchema.name].version
}

// newDatabase creates a current database in a fresh data folder.
func newDatabase(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, prepareDatabase(t.Context(), dir, discard))
	return dir, filepath.Join(dir, databaseFile)
}

// structure lists every column, index and trigger of a database.
func structure(t *testing.T, file string) []string {
	t.Helper()
	rows, err := open(t, file).QueryContext(t.Context(), `
		SELECT m.name || '.' || x.name || ' ' || x.type || ' pk=' || x.pk || ' hidden=' || x.hidden ||
			-- the server's own step to 0.7 leaves this one column nullable
			CASE WHEN m.name = 'current_executions' AND x.name = 'data' THEN '' ELSE ' notnull=' || x."notnull" END
		FROM sqlite_master m, pragma_table_xinfo(m.name) x WHERE m.type = 'table'
		UNION ALL SELECT type || ' ' || name FROM sqlite_master WHERE type IN ('index', 'trigger')
		ORDER BY 1`)
	require.NoError(t, err)
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		require.NoError(t, rows.Scan(&s))
		out = append(out, s)
	}
	require.NoError(t, rows.Err())
	require.NotEmpty(t, out)
	return out
}

func TestEveryOlderSchemaBecomesTheCurrentOne(t *testing.T) {
	_, current := newDatabase(t)
	want := structure(t, current)
	for _, from := range []string{"0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8", "0.9", "0.10"} {
		t.Run(from, func(t *testing.T) {
			dir, file := newDatabase(t)
			downgrade(t, file, from)
			require.NoError(t, prepareDatabase(t.Context(), dir, discard))
			require.Empty(t, cmp.Diff(want, structure(t, file)))
			require.Equal(t, mainSchema.version, recordedVersion(t, file))
			backups := filesUnder(t, filepath.Join(dir, "backup"))
			require.Len(t, backups, 1)
			require.Equal(t, from, recordedVersion(t, backups[0]))
		})
	}
}

func TestCurrentDatabaseIsLeftAlone(t *testing.T) {
	dir, _ := newDatabase(t)
	require.NoError(t, prepareDatabase(t.Context(), dir, discard))
	require.NoDirExists(t, filepath.Join(dir, "backup"))
}

func TestFailedMigrationChangesNothing(t *testing.T) {
	dir, file := newDatabase(t)
	downgrade(t, file, "0.9")
	execSQL(t, open(t, file), `CREATE TABLE current_chasm_executions (in_the_way INT)`) // the last step fails
	before := structure(t, file)

	err := prepareDatabase(t.Context(), dir, discard)
	require.ErrorContains(t, err, "temporal schema from 0.9 to 0.11")
	require.ErrorContains(t, err, filepath.Join(dir, "backup"))
	require.Empty(t, cmp.Diff(before, structure(t, file)))
	require.Equal(t, "0.9", recordedVersion(t, file))
}

func TestNewerSchemaIsRefused(t *testing.T) {
	for _, c := range components {
		t.Run(c.name, func(t *testing.T) {
			dir, file := newDatabase(t)
			execSQL(t, open(t, file), `UPDATE steward_schema SET version = '1.0', server = '9.9.9' WHERE component = ?`, c.name)
			before, err := os.ReadFile(file)
			require.NoError(t, err)

			err = prepareDatabase(t.Context(), dir, discard)
			require.ErrorIs(t, err, ErrNewerSchema)
			require.ErrorContains(t, err, c.name+" schema 1.0, written by Temporal server 9.9.9; this release has "+c.version)
			require.ErrorContains(t, err, "has no backup")
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

func TestVisibilitySchemaOfANewerServerIsRefused(t *testing.T) {
	dir, file := newDatabase(t)
	change := `UPDATE steward_schema SET digest = 'newer', server = ? WHERE component = 'visibility'`
	execSQL(t, open(t, file), change, "1.100.0")
	require.ErrorIs(t, prepareDatabase(t.Context(), dir, discard), ErrNewerSchema)
	execSQL(t, open(t, file), change, "1.4.0-rc.2")
	require.NoError(t, prepareDatabase(t.Context(), dir, discard))
}

func TestUnreadableVersionIsRefused(t *testing.T) {
	dir, file := newDatabase(t)
	execSQL(t, open(t, file), `UPDATE steward_schema SET version = 'latest'`)
	require.ErrorContains(t, prepareDatabase(t.Context(), dir, discard), `version "latest"`)
}

func TestNewerSchemaNamesTheBackupOfThisRelease(t *testing.T) {
	dir, file := newDatabase(t)
	db := open(t, file)
	_, err := backUp(t.Context(), db, filepath.Join(dir, "backup"), "0.1")
	require.NoError(t, err)
	backup, err := backUp(t.Context(), db, filepath.Join(dir, "backup"), mainSchema.version)
	require.NoError(t, err)
	execSQL(t, db, `UPDATE steward_schema SET version = '0.12'`)

	err = prepareDatabase(t.Context(), dir, discard)
	require.ErrorIs(t, err, ErrNewerSchema)
	require.ErrorContains(t, err, backup)
}

func TestUnknownDatabaseIsRefused(t *testing.T) {
	dir, file := newDatabase(t)
	execSQL(t, open(t, file), `DROP TABLE steward_schema`)
	require.ErrorContains(t, prepareDatabase(t.Context(), dir, discard), "not made by steward")
}

func TestVisibilityRowsSurviveAChangedVisibilitySchema(t *testing.T) {
	_, current := newDatabase(t)
	dir, file := newDatabase(t)
	db := open(t, file)
	execSQL(t, db, `INSERT INTO executions_visibility
		(namespace_id, run_id, start_time, execution_time, workflow_id, workflow_type_name, status, encoding, search_attributes)
		VALUES ('ns', 'run', '2026-01-01', '2026-01-01', 'wf', 'type', 1, '', '{"Keyword01":"chatgpt","Text01":"one two"}')`)
	// What an older schema differs in: a column and its index are missing, another column has since gone.
	execSQL(t, db, `DROP INDEX by_keyword_10; ALTER TABLE executions_visibility DROP COLUMN Keyword10;
		ALTER TABLE executions_visibility ADD COLUMN gone TEXT; UPDATE steward_schema SET digest = 'older'`)

	require.NoError(t, prepareDatabase(t.Context(), dir, discard))
	require.Empty(t, cmp.Diff(structure(t, current), structure(t, file)))
	var keyword, found string
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT v.Keyword01, v.workflow_id FROM executions_visibility_fts_text f
		JOIN executions_visibility v ON v.rowid = f.rowid WHERE executions_visibility_fts_text MATCH 'two'`).Scan(&keyword, &found))
	require.Equal(t, "chatgpt", keyword)
	require.Equal(t, "wf", found)
	require.Len(t, filesUnder(t, filepath.Join(dir, "backup")), 1)
}

func TestInterruptedCreationStartsOver(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, databaseFile)
	require.NoError(t, createPrivate(file))
	err := inTransaction(t.Context(), open(t, file), func(ctx context.Context, tx *sql.Tx) error {
		require.NoError(t, createSchema(ctx, tx))
		return context.Canceled
	})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, prepareDatabase(t.Context(), dir, discard))
	require.Equal(t, mainSchema.version, recordedVersion(t, file))
}
