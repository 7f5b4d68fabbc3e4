package policy

import (
	"slices"
	"strings"
	"time"

	"steward/workflows/machine/kernel"
)

const dailyLook = 24 * time.Hour

// reconciled takes a fresh look at an effect of unknown outcome, or an operator's word on it.
func (d *draft) reconciled(e ProviderEffectReconciled) verdict {
	if e.Marker && d.retired(e.EffectID) {
		return d.lateMarker(e)
	}
	v := d.owns(Attempted{EffectID: e.EffectID, Generation: e.Generation})
	seen := v.code == CodeGenerationStale && e.Marker && e.Verdict == ""
	if v.Verdict != kernel.Accept && !seen {
		return v
	}
	if d.Effect.State == EffectApplied && (e.Verdict == "" || e.Verdict == VerdictApplied) {
		return noOp(CodeDuplicate)
	}
	unplaced := d.Effect.Inherited && d.unbound() && e.ConversationURL == "" // this start goes on where it stands, so that has to be known
	if e.Marker && e.Verdict == "" && d.Effect.State != EffectDispatching && !unplaced {
		by := Attempted{EffectID: e.EffectID, Generation: e.Generation, Worker: e.Worker, SiteDigest: e.SiteDigest}
		d.applied(by, time.Time{}, e.UserMessageID)
		d.arrived(e.ConversationID, e.ConversationURL)
		return acceptAs("marker_seen")
	}
	if d.Effect.State != EffectUnknown {
		return reject(CodeNotUnknown)
	}
	if e.Verdict != "" {
		return d.operatorWord(e)
	}
	if e.Look != d.Effect.Look {
		return noOp(CodeLookStale)
	}
	return d.unseen(e)
}

// unseen counts a look that did not show the marker: it proves nothing by itself.
func (d *draft) unseen(e ProviderEffectReconciled) verdict {
	d.Effect.Look++
	if d.Effect.Word != nil && d.Effect.Word.Refuted == "" {
		return d.checkWord(e)
	}
	d.Effect.Looks++
	d.nextLook()
	if d.Effect.Looks >= *d.Goal.Continuation.UnknownBound && d.Blocker == nil {
		d.block(BlockedUnknown, "reconcile_bound", "the message was not seen, and its absence cannot be proven")
	}
	return acceptAs("marker_not_seen")
}

func (d *draft) retired(effectID string) bool {
	return slices.ContainsFunc(d.Retired, func(r Effect) bool { return r.ID == effectID })
}

// lateMarker reports that a superseded effect stands in the conversation after all.
func (d *draft) lateMarker(e ProviderEffectReconciled) verdict {
	if !d.late([]string{e.EffectID}) {
		return noOp(CodeDuplicate)
	}
	return acceptAs("superseded_effect_applied")
}

// late marks superseded effects as applied; it tells whether that was news.
func (d *draft) late(ids []string) (news bool) {
	for i, r := range d.Retired {
		if r.State != EffectApplied && slices.Contains(ids, r.ID) {
			if !news {
				d.Retired, news = slices.Clone(d.Retired), true
			}
			d.Retired[i].State, d.Retired[i].AppliedAt = EffectApplied, d.at
		}
	}
	return news
}

// Watched are the superseded effects whose marker has not been seen.
func (s *State) Watched() (ids []string) {
	for _, r := range s.Retired {
		if r.State == EffectUnknown {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// NewKey is the key of the new conversation that a superseded effect may have created; empty for one that creates none.
func (s *State) NewKey(retired string) string {
	for _, r := range s.Retired {
		if r.ID == retired {
			return strings.TrimPrefix(r.Alias, aliasPrefix)
		}
	}
	return ""
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
		d.lookNow()
		return acceptAs(CodeObservationPending)
	case VerdictNotApplied:
		if e.WithoutObservation {
			d.provenAbsent(seen, "operator_without_observation")
			return accepted
		}
		if w := d.Effect.Word; w != nil && w.Refuted == "" {
			return noOp(CodeObservationPending)
		}
		d.Effect.Word = &Word{Operator: e.Operator, Reason: clip(e.Reason, maxDetail), At: d.at}
		d.lookNow()
		return acceptAs(CodeObservationPending)
	}
	return reject(CodeNotSubmittable)
}

// lookNow asks for an observation that begins after this decision.
func (d *draft) lookNow() {
	d.Effect.Look++
	d.Effect.NotBefore = time.Time{}
}

func (d *draft) checkWord(e ProviderEffectReconciled) verdict {
	if e.Readable {
		d.provenAbsent(Attempted{EffectID: e.EffectID, Generation: e.Generation}, "operator")
		return acceptAs("operator_confirmed")
	}
	word := *d.Effect.Word
	word.Refuted = "the page could not be read; repeat with without_observation: true to decide without it"
	d.Effect.Word = &word
	d.nextLook()
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
	case e.EffectID != d.Effect.ID && d.retired(e.EffectID):
		return noOp(CodeDuplicate)
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
	old := d.Effect
	old.Failed, old.Note, old.Attempts = nil, "", old.Attempts[max(0, len(old.Attempts)-3):]
	d.Retired = appendBounded(d.Retired, maxRetired, old)
	d.Blocker = nil
	if d.Effect.Inherited {
		d.dropInherited()
		return accepted
	}
	d.enter(Dispatching, StageDispatching)
	d.replace(d.Effect.Kind)
	return accepted
}

// nextLook schedules the next look: by the pace of the site within the bound, then once a day.
func (d *draft) nextLook() {
	wait := dailyLook
	if d.Effect.Looks < *d.Goal.Continuation.UnknownBound {
		wait = d.lookAfter(d.Effect.Looks)
	}
	d.Effect.NotBefore = d.at.Add(wait)
}

// lookAfter is the wait before the next look at an unknown effect that had so many already.
func (d *draft) lookAfter(looks int) time.Duration {
	steps := d.pace().Reconcile
	if looks < len(steps) {
		return steps[looks].Std()
	}
	return dailyLook
}
