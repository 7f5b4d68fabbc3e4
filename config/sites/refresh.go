package sites

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Refresh reads the folder again when a file in it has changed since the last time, so that a corrected profile takes effect
// at once; a Site that did not change stays the same pointer. A folder with a problem changes nothing: the profiles stay as
// they were, and the error is the same until the files are mended. News tells that something was read.
func (r *Registry) Refresh() (news bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dir == "" {
		return false, nil
	}
	seen, err := fingerprint(r.dir)
	if err != nil {
		seen = "unreadable: " + err.Error()
	}
	if seen == r.seen {
		return false, r.problem
	}
	r.seen, r.problem = seen, err
	if err == nil {
		var fresh map[string]*Site
		if fresh, r.problem = load(r.dir); r.problem == nil {
			for name, site := range r.sites {
				if now := fresh[name]; now != nil && now.digest == site.digest {
					fresh[name] = site
				}
			}
			r.sites = fresh
		}
	}
	return true, r.problem
}

// fingerprint tells the profiles of a folder apart from every later version of them.
func fingerprint(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("site profiles: %w", err)
	}
	var b strings.Builder
	for _, entry := range entries {
		if !isProfile(entry) {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, entry.Name()))
		if err != nil {
			return "", fmt.Errorf("site profiles: %w", err)
		}
		fmt.Fprintf(&b, "%s %d %d\n", entry.Name(), info.Size(), info.ModTime().UnixNano())
	}
	return b.String(), nil
}

func isProfile(entry fs.DirEntry) bool {
	ext := filepath.Ext(entry.Name())
	return !entry.IsDir() && (ext == ".yaml" || ext == ".yml")
}
