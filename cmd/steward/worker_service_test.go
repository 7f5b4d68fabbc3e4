package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities/recovery/home"
)

// asService makes this process look like a service that recovery started in a home.
func asService(t *testing.T, dir string, epoch uint64) {
	t.Helper()
	t.Setenv(home.EnvHome, dir)
	t.Setenv(home.EnvEpoch, strconv.FormatUint(epoch, 10))
	t.Setenv(home.EnvRelease, "tree")
}

func TestACandidateThatWouldWorkInOtherFoldersIsRefused(t *testing.T) {
	isolated(t)
	dir := t.TempDir()
	require.NoError(t, home.MarkCandidate(dir, "s1"))
	asService(t, dir, 1)
	_, err := command(t.Context(), "", "worker", "--data-dir", t.TempDir())
	require.ErrorContains(t, err, "write --data-dir {home} in the plan")
}

func TestAWorkerThatIsOvertakenEnds(t *testing.T) {
	isolated(t)
	dir := t.TempDir()
	require.NoError(t, home.Acquire(dir, 1, "tree", home.ThisProcess()))
	claimed := &home.Claimed{Dir: dir, Claim: home.Claim{Epoch: 1, Release: "tree"}}
	ctx, done := whileOwner(t.Context(), claimed)
	defer done()
	time.Sleep(2 * claimEvery) // looks pass
	require.NoError(t, ctx.Err())
	require.NoError(t, home.Fence(dir, 2, "next"))
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on")
	}
	require.ErrorIs(t, stale(ctx), home.ErrStale)
}

func TestAWorkerThatIsToldToStopIsNotStale(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ctx, done := whileOwner(ctx, nil)
	defer done()
	cancel()
	<-ctx.Done()
	require.NoError(t, stale(ctx))
}

func TestWorkerReadyIsTheWordOfTheOwner(t *testing.T) {
	isolated(t)
	dir := t.TempDir()
	ready := func() int {
		_, err := command(t.Context(), "", "worker", "ready", "--data-dir", dir)
		return exitCode(err)
	}
	require.Equal(t, exitInconclusive, ready(), "nobody has said anything")
	self := home.ThisProcess()
	record := func(pid int) {
		require.NoError(t, writeFile(filepath.Join(dir, "worker.json"), []byte(`{"pid": `+strconv.Itoa(pid)+`}`)))
	}
	record(self.PID)
	require.Equal(t, exitInconclusive, ready(), "nobody owns the folder")
	require.NoError(t, home.Acquire(dir, 1, "tree", self))
	require.Equal(t, 0, ready())
	long := time.Now().Add(-2 * silence)
	require.NoError(t, os.Chtimes(workerFile(dir), long, long))
	require.Equal(t, exitInconclusive, ready(), "it hangs")
	ctx, done := whileOwner(t.Context(), &home.Claimed{Dir: dir, Claim: home.Claim{Epoch: 1, Release: "tree"}})
	require.Eventually(t, func() bool { return ready() == 0 }, 20*time.Second, 100*time.Millisecond, "it is heard of again")
	require.NoError(t, ctx.Err())
	done()
	record(self.PID + 1)
	require.Equal(t, exitInconclusive, ready(), "the word of the one before")
}
