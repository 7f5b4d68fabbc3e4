// Package workflows holds every name that crosses a process border: workflow and activity types, task queues, signals,
// updates, queries, search attributes and ids. Nothing else in the tree spells one of them out.
package workflows

import "go.temporal.io/sdk/temporal"

// Workflow types.
const (
	TypeWorkflowRun    = "WorkflowRun"
	TypeReleaseSession = "ReleaseSession"
	TypeDiscoveryScan  = "DiscoveryScan"
)

// QueueRun is the task queue of WorkflowRun, of DiscoveryScan and of the activities that resolve a start.
const QueueRun = "steward"

// QueueChecks is the task queue of the checks that run on one host.
func QueueChecks(host string) string { return "steward-checks-" + host }

// QueueSend is the one-slot task queue of a browser: sends, interrupts and probes.
func QueueSend(browser string) string { return "steward-browser-" + browser + "-send" }

// QueueRead is the many-slot task queue of a browser: observe and reconcile.
func QueueRead(browser string) string { return "steward-browser-" + browser + "-read" }

// QueueRecovery is the task queue of ReleaseSession and of the release activities of one host.
func QueueRecovery(host string) string { return "steward-recovery-" + host }

// Activity types.
const (
	ActivityAdmit     = "Admit"
	ActivityResolve   = "ResolveConversation"
	ActivitySend      = "Send"
	ActivityInterrupt = "Interrupt"
	ActivityProbe     = "Probe"
	ActivityObserve   = "Observe"
	ActivityReconcile = "Reconcile"
	ActivityChecks    = "RunChecks"
	ActivityBaseline  = "Baseline"
	ActivityProgress  = "ReadProgress"
)

// Activity types of DiscoveryScan.
const (
	ActivityAdmitScan = "AdmitScan"
	ActivityKnownRuns = "KnownRuns"
	ActivityDiscover  = "Discover"
	ActivityInspect   = "InspectConversation"
)

// Activity types of ReleaseSession.
const (
	ActivityAdmitRelease       = "AdmitRelease"
	ActivityFreeze             = "Freeze"
	ActivityBuild              = "Build"
	ActivityGate               = "Gate"
	ActivityBootCandidate      = "BootCandidate"
	ActivityStopCandidate      = "StopCandidate"
	ActivityVerifyStable       = "VerifyStable"
	ActivityCutover            = "Cutover"
	ActivityRollback           = "Rollback"
	ActivityReconcileOperation = "ReconcileOperation"
	ActivityObserveSoak        = "ObserveSoak"
	ActivityLiveProof          = "LiveProof"
	ActivityRestartActive      = "RestartActive"
	ActivityBundle             = "Bundle"
	ActivityCloseSession       = "CloseSession"
)

// Signals and updates of WorkflowRun; each is both, except where it says otherwise.
const (
	MessageApplied    = "applied"
	MessageNotApplied = "not_applied"
	MessageUnknown    = "unknown"
	MessageSupersede  = "supersede"
	MessagePause      = "pause"
	MessageResume     = "resume"
	MessageApprove    = "approve"
	MessageDecline    = "decline"
	MessageRecover    = "recover"
	MessageOccurrence = "occurrence"
	MessageStop       = "stop"
	// SignalUpgrade is a signal only: continue as new at the next quiet point.
	SignalUpgrade = "upgrade"
	// UpdateSubmit is an update only.
	UpdateSubmit = "submit"
)

// Signals and updates of ReleaseSession, beside MessageApplied, MessageNotApplied and MessageUnknown; each is both.
const (
	MessageAbort   = "abort"
	MessagePromote = "promote"
)

// QueryReceipts answers with the receipts of a ReleaseSession.
const QueryReceipts = "receipts"

// Queries of WorkflowRun; ReleaseSession has state, journal and why too.
const (
	QueryState   = "state"
	QueryLedger  = "ledger"
	QueryJournal = "journal"
	QueryWhy     = "why"
	QueryProof   = "proof"
)

// Search attributes; what an operator filters lists by.
var (
	AttributeStatus       = temporal.NewSearchAttributeKeyKeyword("StewardStatus")
	AttributeBlocker      = temporal.NewSearchAttributeKeyKeyword("StewardBlocker")
	AttributeSite         = temporal.NewSearchAttributeKeyKeyword("StewardSite")
	AttributeConversation = temporal.NewSearchAttributeKeyKeyword("StewardConversation")
	AttributeRound        = temporal.NewSearchAttributeKeyInt64("StewardRound")
	// AttributeReleasePhase is the phase of a ReleaseSession, AttributeRelease the tree hash of its release.
	AttributeReleasePhase = temporal.NewSearchAttributeKeyKeyword("StewardReleasePhase")
	AttributeRelease      = temporal.NewSearchAttributeKeyKeyword("StewardRelease")
)

// StatusWaitingForUser is the value of AttributeStatus of a run that does nothing before a person answers it.
const StatusWaitingForUser = "waiting_for_user"

// MemoAttention is the memo key {class, since, ask, command}, set while a person is needed.
const MemoAttention = "steward_attention"

// FailureStartRefused is the type of the non-retryable failure of a refused start.
const FailureStartRefused = "start_refused"

// Failure types of a DiscoveryScan: its input is refused; the page of the project could not be read.
const (
	FailureScanRefused    = "scan_refused"
	FailureScanUnreadable = "scan_unreadable"
)
