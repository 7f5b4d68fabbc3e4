// Package source freezes one exact revision of a git repository in a work tree of its own.
package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"steward/activities/recovery/durable"
)

// Frozen is one revision with its content.
type Frozen struct {
	// Revision is the full commit id, Tree the git tree of its content.
	Revision string `json:"revision"`
	Tree     string `json:"tree"`
}

// ErrDrift is wrapped when a frozen tree no longer is the revision that it was frozen at.
var ErrDrift = errors.New("the frozen source was changed")

// ErrNoRevision is wrapped when a repository has not the revision.
var ErrNoRevision = errors.New("the repository has no such revision")

// Freeze puts a revision of a repository into dir. Freezing the same revision there again proves that nothing changed.
func Freeze(ctx context.Context, repository, revision, dir string) (Frozen, error) {
	commit, err := git(ctx, repository, "rev-parse", "--verify", "--end-of-options", revision+"^{commit}")
	if err != nil {
		return Frozen{}, fmt.Errorf("%w: %s in %s: %w", ErrNoRevision, revision, repository, err)
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		if err := durable.MkdirAll(filepath.Dir(dir)); err != nil {
			return Frozen{}, err
		}
		if _, err := git(ctx, repository, "worktree", "prune"); err != nil {
			return Frozen{}, err
		}
		if _, err := git(ctx, repository, "worktree", "add", "--detach", "--force", dir, commit); err != nil {
			return Frozen{}, fmt.Errorf("work tree of %s: %w", commit, err)
		}
	}
	tree, err := git(ctx, repository, "rev-parse", commit+"^{tree}")
	if err != nil {
		return Frozen{}, err
	}
	frozen := Frozen{Revision: commit, Tree: tree}
	return frozen, frozen.Check(ctx, dir)
}

// Check proves that a work tree still holds exactly the frozen revision. What a build added beside it does not count.
func (f Frozen) Check(ctx context.Context, dir string) error {
	head, err := git(ctx, dir, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	if head != f.Revision {
		return fmt.Errorf("%w: %s is at %s, not at %s", ErrDrift, dir, head, f.Revision)
	}
	changed, err := git(ctx, dir, "status", "--porcelain", "--untracked-files=no", "--ignore-submodules=none")
	if err != nil {
		return err
	}
	if first, _, _ := strings.Cut(changed, "\n"); first != "" {
		return fmt.Errorf("%w: %s in %s", ErrDrift, strings.TrimSpace(first), dir)
	}
	return nil
}

// Remove gives up a work tree. One that is not there is no error.
func Remove(ctx context.Context, repository, dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if _, err := git(ctx, repository, "worktree", "remove", "--force", dir); err != nil {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		_, err = git(ctx, repository, "worktree", "prune")
		return err
	}
	return nil
}

const limit = 2 * time.Minute

// git runs git without hooks, questions and optional locks, and returns its output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		return "", fmt.Errorf("git %s in %s: %w: %s", args[0], dir, err, first)
	}
	return strings.TrimRight(out.String(), "\n"), nil
}
