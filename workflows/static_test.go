package workflows_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine/kernel"
	releasepolicy "steward/workflows/release/policy"
	"steward/workflows/run/policy"
)

// The rules of this file keep decisions in one place: a policy package is pure, and nothing else decides.

// workflowcheck starts at functions with a workflow.Context and does not see a policy behind the driver's interface. These
// show it the way; they are never called.
func policiesOf(_ workflow.Context, s policy.State, e policy.Event, m kernel.Meta) {
	p := policy.Policy{}
	d := p.Decide(s, e, m)
	_, _ = p.Obligation(d.Next), p.Ending(d.Next)
	_, _, _ = s.Explain(), s.Proof(), s.Attribute()
}

func releasePolicyOf(_ workflow.Context, s releasepolicy.State, e releasepolicy.Event, m kernel.Meta) {
	p := releasepolicy.Policy{}
	d := p.Decide(s, e, m)
	_, _ = p.Obligation(d.Next), p.Ending(d.Next)
	_, _, _ = s.Explain(), s.Record(), s.Shown()
}

var _, _ = policiesOf, releasePolicyOf

const module = "steward"

// pure tells the packages that must be functions of their arguments.
func pure(importPath string) bool {
	return path.Base(importPath) == "policy" || slices.Contains([]string{
		module + "/workflows/machine/kernel", module + "/workflows/machine/strict",
		module + "/workflows/run/goal", module + "/workflows/run/receipt", module + "/workflows/run/prompt",
		module + "/workflows/release/plan", module + "/workflows/release/evidence",
	}, importPath)
}

// impure tells the imports that bring a clock, randomness, I/O or the SDK.
func impure(importPath string) bool {
	banned := []string{"os", "io/fs", "io/ioutil", "net", "syscall", "log", "embed", "plugin", "unsafe", "runtime", "math/rand", "crypto/rand", "testing"}
	allowed := []string{"net/netip", "net/url"} // parse only
	for _, b := range banned {
		if (importPath == b || strings.HasPrefix(importPath, b+"/")) && !slices.Contains(allowed, importPath) {
			return true
		}
	}
	return strings.HasPrefix(importPath, "go.temporal.io/") || strings.Contains(importPath, "playwright")
}

// clock are the functions of package time that read the clock or wait.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

func TestStaticPolicyIsPure(t *testing.T) {
	checked := 0
	for _, p := range modulePackages(t) {
		if !pure(p.ImportPath) {
			continue
		}
		checked++
		for _, imported := range p.Imports {
			if impure(imported) {
				t.Errorf("%s imports %s: a policy package, and what it is made of, has no clock, no randomness, no I/O and no SDK", p.ImportPath, imported)
			}
			if own(imported) && !pure(imported) {
				t.Errorf("%s imports %s, which need not be pure: import only packages that this test checks", p.ImportPath, imported)
			}
		}
		fset, files := p.parse(t)
		for _, file := range files {
			for _, wrong := range clockUses(file) {
				t.Errorf("%s: time.%s in a policy package: time arrives inside events", fset.Position(wrong.Pos()), wrong.Sel.Name)
			}
		}
	}
	require.GreaterOrEqual(t, checked, 9, "the rule found hardly any package to check; did they move?")
}

func clockUses(file *ast.File) []*ast.SelectorExpr {
	var found []*ast.SelectorExpr
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, sel.Sel.Name) {
				found = append(found, sel)
			}
		}
		return true
	})
	return found
}

func TestStaticOnlyPolicyDecides(t *testing.T) {
	var users []listed
	for _, p := range modulePackages(t) {
		usesPolicy := slices.ContainsFunc(p.Imports, func(i string) bool { return own(i) && path.Base(i) == "policy" })
		if usesPolicy && path.Base(p.ImportPath) != "policy" {
			users = append(users, p)
		}
	}
	require.NotEmpty(t, users, "the rule found no package that uses a policy; did they move?")
	imported := exportImporter(t, users)
	for _, p := range users {
		fset, files := p.parse(t)
		for _, wrong := range outsideDecisions(t, fset, files, p.ImportPath, imported) {
			t.Error(wrong)
		}
	}
}

// statuses are the types of a policy that say how far a state has come.
var statuses = []string{"Status", "Stage", "Phase", "OperationState"}

