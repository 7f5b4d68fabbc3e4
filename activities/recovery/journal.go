package recovery

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"steward/activities/recovery/database"
	"steward/activities/recovery/durable"
	"steward/workflows/release/evidence"
)

// Outcomes of a session's operations, as its folder keeps them.
const (
	// OutcomeApplied: the new release serves, verified.
	OutcomeApplied = "applied"
	// OutcomeNotApplied: the service was never switched, and the stable release serves.
	OutcomeNotApplied = "not_applied"
	// OutcomeRolledBack: the stable release serves again.
	OutcomeRolledBack = "rolled_back"
	// OutcomeUnserviceable: the stable release could not be brought back; a person has to.
	OutcomeUnserviceable = "unserviceable"
)

// operation is one begun operation.
type operation struct {
	ID         string    `json:"id"`
	Kind       string    `json:"kind"`
	Generation int       `json:"generation"`
	Reason     string    `json:"reason,omitempty"`
	At         time.Time `json:"at"`
}

// rollbackIdentity is everything that a way back needs; written before the authority is changed.
type rollbackIdentity struct {
	// Before is the authority that is replaced; its active release is the exact stable one.
	Before    Authority        `json:"before"`
	Candidate Release          `json:"candidate"`
	Backup    *database.Backup `json:"backup,omitempty"`
}

// journal is steps.json of a session: evidence of what was done, never authority.
type journal struct {
	Session    string            `json:"session"`
	Operations []operation       `json:"operations"`
	Steps      []evidence.Step   `json:"steps,omitempty"`
	Rollback   *rollbackIdentity `json:"rollback,omitempty"`
	// Reserved is the epoch that the started release has to acquire.
	Reserved uint64 `json:"reserved,omitempty"`
	// Database is what the rollback did with the database, DatabaseNote why.
	Database     string `json:"database,omitempty"`
	DatabaseNote string `json:"database_note,omitempty"`
	OutageMillis int64  `json:"outage_ms,omitempty"`
	Outcome      string `json:"outcome,omitempty"`
	// Failure is why it did not go through.
	Failure string `json:"failure,omitempty"`
	// Attention is what a person has to do by hand.
	Attention string `json:"attention,omitempty"`

	path string
}

// journal reads the steps of a session; an empty one when it has none.
func (i instance) journal(session string) (*journal, error) {
	j := &journal{Session: session, path: i.steps(session)}
	err := durable.ReadJSON(j.path, j)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	return j, err
}

func (j *journal) write() error { return durable.WriteJSON(j.path, j) }

// errRepeated refuses an operation that was begun before.
var errRepeated = errors.New("the operation was begun before")

// begin records an operation.
func (j *journal) begin(o operation) error {
	if slices.ContainsFunc(j.Operations, func(earlier operation) bool { return earlier.ID == o.ID }) {
		return fmt.Errorf("%w: %s; its steps stand in %s", errRepeated, o.ID, j.path)
	}
	o.At = time.Now().UTC()
	j.Operations = append(j.Operations, o)
	j.Outcome, j.Failure, j.Attention = "", "", ""
	return j.write()
}

// last is the operation that was begun last.
func (j *journal) last() operation {
	if len(j.Operations) == 0 {
		return operation{}
	}
	return j.Operations[len(j.Operations)-1]
}

// done tells whether a step was recorded.
func (j *journal) done(step string) bool {
	return slices.ContainsFunc(j.Steps, func(s evidence.Step) bool { return s.Name == step })
}

// rollingBack tells whether a way back was begun.
func (j *journal) rollingBack() bool {
	return j.last().Kind == evidence.KindRollback
}
