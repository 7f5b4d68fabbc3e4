package embedded

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/schema"
	"go.temporal.io/server/schema/sqlite"
)

// The server creates its SQLite schema but neither records its version nor migrates it. This file does both: the table
// steward_schema says what the file has, and each change is one transaction that starts from a backup.

// ErrNewerSchema is wrapped by the error of Start when a newer release has written the database.
var ErrNewerSchema = errors.New("database has a newer schema")

// component is one of the two schemas that share the file.
type component struct {
	name string
	// dir holds schema.sql and, for the main schema, versioned/vX.Y with the step from the version before.
	dir     string
	version string
}

var (
	mainSchema       = component{"temporal", "sqlite/v3/temporal", sqlite.Version}
	visibilitySchema = component{"visibility", "sqlite/v3/visibility", sqlite.VisibilityVersion}
	components       = []component{mainSchema, visibilitySchema}
)

const schemaTable = `CREATE TABLE steward_schema (
	component TEXT PRIMARY KEY,
	version   TEXT NOT NULL,
	digest    TEXT NOT NULL, -- sha256 of schema.sql
	server    TEXT NOT NULL, -- release of the Temporal server that brought it
	changed   TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
)`

// applied is the recorded state of one component.
type applied struct {
	version, digest, server string
}

// schemaSQL returns the full schema of a component and its digest.
func (c component) schemaSQL() (text, digest string, err error) {
	data, err := fs.ReadFile(schema.Assets(), path.Join(c.dir, "schema.sql"))
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(data)
	return string(data), hex.EncodeToString(sum[:]), nil
}

// createSchema builds both schemas in an empty database.
func createSchema(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, schemaTable); err != nil {
		return err
	}
	for _, c := range components {
		text, _, err := c.schemaSQL()
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s schema: %w", c.name, err)
		}
		if err := recordSchema(ctx, tx, c); err != nil {
			return err
		}
	}
	return nil
}

func recordSchema(ctx context.Context, tx *sql.Tx, c component) error {
	_, digest, err := c.schemaSQL()
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `REPLACE INTO steward_schema (component, version, digest, server) VALUES (?, ?, ?, ?)`,
		c.name, c.version, digest, headers.ServerVersion)
	return err
}

// readSchema returns what is recorded, by component name; empty for a file without tables.
func readSchema(ctx context.Context, db *sql.DB) (map[string]applied, error) {
	var tables, recorded int
	err := db.QueryRowContext(ctx, `SELECT count(*), count(CASE name WHEN 'steward_schema' THEN 1 END)
		FROM sqlite_master WHERE type = 'table'`).Scan(&tables, &recorded)
	if err != nil || tables == 0 {
		return nil, err
	}
	if recorded == 0 {
		return nil, errors.New("it has tables but no recorded schema version, so it was not made by steward; move it away")
	}
	rows, err := db.QueryContext(ctx, `SELECT component, version, digest, server FROM steward_schema`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := make(map[string]applied)
	for rows.Next() {
		var name string
		var a applied
		if err := rows.Scan(&name, &a.version, &a.digest, &a.server); err != nil {
			return nil, err
		}
		out[name] = a
	}
	return out, rows.Err()
}

// step is one change of a schema.
type step func(context.Context, *sql.Tx) error

// migration brings one component to the version of this server; its steps run in order.
type migration struct {
	component component
	from      string
	steps     []step
}

// pendingMigrations compares what is recorded with what this server knows.
func pendingMigrations(recorded map[string]applied) ([]migration, error) {
	var pending []migration
	for _, c := range components {
		have, ok := recorded[c.name]
		if !ok {
			return nil, fmt.Errorf("steward_schema has no row for %s", c.name)
		}
		order, err := c.compare(have)
		switch {
		case err != nil:
			return nil, err
		case order == 0:
			continue
		case order > 0:
			return nil, fmt.Errorf("%w: %s schema %s, written by Temporal server %s; this release has %s of server %s",
				ErrNewerSchema, c.name, have.version, have.server, c.version, headers.ServerVersion)
		}
		m := migration{component: c, from: have.version, steps: []step{rebuildVisibility}}
		if c != visibilitySchema {
			if m.steps, err = versionedSteps(c, have.version); err != nil {
				return nil, err
			}
		}
		pending = append(pending, m)
	}
	return pending, nil
}

// compare orders what is recorded against what this server has: below 0 is older, above newer. The visibility schema
// has no versioned steps and changes without a new version, so there a changed text counts, ordered by server release.
func (c component) compare(have applied) (int, error) {
	order, err := compareVersions(have.version, c.version)
	if err != nil || order != 0 || c != visibilitySchema {
		return order, err
	}
	_, digest, err := c.schemaSQL()
	if err != nil || digest == have.digest {
		return 0, err
	}
	order, err = compareVersions(have.server, headers.ServerVersion)
	if order > 0 {
		return order, err
	}
	return -1, err
}

// versionedSteps returns the steps of c after version from, in order.
func versionedSteps(c component, from string) ([]step, error) {
	versions, err := versionsAfter(c, from)
	if err != nil {
		return nil, err
	}
	steps := make([]step, 0, len(versions))
	for _, version := range versions {
		steps = append(steps, func(ctx context.Context, tx *sql.Tx) error {
			return applyVersion(ctx, tx, path.Join(c.dir, "versioned", "v"+version))
		})
	}
	return steps, nil
}

// versionsAfter lists the versions of c after from, in order. They have to end at the version that c has.
func versionsAfter(c component, from string) ([]string, error) {
	dirs, err := fs.Glob(schema.Assets(), path.Join(c.dir, "versioned", "v*"))
	if err != nil {
		return nil, err
	}
	versions := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		version := strings.TrimPrefix(path.Base(dir), "v")
		order, err := compareVersions(version, from)
		if err != nil {
			return nil, err
		}
		if order > 0 {
			versions = append(versions, version)
		}
	}
	slices.SortFunc(versions, func(a, b string) int {
		order, _ := compareVersions(a, b)
		return order
	})
	if len(versions) == 0 || versions[len(versions)-1] != c.version {
		return nil, fmt.Errorf("%s schema: this release has no steps from %s to %s", c.name, from, c.version)
	}
	return versions, nil
}

// applyVersion runs the files that the manifest of one versioned folder names.
func applyVersion(ctx context.Context, tx *sql.Tx, dir string) error {
	data, err := fs.ReadFile(schema.Assets(), path.Join(dir, "manifest.json"))
	if err != nil {
		return err
	}
	var manifest struct {
		Files []string `json:"SchemaUpdateCqlFiles"`
	}
	if err := json.Unmarshal(data, &manifest); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	for _, name := range manifest.Files {
		file := path.Join(dir, name)
		statements, err := fs.ReadFile(schema.Assets(), file)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(statements)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// compareVersions orders versions of dotted numbers; a suffix after "-" does not count.
func compareVersions(a, b string) (int, error) {
	va, errA := parseVersion(a)
	vb, errB := parseVersion(b)
	return slices.Compare(va, vb), errors.Join(errA, errB)
}

func parseVersion(s string) ([]int, error) {
	numbers, _, _ := strings.Cut(s, "-")
	var version []int
	for part := range strings.SplitSeq(numbers, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("version %q: %w", s, err)
		}
		version = append(version, n)
	}
	return version, nil
}