// outsideDecisions finds where a package writes into a state of a policy, makes one, or branches on a status.
func outsideDecisions(t *testing.T, fset *token.FileSet, files []*ast.File, importPath string, imports types.Importer) []string {
	t.Helper()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	_, err := (&types.Config{Importer: imports}).Check(importPath, fset, files, info)
	require.NoError(t, err)
	var found []string
	report := func(n ast.Node, format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: %s", fset.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	write := func(target ast.Expr) {
		if sel := stateField(info, target); sel != nil {
			report(target, "writes the state field %s of a policy: submit an event instead", types.ExprString(sel))
		}
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, target := range n.Lhs {
						write(target)
					}
				}
			case *ast.IncDecStmt:
				write(n.X)
			case *ast.UnaryExpr:
				if n.Op == token.AND {
					write(n.X)
				}
			case *ast.CompositeLit:
				if len(n.Elts) > 0 && isPolicyType(info.TypeOf(n), "State") {
					report(n, "makes a state of a policy: only the policy does")
				}
			case *ast.SwitchStmt:
				if n.Tag != nil && isPolicyType(info.TypeOf(n.Tag), statuses...) {
					report(n, "switches on a status: what follows from a status is for the policy to say")
				}
			case *ast.BinaryExpr:
				status := isPolicyType(info.TypeOf(n.X), statuses...) || isPolicyType(info.TypeOf(n.Y), statuses...)
				if status && (n.Op == token.EQL || n.Op == token.NEQ) {
					report(n, "compares a status: what follows from a status is for the policy to say")
				}
			}
			return true
		})
	}
	return found
}

// stateField is the selector in a write target that goes through a policy's State, like s.Budgets.Rounds or s.Journal[0].
func stateField(info *types.Info, target ast.Expr) *ast.SelectorExpr {
	for {
		switch x := target.(type) {
		case *ast.SelectorExpr:
			if isPolicyType(info.TypeOf(x.X), "State") {
				return x
			}
			target = x.X
		case *ast.IndexExpr:
			target = x.X
		case *ast.StarExpr:
			target = x.X
		case *ast.ParenExpr:
			target = x.X
		default:
			return nil
		}
	}
}

func isPolicyType(t types.Type, names ...string) bool {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return false
	}
	return path.Base(named.Obj().Pkg().Path()) == "policy" && slices.Contains(names, named.Obj().Name())
}

// The rules themselves are tested: a rule that finds nothing would pass for ever.
func TestStaticRulesFindWhatTheyForbid(t *testing.T) {
	policySource := `package policy
type Status string
type Phase string
type State struct { Status Status; Phase Phase; Budgets struct{ Rounds int }; Log []int }`
	fset := token.NewFileSet()
	policyFile, err := parser.ParseFile(fset, "policy.go", policySource, 0)
	require.NoError(t, err)
	made, err := (&types.Config{}).Check(module+"/x/policy", fset, []*ast.File{policyFile}, nil)
	require.NoError(t, err)

	for name, c := range map[string]struct {
		code string
		want string
	}{
		"a field":            {`s.Status = "done"`, "writes the state field s.Status"},
		"a field below":      {`s.Budgets.Rounds++`, "writes the state field s.Budgets"},
		"an element":         {`s.Log[0] = 1`, "writes the state field s.Log"},
		"an address":         {`_ = &s.Budgets`, "writes the state field s.Budgets"},
		"a made state":       {`_ = policy.State{Status: "done"}`, "makes a state"},
		"a switch":           {`switch s.Status { case "done": }`, "switches on a status"},
		"a comparison":       {`_ = s.Status == "done"`, "compares a status"},
		"a phase":            {`_ = s.Phase != "soaking"`, "compares a status"},
		"reading is allowed": {`println(string(s.Status), s.Budgets.Rounds)`, ""},
		"the zero state is":  {`_ = policy.State{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			source := "package shell\nimport \"" + module + "/x/policy\"\nfunc f(s *policy.State) { " + c.code + " }\nvar _ policy.State"
			file, err := parser.ParseFile(fset, "shell.go", source, 0)
			require.NoError(t, err)
			found := outsideDecisions(t, fset, []*ast.File{file}, module+"/x/shell", oneImport{made})
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0], c.want)
		})
	}

	file, err := parser.ParseFile(fset, "clock.go", "package policy\nimport \"time\"\nvar a, b = time.Now(), time.Second", 0)
	require.NoError(t, err)
	require.Len(t, clockUses(file), 1)
	require.True(t, impure("math/rand/v2") && impure("os/exec") && impure("go.temporal.io/sdk/workflow") && impure("net/http"))
	require.False(t, impure("net/url") || impure("encoding/json") || impure("time") || impure("crypto/sha256"))
}

type oneImport struct{ p *types.Package }

func (o oneImport) Import(string) (*types.Package, error) { return o.p, nil }

// listed is what `go list -json` tells of a package.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	Imports    []string
}

func own(importPath string) bool { return strings.HasPrefix(importPath, module+"/") }

func modulePackages(t *testing.T) []listed { return goList(t, module+"/...") }

func goList(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,Imports"}, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else {
			require.NoError(t, err)
		}
		packages = append(packages, p)
	}
}

func (p listed) parse(t *testing.T) (*token.FileSet, []*ast.File) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	return fset, files
}

// exportImporter reads types from the compiler's export data, which is in the build cache anyway.
func exportImporter(t *testing.T, users []listed) types.Importer {
	t.Helper()
	args := []string{"-export", "-deps"}
	for _, p := range users {
		args = append(args, p.ImportPath)
	}
	exports := map[string]string{}
	for _, p := range goList(t, args...) {
		exports[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(importPath string) (io.ReadCloser, error) {
		return os.Open(exports[importPath])
	})
}
