package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"go.temporal.io/sdk/client"

	"steward/activities"
	"steward/activities/browser"
	"steward/config/sites"
	"steward/worker"
)

// workerEnv turns this test binary into a browser worker: a process that a test may kill or freeze.
const workerEnv = "STEWARD_TEST_BROWSER_WORKER"

// binary is the steward command: STEWARD_TEST_BINARY, or built once for all tests.
var binary string

func TestMain(m *testing.M) {
	if spec := os.Getenv(workerEnv); spec != "" {
		if err := browserWorker([]byte(spec)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if spec := os.Getenv(simulatedEnv); spec != "" {
		if err := simulatedWorker([]byte(spec)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "steward-it-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = os.Getenv("STEWARD_TEST_BINARY")
	if binary == "" && !testingShort() {
		binary = filepath.Join(dir, "steward")
		build := exec.Command("go", "build", "-o", binary, "../cmd/steward")
		build.Stderr = os.Stderr
		if err := build.Run(); err != nil {
			fmt.Fprintln(os.Stderr, "build the command:", err)
			return 1
		}
	}
	defer stopShared()
	defer stopKillable()
	return m.Run()
}

// full skips a long test unless the full suite runs.
func full(t *testing.T) {
	t.Helper()
	if os.Getenv("STEWARD_TEST_FULL") == "" {
		t.Skip("takes long; set STEWARD_TEST_FULL=1")
	}
}

func testingShort() bool {
	for _, a := range os.Args[1:] {
		if a == "-test.short" || a == "-test.short=true" {
			return true
		}
	}
	return false
}

// workerSpec says what a browser worker process does.
type workerSpec struct {
	Address, Namespace string
	Name               string
	SitesDir           string
	ProfileDir         string
	// Point is where the process hits itself with Signal, once: the file Hit is written first. When Hit exists already
	// the process behaves normally.
	Point  string
	Signal int
	Hit    string
	// Traps is a folder. When the process comes to a point that has a file there, it renames the file to sprung and freezes.
	Traps string
}

// sprung is the file that says that a trap has caught its process.
const sprung = "sprung"

// browserWorker serves one browser until it is told to stop.
func browserWorker(data []byte) error {
	var spec workerSpec
	if err := json.Unmarshal(data, &spec); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	c, err := client.Dial(client.Options{HostPort: spec.Address, Namespace: spec.Namespace, Logger: log})
	if err != nil {
		return err
	}
	defer c.Close()
	registry, err := sites.Load(spec.SitesDir)
	if err != nil {
		return err
	}
	b, err := browser.Open(ctx, browser.Options{
		Name: spec.Name, Sites: registry, ProfileDir: spec.ProfileDir, NoSandbox: true, Arm: browser.NewArmer(c), Runs: browser.NewRuns(c),
		Worker: activities.Worker{Release: "test"}, Hook: spec.hook, Log: log,
	})
	if err != nil {
		return err
	}
	defer b.Close(context.Background())
	return worker.Run(ctx, c, worker.Options{
		Namespace: spec.Namespace, Host: "test", Roles: []worker.Role{worker.RoleBrowser},
		Browsers: map[string]worker.Browser{spec.Name: {Browser: b, ProfileDir: spec.ProfileDir}}, Log: log,
	})
}

func (w workerSpec) hook(point string) {
	if w.Traps != "" && os.Rename(filepath.Join(w.Traps, point), filepath.Join(w.Traps, sprung)) == nil {
		strikeSelf(syscall.SIGSTOP)
		return
	}
	if point != w.Point {
		return
	}
	f, err := os.OpenFile(w.Hit, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_ = f.Close()
	strikeSelf(syscall.Signal(w.Signal))
}

func strikeSelf(sig syscall.Signal) {
	// The signal may reach another thread first: this one goes no further before it has been woken.
	woken := make(chan os.Signal, 1)
	signal.Notify(woken, syscall.SIGCONT)
	_ = syscall.Kill(os.Getpid(), sig)
	<-woken
}
