package integration

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"steward/activities/recovery/home"
	"steward/workflows/release/evidence"
	release "steward/workflows/release/policy"
)

// Who is killed.
const (
	killRecovery = "recovery"
	killServer   = "server"
	killStable   = "A"
	killNew      = "B"
)

// shortKills are the points of the short form.
var shortKills = []string{"recovery at cutover_attempting", "server at candidate_verified", "B at soaking"}

// Recovery, A, B and the server are killed at every phase boundary of a session, and on the way back from a soak. After each: exactly one owner serves, no
// committed row is lost, and the session ends typed.
func TestReleaseSessionSurvivesKills(t *testing.T) {
	slots := make(chan struct{}, 3)
	for _, phase := range append(slices.Clone(release.Order), release.RolledBack) {
		if phase == release.Starting {
			continue
		}
		for _, victim := range []string{killRecovery, killServer, killStable, killNew} {
			name := victim + " at " + string(phase)
			if !lives(victim, phase) || os.Getenv("STEWARD_TEST_FULL") == "" && !slices.Contains(shortKills, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				start(t)
				t.Parallel()
				slots <- struct{}{}
				defer func() { <-slots }()
				killAt(t, phase, victim)
			})
		}
	}
}

// lives tells whether there is such a process in a phase.
func lives(victim string, phase release.Phase) bool {
	if phase == release.RolledBack {
		return victim != killStable
	}
	n := slices.Index(release.Order, phase)
	switch victim {
	case killStable:
		return n <= slices.Index(release.Order, release.CutoverAttempting)
	case killNew:
		return n >= slices.Index(release.Order, release.CandidateBooted)
	}
	return true
}

func killAt(t *testing.T, phase release.Phase, victim string) {
	l := newReleaseLab(t)
	stop := l.writeRows()
	b := l.commit(map[string]any{"name": "B"})
	l.mustCommand("release", "start", "--plan", l.plan(b, func(p map[string]any) {
		p["deadlines"] = map[string]any{"person": "30s"} // a candidate that is gone leaves a check that could not tell
		if phase == release.CutoverEligible {
			p["cutover"] = "manual" // it would be over in no time
		}
		if phase == release.RolledBack {
			p["soak"].(map[string]any)["time"] = "30s"
		}
	}))
	var seen release.Phase
	if phase == release.RolledBack {
		seen = l.goingBack()
	} else {
		seen = l.reached(phase)
	}
	began := time.Now()
	l.kill(victim)
	if phase == release.CutoverEligible && victim != killStable {
		l.mustCommand("release", "promote", "shop", "--reason", "the test says so")
	} else if phase == release.CutoverEligible {
		l.promoteIfOpen()
	}
	state, status := l.ended(3 * time.Minute)
	t.Logf("killed in %s; ended as %s %s after %.1fs", seen, state.Shown(), state.End.Code, time.Since(began).Seconds())

	require.Contains(t, []release.Phase{release.KnownGood, release.RolledBack, release.Failed}, state.Phase)
	if phase == release.RolledBack {
		require.Equal(t, phase, state.Phase)
	}
	if state.Phase == release.Failed {
		require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_FAILED, status)
		require.NotEmpty(t, state.End.Code)
	} else {
		require.Equal(t, enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, status)
	}
	want := "A"
	if state.Phase == release.KnownGood {
		want = "B"
	}
	require.Eventually(t, func() bool { who, err := l.serving(); return err == nil && who.Name == want }, 40*time.Second, 100*time.Millisecond,
		"%s does not serve", want)
	require.Eventually(t, func() bool { return l.write() == nil }, 40*time.Second, 100*time.Millisecond, "no new work is admitted")
	stop()
	who, err := l.serving()
	require.NoError(t, err)
	now, err := home.ReadIncarnation(l.live())
	require.NoError(t, err)
	require.Equal(t, serving{want, now.Release, now.Epoch, now.Owner.PID}, who)
	require.Len(t, owners(t, l.live()), 1)
	require.Empty(t, owners(t, l.candidate()))
	require.GreaterOrEqual(t, l.rows(), int(l.acknowledged.Load()))
	require.NoFileExists(t, filepath.Join(l.data(), "recovery/instances/shop/lock.json"))
}

// goingBack aborts the soak and waits until the rollback has begun.
func (l *releaseLab) goingBack() release.Phase {
	l.Helper()
	l.reached(release.Soaking)
	l.mustCommand("release", "abort", "shop", "--reason", "the test says so")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if state, ok := l.state(5 * time.Second); ok && (state.Operation != nil && state.Operation.Kind == evidence.KindRollback || state.End != nil) {
			return release.RolledBack
		}
	}
	l.Fatal("the session does not go back")
	return ""
}

// kill kills one process with SIGKILL. What a person or `steward up` runs is started again; the services are recovery's to start.
func (l *releaseLab) kill(victim string) {
	l.Helper()
	switch victim {
	case killRecovery:
		require.NoError(l, l.recovery.Process.Kill())
		_ = l.recovery.Wait()
		l.startRecovery()
	case killServer:
		require.NoError(l, l.server.Process.Kill())
		_ = l.server.Wait()
		l.startServer()
	case killStable, killNew:
		dir := l.live()
		if now, err := home.ReadIncarnation(l.candidate()); victim == killNew && err == nil && now.Owner.Lives() {
			dir = l.candidate()
		}
		now, err := home.ReadIncarnation(dir)
		require.NoError(l, err)
		if now.Owner.Lives() {
			require.NoError(l, syscall.Kill(now.Owner.PID, syscall.SIGKILL))
		}
	}
}

// promoteIfOpen promotes a session that may have ended because of the kill.
func (l *releaseLab) promoteIfOpen() {
	_ = l.cmd("release", "promote", "shop", "--reason", "the test says so").Run()
}
