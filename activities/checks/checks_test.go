package checks_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"steward/activities"
	"steward/activities/checks"
	"steward/workflows/run/goal"
)

var self = activities.Worker{Release: "r1", Host: "here"}

// place is a checks worker that may do anything below one fresh folder.
type place struct {
	*checks.Checks
	dir     string // the root, with its links followed
	outputs string
}

func newPlace(t *testing.T, change ...func(*checks.Limits)) place {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	limits := checks.Embedded(dir)
	for _, f := range change {
		f(&limits)
	}
	outputs := filepath.Join(t.TempDir(), "outputs")
	c, err := checks.New(checks.Options{Limits: limits, Folder: outputs, Worker: self})
	if err != nil {
		t.Fatal(err)
	}
	return place{Checks: c, dir: dir, outputs: outputs}
}

func (p place) path(name string) string { return filepath.Join(p.dir, name) }

func (p place) write(t *testing.T, name, text string) string {
	t.Helper()
	path := p.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// git runs git in a folder of the place, with a fixed identity.
func (p place) git(t *testing.T, name string, args ...string) string {
	t.Helper()
	if err := os.MkdirAll(p.path(name), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
	cmd.Dir = p.path(name)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// repo is a git work tree with one commit of main.go.
func (p place) repo(t *testing.T, name string) string {
	t.Helper()
	p.git(t, name, "init", "-q")
	p.write(t, name+"/main.go", "package main\n")
	p.git(t, name, "add", ".")
	p.git(t, name, "commit", "-qm", "one")
	return p.path(name)
}

// run carries out checks that are written as in a start input.
func (p place) run(t *testing.T, in activities.CheckInput, checks ...string) []activities.CheckEvidence {
	t.Helper()
	in.Checks = parse(t, checks...)
	result, err := p.Run(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if result.Worker != self || len(result.Evidence) != len(checks) {
		t.Fatalf("result: %+v", result)
	}
	for i, e := range result.Evidence {
		switch {
		case e.Name != in.Checks[i].Name || e.At.IsZero() || e.Subject == "":
			t.Errorf("incomplete evidence: %+v", e)
		case (e.Outcome == activities.CheckPass) != (e.Code == ""):
			t.Errorf("outcome %q with code %q", e.Outcome, e.Code)
		case len([]rune(e.Line)) > 200 || strings.ContainsAny(e.Line, "\n\x1b"):
			t.Errorf("line %q", e.Line)
		}
	}
	return result.Evidence
}

// one is run for a single check, whose name it gives.
func (p place) one(t *testing.T, in activities.CheckInput, check string) activities.CheckEvidence {
	t.Helper()
	return p.run(t, in, `{"name":"it",`+check+`}`)[0]
}

func parse(t *testing.T, checks ...string) []goal.Check {
	t.Helper()
	g, problems := goal.Decode([]byte(`{"objective":"x","target":{"site":"s","new":{"key":"k"}},"completion":{"checks":[` +
		strings.Join(checks, ",") + `]}}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return g.Normalize(goal.SiteFacts{}).Completion.Checks
}

func quote(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// command is a check's command in the place's folder; more are further keys.
func (p place) command(t *testing.T, more string, argv ...string) string {
	t.Helper()
	return `"command":{"argv":` + quote(t, argv) + `,"dir":` + quote(t, p.dir) + more + `}`
}

func (p place) file(t *testing.T, name, more string) string {
	t.Helper()
	return `"file":{"path":` + quote(t, p.path(name)) + more + `}`
}

// eventually waits for a condition that another process brings about.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
	}
}

func wantOutcome(t *testing.T, e activities.CheckEvidence, outcome activities.CheckOutcome, code, line string) {
	t.Helper()
	if e.Outcome != outcome || e.Code != code || !strings.Contains(e.Line, line) {
		t.Errorf("got %s %q %q, want %s %q with %q", e.Outcome, e.Code, e.Line, outcome, code, line)
	}
}
