package policy

import (
	"slices"
	"time"
)

const (
	deferLimit     = 10 * time.Minute
	retryLimit     = 10 * time.Minute
	foreignDraftIn = time.Hour
	dailyLook      = 24 * time.Hour
)

// owns checks that an event speaks of the present attempt of the present effect.
func (d *draft) owns(a Attempted) verdict {
	switch {
	case a.EffectID != d.Effect.ID:
		return reject(CodeEffectMismatch)
	case a.Generation < d.Effect.Generation:
		return reject(CodeGenerationStale)
	case a.Generation > d.Effect.Generation:
		return reject(CodeGenerationMismatch)
	}
	return accepted
}

// inFlight checks that the attempt has begun and has no outcome yet.
func (d *draft) inFlight(a Attempted) verdict {
	if v := d.owns(a); v.code != "" {
		return v
	}
	switch d.Effect.State {
	case EffectDispatching:
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
	case d.Blocker != nil && e.EffectID == d.ProbeID():
		return accepted
	}
	if v := d.owns(Attempted{EffectID: e.EffectID, Generation: e.Generation}); v.code != "" {
		return v
	}
	switch {
	case d.Effect.State == EffectDispatching:
		return noOp(CodeDuplicate)
	case d.Effect.State != EffectReserved || d.Status != Dispatching:
		return reject(CodeIllegal)
	case d.Stop != nil:
		return reject(CodeStopping)
	case d.Paused != nil:
		return reject(CodePaused)
	case !d.Effect.NotBefore.IsZero():
		return reject(CodeNotDue)
	}
	d.Effect.BegunAt = d.at
	if e.Suspect {
		d.doubt(Attempt{Generation: e.Generation, At: d.at, Code: "history_reset"}, 0)
		return acceptAs("history_reset")
	}
	d.Effect.State = EffectDispatching
	d.Dispatches++
	d.note(func(t *LedgerTurn) { t.Dispatched, t.Generation = d.at, e.Generation })
	return accepted
}

func (d *draft) succeeded(e ProviderDispatchSucceeded) verdict {
	if v := d.owns(e.Attempted); v.code != "" {
		return v
	}
	switch d.Effect.State {
	case EffectApplied:
		return noOp(CodeDuplicate)
	case EffectDispatching, EffectUnknown:
		d.applied(e.Attempted, e.At, e.UserMessageID)
		return accepted
	}
	return reject(CodeIllegal)
}

// applied is positive evidence: the round is dispatched, and only its own dispatch failures are cleared.
func (d *draft) applied(a Attempted, at time.Time, messageID string) {
	if at.IsZero() {
		at = d.at
	}
	d.attempt(Attempt{Generation: d.Effect.Generation, At: d.at, Outcome: EffectApplied, Worker: a.Worker})
	if d.Effect.Inherited {
		d.dropInherited()
		return
	}
	d.Effect.State, d.Effect.AppliedAt, d.Effect.NotBefore = EffectApplied, at, time.Time{}
	d.Effect.Deferral, d.Effect.Word = nil, nil
	d.Effect.UserMessageID, d.Effect.SiteDigest = messageID, a.SiteDigest
	d.Budgets.ProviderFailures.Streak = 0
	d.Blocker = nil
	d.Turns++
	d.Turn = Turn{Look: 1}
	d.enter(Dispatched, StageConfirmed)
	d.note(func(t *LedgerTurn) {
		t.Applied, t.Generation, t.Release, t.Incarnation = at, d.Effect.Generation, a.Worker.Release, a.Worker.Incarnation
	})
}

func (d *draft) failed(e ProviderDispatchFailed) verdict {
	if v := d.inFlight(e.Attempted); v.Verdict != "accept" {
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

// notApplied counts a mechanical failure and authorizes the next generation, or blocks.
// Source: "Workflow Supervisor authority", Restart-safe remote effect generations.
func (d *draft) notApplied(a Attempted, code, detail string) {
	d.attempt(Attempt{Generation: a.Generation, At: d.at, Outcome: EffectNotApplied, Code: code, Worker: a.Worker})
	d.Effect.State = EffectNotApplied
	failures := &d.Budgets.ProviderFailures
	failures.Streak++
	failures.Total++
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
	b := d.editBlocker()
	b.Mechanical = true
	b.NotBefore = d.at.Add(d.pace().Probe.Std())
}

// authorize opens the next generation after a committed not_applied of the present one.
func (d *draft) authorize(notBefore time.Time) {
	d.Effect.Generation++
	d.Effect.State, d.Effect.NotBefore = EffectReserved, notBefore
	d.Effect.Looks, d.Effect.Word = 0, nil
}

func (d *draft) deferred(e ProviderDispatchDeferred) verdict {
	if v := d.inFlight(e.Attempted); v.Verdict != "accept" {
		return v
	}
	d.withdraw()
	if e.Class == deferCancelled {
		return acceptAs(deferCancelled)
	}
	if e.Class == deferMoved {
		d.replace(KindResume)
	}
	next := Deferral{Class: e.Class, Since: d.at}
	if last := d.Effect.Deferral; last != nil {
		next.Count = last.Count + 1
		if last.Class == e.Class {
			next.Since = last.Since
		}
	}
	next.Overdue = d.at.Sub(next.Since) >= d.Goal.Continuation.AttentionAfter.Std()
	d.Effect.Deferral = &next
	if e.Class == deferForeignDraft && d.at.Sub(next.Since) >= foreignDraftIn {
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
	seed := digest(d.Effect.ID, d.at.String())
	return d.at.Add(wait + wait*time.Duration(seed[0]%16)/75)
}

func (d *draft) outcomeUnknown(a Attempted, code string) verdict {
	if v := d.inFlight(a); v.Verdict != "accept" {
		return v
	}
	d.doubt(Attempt{Generation: a.Generation, At: d.at, Code: code, Worker: a.Worker}, d.lookAfter(0))
	return accepted
}

// doubt makes the effect unknown: from here only evidence or an operator moves it, never another attempt.
func (d *draft) doubt(a Attempt, firstLook time.Duration) {
	a.Outcome = EffectUnknown
	d.attempt(a)
	d.Effect.State, d.Effect.Looks = EffectUnknown, 0
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
	if v := d.inFlight(e.Attempted); v.Verdict != "accept" {
		return v
	}
	d.withdraw()
	d.Blocker = d.newBlocker(BlockedUserAction, e.Class, e.Detail)
	d.enter(WaitingForUser, StageDispatching)
	return accepted
}

func (d *draft) reconciled(e ProviderEffectReconciled) verdict {
	if e.Marker && slices.ContainsFunc(d.Retired, func(r Effect) bool { return r.ID == e.EffectID }) {
		return d.lateMarker(e)
	}
	if v := d.owns(Attempted{EffectID: e.EffectID, Generation: e.Generation}); v.code != "" {
		return v
	}
	if d.Effect.State == EffectApplied && (e.Verdict == "" || e.Verdict == VerdictApplied) {
		return noOp(CodeDuplicate)
	}
	if d.Effect.State != EffectUnknown {
		return reject(CodeNotUnknown)
	}
	if e.Verdict != "" {
		return d.operatorWord(e)
	}
	seen := Attempted{EffectID: e.EffectID, Generation: e.Generation, Worker: e.Worker, SiteDigest: e.SiteDigest}
	if e.Marker {
		d.applied(seen, time.Time{}, e.UserMessageID)
		return acceptAs("marker_seen")
	}
	if d.Effect.Word != nil && d.Effect.Word.Refuted == "" {
		return d.checkWord(e, seen)
	}
	d.Effect.Looks++
	d.Effect.NotBefore = d.at.Add(d.lookAfter(d.Effect.Looks))
	if d.Effect.Looks >= *d.Goal.Continuation.UnknownBound && d.Blocker == nil {
		d.block(BlockedUnknown, "reconcile_bound", "the message was not seen, and its absence cannot be proven")
		d.Effect.NotBefore = d.at.Add(dailyLook)
	}
	return acceptAs("marker_not_seen")
}

func (d *draft) lateMarker(e ProviderEffectReconciled) verdict {
	d.Retired = slices.Clone(d.Retired)
	for i := range d.Retired {
		if r := &d.Retired[i]; r.ID == e.EffectID {
			if r.State == EffectApplied {
				return noOp(CodeDuplicate)
			}
			r.State, r.AppliedAt = EffectApplied, d.at
		}
	}
	return acceptAs("superseded_effect_applied")
}

// operatorWord takes what an operator says of an unknown effect. A not_applied waits for one fresh observation.
func (d *draft) operatorWord(e ProviderEffectReconciled) verdict {
	switch {
	case e.Operator == "":
		return needs(CodeOperatorMissing, "operator")
	case e.Reason == "":
		return needs(CodeReasonMissing, "reason")
	}
	seen := Attempted{EffectID: e.EffectID, Generation: e.Generation}
	switch e.Verdict {
	case VerdictApplied:
		d.applied(seen, time.Time{}, "")
		return accepted
	case VerdictUnknown:
		d.Effect.NotBefore = time.Time{}
		return acceptAs(CodeObservationPending)
	case VerdictNotApplied:
		if e.WithoutObservation {
			d.provenAbsent(seen, "operator_without_observation")
			return accepted
		}
		d.Effect.Word = &Word{Operator: e.Operator, Reason: e.Reason, At: d.at}
		d.Effect.NotBefore = time.Time{}
		return acceptAs(CodeObservationPending)
	}
	return reject(CodeNotSubmittable)
}

func (d *draft) checkWord(e ProviderEffectReconciled, seen Attempted) verdict {
	if e.Readable {
		d.provenAbsent(seen, "operator")
		return acceptAs("operator_confirmed")
	}
	word := *d.Effect.Word
	word.Refuted = "the page could not be read; repeat with without_observation: true to decide without it"
	d.Effect.Word = &word
	d.Effect.NotBefore = d.at.Add(d.lookAfter(d.Effect.Looks))
	return acceptAs("operator_unconfirmed")
}

// provenAbsent authorizes exactly one new generation on an operator's word; it costs no failure budget.
func (d *draft) provenAbsent(a Attempted, code string) {
	d.attempt(Attempt{Generation: a.Generation, At: d.at, Outcome: EffectNotApplied, Code: code})
	if d.Effect.Inherited {
		d.dropInherited()
		return
	}
	d.Blocker = nil
	d.enter(Dispatching, StageDispatching)
	d.authorize(time.Time{})
}

// supersede retires an unknown effect and reserves a new one in one decision. Source: "Turn authority", Provider observation.
func (d *draft) supersede(e SupersedeRequested) verdict {
	switch {
	case e.EffectID != d.Effect.ID:
		return reject(CodeEffectMismatch)
	case d.Effect.State != EffectUnknown:
		return reject(CodeNotUnknown)
	case e.Operator == "":
		return needs(CodeOperatorMissing, "operator")
	case e.Reason == "":
		return needs(CodeReasonMissing, "reason")
	case !e.AcceptDuplicate:
		return needs(CodeDuplicateRisk, "accept_duplicate")
	}
	d.Retired = appendBounded(d.Retired, maxRetired, d.Effect)
	d.Blocker = nil
	if d.Effect.Inherited {
		d.dropInherited()
		return accepted
	}
	d.enter(Dispatching, StageDispatching)
	d.replace(d.Effect.Kind)
	return accepted
}

// replace retires an effect that was never armed (or was superseded) for a new one of the same round.
func (d *draft) replace(kind EffectKind) {
	old := d.Effect
	next := d.reserve(kind, old.Source, old.SourceAnswer)
	next.Failed, next.Note, next.Protocol = old.Failed, old.Note, old.Protocol
	d.Effect = d.rendered(next)
	d.openLedger()
}

func (d *draft) attempt(a Attempt) {
	d.Effect.Attempts = appendBounded(d.Effect.Attempts, 12, a)
}

// lookAfter is the wait before the next look at an unknown effect that had so many already.
func (d *draft) lookAfter(looks int) time.Duration {
	steps := d.pace().Reconcile
	if looks < len(steps) {
		return steps[looks].Std()
	}
	return dailyLook
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
	if o.Key != e.Key {
		return noOp(CodeNotDue)
	}
	switch {
	case d.Blocker != nil && !d.Blocker.NotBefore.IsZero() && d.Effect.State != EffectUnknown:
		d.editBlocker().NotBefore = time.Time{}
	case d.Proposal != nil && !d.Proposal.NotBefore.IsZero():
		p := *d.Proposal
		p.NotBefore = time.Time{}
		d.Proposal = &p
	default:
		d.Effect.NotBefore = time.Time{}
	}
	return accepted
}
