package checks_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"steward/activities"
	"steward/workflows/run/goal"
)

func (p place) progress(t *testing.T, in activities.ProgressInput) activities.ProgressResult {
	t.Helper()
	result, err := p.ReadProgress(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := p.ReadProgress(context.Background(), in); err != nil || !cmp.Equal(result, again) {
		t.Errorf("two looks differ (%v):\n%s", err, cmp.Diff(result, again))
	}
	return result
}

func (p place) gitDigest(t *testing.T, name string) string {
	t.Helper()
	result := p.progress(t, activities.ProgressInput{Probes: []goal.Probe{{Git: &goal.GitProbe{Dir: p.path(name)}}}})
	return result.Probes[0].Digest
}

func TestReadProgress_git_tells_every_change_of_a_work_tree(t *testing.T) {
	p := newPlace(t)
	p.repo(t, "src")
	p.write(t, "src/.git/info/exclude", "*.log\n")
	clean := p.gitDigest(t, "src")
	if !regexp.MustCompile(`^git:[0-9a-f]{40}\+clean$`).MatchString(clean) {
		t.Errorf("clean: %s", clean)
	}
	seen := map[string]string{clean: "clean"}
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"edit", func() { p.write(t, "src/main.go", "package edited\n") }},
		{"another edit of the same size", func() { p.write(t, "src/main.go", "package edIted\n") }},
		{"new file", func() { p.write(t, "src/new.go", "package a\n") }},
		{"new content of a new file", func() { p.write(t, "src/new.go", "package b\n") }},
		{"mode", func() { _ = os.Chmod(p.path("src/new.go"), 0o755) }},
		{"new name", func() { _ = os.Rename(p.path("src/new.go"), p.path("src/newer.go")) }},
		{"link", func() { _ = os.Symlink("main.go", p.path("src/link")) }},
		{"link target", func() { _ = os.Remove(p.path("src/link")); _ = os.Symlink("newer.go", p.path("src/link")) }},
		{"binary", func() { p.write(t, "src/blob", "a\x00b") }},
		{"commit", func() { p.git(t, "src", "add", "."); p.git(t, "src", "commit", "-qm", "two") }},
		{"empty commit", func() { p.git(t, "src", "commit", "-qm", "three", "--allow-empty") }},
		{"binary edit", func() { p.write(t, "src/blob", "a\x00c") }},
		{"removal", func() { _ = os.Remove(p.path("src/main.go")) }},
	} {
		step.change()
		digest := p.gitDigest(t, "src")
		if before, again := seen[digest]; again {
			t.Errorf("%s is not told from %s: %s", step.name, before, digest)
		}
		seen[digest] = step.name
	}
	last := p.gitDigest(t, "src")
	p.write(t, "src/ignored.log", "x")
	p.write(t, "beside", "x")
	p.git(t, "src", "status") // refreshes the index
	if got := p.gitDigest(t, "src"); got != last {
		t.Errorf("changed by nothing: %s, then %s", last, got)
	}
}

func TestReadProgress_git_before_the_first_commit_and_below_a_work_tree(t *testing.T) {
	p := newPlace(t)
	p.git(t, "src", "init", "-q")
	none := p.gitDigest(t, "src")
	p.write(t, "src/a/b", "x")
	p.write(t, "src/c/d", "x")
	one := p.gitDigest(t, "src")
	p.git(t, "src", "add", ".")
	p.write(t, "src/a/b", "y")
	two := p.gitDigest(t, "src")
	if none != "git:none+clean" || one == none || two == one {
		t.Errorf("%s, %s, %s", none, one, two)
	}
	below := p.gitDigest(t, "src/a")
	p.write(t, "src/c/d", "elsewhere")
	if got := p.gitDigest(t, "src/a"); got != below {
		t.Errorf("a change beside the folder shows: %s, then %s", below, got)
	}
	p.write(t, "src/a/b", "here")
	if got := p.gitDigest(t, "src/a"); got == below {
		t.Error("a change in the folder does not show")
	}
}

func TestReadProgress_git_takes_large_new_files_by_size_and_time(t *testing.T) {
	p := newPlace(t)
	p.repo(t, "src")
	path := p.write(t, "src/large", "")
	if err := os.Truncate(path, 65<<20); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-time.Hour)
	p.touch(t, "src/large", at)
	before := p.gitDigest(t, "src")
	p.touch(t, "src/large", at.Add(time.Second))
	if after := p.gitDigest(t, "src"); after == before {
		t.Error("a later time does not show")
	}
}

