package home

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"steward/activities/recovery/durable"
)

// AdmissionFence refuses new work during a physical operation. It ends at its deadline, also when whoever set it is gone.
// Open read-only streams are not work.
type AdmissionFence struct {
	Session  string    `json:"session"`
	Epoch    uint64    `json:"epoch"`
	Deadline time.Time `json:"deadline"`
}

// ErrFenced is wrapped when a home admits no new work.
var ErrFenced = errors.New("a release operation is under way; new work is not admitted")

func fenceFile(dir string) string { return filepath.Join(dir, "admission.json") }

// SetAdmission fences a home.
func SetAdmission(dir string, fence AdmissionFence) error {
	return durable.WriteJSON(fenceFile(dir), fence)
}

// ClearAdmission ends the fence. A fence that is not there is no error.
func ClearAdmission(dir string) error { return durable.Remove(fenceFile(dir)) }

// ReadAdmission is the fence of a home, nil when there is none or its deadline has passed.
func ReadAdmission(dir string, now time.Time) (*AdmissionFence, error) {
	var fence AdmissionFence
	err := durable.ReadJSON(fenceFile(dir), &fence)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !now.Before(fence.Deadline):
		return nil, nil
	}
	return &fence, nil
}

// Admit refuses new work while a fence stands. A fence that cannot be read refuses too.
func Admit(dir string, now time.Time) error {
	fence, err := ReadAdmission(dir, now)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFenced, err)
	}
	if fence != nil {
		return fmt.Errorf("%w: session %s, until %s at the latest", ErrFenced, fence.Session, fence.Deadline.Format(time.RFC3339))
	}
	return nil
}
