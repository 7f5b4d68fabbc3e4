package checks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	maxKeptFiles = 1000
	maxKeptBytes = 256 << 20
)

// keeper stores outputs on this host, each in a private file named by its digest, and forgets the oldest ones.
type keeper struct {
	folder string
	files  int
	bytes  int64
}

// put stores an output and returns its digest in hex.
func (k keeper) put(data []byte) (digest string, err error) {
	sum := sha256.Sum256(data)
	digest = hex.EncodeToString(sum[:])
	if err := k.write(filepath.Join(k.folder, digest), data); err != nil {
		return digest, fmt.Errorf("the output cannot be kept in %s: %w", k.folder, err)
	}
	return digest, k.prune(digest)
}

func (k keeper) write(path string, data []byte) error {
	f, err := os.CreateTemp(k.folder, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename, as it should
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// prune removes the oldest files beyond the bounds, but not the newest, and what a killed worker left half written an hour
// ago.
func (k keeper) prune(newest string) error {
	entries, err := os.ReadDir(k.folder)
	if err != nil {
		return fmt.Errorf("the kept outputs cannot be listed: %w", err)
	}
	var infos []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // removed meanwhile, or not ours
		}
		if entry.Name()[0] != '.' || time.Since(info.ModTime()) > time.Hour {
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b fs.FileInfo) int {
		switch newest { // times may be equal
		case a.Name():
			return -1
		case b.Name():
			return 1
		}
		return b.ModTime().Compare(a.ModTime())
	})
	count, size := 0, int64(0)
	for _, info := range infos {
		if info.Name()[0] != '.' && count < k.files && size+info.Size() <= k.bytes {
			count, size = count+1, size+info.Size()
			continue
		}
		if err := os.Remove(filepath.Join(k.folder, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("an old output cannot be removed: %w", err)
		}
	}
	return nil
}
