package policy

import (
	"strings"
	"time"
)

const probeLimit = time.Hour

// nextProbe schedules the next look at a blocker: growing up to an hour.
func (d *draft) nextProbe() {
	b := d.editBlocker()
	b.Probes++
	b.NotBefore = d.at.Add(backoff(d.pace().Probe.Std(), probeLimit, b.Probes))
}

// ProbeID names the next probe of the present blocker: a probe is an effect of its own and never a retry of the blocked one.
func (s *State) ProbeID() string {
	return s.derive("pr_", s.Blocker.ID, s.Blocker.Probes)
}

// ProbeLevel is how much the owed probe has to prove.
func (s *State) ProbeLevel() string {
	if s.Blocker.Mechanical {
		return probeLevelMessage
	}
	return probeLevelPage
}

// probes tells whether the present blocker can end by a probe. A page alone cannot disprove a failure of typing, click or
// crash; where the site allows no message, only an operator's word can.
func (s *State) probes() bool {
	switch s.Blocker.Class {
	case BlockedFailures:
		return s.Budgets.ProviderFailures.Epoch < *s.Goal.Continuation.MaxRecoveryEpochs && (!s.Blocker.Mechanical || s.Site.ProbeMessage)
	case BlockedUserAction:
		return s.Blocker.Resumed
	case BlockedDrift, BlockedMissing, BlockedForeignDraft:
		return true
	}
	return false
}

func (d *draft) probeStarted(suspect bool) verdict {
	switch {
	case !d.probes():
		return reject(CodeBlocker)
	case d.Stop != nil:
		return reject(CodeStopping)
	case d.Paused != nil:
		return reject(CodePaused)
	case !d.Blocker.NotBefore.IsZero():
		return reject(CodeNotDue)
	}
	d.Doubted = d.Doubted || suspect
	return accepted
}

// probed takes a probe's outcome. A failed, stale or mismatching probe rearms nothing; it only schedules the next one.
// Source: "ControllerRound transition policy", Blocked policy.
func (d *draft) probed(e ProviderEnvironmentRecovered) verdict {
	switch {
	case d.Blocker == nil:
		return reject(CodeIllegal)
	case e.Blocker != d.Blocker.ID || e.Revision != d.Blocker.Revision:
		return reject(CodeProbeStale)
	case e.Probe != d.ProbeID():
		return noOp(CodeDuplicate)
	case !d.probes():
		return reject(CodeBlocker)
	case !e.Passed:
		return d.unproven(CodeProbeFailed)
	case d.Blocker.Mechanical && e.Level != probeLevelMessage:
		return d.unproven(CodeProbeLevel)
	}
	switch d.Blocker.Class {
	case BlockedFailures:
		d.rearm(e.Probe)
	case BlockedDrift:
		if e.SiteDigest == d.Blocker.SiteDigest {
			return d.unproven(CodeProbeFailed)
		}
		d.unblock()
	default:
		d.unblock()
	}
	return accepted
}

// unproven keeps the blocker and schedules the next probe. What a person said is done is not: they are asked again.
func (d *draft) unproven(code string) verdict {
	d.nextProbe()
	if d.Blocker.Class == BlockedUserAction {
		d.Blocker.Resumed = false
	}
	return acceptAs(code)
}

// rearm opens a new recovery epoch for the same undispatched round: one new generation, history and the other budgets
// kept. By is the probe or the operator.
func (d *draft) rearm(by string) {
	failures := &d.Budgets.ProviderFailures
	failures.Epoch++
	failures.Streak = 0
	failures.Opened = clip(by, maxWord)
	d.unblock()
	d.Effect.EpochBase = d.Effect.Generation
	d.authorize(time.Time{})
}

// stateChanged rearms repeated_state, and nothing else, on a changed fingerprint.
func (d *draft) stateChanged(e SemanticStateChanged) verdict {
	if d.Status != Blocked || d.Blocker.Class != BlockedRepeatedState {
		return reject(CodeIllegal)
	}
	if e.Operator == "" {
		switch {
		case e.Blocker != d.Blocker.ID:
			return reject(CodeProbeStale)
		case e.Look != d.Blocker.Probes:
			return noOp(CodeDuplicate)
		case e.Fingerprint == "":
			return needs(CodeUnchanged, "fingerprint")
		case e.Fingerprint == d.Completion.Progress:
			d.nextProbe()
			return acceptAs(CodeUnchanged)
		}
	} else {
		if e.Note == "" {
			return needs(CodeUnchanged, "note")
		}
		e.Fingerprint = digest(d.Completion.Progress, e.Note)
	}
	d.progressed(e.Fingerprint)
	if d.Budgets.Rounds >= d.Budgets.MaxRounds {
		d.blockRounds()
		return accepted
	}
	d.release()
	return accepted
}

// progressed ends a repeated_state: the round it closed can be released.
func (d *draft) progressed(fingerprint string) {
	d.Completion.Progress = fingerprint
	d.Budgets.RepeatedState, d.Budgets.Stagnation = 0, false
	d.Blocker = nil
	d.enter(PendingRelease, StageClosed)
}

func (d *draft) blockRounds() {
	d.block(BlockedRounds, string(BlockedRounds), "every round of the budget is used")
}

func (f *Failure) message() string {
	return f.Code + ":\n- " + strings.Join(f.Problems, "\n- ")
}
