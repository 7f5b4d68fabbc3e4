package recovery

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"steward/activities"
	"steward/activities/recovery/durable"
	"steward/activities/recovery/service"
	"steward/workflows/release/plan"
)

// The test binary is also the launcher of services, and a recovery process that is killed on the way.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "launch":
			fmt.Fprintln(os.Stderr, service.Launch(os.Args[2]))
			os.Exit(1)
		case "kill-matrix":
			fmt.Fprintln(os.Stderr, killedProcess(os.Args[2]))
			os.Exit(1)
		}
	}
	code := m.Run()
	if builtService.dir != "" {
		_ = os.RemoveAll(builtService.dir)
	}
	os.Exit(code)
}

// builtService is the fixture service, built once.
var builtService struct {
	once sync.Once
	dir  string
	err  error
}

func serviceProgram(t testing.TB) string {
	t.Helper()
	builtService.once.Do(func() {
		if builtService.dir, builtService.err = os.MkdirTemp("", "steward-service-"); builtService.err != nil {
			return
		}
		cmd := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Join(builtService.dir, "service"), "./testdata/service")
		if out, err := cmd.CombinedOutput(); err != nil {
			builtService.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	if builtService.err != nil {
		t.Fatal(builtService.err)
	}
	return filepath.Join(builtService.dir, "service")
}

// lab is an instance with the fixture service.
type lab struct {
	*Recovery
	t    testing.TB
	plan plan.Plan
	i    instance
	a    string
}

const labSession = "s1"

func labOptions(root string) Options {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return Options{
		Root: root, Launcher: []string{exe, "launch"}, Worker: activities.Worker{Release: "test"}, Tries: 3, TryEvery: 20 * time.Millisecond,
		Log: slog.New(slog.DiscardHandler),
	}
}

// newLab installs release A of the fixture service.
func newLab(t testing.TB) *lab {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join(dir, "recovery")
	r, err := New(labOptions(root))
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{Recovery: r, t: t, plan: labPlan(t, dir), i: r.instance("fixture")}
	t.Cleanup(l.end)
	l.a = l.release(map[string]any{"name": "A"})
	if _, err := r.installStored(t.Context(), l.i, l.plan, l.a); err != nil {
		t.Fatal(err)
	}
	return l
}

// end stops what runs and makes the store removable.
func (l *lab) end() {
	ctx := context.WithoutCancel(l.t.Context())
	for _, s := range []plan.Service{l.plan.Service, candidateService(l.plan)} {
		if err := l.provider(s).Stop(ctx, s.Label, time.Second); err != nil {
			l.t.Error(err)
		}
	}
	_ = filepath.WalkDir(l.Root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
}

func labPlan(t testing.TB, dir string) plan.Plan {
	t.Helper()
	command := func(args ...string) map[string]any {
		return map[string]any{"argv": append([]string{"service"}, args...)}
	}
	passes := map[string]any{"command": command("exit", "0")}
	port, candidatePort := freePort(t), freePort(t)
	raw, err := json.Marshal(map[string]any{
		"instance": "fixture",
		"source":   map[string]any{"repository": filepath.Join(dir, "repository"), "revision": "0123456789012345678901234567890123456789"},
		"build":    map[string]any{"argv": []string{"true"}, "output": "out"},
		"gates": map[string]any{
			"type": command("exit", "0"), "architecture": command("exit", "0"),
			"architecture_sync": command("exit", "0"), "bootstrap": command("exit", "0"),
		},
		"canaries": map[string]any{"recovery_restart": passes, "mcp": passes, "scheduler": passes, "supervisor": passes, "controller": passes},
		"service": map[string]any{
			"label": "fixture-" + strconv.Itoa(port), "argv": []string{"service", "{port}", "{database}", "{release}/service.json"},
			"home": filepath.Join(dir, "home"), "port": port, "token_file": "token",
			"ready":         map[string]any{"http": map[string]any{"url": "http://127.0.0.1:{port}/ready"}},
			"verify":        []any{map[string]any{"http": map[string]any{"url": "http://127.0.0.1:{port}/verify"}}},
			"database":      map[string]any{"file": "data.db", "backward_compatible": true},
			"start_timeout": "5s", "stop_timeout": "5s",
		},
		"candidate": map[string]any{
			"home": filepath.Join(dir, "candidate"), "port": candidatePort, "label": "candidate-" + strconv.Itoa(candidatePort),
		},
		"soak": map[string]any{"live_proof": map[string]any{"kind": "command", "command": command("exit", "0")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p, problems := plan.Decode(raw)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return p.Normalize()
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	return address.Port
}

// release stores a build of the fixture service with settings of its own.
func (l *lab) release(settings map[string]any) string {
	l.t.Helper()
	dir := l.t.TempDir()
	if err := durable.CopyFile(serviceProgram(l.t), filepath.Join(dir, "service"), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := durable.WriteJSON(filepath.Join(dir, "service.json"), settings); err != nil {
		l.t.Fatal(err)
	}
	tree, err := l.store.Import(dir, l.plan.Service.Home)
	if err != nil {
		l.t.Fatal(err)
	}
	return tree
}

func (l *lab) operations() Operations {
	return Operations{Recovery: l.Recovery, Beat: func(context.Context, activities.OperationProgress) error { return nil }}
}

// ref is the reference of the session, with the release that is active now as the stable one.
func (l *lab) ref(release string) activities.ReleaseRef {
	l.t.Helper()
	authority := l.authority()
	stable, err := l.identity(l.t.Context(), authority.Active)
	if err != nil {
		l.t.Fatal(err)
	}
	return activities.ReleaseRef{Session: labSession, Plan: l.plan, Release: release, Stable: stable}
}

func (l *lab) input(release, operation string) activities.OperationInput {
	l.t.Helper()
	return activities.OperationInput{ReleaseRef: l.ref(release), Operation: operation, Generation: 1, Reason: "session"}
}

func (l *lab) cutover(release string) activities.OperationResult {
	l.t.Helper()
	in := l.input(release, "c1")
	in.Reason = ""
	result, err := l.operations().Cutover(l.t.Context(), in)
	if err != nil {
		l.t.Fatal(err)
	}
	return result
}

func (l *lab) authority() Authority {
	l.t.Helper()
	a, err := l.i.authority()
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

func (l *lab) journal() *journal {
	l.t.Helper()
	j, err := l.i.journal(labSession)
	if err != nil {
		l.t.Fatal(err)
	}
	return j
}

type who struct {
	Name    string `json:"name"`
	Release string `json:"release"`
	Epoch   uint64 `json:"epoch"`
	PID     int    `json:"pid"`
}

// serving is who answers on the live port; empty when nobody does.
func (l *lab) serving() who {
	var w who
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/identity", l.plan.Service.Port)) //nolint:noctx // a loopback fixture
	if err != nil {
		return w
	}
	defer response.Body.Close()
	_ = json.NewDecoder(response.Body).Decode(&w)
	return w
}

// write asks the service for one row and returns the error that it answers with.
func (l *lab) write() error {
	response, err := http.Post(fmt.Sprintf("http://127.0.0.1:%d/rows", l.plan.Service.Port), "", nil) //nolint:noctx // a loopback fixture
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(string(bytes.TrimSpace(body)))
	}
	return err
}

func (l *lab) mustWrite(n int) {
	l.t.Helper()
	for range n {
		if err := l.write(); err != nil {
			l.t.Fatal(err)
		}
	}
}

// rows is how many rows are committed.
func (l *lab) rows() int {
	l.t.Helper()
	db, err := sql.Open("sqlite", databaseFile(l.plan.Service))
	if err != nil {
		l.t.Fatal(err)
	}
	defer db.Close()
	var n int
	if err := db.QueryRowContext(l.t.Context(), "SELECT count(*) FROM rows").Scan(&n); err != nil {
		l.t.Fatal(err)
	}
	return n
}

// settledOn proves that exactly the release serves, that no lock and no fence stand, and that new work is admitted.
func (l *lab) settledOn(tree string) {
	l.t.Helper()
	if got := l.serving(); got.Release != tree {
		l.t.Errorf("release %.12s serves (%s), want %.12s", got.Release, got.Name, tree)
	}
	if active := l.authority().Active.Tree; active != tree {
		l.t.Errorf("release %.12s is active, want %.12s", active, tree)
	}
	if record, err := l.i.locked(); err != nil || record != nil {
		l.t.Errorf("a lock record stands: %+v, %v", record, err)
	}
	if err := l.write(); err != nil {
		l.t.Errorf("no new work is admitted: %v", err)
	}
}
