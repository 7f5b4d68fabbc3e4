// Package policy is the transition policy of WorkflowRun: the only code that writes a status, a budget, a blocker, an
// authority or an effect state. It is pure: no Temporal SDK, clock, randomness or I/O; time and evidence come in events.
// Source: "ControllerRound transition policy", Decision.
package policy

import (
	"time"

	"steward/workflows/run/goal"
)

// Status is what the run is doing. Source: "ControllerRound transition policy", Durable state classes.
type Status string

// The statuses. The zero state (no status) owes its admission.
const (
	Dispatching    Status = "dispatching"
	Dispatched     Status = "dispatched"
	Claimed        Status = "claimed"
	PendingRelease Status = "pending_release"
	Waiting        Status = "waiting"
	WaitingForUser Status = "waiting_for_user"
	GoalComplete   Status = "goal_complete"
	HandedOff      Status = "handed_off"
	Stopped        Status = "stopped"
	Failed         Status = "failed"
	Blocked        Status = "blocked"
)

// Stage is how far the current round has come; an axis of its own.
type Stage string

// The stages.
const (
	StageDispatching Stage = "dispatching"
	StageConfirmed   Stage = "dispatch_confirmed"
	StageClaimed     Stage = "controller_claimed"
	StageClosed      Stage = "semantic_round_closed"
)

// EffectState is what is known of an outbound effect.
type EffectState string

// The effect states. Unknown never authorizes another attempt.
const (
	EffectReserved    EffectState = "reserved"
	EffectDispatching EffectState = "dispatching"
	EffectApplied     EffectState = "applied"
	EffectNotApplied  EffectState = "not_applied"
	EffectUnknown     EffectState = "unknown"
)

// EffectKind is the template and the meaning of a prompt.
type EffectKind string

// The effect kinds.
const (
	KindEnrollment   EffectKind = "enrollment"
	KindBootstrap    EffectKind = "bootstrap"
	KindAdopt        EffectKind = "adopt"
	KindContinuation EffectKind = "continuation"
	KindCorrection   EffectKind = "correction"
	KindStagnation   EffectKind = "stagnation"
	KindRecovery     EffectKind = "recovery"
	KindResume       EffectKind = "resume"
)

// State is everything that a run knows. It is carried whole over continue-as-new and returned as the run's result.
type State struct {
	Rules    int    `json:"rules"`
	Status   Status `json:"status,omitempty"`
	Stage    Stage  `json:"stage,omitempty"`
	Revision int64  `json:"revision"`
	Paused   *Pause `json:"paused,omitempty"`
	Stop     *Stop  `json:"stop,omitempty"`

	WorkflowID string `json:"workflow_id,omitempty"`
	// RunID is the original run id of the start: the same over continue-as-new and reset.
	RunID  string `json:"run_id,omitempty"`
	TaskID string `json:"task_id,omitempty"`
	Scope  string `json:"scope,omitempty"`
	// Adopting: the scope is a proposal until the conversation has named its own, once.
	Adopting bool `json:"adopting,omitempty"`
	// Goal and Site are fixed at admission.
	Goal *goal.Goal      `json:"goal,omitempty"`
	Site *goal.SiteFacts `json:"site,omitempty"`
	// Totals are the counts that the checks' evidence files had at the start.
	Totals map[string]int64 `json:"totals,omitempty"`

	// AuthorityID is the opaque capability of one semantic round, RelayScopeID that of the lineage, ClaimGeneration the
	// ownership epoch of the round. Source: "ControllerRound transition policy", Authority contract.
	AuthorityID     string `json:"authority_id,omitempty"`
	RelayScopeID    string `json:"relay_scope_id,omitempty"`
	ClaimGeneration int    `json:"claim_generation,omitempty"`

	// Sequence counts the effects reserved by this start, Rotations the authorities.
	Sequence  int `json:"sequence,omitempty"`
	Rotations int `json:"rotations,omitempty"`

	Effect     Effect     `json:"effect,omitzero"`
	Next       *Effect    `json:"next,omitempty"`
	Turn       Turn       `json:"turn,omitzero"`
	Completion Completion `json:"completion,omitzero"`
	Proposal   *Proposal  `json:"proposal,omitempty"`
	Budgets    Budgets    `json:"budgets"`
	Blocker    *Blocker   `json:"blocker,omitempty"`
	// Succession is a decided move to another scope or conversation, Predecessors the scopes that were left for good.
	Succession   *Succession `json:"succession,omitempty"`
	Predecessors []Node      `json:"predecessors,omitempty"`
	// Failure says why a run failed.
	Failure *Failure `json:"failure,omitempty"`

	// Violations and Recoveries count in a row, until the next valid receipt.
	Violations int `json:"violations,omitempty"`
	Mangled    int `json:"mangled,omitempty"`
	Recoveries int `json:"recoveries,omitempty"`
	// OtherAsk is the digest of a user request of kind "other" that one correction round has answered already.
	OtherAsk string `json:"other_ask,omitempty"`
	// Occurrences are the last occurrence ids that started a round.
	Occurrences []string `json:"occurrences,omitempty"`
	// Retired are superseded effects of unknown outcome; a late marker of one is reported.
	Retired []Effect `json:"retired,omitempty"`
	// Ledger has the last turns before the present one, oldest first; Chain has them all.
	Ledger []LedgerTurn `json:"ledger,omitempty"`
	// Turns counts every applied effect of this start, Dispatches every attempt begun: the number of the present one.
	Turns      int `json:"turns,omitempty"`
	Dispatches int `json:"dispatches,omitempty"`
	// Doubted: the history was reset, and no send has begun since. The discarded part may have sent what comes next.
	Doubted bool `json:"doubted,omitempty"`
}

