// Package evidence is what the recovery process can prove of a release, as plain data: its activities return it and the
// policy of ReleaseSession judges it. Nothing here says what follows from it.
package evidence

import "time"

// Outcome is how one check ended.
type Outcome string

const (
	// Passed is positive proof.
	Passed Outcome = "passed"
	// Failed is negative proof.
	Failed Outcome = "failed"
	// Inconclusive ran and could not tell: exit code 75, or an address that did not answer. Never a pass.
	Inconclusive Outcome = "inconclusive"
	// NoData ran and had nothing to judge: exit code 66. Never a pass.
	NoData Outcome = "no_data"
)

// Receipt is what remains of one check: ids, exit code, digest of the whole output and one redacted line.
type Receipt struct {
	// Gate names the check: a gate, a canary, stable, active, performance, live_proof, bundle.
	Gate    string  `json:"gate"`
	Outcome Outcome `json:"outcome"`
	// Revision and Release are what was checked: the commit, and the tree hash of the release in the store.
	Revision string `json:"revision,omitempty"`
	Release  string `json:"release,omitempty"`
	// Runner is the tree hash of the release whose binary ran the check; empty for an HTTP probe.
	Runner   string    `json:"runner,omitempty"`
	ExitCode int       `json:"exit_code,omitempty"`
	Code     string    `json:"code,omitempty"`
	Digest   string    `json:"digest,omitempty"`
	Line     string    `json:"line,omitempty"`
	At       time.Time `json:"at,omitzero"`
}

// Process is the identity of a process: a pid alone may be used again.
type Process struct {
	PID int `json:"pid"`
	// Started is the start time in clock ticks since boot, Boot the boot id of the host.
	Started int64  `json:"started"`
	Boot    string `json:"boot"`
}

// Identity is a service as it was observed: what it is made of, where it lives, and whether it serves.
type Identity struct {
	// Release is the tree hash of the release that the process runs; empty when none runs.
	Release string `json:"release,omitempty"`
	Home    string `json:"home,omitempty"`
	Label   string `json:"label,omitempty"`
	Port    int    `json:"port,omitempty"`
	// TokenDigest is a digest of the token file's content; empty without one. The token itself is never read into evidence.
	TokenDigest string `json:"token_digest,omitempty"`
	// Incarnation is the writer epoch of the home.
	Incarnation int64    `json:"incarnation,omitempty"`
	Process     *Process `json:"process,omitempty"`
	// Ready: the readiness check passed on this very process.
	Ready bool `json:"ready,omitempty"`
}

// SameLane tells whether two observations show the same release in the same place; a restart keeps that.
func (i Identity) SameLane(other Identity) bool {
	return i.Release == other.Release && i.Home == other.Home && i.Label == other.Label && i.Port == other.Port
}

// Overlap names what two lanes share and must not; empty when they are apart.
func (i Identity) Overlap(other Identity) []string {
	var shared []string
	for _, pair := range []struct {
		what string
		same bool
	}{
		{"home", i.Home == other.Home},
		{"port", i.Port != 0 && i.Port == other.Port},
		{"label", i.Label == other.Label},
		{"token", i.TokenDigest != "" && i.TokenDigest == other.TokenDigest},
	} {
		if pair.same {
			shared = append(shared, pair.what)
		}
	}
	return shared
}

// Kinds of physical operations.
const (
	KindCutover  = "cutover"
	KindRollback = "rollback"
)

// Operation is what the authority file says was done last.
type Operation struct {
	Kind    string `json:"kind"`
	Session string `json:"session"`
}

// Authority is the content of the authority file.
type Authority struct {
	Active   string `json:"active,omitempty"`
	Previous string `json:"previous,omitempty"`
	// Backup is the digest of the database backup that belongs to the switch; empty when there is none.
	Backup        string    `json:"backup,omitempty"`
	LastOperation Operation `json:"last_operation,omitzero"`
}

// Names of the steps of a physical operation, in their order. A step is recorded when it is complete.
const (
	StepLocked    = "locked"
	StepSnapshot  = "snapshot_taken"
	StepFenced    = "admission_fenced"
	StepStopped   = "stable_stopped"
	StepBackup    = "backup_confirmed"
	StepPublished = "authority_published"
	StepReserved  = "epoch_reserved"
	StepStarted   = "release_started"
	StepRebound   = "connector_rebound"
	StepVerified  = "release_verified"
	StepCleared   = "fence_cleared"

	StepRollbackStopped   = "rollback_stopped"
	StepRollbackDatabase  = "rollback_database"
	StepRollbackPublished = "rollback_published"
	StepRollbackStarted   = "rollback_started"
	StepRollbackVerified  = "rollback_verified"
	StepRollbackCleared   = "rollback_cleared"
)

// Step is one completed step of a session's operations.
type Step struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	// Reason is why a rollback was begun: session, watchdog, cutover_failed.
	Reason string `json:"reason,omitempty"`
}

// Lane is one look at the stable lane and at what a session did to it.
type Lane struct {
	// Observed is false when the look itself failed; then nothing else counts.
	Observed  bool      `json:"observed"`
	At        time.Time `json:"at,omitzero"`
	Serving   Identity  `json:"serving"`
	Authority Authority `json:"authority"`
	// Steps are those of the session's steps.json, oldest first.
	Steps []Step `json:"steps,omitempty"`
	// Settled: no lock record stands, so no operation is under way or waits to be finished.
	Settled bool `json:"settled"`
}

// Last is the name of the last completed step.
func (l Lane) Last() string {
	if len(l.Steps) == 0 {
		return ""
	}
	return l.Steps[len(l.Steps)-1].Name
}

// RollbackReason is why the session's rollback was begun; empty without one.
func (l Lane) RollbackReason() string {
	for _, step := range l.Steps {
		if step.Reason != "" {
			return step.Reason
		}
	}
	return ""
}

// Window is one observation of a process's CPU use.
type Window struct {
	At time.Time `json:"at"`
	// CPU is the use of one core in hundredths of a percent: 500 is 5 %.
	CPU int `json:"cpu"`
	// OffSchedule: the window was shorter, longer or later than planned, or the process changed in it; it proves nothing.
	OffSchedule bool `json:"off_schedule,omitempty"`
}

// Turn is one line of the ledger of the acceptance run.
type Turn struct {
	Effect string `json:"effect"`
	// Source is the effect whose answer this one continues; empty for the first.
	Source     string `json:"source,omitempty"`
	Generation int    `json:"generation"`
	Action     string `json:"action,omitempty"`
	// Completion is the fingerprint of the receipt that closed the turn.
	Completion  string    `json:"completion,omitempty"`
	Dispatches  int       `json:"dispatches"`
	Dispatched  time.Time `json:"dispatched,omitzero"`
	Applied     time.Time `json:"applied,omitzero"`
	Committed   time.Time `json:"committed,omitzero"`
	Release     string    `json:"release,omitempty"`
	Incarnation int64     `json:"incarnation,omitempty"`
}

// Session is what a finished session left behind.
type Session struct {
	ID       string    `json:"id"`
	Revision string    `json:"revision"`
	Release  string    `json:"release,omitempty"`
	Origin   string    `json:"origin"`
	Phase    string    `json:"phase"`
	Code     string    `json:"code,omitempty"`
	At       time.Time `json:"at"`
}
