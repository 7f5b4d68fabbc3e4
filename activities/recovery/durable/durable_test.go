package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type record struct {
	Name string `json:"name"`
}

func TestRecordIsPrivateAndComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "record.json")
	for _, name := range []string{"first", "second"} {
		if err := WriteJSON(path, record{name}); err != nil {
			t.Fatal(err)
		}
		var got record
		if err := ReadJSON(path, &got); err != nil || got.Name != name {
			t.Fatalf("read %q, %v", got.Name, err)
		}
	}
	for p, want := range map[string]fs.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v (%v)", p, info.Mode(), err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("a temporary file stayed: %v %v", entries, err)
	}
}

func TestDamagedRecordIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record.json")
	for _, text := range []string{"", `{"name":"x"`, `{"name":"x"} {}`, `{"name":"` + strings.Repeat("x", MaxRecord) + `"}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := ReadJSON(path, &record{}); err == nil {
			t.Errorf("%.20q was read", text)
		}
	}
	if err := ReadJSON(path+".not", &record{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing record: %v", err)
	}
}

func TestRemoveOfNothingIsNoError(t *testing.T) {
	if err := Remove(filepath.Join(t.TempDir(), "nothing")); err != nil {
		t.Fatal(err)
	}
}
