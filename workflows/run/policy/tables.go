package policy

import "steward/workflows/machine/kernel"

// EventRow is one row of the table of events.
type EventRow struct {
	// Event is one of the kind; its Name is the name of the row.
	Event Event
	// Producer brings it. Submittable: update submit takes it too.
	Producer    string
	Submittable bool
	// Legal are the statuses in which it can be accepted; "admit" is the zero state.
	Legal    []Status
	Evidence string
	Changes  string
	// Duplicate is how the same event is answered when it comes again.
	Duplicate string
	// Codes are all codes beside those that answer any event (AnyEvent).
	Codes []string
}

// admitting stands for the zero state in a table.
const admitting Status = ""

var (
	open     = []Status{Dispatching, Dispatched, Claimed, PendingRelease, Waiting, WaitingForUser, Blocked}
	anytime  = append([]Status{admitting}, open...)
	sending  = []Status{Dispatching}
	attempt  = []string{CodeDuplicate, CodeEffectMismatch, CodeGenerationStale, CodeGenerationMismatch, CodeIllegal}
	ofTurn   = []string{CodeDuplicate, CodeEffectMismatch, CodeNotApplied, CodeStopping, CodeIllegal}
	operator = []string{CodeOperatorMissing, CodeReasonMissing}
	judged   = []string{
		"continue_committed", "done_proposed", "done_rejected", "approval_awaited", "needs_user_accepted", "needs_user_rejected", CodeCompleted,
	}
)

