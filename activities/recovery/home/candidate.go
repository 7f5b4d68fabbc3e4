package home

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"steward/activities/recovery/durable"
)

// candidate says whose candidate lives in a home. A home without one belongs to a running service, or to nobody.
type candidate struct {
	Session string    `json:"session"`
	At      time.Time `json:"at"`
}

func candidateFile(dir string) string { return filepath.Join(dir, "steward-candidate.json") }

// MarkCandidate makes a folder the home of a session's candidate.
func MarkCandidate(dir, session string) error {
	return durable.WriteJSON(candidateFile(dir), candidate{session, time.Now().UTC()})
}

// CandidateOf is the session whose candidate lives in a home; empty when it is no candidate's.
func CandidateOf(dir string) (string, error) {
	var c candidate
	err := durable.ReadJSON(candidateFile(dir), &c)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return c.Session, err
}
