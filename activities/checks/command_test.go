package checks_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"steward/activities"
	"steward/activities/checks"
)

const (
	pass    = activities.CheckPass
	fail    = activities.CheckFail
	unclear = activities.CheckCannotTell
)

func TestCommand(t *testing.T) {
	p := newPlace(t)
	p.write(t, "ok.sh", "#!/bin/sh\necho fine\n")
	p.write(t, "plain", "x")
	if err := os.Chmod(p.path("ok.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		more    string
		argv    []string
		outcome activities.CheckOutcome
		code    string
		line    string
	}{
		"passes":             {"", []string{"echo", "all good"}, pass, "", "all good"},
		"no shell":           {"", []string{"echo", "$HOME", "a;b"}, pass, "", "$HOME a;b"},
		"stderr counts":      {`,"match":"^oops"`, []string{"sh", "-c", "echo oops >&2"}, pass, "", "oops"},
		"exit":               {"", []string{"sh", "-c", "echo A failed; echo bye; exit 3"}, fail, "exit_mismatch", "exit 3, not 0: A failed"},
		"wanted exit":        {`,"exit":3`, []string{"sh", "-c", "exit 3"}, pass, "", ""},
		"wanted exit missed": {`,"exit":3`, []string{"true"}, fail, "exit_mismatch", "exit 0, not 3"},
		"signal":             {"", []string{"sh", "-c", "kill -9 $$"}, fail, "exit_mismatch", "signal (killed)"},
		"match":              {`,"match":"(?m)^ok\\s"`, []string{"printf", `x\nok  pkg\n`}, pass, "", "ok pkg"},
		"match missed":       {`,"match":"^ok"`, []string{"echo", "not"}, fail, "output_mismatch", "does not match ^ok"},
		"unknown program":    {"", []string{"no-such-program-here"}, unclear, "cannot_run", "no-such-program-here"},
		"program of the dir": {"", []string{"./ok.sh"}, pass, "", "fine"},
		"program is gone":    {"", []string{"./gone.sh"}, fail, "not_found", "./gone.sh is not there"},
		"not executable":     {"", []string{"./plain"}, fail, "not_found", "not executable"},
		"reads no input":     {"", []string{"cat"}, pass, "", ""},
		"folder":             {"", []string{"sh", "-c", "pwd; echo $PWD"}, pass, "", filepath.Base(p.dir)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e := p.one(t, activities.CheckInput{}, p.command(t, tt.more, tt.argv...))
			wantOutcome(t, e, tt.outcome, tt.code, tt.line)
			if e.Kind != "command" || e.Revision != "" {
				t.Errorf("evidence: %+v", e)
			}
			if ran := e.Code != "cannot_run" && e.Code != "not_found" && name != "signal"; ran != (e.Exit != nil) {
				t.Errorf("exit: %v", e.Exit)
			}
		})
	}
}

func TestCommand_in_a_folder_that_is_gone_cannot_tell(t *testing.T) {
	p := newPlace(t)
	p.dir = p.path("gone")
	wantOutcome(t, p.one(t, activities.CheckInput{}, p.command(t, "", "true")), unclear, "cannot_run", "does not exist")
}

func TestCommand_sees_only_allowed_variables(t *testing.T) {
	for name, value := range map[string]string{
		"STEWARD_TEST_SECRET": "s1", "TEMPORAL_API_KEY": "s2", "MY_FLAG": "on", "OTHER": "no", "GIT_DIR": "/nowhere", "LC_ALL": "C",
	} {
		t.Setenv(name, value)
	}
	p := newPlace(t)
	e := p.one(t, activities.CheckInput{}, p.command(t, `,"env":["MY_FLAG"]`, "env"))
	wantOutcome(t, e, pass, "", "")
	env := p.output(t, e)
	for _, want := range []string{"MY_FLAG=on", "LC_ALL=C", "PATH=", "PWD=" + p.dir} {
		if !strings.Contains(env, want) {
			t.Errorf("missing %s in\n%s", want, env)
		}
	}
	for _, hidden := range []string{"STEWARD_", "TEMPORAL_", "OTHER", "GIT_DIR"} {
		if strings.Contains(env, hidden) {
			t.Errorf("%s is visible in\n%s", hidden, env)
		}
	}
}

// output is what the worker kept of a check's output.
func (p place) output(t *testing.T, e activities.CheckEvidence) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.outputs, e.Digest))
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != e.Digest {
		t.Errorf("the kept output has another digest than %s", e.Digest)
	}
	return string(data)
}