func codes(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// AnyEvent are the codes that can answer every event.
var AnyEvent = []string{CodeInvalidState, CodeTerminal, CodeNotAdmitted, CodeNotSubmittable}

// Events is the table of all events. Source: "ControllerRound transition policy", Canonical event model.
var Events = []EventRow{
	{
		Event: OccurrenceRequested{}, Producer: "the start; an operator or schedule", Submittable: true, Legal: []Status{admitting, Waiting},
		Evidence: "the resolved start with its lineage, or an occurrence id", Changes: "admits and reserves the enrollment, or opens the next round",
		Duplicate: "no_op for a start or an occurrence id that was taken",
		Codes:     []string{FailureStartRefused, "unknown_inherited", CodeDuplicate, CodeOccurrenceMissing, CodeOccurrenceSeen, CodeIllegal},
	},
	{
		Event: ProviderDispatchStarted{}, Producer: "the driver, before every effect", Legal: open,
		Evidence: "effect id and generation of the effect, probe, press or succession that is owed", Changes: "an attempt begins; after a reset it is unknown",
		Duplicate: "no_op", Codes: codes(attempt, []string{
			codeReset, CodeStopping, CodePaused, CodeNotDue, CodeBlocker, CodeSuccessionPending,
		}),
	},
	{
		Event: ProviderDispatchSucceeded{}, Producer: "send", Legal: []Status{Dispatching, Blocked, WaitingForUser},
		Evidence: "effect id; our message stands in the conversation", Changes: "applied: dispatched; the failure streak of this dispatch ends",
		Duplicate: "no_op", Codes: []string{CodeDuplicate, CodeEffectMismatch, CodeGenerationMismatch},
	},
	{
		Event: ProviderDispatchFailed{}, Producer: "send", Legal: sending, Evidence: "this attempt, and that it made no irreversible step",
		Changes: "not applied: the next generation, a page blocker, or the fuse", Duplicate: "no_op", Codes: attempt,
	},
	{
		Event: ProviderDispatchDeferred{}, Producer: "send", Legal: sending, Evidence: "this attempt, and why it was not made",
		Changes: "a durable timer; no generation and no budget; a moved conversation gets a resume", Duplicate: "no_op",
		Codes: codes(attempt, []string{deferCancelled}),
	},
	{
		Event: ProviderDispatchOutcomeUnknown{}, Producer: "send", Legal: sending, Evidence: "this attempt, which armed and is not proven",
		Changes: "unknown: only evidence or an operator moves it", Duplicate: "no_op", Codes: attempt,
	},
	{
		Event: RuntimeOrSessionEvicted{}, Producer: "the driver, for a worker that was lost", Legal: sending,
		Evidence: "this attempt and whether its last heartbeat had armed", Changes: "armed: unknown; else not applied", Duplicate: "no_op", Codes: attempt,
	},
	{
		Event: ProviderUserActionRequired{}, Producer: "send", Legal: sending, Evidence: "this attempt; a login, consent, challenge or plan limit page",
		Changes: "waits for the user; no generation and no budget", Duplicate: "no_op", Codes: attempt,
	},
	{
		Event: ProviderEffectReconciled{}, Producer: "reconcile; applied, not_applied, unknown", Legal: []Status{Dispatching, Blocked, WaitingForUser},
		Evidence:  "effect id, generation and look; of an operator also name and reason",
		Changes:   "marker: applied; operator's confirmed absence: one new generation; else the next look, then the blocker",
		Duplicate: "no_op for an applied effect or an old look", Codes: codes(attempt, operator, []string{
			"marker_seen", "marker_not_seen", CodeObservationPending, "operator_confirmed", "operator_unconfirmed", "superseded_effect_applied",
			CodeLookStale, CodeNotUnknown,
		}),
	},
	{
		Event: EffectObserved{}, Producer: "observe", Legal: []Status{Dispatched, Claimed, Blocked},
		Evidence: "effect id and look; the turn and its receipt", Changes: "claim; commit with the one successor, or one fixed prompt, or a page blocker",
		Duplicate: "no_op for the same completion or an old look", Codes: codes(ofTurn, judged, []string{
			"turn_open", "turn_needs_user", deferMoved, "recovery_reserved", "recovery_exhausted", CodeScopeRefused, CodeTurnUnread, CodeLookStale,
		}),
	},
	{
		Event: ControllerClaimObserved{}, Producer: "observe", Legal: []Status{Dispatched}, Evidence: "effect id; the assistant works on it",
		Changes: "claimed; never a new round", Duplicate: "no_op", Codes: ofTurn,
	},
	{
		Event: ControllerTurnSettled{}, Producer: "observe", Legal: []Status{Dispatched, Claimed}, Evidence: "effect id of a settled turn without a receipt",
		Changes: "one protocol correction, or the blocker", Duplicate: "no_op", Codes: codes(ofTurn, []string{CodeLookStale}),
	},
	{
		Event: SemanticDispositionSubmitted{}, Producer: "observe; an operator", Submittable: true, Legal: []Status{Dispatched, Claimed},
		Evidence: "effect id of the claimed turn; a receipt, wait, or handoff with scope or conversation_url",
		Changes:  "commits with the one successor; waiting; or a succession", Duplicate: "no_op for the same completion",
		Codes: codes(ofTurn, judged, []string{CodeSuccessorMissing, CodeScopeUsed, CodeSuccessionPending, CodeUnbound, CodeScopeRefused, string(BlockedRounds)}),
	},
	{
		Event: ProposalValidated{}, Producer: "the checks", Legal: []Status{PendingRelease, Blocked},
		Evidence: "completion, number of the run, one result for each check", Changes: "goal complete, approval, a correction round, or the checks again",
		Duplicate: "no_op for an old run", Codes: []string{
			"done_verified", "done_rejected", "approval_awaited", "validation_unclear", CodeDuplicate, CodeCompletionMismatch, CodeNoProposal, CodeIllegal,
		},
	},
	{
		Event: ApprovalGiven{}, Producer: "approve", Legal: []Status{WaitingForUser}, Evidence: "completion, operator, reason", Changes: "goal complete",
		Duplicate: "reject: the run has ended", Codes: codes(operator, []string{CodeCompletionMismatch, CodeNoProposal, CodeIllegal}),
	},
	{
		Event: ApprovalDeclined{}, Producer: "decline", Legal: []Status{WaitingForUser}, Evidence: "completion, operator, reason",
		Changes: "a correction round that says why", Duplicate: "reject: there is no proposal",
		Codes: codes(operator, []string{"done_declined", CodeCompletionMismatch, CodeNoProposal, CodeIllegal}),
	},
	{
		Event: ControllerReleaseObserved{}, Producer: "observe", Legal: []Status{PendingRelease}, Evidence: "effect id of a committed turn, and when it settled",
		Changes: "the next round: new authority, rounds +1", Duplicate: "no_op",
		Codes: []string{"turn_open", CodeDuplicate, CodeReleasedEarlier, CodeNotCommitted, CodeNotSettled, CodeIllegal},
	},
	{
		Event: SuccessorBound{}, Producer: "the driver, when a successor was started", Legal: open, Evidence: "succession and the workflow id that took over",
		Changes: "handed off, or the next scope begins; an open run there: conversation_owned", Duplicate: "reject: no such succession",
		Codes: []string{
			"scope_handed_off", string(BlockedOwned), CodeSuccessorRefused, CodeSuccessorMissing, CodeNoSuccession, CodeIllegal,
		},
	},
	{
		Event: StalledRoundObserved{}, Producer: "the driver, when it loads an open state", Legal: sending, Evidence: "none",
		Changes: "an attempt without its activity is unknown", Duplicate: "no_op", Codes: []string{CodeDuplicate},
	},
	{
		Event: SemanticStateChanged{}, Producer: "the progress probes; an operator", Submittable: true, Legal: []Status{Blocked},
		Evidence: "blocker, look and fingerprint, or operator and note", Changes: "rearms repeated_state and nothing else", Duplicate: "no_op for an old look",
		Codes: []string{CodeUnchanged, CodeDuplicate, CodeProbeStale, CodeIllegal},
	},
	{
		Event: ProviderEnvironmentRecovered{}, Producer: "probe", Legal: []Status{Blocked, WaitingForUser},
		Evidence: "probe id, blocker and the exact blocked revision", Changes: "passed: ends the blocker, a fuse with a new epoch; else the next probe",
		Duplicate: "no_op", Codes: []string{CodeProbeFailed, CodeProbeLevel, CodeDuplicate, CodeProbeStale, CodeBlocker, CodeIllegal},
	},
	{
		Event: PauseRequested{}, Producer: "pause", Legal: anytime, Evidence: "operator and reason", Changes: "nothing new is sent; a turn in flight is observed",
		Duplicate: "no_op", Codes: []string{CodeDuplicate, CodeStopping},
	},
	{
		Event: UserResumeRequested{}, Producer: "resume", Submittable: true, Legal: anytime,
		Evidence: "for a pause none; else what it answers, operator, and for repeated_state a note", Changes: "lifts the pause, or ends exactly the named wait",
		Duplicate: "no_op", Codes: []string{
			CodeDuplicate, CodeNothingToResume, CodeAnswerMissing, CodeAnswerMismatch, CodeOperatorMissing, CodeUnchanged, CodeBlocker, CodeStopping,
		},
	},
	{Event: TerminalWorkObserved{}, Producer: "nobody yet", Evidence: "none", Changes: "nothing", Duplicate: "reject", Codes: []string{CodeNotSupported}},
	{
		Event: AuthorityRecoveryRequested{}, Producer: "an operator", Submittable: true, Legal: open, Evidence: "exact revision and authority, operator",
		Changes: "new authority; same round, effect and budgets", Duplicate: "reject: the revision moved",
		Codes: []string{CodeOperatorMissing, CodeRevisionMismatch, CodeAuthorityMismatch, CodeRoundAlive},
	},
	{
		Event: RecoveryRequested{}, Producer: "recover", Submittable: true, Legal: []Status{Blocked}, Evidence: "effect id, operator, reason",
		Changes: "one recovery prompt in the same round", Duplicate: "no_op", Codes: codes(ofTurn, operator, []string{CodeRoundAlive}),
	},
	{
		Event: SupersedeRequested{}, Producer: "supersede", Legal: []Status{Dispatching, Blocked},
		Evidence: "unknown effect, operator, reason, accept_duplicate", Changes: "retires the effect and reserves one new one; the old one stays watched",
		Duplicate: "no_op", Codes: codes(operator, []string{CodeDuplicate, CodeEffectMismatch, CodeNotUnknown, CodeDuplicateRisk}),
	},
	{
		Event: ConversationBound{}, Producer: "send, observe or reconcile, for a conversation that a send created",
		Legal:    []Status{Dispatched, Claimed, PendingRelease, Waiting, WaitingForUser, Blocked},
		Evidence: "applied effect, durable id and address", Changes: "a succession to the durable address", Duplicate: "no_op",
		Codes: []string{CodeDuplicate, CodeEffectMismatch, CodeNotApplied, CodeSuccessorMissing, CodeConversationMismatch},
	},
	{
		Event: ConversationRebound{}, Producer: "an operator", Submittable: true, Legal: open, Evidence: "address, operator, reason",
		Changes: "fences new sends, observes started ones, then a succession", Duplicate: "no_op",
		Codes: codes(operator, []string{CodeDuplicate, CodeStopping, CodeSuccessorMissing, CodeSuccessionPending}),
	},
	{
		Event: GoalCancelled{}, Producer: "an operator", Submittable: true, Legal: anytime, Evidence: "operator and reason", Changes: "as stop",
		Duplicate: "no_op", Codes: []string{CodeDuplicate, CodeSuccessionBegun},
	},
	{
		Event: StopRequested{}, Producer: "stop", Submittable: true, Legal: anytime, Evidence: "operator and reason",
		Changes: "nothing new is sent; stopped as soon as nothing is under way", Duplicate: "no_op", Codes: []string{CodeDuplicate, CodeSuccessionBegun},
	},
	{
		Event: InterruptObserved{}, Producer: "the one press of the page's Stop", Legal: open, Evidence: "effect id of the turn", Changes: "the run stops",
		Duplicate: "no_op", Codes: []string{CodeDuplicate, CodeIllegal},
	},
	{
		Event: CancelRequested{}, Producer: "Temporal cancellation", Legal: anytime, Evidence: "none", Changes: "as stop; closed as cancelled",
		Duplicate: "no_op", Codes: []string{CodeDuplicate, CodeSuccessionBegun},
	},
	{
		Event: TimerElapsed{}, Producer: "the driver", Legal: open, Evidence: "the timer that is owed, when it is due", Changes: "what waited for it is due",
		Duplicate: "no_op", Codes: []string{CodeNotDue},
	},
}

// CodeMeaning is one row of the table of codes.
type CodeMeaning struct{ Code, Meaning string }

// Codes is every code that an answer of the policy can carry beside those of receipts, with its meaning.
var Codes = []CodeMeaning{
	{CodeInvalidState, "the state cannot be; nothing is taken any more"},
	{CodeTerminal, "the run has ended"},
	{CodeNotAdmitted, "the run has not been admitted yet"},
	{CodeNotSubmittable, "only an activity, a timer or the driver may bring it, or it names nothing that exists"},
	{CodeNotSupported, "the event has no producer yet"},
	{CodeIllegal, "the event cannot happen in this status"},
	{CodeDuplicate, "it was taken before; nothing changed"},
	{CodeEffectMismatch, "it speaks of another effect than the present one"},
	{CodeGenerationStale, "it speaks of an earlier generation of the effect"},
	{CodeGenerationMismatch, "it speaks of a generation that was never authorized"},
	{CodeNotUnknown, "the outcome of the effect is known"},
	{CodeObservationPending, "one fresh look is under way; it decides"},
	{CodeOperatorMissing, "say who you are"},
	{CodeReasonMissing, "say why"},
	{CodePaused, "the run is paused"},
	{CodeStopping, "the run is being stopped"},
	{CodeNotDue, "the time has not come"},
	{CodeNothingToResume, "the run waits for no person"},
	{CodeAnswerMissing, "name what the resume answers"},
	{CodeAnswerMismatch, "the run does not wait for what the resume names"},
	{CodeBlocker, "this blocker ends by other evidence"},
	{CodeProbeStale, "the probe was made for another blocker or revision"},
	{CodeProbeFailed, "the probe did not pass; the next one is scheduled"},
	{CodeProbeLevel, "a page alone cannot disprove this failure"},
	{CodeUnchanged, "the progress fingerprint is the same; a changed one or a note is needed"},
	{CodeLookStale, "the look is not the one that is owed"},
	{CodeNotCommitted, "the turn has no completion yet"},
	{CodeCompleted, "the effect has another completion already"},
	{CodeTurnUnread, "the turn could not be read"},
	{CodeCompletionMismatch, "it speaks of another completion"},
	{CodeNoProposal, "no DONE is open"},
	{CodeDuplicateRisk, "say accept_duplicate: the message may then stand twice"},
	{CodeRevisionMismatch, "the state moved on; read it again"},
	{CodeAuthorityMismatch, "it is not the present authority"},
	{CodeRoundAlive, "the round is alive; there is nothing to recover"},
	{CodeOccurrenceSeen, "this occurrence was taken"},
	{CodeOccurrenceMissing, "name the occurrence"},
	{CodeReleasedEarlier, "the turn was released before"},
	{CodeNotApplied, "the effect is not applied"},
	{CodeNotSettled, "the turn has not settled"},
	{CodeSuccessorMissing, "say who takes over"},
	{CodeSuccessorRefused, "there can be no such successor; the run stays"},
	{CodeSuccessionPending, "a move to another scope or conversation is decided; nothing new is sent here"},
	{CodeSuccessionBegun, "the successor is being started; say it to that one"},
	{CodeNoSuccession, "no such move is open"},
	{CodeScopeUsed, "the scope is the present one, or has ended for good"},
	{CodeConversationMismatch, "the run is bound to another conversation"},
	{CodeUnbound, "the conversation has no durable address yet"},
	{CodeScopeRefused, "the scope that the conversation names as its own is none that may be registered"},
	{CodeLineageAdopted, "the conversation was enrolled before, and is asked for its task once"},
	{CodeLineageUnreadable, "what the workflow id left behind cannot be read"},
	{CodeLineageComplete, "the scope is complete"},
	{CodeLineageHandedOff, "the scope was handed off"},
	{CodeLineageWaiting, "the scope waits for an occurrence"},
	{CodeLineageWaitingForUser, "a person was asked for something"},
	{CodeLineageFailures, "the browser failed too often and nothing has proven its recovery"},
	{CodeLineageRounds, "every round of the budget is used"},
	{CodeMaximumGrown, "a maximum is above that of the lineage; only replan may add"},
	{FailureStartRefused, "the start was refused; its problems say why"},
	{"unknown_inherited", "an effect of an earlier start is of unknown outcome; it is looked for first"},
	{codeReset, "the history was reset; the discarded part may have sent this"},
	{deferCancelled, "the attempt came back because the run asked for it"},
	{deferMoved, "somebody else wrote into the conversation"},
	{"marker_seen", "our message stands in the conversation"},
	{"marker_not_seen", "our message was not seen, which proves nothing"},
	{"operator_confirmed", "the fresh look did not contradict the operator"},
	{"operator_unconfirmed", "the page could not be read; repeat with without_observation to decide without it"},
	{"superseded_effect_applied", "an effect that was given up stands in the conversation after all"},
	{"turn_open", "the turn goes on"},
	{"turn_needs_user", "the page asks for its user in the turn"},
	{"continue_committed", "CONTINUE: the next round is reserved"},
	{"done_proposed", "DONE: its checks run"},
	{"done_verified", "DONE: every check passed"},
	{"done_rejected", "DONE: a check failed; a correction round says which"},
	{"done_declined", "DONE: the operator declined"},
	{"approval_awaited", "DONE: an operator has to approve"},
	{"validation_unclear", "a check cannot tell; the checks run again"},
	{"needs_user_accepted", "NEEDS_USER: the run waits for a person"},
	{"needs_user_rejected", "NEEDS_USER: nothing that only a person can do; a correction round says so"},
	{"recovery_reserved", "one recovery prompt follows"},
	{"recovery_exhausted", "the automatic recoveries are used up"},
	{"scope_handed_off", "the next scope has begun"},
	{string(BlockedOwned), "an open run has the conversation"},
	{string(BlockedRounds), "every round of the budget is used"},
}

// Verdicts are what an update returns, with their meaning.
var Verdicts = []struct {
	Verdict kernel.Verdict
	Meaning string
}{
	{kernel.Accept, "the state changed"},
	{kernel.NoOp, "a duplicate; nothing changed"},
	{kernel.Reject, "refused for good; the code says why"},
	{kernel.NeedsEvidence, "refused until what is missing comes with it"},
}