// Pause says who paused the run. Nothing new is sent; a turn in flight is observed.
type Pause struct {
	By     string    `json:"by"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Stop is an accepted stop that has not taken hold yet, or the record of one that has.
type Stop struct {
	By        string    `json:"by"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
	Canceled  bool      `json:"canceled,omitempty"`
	Interrupt bool      `json:"interrupt,omitempty"`
	// Interrupted is the outcome of the one press: pressed, stopped, unproven.
	Interrupted string `json:"interrupted,omitempty"`
	// Left is the status that the run had when it stopped.
	Left Status `json:"left,omitempty"`
}

// Worker is who produced evidence.
type Worker struct {
	Release     string `json:"release,omitempty"`
	Incarnation int64  `json:"incarnation,omitempty"`
}

// Effect is one outbound prompt. Its id never changes with the generation.
// Source: "Workflow Supervisor authority", Restart-safe remote effect generations.
type Effect struct {
	ID    string      `json:"id"`
	Kind  EffectKind  `json:"kind"`
	State EffectState `json:"state"`
	// Generation counts authorized attempts; EpochBase is the generation before the present recovery epoch.
	Generation int `json:"generation"`
	EpochBase  int `json:"epoch_base,omitempty"`
	// NewRound: releasing it opens a new semantic round.
	NewRound bool `json:"new_round,omitempty"`
	// Template is the version of the prompt templates, PromptDigest the digest of the rendered prompt.
	Template     int    `json:"template"`
	PromptDigest string `json:"prompt_digest"`
	// Alias stands for the id of the conversation that a bootstrap creates: "new:<key>", valid for this effect only.
	Alias string `json:"alias,omitempty"`
	// Source and SourceAnswer are the causal fence: the effect whose turn it follows and the digest of that turn's answer.
	Source       string `json:"source,omitempty"`
	SourceAnswer string `json:"source_answer,omitempty"`
	Fenced       bool   `json:"fenced,omitempty"`
	// Protocol: a correction is about the receipt of the last answer alone, not about the work.
	Protocol bool `json:"protocol,omitempty"`
	// Failed and Note go into the prompt of a correction or resume.
	Failed []string `json:"failed,omitempty"`
	Note   string   `json:"note,omitempty"`

	ReservedAt time.Time `json:"reserved_at"`
	BegunAt    time.Time `json:"begun_at,omitzero"`
	AppliedAt  time.Time `json:"applied_at,omitzero"`
	// NotBefore is when the next attempt (or, while unknown, the next look) is due.
	NotBefore time.Time `json:"not_before,omitzero"`
	Deferral  *Deferral `json:"deferral,omitempty"`
	Attempts  []Attempt `json:"attempts,omitempty"`
	// Looks counts the observations while the outcome is unknown, Look numbers them: an operator's word asks for a fresh one.
	Looks int `json:"looks,omitempty"`
	Look  int `json:"look,omitempty"`
	// Word is an operator's not_applied that awaits one fresh observation.
	Word *Word `json:"word,omitempty"`
	// Inherited: the effect belongs to an earlier start of the same workflow id.
	Inherited     bool   `json:"inherited,omitempty"`
	SiteDigest    string `json:"site_digest,omitempty"`
	UserMessageID string `json:"user_message_id,omitempty"`
}

