package policy

import (
	"slices"
	"strconv"
	"time"

	"steward/workflows/machine/kernel"
)

const (
	deferLimit     = 10 * time.Minute
	retryLimit     = 10 * time.Minute
	foreignDraftIn = time.Hour
	maxAttempts    = 12
)

// owns checks that an event speaks of the present attempt of the present effect.
func (d *draft) owns(a Attempted) verdict {
	switch {
	case a.EffectID != d.Effect.ID && d.past(a.EffectID):
		return noOp(CodeDuplicate)
	case a.EffectID != d.Effect.ID:
		return reject(CodeEffectMismatch)
	case a.Generation < d.Effect.Generation:
		return reject(CodeGenerationStale)
	case a.Generation > d.Effect.Generation:
		return reject(CodeGenerationMismatch)
	}
	return accepted
}

// past tells whether the effect is an earlier one of this start.
func (d *draft) past(effectID string) bool {
	return slices.ContainsFunc(d.Ledger, func(t LedgerTurn) bool { return t.Effect == effectID })
}

// inFlight checks that this very attempt has begun and has no outcome yet.
func (d *draft) inFlight(a Attempted) verdict {
	if v := d.owns(a); v.Verdict != kernel.Accept {
		return v
	}
	switch d.Effect.State {
	case EffectDispatching:
		if a.Attempt != d.Dispatches {
			return noOp(CodeDuplicate)
		}
		return accepted
	case EffectApplied, EffectUnknown:
		return noOp(CodeDuplicate)
	}
	return reject(CodeIllegal)
}

func (d *draft) started(e ProviderDispatchStarted) verdict {
	switch {
	case d.Stop != nil && d.Stop.Interrupt && e.EffectID == d.InterruptID():
		if e.Suspect {
			return d.interrupted(InterruptObserved{EffectID: d.Effect.ID, Outcome: InterruptUnproven})
		}
		return accepted
	case d.Succession != nil && e.EffectID == d.Succession.ID:
		return d.successionStarted()
	case d.Blocker != nil && e.EffectID == d.ProbeID():
		return d.probeStarted(e.Suspect)
	}
	if v := d.owns(Attempted{EffectID: e.EffectID, Generation: e.Generation}); v.Verdict != kernel.Accept {
		return v
	}
	switch {
	case d.Effect.State == EffectDispatching:
		return noOp(CodeDuplicate)
	case d.Effect.State != EffectReserved || d.Status != Dispatching:
		return reject(CodeIllegal)
	case d.Stop != nil:
		return reject(CodeStopping)
	case d.Succession != nil:
		return reject(CodeSuccessionPending)
	case d.Paused != nil:
		return reject(CodePaused)
	case !d.Effect.NotBefore.IsZero():
		return reject(CodeNotDue)
	}
	if e.Suspect || d.Doubted {
		d.Doubted = false
		d.doubt(Attempt{Generation: e.Generation, At: d.at, Code: codeReset}, 0)
		return acceptAs(codeReset)
	}
	d.Effect.State, d.Effect.BegunAt = EffectDispatching, d.at
	d.Dispatches++
	return accepted
}

const codeReset = "history_reset"

// succeeded takes positive evidence. It counts whatever was thought of the effect before: a message that stands in the
// conversation is never sent again.
func (d *draft) succeeded(e ProviderDispatchSucceeded) verdict {
	if v := d.owns(e.Attempted); v.Verdict != kernel.Accept && v.code != CodeGenerationStale {
		return v
	}
	if d.Effect.State == EffectApplied {
		return noOp(CodeDuplicate)
	}
	d.applied(e.Attempted, e.At, e.UserMessageID)
	d.arrived(e.ConversationID, e.ConversationURL)
	return accepted
}

// applied is positive evidence: the round is dispatched, and only its own dispatch failures are cleared.
func (d *draft) applied(a Attempted, at time.Time, messageID string) {
	if at.IsZero() || at.After(d.at) { // a clock that is ahead must not hold the next turn back
		at = d.at
	}
	d.attempt(Attempt{Generation: a.Generation, At: d.at, Outcome: EffectApplied, Worker: a.Worker})
	if d.Effect.Inherited {
		d.dropInherited()
		return
	}
	d.Effect.State, d.Effect.AppliedAt, d.Effect.NotBefore = EffectApplied, at, time.Time{}
	d.Effect.Deferral, d.Effect.Word = nil, nil
	d.Effect.UserMessageID, d.Effect.SiteDigest = clip(messageID, maxWord), a.SiteDigest
	d.Budgets.ProviderFailures.Streak = 0
	d.Blocker = nil
	d.Turns++
	d.Turn = Turn{Look: 1}
	d.enter(Dispatched, StageConfirmed)
}

func (d *draft) failed(e ProviderDispatchFailed) verdict {
	if v := d.inFlight(e.Attempted); v.Verdict != kernel.Accept {
		return v
	}
	switch e.Code {
	case FailureConversationMissing:
		d.withdraw()
		d.block(BlockedMissing, e.Code, e.Detail)
	case FailureDrift:
		d.withdraw()
		d.block(BlockedDrift, e.Code, e.Detail)
		d.editBlocker().SiteDigest = e.SiteDigest
	default:
		d.notApplied(e.Attempted, e.Code, e.Detail)
	}
	return accepted
}

// withdraw takes an attempt back that made no step and is nobody's failure: same generation.
func (d *draft) withdraw() {
	d.Effect.State, d.Effect.NotBefore = EffectReserved, time.Time{}
}

// notApplied counts a mechanical failure and authorizes the next generation, or blocks. An attempt that came back because
// the run asked for it is no failure, but its generation is used.
// Source: "Workflow Supervisor authority", Restart-safe remote effect generations.
func (d *draft) notApplied(a Attempted, code, detail string) {
	d.attempt(Attempt{Generation: a.Generation, At: d.at, Outcome: EffectNotApplied, Code: code, Worker: a.Worker})
	d.Effect.State, d.Effect.Deferral = EffectNotApplied, nil
	failures := &d.Budgets.ProviderFailures
	if code != failureCancelled {
		failures.Streak++
		failures.Total++
	}
	tried := d.Effect.Generation - d.Effect.EpochBase
	switch {
	case failures.Streak >= failures.Max:
		d.fuse("provider_failures", code, detail)
	case tried >= *d.Goal.Continuation.MaxGenerations:
		d.fuse("generations", code, detail)
	default:
		d.authorize(d.at.Add(backoff(d.pace().Retry.Std(), retryLimit, tried-1)))
	}
}

func (d *draft) fuse(what, code, detail string) {
	d.block(BlockedFailures, what, code+": "+detail)
	d.editBlocker().Mechanical = !d.unreachable()
}

// unreachable tells whether every failure of the streak was a site that did not answer: a page that loads disproves that.
func (d *draft) unreachable() bool {
	found := 0
	for _, a := range d.Effect.Attempts {
		if a.Generation <= d.Effect.EpochBase || a.Outcome != EffectNotApplied || a.Code == failureCancelled {
			continue
		}
		if a.Code != FailureUnreachable {
			return false
		}
		found++
	}
	return found >= d.Budgets.ProviderFailures.Streak
}

// authorize opens the next generation after a committed not_applied of the present one.
func (d *draft) authorize(notBefore time.Time) {
	d.Effect.Generation++
	d.Effect.State, d.Effect.NotBefore = EffectReserved, notBefore
	d.Effect.Looks, d.Effect.Word = 0, nil
}

func (d *draft) deferred(e ProviderDispatchDeferred) verdict {
	if v := d.inFlight(e.Attempted); v.Verdict != kernel.Accept {
		return v
	}
	d.withdraw()
	switch {
	case e.Class == deferCancelled && (d.Paused != nil || d.Stop != nil):
		return acceptAs(deferCancelled)
	case e.Class == deferMoved && d.Effect.Fenced:
		d.replace(KindResume)
	}
	next := Deferral{Class: clip(e.Class, maxWord), Since: d.at, ClassSince: d.at}
	if last := d.Effect.Deferral; last != nil {
		next.Count, next.Since = last.Count+1, last.Since
		if last.Class == next.Class {
			next.ClassSince = last.ClassSince
		}
	}
	next.Overdue = d.at.Sub(next.Since) >= d.Goal.Continuation.AttentionAfter.Std()
	d.Effect.Deferral = &next
	if e.Class == deferForeignDraft && d.at.Sub(next.ClassSince) >= foreignDraftIn {
		d.block(BlockedForeignDraft, e.Class, e.Detail)
		return accepted
	}
	d.Effect.NotBefore = d.deferUntil(e.Until, next.Count)
	return accepted
}

// deferUntil is the given time, or a doubling wait with up to a fifth of jitter, derived so that it replays.
func (d *draft) deferUntil(until time.Time, count int) time.Time {
	if until.After(d.at) {
		return until
	}
	wait := backoff(d.pace().Defer.Std(), deferLimit, count)
	seed, _ := strconv.ParseUint(digest(d.Effect.ID, strconv.FormatInt(d.at.UnixNano(), 36))[:4], 16, 16)
	return d.at.Add(wait + wait*time.Duration(seed)/(5<<16))
}

// sendDue is when the next attempt is due, or when a long deferral becomes something that a person should hear of.
func (s *State) sendDue() time.Time {
	if f := s.Effect.Deferral; f != nil && !f.Overdue {
		if overdue := f.Since.Add(s.Goal.Continuation.AttentionAfter.Std()); overdue.Before(s.Effect.NotBefore) {
			return overdue
		}
	}
	return s.Effect.NotBefore
}

func (d *draft) outcomeUnknown(a Attempted, code string) verdict {
	if v := d.inFlight(a); v.Verdict != kernel.Accept {
		return v
	}
	d.doubt(Attempt{Generation: a.Generation, At: d.at, Code: code, Worker: a.Worker}, d.lookAfter(0))
	return accepted
}

// doubt makes the effect unknown: from here only evidence or an operator moves it, never another attempt.
func (d *draft) doubt(a Attempt, firstLook time.Duration) {
	a.Outcome = EffectUnknown
	d.attempt(a)
	d.Effect.State, d.Effect.Looks, d.Effect.Deferral = EffectUnknown, 0, nil
	d.Effect.NotBefore = time.Time{}
	if firstLook > 0 {
		d.Effect.NotBefore = d.at.Add(firstLook)
	}
}

func (d *draft) evicted(e RuntimeOrSessionEvicted) verdict {
	if e.Armed {
		return d.outcomeUnknown(e.Attempted, failureWorkerLost)
	}
	return d.failed(ProviderDispatchFailed{Attempted: e.Attempted, Code: failureWorkerLost, Detail: "the worker was lost before it armed"})
}

func (d *draft) userAction(e ProviderUserActionRequired) verdict {
	if v := d.inFlight(e.Attempted); v.Verdict != kernel.Accept {
		return v
	}
	d.withdraw()
	d.Blocker = d.newBlocker(BlockedUserAction, e.Class, e.Detail)
	d.enter(WaitingForUser, StageDispatching)
	return accepted
}

// replace retires an effect that was never armed (or was superseded) for a new one of the same round.
func (d *draft) replace(kind EffectKind) {
	d.closeTurn()
	old := d.Effect
	next := d.reserve(kind, old.Source, old.SourceAnswer)
	next.Failed, next.Note, next.Protocol = old.Failed, old.Note, old.Protocol
	d.Effect = d.rendered(next)
}

func (d *draft) attempt(a Attempt) {
	a.Code = clip(a.Code, maxWord)
	d.Effect.Attempts = appendBounded(d.Effect.Attempts, maxAttempts, a)
}

func (d *draft) stalled() verdict {
	if d.Effect.State == EffectDispatching {
		d.doubt(Attempt{Generation: d.Effect.Generation, At: d.at, Code: "stalled"}, 0)
		return accepted
	}
	return noOp(CodeDuplicate)
}

func (d *draft) elapsed(e TimerElapsed) verdict {
	o := Policy{}.Obligation(d.State)
	if o.Class != kernel.Timer || o.Key != e.Key || d.at.Before(o.At) {
		return noOp(CodeNotDue)
	}
	switch f := d.Effect.Deferral; {
	case d.Blocker != nil && !d.Blocker.NotBefore.IsZero() && d.Effect.State != EffectUnknown:
		d.editBlocker().NotBefore = time.Time{}
	case d.Proposal != nil && !d.Proposal.NotBefore.IsZero():
		p := *d.Proposal
		p.NotBefore = time.Time{}
		d.Proposal = &p
	case f != nil && !f.Overdue && o.At.Before(d.Effect.NotBefore):
		next := *f
		next.Overdue = true
		d.Effect.Deferral = &next
	default:
		d.Effect.NotBefore = time.Time{}
	}
	return accepted
}
