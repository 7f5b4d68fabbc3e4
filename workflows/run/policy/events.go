package policy

import (
	"time"

	"steward/workflows/run/goal"
	"steward/workflows/run/receipt"
)

// Event is one thing that happened, with only the evidence that its row of the table requires. External layers submit
// events, never a target status. Source: "ControllerRound transition policy", Canonical event model.
type Event interface{ Name() string }

// Attempted identifies one attempt of one effect; it is part of every event about a send.
type Attempted struct {
	EffectID   string
	Generation int
	// Attempt is State.Dispatches after the attempt began: one generation can begin again after a deferral.
	Attempt    int
	Worker     Worker
	SiteDigest string
}

// OccurrenceRequested asks to begin: a start (Start is set), or an explicit occurrence that a waiting run waits for.
type OccurrenceRequested struct {
	Start        *Start
	OccurrenceID string
	Operator     string
}

// Start is the evidence of a start: the resolved input and what the same workflow id left behind.
type Start struct {
	// Problems refuse the start.
	Problems   []string
	WorkflowID string
	RunID      string
	Goal       *goal.Goal
	Site       *goal.SiteFacts
	Totals     map[string]int64
	Lineage    *Lineage
	// LineageError says why the lineage could not be read.
	LineageError string
}

// Lineage is the newest earlier run of the same workflow id.
type Lineage struct {
	RunID string
	// Closed is how Temporal closed it: completed, failed, canceled, terminated, timed_out.
	Closed string
	State  *State
}

// ProviderDispatchStarted begins an attempt: reserved to dispatching. Suspect marks the first effect after a workflow
// reset, whose attempt may have been made before the reset.
type ProviderDispatchStarted struct {
	EffectID   string
	Generation int
	Suspect    bool
}

// ProviderDispatchSucceeded is positive evidence: our message stands in the conversation.
type ProviderDispatchSucceeded struct {
	Attempted
	At              time.Time
	UserMessageID   string
	ConversationID  string
	ConversationURL string
}

// Codes of a failed dispatch that the policy treats apart: the first two are no failure of the attempt, and what an unreachable
// site failed at can be disproven by its page.
const (
	FailureConversationMissing = "conversation_missing"
	FailureDrift               = "ui_drift"
	FailureUnreachable         = "unreachable"
	failureWorkerLost          = "worker_lost"
	failureCancelled           = "cancelled"
)

// ProviderDispatchFailed is the dispatch owner's negative proof: the attempt returned without the irreversible step.
type ProviderDispatchFailed struct {
	Attempted
	Code   string
	Detail string
}

// Classes of a deferral that the policy treats apart.
const (
	deferMoved        = "conversation_moved"
	deferForeignDraft = "foreign_draft"
	deferCancelled    = "cancelled"
)

// ProviderDispatchDeferred is a refusal before arming that is nobody's fault: it uses no generation and no budget.
type ProviderDispatchDeferred struct {
	Attempted
	Class  string
	Until  time.Time
	Detail string
}

// ProviderDispatchOutcomeUnknown is an attempt that armed and is neither proven nor disproven.
type ProviderDispatchOutcomeUnknown struct {
	Attempted
	Code   string
	Detail string
}

// RuntimeOrSessionEvicted is a lost worker: the attempt ended in a time-out. Armed is what its last heartbeat said.
type RuntimeOrSessionEvicted struct {
	Attempted
	Armed bool
}

// ProviderUserActionRequired is a page that asks for its user before any dispatch.
type ProviderUserActionRequired struct {
	Attempted
	Class  string
	Detail string
}

// Verdicts of an operator on an effect of unknown outcome.
const (
	VerdictApplied    = "applied"
	VerdictNotApplied = "not_applied"
	VerdictUnknown    = "unknown"
)

// ProviderEffectReconciled is a fresh look at an effect of unknown outcome, or an operator's word on it (Verdict is set).
type ProviderEffectReconciled struct {
	EffectID   string
	Generation int
	// Look is the number of the look (Effect.Look); an operator's word has none.
	Look int
	// Readable and Marker are the look's evidence. A rendered page never proves absence.
	Readable        bool
	Marker          bool
	UserMessageID   string
	ConversationID  string
	ConversationURL string
	Worker          Worker
	SiteDigest      string
	// Verdict, Operator, Reason and WithoutObservation are an operator's word.
	Verdict            string
	Operator           string
	Reason             string
	WithoutObservation bool
}

