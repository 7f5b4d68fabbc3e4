package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func build(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func newStore(t *testing.T) Store {
	t.Helper()
	s := Store{Dir: filepath.Join(t.TempDir(), "store")}
	t.Cleanup(func() {
		if err := removeAll(s.Dir); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSameContentIsOneRelease(t *testing.T) {
	s := newStore(t)
	files := map[string]string{"bin/service": "binary", "lib/data": "x"}
	first, err := s.Import(build(t, files))
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Import(build(t, files))
	if err != nil || second != first {
		t.Fatalf("the same content is %s and %s (%v)", first, second, err)
	}
	entries, err := s.List()
	if err != nil || len(entries) != 1 || entries[0].Tree != first {
		t.Fatalf("the store lists %v, %v", entries, err)
	}
	info, err := os.Stat(filepath.Join(s.Path(first), "bin", "service"))
	if err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("a stored program has mode %v, %v", info.Mode(), err)
	}
}

func TestChangedReleaseIsFoundOut(t *testing.T) {
	s := newStore(t)
	tree, err := s.Import(build(t, map[string]string{"service": "binary"}))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Path(tree), "service")
	if err := errors.Join(os.Chmod(path, 0o700), os.WriteFile(path, []byte("Binary"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(tree); !errors.Is(err, ErrChanged) {
		t.Errorf("verify says %v", err)
	}
	if _, err := s.Import(build(t, map[string]string{"service": "binary"})); !errors.Is(err, ErrChanged) {
		t.Errorf("an import over it says %v", err)
	}
	if err := s.Verify("../etc"); !errors.Is(err, ErrMissing) {
		t.Errorf("a strange name: %v", err)
	}
}

func TestWhatIsNotPortableIsRefused(t *testing.T) {
	s := newStore(t)
	home := "/home/of/the/service"
	outside := build(t, map[string]string{"service": "binary"})
	if err := os.Symlink("/etc/passwd", filepath.Join(outside, "link")); err != nil {
		t.Fatal(err)
	}
	up := build(t, map[string]string{"service": "binary"})
	if err := os.Symlink("../other", filepath.Join(up, "link")); err != nil {
		t.Fatal(err)
	}
	named := build(t, map[string]string{"config": "state = " + home + "/state"})
	for _, dir := range []string{outside, up, named} {
		if _, err := s.Import(dir, home); !errors.Is(err, ErrNotPortable) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if _, err := s.Import(t.TempDir()); err == nil {
		t.Error("an empty folder became a release")
	}
	if entries, err := s.List(); err != nil || len(entries) != 0 {
		t.Errorf("the store holds %v, %v", entries, err)
	}
	inside := build(t, map[string]string{"lib/a": "x"})
	if err := os.Symlink("a", filepath.Join(inside, "lib", "b")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(inside, home); err != nil {
		t.Errorf("a link inside: %v", err)
	}
}

// A home is found wherever the parts in which a file is read end; the folder of recovery in it may be named.
func TestHomeIsFoundInEveryPlaceOfAFile(t *testing.T) {
	const home, recovery = "/home/me", "/home/me/recovery/"
	const part = 1<<20 + len(recovery)
	for _, c := range []struct {
		text string
		want bool
	}{
		{home, true},
		{home + "/data", true},
		{home + "/recovery", true},
		{recovery, false},
		{recovery + "sources/a.go", false},
		{recovery + home, true},
		{"/home/m", false},
		{home + "/recover", true},
		{recovery + recovery, false},
	} {
		for _, before := range []int{0, 1, part - len(c.text) - 3, part - len(c.text), part - 9, part - 3, part - 1, part, 2 * part} {
			for _, after := range []string{"", strings.Repeat("y", part)} {
				dir := build(t, map[string]string{"file": strings.Repeat("x", before) + c.text + after})
				got, err := contains(filepath.Join(dir, "file"), home, recovery)
				if err != nil || got != c.want {
					t.Errorf("%q after %d bytes, before %d: %t, %v", c.text, before, len(after), got, err)
				}
			}
		}
	}
}

// Sixty deploys leave a bounded store (temporalio/temporal-worker-controller#377: old records piled up, one per deploy).
func TestPublic_C26_TheStoreIsBoundedAndKeepsWhatIsProtected(t *testing.T) {
	s := newStore(t)
	const keep = 5
	protected := map[string]bool{}
	for i := range 60 {
		tree, err := s.Import(build(t, map[string]string{"service": fmt.Sprint("release ", i)}))
		if err != nil {
			t.Fatal(err)
		}
		if i == 3 || i == 10 {
			protected[tree] = true
		}
		if _, err := s.Prune(keep, protected); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.Dir, partial+"left"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Prune(keep, protected); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil || len(entries) != keep+len(protected) {
		t.Errorf("%d entries are left, %v", len(entries), err)
	}
	for tree := range protected {
		if err := s.Verify(tree); err != nil {
			t.Error(err)
		}
	}
}
