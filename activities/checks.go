package activities

import (
	"time"

	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
)

// CheckInput asks for one run of every check of a completion contract.
type CheckInput struct {
	// Checks are normalized.
	Checks []goal.Check `json:"checks"`
	// Totals are the counts at the start, by check name (BaselineResult.Totals).
	Totals map[string]int64 `json:"totals,omitempty"`
	// RunIDs are the names by which a file may say that it belongs to this run: task, workflow, conversation, scope id.
	RunIDs []string `json:"run_ids,omitempty"`
}

// CheckResult has the evidence of every check, in the order of the input.
type CheckResult struct {
	Evidence []CheckEvidence `json:"evidence"`
	Worker   Worker          `json:"worker"`
}

// CheckOutcome is what one check proved.
type CheckOutcome string

const (
	// CheckPass: proven, now, on Revision.
	CheckPass CheckOutcome = "pass"
	// CheckFail: the check ran, and what it checks is not as the contract wants it.
	CheckFail CheckOutcome = "fail"
	// CheckCannotTell: the check could not be carried out here. Never a pass, and nothing that the assistant did.
	CheckCannotTell CheckOutcome = "cannot_tell"
)

// Codes of a failed check.
const (
	// CheckExitMismatch: another exit code than wanted, or ended by a signal.
	CheckExitMismatch = "exit_mismatch"
	// CheckOutputMismatch: the output does not match the expression.
	CheckOutputMismatch = "output_mismatch"
	// CheckTimedOut: the command or the answer took too long.
	CheckTimedOut = "timed_out"
	// CheckNotFound: the file, or a program given by path, is not there or not executable.
	CheckNotFound = "not_found"
	// CheckStillExists: something is where nothing may be.
	CheckStillExists = "still_exists"
	// CheckNotAFile: a folder, pipe or device has no content to judge.
	CheckNotAFile = "not_a_file"
	// CheckTextMissing: the file does not contain the text.
	CheckTextMissing = "text_missing"
	// CheckDigestMismatch: the file has another sha256.
	CheckDigestMismatch = "digest_mismatch"
	// CheckStaleArtifact: the file is older than the revision that it claims to prove.
	CheckStaleArtifact = "stale_artifact"
	// CheckForeignRun: the file names another run, or none.
	CheckForeignRun = "foreign_run"
	// CheckTotalMissing: the file has no count, or 0.
	CheckTotalMissing = "total_missing"
	// CheckTotalShrunk: the count is smaller than at the start.
	CheckTotalShrunk = "total_shrunk"
	// CheckStatusMismatch: another HTTP status than wanted.
	CheckStatusMismatch = "status_mismatch"
	// CheckUnreachable: nobody answers at the address.
	CheckUnreachable = "unreachable"
	// CheckRedirectRefused: a redirect leads off the host, or there are too many.
	CheckRedirectRefused = "redirect_refused"
)

// Codes of a check that cannot tell.
const (
	// CheckCannotRun: the program, the folder, git or name resolution is not there.
	CheckCannotRun = "cannot_run"
	// CheckCannotRead: the file or folder exists and cannot be read.
	CheckCannotRead = "cannot_read"
	// CheckTooLarge: more than the bounds of a check; see the package checks.
	CheckTooLarge = "too_large"
	// CheckChangedMeanwhile: the file changed while it was read.
	CheckChangedMeanwhile = "changed_meanwhile"
	// CheckNoRevision: the folder of fresh_for is no git work tree with a commit.
	CheckNoRevision = "no_revision"
	// CheckCannotKeep: the output could not be kept on the host.
	CheckCannotKeep = "cannot_keep"
	// CheckRefused: the worker's checks.roots, checks.commands, checks.hosts or checks.env do not allow it.
	CheckRefused = "refused_by_worker"
	// CheckNotStarted: another check of the same contract was refused, so none was started.
	CheckNotStarted = "not_started"
)

// CheckEvidence is what one check found. It has no output and no body: the output stays on the host that ran the check, in
// a file named by Digest.
type CheckEvidence struct {
	Name string `json:"name"`
	// Kind is command, file or http.
	Kind string `json:"kind"`
	// Subject is what was checked: the command line, the path or the address without its query, in one line.
	Subject string `json:"subject"`
	// Revision is what it was checked on: git:<HEAD>+<digest of the changes, or clean>, or sha256:<digest> of the file;
	// empty where there is neither.
	Revision string    `json:"revision,omitempty"`
	At       time.Time `json:"at"`
	// Took is in milliseconds.
	Took    int64        `json:"took_ms"`
	Outcome CheckOutcome `json:"outcome"`
	// Code is empty for a pass.
	Code string `json:"code,omitempty"`
	// Exit is the exit code of a command that ended by itself.
	Exit *int `json:"exit,omitempty"`
	// Status is the status of an HTTP answer.
	Status *int `json:"status,omitempty"`
	// Digest is the sha256 of the kept output, the file or the body, in hex; Bytes is its whole size.
	Digest string `json:"digest,omitempty"`
	Bytes  int64  `json:"bytes,omitempty"`
	// Total is the count that the rule total found.
	Total *int64 `json:"total,omitempty"`
	// Line is one redacted line for people, at most 200 characters.
	Line string `json:"line,omitempty"`
}

// BaselineInput asks a checks worker what it will not do for a goal, and for the counts that its files show now.
type BaselineInput struct {
	// Goal is normalized.
	Goal goal.Goal `json:"goal"`
}

// BaselineResult is taken once, at the start.
type BaselineResult struct {
	// Problems is everything that the worker refuses; with problems there are no totals.
	Problems []strict.Problem `json:"problems,omitempty"`
	// Totals has the counts of the rule total, by check name. A file that does not exist yet has none.
	Totals map[string]int64 `json:"totals,omitempty"`
	Worker Worker           `json:"worker"`
}

// ProgressInput asks for one look at every progress probe.
type ProgressInput struct {
	Probes []goal.Probe `json:"probes"`
	// Checks are the normalized checks that probes name; Totals and RunIDs as in CheckInput.
	Checks []goal.Check     `json:"checks,omitempty"`
	Totals map[string]int64 `json:"totals,omitempty"`
	RunIDs []string         `json:"run_ids,omitempty"`
}

// ProgressResult has one digest for each probe and one over all.
type ProgressResult struct {
	// Digest changes exactly when one of Probes changes: sha256 in hex.
	Digest string        `json:"digest"`
	Probes []ProbeDigest `json:"probes"`
	Worker Worker        `json:"worker"`
}

// ProbeDigest is the state of one probe as a short stable text; equal states have equal texts.
type ProbeDigest struct {
	// Probe is git:<dir>, file:<path> or check:<name>.
	Probe string `json:"probe"`
	// Digest is git:<HEAD>+<changes>, sha256:<digest>, absent, directory, check:<outcome>…, or cannot_tell.
	Digest string `json:"digest"`
	// Code says why Digest is cannot_tell.
	Code string `json:"code,omitempty"`
}
