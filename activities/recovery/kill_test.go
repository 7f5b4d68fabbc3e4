package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"steward/activities"
	"steward/workflows/release/evidence"
)

// killed is what a recovery process that will be killed does.
type killed struct {
	Root  string                    `json:"root"`
	Input activities.OperationInput `json:"input"`
	Kind  string                    `json:"kind"`
	// At is the step after which it kills itself.
	At string `json:"at"`
}

// killedProcess runs in a process of its own, which ends with SIGKILL at the step.
func killedProcess(argument string) error {
	var k killed
	if err := json.Unmarshal([]byte(argument), &k); err != nil {
		return err
	}
	r, err := New(labOptions(k.Root))
	if err != nil {
		return err
	}
	r.afterStep = func(step string) {
		if step == k.At {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	o := Operations{Recovery: r, Beat: func(context.Context, activities.OperationProgress) error { return nil }}
	do := o.Cutover
	if k.Kind == evidence.KindRollback {
		do = o.Rollback
	}
	result, err := do(context.Background(), k.Input)
	return fmt.Errorf("it was not killed at %s: %+v, %w", k.At, result.Failed, err)
}

// killOperation runs an operation in a process of its own and returns when that was killed at the step.
func (l *lab) killOperation(kind, release, at string) {
	l.t.Helper()
	in := l.input(release, kind+"-1")
	if kind == evidence.KindCutover {
		in.Reason = ""
	}
	argument, err := json.Marshal(killed{l.Root, in, kind, at})
	if err != nil {
		l.t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		l.t.Fatal(err)
	}
	out, err := exec.CommandContext(l.t.Context(), exe, "kill-matrix", string(argument)).CombinedOutput()
	if err == nil || !strings.Contains(err.Error(), "killed") {
		l.t.Fatalf("%v: %s", err, out)
	}
}

// writer writes rows all the time and counts those that the service said are committed.
type writer struct {
	acknowledged atomic.Int64
	stop         func()
}

func (l *lab) startWriter() *writer {
	w := &writer{}
	quit := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-quit:
				return
			default:
			}
			if l.write() == nil {
				w.acknowledged.Add(1)
			} else {
				time.Sleep(5 * time.Millisecond) // not served just now
			}
		}
	})
	w.stop = sync.OnceFunc(func() {
		close(quit)
		done.Wait()
	})
	l.t.Cleanup(w.stop)
	return w
}

// owners are the processes that run a program of the store with the live home.
func (l *lab) owners() []string {
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		l.t.Fatal(err)
	}
	var owners []string
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil && dir == l.plan.Service.Home {
			owners = append(owners, filepath.Base(filepath.Dir(link)))
		}
	}
	return owners
}

// short are the steps at which a kill is tried always; the others only in full tests.
var short = []string{
	evidence.StepPublished + unrecorded, evidence.StepVerified,
	evidence.StepRollbackStopped, evidence.StepRollbackPublished + unrecorded, evidence.StepRollbackCleared,
}

func points(steps []string) []string {
	var all []string
	for _, step := range steps {
		for _, point := range []string{step + unrecorded, step} {
			// The steps of a rollback are killed once more where it matters: when the authority changed unseen.
			if strings.HasPrefix(step, "rollback") && point != step && step != evidence.StepRollbackPublished ||
				point == evidence.StepCleared+unrecorded {
				continue
			}
			if os.Getenv("STEWARD_TEST_FULL") != "" || slices.Contains(short, point) {
				all = append(all, point)
			}
		}
	}
	return all
}

// A recovery process is killed after every step, and recovery alone is started again, with no Temporal: exactly one owner
// serves, no committed row is lost, and the session's folder says how it ended (argoproj/argo-rollouts#2235, #1665).
func TestKillMatrix(t *testing.T) {
	for _, at := range points(cutoverSteps) {
		t.Run("cutover/"+at, func(t *testing.T) { killedCutover(t, at) })
	}
	for _, at := range points(rollbackSteps) {
		t.Run("failed cutover/"+at, func(t *testing.T) {
			l := newLab(t)
			b := l.release(map[string]any{"name": "B", "broken": "unverified"})
			w := l.startWriter()
			l.killOperation(evidence.KindCutover, b, at)
			l.recovered(w, l.a, OutcomeRolledBack)
		})
		t.Run("rollback/"+at, func(t *testing.T) {
			l := newLab(t)
			b := l.release(map[string]any{"name": "B"})
			w := l.startWriter()
			if result := l.cutover(b); result.Failed != nil {
				t.Fatalf("%+v", result.Failed)
			}
			l.killOperation(evidence.KindRollback, b, at)
			l.recovered(w, l.a, OutcomeRolledBack)
		})
	}
}

// killedCutover kills recovery at one point of a cutover.
func killedCutover(t *testing.T, at string) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B", "write_at_start": true})
	want, outcome := l.a, OutcomeNotApplied
	switch n := slices.Index(cutoverSteps, strings.TrimSuffix(at, unrecorded)); {
	case at == evidence.StepVerified || at == evidence.StepCleared:
		want, outcome = b, OutcomeApplied
	case n >= slices.Index(cutoverSteps, evidence.StepPublished):
		outcome = OutcomeRolledBack
	}
	w := l.startWriter()
	l.killOperation(evidence.KindCutover, b, at)
	l.recovered(w, want, outcome)
}

// recovered starts recovery alone and proves what has to hold after it.
func (l *lab) recovered(w *writer, want, outcome string) {
	l.t.Helper()
	again, err := New(labOptions(l.Root))
	if err != nil {
		l.t.Fatal(err)
	}
	for range 2 { // twice is once
		if err := again.Recover(l.t.Context()); err != nil {
			l.t.Fatal(err)
		}
	}
	before := l.serving()
	l.settledOn(want)
	w.stop()
	if now := l.serving(); now != before {
		l.t.Errorf("the owner changed from %+v to %+v", before, now)
	}
	if owners := l.owners(); len(owners) != 1 {
		l.t.Errorf("the home has the owners %v", owners)
	}
	if n, acknowledged := l.rows(), int(w.acknowledged.Load())+1; n < acknowledged {
		l.t.Errorf("%d rows are left of %d that were acknowledged", n, acknowledged)
	}
	if j := l.journal(); j.Outcome != outcome {
		l.t.Errorf("the session says %q (%s), want %q", j.Outcome, j.Failure, outcome)
	}
	lane := l.look(l.t.Context(), l.i, labSession)
	if !lane.Observed || !lane.Settled || !lane.Serving.Ready || lane.Serving.Release != want {
		l.t.Errorf("a look at the lane: %+v", lane)
	}
}

// A and B are killed while recovery is away: the active release serves again.
func TestPublic_C24_ARestartStartsTheActiveReleaseOnly(t *testing.T) {
	l := newLab(t)
	b := l.release(map[string]any{"name": "B"})
	if result := l.cutover(b); result.Failed != nil {
		t.Fatalf("%+v", result.Failed)
	}
	for _, want := range []string{b, l.a} {
		l.mustWrite(2)
		n := l.rows()
		if err := syscall.Kill(l.serving().PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := l.Recover(t.Context()); err != nil {
			t.Fatal(err)
		}
		l.settledOn(want)
		if got := l.rows(); got != n+1 {
			t.Errorf("%d rows, want %d", got, n+1)
		}
		if want == b {
			if result, err := l.operations().Rollback(t.Context(), l.input(b, "r1")); err != nil || result.Failed != nil {
				t.Fatalf("%+v, %v", result.Failed, err)
			}
		}
	}
}
