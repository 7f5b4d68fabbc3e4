package plan_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"steward/workflows/machine/strict/reference"
	"steward/workflows/release/plan"
)

var update = flag.Bool("update", false, "write docs/release-input.md")

const page = "../../../docs/release-input.md"

// TestReleaseInputReference keeps the reference of the plan equal to the types. `go generate` rewrites it.
func TestReleaseInputReference(t *testing.T) {
	comments, err := reference.Comments("plan.go")
	require.NoError(t, err)
	w := &reference.Writer{Comments: comments, Forms: formWords}
	fmt.Fprintf(w, intro, text(t))
	w.Section("The plan", "", reflect.TypeFor[plan.Plan]())
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(w.String()), 0o644))
	}
	got, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(w.String(), string(got)), "docs/release-input.md is stale; run go generate ./workflows/release/plan")
}

const intro = `# The release plan

<!-- Generated from workflows/release/plan by go generate; do not edit. -->

A release is started with one plan: JSON for ` + "`temporal workflow start`" + `, YAML or JSON for ` + "`steward release start --plan`" + `.
Durations are Go duration strings like ` + "`90s`" + ` or ` + "`1h30m`" + `. Keys are case-sensitive. Unknown and
duplicate keys are errors. YAML anchors, aliases and tags are refused. The whole plan may have up to 64 KiB. Everything is checked
at the start, and all problems are reported at once in one failure, ` + "`start_refused`" + `. [Releasing](releasing.md) tells what happens
with it.

` + "```yaml\n%s```\n"

var formWords = map[string]string{
	"name": "`a-z 0-9 . _ -`", "revision": "hex", "name_of_variable": "variable name", "variable": "variable names, not STEWARD_… or TEMPORAL_…",
	"path": "absolute path", "inside": "relative path inside", "loopback": "http on this host", "page": "https", "regexp": "RE2",
}
