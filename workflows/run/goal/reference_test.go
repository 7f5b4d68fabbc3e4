package goal_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"steward/workflows/run/goal"
)

var update = flag.Bool("update", false, "write docs/input.md")

const reference = "../../../docs/input.md"

// TestInputReference keeps the reference of the start input equal to the types. `go generate` rewrites it.
func TestInputReference(t *testing.T) {
	example, err := os.ReadFile("testdata/goal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := writer{comments: comments(t, "goal.go")}
	fmt.Fprintf(&w.out, intro, example)
	w.section("The goal", "", reflect.TypeFor[goal.Goal]())
	if *update {
		if err := os.WriteFile(reference, []byte(w.out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(w.out.String(), string(got)); diff != "" {
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

// writer renders the schema as Markdown.
type writer struct {
	out      strings.Builder
	comments map[string]string
}

func (w *writer) section(title, path string, t reflect.Type) {
	fmt.Fprintf(&w.out, "\n## %s\n\n%s\n\n| key | type | default | limits | meaning |\n| --- | --- | --- | --- | --- |\n",
		title, w.comments[t.Name()])
	type nested struct {
		path string
		t    reflect.Type
	}
	var inner []nested
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		of, suffix := f.Type, ""
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			if of.Kind() == reflect.Slice {
				suffix = "[]"
			}
			of = of.Elem()
		}
		if of.Kind() == reflect.Struct {
			inner = append(inner, nested{strings.TrimPrefix(path+"."+key+suffix, "."), of})
		}
		meaning := strings.ReplaceAll(w.comments[t.Name()+"."+f.Name], "|", "\\|")
		fmt.Fprintf(&w.out, "| `%s` | %s | %s | %s | %s |\n", key, typeName(f.Type), quoted(f.Tag.Get("default")), limits(f), meaning)
	}
	for _, n := range inner {
		w.section("`"+n.path+"`", n.path, n.t)
	}
}

func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t == reflect.TypeFor[goal.Duration]():
		return "duration"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem()) + "s"
	case t.Kind() == reflect.Struct:
		return "object"
	case t.Kind() == reflect.Int:
		return "number"
	}
	return t.Kind().String()
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func limits(f reflect.StructField) string {
	tag := f.Tag
	var parts []string
	text := typeName(f.Type) == "string" || typeName(f.Type) == "list of strings"
	if tag.Get("items") != "" {
		parts = append(parts, "at most "+tag.Get("items")+" entries")
	}
	switch {
	case text && tag.Get("min") != "":
		parts = append(parts, "required", tag.Get("min")+" to "+tag.Get("max")+" characters")
	case tag.Get("oneof") != "":
		parts = append(parts, "of `"+strings.ReplaceAll(tag.Get("oneof"), " ", "`, `")+"`")
	case text:
		parts = append(parts, "up to "+tag.Get("max")+" characters")
	case tag.Get("max") != "":
		parts = append(parts, tag.Get("min")+" to "+tag.Get("max"))
	}
	if tag.Get("lines") == "true" {
		parts = append(parts, "lines")
	}
	if form := tag.Get("form"); form != "" {
		parts = append(parts, formWords[form])
	}
	return strings.Join(parts, ", ")
}

var formWords = map[string]string{
	"name": "`a-z 0-9 . _ -`", "key": "`A-Z a-z 0-9 . _ -`", "scope": "`kind:id`", "host": "host name", "path": "absolute path",
	"variable": "variable names", "sha256": "hex", "regexp": "RE2", "url": "http or https", "page": "https",
}

// comments maps Type and Type.Field to their doc comments in one line.
func comments(t *testing.T, file string) map[string]string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, decl := range parsed.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		spec := group.Specs[0].(*ast.TypeSpec)
		found[spec.Name.Name] = oneLine(group.Doc)
		for _, f := range spec.Type.(*ast.StructType).Fields.List {
			if f.Doc == nil {
				t.Errorf("%s.%s has no comment", spec.Name.Name, f.Names[0].Name)
			}
			found[spec.Name.Name+"."+f.Names[0].Name] = oneLine(f.Doc)
		}
	}
	return found
}

func oneLine(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }
