package policy

import (
	"slices"
	"time"

	"steward/workflows/machine/kernel"
)

func (d *draft) pause(e PauseRequested) verdict {
	switch {
	case d.Paused != nil:
		return noOp(CodeDuplicate)
	case d.Stop != nil:
		return reject(CodeStopping)
	}
	d.Paused = &Pause{By: e.Operator, Reason: clip(e.Reason, maxDetail), At: d.at}
	return accepted
}

// resume lifts a pause (which sends nothing by itself) or, with Answers, ends exactly the wait that it names.
func (d *draft) resume(e UserResumeRequested) verdict {
	if d.Stop != nil {
		return reject(CodeStopping)
	}
	want := d.awaited()
	switch {
	case e.Answers == "" && d.Paused != nil:
		d.Paused = nil
		return accepted
	case want == "":
		return noOp(CodeNothingToResume)
	case e.Answers == "":
		return needs(CodeAnswerMissing, "answers")
	case e.Answers != want:
		return reject(CodeAnswerMismatch)
	case e.Operator == "":
		return needs(CodeOperatorMissing, "operator")
	}
	v := d.answer(e)
	if v.Verdict == kernel.Accept {
		d.Paused = nil
	}
	return v
}

// awaited is what a resume has to name: the completion that asked for a person, or the blocker.
func (s *State) awaited() string {
	switch {
	case s.Blocker != nil:
		return s.Blocker.ID
	case s.Status == WaitingForUser && (s.Proposal == nil || !s.Proposal.Approval):
		return s.Completion.ID
	}
	return ""
}

func (d *draft) answer(e UserResumeRequested) verdict {
	if d.Blocker == nil {
		d.enter(PendingRelease, StageClosed)
		d.continueWith(KindResume, e.Note)
		return accepted
	}
	switch d.Blocker.Class {
	case BlockedUserAction, BlockedMissing:
		if d.Blocker.Resumed && d.Blocker.NotBefore.IsZero() {
			return noOp(CodeDuplicate)
		}
		b := d.editBlocker()
		b.Resumed, b.NotBefore = true, time.Time{}
	case BlockedDrift, BlockedForeignDraft:
		d.unblock()
	case BlockedRepeatedState:
		if e.Note == "" {
			return needs(CodeUnchanged, "note")
		}
		d.progressed(digest(d.Completion.Progress, e.Note))
		d.continueWith(KindResume, e.Note)
	case BlockedProtocol:
		d.Violations, d.Mangled = 0, 0
		next := d.reserve(KindResume, d.Effect.ID, d.Turn.AnswerDigest)
		next.Note = e.Note
		d.follow(next)
	case BlockedValidation:
		p := *d.Proposal
		p.NotBefore, p.Unclear = time.Time{}, 0
		d.Proposal = &p
		d.Blocker = nil
		d.enter(PendingRelease, StageClosed)
	case BlockedFailures:
		d.rearm("operator " + e.Operator)
	default:
		return reject(CodeBlocker)
	}
	return accepted
}

// continueWith opens the next round with a resume instead of what was reserved.
func (d *draft) continueWith(kind EffectKind, note string) {
	next := d.reserve(kind, d.Effect.ID, d.Completion.Answer)
	next.NewRound, next.Note = true, note
	next = d.rendered(next)
	d.Next = &next
	if d.Budgets.Rounds >= d.Budgets.MaxRounds {
		d.blockRounds()
		return
	}
	d.release()
}

const maxOccurrences = 32

// occurrence begins: the start of a run, or the explicit occurrence that a waiting run waits for.
// Source: "ControllerRound transition policy", Fresh occurrence rule.
func (d *draft) occurrence(e OccurrenceRequested) verdict {
	if e.Start != nil {
		if d.Status != "" {
			return noOp(CodeDuplicate)
		}
		return d.admit(*e.Start)
	}
	switch {
	case d.Status == "":
		return reject(CodeNotAdmitted)
	case e.OccurrenceID == "":
		return needs(CodeOccurrenceMissing, "occurrence_id")
	case slices.Contains(d.Occurrences, e.OccurrenceID):
		return noOp(CodeOccurrenceSeen)
	case d.Status != Waiting:
		return reject(CodeIllegal)
	}
	d.Occurrences = appendBounded(d.Occurrences, maxOccurrences, e.OccurrenceID)
	d.enter(PendingRelease, StageClosed)
	d.continueWith(KindResume, "")
	return accepted
}

// handing tells whether the successor is being started: that is taken to its end, also by a cancellation.
func (s *State) handing() bool { return s.Succession != nil && s.Succession.Begun }

func (d *draft) stop(s Stop) verdict {
	if d.handing() && !s.Canceled {
		return reject(CodeSuccessionBegun)
	}
	if d.Stop != nil {
		if s.Canceled && !d.Stop.Canceled {
			next := *d.Stop
			next.Canceled = true
			d.Stop = &next
			return accepted
		}
		return noOp(CodeDuplicate)
	}
	s.At, s.Left, s.Reason = d.at, d.Status, clip(s.Reason, maxDetail)
	s.Interrupt = s.Interrupt && d.Effect.State == EffectApplied && (d.Status == Dispatched || d.Status == Claimed)
	if s.By == "" {
		s.By = d.caller
	}
	d.Stop = &s
	return accepted
}

// settleStop ends the run as soon as nothing of it is under way: an attempt without its outcome, an unknown effect within
// its bound, the one press of Stop. Nothing new is sent meanwhile.
func (d *draft) settleStop() {
	if d.Stop == nil || d.Terminal() {
		return
	}
	switch {
	case d.Effect.State == EffectDispatching, d.handing():
	case d.Effect.State == EffectUnknown && d.Effect.Looks < *d.Goal.Continuation.UnknownBound:
	case d.Stop.Interrupt && d.Stop.Interrupted == "":
	default:
		d.Next = nil
		d.Status = Stopped
	}
}

// Outcomes of the one press of the page's Stop.
const (
	InterruptStopped  = "stopped"
	InterruptPressed  = "pressed"
	InterruptUnproven = "unproven"
)

// InterruptID names the one press of the page's Stop: an effect of its own.
func (s *State) InterruptID() string { return s.derive("ix_", s.Effect.ID, 0) }

func (d *draft) interrupted(e InterruptObserved) verdict {
	if d.Stop == nil || !d.Stop.Interrupt || e.EffectID != d.Effect.ID {
		return reject(CodeIllegal)
	}
	if d.Stop.Interrupted != "" {
		return noOp(CodeDuplicate)
	}
	next := *d.Stop
	next.Interrupted = e.Outcome
	d.Stop = &next
	return accepted
}

// recoverAuthority rekeys the round: same round, effect and budgets.
// Source: "ControllerRound transition policy", Authority contract 5.
func (d *draft) recoverAuthority(e AuthorityRecoveryRequested) verdict {
	switch {
	case e.Operator == "":
		return needs(CodeOperatorMissing, "operator")
	case e.Revision != d.Revision:
		return reject(CodeRevisionMismatch)
	case e.AuthorityID != d.AuthorityID:
		return reject(CodeAuthorityMismatch)
	case d.Effect.State == EffectDispatching || d.Effect.State == EffectUnknown:
		return reject(CodeRoundAlive)
	case d.Stage == StageClaimed && d.Turn.SettledAt.IsZero():
		return reject(CodeRoundAlive)
	}
	d.rotate()
	return accepted
}
