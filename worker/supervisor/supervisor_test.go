package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The test binary is also the supervised program: its first argument after the marker says what to do, in which folder.
const marker = "supervised"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == marker {
		play(os.Args[2], os.Args[3], os.Args[4])
		return
	}
	os.Exit(m.Run())
}

// play acts as a process called name. A lock on dir/NAME.lock shows that it lives, dir/events what it did.
func play(role, dir, name string) {
	lock, err := os.OpenFile(filepath.Join(dir, name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil || syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		fmt.Println("another", name, "lives")
		os.Exit(4)
	}
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	event(dir, "start "+name)
	switch role {
	case "serve": // until SIGTERM
		fmt.Println("serving", name)
		fmt.Fprintln(os.Stderr, "environment", os.Environ())
		<-term
		event(dir, "stop "+name)
	case "deaf": // to SIGTERM, and with a child of its own
		spawn(dir, name)
		select {}
	case "abandon": // its child
		spawn(dir, name)
		os.Exit(3)
	case "fail":
		fmt.Println("no configuration")
		os.Exit(3)
	case "supervise": // two others, until killed
		err := Run(context.Background(), os.Args[0], []Child{
			{Name: "a", Args: []string{marker, "serve", dir, "a"}}, {Name: "b", Args: []string{marker, "serve", dir, "b"}},
		}, slog.New(slog.DiscardHandler))
		fmt.Println(err)
	}
}

func event(dir, what string) {
	f, err := os.OpenFile(filepath.Join(dir, "events"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, what)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		panic(err)
	}
}

// spawn starts a child and waits until it lives.
func spawn(dir, name string) {
	cmd := exec.Command(os.Args[0], marker, "serve", dir, name+"-child")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = bufio.NewReader(out).ReadString('\n')
	}
	if err != nil {
		panic(err)
	}
	event(dir, "spawned "+name)
}

// scene is a folder and a supervisor over it.
type scene struct {
	*testing.T
	dir    string
	out    lockedBuffer
	log    lockedBuffer
	timing timing
}

func newScene(t *testing.T) *scene {
	return &scene{T: t, dir: t.TempDir(), timing: timing{
		minDelay: time.Millisecond, maxDelay: 4 * time.Millisecond, healthy: time.Minute,
		readyTimeout: 10 * time.Second, readyInterval: time.Millisecond,
	}}
}

func (s *scene) child(role, name string) Child {
	return Child{Name: name, Args: []string{marker, role, s.dir, name}, Ready: s.readyWhen("start " + name)}
}

// readyWhen is a Ready function that waits for an event.
func (s *scene) readyWhen(what string) func(context.Context) error {
	return func(context.Context) error {
		if s.count(what) == 0 {
			return errors.New("no event " + what)
		}
		return nil
	}
}

