// Package reference writes the documentation of an input schema from its Go types: the struct tags that package strict
// enforces, and the doc comments. Tests use it to keep a page of the documentation equal to the types.
package reference

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"strings"
)

// Writer renders a schema as Markdown: one table for each type.
type Writer struct {
	strings.Builder
	// Comments are the doc comments of types and fields (see Comments), Forms the words for the forms in struct tags.
	Comments, Forms map[string]string
}

// Section writes the table of a type, and of every type in it under its own heading.
func (w *Writer) Section(title, path string, t reflect.Type) {
	fmt.Fprintf(w, "\n## %s\n\n%s\n\n| key | type | default | limits | meaning |\n| --- | --- | --- | --- | --- |\n",
		title, w.Comments[t.Name()])
	type nested struct {
		path string
		t    reflect.Type
	}
	var inner []nested
	for f := range t.Fields() {
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
		meaning := strings.ReplaceAll(w.Comments[t.Name()+"."+f.Name], "|", "\\|")
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s |\n", key, typeName(f.Type), quoted(f.Tag.Get("default")), w.limits(f), meaning)
	}
	for _, n := range inner {
		w.Section("`"+n.path+"`", n.path, n.t)
	}
}

func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t.Kind() == reflect.Int64 && t.Name() == "Duration":
		return "duration"
	case t == reflect.TypeFor[json.RawMessage]():
		return "object"
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

func (w *Writer) limits(f reflect.StructField) string {
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
		parts = append(parts, w.Forms[form])
	}
	return strings.Join(parts, ", ")
}

// Comments maps Type and Type.Field of a Go file to their doc comments in one line. Every field needs one.
func Comments(file string) (map[string]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, decl := range parsed.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.TYPE {
			continue
		}
		for _, s := range group.Specs {
			spec := s.(*ast.TypeSpec)
			structure, ok := spec.Type.(*ast.StructType)
			if !ok {
				continue
			}
			found[spec.Name.Name] = oneLine(group.Doc)
			for _, f := range structure.Fields.List {
				if f.Doc == nil {
					return nil, fmt.Errorf("%s.%s has no comment", spec.Name.Name, f.Names[0].Name)
				}
				found[spec.Name.Name+"."+f.Names[0].Name] = oneLine(f.Doc)
			}
		}
	}
	return found, nil
}

func oneLine(doc *ast.CommentGroup) string { return strings.Join(strings.Fields(doc.Text()), " ") }