// States of an observed turn.
const (
	TurnSettled = "settled"
	TurnFailed  = "provider_error"
	TurnOpen    = "open"
	// TurnUnread: the observation itself failed.
	TurnUnread     = "unread"
	TurnMoved      = "moved"
	TurnMissing    = "missing"
	TurnUserAction = "user_action"
	TurnDrift      = "ui_drift"
)

// EffectObserved is one whole observation of the turn that answers an applied effect: claim, receipt and release.
type EffectObserved struct {
	EffectID string
	Look     int
	Turn     string
	Class    string
	Detail   string
	SeenAt   time.Time
	// SettledAt is when the site's settle rule held.
	SettledAt    time.Time
	ActivityAt   time.Time
	Reading      receipt.Reading
	AnswerDigest string
	// Progress is the digest of the configured progress probes, read after the turn settled; empty without probes.
	Progress   string
	SiteDigest string
	Worker     Worker
	// Late are superseded effects whose marker stands in the conversation after all.
	Late []string
	// ConversationID and ConversationURL are the durable address of a new conversation, once it has one.
	ConversationID  string
	ConversationURL string
}

// ControllerClaimObserved is the first evidence that the assistant works on the effect.
type ControllerClaimObserved struct {
	EffectID string
	At       time.Time
}

// ControllerTurnSettled is a settled turn without a receipt.
type ControllerTurnSettled struct {
	EffectID     string
	At           time.Time
	AnswerDigest string
}

// Dispositions that may be submitted beside the receipt.
const (
	DispositionWait    = "wait"
	DispositionHandoff = "handoff"
)

// SemanticDispositionSubmitted is a receipt read before the turn settled, or an explicit wait or handoff.
type SemanticDispositionSubmitted struct {
	EffectID     string
	Disposition  string
	Checkpoint   string
	Reason       string
	Receipt      *receipt.Receipt
	AnswerDigest string
	Progress     string
	Worker       Worker
	// Scope, ConversationURL, Objective and Outcome say who takes over at a handoff; empty means unchanged.
	Scope           string
	ConversationURL string
	Objective       string
	Outcome         string
}

// ControllerReleaseObserved is the observation that a committed turn is settled and idle.
type ControllerReleaseObserved struct {
	EffectID string
	At       time.Time
}

// ProposalValidated is the outcome of all checks of the completion contract for one DONE.
type ProposalValidated struct {
	Completion string
	Run        int
	Results    []CheckVerdict
}

// ApprovalGiven and ApprovalDeclined are an operator's word on a DONE.
type (
	ApprovalGiven    struct{ Completion, Operator, Reason string }
	ApprovalDeclined struct{ Completion, Operator, Reason string }
)

// SuccessorBound is what became of the start of a successor: it has started (Successor is its workflow id), an open run has
// that id already (Owned), or there can be none (Refused says why).
type SuccessorBound struct {
	Succession string
	Successor  string
	Owned      bool
	Refused    string
}

// StalledRoundObserved is an open state that was loaded without a running activity.
type StalledRoundObserved struct{}

// SemanticStateChanged is a progress fingerprint read while the run is blocked by repeated_state, or an operator's note that
// it changed. A read names the blocker and the look at it (Blocker.Probes) that it was made for.
type SemanticStateChanged struct {
	Blocker     string
	Look        int
	Fingerprint string
	Operator    string
	Note        string
}

// ProviderEnvironmentRecovered is the outcome of a probe, bound to the exact blocked revision.
type ProviderEnvironmentRecovered struct {
	Probe      string
	Blocker    string
	Revision   int64
	Passed     bool
	Level      string
	Class      string
	Detail     string
	SiteDigest string
	Worker     Worker
}

// PauseRequested stops new sends; a turn in flight is observed.
type PauseRequested struct{ Operator, Reason string }

// UserResumeRequested lifts a pause, or answers what the run waits for a person for.
type UserResumeRequested struct{ Operator, Reason, Answers, Note string }

// TerminalWorkObserved has no producer yet and is rejected.
type TerminalWorkObserved struct{}

