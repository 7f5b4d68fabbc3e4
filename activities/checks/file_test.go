package checks_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"steward/activities"
	"steward/workflows/run/goal"
)

func TestFile(t *testing.T) {
	p := newPlace(t)
	const text = "run: t_0123456789ab\nall green\n4,985 passed\n7 passed\n"
	p.write(t, "report", text)
	p.write(t, "folder/inner", "")
	p.write(t, "foreign", "run: t_other\n")
	p.write(t, "mixed", "run: t_0123456789ab\nrun: t_other\n")
	if err := os.Symlink("nowhere", p.path("dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("report", p.path("link")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(p.path("pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	in := activities.CheckInput{RunIDs: []string{"run:s:1", "t_0123456789ab"}, Totals: map[string]int64{"it": 4992}}
	shrunk := in
	shrunk.Totals = map[string]int64{"it": 4993}
	tests := map[string]struct {
		file, more string
		in         activities.CheckInput
		outcome    activities.CheckOutcome
		code, line string
	}{
		"exists":             {"report", ``, in, pass, "", "bytes, sha256:"},
		"exists, a folder":   {"folder", ``, in, pass, "", "is there"},
		"exists, a link":     {"link", `,"contains":"all green"`, in, pass, "", ""},
		"missing":            {"gone", ``, in, fail, "not_found", "is not there"},
		"missing folder":     {"gone/there", `,"contains":"x"`, in, fail, "not_found", "is not there"},
		"dangling link":      {"dangling", ``, in, fail, "not_found", "is not there"},
		"absent":             {"gone", `,"exists":false`, in, pass, "", "nothing is there"},
		"still there":        {"report", `,"exists":false`, in, fail, "still_exists", "still there"},
		"contains":           {"report", `,"contains":"all green"`, in, pass, "", ""},
		"contains not":       {"report", `,"contains":"All green"`, in, fail, "text_missing", `does not contain "All green"`},
		"folder has no text": {"folder", `,"contains":"x"`, in, fail, "not_a_file", "no regular file"},
		"pipe does not hang": {"pipe", `,"contains":"x"`, in, fail, "not_a_file", "no regular file"},
		"digest":             {"report", `,"sha256":"` + digest + `"`, in, pass, "", ""},
		"other digest":       {"report", `,"sha256":"` + strings.Repeat("0", 64) + `"`, in, fail, "digest_mismatch", "not 000000000000"},
		"of this run":        {"report", `,"run_id":"run: (\\S+)"`, in, pass, "", ""},
		"of a run":           {"foreign", `,"run_id":"run: t_other"`, in, pass, "", ""},
		"of another run":     {"foreign", `,"run_id":"run: (\\S+)"`, in, fail, "foreign_run", `from run "t_other"`},
		"of several runs":    {"mixed", `,"run_id":"run: (\\S+)"`, in, fail, "foreign_run", `from run "t_other"`},
		"of no run":          {"report", `,"run_id":"job: (\\S+)"`, in, fail, "foreign_run", "does not say"},
		"total":              {"report", `,"total":"([0-9,]+) passed"`, in, pass, "", ""},
		"total, no baseline": {"report", `,"total":"([0-9,]+) passed"`, activities.CheckInput{}, pass, "", ""},
		"total shrunk":       {"report", `,"total":"([0-9,]+) passed"`, shrunk, fail, "total_shrunk", "is 4992; it was 4993"},
		"total missing":      {"report", `,"total":"([0-9]+) tests"`, in, fail, "total_missing", "nothing in the file matches"},
		"total no count":     {"report", `,"total":"all (green)"`, in, fail, "total_missing", `"green" is no count`},
		"first rule decides": {"gone", `,"contains":"x","total":"([0-9]+)"`, in, fail, "not_found", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := p.one(t, tt.in, p.file(t, tt.file, tt.more))
			wantOutcome(t, e, tt.outcome, tt.code, tt.line)
			wasRead := (tt.file == "report" || tt.file == "link") && tt.code != "still_exists"
			if wasRead && (e.Digest != digest || e.Bytes != int64(len(text)) || e.Revision != "sha256:"+digest) {
				t.Errorf("evidence: %+v", e)
			}
			if entries, _ := os.ReadDir(p.outputs); len(entries) > 0 {
				t.Error("a file was copied to the outputs")
			}
		})
	}
	if e := p.one(t, in, p.file(t, "report", `,"total":"([0-9,]+) passed"`)); e.Total == nil || *e.Total != 4992 {
		t.Errorf("total: %v", e.Total)
	}
}

func TestFile_beyond_the_bounds_cannot_tell(t *testing.T) {
	p := newPlace(t)
	path := p.write(t, "large", "text at the start")
	if err := os.Truncate(path, 17<<20); err != nil {
		t.Fatal(err)
	}
	wantOutcome(t, p.one(t, activities.CheckInput{}, p.file(t, "large", `,"contains":"text"`)), unclear, "too_large", "at most")
	wantOutcome(t, p.one(t, activities.CheckInput{}, p.file(t, "large", ``)), pass, "", "")
}

func TestFile_that_changes_meanwhile_cannot_tell(t *testing.T) {
	p := newPlace(t)
	path := p.write(t, "growing", "")
	writer := exec.Command("sh", "-c", "while :; do echo x >>\"$0\"; done", path)
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = writer.Process.Kill(); _ = writer.Wait() })
	eventually(t, "changed_meanwhile", func() bool {
		e := p.one(t, activities.CheckInput{}, p.file(t, "growing", ``))
		if e.Outcome == fail {
			t.Fatalf("evidence: %+v", e)
		}
		return e.Outcome == unclear && e.Code == "changed_meanwhile"
	})
}

func TestFile_must_be_fresh_for_a_revision(t *testing.T) {
	long := time.Now().Add(-time.Hour).Truncate(time.Second)
	setup := func(t *testing.T) place {
		p := newPlace(t)
		p.repo(t, "src")
		t.Setenv("GIT_COMMITTER_DATE", long.Format(time.RFC3339))
		p.git(t, "src", "commit", "-q", "--amend", "-m", "an hour ago")
		p.touch(t, "src/main.go", long.Add(-time.Minute))
		p.write(t, "src/REPORT.md", "all green")
		p.touch(t, "src/REPORT.md", long.Add(10*time.Minute))
		return p
	}
	tests := map[string]struct {
		change  func(t *testing.T, p place)
		outcome activities.CheckOutcome
		code    string
		line    string
	}{
		"newer than all":     {func(*testing.T, place) {}, pass, "", ""},
		"as old as the HEAD": {func(t *testing.T, p place) { p.touch(t, "src/REPORT.md", long) }, pass, "", ""},
		"older than the HEAD": {func(t *testing.T, p place) {
			p.touch(t, "src/REPORT.md", long.Add(-time.Second))
		}, fail, "stale_artifact", "before HEAD changed"},
		"older than a change": {func(t *testing.T, p place) {
			p.write(t, "src/main.go", "package changed\n")
			p.touch(t, "src/main.go", long.Add(11*time.Minute))
		}, fail, "stale_artifact", "before main.go changed"},
		"older than a staged change": {func(t *testing.T, p place) {
			p.write(t, "src/main.go", "package changed\n")
			p.touch(t, "src/main.go", long.Add(11*time.Minute))
			p.git(t, "src", "add", "main.go")
		}, fail, "stale_artifact", "before main.go changed"},
		"older than a new file": {func(t *testing.T, p place) {
			p.write(t, "src/new.go", "")
			p.touch(t, "src/new.go", long.Add(11*time.Minute))
		}, fail, "stale_artifact", "before new.go changed"},
		"newer than a change": {func(t *testing.T, p place) {
			p.write(t, "src/main.go", "package changed\n")
			p.touch(t, "src/main.go", long.Add(9*time.Minute))
		}, pass, "", ""},
		"only touched": {func(t *testing.T, p place) { p.touch(t, "src/main.go", long.Add(11*time.Minute)) }, pass, "", ""},
		"ignored file": {func(t *testing.T, p place) {
			p.write(t, "src/.git/info/exclude", "*.log\n")
			p.write(t, "src/a.log", "")
		}, pass, "", ""},
		"other evidence": {func(t *testing.T, p place) { p.write(t, "src/STATUS.md", "later") }, pass, "", ""},
		"removed file":   {func(t *testing.T, p place) { _ = os.Remove(p.path("src/main.go")) }, pass, "", ""},
		"no commit": {func(t *testing.T, p place) {
			_ = os.RemoveAll(p.path("src/.git"))
			p.git(t, "src", "init", "-q")
		}, unclear, "no_revision", ""},
		"no work tree": {func(t *testing.T, p place) { _ = os.RemoveAll(p.path("src/.git")) }, unclear, "no_revision", "is no git work tree"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := setup(t)
			tt.change(t, p)
			found := p.run(t, activities.CheckInput{},
				`{"name":"it",`+p.file(t, "src/REPORT.md", `,"fresh_for":`+quote(t, p.path("src")))+`}`,
				`{"name":"status",`+p.file(t, "src/STATUS.md", `,"exists":false`)+`}`)
			wantOutcome(t, found[0], tt.outcome, tt.code, tt.line)
			if tt.outcome != unclear && !strings.HasPrefix(found[0].Revision, "git:") {
				t.Errorf("revision %q", found[0].Revision)
			}
		})
	}
}

func (p place) touch(t *testing.T, name string, at time.Time) {
	t.Helper()
	if err := os.Chtimes(p.path(name), at, at); err != nil {
		t.Fatal(err)
	}
}

// TestPublic_A12_evidence_of_another_run_is_no_proof: a DONE that names a missing or foreign evidence file stays unmet.
func TestPublic_A12_evidence_of_another_run_is_no_proof(t *testing.T) {
	p := newPlace(t)
	in := activities.CheckInput{RunIDs: []string{"t_aaaaaaaaaaaa"}}
	rule := p.file(t, "evidence.log", `,"run_id":"(?m)^run=(\\S+)$"`)
	wantOutcome(t, p.one(t, in, rule), fail, "not_found", "")
	p.write(t, "evidence.log", "run=t_bbbbbbbbbbbb\nALL PASSED\n")
	wantOutcome(t, p.one(t, in, rule), fail, "foreign_run", "t_bbbbbbbbbbbb")
	p.write(t, "evidence.log", "run=t_aaaaaaaaaaaa\nALL PASSED\n")
	wantOutcome(t, p.one(t, in, rule), pass, "", "")
}

// TestPublic_A13_shrunken_total_is_rejected: 4985 of 4992 at the start, "ALL PASSED 4966/4966" at the DONE.
func TestPublic_A13_shrunken_total_is_rejected(t *testing.T) {
	p := newPlace(t)
	p.write(t, "suite.log", "4985/4992 passed\n")
	rule := p.file(t, "suite.log", `,"contains":"passed","total":"[0-9]+/([0-9]+) passed"`)
	g := goal.Goal{Completion: goal.Completion{Checks: parse(t, `{"name":"it",`+rule+`}`)}}
	baseline, err := p.Baseline(context.Background(), activities.BaselineInput{Goal: g})
	if err != nil || len(baseline.Problems) > 0 || baseline.Totals["it"] != 4992 || baseline.Worker != self {
		t.Fatalf("baseline: %+v, %v", baseline, err)
	}
	p.write(t, "suite.log", "ALL PASSED\n4966/4966 passed\n")
	e := p.one(t, activities.CheckInput{Totals: baseline.Totals}, rule)
	wantOutcome(t, e, fail, "total_shrunk", "the total is 4966; it was 4992 at the start")
	if *e.Total != 4966 {
		t.Errorf("total %d", *e.Total)
	}
	p.write(t, "suite.log", "5000/5000 passed\n")
	wantOutcome(t, p.one(t, activities.CheckInput{Totals: baseline.Totals}, rule), pass, "", "")
}

func TestBaseline_has_no_total_of_a_file_that_is_not_there_yet(t *testing.T) {
	p := newPlace(t)
	p.write(t, "empty.log", "nothing")
	g := goal.Goal{Completion: goal.Completion{Checks: parse(t,
		`{"name":"a",`+p.file(t, "gone.log", `,"total":"([0-9]+)"`)+`}`,
		`{"name":"b",`+p.file(t, "empty.log", `,"total":"([0-9]+)"`)+`}`,
		`{"name":"c",`+p.file(t, "empty.log", ``)+`}`)}}
	got, err := p.Baseline(context.Background(), activities.BaselineInput{Goal: g})
	if err != nil || got.Totals != nil || got.Problems != nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFile_links_do_not_lead_out_of_the_roots(t *testing.T) {
	p := newPlace(t)
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"out": outside, "up": filepath.Dir(outside), "later": outside + "-not-yet"} {
		if err := os.Symlink(target, p.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"out", "up/secret", "up/gone", "later", "../" + filepath.Base(filepath.Dir(outside))} {
		e := p.one(t, activities.CheckInput{}, p.file(t, name, ``))
		wantOutcome(t, e, unclear, "refused_by_worker", "outside checks.roots")
	}
}