func (s *scene) events() []string {
	data, err := os.ReadFile(filepath.Join(s.dir, "events"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func (s *scene) count(what string) int {
	n := 0
	for _, e := range s.events() {
		if e == what {
			n++
		}
	}
	return n
}

// lives says whether the process that plays name exists.
func (s *scene) lives(name string) bool {
	f, err := os.OpenFile(filepath.Join(s.dir, name+".lock"), os.O_RDWR, 0)
	require.NoError(s, err)
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) != nil
}

func (s *scene) eventually(what string, ok func() bool) {
	s.Helper()
	require.Eventually(s, ok, 20*time.Second, 5*time.Millisecond, "%s\nevents: %v\nlog: %s", what, s.events(), &s.log)
}

// start runs the children; the function it returns cancels and gives Run's result.
func (s *scene) start(children ...Child) (stop func() error) {
	ctx, cancel := context.WithCancel(s.Context())
	result := make(chan error, 1)
	go func() {
		result <- run(ctx, os.Args[0], children, slog.New(slog.NewTextHandler(&s.log, nil)), &s.out, s.timing)
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	s.Cleanup(func() { _ = stop() })
	return stop
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestChildrenStartInOrderAndStopInReverse(t *testing.T) {
	s := newScene(t)
	second := s.child("serve", "b")
	second.Ready = func(ctx context.Context) error {
		require.Equal(t, 1, s.count("start a"), "b started before a was ready")
		return s.readyWhen("start b")(ctx)
	}
	stop := s.start(s.child("serve", "a"), second, s.child("serve", "c"))
	s.eventually("all are ready", func() bool { return strings.Count(s.log.String(), "msg=ready") == 3 })
	require.NoError(t, stop())
	require.Equal(t, []string{"start a", "start b", "start c", "stop c", "stop b", "stop a"}, s.events())
}

func TestDeadChildIsStartedAgain(t *testing.T) {
	s := newScene(t)
	stop := s.start(s.child("serve", "steady"), s.child("abandon", "restless"))
	s.eventually("it was started several times", func() bool { return s.count("start restless") >= 4 })
	require.Equal(t, 1, s.count("start steady"))
	require.Contains(t, s.log.String(), "exit status 3")
	require.NoError(t, stop())
	require.False(t, s.lives("steady"))
	s.eventually("what a dead child left behind is killed", func() bool { return !s.lives("restless-child") })
}

func TestDelayDoublesUpToABoundAndStartsOverAfterAHealthyMinute(t *testing.T) {
	var got []time.Duration
	delay := time.Duration(0)
	for range 7 {
		delay = defaultTiming.nextDelay(delay, time.Now().Add(-30*time.Second))
		got = append(got, delay/time.Second)
	}
	require.Equal(t, []time.Duration{1, 2, 4, 8, 16, 30, 30}, got)
	require.Equal(t, 30*time.Second, defaultTiming.nextDelay(delay, time.Time{}), "never ready")
	require.Equal(t, time.Second, defaultTiming.nextDelay(delay, time.Now().Add(-time.Minute)))
}

func TestDeafChildIsKilledWithItsGroup(t *testing.T) {
	s := newScene(t)
	c := s.child("deaf", "deaf")
	c.Ready = s.readyWhen("spawned deaf")
	c.StopTimeout = 50 * time.Millisecond
	stop := s.start(c)
	s.eventually("it is ready", func() bool { return strings.Contains(s.log.String(), "msg=ready") })
	require.True(t, s.lives("deaf-child"))
	require.NoError(t, stop())
	require.False(t, s.lives("deaf"))
	s.eventually("its group is killed too", func() bool { return !s.lives("deaf-child") })
	require.Contains(t, s.log.String(), "signal: killed")
}

func TestChildThatEndsBeforeItIsReadyStopsTheStart(t *testing.T) {
	s := newScene(t)
	bad := s.child("fail", "bad")
	bad.Ready = s.readyWhen("never")
	err := run(t.Context(), os.Args[0], []Child{s.child("serve", "good"), bad, s.child("serve", "later")},
		slog.New(slog.DiscardHandler), &s.out, s.timing)
	require.ErrorContains(t, err, "start bad")
	require.ErrorContains(t, err, "exit status 3")
	require.Equal(t, []string{"start good", "start bad", "stop good"}, s.events())
	require.Contains(t, s.out.String(), "bad | no configuration\n")
}

func TestChildThatDoesNotBecomeReadyStopsTheStart(t *testing.T) {
	s := newScene(t)
	s.timing.readyTimeout = 300 * time.Millisecond
	mute := s.child("serve", "mute")
	mute.Ready = s.readyWhen("never")
	err := run(t.Context(), os.Args[0], []Child{mute}, slog.New(slog.DiscardHandler), &s.out, s.timing)
	require.ErrorContains(t, err, "start mute: not ready (time is up): no event never")
	require.False(t, s.lives("mute"))
}

func TestMissingExecutableIsAnError(t *testing.T) {
	err := Run(t.Context(), filepath.Join(t.TempDir(), "steward"), []Child{{Name: "server"}}, slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "start server")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestCancelDuringTheStartStopsWhatRuns(t *testing.T) {
	s := newScene(t)
	waiting := s.child("serve", "waiting")
	waiting.Ready = s.readyWhen("never")
	stop := s.start(waiting)
	s.eventually("it runs", func() bool { return s.count("start waiting") == 1 })
	require.NoError(t, stop())
	require.False(t, s.lives("waiting"))
}

func TestNothingSurvivesAKilledSupervisor(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ties a child's life to its parent's")
	}
	s := newScene(t)
	cmd := exec.Command(os.Args[0], marker, "supervise", s.dir, "supervisor")
	cmd.Stderr = &s.out
	require.NoError(t, cmd.Start())
	s.eventually("both children run", func() bool { return s.count("start a") == 1 && s.count("start b") == 1 })
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	s.eventually("both children are gone", func() bool { return !s.lives("a") && !s.lives("b") })
	require.Zero(t, s.count("stop a"), "it was killed, not asked")
}

func TestOutputIsPrefixedAndKeptInAPrivateFile(t *testing.T) {
	t.Setenv("SECRET", "of the supervisor")
	s := newScene(t)
	c := s.child("serve", "talker")
	c.Env = []string{"GIVEN=yes"}
	c.LogFile = filepath.Join(s.dir, "talker.log")
	stop := s.start(c)
	s.eventually("it has spoken", func() bool { return strings.Contains(s.out.String(), "environment") })
	require.NoError(t, stop())
	require.Equal(t, "talker | serving talker\ntalker | environment [GIVEN=yes]\n", s.out.String())

	logged, err := os.ReadFile(c.LogFile)
	require.NoError(t, err)
	require.Equal(t, "serving talker\nenvironment [GIVEN=yes]\n", string(logged))
	info, err := os.Stat(c.LogFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestLogFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.log")
	require.NoError(t, os.WriteFile(path, []byte("before\n"), 0o600))
	f, err := openLogFile(path, 20)
	require.NoError(t, err)
	for i := range 5 {
		require.NoError(t, f.writeLine(fmt.Appendf(nil, "line %d", i)))
	}
	require.NoError(t, f.close())
	for file, want := range map[string]string{path: "line 3\nline 4\n", path + ".1": "line 1\nline 2\n"} {
		got, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

func TestLongLinesAreCut(t *testing.T) {
	var out bytes.Buffer
	long := strings.Repeat("x", maxLine)
	require.NoError(t, copyLines(strings.NewReader(long+"yz\nlast"), "c", &sharedWriter{to: &out}, nil))
	require.Equal(t, "c | "+long+"\nc | yz\nc | last\n", out.String())
}
