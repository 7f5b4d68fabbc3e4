// Package policy is the transition policy of ReleaseSession: pure functions of its state. It alone writes a phase, an
// outcome, a deadline or the state of an operation. Source: "ReleaseSession and Recovery", Decision.
package policy

import (
	"time"

	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// Phase is how far a release has come. The zero phase has no frozen source yet.
type Phase string

// The phases in their order. The last three are terminal.
const (
	Starting          Phase = ""
	SourceFrozen      Phase = "source_frozen"
	Built             Phase = "built"
	StaticVerified    Phase = "static_verified"
	CandidateBooted   Phase = "candidate_booted"
	CandidateVerified Phase = "candidate_verified"
	CutoverEligible   Phase = "cutover_eligible"
	CutoverAttempting Phase = "cutover_attempting"
	CutoverCommitted  Phase = "cutover_committed"
	Soaking           Phase = "soaking"
	KnownGood         Phase = "known_good"
	RolledBack        Phase = "rolled_back"
	Failed            Phase = "failed"
)

// Order are the phases of a release that goes well.
var Order = []Phase{
	Starting, SourceFrozen, Built, StaticVerified, CandidateBooted, CandidateVerified, CutoverEligible,
	CutoverAttempting, CutoverCommitted, Soaking, KnownGood,
}

// MaxReceipts is how many receipts a session remembers.
const MaxReceipts = 64

// State is the whole state of one session.
type State struct {
	Rules      int    `json:"rules"`
	Revision   int64  `json:"revision"`
	Phase      Phase  `json:"phase,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
	// Session names the session on disk: a resumed preparation keeps the id it had.
	Session string     `json:"session,omitempty"`
	Plan    *plan.Plan `json:"plan,omitempty"`
	// Since is when the phase began, Deadline when its part must be over.
	Since    time.Time `json:"since,omitzero"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Source and Release are the tree hashes of the frozen source and of the built release.
	Source  string `json:"source,omitempty"`
	Release string `json:"release,omitempty"`
	// Stable is A when the source was frozen, Candidate is B in its isolated lane, Active what serves since the cutover.
	Stable    evidence.Identity `json:"stable,omitzero"`
	Candidate evidence.Identity `json:"candidate,omitzero"`
	Active    evidence.Identity `json:"active,omitzero"`
	// Quiet: the candidate was stopped and proven gone. VerifiedAt is when A was last verified for the switch.
	Quiet      bool      `json:"quiet,omitempty"`
	VerifiedAt time.Time `json:"verified_at,omitzero"`
	// Proven are the gates and canaries that passed for exactly this revision and release.
	Proven []string `json:"proven,omitempty"`
	// Work is the present step's trying.
	Work     Work               `json:"work,omitzero"`
	Receipts []evidence.Receipt `json:"receipts,omitempty"`
	Promoted *Word              `json:"promoted,omitempty"`
	Aborted  *Word              `json:"aborted,omitempty"`
	// Cancelled: the abort came from Temporal.
	Cancelled bool `json:"cancelled,omitempty"`
	// Operation is the physical operation that is under way or whose outcome is not known.
	Operation *Operation `json:"operation,omitempty"`
	// Cutovers and Rollbacks count the operations begun.
	Cutovers  int `json:"cutovers,omitempty"`
	Rollbacks int `json:"rollbacks,omitempty"`
	// Back is set once the release has to go back to A.
	Back *Back `json:"back,omitempty"`
	// Switch is what is known of a cutover that took hold.
	Switch *Switch `json:"switch,omitempty"`
	Soak   Soak    `json:"soak,omitzero"`
	End    *End    `json:"end,omitempty"`
	// Recorded: the end stands in the session folder, or could not be written in time.
	Recorded bool `json:"recorded,omitempty"`
}

// Work is how often the present step was tried.
type Work struct {
	// Try counts the attempts whose outcome did not settle the step.
	Try int `json:"try,omitempty"`
	// Unproven counts results in a row that were neither pass nor failure.
	Unproven  int       `json:"unproven,omitempty"`
	NotBefore time.Time `json:"not_before,omitzero"`
	// Parked: no further automatic try; a person may ask for one more with unknown.
	Parked bool   `json:"parked,omitempty"`
	Code   string `json:"code,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// Word is an operator's decision.
type Word struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// OperationState is what is known of an operation that has begun.
type OperationState string

// An operation runs until its activity returned, and is unknown while its outcome is neither proven nor disproven.
const (
	OperationRunning OperationState = "running"
	OperationUnknown OperationState = "unknown"
)

// Operation is one fenced physical operation.
type Operation struct {
	ID         string         `json:"id"`
	Kind       string         `json:"kind"`
	Generation int            `json:"generation"`
	State      OperationState `json:"state"`
	Began      time.Time      `json:"began"`
	// Armed: it may have touched the service. Step is the last step that was heard of.
	Armed bool   `json:"armed,omitempty"`
	Step  string `json:"step,omitempty"`
	// Looks counts the looks that settled nothing. Asked: a person is asked for the outcome.
	Looks int        `json:"looks,omitempty"`
	Asked bool       `json:"asked,omitempty"`
	Code  string     `json:"code,omitempty"`
	Word  *Verdict   `json:"word,omitempty"`
	Seen  *LaneFacts `json:"seen,omitempty"`
}

// LaneFacts is the last look at the live lane, as far as a person needs it.
type LaneFacts struct {
	At      time.Time          `json:"at"`
	Serving string             `json:"serving,omitempty"`
	Ready   bool               `json:"ready"`
	Active  string             `json:"active,omitempty"`
	Last    evidence.Operation `json:"last_operation,omitzero"`
	Step    string             `json:"step,omitempty"`
	Settled bool               `json:"settled"`
}

// Verdict is an operator's word on an operation of unknown outcome.
type Verdict struct {
	Word
	Verdict string `json:"verdict"`
}

// Back is why the release goes back to A.
type Back struct {
	Code   string    `json:"code"`
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
}

// Switch is a cutover that took hold.
type Switch struct {
	// At is when the authority was published: work before it proves nothing of the release.
	At           time.Time `json:"at"`
	OutageMillis int64     `json:"outage_ms,omitempty"`
	// Backup is the SHA-256 of the database backup; Database what a rollback did with the database.
	Backup   string `json:"backup,omitempty"`
	Database string `json:"database,omitempty"`
	// Incarnation is the epoch that the release took over with.
	Incarnation int64 `json:"incarnation,omitempty"`
}

// Soak is what was proven since the switch.
type Soak struct {
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	NextAt time.Time `json:"next_at,omitzero"`
	// Windows are the ones on schedule; OffSchedule counts the others.
	Windows     []evidence.Window `json:"windows,omitempty"`
	OffSchedule int               `json:"off_schedule,omitempty"`
	Performance bool              `json:"performance,omitempty"`
	Served      bool              `json:"served,omitempty"`
	Looks       int               `json:"looks,omitempty"`
	Proof       Proof             `json:"proof,omitzero"`
	Verified    bool              `json:"verified,omitempty"`
	Bundle      string            `json:"bundle,omitempty"`
}

// Proof is the live proof as far as it has come.
type Proof struct {
	WorkflowID string          `json:"workflow_id,omitempty"`
	Status     string          `json:"status,omitempty"`
	Turns      []evidence.Turn `json:"turns,omitempty"`
	// Continued: the first CONTINUE was seen, so the one restart is due. Before is the incarnation that it has to replace;
	// Restarted once another serves.
	Continued bool  `json:"continued,omitempty"`
	Before    int64 `json:"before,omitempty"`
	Restarted bool  `json:"restarted,omitempty"`
	// LatencyMillis is the longest time from a completion to its successor.
	LatencyMillis int64 `json:"latency_ms,omitempty"`
	Passed        bool  `json:"passed,omitempty"`
}

// End is why a session ended.
type End struct {
	Code   string    `json:"code,omitempty"`
	Detail string    `json:"detail,omitempty"`
	At     time.Time `json:"at"`
	// Problems are those of a refused start.
	Problems []string `json:"problems,omitempty"`
	// During is the phase that it ended in.
	During Phase `json:"during,omitempty"`
}

// Terminal tells whether the session has come to its end.
func (s *State) Terminal() bool {
	switch s.Phase {
	case KnownGood, RolledBack, Failed:
		return true
	}
	return false
}

// switched tells whether the authority was moved to the new release.
func (s *State) switched() bool {
	return s.Phase == CutoverCommitted || s.Phase == Soaking
}

// WentBack tells whether the session ended with a verified return to A.
func (s *State) WentBack() bool { return s.Phase == RolledBack }

// Refused tells whether the start itself was refused: then there is no session on disk.
func (s *State) Refused() bool { return s.Phase == Failed && s.End.Code == CodeStartRefused }
