package policy

// Codes say why an event was not accepted as asked. They are stable.
const (
	CodeInvalidState = "invalid_state"
	CodeTerminal     = "session_has_ended"
	CodeIllegal      = "illegal_in_phase"
	CodeStale        = "outcome_stale"
	CodeOperation    = "operation_mismatch"
	CodeNotUnknown   = "operation_not_unknown"
	CodeContradicted = "contradicted_by_observation"
	CodeUnobserved   = "observation_missing"
	CodeNotDue       = "not_due"
	CodeDuplicate    = "duplicate"
	CodeNothing      = "nothing_to_do"
	CodeOperator     = "operator_missing"
	CodeReason       = "reason_missing"
	CodeNothingOpen  = "nothing_parked"
	CodeAbortFirst   = "abort_recorded"
)

// Codes of how a session ended, and of why it went back. They are stable; more come from the recovery process.
const (
	CodeStartRefused       = "start_refused"
	CodeRevisionFinished   = "revision_finished"
	CodeReleaseRepeated    = "release_repeated"
	CodeAlreadyActive      = "already_active"
	CodeSourceChanged      = "source_changed"
	CodeGateFailed         = "gate_failed"
	CodeCanaryFailed       = "canary_failed"
	CodeLanesShared        = "lanes_shared"
	CodeReleaseChanged     = "release_changed"
	CodeStableDrift        = "stable_drift"
	CodeAuthorityDrift     = "authority_drift"
	CodeIdentityMismatch   = "identity_mismatch"
	CodeAborted            = "aborted"
	CodeDeadline           = "deadline"
	CodeNotApplied         = "cutover_not_applied"
	CodeUnserviceable      = "rollback_unserviceable"
	CodeRollbackNotApplied = "rollback_not_applied"
	CodeOutcomeUnknown     = "outcome_unknown"
	CodeCutoverFailed      = "cutover_failed"
	CodeNotServing         = "not_serving"
	CodePerformance        = "performance_rejected"
	CodeProofFailed        = "live_proof_failed"
	CodeProofLate          = "live_proof_late"
	CodeVerification       = "verification_failed"
	CodeWatchdog           = "watchdog"
)
