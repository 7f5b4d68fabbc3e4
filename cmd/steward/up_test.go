package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/activities/recovery/durable"
	"steward/worker/embedded"
)

const (
	// asCommand makes this test binary the command; brokenBuild names a build whose recovery process ends at once.
	asCommand   = "TEST_AS_COMMAND"
	brokenBuild = "TEST_BROKEN_BUILD"
)

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	if exe, err := os.Executable(); err == nil && len(os.Args) > 1 && os.Args[1] == "recovery" {
		if build, err := digestOfFile(exe); err == nil && build == os.Getenv(brokenBuild) {
			os.Exit(1)
		}
	}
	main()
}

// builds are copies of this test binary that differ.
type builds struct {
	t    *testing.T
	home string
}

func (b builds) make(marker string) (path, digest string) {
	b.t.Helper()
	exe, err := os.Executable()
	require.NoError(b.t, err)
	path = filepath.Join(b.t.TempDir(), "steward")
	require.NoError(b.t, durable.CopyFile(exe, path, 0o700))
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(b.t, err)
	_, err = f.WriteString(marker)
	require.NoError(b.t, err)
	require.NoError(b.t, f.Close())
	digest, err = digestOfFile(path)
	require.NoError(b.t, err)
	return path, digest
}

func (b builds) data() string { return filepath.Join(b.home, "data") }

// up starts `steward up` of a build.
func (b builds) up(path, broken string) *exec.Cmd {
	b.t.Helper()
	cmd := exec.Command(path, "up", "--data-dir", b.data(), "--port", "0", "--ui-port", "-1", "--roles", "run")
	cmd.Env = append(os.Environ(), asCommand+"=1", brokenBuild+"="+broken, "HOME="+b.home)
	log, err := os.OpenFile(filepath.Join(b.home, "up.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(b.t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(b.t, cmd.Start())
	b.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			_ = cmd.Wait()
		}
		_ = log.Close()
		if b.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			b.t.Logf("%s", text[max(0, len(text)-6000):])
		}
	})
	return cmd
}

func (b builds) record() (p platformRecord) {
	_ = durable.ReadJSON(filepath.Join(b.data(), "platform", "platform.json"), &p)
	return p
}

// serves waits until a build is the current one and its worker runs, and returns who is `steward up`.
func (b builds) serves(build string, since time.Time) upOwner {
	b.t.Helper()
	var owner upOwner
	require.Eventually(b.t, func() bool {
		data, err := os.ReadFile(filepath.Join(b.data(), "platform", "up.lock"))
		return err == nil && json.Unmarshal(data, &owner) == nil && owner.Build == build && b.record().Current == build &&
			workerReady(b.data(), since) == nil
	}, 90*time.Second, 100*time.Millisecond, "build %.12s does not serve", build)
	return owner
}

func (b builds) client() client.Client {
	b.t.Helper()
	endpoint, err := embedded.ReadEndpoint(filepath.Join(b.data(), "server"))
	require.NoError(b.t, err)
	c, err := client.Dial(client.Options{HostPort: endpoint.Address, Namespace: endpoint.Namespace})
	require.NoError(b.t, err)
	b.t.Cleanup(c.Close)
	return c
}

// A new build of `steward up` takes over from the one that runs; one that does not become healthy gives way to the last build
// again; and none is tried while a release is under way. What the server holds stays.
func TestUpgradeOfServerAndRecovery(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers")
	}
	isolated(t)
	b := builds{t, t.TempDir()}
	first, one := b.make("1")
	second, two := b.make("2")
	third, three := b.make("3")

	began := time.Now()
	old := b.up(first, "")
	b.serves(one, began)
	run, err := b.client().ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: "kept", TaskQueue: "nobody"}, "Kept")
	require.NoError(t, err)

	// A release is under way: nothing is touched.
	session := filepath.Join(b.data(), "recovery/instances/shop/sessions/s1/frozen.json")
	require.NoError(t, durable.WriteJSON(session, map[string]string{}))
	refused := b.up(second, "")
	_ = refused.Wait()
	require.Equal(t, exitRefused, refused.ProcessState.ExitCode())
	require.Equal(t, one, b.serves(one, began).Build)
	require.NoError(t, os.RemoveAll(filepath.Join(b.data(), "recovery/instances/shop")))

	began = time.Now()
	now := b.up(second, three)
	require.Equal(t, now.Process.Pid, b.serves(two, began).PID)
	require.NoError(t, old.Wait(), "the old one ends well")
	require.Equal(t, platformRecord{Current: two, Previous: one}, b.record())
	kept := func() {
		t.Helper()
		_, err := b.client().DescribeWorkflowExecution(context.Background(), run.GetID(), run.GetRunID())
		require.NoError(t, err)
	}
	kept()

	// A broken build gives way to the one before it.
	began = time.Now()
	broken := b.up(third, three)
	require.Equal(t, broken.Process.Pid, b.serves(two, began).PID)
	require.Equal(t, platformRecord{Current: two, Previous: one}, b.record())
	kept()
}
