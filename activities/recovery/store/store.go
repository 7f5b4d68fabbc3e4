// Package store keeps releases: immutable folders that are named by the hash of their content.
// (Stable A / Candidate B and ReleaseSession authority, Decision.)
package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"steward/activities/recovery/durable"
)

// Store is one folder of releases.
type Store struct {
	Dir string
}

// Entry is one stored release.
type Entry struct {
	Tree   string
	Stored time.Time
}

// ErrMissing is wrapped when a release is not in the store.
var ErrMissing = errors.New("the release is not in the store")

// ErrChanged is wrapped when a stored release no longer is what its name says.
var ErrChanged = errors.New("the stored release was changed")

// ErrNotPortable is wrapped when a release holds what ties it to one place.
var ErrNotPortable = errors.New("the release is not portable")

const partial = ".part-"

var treeName = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Path is where a release lies, whether or not it is there.
func (s Store) Path(tree string) string { return filepath.Join(s.Dir, tree) }

// Import copies a built folder into the store and returns its tree hash. The copy is read-only and on the disk before it gets
// its name. Content that names a private place (the home of a service) is refused, and so are links that lead outside. The folder
// of recovery may be named, also when it lies in a home: compilers write down where the source was. Importing the same content
// again changes nothing.
func (s Store) Import(source string, private ...string) (string, error) {
	if err := durable.MkdirAll(s.Dir); err != nil {
		return "", err
	}
	part, err := os.MkdirTemp(s.Dir, partial)
	if err != nil {
		return "", err
	}
	defer func() { _ = removeAll(part) }()
	tree := filepath.Join(part, "tree")
	if err := copyTree(source, tree, filepath.Dir(s.Dir)+"/", private); err != nil {
		return "", fmt.Errorf("store %s: %w", source, err)
	}
	hash, err := TreeHash(tree)
	if err != nil {
		return "", err
	}
	if err := s.Verify(hash); err == nil {
		return hash, nil
	} else if !errors.Is(err, ErrMissing) {
		return "", err
	}
	if err := durable.SyncTree(tree); err != nil {
		return "", err
	}
	// A folder can only be moved while it is writable.
	if err := os.Chmod(tree, 0o700); err != nil {
		return "", err
	}
	if err := os.Rename(tree, s.Path(hash)); err != nil {
		return "", err
	}
	if err := errors.Join(os.Chmod(s.Path(hash), 0o500), durable.SyncDir(s.Dir)); err != nil {
		return "", err
	}
	return hash, s.Verify(hash)
}

// Verify reads a release from the disk again and compares it with its name.
func (s Store) Verify(tree string) error {
	if !treeName.MatchString(tree) {
		return fmt.Errorf("%w: %q is no tree hash", ErrMissing, tree)
	}
	if _, err := os.Lstat(s.Path(tree)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: %s", ErrMissing, s.Path(tree))
		}
		return err
	}
	hash, err := TreeHash(s.Path(tree))
	if err != nil {
		return err
	}
	if hash != tree {
		return fmt.Errorf("%w: %s has the hash %s", ErrChanged, s.Path(tree), hash)
	}
	return nil
}

// List is every stored release, the oldest first.
func (s Store) List() ([]Entry, error) {
	found, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []Entry
	for _, e := range found {
		if !treeName.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Tree: e.Name(), Stored: info.ModTime()})
	}
	slices.SortStableFunc(entries, func(a, b Entry) int { return a.Stored.Compare(b.Stored) })
	return entries, err
}

// Prune removes the oldest releases until at most keep are left beside the protected ones, and what an interrupted import
// left behind. It returns what it removed.
func (s Store) Prune(keep int, protected map[string]bool) ([]string, error) {
	left, err := filepath.Glob(filepath.Join(s.Dir, partial+"*"))
	if err != nil {
		return nil, err
	}
	for _, path := range left {
		if err := removeAll(path); err != nil {
			return nil, err
		}
	}
	entries, err := s.List()
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e Entry) bool { return protected[e.Tree] })
	var removed []string
	for _, e := range entries[:max(0, len(entries)-keep)] {
		if err := removeAll(s.Path(e.Tree)); err != nil {
			return removed, err
		}
		removed = append(removed, e.Tree)
	}
	return removed, nil
}

