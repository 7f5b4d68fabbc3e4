package checks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of a look at a git work tree.
const (
	maxDiff      = 512 << 20 // bytes of changes to committed files
	maxNames     = 16 << 20  // bytes of file names
	maxUntracked = 64 << 20  // bytes of content of new files; the rest counts by size and time
)

var errNoWorkTree = errors.New("is no git work tree")

// git runs a read-only git command that uses no hook, pager, external diff or file watcher of the repository.
func git(ctx context.Context, dir string, out io.Writer, args ...string) error {
	program, err := findProgram("git", dir)
	if err != nil {
		return err
	}
	var message output
	argv := append([]string{"git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"}, args...)
	env := append(environment(dir), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	end, err := process{program: program, argv: argv, dir: dir, env: env, out: out, errs: &message}.run(ctx)
	if err != nil {
		return fmt.Errorf("git %s in %s: %w", args[0], dir, err)
	}
	if end.exit != 0 {
		return fmt.Errorf("git %s in %s: exit %d: %s", args[0], dir, end.exit, tellingLine(message.kept(), true))
	}
	return nil
}

// revision names the state of the work tree at and below dir: git:<HEAD>+clean, or git:<HEAD>+<digest of the changes>. HEAD
// is "none" before the first commit. New files that git ignores do not count.
func revision(ctx context.Context, dir string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fileTime)
	defer cancel()
	var inside, head bytes.Buffer
	switch err := git(ctx, dir, &inside, "rev-parse", "--is-inside-work-tree"); {
	case ctx.Err() != nil:
		return "", err
	case err != nil:
		return "", fmt.Errorf("%s %w: %w", dir, errNoWorkTree, err)
	case strings.TrimSpace(inside.String()) != "true":
		return "", fmt.Errorf("%s %w", dir, errNoWorkTree)
	}
	changes, changed := sha256.New(), &counter{limit: maxDiff}
	names := []string{"ls-files", "-z", "--others", "--exclude-standard", "--", "."}
	commit := "none"
	if err := git(ctx, dir, &head, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil {
		commit = strings.TrimSpace(head.String())
		err := git(ctx, dir, io.MultiWriter(changed, changes), "diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-color",
			"--no-renames", "--relative", "HEAD", "--", ".")
		if changed.n > changed.limit {
			return "", fmt.Errorf("%s has more than %d bytes of changes", dir, changed.limit)
		} else if err != nil {
			return "", err
		}
	} else {
		names = slices.Insert(names, 2, "--cached")
	}
	files, err := gitNames(ctx, dir, names...)
	if err != nil {
		return "", err
	}
	if changed.n == 0 && len(files) == 0 {
		return "git:" + commit + "+clean", nil
	}
	budget := int64(maxUntracked)
	for _, name := range files {
		if err := describe(ctx, changes, filepath.Join(dir, name), name, &budget); err != nil {
			return "", err
		}
	}
	return "git:" + commit + "+" + hex.EncodeToString(changes.Sum(nil))[:16], nil
}

// counter counts what goes through and refuses more than a limit.
type counter struct{ n, limit int64 }

func (c *counter) Write(p []byte) (int, error) {
	if c.n += int64(len(p)); c.n > c.limit {
		return 0, fmt.Errorf("more than %d bytes", c.limit)
	}
	return len(p), nil
}

// gitNames lists files below dir, as paths relative to it.
func gitNames(ctx context.Context, dir string, args ...string) ([]string, error) {
	var out bytes.Buffer
	size := &counter{limit: maxNames}
	if err := git(ctx, dir, io.MultiWriter(size, &out), args...); size.n > size.limit {
		return nil, fmt.Errorf("%s has more changed or new files than fit %d bytes of names", dir, size.limit)
	} else if err != nil {
		return nil, err
	}
	names := strings.Split(out.String(), "\x00")
	return names[:len(names)-1], nil
}

// describe adds one file that git does not know to a digest: name, mode and content, or size and time when the budget for
// content is used up.
func describe(ctx context.Context, digest hash.Hash, path, name string, budget *int64) error {
	info, err := os.Lstat(path)
	if err != nil {
		fmt.Fprintf(digest, "%q gone\n", name)
		return nil
	}
	fmt.Fprintf(digest, "%q %v %d\n", name, info.Mode(), info.Size())
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(path)
		fmt.Fprintf(digest, "%q %v\n", target, err)
	case !info.Mode().IsRegular():
	case info.Size() > *budget:
		fmt.Fprintf(digest, "%d\n", info.ModTime().UnixNano())
	default:
		*budget -= info.Size()
		f, err := os.Open(path)
		if err != nil {
			fmt.Fprintln(digest, "unreadable")
			return nil
		}
		defer f.Close()
		read, err := readAll(ctx, f, info)
		if err != nil && !errors.Is(err, errChanged) {
			return err
		}
		fmt.Fprintln(digest, read.digest)
	}
	return nil
}

// newestChange is the time of the last change of the revision in dir, and what changed then: the HEAD commit, or a changed
// or new file outside of the given paths.
func newestChange(ctx context.Context, dir string, except []string) (at time.Time, what string, err error) {
	var out bytes.Buffer
	if err := git(ctx, dir, &out, "log", "-1", "--format=%ct", "HEAD"); err != nil {
		return time.Time{}, "", err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("git log in %s: the commit time is unreadable: %w", dir, err)
	}
	at, what = time.Unix(seconds, 0), "HEAD"
	changed, err := gitNames(ctx, dir, "diff", "--name-only", "-z", "--no-ext-diff", "--no-renames", "--relative", "HEAD", "--", ".")
	if err != nil {
		return time.Time{}, "", err
	}
	fresh, err := gitNames(ctx, dir, "ls-files", "-z", "--others", "--exclude-standard", "--", ".")
	if err != nil {
		return time.Time{}, "", err
	}
	for _, name := range append(changed, fresh...) {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if err != nil || slices.Contains(except, path) {
			continue // a removed file has no time
		}
		if info.ModTime().After(at) {
			at, what = info.ModTime(), name
		}
	}
	return at, what, nil
}
