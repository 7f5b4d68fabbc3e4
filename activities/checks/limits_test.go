package checks_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"steward/activities"
	"steward/activities/checks"
	"steward/workflows/run/goal"
)

func TestRefused_names_everything_outside_of_the_limits(t *testing.T) {
	p := newPlace(t, func(l *checks.Limits) {
		l.AnyCommand, l.Commands, l.Env = false, []string{"go", "/usr/bin/env"}, []string{"GOFLAGS"}
		l.HTTPHosts = []string{"ok.example", "port.example:8080"}
	})
	tool := p.write(t, "env", "")
	if err := os.Symlink("/etc", p.path("etc")); err != nil {
		t.Fatal(err)
	}
	names := 0
	in := func(argv, dir, more string) string {
		names++
		return `{"name":"c` + strings.Repeat("c", names) + `","command":{"argv":[` + argv + `],"dir":"` + dir + `"` + more + `}}`
	}
	g := goal.Goal{
		Completion: goal.Completion{Checks: parse(t,
			in(`"go","test"`, p.dir, `,"env":["GOFLAGS","HOME"]`),
			in(`"env"`, p.dir, ``),
			in(`"/usr/bin/env"`, p.path("gone/below"), ``),
			in(`"sh"`, p.dir, `,"env":["SECRET"]`),
			in(`"./env"`, p.dir, ``),
			in(`"`+tool+`"`, p.path("etc"), ``),
			`{"name":"f1","file":{"path":"/etc/passwd","fresh_for":"/"}}`,
			`{"name":"f2","file":{"path":"`+p.path("..")+`"}}`,
			`{"name":"f3","file":{"path":"`+p.path("etc/passwd")+`"}}`,
			`{"name":"h1","http":{"url":"http://[::1]:80/"}}`,
			`{"name":"h2","http":{"url":"https://ok.example:1/x"}}`,
			`{"name":"h3","http":{"url":"https://port.example:8080/x"}}`,
			`{"name":"h4","http":{"url":"https://port.example/x"}}`,
			`{"name":"h5","http":{"url":"http://169.254.169.254/latest"}}`,
		)},
		Progress: []goal.Probe{
			{Git: &goal.GitProbe{Dir: "/"}}, {File: &goal.FileProbe{Path: p.path("x")}}, {File: &goal.FileProbe{Path: "/x"}}, {Check: "f1"},
		},
	}
	outside := func(path, real string) string {
		if real != "" {
			path += " (really " + real + ")"
		}
		return path + " lies outside checks.roots of this worker (" + p.dir + "); use a path inside or have it added there"
	}
	const (
		program = " is not in checks.commands of this worker; use another program or have it added there"
		host    = "the host is neither loopback nor in checks.hosts of this worker; use another or have it added there"
	)
	var got []string
	for _, problem := range p.Refused(g) {
		got = append(got, problem.String())
	}
	if diff := cmp.Diff([]string{
		"completion.checks[3].command.argv: sh" + program,
		"completion.checks[3].command.env[0]: SECRET is not in checks.env of this worker; leave it out or have it added there",
		"completion.checks[4].command.argv: ./env" + program,
		"completion.checks[5].command.dir: " + outside(p.path("etc"), "/etc"),
		"completion.checks[5].command.argv: " + tool + program,
		"completion.checks[6].file.path: " + outside("/etc/passwd", ""),
		"completion.checks[6].file.fresh_for: " + outside("/", ""),
		"completion.checks[7].file.path: " + outside(filepath.Dir(p.dir), ""),
		"completion.checks[8].file.path: " + outside(p.path("etc/passwd"), "/etc/passwd"),
		"completion.checks[12].http.url: " + host,
		"completion.checks[13].http.url: " + host,
		"progress[0].git.dir: " + outside("/", ""),
		"progress[2].file.path: " + outside("/x", ""),
	}, got); diff != "" {
		t.Error(diff)
	}
	result, err := p.Baseline(context.Background(), activities.BaselineInput{Goal: g})
	if err != nil || len(result.Problems) != len(got) || result.Totals != nil {
		t.Errorf("baseline: %+v, %v", result, err)
	}
}

func TestRun_starts_nothing_when_one_check_is_refused(t *testing.T) {
	p := newPlace(t)
	found := p.run(t, activities.CheckInput{},
		`{"name":"a",`+p.command(t, "", "touch", "ran")+`}`, `{"name":"b","file":{"path":"/etc/passwd"}}`)
	wantOutcome(t, found[0], unclear, "not_started", "another check was refused")
	wantOutcome(t, found[1], unclear, "refused_by_worker", "/etc/passwd lies outside")
	if _, err := os.Stat(p.path("ran")); err == nil {
		t.Error("a check ran")
	}
}

func TestLimits_of_the_zero_value_refuse_all_but_loopback(t *testing.T) {
	p := newPlace(t, func(l *checks.Limits) { *l = checks.Limits{} })
	g := goal.Goal{Completion: goal.Completion{Checks: parse(t,
		`{"name":"a",`+p.command(t, "", "true")+`}`, `{"name":"b",`+p.file(t, "x", "")+`}`, `{"name":"c","http":{"url":"http://127.0.0.1"}}`)}}
	var paths []string
	for _, problem := range p.Refused(g) {
		paths = append(paths, problem.Path)
	}
	want := []string{"completion.checks[0].command.dir", "completion.checks[0].command.argv", "completion.checks[1].file.path"}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Error(diff)
	}
}

func TestEmbedded_allows_any_command_below_home_but_no_variable_of_steward(t *testing.T) {
	p := newPlace(t)
	g := goal.Goal{Completion: goal.Completion{Checks: parse(t,
		`{"name":"a",`+p.command(t, `,"env":["ANY","TEMPORAL_API_KEY","STEWARD_HOME"]`, "anything")+`}`)}}
	const env = "completion.checks[0].command.env"
	if problems := p.Refused(g); len(problems) != 2 || problems[0].Path != env+"[1]" || problems[1].Path != env+"[2]" {
		t.Errorf("problems: %v", problems)
	}
}

func TestNew_refuses_limits_that_cannot_hold(t *testing.T) {
	for name, limits := range map[string]checks.Limits{
		"relative root":    {Roots: []string{"home"}},
		"missing root":     {Roots: []string{"/no/such/folder"}},
		"relative program": {Commands: []string{"bin/go"}},
		"missing program":  {Commands: []string{"/no/such/program"}},
	} {
		if _, err := checks.New(checks.Options{Limits: limits, Folder: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "checks.") {
			t.Errorf("%s: %v", name, err)
		}
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := checks.New(checks.Options{Folder: file}); err == nil || !strings.Contains(err.Error(), "outputs") {
		t.Errorf("no folder: %v", err)
	}
}
