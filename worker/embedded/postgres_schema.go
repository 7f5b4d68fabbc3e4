package embedded

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"path"

	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/schema"
	postgresschema "go.temporal.io/server/schema/postgresql/v12"
)

// On PostgreSQL the server itself keeps its schema's version, in the tables of its own schema tool; this file does what that
// tool would.
var (
	postgresMain       = component{"temporal", "postgresql/v12/temporal", postgresschema.Version}
	postgresVisibility = component{"visibility", "postgresql/v12/visibility", postgresschema.VisibilityVersion}
)

const (
	versionTables = `CREATE TABLE schema_version (
		version_partition INT NOT NULL, db_name VARCHAR(255) NOT NULL, creation_time TIMESTAMP, curr_version VARCHAR(64),
		min_compatible_version VARCHAR(64), PRIMARY KEY (version_partition, db_name));
	CREATE TABLE schema_update_history (
		version_partition INT NOT NULL, year INT NOT NULL, month INT NOT NULL, update_time TIMESTAMP NOT NULL, description VARCHAR(255),
		manifest_md5 VARCHAR(64), new_version VARCHAR(64), old_version VARCHAR(64), PRIMARY KEY (version_partition, year, month, update_time))`
	writeVersion = `INSERT INTO schema_version (version_partition, db_name, creation_time, curr_version, min_compatible_version)
		VALUES (0, $1, now() AT TIME ZONE 'utc', $2, $3) ON CONFLICT (version_partition, db_name) DO UPDATE
		SET creation_time = excluded.creation_time, curr_version = excluded.curr_version, min_compatible_version = excluded.min_compatible_version`
	writeHistory = `INSERT INTO schema_update_history (version_partition, year, month, update_time, description, manifest_md5, new_version, old_version)
		SELECT 0, extract(year FROM t), extract(month FROM t), t, $1::varchar, '', $2::varchar, $3::varchar
		FROM (SELECT clock_timestamp() AT TIME ZONE 'utc' AS t) AS moment`
)

// preparePostgresSchema creates the schema of an empty database, or brings an older one to the version of this release.
func preparePostgresSchema(ctx context.Context, db *sql.DB, c component, name string, log *slog.Logger) error {
	have, err := postgresVersion(ctx, db, name)
	if err != nil {
		return err
	}
	if have == "" {
		return inTransaction(ctx, db, func(ctx context.Context, tx *sql.Tx) error { return createPostgres(ctx, tx, c, name) })
	}
	order, err := compareVersions(have, c.version)
	switch {
	case err != nil || order == 0:
		return err
	case order > 0:
		return fmt.Errorf("%w: %s schema %s; this release has %s of Temporal server %s. Start the newer release, or restore the backup made before it",
			ErrNewerSchema, c.name, have, c.version, headers.ServerVersion)
	}
	return migratePostgres(ctx, db, c, name, have, log)
}

// postgresVersion is the recorded version; empty for a database without tables.
func postgresVersion(ctx context.Context, db *sql.DB, name string) (version string, err error) {
	var tables, recorded int
	err = db.QueryRowContext(ctx, `SELECT count(*), count(CASE tablename WHEN 'schema_version' THEN 1 END)
		FROM pg_catalog.pg_tables WHERE schemaname = current_schema()`).Scan(&tables, &recorded)
	switch {
	case err != nil || tables == 0:
		return "", err
	case recorded == 0:
		return "", errors.New("it has tables but no recorded schema version, so it was made by something else; use an empty database")
	}
	err = db.QueryRowContext(ctx, `SELECT curr_version FROM schema_version WHERE version_partition = 0 AND db_name = $1`, name).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		return "", errors.New("its recorded schema version is that of another database name; restore it under its own name")
	}
	return version, err
}

func createPostgres(ctx context.Context, tx *sql.Tx, c component, name string) error {
	text, _, err := c.schemaSQL()
	if err != nil {
		return err
	}
	for _, s := range []string{versionTables, text} {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("create the %s schema: %w", c.name, err)
		}
	}
	return recordPostgres(ctx, tx, name, "0.0", manifest{Version: c.version, Compatible: c.version, Description: "created by steward"})
}

// manifest says what one versioned folder of a schema changes.
type manifest struct {
	Version     string   `json:"CurrVersion"`
	Compatible  string   `json:"MinCompatibleVersion"`
	Description string   `json:"Description"`
	Files       []string `json:"SchemaUpdateCqlFiles"`
}

type executor interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func recordPostgres(ctx context.Context, db executor, name, from string, m manifest) error {
	if _, err := db.ExecContext(ctx, writeVersion, name, m.Version, m.Compatible); err != nil {
		return fmt.Errorf("record schema version %s: %w", m.Version, err)
	}
	if _, err := db.ExecContext(ctx, writeHistory, m.Description, m.Version, from); err != nil {
		return fmt.Errorf("record schema version %s: %w", m.Version, err)
	}
	return nil
}

// migratePostgres takes one version after the other. Some statements (indexes made concurrently) refuse a transaction, so
// that a step which fails leaves its earlier statements behind; the recorded version is that of the last whole step.
func migratePostgres(ctx context.Context, db *sql.DB, c component, name, from string, log *slog.Logger) error {
	versions, err := versionsAfter(c, from)
	if err != nil {
		return err
	}
	for _, version := range versions {
		m, statements, err := postgresStep(path.Join(c.dir, "versioned", "v"+version))
		if err != nil {
			return err
		}
		for _, s := range statements {
			if _, err := db.ExecContext(ctx, s); err != nil {
				return fmt.Errorf("%s schema from %s to %s: %w; restore the backup made before this release, and report this", c.name, from, version, err)
			}
		}
		if err := recordPostgres(ctx, db, name, from, m); err != nil {
			return err
		}
		log.Info("database schema changed", "database", name, "schema", c.name, "from", from, "to", version)
		from = version
	}
	return nil
}

func postgresStep(dir string) (m manifest, statements []string, err error) {
	data, err := fs.ReadFile(schema.Assets(), path.Join(dir, "manifest.json"))
	if err != nil {
		return m, nil, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, nil, fmt.Errorf("%s: %w", dir, err)
	}
	for _, file := range m.Files {
		text, err := fs.ReadFile(schema.Assets(), path.Join(dir, file))
		if err != nil {
			return m, nil, err
		}
		split, err := persistence.LoadAndSplitQueryFromReaders([]io.Reader{bytes.NewReader(text)})
		if err != nil {
			return m, nil, fmt.Errorf("%s/%s: %w", dir, file, err)
		}
		statements = append(statements, split...)
	}
	return m, statements, nil
}
