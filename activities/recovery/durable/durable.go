// Package durable writes private files that survive a crash: whole or not at all, and on the disk when the call returns.
package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MaxRecord bounds a JSON record in bytes; a larger one is damaged.
const MaxRecord = 4 << 20

// WriteFile replaces a file as a whole with mode 0600 and makes its folder (0700) when it is missing. After an error the old
// content or the new one stands there, never a part.
func WriteFile(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := MkdirAll(dir); err != nil {
		return err
	}
	part, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*.part")
	if err != nil {
		return err
	}
	_, err = part.Write(data)
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil {
		err = os.Rename(part.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(part.Name()))
	}
	return SyncDir(dir)
}

// WriteJSON is WriteFile of one JSON record.
func WriteJSON(path string, record any) error {
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return WriteFile(path, append(data, '\n'))
}

// ReadJSON reads one record. Fields that it does not know are ignored: the previous release has to read what the next one
// wrote. The error wraps fs.ErrNotExist when there is no file.
func ReadJSON(path string, record any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxRecord+1))
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	case len(data) > MaxRecord:
		return fmt.Errorf("%s is larger than a record may be (%d bytes)", path, MaxRecord)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(record); err != nil {
		return fmt.Errorf("%s is damaged: %w", path, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is damaged: there is something behind the record", path)
	}
	return nil
}

// Remove removes a file durably; one that is not there is no error.
func Remove(path string) error {
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// MkdirAll makes a private folder with its parents, durably.
func MkdirAll(dir string) error {
	if info, err := os.Stat(dir); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// SyncTree makes a folder durable with everything in it.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir(), entry.Type().IsRegular():
			return SyncDir(path)
		}
		return nil
	})
}

// CopyFile copies a regular file to a new one with the mode, durably; the destination may not exist.
func CopyFile(source, destination string, mode fs.FileMode) (err error) {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(destination, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
