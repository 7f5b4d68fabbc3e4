package checks

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestShown_masks_what_looks_like_a_secret(t *testing.T) {
	for text, want := range map[string]string{
		"ok  steward/x 0.012s":                           "ok steward/x 0.012s",
		"token=abc":                                      "token=***",
		`{"api_key": "abc def", "x": 1}`:                 `{"api_key": ***, "x": 1}`,
		"DB_PASSWORD=p@ss other":                         "DB_PASSWORD=*** other",
		"Authorization: Bearer abc.def-ghi":              "Authorization: *** ***",
		"sent Bearer abc.def-ghi":                        "sent Bearer ***",
		"postgres://me:pw@db/x":                          "postgres://me:***@db/x",
		"key sk-abcdefghijklmnop1234":                    "key ***",
		"ghp_0123456789abcdefghij used":                  "*** used",
		"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln.": "jwt ***.",
		"AKIAIOSFODNN7EXAMPLE":                           "***",
		"sum 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b":   "sum ***",
		"-----BEGIN RSA PRIVATE KEY-----MIIE":            "***",
		"FAIL TestSomethingWithAVeryLongNameIndeed":      "FAIL TestSomethingWithAVeryLongNameIndeed",
		"/home/me/go/pkg/mod/example.com/a1b2/c3d4/e5f6": "/home/me/go/pkg/mod/example.com/a1b2/c3d4/e5f6",
		"\x1b[31mred\x1b[0m \x1b]0;title\x07text\r\n":    "red text",
		"a\u202eb\x00c\xffd":                             "a b c�d",
		strings.Repeat("é", 300):                         strings.Repeat("é", 199) + "…",
	} {
		if got := shown(text); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}

func TestTellingLine_prefers_the_failure(t *testing.T) {
	out := []byte("=== RUN TestA\n--- FAIL: TestA (0.00s)\n    a_test.go:3: no\nFAIL\nexit status 1\n\n")
	if got := tellingLine(out, true); got != "--- FAIL: TestA (0.00s)" {
		t.Error(got)
	}
	if got := tellingLine(out, false); got != "exit status 1" {
		t.Error(got)
	}
	if got := tellingLine([]byte("\n \n"), true); got != "" {
		t.Error(got)
	}
}

// TestOutput_keeps_the_beginning_and_the_end holds the ring against the whole text, for any way of writing it.
func TestOutput_keeps_the_beginning_and_the_end(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []byte
		var o output
		for _, size := range rapid.SliceOfN(rapid.IntRange(0, 700<<10), 0, 6).Draw(t, "sizes") {
			part := bytes.Repeat(fmt.Appendf(nil, "%d,", len(all)), size/4)
			if n, err := o.Write(part); n != len(part) || err != nil {
				t.Fatalf("wrote %d of %d: %v", n, len(part), err)
			}
			all = append(all, part...)
		}
		want := all
		if left := len(all) - maxHead - maxTail; left > 0 {
			want = append(all[:maxHead:maxHead], fmt.Sprintf("\n… %d bytes left out …\n", left)...)
			want = append(want, all[len(all)-maxTail:]...)
		}
		if !bytes.Equal(o.kept(), want) || o.total != int64(len(all)) {
			t.Fatalf("kept %d bytes of %d, want %d", len(o.kept()), o.total, len(want))
		}
	})
}

func TestKeeper_forgets_the_oldest(t *testing.T) {
	k := keeper{folder: t.TempDir(), files: 3, bytes: 100}
	names := func() string {
		var list []string
		entries, err := os.ReadDir(k.folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			data, err := os.ReadFile(filepath.Join(k.folder, entry.Name()))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(data[:1]))
		}
		return strings.Join(slices.Sorted(slices.Values(list)), "")
	}
	age := func(digest string, by time.Duration) {
		at := time.Now().Add(-by)
		if err := os.Chtimes(filepath.Join(k.folder, digest), at, at); err != nil {
			t.Fatal(err)
		}
	}
	put := func(text string) string {
		digest, err := k.put([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	age(put("a"), 3*time.Hour)
	age(put("b"), 2*time.Hour)
	age(put("c"), time.Hour)
	put("a") // again: now the newest
	put("d")
	if got := names(); got != "acd" {
		t.Errorf("by count: %s", got)
	}
	put("e" + strings.Repeat("x", 98))
	if got := names(); len(got) != 2 || !strings.Contains(got, "e") {
		t.Errorf("by size: %s", got)
	}
	if err := os.WriteFile(filepath.Join(k.folder, ".new-1"), []byte("n"), 0o600); err != nil {
		t.Fatal(err)
	}
	put("f")
	if got := names(); !strings.Contains(got, "n") {
		t.Errorf("a file that is being written was removed: %s", got)
	}
	age(".new-1", 2*time.Hour)
	put("g")
	if got := names(); strings.Contains(got, "n") {
		t.Errorf("a half written file stays: %s", got)
	}
}

func TestSum_takes_counts_only(t *testing.T) {
	for text, want := range map[string]int64{"n=1,234 n=5_0 n=0": 1284, "n=0": 0, "n=2147483647 n=1": 2147483648} {
		if got, err := sum("n=([0-9,_]+)", []byte(text)); err != nil || got != want {
			t.Errorf("%s: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "n=99999999999", "n=,", "n=1 n=__"} {
		if got, err := sum("n=([0-9,_]+)", []byte(text)); err == nil {
			t.Errorf("%s: %d", text, got)
		}
	}
	if _, err := sum("n=-?[0-9]+", nil); err == nil {
		t.Error("a pattern without a group")
	}
}

func TestCommandLine_and_address_for_people(t *testing.T) {
	if got := commandLine([]string{"go", "test", "-run", "A B", "", "it's"}); got != `go test -run 'A B' '' 'it'\''s'` {
		t.Error(got)
	}
	if got := withoutQuery("http://127.0.0.1:1/a?key=x#y"); got != "http://127.0.0.1:1/a" {
		t.Error(got)
	}
}
