package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities/recovery/durable"
	"steward/activities/recovery/home"
)

// Steward releases itself. A run in progress on A goes on with B, which becomes known-good by a real acceptance run; a worker that
// was frozen before the switch and is woken after it ends and clicks nothing; and a release that goes back in its soak hands its
// runs back.
func TestSelfHosting(t *testing.T) {
	h := start(t).selfHost(t)
	build := copied
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		build = h.compiled(t)
	}
	began := time.Now()
	lap := func(what string) { t.Logf("%6.1fs  %s", time.Since(began).Seconds(), what) }

	h.command(t, "recovery", "install", "--plan", h.plan(t, h.commit(t, build("A"))))
	a := h.owner(t)
	recovering := h.process(t, "recovery")
	lap("A is installed")

	open, conversation := h.inTurn(t, "home")
	stray, strayed, strayConversation := h.stray(t, a)
	require.NoError(t, stray.Process.Signal(syscall.SIGSTOP))
	h.command(t, "release", "start", "--plan", h.plan(t, h.commit(t, build("B"))))
	h.phase(t, "soaking")
	b := h.owner(t)
	require.NotEqual(t, a.Release, b.Release)
	require.Greater(t, b.Epoch, a.Epoch)
	require.False(t, a.Owner.Lives(), "A is gone")
	lap("B soaks")

	require.NoError(t, h.lab.Release(strayConversation, "go"))
	require.NoError(t, stray.Process.Signal(syscall.SIGCONT))
	require.NoError(t, h.lab.Release(conversation, "go"))
	ledger := h.finished(t, open, conversation)
	require.Equal(t, []string{a.Release, b.Release}, []string{ledger[0].Release, ledger[1].Release})
	lap("the run of A ended on B")
	require.Error(t, stray.Wait(), "a stale worker ends by itself")
	require.Len(t, h.lab.Record(strayConversation), 1)
	require.NoError(t, h.stack.client.TerminateWorkflow(context.Background(), strayed.GetID(), "", "its login is gone"))
	lap("the woken worker ended and clicked nothing")

	good := h.phase(t, "known_good")
	proof := good.Soak.Proof
	require.True(t, proof.Passed)
	require.Len(t, proof.Turns, 3)
	require.Less(t, proof.Turns[0].Incarnation, proof.Turns[2].Incarnation)
	require.Equal(t, b.Release, good.Release)
	lap(fmt.Sprintf("B is known-good; outage %d ms, latency %d ms", good.Switch.OutageMillis, proof.LatencyMillis))

	h.command(t, "release", "start", "--plan", h.plan(t, h.commit(t, build("C"))))
	c := h.phase(t, "soaking")
	require.Equal(t, c.Release, h.owner(t).Release)
	open, conversation = h.inTurn(t, "home")
	h.command(t, "release", "abort", "steward", "--reason", "the test says so")
	h.phase(t, "rolled_back")
	require.Equal(t, b.Release, h.owner(t).Release)
	require.NoError(t, h.lab.Release(conversation, "go"))
	ledger = h.finished(t, open, conversation)
	require.Equal(t, []string{c.Release, b.Release}, []string{ledger[0].Release, ledger[1].Release})
	lap("C went back in its soak, B ended the run")

	if os.Getenv("STEWARD_TEST_FULL") != "" {
		h.brokenReleaseGoesBack(t, b)
		lap("D is broken, B serves again")
		terminate(recovering)
		h.goesOnUnderUp(t)
		lap("steward up runs server and recovery, and the same worker goes on")
		h.upgradedUnderTheWorker(t)
		lap("another build of steward up took over, and the same worker goes on")
	}
}

// goesOnUnderUp ends the server and starts `steward up`: the worker is recovery's, and was never stopped.
func (h *selfHosted) goesOnUnderUp(t *testing.T) {
	t.Helper()
	before := h.owner(t)
	open, conversation := h.inTurn(t, "home")
	terminate(h.server)
	h.up(t)
	h.stack.client = h.installation.client(t)
	require.NoError(t, h.lab.Release(conversation, "go"))
	h.finished(t, h.stack.client.GetWorkflow(context.Background(), open.GetID(), ""), conversation)
	require.Equal(t, before, h.owner(t))
}

// brokenReleaseGoesBack releases what serves as a candidate and not in the live lane, with the running worker frozen.
func (h *selfHosted) brokenReleaseGoesBack(t *testing.T, running home.Incarnation) {
	t.Helper()
	open, conversation := h.inTurn(t, "home")
	h.command(t, "release", "start", "--plan", h.plan(t, h.commit(t, onlyAsCandidate()), func(p map[string]any) {
		service := maps.Clone(p["service"].(map[string]any))
		service["argv"] = append([]string{"bin/start"}, service["argv"].([]string)[1:]...)
		p["service"], p["cutover"] = service, "manual"
	}))
	h.phase(t, "cutover_eligible")
	require.NoError(t, syscall.Kill(h.owner(t).Owner.PID, syscall.SIGSTOP))
	h.command(t, "release", "promote", "steward", "--reason", "the test says so")
	h.phase(t, "rolled_back")
	require.Equal(t, running.Release, h.owner(t).Release)
	require.NoError(t, h.lab.Release(conversation, "go"))
	h.finished(t, open, conversation)
}

// upgradedUnderTheWorker lets another build of the command take server and recovery over while a run is open.
func (h *selfHosted) upgradedUnderTheWorker(t *testing.T) {
	t.Helper()
	before := h.owner(t)
	open, conversation := h.inTurn(t, "home")
	build := filepath.Join(t.TempDir(), "steward")
	require.NoError(t, durable.CopyFile(binary, build, 0o700))
	f, err := os.OpenFile(build, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString("another build")
	require.NoError(t, errors.Join(err, f.Close()))

	old := h.installation.cmd
	next := h.process(t, "up")
	require.NotNil(t, next.Process)
	require.Error(t, next.Wait(), "the same build does not take over")
	h.installation.cmd = nil
	upgrade := h.run(t, "up")
	upgrade.Path = build
	upgrade.Stdout, upgrade.Stderr = os.Stderr, os.Stderr
	require.NoError(t, upgrade.Start())
	t.Cleanup(func() { terminate(upgrade) })
	require.NoError(t, old.Wait(), "the old one ends")
	require.Eventually(t, func() bool {
		var record struct{ Current, Previous string }
		return durable.ReadJSON(filepath.Join(h.data(), "platform/platform.json"), &record) == nil && record.Previous != ""
	}, 2*time.Minute, 100*time.Millisecond, "the new build does not take over")
	h.stack.client = h.installation.client(t)
	require.NoFileExists(t, filepath.Join(h.data(), "admission.json"))
	require.NoError(t, h.lab.Release(conversation, "go"))
	h.finished(t, h.stack.client.GetWorkflow(context.Background(), open.GetID(), ""), conversation)
	require.Equal(t, before, h.owner(t))
}
