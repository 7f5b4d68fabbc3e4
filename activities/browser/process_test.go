package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"steward/config/sites"
)

func openIdle(t *testing.T, dir string) (*Browser, error) {
	t.Helper()
	registry, err := sites.Load("")
	require.NoError(t, err)
	return Open(t.Context(), Options{Name: "idle", Sites: registry, ProfileDir: dir, Arm: &armer{}})
}

func TestPublic_B29_ASecondWorkerOnAProfileIsRefused(t *testing.T) {
	dir := filepath.Join(tempDir(t), "profile")
	first, err := openIdle(t, dir)
	require.NoError(t, err)
	_, err = openIdle(t, dir)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, strconv.Itoa(os.Getpid()))
	closeBrowser(t, first)
	again, err := openIdle(t, dir)
	require.NoError(t, err)
	closeBrowser(t, again)
}

func TestPublic_B28_AStaleBrowserLockIsClearedAndALiveOneRefused(t *testing.T) {
	host, err := os.Hostname()
	require.NoError(t, err)
	dead := exec.Command("true")
	require.NoError(t, dead.Run())
	for name, c := range map[string]struct {
		owner   string
		refused bool
	}{
		"dead":         {fmt.Sprintf("%s-%d", host, dead.Process.Pid), false},
		"live":         {fmt.Sprintf("%s-%d", host, os.Getppid()), true},
		"another host": {fmt.Sprintf("elsewhere-%d", dead.Process.Pid), true},
		"no process":   {"nonsense", true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(tempDir(t), "profile")
			require.NoError(t, os.MkdirAll(dir, 0o700))
			require.NoError(t, os.Symlink(c.owner, filepath.Join(dir, "SingletonLock")))
			require.NoError(t, os.Symlink("/nowhere", filepath.Join(dir, "SingletonSocket")))
			b, err := openIdle(t, dir)
			if c.refused {
				require.ErrorIs(t, err, ErrInUse)
				return
			}
			require.NoError(t, err)
			closeBrowser(t, b)
			_, err = os.Lstat(filepath.Join(dir, "SingletonSocket"))
			require.ErrorIs(t, err, os.ErrNotExist)
		})
	}
}

// TestPublic_B28_ABrowserThatWasKilledLeavesItsLock starts a browser on the profile directory that is not ours.
func TestPublic_B28_ABrowserThatWasKilledLeavesItsLock(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a browser")
	}
	dir := filepath.Join(tempDir(t), "profile")
	cmd, _ := personal(t, dir)
	_, err := openIdle(t, dir)
	require.ErrorIs(t, err, ErrInUse)
	require.ErrorContains(t, err, strconv.Itoa(cmd.Process.Pid), "it says which process to close")
	require.True(t, alive(cmd.Process.Pid), "and leaves it alone")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	_, err = os.Readlink(filepath.Join(dir, "SingletonLock"))
	require.NoError(t, err, "the lock is left over")
	b, err := openIdle(t, dir)
	require.NoError(t, err)
	_, err = b.engine.session(t.Context())
	require.NoError(t, err)
	closeBrowser(t, b)
}

// TestAKilledWorkerLeavesNoBrowser kills a worker process that drives a browser, once as it is and once with a driver that
// is frozen and so cannot end the browser itself.
func TestAKilledWorkerLeavesNoBrowser(t *testing.T) {
	if dir := os.Getenv("BROWSER_TEST_WORKER"); dir != "" {
		b, err := openIdle(t, dir)
		require.NoError(t, err)
		s, err := b.engine.session(t.Context())
		require.NoError(t, err)
		require.NoError(t, json.NewEncoder(os.Stdout).Encode([]process{s.driver, s.browser}))
		time.Sleep(time.Hour)
	}
	if testing.Short() {
		t.Skip("needs a browser")
	}
	for _, frozen := range []bool{false, true} {
		t.Run(fmt.Sprintf("driver frozen %t", frozen), func(t *testing.T) {
			dir := filepath.Join(tempDir(t), "profile")
			cmd := exec.Command(os.Args[0], "-test.run=^TestAKilledWorkerLeavesNoBrowser$")
			cmd.Env = append(os.Environ(), "BROWSER_TEST_WORKER="+dir)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			line, err := bufio.NewReader(out).ReadBytes('\n')
			require.NoError(t, err)
			var left []process
			require.NoError(t, json.Unmarshal(line, &left))
			driver, browser := left[0], left[1]
			if frozen {
				require.NoError(t, unix.Kill(driver.PID, unix.SIGSTOP))
			}
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait()
			if frozen {
				require.True(t, browser.lives(), "nobody has ended it yet")
			}
			b, err := openIdle(t, dir)
			require.NoError(t, err)
			require.Eventually(t, func() bool { return !browser.lives() }, 5*time.Second, 20*time.Millisecond)
			_, err = b.engine.session(t.Context())
			require.NoError(t, err, "the profile is usable again")
			closeBrowser(t, b)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			require.NoError(t, driver.end(ctx))
		})
	}
}

func TestAnotherProcessWithTheSameIDIsNotKilled(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	require.NoError(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	dir := filepath.Join(tempDir(t), "profile")
	require.NoError(t, writeJSON(ownProcess(dir), process{PID: cmd.Process.Pid, Started: "1"}))
	require.NoError(t, endLeftover(t.Context(), dir))
	require.True(t, alive(cmd.Process.Pid))
}
