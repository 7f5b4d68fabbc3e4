package policy

import (
	"strings"
	"time"
)

const probeLimit = time.Hour

// nextProbe schedules the next look at a blocker: growing up to an hour.
func (d *draft) nextProbe() {
	b := d.editBlocker()
	b.NotBefore = d.at.Add(backoff(d.pace().Probe.Std(), probeLimit, b.Probes))
	b.Probes++
}

// ProbeID names the next probe of the present blocker: a probe is an effect of its own and never a retry of the blocked one.
func (s *State) ProbeID() string {
	return s.derive("pr_", s.Blocker.ID, s.Blocker.Probes)
}

// ProbeLevel is how much the owed probe has to prove.
func (s *State) ProbeLevel() string {
	if s.Blocker.Mechanical && s.Site.ProbeMessage {
		return probeLevelMessage
	}
	return "page"
}

// probed takes a probe's outcome. A failed, stale or mismatching probe rearms nothing; it only schedules the next one.
// Source: "ControllerRound transition policy", Blocked policy.
func (d *draft) probed(e ProviderEnvironmentRecovered) verdict {
	switch {
	case d.Blocker == nil:
		return reject(CodeIllegal)
	case e.Blocker != d.Blocker.ID || e.Revision != d.Blocker.Revision:
		return reject(CodeProbeStale)
	case e.Operator == "" && e.Probe != d.ProbeID():
		return noOp(CodeDuplicate)
	}
	class := d.Blocker.Class
	if !e.Passed && e.Operator == "" {
		d.nextProbe()
		if class == BlockedUserAction {
			d.editBlocker().Resumed = false
		}
		return acceptAs(CodeProbeFailed)
	}
	switch class {
	case BlockedFailures:
		return d.rearm(e)
	case BlockedDrift:
		if e.SiteDigest == d.Blocker.SiteDigest && e.Operator == "" {
			d.nextProbe()
			return acceptAs(CodeProbeFailed)
		}
		d.unblock()
	case BlockedUserAction, BlockedMissing, BlockedForeignDraft:
		d.unblock()
	default:
		return reject(CodeBlocker)
	}
	return accepted
}

// rearm opens a new recovery epoch for the same undispatched round: one new generation, history and the other budgets
// kept. A page probe cannot disprove a failure of typing, click or crash.
func (d *draft) rearm(e ProviderEnvironmentRecovered) verdict {
	failures := &d.Budgets.ProviderFailures
	if e.Operator == "" {
		if d.Blocker.Mechanical && e.Level != probeLevelMessage {
			d.nextProbe()
			return acceptAs(CodeProbeLevel)
		}
		if failures.Epoch >= *d.Goal.Continuation.MaxRecoveryEpochs {
			return reject(CodeBlocker)
		}
	}
	failures.Epoch++
	failures.Streak = 0
	d.unblock()
	d.Effect.EpochBase = d.Effect.Generation
	d.authorize(time.Time{})
	return accepted
}

// stateChanged rearms repeated_state, and nothing else, on a changed fingerprint.
func (d *draft) stateChanged(e SemanticStateChanged) verdict {
	if e.Fingerprint == "" && e.Operator != "" && e.Note != "" {
		e.Fingerprint = digest(d.Completion.Progress, e.Note)
	}
	switch {
	case d.Status != Blocked || d.Blocker.Class != BlockedRepeatedState:
		return reject(CodeIllegal)
	case e.Fingerprint == "":
		return needs(CodeUnchanged, "fingerprint")
	case e.Fingerprint == d.Completion.Progress:
		if e.Operator != "" {
			return reject(CodeUnchanged)
		}
		d.nextProbe()
		return acceptAs(CodeUnchanged)
	}
	d.Completion.Progress = e.Fingerprint
	d.Budgets.RepeatedState, d.Budgets.Stagnation = 0, false
	d.Blocker = nil
	d.enter(PendingRelease, StageClosed)
	if d.Budgets.Rounds >= d.Budgets.MaxRounds {
		d.block(BlockedRounds, string(BlockedRounds), "every round of the budget is used")
		return accepted
	}
	d.release()
	return accepted
}

func (f *Failure) message() string {
	return f.Code + ":\n- " + strings.Join(f.Problems, "\n- ")
}