// removeAll removes a read-only tree.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700) //nolint:gosec // the store is private to its owner
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

func copyTree(source, destination, recovery string, private []string) error {
	root, err := filepath.EvalSymlinks(source)
	if err != nil {
		return err
	}
	var folders []string
	files := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		to := filepath.Join(destination, rel)
		switch {
		case entry.IsDir():
			folders = append(folders, to)
			return os.Mkdir(to, 0o700)
		case entry.Type() == fs.ModeSymlink:
			return copyLink(root, path, to)
		case !entry.Type().IsRegular():
			return fmt.Errorf("%w: %s is neither a file, a folder nor a link", ErrNotPortable, rel)
		}
		files++
		return copyRegular(path, to, recovery, private)
	})
	if err != nil {
		return err
	}
	if files == 0 {
		return errors.New("there is no file in it; what should have built it?")
	}
	for _, folder := range slices.Backward(folders) {
		if err := os.Chmod(folder, 0o500); err != nil {
			return err
		}
	}
	return nil
}

func copyRegular(path, to, recovery string, private []string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	for _, place := range private {
		named, err := contains(path, place, recovery)
		if err != nil {
			return err
		}
		if named {
			return fmt.Errorf("%w: %s names %s; releases get such places from their service contract", ErrNotPortable, path, place)
		}
	}
	mode := fs.FileMode(0o400)
	if info.Mode()&0o111 != 0 {
		mode = 0o500
	}
	return durable.CopyFile(path, to, mode)
}

func copyLink(root, path, to string) error {
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(root, filepath.Join(filepath.Dir(path), target))
	if err != nil || filepath.IsAbs(target) || inside == ".." || strings.HasPrefix(inside, "../") {
		return fmt.Errorf("%w: the link %s leads to %s, outside of the release", ErrNotPortable, path, target)
	}
	return os.Symlink(target, to)
}

// contains tells whether a file has the text anywhere in it, other than as the beginning of except.
func contains(path, text, except string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	longest := max(len(text), len(except))
	buffer, kept := make([]byte, 1<<20+longest), 0
	for {
		n, err := f.Read(buffer[kept:])
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended {
			return false, err
		}
		window := buffer[:kept+n]
		if names(window, text, except, ended) {
			return true, nil
		}
		if ended {
			return false, nil
		}
		kept = copy(buffer, window[max(0, len(window)-longest+1):])
	}
}

// names looks for the text in one part of a file. What may still become except with the next part is left to that.
func names(window []byte, text, except string, last bool) bool {
	for {
		at := bytes.Index(window, []byte(text))
		if at < 0 {
			return false
		}
		window = window[at:]
		begun := strings.HasPrefix(except, string(window[:min(len(window), len(except))]))
		if !begun || len(window) < len(except) && last {
			return true
		}
		window = window[1:]
	}
}

// TreeHash is the SHA-256 over the names, kinds, execute bits and contents of a folder. Times, owners and the place do not
// count.
func TreeHash(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := entryDigest(path, entry)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(sum, "%q %s\n", filepath.ToSlash(rel), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("hash of %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func entryDigest(path string, entry fs.DirEntry) (string, error) {
	switch {
	case entry.IsDir():
		return "dir", nil
	case entry.Type() == fs.ModeSymlink:
		target, err := os.Readlink(path)
		return fmt.Sprintf("link %q", target), err
	case !entry.Type().IsRegular():
		return "", fmt.Errorf("%s is neither a file, a folder nor a link", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	kind := "file"
	if info.Mode()&0o111 != 0 {
		kind = "exec"
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return fmt.Sprintf("%s %d %x", kind, n, sum.Sum(nil)), err
}

// Size counts the files of a release and their bytes.
func (s Store) Size(tree string) (files int, bytes int64, err error) {
	err = filepath.WalkDir(s.Path(tree), func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		files, bytes = files+1, bytes+info.Size()
		return nil
	})
	return files, bytes, err
}