func TestCommand_output_stays_on_the_host_in_a_private_file(t *testing.T) {
	p := newPlace(t)
	e := p.one(t, activities.CheckInput{}, p.command(t, "", "echo", "password=hunter2 is the secret"))
	if got := p.output(t, e); got != "password=hunter2 is the secret\n" || e.Bytes != int64(len(got)) {
		t.Errorf("kept %q, %d bytes", got, e.Bytes)
	}
	if strings.Contains(e.Line, "hunter2") {
		t.Errorf("line %q", e.Line)
	}
	for path, want := range map[string]os.FileMode{p.outputs: 0o700, filepath.Join(p.outputs, e.Digest): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestCommand_that_cannot_keep_its_output_is_no_pass(t *testing.T) {
	p := newPlace(t)
	if err := os.RemoveAll(p.outputs); err != nil {
		t.Fatal(err)
	}
	p.write(t, "x", "")
	wantOutcome(t, p.one(t, activities.CheckInput{}, p.command(t, "", "true")), unclear, "cannot_keep", "cannot be kept")
	wantOutcome(t, p.one(t, activities.CheckInput{}, p.command(t, "", "false")), fail, "exit_mismatch", "exit 1")
}

// TestPublic_A24_large_output_stays_bounded: an output beyond a payload limit neither enters the result nor is lost.
func TestPublic_A24_large_output_stays_bounded(t *testing.T) {
	p := newPlace(t)
	e := p.one(t, activities.CheckInput{}, p.command(t, `,"match":"(?s)begin.*bytes left out.*end"`,
		"sh", "-c", "echo begin; yes 0123456789 | head -n 700000; echo end"))
	wantOutcome(t, e, pass, "", "end")
	if e.Bytes != 6+700000*11+4 {
		t.Errorf("%d bytes", e.Bytes)
	}
	kept := p.output(t, e)
	if len(kept) > 1<<20+100 || !strings.HasPrefix(kept, "begin\n0123") || !strings.HasSuffix(kept, "0123456789\nend\n") {
		t.Errorf("kept %d bytes", len(kept))
	}
	if size := len(quote(t, e)); size > 1200 {
		t.Errorf("the evidence has %d bytes", size)
	}
}

// alive tells whether a process runs; a zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// pidIn waits for a pid that a process writes to a file.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	var pid int
	eventually(t, "a pid in "+path, func() bool {
		data, err := os.ReadFile(path)
		if err == nil && strings.HasSuffix(string(data), "\n") {
			pid, err = strconv.Atoi(strings.TrimSpace(string(data)))
		}
		return err == nil && pid > 0
	})
	return pid
}

func TestCommand_time_out_ends_the_whole_process_group(t *testing.T) {
	for name, script := range map[string]string{
		"obedient":  `sleep 300 & echo $! >child; echo $$ >parent; echo working; wait`,
		"stubborn":  `trap '' TERM; sleep 300 & echo $! >child; echo $$ >parent; echo working; while :; do sleep 1; done`,
		"in a pipe": `sleep 300 | sleep 300 & echo $! >child; echo $$ >parent; echo working; sleep 300`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			start := time.Now()
			e := p.one(t, activities.CheckInput{}, p.command(t, `,"timeout":"1s"`, "sh", "-c", script))
			wantOutcome(t, e, fail, "timed_out", "ended after 1s: working")
			if took := time.Since(start); took > 15*time.Second {
				t.Errorf("took %v", took)
			}
			for _, file := range []string{"child", "parent"} {
				pid := pidIn(t, p.path(file))
				eventually(t, file+" is gone", func() bool { return !alive(pid) })
			}
		})
	}
}

func TestCommand_leaves_nothing_behind_when_it_ends_by_itself(t *testing.T) {
	p := newPlace(t)
	e := p.one(t, activities.CheckInput{}, p.command(t, "", "sh", "-c", "sleep 300 & echo $! >child; echo started"))
	wantOutcome(t, e, pass, "", "started")
	pid := pidIn(t, p.path("child"))
	eventually(t, "the child is gone", func() bool { return !alive(pid) })
}

func TestRun_ends_with_its_context(t *testing.T) {
	p := newPlace(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	stopped := errors.New("stopped")
	go func() {
		defer cancel(stopped)
		pidIn(t, p.path("child"))
	}()
	_, err := p.Run(ctx, activities.CheckInput{Checks: parse(t,
		`{"name":"a",`+p.command(t, "", "sh", "-c", "sleep 300 & echo $! >child; wait")+`}`,
		`{"name":"b",`+p.command(t, "", "touch", "late")+`}`)})
	if !errors.Is(err, stopped) {
		t.Errorf("error %v", err)
	}
	pid := pidIn(t, p.path("child"))
	eventually(t, "the child is gone", func() bool { return !alive(pid) })
	if _, err := os.Stat(p.path("late")); err == nil {
		t.Error("the next check was started")
	}
}

const deadWorker = "CHECKS_TEST_DEAD_WORKER"

// TestCommand_dies_with_its_worker runs a worker of its own, kills it and looks for the command.
func TestCommand_dies_with_its_worker(t *testing.T) {
	if dir := os.Getenv(deadWorker); dir != "" {
		c, err := checks.New(checks.Options{Limits: checks.Embedded(dir), Folder: filepath.Join(dir, "outputs")})
		if err != nil {
			t.Fatal(err)
		}
		p := place{Checks: c, dir: dir}
		_, _ = p.Run(context.Background(), activities.CheckInput{Checks: parse(t,
			`{"name":"a",`+p.command(t, "", "sh", "-c", "echo $$ >child; exec sleep 300")+`}`)})
		return
	}
	p := newPlace(t)
	worker := exec.Command(os.Args[0], "-test.run=^TestCommand_dies_with_its_worker$")
	worker.Env = append(os.Environ(), deadWorker+"="+p.dir)
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, p.path("child"))
	if !alive(pid) {
		t.Error("the command never ran")
	}
	if err := worker.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = worker.Wait()
	eventually(t, "the command is gone", func() bool { return !alive(pid) })
}
