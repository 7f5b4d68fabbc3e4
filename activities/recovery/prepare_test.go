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
	"testing"
	"time"

	"steward/activities"
	"steward/activities/recovery/durable"
	"steward/activities/recovery/home"
	"steward/workflows/machine/strict"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// repository makes the plan's repository, whose build copies the fixture service and the settings of the commit.
func (l *lab) repository() {
	l.t.Helper()
	dir := l.plan.Source.Repository
	l.t.Setenv("FIXTURE_SERVICE", serviceProgram(l.t))
	l.plan.Build = plan.Build{Argv: []string{"sh", "build.sh"}, Output: "out", Timeout: l.plan.Build.Timeout, Env: []string{"FIXTURE_SERVICE"}}
	l.git("", "init", "-q", "-b", "main", dir)
	build := "set -e\nmkdir -p out\ncp \"$FIXTURE_SERVICE\" out/service\ncp service.json out/\n"
	if err := os.WriteFile(filepath.Join(dir, "build.sh"), []byte(build), 0o600); err != nil {
		l.t.Fatal(err)
	}
	l.commit(map[string]any{"name": "B"})
}

// commit makes a revision with the settings and puts it into the plan.
func (l *lab) commit(settings map[string]any) {
	l.t.Helper()
	dir := l.plan.Source.Repository
	if err := durable.WriteJSON(filepath.Join(dir, "service.json"), settings); err != nil {
		l.t.Fatal(err)
	}
	l.git(dir, "add", ".")
	l.git(dir, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "revision")
	l.plan.Source.Revision = strings.TrimSpace(l.git(dir, "rev-parse", "HEAD"))
}

func (l *lab) git(dir string, args ...string) string {
	l.t.Helper()
	cmd := exec.CommandContext(context.Background(), "git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.t.Fatalf("git %v: %v %s", args, err, out)
	}
	return string(out)
}

// built freezes and builds, and returns the reference with which a session goes on.
func (l *lab) built() activities.ReleaseRef {
	l.t.Helper()
	ref := l.ref("")
	frozen, err := l.Freeze(l.t.Context(), activities.FreezeInput{ReleaseRef: ref})
	if err != nil || frozen.Failed != nil {
		l.t.Fatalf("%+v, %v", frozen.Failed, err)
	}
	ref.Source, ref.Stable = frozen.Source, frozen.Stable
	built, err := l.Build(l.t.Context(), activities.BuildInput{ReleaseRef: ref})
	if err != nil || built.Failed != nil {
		l.t.Fatalf("%+v, %v", built.Failed, err)
	}
	ref.Release = built.Release
	return ref
}

func TestReleaseOfARevisionFromSourceToCutover(t *testing.T) {
	l := newLab(t)
	l.repository()
	l.mustWrite(4)
	before := l.serving()
	ref := l.built()
	for _, g := range l.plan.GateCommands() {
		got, err := l.Gate(t.Context(), activities.GateInput{
			ReleaseRef: ref, Name: g.Name, Place: activities.PlaceSource, Check: plan.Check{Command: &g.Command},
		})
		if err != nil || got.Failed != nil || got.Receipt.Outcome != evidence.Passed || got.Receipt.Runner != ref.Release {
			t.Errorf("%s: %+v, %+v, %v", g.Name, got.Receipt, got.Failed, err)
		}
	}
	booted, err := l.BootCandidate(t.Context(), activities.BootCandidateInput{ReleaseRef: ref})
	if err != nil || booted.Failed != nil {
		t.Fatalf("%+v, %v", booted.Failed, err)
	}
	b := booted.Candidate
	if !b.Ready || b.Release != ref.Release || booted.Snapshot == "" || len(ref.Stable.Overlap(b)) != 0 || b.TokenDigest == "" {
		t.Errorf("candidate %+v shares %v with %+v", b, ref.Stable.Overlap(b), ref.Stable)
	}
	again, err := l.BootCandidate(t.Context(), activities.BootCandidateInput{ReleaseRef: ref})
	if err != nil || *again.Candidate.Process != *b.Process {
		t.Errorf("a repeated boot made another candidate: %+v, %v", again.Candidate, err)
	}
	for _, c := range l.plan.CanaryChecks() {
		got, err := l.Gate(t.Context(), activities.GateInput{ReleaseRef: ref, Name: c.Name, Place: activities.PlaceCandidate, Check: c.Check})
		if err != nil || got.Failed != nil || got.Receipt.Outcome != evidence.Passed {
			t.Errorf("%s: %+v, %+v, %v", c.Name, got.Receipt, got.Failed, err)
		}
	}
	if now, err := home.ReadIncarnation(l.plan.Candidate.Home); err != nil || now.Epoch != 2 {
		t.Errorf("the canary of the restart left the candidate in epoch %d, %v", now.Epoch, err)
	}
	verified, err := l.VerifyStable(t.Context(), activities.VerifyStableInput{ReleaseRef: ref})
	if err != nil || verified.Receipt.Outcome != evidence.Passed || verified.Stored != ref.Release || verified.Lane.Serving.Release != l.a {
		t.Errorf("%+v, %v", verified, err)
	}
	if _, err := l.StopCandidate(t.Context(), activities.StopCandidateInput{ReleaseRef: ref}); err != nil {
		t.Error(err)
	}
	if l.serving() != before {
		t.Error("the work on the candidate touched the service")
	}
	result, err := l.operations().Cutover(t.Context(), activities.OperationInput{ReleaseRef: ref, Operation: "c1", Generation: 1})
	if err != nil || result.Failed != nil {
		t.Fatalf("%+v, %v", result.Failed, err)
	}
	l.settledOn(ref.Release)
	closed := evidence.Session{
		ID: labSession, Revision: l.plan.Source.Revision, Release: ref.Release, Origin: plan.Person, Phase: "known_good", At: time.Now(),
	}
	if _, err := l.CloseSession(t.Context(), activities.CloseSessionInput{ReleaseRef: ref, Record: closed}); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{l.plan.Candidate.Home, l.i.sourceFolder(labSession)} {
		if _, err := os.Stat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is left: %v", gone, err)
		}
	}
	l.settledOn(ref.Release)
}

