package goal_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"steward/workflows/machine/strict/reference"
	"steward/workflows/run/goal"
)

var update = flag.Bool("update", false, "write docs/input.md")

const page = "../../../docs/input.md"

// TestInputReference keeps the reference of the start input equal to the types. `go generate` rewrites it.
func TestInputReference(t *testing.T) {
	example, err := os.ReadFile("testdata/goal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	comments, err := reference.Comments("goal.go")
	if err != nil {
		t.Fatal(err)
	}
	w := &reference.Writer{Comments: comments, Forms: formWords}
	fmt.Fprintf(w, intro, example)
	w.Section("The goal", "", reflect.TypeFor[goal.Goal]())
	if *update {
		if err := os.WriteFile(page, []byte(w.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.String(), string(got)); diff != "" {
		t.Errorf("docs/input.md is stale; run go generate ./workflows/run/goal\n%s", diff)
	}
}

const intro = `# The start input

<!-- Generated from workflows/run/goal by go generate; do not edit. -->

A run is started with one goal: JSON for ` + "`temporal workflow start`" + `, YAML or JSON for ` + "`steward run start -f`" + `.
Durations are Go duration strings like ` + "`90s`" + ` or ` + "`1h30m`" + `. Keys are case-sensitive. Unknown and
duplicate keys are errors. Text may not hold control characters; line feeds and tabs are allowed where the table says *lines*. YAML
anchors, aliases and tags are refused. The whole input may have up to 128 KiB.

Everything is checked at the start, and all problems are reported at once in one failure, ` + "`start_refused`" + `.

` + "```yaml\n%s```\n"

var formWords = map[string]string{
	"name": "`a-z 0-9 . _ -`", "key": "`A-Z a-z 0-9 . _ -`", "scope": "`kind:id`", "host": "host name", "path": "absolute path",
	"variable": "variable names", "sha256": "hex", "regexp": "RE2", "url": "http or https", "page": "https",
}