// Deferral says why an authorized attempt has not been made.
type Deferral struct {
	Class string `json:"class"`
	// Since is when the first of the deferrals in a row was, ClassSince the first of them with this class.
	Since      time.Time `json:"since"`
	ClassSince time.Time `json:"class_since"`
	Count      int       `json:"count"`
	// Overdue: longer than attention_after.
	Overdue bool `json:"overdue,omitempty"`
}

// Attempt is one generation and what became of it.
type Attempt struct {
	Generation int         `json:"generation"`
	At         time.Time   `json:"at"`
	Outcome    EffectState `json:"outcome"`
	Code       string      `json:"code,omitempty"`
	Worker     Worker      `json:"worker,omitzero"`
}

// Word is what an operator said of an effect of unknown outcome.
type Word struct {
	Operator string    `json:"operator"`
	Reason   string    `json:"reason"`
	At       time.Time `json:"at"`
	// Refuted says why it did not take effect.
	Refuted string `json:"refuted,omitempty"`
}

// Turn is the observation of the current effect's turn.
type Turn struct {
	// Look numbers the observations of this turn.
	Look   int       `json:"look,omitempty"`
	SeenAt time.Time `json:"seen_at,omitzero"`
	// Claimer is the process that observes the claimed turn. Another one that takes over is a new claim generation.
	Claimer   Worker    `json:"claimer,omitzero"`
	SettledAt time.Time `json:"settled_at,omitzero"`
	// NotBefore delays the next look after something that a person has to clear.
	NotBefore    time.Time `json:"not_before,omitzero"`
	AnswerDigest string    `json:"answer_digest,omitempty"`
	// Receipt is why a settled turn has no valid receipt.
	Receipt    string    `json:"receipt,omitempty"`
	ActivityAt time.Time `json:"activity_at,omitzero"`
	// Overdue: unresolved for longer than attention_after.
	Overdue bool   `json:"overdue,omitempty"`
	Class   string `json:"class,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Completion is the last committed receipt.
type Completion struct {
	ID         string    `json:"id"`
	Effect     string    `json:"effect"`
	Action     string    `json:"action"`
	Form       string    `json:"form"`
	Checkpoint string    `json:"checkpoint,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	Evidence   []string  `json:"evidence,omitempty"`
	Ask        *UserAsk  `json:"ask,omitempty"`
	Answer     string    `json:"answer_digest,omitempty"`
	Progress   string    `json:"progress,omitempty"`
	At         time.Time `json:"at"`
}

// UserAsk is what a person is asked for.
type UserAsk struct {
	Kind  string `json:"kind"`
	Ask   string `json:"ask"`
	Tried string `json:"tried,omitempty"`
}

// Proposal is a DONE whose validation has not ended.
type Proposal struct {
	Completion string `json:"completion"`
	// Runs counts the validations, Unclear those in a row that could not tell.
	Runs      int       `json:"runs,omitempty"`
	Unclear   int       `json:"unclear,omitempty"`
	NotBefore time.Time `json:"not_before,omitzero"`
	// Approval: every check has passed and an operator must approve.
	Approval bool           `json:"approval,omitempty"`
	Results  []CheckVerdict `json:"results,omitempty"`
}

// CheckVerdict is the evidence of one check of the completion contract.
type CheckVerdict struct {
	Name string `json:"name"`
	// Outcome is pass, fail or cannot_tell; cannot_tell is never a pass.
	Outcome  string `json:"outcome"`
	Code     string `json:"code,omitempty"`
	Revision string `json:"revision,omitempty"`
	Line     string `json:"line,omitempty"`
}

