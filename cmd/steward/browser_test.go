package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"steward/integration/chatlab"
)

// fixture is a chat site, its profile and settings with one login for it.
type fixture struct {
	*chatlab.Server
	profile, login string // the site's profile, the profile directory
	args           []string
}

func newFixture(t *testing.T, browser string) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser")
	}
	isolated(t)
	dir := t.TempDir()
	site, err := chatlab.Start(chatlab.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = site.Close() })
	f := &fixture{Server: site, profile: filepath.Join(dir, "sites", "chatlab.yaml"), login: filepath.Join(dir, "login")}
	require.NoError(t, os.MkdirAll(filepath.Dir(f.profile), 0o700))
	f.write(t, f.URL(), "")
	settings := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("browsers: [{name: lab, site: chatlab, profile_dir: %s%s}]\n", f.login, browser)
	require.NoError(t, os.WriteFile(settings, []byte(text), 0o600))
	f.args = []string{"--config", settings, "--data-dir", filepath.Join(dir, "data"), "--sites-dir", filepath.Dir(f.profile)}
	return f
}

func (f *fixture) write(t *testing.T, origin, extra string) {
	t.Helper()
	text := fmt.Sprintf("site: chatlab\nextends: chatgpt\nversion: 1\norigins: [%q]\ntimings: {open: 3s}\n%s", origin, extra)
	require.NoError(t, os.WriteFile(f.profile, []byte(text), 0o600))
}

func (f *fixture) run(ctx context.Context, args ...string) (string, error) {
	return command(ctx, "", append(f.args, args...)...)
}

func TestProbeNamesWhatDriftedAndWhereThePictureIs(t *testing.T) {
	f := newFixture(t, ", headed: false")
	out, err := f.run(t.Context(), "browser", "probe")
	require.NoError(t, err, out)
	require.Equal(t, "lab: would send now\n", out)

	f.write(t, f.URL(), "page: {form: ['form.an-older-page']}\n")
	out, err = f.run(t.Context(), "browser", "probe")
	require.Equal(t, exitFailed, exitCode(err), out)
	t.Log(out)
	require.Contains(t, out, "lab: would not send now: drift: no longer recognised: form; picture: ")
	_, rest, _ := strings.Cut(out, "picture: ")
	file, _, _ := strings.Cut(rest, ";")
	require.FileExists(t, file)
	if shots := os.Getenv("PROBE_SHOTS"); shots != "" {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(shots, "drift.png"), data, 0o600))
	}
	_, err = f.run(t.Context(), "browser", "probe", "--browser", "nobody")
	require.Equal(t, exitNotFound, exitCode(err))
	require.Empty(t, f.Records())
}

// display starts a screen that nobody sees, for this test.
func display(t *testing.T) {
	t.Helper()
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		t.Skip("needs Xvfb")
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd := exec.Command(path, "-displayfd", "3", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{w}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.NoError(t, w.Close())
	number, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	t.Setenv("DISPLAY", ":"+strings.TrimSpace(number))
}

func TestLoginWaitsForItsPlainBrowserAndKeepsWorkersOut(t *testing.T) {
	f := newFixture(t, "")
	display(t)
	visited := make(chan struct{}, 100)
	site := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { visited <- struct{}{} }))
	t.Cleanup(site.Close)
	f.write(t, site.URL, "")
	done := make(chan error, 1)
	go func() {
		_, err := f.run(context.WithoutCancel(t.Context()), "browser", "login", "--browser", "lab")
		done <- err
	}()
	pid := 0
	require.Eventually(t, func() bool {
		owner, err := os.Readlink(filepath.Join(f.login, "SingletonLock"))
		if err == nil {
			pid, err = strconv.Atoi(owner[strings.LastIndexByte(owner, '-')+1:])
		}
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	require.NoError(t, err)
	for _, flag := range []string{"automation", "remote-debugging", "headless"} {
		require.NotContains(t, string(line), flag)
	}
	require.Contains(t, string(line), site.URL)
	<-visited
	out, err := f.run(t.Context(), "browser", "probe")
	require.Equal(t, exitFailed, exitCode(err))
	require.Contains(t, out, "browser profile is in use")
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	require.Eventually(t, func() bool { // a browser that only starts takes no notice
		return errors.Is(unix.Kill(pid, unix.SIGTERM), unix.ESRCH) || len(done) > 0
	}, 30*time.Second, 200*time.Millisecond)
	require.NoError(t, <-done)
}
