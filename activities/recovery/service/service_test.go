package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"steward/activities/recovery/home"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "launch" {
		fmt.Fprintln(os.Stderr, Launch(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

type fixture struct {
	Process
	home string
	t    *testing.T
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{Process{Dir: filepath.Join(t.TempDir(), "services"), Launcher: []string{exe, "launch"}}, t.TempDir(), t}
	t.Cleanup(func() {
		if err := f.Stop(context.WithoutCancel(t.Context()), "svc", 0); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f fixture) spec(script string, epoch uint64) Spec {
	return Spec{
		Label: "svc", Argv: []string{"/bin/sh", "-c", script}, Dir: f.home, Env: []string{"PATH=/usr/bin:/bin", "NAME=value"},
		Home: f.home, Epoch: epoch, Release: "tree" + strconv.FormatUint(epoch, 10), LogFile: filepath.Join(f.home, "log"),
	}
}

// readPID waits for a file that the service writes its process id into.
func (f fixture) readPID(name string) int {
	f.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(f.home, name))
		if pid, parseErr := strconv.Atoi(strings.TrimSpace(string(data))); err == nil && parseErr == nil {
			return pid
		}
	}
	f.t.Fatal("the service wrote no " + name)
	return 0
}

func TestStartedServiceOwnsItsHome(t *testing.T) {
	f := newFixture(t)
	got, err := f.Start(t.Context(), f.spec("echo $NAME >env; exec sleep 600", 1))
	if err != nil || !got.Owned("tree1", 1) {
		t.Fatalf("%+v, %v", got, err)
	}
	now, err := home.ReadIncarnation(f.home)
	if err != nil || now.Owner != got.Process || now.Epoch != 1 {
		t.Errorf("the home belongs to %+v, %v", now, err)
	}
	if session, err := unix.Getsid(got.Process.PID); err != nil || session != got.Process.PID {
		t.Errorf("it runs in session %d, %v", session, err)
	}
	if _, err := f.Start(t.Context(), f.spec("exec sleep 600", 2)); !errors.Is(err, ErrOwned) {
		t.Errorf("a second start beside it: %v", err)
	}
	if err := f.Stop(t.Context(), "svc", 5*time.Second); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Observe(t.Context(), "svc"); err != nil || got.Running {
		t.Errorf("after the stop: %+v, %v", got, err)
	}
	if _, err := f.Start(t.Context(), f.spec("exec sleep 600", 1)); err == nil {
		t.Error("a start with a used epoch went through")
	}
	if got, err := f.Start(t.Context(), f.spec("exec sleep 600", 2)); err != nil || !got.Owned("tree2", 2) {
		t.Errorf("with the next epoch: %+v, %v", got, err)
	}
}

func TestStopEndsEverythingThatTheServiceStarted(t *testing.T) {
	f := newFixture(t)
	_, err := f.Start(t.Context(), f.spec(`trap '' TERM
(trap '' TERM; echo $$ >/dev/null; sh -c 'echo $PPID >child.tmp; mv child.tmp child'; while :; do sleep 1; done) &
setsid sh -c 'trap "" TERM; echo $$ >far.tmp; mv far.tmp far; while :; do sleep 1; done' &
while :; do sleep 1; done`, 1))
	if err != nil {
		t.Fatal(err)
	}
	child, far := home.ProcessOf(f.readPID("child")), home.ProcessOf(f.readPID("far"))
	if err := f.Stop(t.Context(), "svc", 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if child.Lives() || far.Lives() {
		t.Errorf("child lives %v, the one in another session %v", child.Lives(), far.Lives())
	}
}

func TestWhatAKilledServiceLeavesBehindIsFoundAndEnded(t *testing.T) {
	f := newFixture(t)
	got, err := f.Start(t.Context(), f.spec("sh -c 'echo $$ >c.tmp; mv c.tmp child; exec sleep 600' & wait", 1))
	if err != nil {
		t.Fatal(err)
	}
	child := home.ProcessOf(f.readPID("child"))
	if err := unix.Kill(got.Process.PID, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for got.Process.Lives() {
		time.Sleep(time.Millisecond)
	}
	if now, err := f.Observe(t.Context(), "svc"); err != nil || !now.Leftover || now.Owned("tree1", 1) {
		t.Errorf("with a child left: %+v, %v", now, err)
	}
	if err := f.Stop(t.Context(), "svc", 5*time.Second); err != nil || child.Lives() {
		t.Errorf("stop: %v; the child lives: %v", err, child.Lives())
	}
}

func TestServiceThatCannotStartSaysWhy(t *testing.T) {
	f := newFixture(t)
	spec := f.spec("", 1)
	spec.Argv = []string{"/no/such/program"}
	if _, err := f.Start(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("%v", err)
	}
	spec.Argv = []string{"relative"}
	if _, err := f.Start(t.Context(), spec); err == nil {
		t.Error("a relative program was started")
	}
	if now, err := f.Observe(t.Context(), "svc"); err != nil || now.Running {
		t.Errorf("%+v, %v", now, err)
	}
	for _, label := range []string{"", "../x", "a b", "-x"} {
		if _, err := f.Observe(t.Context(), label); err == nil {
			t.Errorf("label %q was taken", label)
		}
	}
}

// A provider that is started again finds the service of the one before.
func TestServiceOutlivesItsProvider(t *testing.T) {
	f := newFixture(t)
	got, err := f.Start(t.Context(), f.spec("exec sleep 600", 1))
	if err != nil {
		t.Fatal(err)
	}
	again := Process{Dir: f.Dir, Launcher: f.Launcher}
	if now, err := again.Observe(t.Context(), "svc"); err != nil || now != got {
		t.Errorf("%+v, %v; started was %+v", now, err, got)
	}
}

func TestListenerProof(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	f := newFixture(t)
	if _, err := f.Start(t.Context(), f.spec("exec sleep 600", 1)); err != nil {
		t.Fatal(err)
	}
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	if own, err := f.Listens(t.Context(), "svc", tcp.Port); err != nil || own {
		t.Errorf("a foreign listener counts as the service's: %v", err)
	}
	if !listens([]int{os.Getpid()}, tcp.Port) {
		t.Error("the own listener is not found")
	}
	if err := ListenerFree(t.Context(), address); err == nil {
		t.Error("a taken address counts as free")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ListenerFree(t.Context(), address); err != nil {
		t.Error(err)
	}
}

func TestProcessorTimeOfAService(t *testing.T) {
	f := newFixture(t)
	got, err := f.Start(t.Context(), f.spec("sh -c 'while :; do :; done' & wait", 1))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		used, err := CPU(got.Process)
		if err != nil {
			t.Fatal(err)
		}
		if used >= 100*time.Millisecond {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a busy child used %v", used)
		}
	}
	if err := f.Stop(t.Context(), "svc", time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := CPU(got.Process); err == nil {
		t.Error("a stopped service has a processor time")
	}
}

func TestUnitIsValid(t *testing.T) {
	f := newFixture(t)
	spec := f.spec(`echo "a $HOME 100%"`, 1)
	spec.Env = append(spec.Env, `ODD=with "quotes" $and 100% \ back`)
	unit, err := Systemd{Dir: f.Dir, Launcher: f.Launcher}.Unit(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Restart=no\n", "KillMode=control-group\n", "Environment=\"NAME=value\"\n",
		`Environment="ODD=with \"quotes\" $and 100%% \\ back"` + "\n", `$$HOME 100%%`,
	} {
		if !strings.Contains(unit, want) {
			t.Errorf("%q is missing in\n%s", want, unit)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	path := filepath.Join(t.TempDir(), unitName("svc"))
	if err := os.WriteFile(path, []byte(unit), 0o600); err != nil {
		t.Fatal(err)
	}
	verify := exec.CommandContext(t.Context(), analyze, "verify", "--user", path)
	verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	out, err := verify.CombinedOutput()
	if err != nil {
		t.Errorf("systemd-analyze verify: %v\n%s\n%s", err, out, unit)
	}
}

// systemctl is a helper: its errors and its silence prove nothing, the lock and the record do.
func TestSystemdProviderObservesWhatIsTrue(t *testing.T) {
	f := newFixture(t)
	unitDir := t.TempDir()
	calls := []string{}
	s := Systemd{Dir: f.Dir, Launcher: f.Launcher, UnitDir: unitDir, Systemctl: func(_ context.Context, args ...string) error {
		calls = append(calls, args[0])
		if args[0] == "daemon-reload" {
			return nil
		}
		return errors.New("bus is gone")
	}}
	if _, err := s.Start(t.Context(), f.spec("exec sleep 600", 1)); err == nil || !strings.Contains(err.Error(), "bus is gone") {
		t.Errorf("nothing was started: %v", err)
	}
	if _, err := f.Start(t.Context(), f.spec("exec sleep 600", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Start(t.Context(), f.spec("exec sleep 600", 2)); !errors.Is(err, ErrOwned) {
		t.Errorf("beside a running one: %v", err)
	}
	if err := s.Stop(t.Context(), "svc", time.Second); err != nil {
		t.Errorf("a stop whose helper failed: %v", err)
	}
	if now, err := s.Observe(t.Context(), "svc"); err != nil || now.Running {
		t.Errorf("%+v, %v", now, err)
	}
	if want := "daemon-reload start stop"; strings.Join(calls, " ") != want {
		t.Errorf("systemctl was called for %v", calls)
	}
}
