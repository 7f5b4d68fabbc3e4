package goal_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"steward/workflows/run/goal"
)

func TestFromYAML_keeps_order_and_types(t *testing.T) {
	tests := map[string]struct{ yaml, want string }{
		"scalars": {
			"b: 1\na: \"1\"\nc: true\nd: 1.5\ne: ~\nf: 2024-01-02\ng: 0x10\nh: yes\ni:\n",
			`{"b":1,"a":"1","c":true,"d":1.5,"e":null,"f":"2024-01-02","g":16,"h":"yes","i":null}`,
		},
		"nesting":      {"a:\n  - {x: [1, two]}\n  -\n    - |\n      l1\n      l2\n", `{"a":[{"x":[1,"two"]},["l1\nl2\n"]]}`},
		"json":         {"{\n\t\"a\": 1,\n\t\"a\": 2\n}", "{\n\t\"a\": 1,\n\t\"a\": 2\n}"},
		"document end": {"---\na: b\n...\n", `{"a":"b"}`},
		"a list":       {"- 1\n", `[1]`},
		"big number":   {"a: 18446744073709551615\n", `{"a":18446744073709551615}`},
		"html":         {"a: <b>&\n", `{"a":"\u003cb\u003e\u0026"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := goal.FromYAML([]byte(tt.yaml))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFromYAML_names_the_line_of_every_problem(t *testing.T) {
	tests := map[string]struct{ yaml, want string }{
		"duplicates": {
			"scope: a\ntarget:\n  site: a\n  site: b\nscope: c\n",
			"target.site: line 4: the key appears twice, first on line 3; keep one\nscope: line 5: the key appears twice, first on line 1; keep one",
		},
		"in a list":     {"a:\n  - x: 1\n    x: 2\n", "a[0].x: line 3: the key appears twice, first on line 2; keep one"},
		"number as key": {"1: a\n", "line 1: a key must be a plain string"},
		"list as key":   {"? [a]\n: b\n", "line 1: a key must be a plain string"},
		"anchor": {
			"a: &x b\nc: *x\n",
			"a: line 1: anchors are not supported; write the value out\nc: line 2: aliases are not supported; write the value out",
		},
		"merge key":       {"a:\n  <<: {b: c}\n", "a: line 2: a key must be a plain string"},
		"tag":             {"a: !!binary aGk=\n", "a: line 1: the tag !!binary is not supported"},
		"own tag":         {"a: !thing b\n", "a: line 1: the tag !thing is not supported"},
		"infinity":        {"a: .inf\n", "a: line 1: .inf cannot be expressed in JSON"},
		"two documents":   {"a: b\n---\nc: d\n", "line 2: the file holds a second document; give one goal per file"},
		"empty":           {"# nothing\n", "the file is empty; give a goal"},
		"syntax":          {"a: b: c\n", "the file is not valid YAML: mapping values are not allowed in this context"},
		"syntax, later":   {"a: b\n---\n[\n", "the file is not valid YAML: line 3: did not find expected node content"},
		"tab indentation": {"a:\n\tb: c\n", "the file is not valid YAML: line 2: found character that cannot start any token"},
		"wrong tag":       {"a: !!int b\n", "a: line 1: cannot decode !!str `b` as a !!int"},
		"too large":       {strings.Repeat("#", goal.MaxBytes+1), "the file has 131073 bytes; at most 131072 are allowed"},
		"too deep": {
			strings.Repeat("[", 65) + strings.Repeat("]", 65) + " #",
			strings.Repeat("[0]", 64) + ": line 1: nests deeper than 64 levels",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := goal.FromYAML([]byte(tt.yaml))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzFromYAML(f *testing.F) {
	for _, seed := range []string{minimal, "a: &x [*x]\n", "? a\n", "a: !!float 1e400\n", "- - - 1\n", "a: 'x'\n<<: {}\n", "---\n---\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		converted, err := goal.FromYAML(data)
		if err != nil {
			return
		}
		if _, problems := goal.Decode(converted); len(problems) == 1 && strings.Contains(problems[0].Message, "not valid JSON") {
			t.Fatalf("%q became %q: %v", data, converted, problems)
		}
	})
}
