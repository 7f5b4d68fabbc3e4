package activities

import (
	"encoding/json"
	"time"

	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
)

// AdmitInput asks a run worker to resolve one start: read its input strictly, resolve its site, and read what the same
// workflow id left behind.
type AdmitInput struct {
	// Start is the start input as it came.
	Start      json.RawMessage `json:"start"`
	WorkflowID string          `json:"workflow_id"`
	RunID      string          `json:"run_id"`
}

// AdmitResult is the evidence that a start is judged by. With problems, only Problems, Lineage and Worker count.
type AdmitResult struct {
	// Problems is everything that is wrong with the start, at once.
	Problems []strict.Problem `json:"problems,omitempty"`
	// Goal is the start input with every default filled in.
	Goal goal.Goal      `json:"goal,omitzero"`
	Site goal.SiteFacts `json:"site,omitzero"`
	// Lineage is what the last run of the same workflow id left behind; nil when there was none.
	Lineage *Lineage `json:"lineage,omitempty"`
	// LineageError says why a lineage that exists could not be read; Lineage then is nil.
	LineageError string `json:"lineage_error,omitempty"`
	// RunID is the run before which Lineage is the last one: the run that asked.
	RunID  string `json:"run_id,omitempty"`
	Worker Worker `json:"worker"`
}

// Ways in which Temporal closes a run.
const (
	ClosedCompleted  = "completed"
	ClosedFailed     = "failed"
	ClosedCanceled   = "canceled"
	ClosedTerminated = "terminated"
	ClosedTimedOut   = "timed_out"
)

// Lineage is the final state of the run before this one under the same workflow id. The state counts, not how Temporal
// closed the run.
type Lineage struct {
	RunID string `json:"run_id"`
	// Closed is one of the ways above.
	Closed   string    `json:"closed"`
	ClosedAt time.Time `json:"closed_at,omitzero"`
	// State is the policy's state, as it stands in the result, the failure details or the cancel details, or as the
	// state query answered.
	State json.RawMessage `json:"state"`
}
