package activities

import (
	"encoding/json"

	"steward/workflows/machine/strict"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// The activities of ReleaseSession run in the recovery process of one host. All but Cutover, Rollback and RestartActive are
// repeatable: called again with the same input they find what an earlier call left and go on, so they may be retried and
// cancelled at any time. Something that cannot become otherwise by trying again is a result with Failed; everything else
// that goes wrong is an error of the activity.

// ReleaseFailure says why something is definitely wrong. Code is one of the codes below, or a lower_snake word of its own.
type ReleaseFailure struct {
	Code   string `json:"code"`
	Detail string `json:"detail,omitempty"`
}

// Codes of ReleaseFailure that more than one activity uses. ReleaseFailed has no better one.
const (
	ReleaseFailed          = "failed"
	ReleaseSourceMissing   = "source_missing"
	ReleaseSourceChanged   = "source_changed"
	ReleaseBuildFailed     = "build_failed"
	ReleaseOutputMissing   = "build_output_missing"
	ReleaseChanged         = "release_changed"
	ReleaseRunnerMissing   = "runner_missing"
	ReleaseCandidateExited = "candidate_exited"
	ReleaseLaneShared      = "lanes_shared"
	ReleaseStale           = "writer_stale"
)

// ReleaseRef names one session's release in every input. Source and Release are set once they are known.
type ReleaseRef struct {
	Session string `json:"session"`
	// Plan is normalized.
	Plan plan.Plan `json:"plan"`
	// Source is the tree hash of the frozen source, Release that of the built release.
	Source  string `json:"source,omitempty"`
	Release string `json:"release,omitempty"`
	// Stable is A as it was when the source was frozen.
	Stable evidence.Identity `json:"stable,omitzero"`
}

// AdmitReleaseInput asks the recovery process to read one start and what earlier sessions of the instance left behind.
type AdmitReleaseInput struct {
	// Start is the start input as it came.
	Start json.RawMessage `json:"start"`
	// Session is the id that this session gets unless it resumes another.
	Session    string `json:"session"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
}

// AdmitReleaseResult is the evidence that a start is judged by. With problems, only Problems and Worker count.
type AdmitReleaseResult struct {
	// Problems is everything that is wrong with the start, at once: the plan itself (plan.Decode), and what this host cannot do.
	Problems []strict.Problem `json:"problems,omitempty"`
	// Plan is the start input with every default filled in (Plan.Normalize).
	Plan plan.Plan `json:"plan,omitzero"`
	// Earlier are the finished sessions of the same instance and revision, newest first, at most 16.
	Earlier []evidence.Session `json:"earlier,omitempty"`
	// Standing is the session that a lock record of the home names; empty when none stands.
	Standing string `json:"standing,omitempty"`
	// Resume is an unfinished session of the same instance and revision that was interrupted right after its source was
	// frozen, when frozen tree hash and A's identity still match; nil when there is none.
	Resume *FreezeResult `json:"resume,omitempty"`
	Worker Worker        `json:"worker"`
}

// FreezeInput asks for the source of the plan's exact revision in a folder of its own, and for the identity of A.
type FreezeInput struct {
	ReleaseRef
}

// FreezeResult is a frozen source. It is kept in the session folder before it is returned.
type FreezeResult struct {
	Session  string            `json:"session"`
	Revision string            `json:"revision"`
	Source   string            `json:"source"`
	Stable   evidence.Identity `json:"stable"`
	Failed   *ReleaseFailure   `json:"failed,omitempty"`
	Worker   Worker            `json:"worker"`
}

// BuildInput asks for the release: build, tree hash, read-only in the store.
type BuildInput struct {
	ReleaseRef
}

// BuildResult is a stored release.
type BuildResult struct {
	Release string `json:"release"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
	// Repeated is the newest finished session that already had this very release; nil when there is none.
	Repeated *evidence.Session `json:"repeated,omitempty"`
	Failed   *ReleaseFailure   `json:"failed,omitempty"`
	Worker   Worker            `json:"worker"`
}

// Places in which a check runs.
const (
	// PlaceSource: the folder of the frozen source, with the candidate's own release as runner.
	PlaceSource = "source"
	// PlaceCandidate: the candidate lane, with the candidate's own release as runner.
	PlaceCandidate = "candidate"
	// PlaceActive: the live lane, with the installed release as runner.
	PlaceActive = "active"
)

// GateInput asks for one check. The runner is taken from the place, never from the plan.
type GateInput struct {
	ReleaseRef
	// Name is the gate's or canary's name, or live_proof.
	Name  string     `json:"name"`
	Place string     `json:"place"`
	Check plan.Check `json:"check"`
}

// GateResult is the receipt of one check.
type GateResult struct {
	Receipt evidence.Receipt `json:"receipt"`
	// Failed: the check could not run and never will, like a missing runner.
	Failed *ReleaseFailure `json:"failed,omitempty"`
	Worker Worker          `json:"worker"`
}

// BootCandidateInput asks for the candidate lane: a home with a copied database snapshot and a token of its own, and the
// exact release running in it. A candidate of the session that serves already is left alone.
type BootCandidateInput struct {
	ReleaseRef
}

// BootCandidateResult is a serving candidate.
type BootCandidateResult struct {
	Candidate evidence.Identity `json:"candidate"`
	// Snapshot is the SHA-256 of the copied database snapshot; empty without a database.
	Snapshot string          `json:"snapshot,omitempty"`
	Failed   *ReleaseFailure `json:"failed,omitempty"`
	Worker   Worker          `json:"worker"`
}

// StopCandidateInput asks to stop the candidate and prove it; its home stays until the session is closed.
type StopCandidateInput struct {
	ReleaseRef
}

// StopCandidateResult: the candidate's process group, listener and writer are gone.
type StopCandidateResult struct {
	Worker Worker `json:"worker"`
}

// VerifyStableInput asks for one full verification of the live lane, and for the release's tree hash as it is on disk now.
type VerifyStableInput struct {
	ReleaseRef
}

// VerifyStableResult is what the live lane is right now. What could not be seen is an inconclusive receipt, not an error.
type VerifyStableResult struct {
	Lane evidence.Lane `json:"lane"`
	// Receipt is that of all checks of service.verify together.
	Receipt evidence.Receipt `json:"receipt"`
	// Stored is the tree hash of the built release, read again from the store; empty when it cannot be read.
	Stored string `json:"stored,omitempty"`
	Worker Worker `json:"worker"`
}

// OperationInput asks for one fenced physical operation: Cutover or Rollback. Its steps are recorded in the session folder.
type OperationInput struct {
	ReleaseRef
	// Operation is the id of this one attempt. An id whose steps stand already is refused with an error of type
	// OperationRepeated: a lost answer never replays an operation.
	Operation  string `json:"operation"`
	Generation int    `json:"generation"`
	// Reason is why a rollback is asked for; the same words as in evidence.Step. Empty for a cutover.
	Reason string `json:"reason,omitempty"`
}

// OperationRepeated is the type of the error that refuses an operation which was begun before.
const OperationRepeated = "operation_repeated"

// OperationProgress are the heartbeat details of an operation. Armed is the generation from before A is stopped on; before
// that it is 0, and a time-out proves that the service was not touched.
type OperationProgress struct {
	Armed int    `json:"armed"`
	Step  string `json:"step,omitempty"`
}

// OperationResult is what an operation that returned can prove. The lane decides; Failed only says why it did not go through.
type OperationResult struct {
	Lane evidence.Lane `json:"lane"`
	// Restored: a failure before the switch, or a rollback, tried to start A again, three times at most.
	Restored bool `json:"restored,omitempty"`
	// OutageMillis is the time from the proven stop of the old release until the new one was ready; 0 when not measured.
	OutageMillis int64 `json:"outage_ms,omitempty"`
	// Backup is the SHA-256 of the database backup of the switch; empty without a database.
	Backup string `json:"backup,omitempty"`
	// Database says what a rollback did with it: none, restored, kept.
	Database string `json:"database,omitempty"`
	// Receipt is that of the one strict verification; its gate is empty when it did not come to that.
	Receipt evidence.Receipt `json:"receipt,omitzero"`
	Failed  *ReleaseFailure  `json:"failed,omitempty"`
	Worker  Worker           `json:"worker"`
}

// ReconcileOperationInput asks what is: service identity, authority and steps. It changes nothing.
type ReconcileOperationInput struct {
	ReleaseRef
}

// ReconcileOperationResult is one look at the live lane.
type ReconcileOperationResult struct {
	Lane   evidence.Lane `json:"lane"`
	Worker Worker        `json:"worker"`
}

// ObserveSoakInput asks for some windows of CPU use of the active release.
type ObserveSoakInput struct {
	ReleaseRef
	// First waits for the warm-up before the first window.
	First bool `json:"first"`
	// Windows is how many windows to observe now.
	Windows int `json:"windows"`
}

// ObserveSoakResult are the windows, and the live lane at their end.
type ObserveSoakResult struct {
	Windows []evidence.Window `json:"windows,omitempty"`
	Lane    evidence.Lane     `json:"lane"`
	Worker  Worker            `json:"worker"`
}

// LiveProofInput asks for the ledger of the session's acceptance run. The run is started when it does not exist; its id
// derives from the session. The activity returns when the run has a first CONTINUE and Restarted is false, when the run
// has ended, or after Patience.
type LiveProofInput struct {
	ReleaseRef
	// Restarted: the active release was restarted after the first CONTINUE.
	Restarted bool          `json:"restarted"`
	Patience  plan.Duration `json:"patience"`
}

// LiveProofResult is the ledger of the acceptance run.
type LiveProofResult struct {
	WorkflowID string `json:"workflow_id"`
	// Status is that of the run; Open whether it goes on.
	Status string          `json:"status"`
	Open   bool            `json:"open"`
	Turns  []evidence.Turn `json:"turns,omitempty"`
	// MinIntervalMillis is the pace that the run was bound to.
	MinIntervalMillis int64         `json:"min_interval_ms,omitempty"`
	Lane              evidence.Lane `json:"lane"`
	Worker            Worker        `json:"worker"`
}

// RestartActiveInput asks to restart the active release once, for the live proof.
type RestartActiveInput struct {
	ReleaseRef
	// Before is the incarnation that has to be replaced; when another one serves already, nothing is done.
	Before int64 `json:"before"`
}

// RestartActiveResult is the live lane after the restart.
type RestartActiveResult struct {
	Lane   evidence.Lane `json:"lane"`
	Worker Worker        `json:"worker"`
}

// BundleInput asks for the known-good bundle of the active release: written, published atomically and read back.
type BundleInput struct {
	ReleaseRef
}

// BundleResult is a bundle as it was read back.
type BundleResult struct {
	ID string `json:"id"`
	// Release is the release that the bundle protects, Digest that of the whole record.
	Release string `json:"release"`
	Digest  string `json:"digest"`
	// Database is the SHA-256 of the snapshot in it; empty without a database.
	Database string `json:"database,omitempty"`
	// Validated: the validator that retention and rollback use accepted it from disk.
	Validated bool `json:"validated"`
	// Lane is the live lane after the bundle was published: the watchdog may have gone back meanwhile.
	Lane   evidence.Lane   `json:"lane"`
	Failed *ReleaseFailure `json:"failed,omitempty"`
	Worker Worker          `json:"worker"`
}

// CloseSessionInput asks to record how a session ended, remove its candidate lane once that is kept, and prune.
type CloseSessionInput struct {
	ReleaseRef
	Record   evidence.Session   `json:"record"`
	Receipts []evidence.Receipt `json:"receipts,omitempty"`
	// Attention is what a person must do by hand, with the command; empty when nothing.
	Attention string `json:"attention,omitempty"`
}

// CloseSessionResult: the record is on disk.
type CloseSessionResult struct {
	Worker Worker `json:"worker"`
}
