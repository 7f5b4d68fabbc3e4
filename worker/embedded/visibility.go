package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
)

const visibilityTable = "executions_visibility"

// rebuildVisibility replaces the visibility tables by the ones this server knows and keeps their rows. Everything that
// is generated (typed columns, indexes, full-text tables) follows from the columns that are copied.
func rebuildVisibility(ctx context.Context, tx *sql.Tx) error {
	before, err := storedColumns(ctx, tx)
	if err != nil {
		return err
	}
	text, _, err := visibilitySchema.schemaSQL()
	if err != nil {
		return err
	}
	drop, err := dropVisibility(ctx, tx)
	if err != nil {
		return err
	}
	replace := slices.Concat([]string{"CREATE TEMP TABLE kept AS SELECT * FROM " + visibilityTable}, drop, []string{text})
	if err := execAll(ctx, tx, replace); err != nil {
		return err
	}
	after, err := storedColumns(ctx, tx)
	if err != nil {
		return err
	}
	common := slices.DeleteFunc(before, func(column string) bool { return !slices.Contains(after, column) })
	list := strings.Join(common, ", ")
	return execAll(ctx, tx, []string{
		fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM kept", visibilityTable, list, list),
		"DROP TABLE kept",
	})
}

// storedColumns are the quoted names of the columns of the visibility table that are not generated from others.
func storedColumns(ctx context.Context, tx *sql.Tx) ([]string, error) {
	return queryStrings(ctx, tx, `SELECT '"' || name || '"' FROM pragma_table_xinfo('`+visibilityTable+`') WHERE hidden = 0`)
}

// dropVisibility returns the statements that remove the visibility table and the virtual tables over it; indexes,
// triggers and shadow tables go with them.
func dropVisibility(ctx context.Context, tx *sql.Tx) ([]string, error) {
	return queryStrings(ctx, tx, `SELECT 'DROP TABLE "' || name || '"' FROM sqlite_master
		WHERE type = 'table' AND (name = '`+visibilityTable+`' OR sql LIKE 'CREATE VIRTUAL TABLE `+visibilityTable+`%')
		ORDER BY name DESC`)
}

func queryStrings(ctx context.Context, tx *sql.Tx, query string) ([]string, error) {
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, rows.Err()
}

func execAll(ctx context.Context, tx *sql.Tx, statements []string) error {
	for _, s := range statements {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("%.80s: %w", s, err)
		}
	}
	return nil
}
