package policy_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

var update = flag.Bool("update", false, "write docs/policy.md")

const page = "../../../docs/policy.md"

var rows = func() map[string]policy.EventRow {
	m := map[string]policy.EventRow{}
	for _, r := range policy.Events {
		m[r.Event.Name()] = r
	}
	return m
}()

// tabled checks a decision against the table of events: every decision of every test of this package passes here.
func tabled(t tester, old policy.State, e policy.Event, d policy.Decision) {
	t.Helper()
	if _, any := e.(policy.NotSubmittable); any {
		require.Equal(t, kernel.Reject, d.Verdict)
		return
	}
	row, ok := rows[e.Name()]
	require.True(t, ok, "%s has no row", e.Name())
	if d.Verdict == kernel.Accept && !slices.Contains(row.Legal, old.Status) {
		require.Fail(t, "accepted in a status that its row does not list", "%s in %q", e.Name(), old.Status)
	}
	if d.Code == "" || slices.Contains(policy.AnyEvent, d.Code) || slices.Contains(row.Codes, d.Code) {
		return
	}
	_, settled := e.(policy.ControllerTurnSettled)
	_, observed := e.(policy.EffectObserved)
	require.True(t, (settled || observed) && slices.ContainsFunc(receipt.Codes, func(c receipt.CodeMeaning) bool { return c.Code == d.Code }),
		"%s was answered %s, which its row does not list", e.Name(), d.Code)
}

// sources are the files of the policy.
func sources(t *testing.T) (files []*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			require.NoError(t, err)
			files = append(files, f)
		}
	}
	return files
}

func TestEveryEventHasOneRow(t *testing.T) {
	kinds := map[string]int{}
	for _, r := range policy.Events {
		kinds[strings.TrimPrefix(fmt.Sprintf("%T", r.Event), "policy.")]++
	}
	for _, f := range sources(t) {
		for _, decl := range f.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "Name" && fn.Recv != nil {
				kind := fn.Recv.List[0].Type.(*ast.Ident).Name
				if kind != "NotSubmittable" {
					require.Equal(t, 1, kinds[kind], "rows of %s", kind)
					delete(kinds, kind)
				}
			}
		}
	}
	require.Empty(t, kinds)
}

// The codes in the source are the codes in the table: none is missing, none is left over.
func TestEveryCodeHasItsMeaning(t *testing.T) {
	constants, used := map[string]string{}, map[string]bool{}
	files := sources(t)
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				for i, name := range spec.Names {
					if i < len(spec.Values) {
						if text, ok := literal(spec.Values[i]); ok {
							constants[name.Name] = text
						}
					}
				}
			}
			return true
		})
	}
	for name, text := range constants {
		if strings.HasPrefix(name, "Code") {
			used[text] = true
		}
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 || !answers(call.Fun) {
				return true
			}
			arg := call.Args[0]
			if convert, ok := arg.(*ast.CallExpr); ok {
				arg = convert.Args[0]
			}
			if text, ok := literal(arg); ok {
				used[text] = true
			} else if id, ok := arg.(*ast.Ident); ok && constants[id.Name] != "" {
				used[constants[id.Name]] = true
			}
			return true
		})
	}
	var have, want []string
	for _, c := range policy.Codes {
		have = append(have, c.Code)
		require.NotEmpty(t, c.Meaning)
	}
	for code := range used {
		want = append(want, code)
	}
	slices.Sort(have)
	slices.Sort(want)
	require.Empty(t, cmp.Diff(want, have))
	for _, r := range policy.Events {
		for _, code := range r.Codes {
			require.Contains(t, have, code, r.Event.Name())
		}
	}
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// answers tells whether a call makes an answer whose first argument is its code.
func answers(fun ast.Expr) bool {
	switch f := fun.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"acceptAs", "noOp", "reject"}, f.Name)
	case *ast.SelectorExpr:
		return f.Sel.Name == "refuse"
	}
	return false
}

func TestReferenceOfThePolicy(t *testing.T) {
	text := reference()
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
	}
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(text, string(have)), "docs/policy.md is stale; run go test ./workflows/run/policy -run TestReference -update")
}

func reference() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Events and codes of WorkflowRun\n")
	line("<!-- Written by go test ./workflows/run/policy -run TestReference -update; do not edit. -->\n")
	line("Everything that happens to a run is one of these events, and one policy decides each. An update answers with the decision and a code:\n")
	line("| decision | meaning |\n| --- | --- |")
	for _, v := range policy.Verdicts {
		line("| `%s` | %s |", v.Verdict, v.Meaning)
	}
	line("\n## Events\n")
	line("Any event can also be answered %s. *Submit*: the update `submit` takes it.\n", list(policy.AnyEvent))
	line("| event | producer | legal in | required evidence | what changes | when it comes again | codes |\n| --- | --- | --- | --- | --- | --- | --- |")
	for _, r := range policy.Events {
		producer := r.Producer
		if r.Submittable {
			producer += " (submit)"
		}
		line("| `%s` | %s | %s | %s | %s | %s | %s |", r.Event.Name(), producer, legal(r.Legal), r.Evidence, r.Changes, r.Duplicate, list(r.Codes))
	}
	line("\nAn observation of a turn without a valid receipt is answered with the receipt's code.\n\n## Codes\n\n| code | meaning |\n| --- | --- |")
	for _, c := range policy.Codes {
		line("| `%s` | %s |", c.Code, c.Meaning)
	}
	line("\n## Codes of receipts\n\n| code | meaning | counts as a protocol violation |\n| --- | --- | --- |")
	for _, c := range receipt.Codes {
		line("| `%s` | %s | %s |", c.Code, c.Meaning, map[bool]string{true: "yes", false: "no"}[c.Violation])
	}
	return b.String()
}

func list(codes []string) string {
	codes = slices.Clone(codes)
	slices.Sort(codes)
	codes = slices.Compact(codes)
	if len(codes) == 0 {
		return "–"
	}
	return "`" + strings.Join(codes, "` `") + "`"
}

func legal(statuses []policy.Status) string {
	switch len(statuses) {
	case 0:
		return "–"
	case 7:
		return "every open status"
	case 8:
		return "every open status, and before the admission"
	}
	var names []string
	for _, s := range statuses {
		if s == "" {
			s = "before the admission"
		}
		names = append(names, strings.ReplaceAll("`"+string(s)+"`", "`before the admission`", "before the admission"))
	}
	return strings.Join(names, " ")
}

// What submit takes is what the table says; this is checked against the shell's own list in its package.
func TestSubmittableEvents(t *testing.T) {
	var names []string
	for _, r := range policy.Events {
		if r.Submittable {
			names = append(names, r.Event.Name())
		}
	}
	slices.Sort(names)
	require.Equal(t, []string{
		"authority_recovery_requested", "conversation_rebound", "goal_cancelled", "occurrence_requested", "recovery_requested",
		"semantic_disposition_submitted", "semantic_state_changed", "stop_requested", "user_resume_requested",
	}, names)
}
