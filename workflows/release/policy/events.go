package policy

import (
	"time"

	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// Event is one row of the event table.
type Event interface {
	// Name is the event's name in the journal.
	Name() string
}

// Outcome ties a result to the obligation that asked for it: what was not asked for proves nothing here.
type Outcome struct {
	Key string
}

func (o Outcome) of() string { return o.Key }

// asked is an event that answers an obligation.
type asked interface{ of() string }

// Trouble is something that is definitely wrong; its Code is empty when nothing is.
type Trouble struct {
	Code   string
	Detail string
}

type (
	// Admitted is a start that the recovery process has read.
	Admitted struct {
		Outcome
		WorkflowID, RunID, Session string
		Problems                   []string
		Plan                       *plan.Plan
		// Earlier are the finished sessions of the revision, Standing the session whose lock record stands.
		Earlier  []evidence.Session
		Standing string
		// Resume is an interrupted preparation of the revision that still matches; nil for none.
		Resume *Freeze
	}
	// Freeze is a frozen source.
	Freeze struct {
		Session, Revision, Source string
		Stable                    evidence.Identity
	}
	// SourceWasFrozen is the source of the exact revision, and A.
	SourceWasFrozen struct {
		Outcome
		Freeze
		Trouble
	}
	// ReleaseWasBuilt is the stored release.
	ReleaseWasBuilt struct {
		Outcome
		Release string
		// Repeated is a finished session that had this very release already.
		Repeated *evidence.Session
		Trouble
	}
	// CheckRan is the receipt of a gate, a canary or a command as live proof.
	CheckRan struct {
		Outcome
		Receipt evidence.Receipt
		Trouble
	}
	// CandidateServes is B in its isolated lane.
	CandidateServes struct {
		Outcome
		Candidate evidence.Identity
		Trouble
	}
	// CandidateIsQuiet proves that B was stopped.
	CandidateIsQuiet struct{ Outcome }
	// LaneVerified is one full verification of the live lane, and the release as it lies in the store.
	LaneVerified struct {
		Outcome
		Lane    evidence.Lane
		Receipt evidence.Receipt
		Stored  string
	}
	// LaneObserved is one look at the live lane.
	LaneObserved struct {
		Outcome
		Lane evidence.Lane
	}
	// OperationStarted: the attempt of a physical operation begins now. Suspect marks one that a discarded part of the
	// history may have begun already.
	OperationStarted struct {
		Operation string
		Suspect   bool
	}
	// OperationReturned is what an operation that came back can prove.
	OperationReturned struct {
		Operation string
		Lane      evidence.Lane
		// Restored: it tried everything to start A again.
		Restored     bool
		OutageMillis int64
		Backup       string
		Database     string
		Receipt      evidence.Receipt
		Trouble
	}
	// OperationLost is an operation that was not heard of again, or returned no evidence.
	OperationLost struct {
		Operation string
		Armed     bool
		Step      string
		Trouble
	}
	// OperationNotStarted: the server proves that nobody was given it.
	OperationNotStarted struct {
		Operation string
		Trouble
	}
	// WindowsObserved are some windows of CPU use, and the live lane at their end.
	WindowsObserved struct {
		Outcome
		Windows []evidence.Window
		Lane    evidence.Lane
	}
	// ProofObserved is the ledger of the acceptance run.
	ProofObserved struct {
		Outcome
		WorkflowID  string
		Status      string
		Open        bool
		Turns       []evidence.Turn
		MinInterval time.Duration
		Lane        evidence.Lane
	}
	// RestartStarted: the one restart of the live proof begins now.
	RestartStarted struct{ Key string }
	// RestartReturned is the live lane after it. A restart that another incarnation shows is done, whoever did it.
	RestartReturned struct {
		Outcome
		Lane evidence.Lane
	}
	// BundleAttested is a known-good bundle that was read back, and the live lane after that.
	BundleAttested struct {
		Outcome
		ID, Release, Digest string
		Validated           bool
		Lane                evidence.Lane
		Trouble
	}
	// SessionRecorded: the end stands in the session folder.
	SessionRecorded struct{ Outcome }
	// StepFailed is an activity that brought no evidence; it may be tried again.
	StepFailed struct {
		Outcome
		Trouble
	}
	// TimerElapsed is a wait that is over.
	TimerElapsed struct{ Outcome }
	// OperationJudged is an operator's word on an operation of unknown outcome, or `unknown`: look once more.
	OperationJudged struct {
		Operation, Verdict, Operator, Reason string
	}
	// AbortRequested ends the release: before the switch at once, after it by going back.
	AbortRequested struct{ Operator, Reason string }
	// PromoteRequested lets an eligible release switch.
	PromoteRequested struct{ Operator, Reason string }
	// CancelRequested is an abort by Temporal.
	CancelRequested struct{}
)

// Verdicts of OperationJudged.
const (
	VerdictApplied    = "applied"
	VerdictNotApplied = "not_applied"
	VerdictUnknown    = "unknown"
)

// The names of the events.
func (Admitted) Name() string            { return "start_admitted" }
func (SourceWasFrozen) Name() string     { return "source_frozen" }
func (ReleaseWasBuilt) Name() string     { return "release_built" }
func (CheckRan) Name() string            { return "check_ran" }
func (CandidateServes) Name() string     { return "candidate_serves" }
func (CandidateIsQuiet) Name() string    { return "candidate_quiet" }
func (LaneVerified) Name() string        { return "lane_verified" }
func (LaneObserved) Name() string        { return "lane_observed" }
func (OperationStarted) Name() string    { return "operation_started" }
func (OperationReturned) Name() string   { return "operation_returned" }
func (OperationLost) Name() string       { return "operation_lost" }
func (OperationNotStarted) Name() string { return "operation_not_started" }
func (WindowsObserved) Name() string     { return "windows_observed" }
func (ProofObserved) Name() string       { return "live_proof_observed" }
func (RestartStarted) Name() string      { return "restart_started" }
func (RestartReturned) Name() string     { return "restart_returned" }
func (BundleAttested) Name() string      { return "bundle_attested" }
func (SessionRecorded) Name() string     { return "session_recorded" }
func (StepFailed) Name() string          { return "step_failed" }
func (TimerElapsed) Name() string        { return "timer_elapsed" }
func (OperationJudged) Name() string     { return "operation_judged" }
func (AbortRequested) Name() string      { return "abort_requested" }
func (PromoteRequested) Name() string    { return "promote_requested" }
func (CancelRequested) Name() string     { return "cancel_requested" }