// AuthorityRecoveryRequested rekeys the round: new authority, same round, effect and budgets.
type AuthorityRecoveryRequested struct {
	Revision    int64
	AuthorityID string
	Operator    string
	Reason      string
}

// RecoveryRequested asks for one recovery of the current applied effect.
type RecoveryRequested struct{ EffectID, Operator, Reason string }

// SupersedeRequested retires an effect of unknown outcome and reserves a new one: a duplicate risk that an operator takes.
type SupersedeRequested struct {
	EffectID, Operator, Reason string
	AcceptDuplicate            bool
}

// ConversationBound is the durable address of a conversation that a bootstrap created.
type ConversationBound struct{ EffectID, ConversationID, ConversationURL string }

// ConversationRebound moves the run to another conversation.
type ConversationRebound struct{ ConversationURL, Operator, Reason string }

// GoalCancelled ends the goal: new sends are revoked.
type GoalCancelled struct{ Operator, Reason string }

// StopRequested ends the run. Interrupt also presses the page's Stop once.
type StopRequested struct {
	Operator, Reason string
	Interrupt        bool
}

// InterruptObserved is what the one press of the page's Stop showed.
type InterruptObserved struct {
	EffectID string
	Outcome  string
}

// CancelRequested is a Temporal cancellation.
type CancelRequested struct{}

// TimerElapsed is a timer that is due.
type TimerElapsed struct{ Key string }

// NotSubmittable is an event that only an activity or a timer may bring.
type NotSubmittable struct{ Event string }

func (OccurrenceRequested) Name() string            { return "occurrence_requested" }
func (ProviderDispatchStarted) Name() string        { return "provider_dispatch_started" }
func (ProviderDispatchSucceeded) Name() string      { return "provider_dispatch_succeeded" }
func (ProviderDispatchFailed) Name() string         { return "provider_dispatch_failed" }
func (ProviderDispatchDeferred) Name() string       { return "provider_dispatch_deferred" }
func (ProviderDispatchOutcomeUnknown) Name() string { return "provider_dispatch_outcome_unknown" }
func (ProviderEffectReconciled) Name() string       { return "provider_effect_reconciled" }
func (EffectObserved) Name() string                 { return "effect_observed" }
func (ProviderUserActionRequired) Name() string     { return "provider_user_action_required" }
func (ControllerClaimObserved) Name() string        { return "controller_claim_observed" }
func (ControllerTurnSettled) Name() string          { return "controller_turn_settled" }
func (SemanticDispositionSubmitted) Name() string   { return "semantic_disposition_submitted" }
func (ProposalValidated) Name() string              { return "proposal_validated" }
func (ApprovalGiven) Name() string                  { return "approval_given" }
func (ApprovalDeclined) Name() string               { return "approval_declined" }
func (ControllerReleaseObserved) Name() string      { return "controller_release_observed" }
func (SuccessorBound) Name() string                 { return "successor_bound" }
func (StalledRoundObserved) Name() string           { return "stalled_round_observed" }
func (SemanticStateChanged) Name() string           { return "semantic_state_changed" }
func (ProviderEnvironmentRecovered) Name() string   { return "provider_environment_recovered" }
func (PauseRequested) Name() string                 { return "pause_requested" }
func (UserResumeRequested) Name() string            { return "user_resume_requested" }
func (TerminalWorkObserved) Name() string           { return "terminal_work_observed" }
func (AuthorityRecoveryRequested) Name() string     { return "authority_recovery_requested" }
func (RecoveryRequested) Name() string              { return "recovery_requested" }
func (SupersedeRequested) Name() string             { return "supersede_requested" }
func (ConversationBound) Name() string              { return "conversation_bound" }
func (ConversationRebound) Name() string            { return "conversation_rebound" }
func (GoalCancelled) Name() string                  { return "goal_cancelled" }
func (StopRequested) Name() string                  { return "stop_requested" }
func (InterruptObserved) Name() string              { return "interrupt_observed" }
func (CancelRequested) Name() string                { return "cancel_requested" }
func (RuntimeOrSessionEvicted) Name() string        { return "runtime_or_session_evicted" }
func (TimerElapsed) Name() string                   { return "timer_elapsed" }
func (e NotSubmittable) Name() string               { return e.Event }
