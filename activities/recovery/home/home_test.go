package home

import (
	"errors"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestEpochOnlyGrows(t *testing.T) {
	dir := t.TempDir()
	me := ThisProcess()
	if err := Acquire(dir, 3, "a", me); err != nil {
		t.Fatal(err)
	}
	for _, epoch := range []uint64{0, 1, 3} {
		if err := Acquire(dir, epoch, "b", me); !errors.Is(err, ErrStale) {
			t.Errorf("epoch %d: %v", epoch, err)
		}
	}
	if err := (Claim{3, "a"}).Check(dir); err != nil {
		t.Error(err)
	}
	if err := Fence(dir, 4, "b"); err != nil {
		t.Fatal(err)
	}
	if err := (Claim{3, "a"}).Check(dir); !errors.Is(err, ErrStale) {
		t.Errorf("a claim of an earlier epoch: %v", err)
	}
	if err := Acquire(dir, 4, "a", me); !errors.Is(err, ErrStale) {
		t.Errorf("an epoch that is reserved for another release: %v", err)
	}
	if err := Fence(dir, 2, "c"); err != nil {
		t.Fatal(err)
	}
	if now, err := ReadIncarnation(dir); err != nil || now.Epoch != 4 || now.Release != "b" {
		t.Errorf("a lower fence changed it to %+v, %v", now, err)
	}
	if err := Acquire(dir, 4, "b", me); err != nil {
		t.Errorf("the reserved epoch: %v", err)
	}
	if err := Acquire(dir, 4, "b", me); !errors.Is(err, ErrStale) {
		t.Errorf("the reserved epoch for the second time: %v", err)
	}
}

func TestLiveOwnerIsAConflictAndADeadOneIsNot(t *testing.T) {
	dir := t.TempDir()
	other := exec.CommandContext(t.Context(), "sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	owner := ProcessOf(other.Process.Pid)
	if !owner.Lives() {
		t.Fatal("a running process does not live")
	}
	if err := Acquire(dir, 1, "a", owner); err != nil {
		t.Fatal(err)
	}
	if err := Acquire(dir, 2, "b", ThisProcess()); !errors.Is(err, ErrConflict) {
		t.Errorf("beside a live owner: %v", err)
	}
	if err := other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for owner.Lives() { // not reaped yet: a zombie counts as stopped
		time.Sleep(time.Millisecond)
	}
	if err := Acquire(dir, 2, "b", ThisProcess()); err != nil {
		t.Errorf("after a dead owner: %v", err)
	}
	_ = other.Wait()
}

func TestOneOfManyGetsAnEpoch(t *testing.T) {
	dir := t.TempDir()
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := Acquire(dir, 1, "a", ThisProcess()); err == nil {
				won.Add(1)
			} else if !errors.Is(err, ErrStale) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d got the same epoch", won.Load())
	}
}

func TestReusedProcessIDIsAnotherProcess(t *testing.T) {
	p := ThisProcess()
	p.Started++
	if p.Lives() {
		t.Error("a process with another start time is taken for this one")
	}
	p = ThisProcess()
	p.Boot = "another boot"
	if p.Lives() {
		t.Error("a process of another boot is taken for this one")
	}
}

func TestAdmissionFenceEndsAtItsDeadline(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if err := Admit(dir, now); err != nil {
		t.Fatal(err)
	}
	if err := SetAdmission(dir, AdmissionFence{"s", 2, now.Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if err := Admit(dir, now); !errors.Is(err, ErrFenced) {
		t.Errorf("under the fence: %v", err)
	}
	if err := Admit(dir, now.Add(time.Minute)); err != nil {
		t.Errorf("after its deadline: %v", err)
	}
	if err := os.WriteFile(fenceFile(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Admit(dir, now); !errors.Is(err, ErrFenced) {
		t.Errorf("an unreadable fence admits: %v", err)
	}
	for range 2 {
		if err := ClearAdmission(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := Admit(dir, now); err != nil {
		t.Errorf("after the end: %v", err)
	}
}

func TestClaimFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	if c, err := FromEnvironment(); c != nil || err != nil {
		t.Errorf("without a variable: %+v, %v", c, err)
	}
	t.Setenv(EnvHome, dir)
	t.Setenv(EnvRelease, "a")
	if _, err := FromEnvironment(); err == nil {
		t.Error("a home without an epoch was taken")
	}
	t.Setenv(EnvEpoch, "1")
	c, err := FromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fence(); !errors.Is(err, ErrStale) {
		t.Errorf("before the epoch was acquired: %v", err)
	}
	if err := Acquire(dir, 1, "a", ThisProcess()); err != nil {
		t.Fatal(err)
	}
	if err := c.Fence(); err != nil {
		t.Errorf("the owner is refused: %v", err)
	}
	if err := SetAdmission(dir, AdmissionFence{"s", 1, time.Now().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if err := c.Fence(); !errors.Is(err, ErrFenced) {
		t.Errorf("under the fence: %v", err)
	}
}

// A release that may still be undone holds its runs at the rules of the one before it; the version of one that is known-good, and
// of the first in a home, counts for those after it.
func TestRulesStayThoseOfTheReleaseThatMayComeBack(t *testing.T) {
	dir := t.TempDir()
	expect := func(release string, current, want int) {
		t.Helper()
		got, err := RulesCap(dir, release, current)
		if err != nil || got != want {
			t.Errorf("release %s with rules %d is held at %d, want %d (%v)", release, current, got, want, err)
		}
	}
	expect("a", 3, 0)
	expect("a", 3, 0)
	expect("b", 5, 3)
	expect("a", 3, 0) // b went back
	expect("b", 5, 3)
	if err := MarkKnownGood(dir, "b"); err != nil {
		t.Fatal(err)
	}
	expect("b", 5, 0)
	expect("c", 4, 5) // the driver holds it at its own
	if err := os.WriteFile(rulesFile(dir), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RulesCap(dir, "c", 4); err == nil {
		t.Error("a record that cannot be read gives no version")
	}
}

func TestACandidatesHomeSaysWhoseItIs(t *testing.T) {
	dir := t.TempDir()
	if session, err := CandidateOf(dir); err != nil || session != "" {
		t.Errorf("%q, %v", session, err)
	}
	if err := MarkCandidate(dir, "s1"); err != nil {
		t.Fatal(err)
	}
	if session, err := CandidateOf(dir); err != nil || session != "s1" {
		t.Errorf("%q, %v", session, err)
	}
}