// TestReadProgress_runs_nothing_of_the_repository: a work tree cannot make a look at it run a program.
func TestReadProgress_runs_nothing_of_the_repository(t *testing.T) {
	p := newPlace(t)
	p.repo(t, "src")
	script := p.write(t, "evil.sh", "#!/bin/sh\ntouch \""+p.path("ran")+"\"\ncat\n")
	_ = os.Chmod(script, 0o755)
	for _, key := range []string{"core.fsmonitor", "diff.external", "diff.x.textconv", "diff.x.command", "core.pager", "pager.diff"} {
		p.git(t, "src", "config", key, script)
	}
	p.git(t, "src", "config", "core.hooksPath", p.dir)
	p.write(t, "src/.git/info/attributes", "* diff=x\n")
	p.write(t, "post-index-change", "#!/bin/sh\ntouch \""+p.path("ran")+"\"\n")
	_ = os.Chmod(p.path("post-index-change"), 0o755)
	p.write(t, "src/main.go", "package edited\n")
	p.gitDigest(t, "src")
	if _, err := os.Stat(p.path("ran")); err == nil {
		t.Error("a program of the repository ran")
	}
}

func TestReadProgress_files_and_checks(t *testing.T) {
	p := newPlace(t)
	p.write(t, "folder/x", "")
	p.write(t, "count", "3 tests\n")
	all := parse(t,
		`{"name":"count",`+p.file(t, "count", `,"total":"([0-9]+) tests"`)+`}`,
		`{"name":"build",`+p.command(t, "", "sh", "-c", "date +%N; test -e built")+`}`,
		`{"name":"tool",`+p.command(t, "", "no-such-program-here")+`}`)
	probes := []goal.Probe{
		{File: &goal.FileProbe{Path: p.path("status")}},
		{File: &goal.FileProbe{Path: p.path("folder")}},
		{File: &goal.FileProbe{Path: "/etc/passwd"}},
		{Git: &goal.GitProbe{Dir: p.path("folder")}},
		{Git: &goal.GitProbe{Dir: "/"}},
		{Check: "count"},
		{Check: "build"},
		{Check: "tool"},
		{Check: "unknown"},
	}
	in := activities.ProgressInput{Probes: probes, Checks: all}
	first := p.progress(t, in)
	want := []activities.ProbeDigest{
		{Probe: "file:" + p.path("status"), Digest: "absent"},
		{Probe: "file:" + p.path("folder"), Digest: "directory"},
		{Probe: "file:/etc/passwd", Digest: "cannot_tell", Code: "refused_by_worker"},
		{Probe: "git:" + p.path("folder"), Digest: "cannot_tell", Code: "no_revision"},
		{Probe: "git:/", Digest: "cannot_tell", Code: "refused_by_worker"},
		{Probe: "check:count", Digest: "check:pass total=3"},
		{Probe: "check:build", Digest: "check:fail exit_mismatch exit=1"},
		{Probe: "check:tool", Digest: "cannot_tell", Code: "cannot_run"},
		{Probe: "check:unknown", Digest: "cannot_tell", Code: "cannot_run"},
	}
	if diff := cmp.Diff(want, first.Probes); diff != "" {
		t.Error(diff)
	}
	if first.Worker != self {
		t.Errorf("worker %+v", first.Worker)
	}
	p.write(t, "built", "")
	second := p.progress(t, in)
	if second.Probes[6].Digest != "check:pass exit=0" || second.Digest == first.Digest {
		t.Errorf("after the build: %+v", second)
	}
}

// TestPublic_A17_a_changing_file_is_progress: equal words of the assistant, but a watched file grows.
func TestPublic_A17_a_changing_file_is_progress(t *testing.T) {
	p := newPlace(t)
	in := activities.ProgressInput{Probes: []goal.Probe{{File: &goal.FileProbe{Path: p.path("build.log")}}}}
	seen := map[string]bool{p.progress(t, in).Digest: true}
	for _, text := range []string{"1%", "2%", "3%", "4%", "5%", "6%"} {
		p.write(t, "build.log", text)
		if digest := p.progress(t, in).Digest; seen[digest] {
			t.Errorf("no progress at %s", text)
		} else {
			seen[digest] = true
		}
	}
}

func TestReadProgress_ends_with_its_context(t *testing.T) {
	p := newPlace(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	cancel(stopped)
	in := activities.ProgressInput{Probes: []goal.Probe{{File: &goal.FileProbe{Path: p.path("x")}}}}
	if _, err := p.ReadProgress(ctx, in); !errors.Is(err, stopped) {
		t.Errorf("error %v", err)
	}
}

func TestEvidence_names_the_revision_of_the_work_tree(t *testing.T) {
	p := newPlace(t)
	p.repo(t, "src")
	inside := place{Checks: p.Checks, dir: p.path("src"), outputs: p.outputs}
	clean := p.one(t, activities.CheckInput{}, inside.command(t, "", "true"))
	p.write(t, "src/main.go", "package edited\n")
	edited := p.one(t, activities.CheckInput{}, inside.command(t, "", "true"))
	if clean.Revision != "git:"+p.git(t, "src", "rev-parse", "HEAD")+"+clean" || edited.Revision != p.gitDigest(t, "src") {
		t.Errorf("revisions %q and %q", clean.Revision, edited.Revision)
	}
}
