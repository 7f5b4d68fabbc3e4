package gate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"steward/workflows/release/evidence"
)

func shell(t *testing.T, script string) Command {
	t.Helper()
	return Command{
		Name: "type", Argv: []string{"sh", "-c", script}, Dir: t.TempDir(), Env: Environment(nil), Timeout: 20 * time.Second,
		OutputDir: filepath.Join(t.TempDir(), "out"),
	}
}

func TestReceiptsOfCommands(t *testing.T) {
	tests := []struct {
		script  string
		outcome evidence.Outcome
		line    string
	}{
		{"echo all fine", evidence.Passed, "all fine"},
		{"echo start; echo error: two fields; exit 3", evidence.Failed, "error: two fields"},
		{"exit 75", evidence.Inconclusive, ""},
		{"exit 66", evidence.NoData, ""},
		{"kill -9 $$", evidence.Failed, ""},
		{"echo password=hunter22", evidence.Passed, "password=***"},
	}
	for _, test := range tests {
		c := shell(t, test.script)
		got, err := c.Run(t.Context())
		if err != nil || got.Outcome != test.outcome || got.Line != test.line {
			t.Errorf("%s: %+v, %v", test.script, got, err)
		}
		if _, err := os.Stat(filepath.Join(c.OutputDir, got.Digest)); err != nil {
			t.Errorf("%s: the output is not kept: %v", test.script, err)
		}
	}
}

// A candidate whose program is missing or cannot run fails, at once (hashicorp/nomad#10465).
func TestProgramThatCannotRunFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, argv := range [][]string{{"./missing"}, {"./plain"}, {"no-such-program-anywhere"}, {dir}, {""}, nil} {
		got, err := Command{Name: "build", Argv: argv, Dir: dir, Env: Environment(nil), Timeout: time.Minute}.Run(t.Context())
		if err != nil || got.Outcome != evidence.Failed || got.Line == "" || got.Code != CodeCannotRun {
			t.Errorf("%q: %+v, %v", argv, got, err)
		}
	}
}

func TestTimeoutEndsTheWholeGroup(t *testing.T) {
	c := shell(t, "(trap '' TERM; while :; do sleep 0.1; echo x >>alive; done) & sleep 600")
	c.Timeout = 300 * time.Millisecond
	got, err := c.Run(t.Context())
	if err != nil || got.Outcome != evidence.Failed || !strings.Contains(got.Line, "longer than") {
		t.Fatalf("%+v, %v", got, err)
	}
	size := func() int64 {
		info, err := os.Stat(filepath.Join(c.Dir, "alive"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	before := size()
	time.Sleep(300 * time.Millisecond) // three of its writes, were it alive
	if after := size(); after != before {
		t.Error("a child of the command is still running")
	}
}

func TestCancelledRunIsNoReceipt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	time.AfterFunc(100*time.Millisecond, func() { cancel(stop) })
	if _, err := shell(t, "sleep 600").Run(ctx); !errors.Is(err, stop) {
		t.Errorf("%v", err)
	}
}

func TestLongOutputIsBounded(t *testing.T) {
	c := shell(t, "head -c 3000000 /dev/zero; echo the end")
	got, err := c.Run(t.Context())
	if err != nil || got.Outcome != evidence.Passed {
		t.Fatalf("%+v, %v", got, err)
	}
	kept, err := os.ReadFile(filepath.Join(c.OutputDir, got.Digest))
	if err != nil || len(kept) != MaxOutput || !strings.HasSuffix(string(kept), "the end\n") {
		t.Errorf("%d bytes are kept, %v", len(kept), err)
	}
}

func TestNoPrivateVariableReachesAChild(t *testing.T) {
	t.Setenv("STEWARD_WRITER", "a")
	t.Setenv("TEMPORAL_API_KEY", "b")
	t.Setenv("GOFLAGS", "c")
	t.Setenv("SECRET", "d")
	env := Environment([]string{"STEWARD_WRITER", "TEMPORAL_API_KEY", "GOFLAGS"}, "PORT=1", "HOME=/b", "STEWARD_DATA_DIR=/b")
	for _, want := range []string{"GOFLAGS=c", "PORT=1", "HOME=/b", "STEWARD_DATA_DIR=/b"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %v", want, env)
		}
	}
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		if slices.Contains([]string{"STEWARD_WRITER", "TEMPORAL_API_KEY", "SECRET"}, name) || name == "HOME" && value != "/b" {
			t.Errorf("%s reached the child", entry)
		}
	}
}