// Budgets are three independent counters, each with its own maximum; no path resets one through another, and time resets
// none. Source: "ControllerRound transition policy", Budget contract.
type Budgets struct {
	Rounds           int      `json:"rounds"`
	MaxRounds        int      `json:"max_rounds"`
	RepeatedState    int      `json:"repeated_state"`
	MaxRepeatedState int      `json:"max_repeated_state"`
	ProviderFailures Failures `json:"provider_failures"`
	// Stagnation: the one root-cause prompt of this streak was reserved.
	Stagnation bool `json:"stagnation,omitempty"`
}

// Failures is the provider failure budget of one dispatch responsibility.
type Failures struct {
	Epoch  int `json:"epoch"`
	Streak int `json:"streak"`
	Total  int `json:"total"`
	Max    int `json:"max"`
	// Opened is what opened the present epoch: a probe's id, or the operator who vouched.
	Opened string `json:"opened,omitempty"`
}

// BlockerClass says what kind of evidence ends a blocker.
type BlockerClass string

// The blocker classes.
const (
	BlockedRepeatedState  BlockerClass = "repeated_state"
	BlockedFailures       BlockerClass = "consecutive_failures"
	BlockedRounds         BlockerClass = "round_budget_exhausted"
	BlockedUnknown        BlockerClass = "provider_dispatch_outcome_unknown"
	BlockedUserAction     BlockerClass = "provider_user_action_required"
	BlockedProtocol       BlockerClass = "protocol_violation"
	BlockedRecovery       BlockerClass = "recovery_exhausted"
	BlockedValidation     BlockerClass = "validation_unavailable"
	BlockedDrift          BlockerClass = "ui_drift"
	BlockedMissing        BlockerClass = "conversation_missing"
	BlockedOwned          BlockerClass = "conversation_owned"
	BlockedForeignDraft   BlockerClass = "foreign_draft"
	blockedNone           BlockerClass = ""
	probeLevelMessage                  = "message"
	probeLevelPage                     = "page"
	maxLedger, maxRetired              = 50, 8
)

// Blocker is why a run cannot go on by itself, and what would end that.
type Blocker struct {
	Class BlockerClass `json:"class"`
	// ID is what a resume answers.
	ID     string    `json:"id"`
	Code   string    `json:"code,omitempty"`
	Detail string    `json:"detail,omitempty"`
	Since  time.Time `json:"since"`
	// Revision is the state's revision when it blocked; a probe is bound to it.
	Revision int64 `json:"revision"`
	// Mechanical: the failures were of typing, click or crash, which a page probe cannot disprove; a site that did not answer
	// is none.
	Mechanical bool `json:"mechanical,omitempty"`
	// Probes counts the looks at it; NotBefore is when the next is due.
	Probes    int       `json:"probes,omitempty"`
	NotBefore time.Time `json:"not_before,omitzero"`
	// Resumed: a person said that it is resolved; a probe must confirm it.
	Resumed    bool   `json:"resumed,omitempty"`
	SiteDigest string `json:"site_digest,omitempty"`
}

// Failure is why a run failed: a refused start or an invalid state.
type Failure struct {
	Code     string   `json:"code"`
	Problems []string `json:"problems"`
	// Lineage is the state that a refused start saw, so that a later start still sees it.
	Lineage *State `json:"lineage,omitempty"`
}

// LedgerTurn is one effect and its turn, with their times and who made them.
type LedgerTurn struct {
	Effect      string     `json:"effect"`
	Kind        EffectKind `json:"kind"`
	Round       int        `json:"round"`
	Generation  int        `json:"generation"`
	Reserved    time.Time  `json:"reserved"`
	Dispatched  time.Time  `json:"dispatched,omitzero"`
	Applied     time.Time  `json:"applied,omitzero"`
	Seen        time.Time  `json:"seen,omitzero"`
	Settled     time.Time  `json:"settled,omitzero"`
	Committed   time.Time  `json:"committed,omitzero"`
	Action      string     `json:"action,omitempty"`
	Receipt     string     `json:"receipt,omitempty"`
	Release     string     `json:"release,omitempty"`
	Incarnation int64      `json:"incarnation,omitempty"`
}
