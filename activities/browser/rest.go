package browser

import (
	"sync"
	"time"
)

// rest is when a browser may send again. It belongs to the login, not to a run, and outlives the worker.
type rest struct {
	mu   sync.Mutex
	path string
	file restFile
}

type restFile struct {
	LastSend      time.Time `json:"last_send,omitzero"`
	CooldownUntil time.Time `json:"cooldown_until,omitzero"`
}

func openRest(path string) (*rest, error) {
	r := &rest{path: path}
	return r, readJSON(path, &r.file)
}

// until is the earliest time of the next send; not after now when it may go at once.
func (r *rest) until(gap time.Duration, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := r.file.LastSend.Add(gap)
	if r.file.LastSend.IsZero() || next.After(now.Add(gap)) { // the clock was set back
		next = time.Time{}
	}
	if r.file.CooldownUntil.After(next) {
		next = r.file.CooldownUntil
	}
	return next
}

// sent notes a send that is about to happen.
func (r *rest) sent(at time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file.LastSend = at
	return writeJSON(r.path, r.file)
}

// cool notes until when the site wants no message.
func (r *rest) cool(until time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.file.CooldownUntil = until
	return writeJSON(r.path, r.file)
}
