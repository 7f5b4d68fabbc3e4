package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// errLedgered refuses an attempt that the send ledger already holds.
var errLedgered = errors.New("the send ledger already holds this attempt")

// attempt is one line of the send ledger.
type attempt struct {
	Effect     string    `json:"effect"`
	Generation int       `json:"generation"`
	At         time.Time `json:"at"`
}

type attemptKey struct {
	effect     string
	generation int
}

// ledger is the second fence of a send beside arming: an append-only file next to the profile directory that holds every
// attempt which was about to arm. It outlives resets of a run, a lost server and stale workers.
// (Workflow Supervisor, Exactly-once continuation and external-effect reconciliation.)
type ledger struct {
	mu   sync.Mutex
	file *os.File
	seen map[attemptKey]bool
}

// openLedger reads the whole ledger. A last line without its end was being written when the machine stopped: that attempt
// never armed, and the line is cut off.
func openLedger(path string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("send ledger: %w", err)
	}
	l := &ledger{file: f, seen: map[attemptKey]bool{}}
	if err := errors.Join(l.load(path), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

func (l *ledger) load(path string) error {
	var whole int64
	r := bufio.NewReader(l.file)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("send ledger %s: %w", path, err)
		}
		whole += int64(len(line))
		var a attempt
		if err := json.Unmarshal(bytes.TrimSpace(line), &a); err != nil || a.Effect == "" {
			return fmt.Errorf("send ledger %s: line %d is damaged; no send is safe until the file is repaired", path, n)
		}
		l.seen[attemptKey{a.Effect, a.Generation}] = true
	}
	if err := l.file.Truncate(whole); err != nil {
		return fmt.Errorf("send ledger %s: %w", path, err)
	}
	_, err := l.file.Seek(whole, io.SeekStart)
	return err
}

// append notes an attempt durably. It returns errLedgered when it stands there already.
func (l *ledger) append(a attempt) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := attemptKey{a.Effect, a.Generation}
	if l.seen[key] {
		return errLedgered
	}
	line, err := json.Marshal(a)
	if err != nil {
		return err
	}
	l.seen[key] = true // also when the write fails: how much of it reached the disk is not known
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("send ledger: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("send ledger: %w", err)
	}
	return nil
}

// holds tells whether any attempt of an effect came as far as arming.
func (l *ledger) holds(effect string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key := range l.seen {
		if key.effect == effect {
			return true
		}
	}
	return false
}

func (l *ledger) close() error { return l.file.Close() }