// The source changes after the freeze: nothing is built of it (fluxcd/flagger#30).
func TestSourceThatChangedAfterTheFreezeIsNotBuilt(t *testing.T) {
	l := newLab(t)
	l.repository()
	ref := l.built()
	if err := os.WriteFile(filepath.Join(l.i.sourceFolder(labSession), "service.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	built, err := l.Build(t.Context(), activities.BuildInput{ReleaseRef: ref})
	if err != nil || built.Failed == nil || built.Failed.Code != activities.ReleaseSourceChanged {
		t.Errorf("build: %+v, %v", built.Failed, err)
	}
	command := l.plan.Gates.Type
	gate, err := l.Gate(t.Context(), activities.GateInput{
		ReleaseRef: ref, Name: "type", Place: activities.PlaceSource, Check: plan.Check{Command: &command},
	})
	if err != nil || gate.Failed == nil || gate.Failed.Code != activities.ReleaseSourceChanged {
		t.Errorf("gate: %+v, %v", gate.Failed, err)
	}
	moved := ref
	moved.Source = "another"
	if built, err = l.Build(t.Context(), activities.BuildInput{ReleaseRef: moved}); err != nil || built.Failed == nil {
		t.Errorf("another tree: %+v, %v", built.Failed, err)
	}
}

func TestBuildsThatFailAreTyped(t *testing.T) {
	l := newLab(t)
	l.repository()
	tests := []struct {
		argv []string
		code string
	}{
		{[]string{"sh", "-c", "echo error: no; exit 2"}, activities.ReleaseBuildFailed},
		{[]string{"no-such-compiler"}, activities.ReleaseBuildFailed},
		{[]string{"true"}, activities.ReleaseOutputMissing},
		{[]string{"sh", "-c", "mkdir -p out; echo state=" + l.plan.Service.Home + " >out/config"}, "not_portable"},
	}
	frozen, err := l.Freeze(t.Context(), activities.FreezeInput{ReleaseRef: l.ref("")})
	if err != nil || frozen.Failed != nil {
		t.Fatalf("%+v, %v", frozen.Failed, err)
	}
	for _, test := range tests {
		l.plan.Build.Argv = test.argv
		ref := l.ref("")
		ref.Source = frozen.Source
		got, err := l.Build(t.Context(), activities.BuildInput{ReleaseRef: ref})
		if err != nil || got.Failed == nil || got.Failed.Code != test.code {
			t.Errorf("%v: %+v, %v", test.argv, got.Failed, err)
		}
	}
	missing := l.ref("")
	missing.Plan.Source.Revision = strings.Repeat("a", 40)
	if got, err := l.Freeze(t.Context(), activities.FreezeInput{ReleaseRef: missing}); err != nil || got.Failed == nil ||
		got.Failed.Code != activities.ReleaseSourceMissing {
		t.Errorf("a revision that is not there: %+v, %v", got.Failed, err)
	}
}

func TestRunnerIsThatOfThePlace(t *testing.T) {
	l := newLab(t)
	l.repository()
	ref := l.built()
	gate := func(place string, argv ...string) activities.GateResult {
		t.Helper()
		c := plan.Command{Argv: argv, Timeout: l.plan.Gates.Type.Timeout}
		got, err := l.Gate(t.Context(), activities.GateInput{ReleaseRef: ref, Name: "x", Place: place, Check: plan.Check{Command: &c}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := gate(activities.PlaceActive, "service", "exit", "0"); got.Receipt.Runner != l.a {
		t.Errorf("the live lane is verified by %.12s", got.Receipt.Runner)
	}
	if got := gate(activities.PlaceSource, "service", "exit", "75"); got.Receipt.Outcome != evidence.Inconclusive ||
		got.Receipt.Runner != ref.Release {
		t.Errorf("%+v", got.Receipt)
	}
	if got := gate(activities.PlaceSource, "service", "exit", "66"); got.Receipt.Outcome != evidence.NoData {
		t.Errorf("%+v", got.Receipt)
	}
	for _, program := range []string{"missing", "service.json"} {
		if got := gate(activities.PlaceSource, program); got.Failed == nil || got.Failed.Code != activities.ReleaseRunnerMissing {
			t.Errorf("runner %s: %+v, %+v", program, got.Failed, got.Receipt)
		}
	}
}

func TestCandidateThatDoesNotStartIsTyped(t *testing.T) {
	l := newLab(t)
	l.repository()
	l.commit(map[string]any{"name": "B", "broken": "exit"})
	ref := l.built()
	got, err := l.BootCandidate(t.Context(), activities.BootCandidateInput{ReleaseRef: ref})
	if err != nil || got.Failed == nil || got.Failed.Code != activities.ReleaseCandidateExited {
		t.Errorf("%+v, %v", got.Failed, err)
	}
	l.settledOn(l.a)
}

func TestFoldersOfOthersAreNoCandidateHome(t *testing.T) {
	l := newLab(t)
	l.repository()
	ref := l.built()
	foreign := filepath.Join(l.plan.Candidate.Home, "precious")
	if err := durable.WriteFile(foreign, []byte("x")); err != nil {
		t.Fatal(err)
	}
	got, err := l.BootCandidate(t.Context(), activities.BootCandidateInput{ReleaseRef: ref})
	if err != nil || got.Failed == nil || got.Failed.Code != activities.ReleaseLaneShared {
		t.Errorf("%+v, %v", got.Failed, err)
	}
	record := evidence.Session{ID: labSession}
	if _, err := l.CloseSession(t.Context(), activities.CloseSessionInput{ReleaseRef: ref, Record: record}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("a folder of others was removed: %v", err)
	}
}

func TestCandidateGetsNothingOfTheRunningService(t *testing.T) {
	l := newLab(t)
	l.repository()
	ref := l.built()
	ref.Plan.Service.Set = []plan.Variable{{Name: "STATE", Value: l.plan.Service.Home + "/state"}}
	got, err := l.BootCandidate(t.Context(), activities.BootCandidateInput{ReleaseRef: ref})
	if err != nil || got.Failed == nil || got.Failed.Code != activities.ReleaseLaneShared {
		t.Errorf("%+v, %v", got.Failed, err)
	}
	ref.Plan.Service.Set[0].Value = "{home}/state"
	if got, err = l.BootCandidate(t.Context(), activities.BootCandidateInput{ReleaseRef: ref}); err != nil || got.Failed != nil {
		t.Errorf("%+v, %v", got.Failed, err)
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", got.Candidate.Process.PID))
	if err != nil {
		t.Fatal(err)
	}
	for variable := range strings.SplitSeq(string(environment), "\x00") {
		if strings.Contains(variable, l.plan.Service.Home) || strings.HasPrefix(variable, "FIXTURE_SERVICE=") {
			t.Errorf("the candidate sees %s", variable)
		}
	}
}

func (l *lab) admit() activities.AdmitReleaseResult {
	l.t.Helper()
	raw, err := json.Marshal(l.plan)
	if err != nil {
		l.t.Fatal(err)
	}
	got, err := l.AdmitRelease(l.t.Context(), activities.AdmitReleaseInput{Start: raw, Session: "s2"})
	if err != nil {
		l.t.Fatal(err)
	}
	return got
}

func TestAdmissionTellsWhatWasBefore(t *testing.T) {
	l := newLab(t)
	l.repository()
	if got := l.admit(); len(got.Problems) > 0 || got.Resume != nil || got.Standing != "" || len(got.Earlier) > 0 {
		t.Fatalf("%+v", got)
	}
	ref := l.ref("")
	frozen, err := l.Freeze(t.Context(), activities.FreezeInput{ReleaseRef: ref})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.admit(); got.Resume == nil || got.Resume.Session != labSession || got.Resume.Source != frozen.Source {
		t.Errorf("an interrupted session is not resumed: %+v", got.Resume)
	}
	ref.Source = frozen.Source
	built, err := l.Build(t.Context(), activities.BuildInput{ReleaseRef: ref})
	if err != nil {
		t.Fatal(err)
	}
	if got := l.admit(); got.Resume != nil {
		t.Errorf("a session that went on is resumed: %+v", got.Resume)
	}
	record := evidence.Session{ID: labSession, Revision: l.plan.Source.Revision, Release: built.Release, Phase: "failed", At: time.Now()}
	if _, err := l.CloseSession(t.Context(), activities.CloseSessionInput{ReleaseRef: ref, Record: record}); err != nil {
		t.Fatal(err)
	}
	if got := l.admit(); len(got.Earlier) != 1 || got.Earlier[0].ID != labSession {
		t.Errorf("earlier sessions: %+v", got.Earlier)
	}
	held, err := l.i.take("other", l.authority().Epoch)
	if err != nil {
		t.Fatal(err)
	}
	if got := l.admit(); got.Standing != "other" {
		t.Errorf("standing: %q", got.Standing)
	}
	if err := held.release(); err != nil {
		t.Fatal(err)
	}
	l.commit(map[string]any{"name": "C"})
	if got := l.admit(); len(got.Earlier) != 0 {
		t.Errorf("another revision has earlier sessions: %+v", got.Earlier)
	}
	l.plan.Service.Home, l.plan.Instance = l.plan.Service.Home+"-moved", "other"
	if got := l.admit(); !slices.ContainsFunc(got.Problems, func(p strict.Problem) bool { return p.Path == "instance" }) {
		t.Errorf("an instance that is not installed: %+v", got.Problems)
	}
}

// The same release after a rollback is known again, also from another revision (Azure/iot-hub-device-update#460).
func TestSameReleaseIsRecognized(t *testing.T) {
	l := newLab(t)
	l.repository()
	ref := l.built()
	record := evidence.Session{ID: labSession, Revision: l.plan.Source.Revision, Release: ref.Release, Phase: "rolled_back", At: time.Now()}
	if _, err := l.CloseSession(t.Context(), activities.CloseSessionInput{ReleaseRef: ref, Record: record}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.plan.Source.Repository, "README"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	l.commit(map[string]any{"name": "B"})
	next := l.ref("")
	next.Session = "s2"
	frozen, err := l.Freeze(t.Context(), activities.FreezeInput{ReleaseRef: next})
	if err != nil {
		t.Fatal(err)
	}
	next.Source = frozen.Source
	got, err := l.Build(t.Context(), activities.BuildInput{ReleaseRef: next})
	if err != nil || got.Release != ref.Release || got.Repeated == nil || got.Repeated.ID != labSession {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestInstallFromAPlan(t *testing.T) {
	l := newLab(t)
	l.repository()
	if _, err := l.Install(t.Context(), l.plan); err == nil {
		t.Error("an instance was installed twice")
	}
	fresh := labPlan(t, t.TempDir())
	fresh.Instance, fresh.Source, fresh.Build = "fresh", l.plan.Source, l.plan.Build
	t.Cleanup(func() {
		if err := l.stop(context.WithoutCancel(t.Context()), fresh.Service); err != nil {
			t.Error(err)
		}
	})
	release, err := l.Install(t.Context(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	if !l.serves(t.Context(), release) {
		t.Error("what was installed does not serve")
	}
	all, err := l.Status(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, s := range all {
		if !s.Serving.Ready || s.Problem != "" || len(s.KnownGood) != 1 {
			t.Errorf("%+v", s)
		}
	}
	found, err := l.Verify(t.Context())
	if err != nil || slices.ContainsFunc(found, func(f Finding) bool { return !f.OK }) {
		t.Errorf("%+v, %v", found, err)
	}
}
