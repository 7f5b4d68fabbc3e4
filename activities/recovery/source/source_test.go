package source

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func commit(t *testing.T, repository, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(repository, "main"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", content},
	} {
		cmd := exec.CommandContext(context.Background(), "git", args...)
		cmd.Dir = repository
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
}

func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "-b", "main", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	commit(t, dir, "one")
	return dir
}

func TestFrozenSourceStaysAtItsRevision(t *testing.T) {
	repo := repository(t)
	dir := filepath.Join(t.TempDir(), "work", "tree")
	frozen, err := Freeze(t.Context(), repo, "main", dir)
	if err != nil {
		t.Fatal(err)
	}
	commit(t, repo, "two")
	if got, err := os.ReadFile(filepath.Join(dir, "main")); err != nil || string(got) != "one" {
		t.Errorf("the frozen tree holds %q, %v", got, err)
	}
	again, err := Freeze(t.Context(), repo, frozen.Revision, dir)
	if err != nil || again != frozen {
		t.Errorf("freezing again gives %v, %v; first it was %v", again, err, frozen)
	}
	if _, err := Freeze(t.Context(), repo, "main", dir); !errors.Is(err, ErrDrift) {
		t.Errorf("another revision in the same place: %v", err)
	}
}

func TestChangeAfterTheFreezeIsFoundOut(t *testing.T) {
	repo := repository(t)
	dir := filepath.Join(t.TempDir(), "tree")
	frozen, err := Freeze(t.Context(), repo, "HEAD", dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "built"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := frozen.Check(t.Context(), dir); err != nil {
		t.Errorf("what a build added: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "main"), []byte("three"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := frozen.Check(t.Context(), dir); !errors.Is(err, ErrDrift) {
		t.Errorf("a changed file: %v", err)
	}
	for range 2 {
		if err := Remove(t.Context(), repo, dir); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Freeze(t.Context(), repo, "HEAD", dir); err != nil {
		t.Errorf("after it was removed: %v", err)
	}
}

func TestRevisionThatDoesNotExist(t *testing.T) {
	repo := repository(t)
	for _, revision := range []string{"nothing", "--help", ""} {
		if _, err := Freeze(t.Context(), repo, revision, filepath.Join(t.TempDir(), "tree")); err == nil {
			t.Errorf("%q was frozen", revision)
		}
	}
}
