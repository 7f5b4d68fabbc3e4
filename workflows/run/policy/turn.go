package policy

import (
	"strings"
	"time"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/receipt"
)

var missingReceipt = receipt.Reading{
	Code: receipt.CodeMissing, Detail: "the answer has no receipt", Violation: true,
}

const userActionLook = 5 * time.Minute

// owed checks that an event speaks of the turn of the present, applied effect, which has no completion yet. A stop that
// waits for something else beats whatever the turn still says.
func (d *draft) owed(effectID string) verdict {
	switch {
	case effectID != d.Effect.ID && d.past(effectID):
		return noOp(CodeDuplicate)
	case effectID != d.Effect.ID:
		return reject(CodeEffectMismatch)
	case d.Effect.State != EffectApplied:
		return reject(CodeNotApplied)
	case d.Completion.Effect == effectID:
		return noOp(CodeDuplicate)
	case d.Stop != nil:
		return reject(CodeStopping)
	}
	return accepted
}

// completed answers a receipt for an effect that has its completion: the same one is a duplicate, another one is refused.
func (d *draft) completed(r *receipt.Receipt, answerDigest string) verdict {
	if r != nil && d.completionID(*r, answerDigest) != d.Completion.ID {
		return reject(CodeCompleted)
	}
	return noOp(CodeDuplicate)
}

// completionID is derived from the fingerprint of the completion.
func (d *draft) completionID(r receipt.Receipt, answerDigest string) string {
	return "cp_" + receipt.Fingerprint(d.TaskID, d.Site.ConversationID, d.Effect.ID, answerDigest, r.Digest)[:16]
}

func (d *draft) claimed(e ControllerClaimObserved) verdict {
	if v := d.owed(e.EffectID); v.Verdict != kernel.Accept {
		return v
	}
	if d.Status == Claimed {
		return noOp(CodeDuplicate)
	}
	if d.Status != Dispatched {
		return reject(CodeIllegal)
	}
	d.claim(e.At)
	return accepted
}

func (d *draft) claim(at time.Time) {
	if at.IsZero() {
		at = d.at
	}
	d.Turn.SeenAt = at
	d.enter(Claimed, StageClaimed)
}

// claimer notes who observes the claimed turn. That another process took over changes the claim generation and nothing else.
// Source: "ControllerRound transition policy", Authority contract 4.
func (d *draft) claimer(w Worker) {
	if d.Status != Claimed || w == (Worker{}) {
		return
	}
	if before := d.Turn.Claimer; before != (Worker{}) && before != w {
		d.ClaimGeneration++
	}
	d.Turn.Claimer = w
}

// observed takes one whole observation of a turn: the claim, then the receipt or why there is none, then the release.
func (d *draft) observed(e EffectObserved) verdict {
	if d.Completion.Effect == e.EffectID && d.Effect.ID == e.EffectID {
		return d.completed(e.Reading.Receipt, e.AnswerDigest)
	}
	if v := d.owed(e.EffectID); v.Verdict != kernel.Accept {
		return v
	}
	late := d.Status == Blocked && d.Blocker.Class == BlockedRecovery && e.Turn == TurnSettled && e.Reading.Receipt != nil
	switch {
	case d.Status != Dispatched && d.Status != Claimed && !late:
		return reject(CodeIllegal)
	case e.Look < d.Turn.Look:
		return noOp(CodeLookStale)
	case e.Look > d.Turn.Look:
		return reject(CodeLookStale)
	}
	if d.unbound() {
		if e.ConversationURL != "" {
			d.Turn.Look++
			return d.conversationBound(ConversationBound{EffectID: e.EffectID, ConversationID: e.ConversationID, ConversationURL: e.ConversationURL})
		}
		if e.Turn == TurnSettled || e.Turn == TurnFailed || e.Turn == TurnMoved {
			e.Turn = TurnOpen // what follows it could only be said in another new conversation
		}
	}
	overdue := d.at.Sub(d.Effect.AppliedAt) >= d.Goal.Continuation.AttentionAfter.Std()
	if e.Turn == TurnUnread && overdue == d.Turn.Overdue {
		return needs(CodeTurnUnread, "a reading of the turn")
	}
	if d.Status == Dispatched && (!e.SeenAt.IsZero() || e.Turn == TurnSettled) {
		d.claim(e.SeenAt)
	}
	d.claimer(e.Worker)
	d.late(e.Late)
	d.Turn.Look++
	d.Turn.Class, d.Turn.Detail, d.Turn.NotBefore = clip(e.Class, maxWord), clip(e.Detail, maxDetail), time.Time{}
	if !e.ActivityAt.IsZero() {
		d.Turn.ActivityAt = e.ActivityAt
	}
	switch e.Turn {
	case TurnSettled, TurnFailed, TurnMoved:
		return d.settled(e)
	case TurnOpen, TurnUnread:
		d.Turn.Overdue = overdue
		return acceptAs("turn_open")
	case TurnUserAction:
		d.Turn.NotBefore = d.at.Add(userActionLook)
		return acceptAs("turn_needs_user")
	case TurnMissing:
		d.block(BlockedMissing, FailureConversationMissing, e.Detail)
		return accepted
	case TurnDrift:
		d.block(BlockedDrift, FailureDrift, e.Detail)
		d.editBlocker().SiteDigest = e.SiteDigest
		return accepted
	}
	return reject(CodeIllegal)
}

// settled judges a turn that has ended: a valid receipt commits; anything else gets one fixed prompt, within its bound.
func (d *draft) settled(e EffectObserved) verdict {
	if e.SettledAt.IsZero() {
		e.SettledAt = d.at
	}
	d.Turn.SettledAt, d.Turn.AnswerDigest, d.Turn.Overdue = e.SettledAt, e.AnswerDigest, false
	if r := e.Reading.Receipt; r != nil && d.refusesScope(r) {
		e.Reading = d.foreignScope(*r)
	}
	d.Turn.Receipt = clip(e.Reading.Code, maxWord)
	if e.Reading.Receipt != nil {
		v := d.commit(*e.Reading.Receipt, e.AnswerDigest, e.Progress)
		d.release()
		return v
	}
	switch e.Turn {
	case TurnFailed:
		return d.recoverTurn(e.Class)
	case TurnMoved:
		return d.resumeMoved()
	}
	if e.Reading.Code == "" {
		e.Reading = missingReceipt
	}
	return d.correctProtocol(e.Reading)
}

// resumeMoved re-establishes the protocol after somebody else's turn. It is one more settled turn without a receipt: two
// programs that write into one conversation must not answer each other for ever.
func (d *draft) resumeMoved() verdict {
	if d.violated(deferMoved, "somebody else writes into this conversation") {
		d.follow(d.reserve(KindResume, d.Effect.ID, d.Turn.AnswerDigest))
	}
	return acceptAs(deferMoved)
}

// violated counts a settled turn without a valid receipt. It is false when that was one too many.
func (d *draft) violated(code, detail string) bool {
	d.Violations++
	if d.Violations > *d.Goal.Continuation.MaxProtocolViolations {
		d.block(BlockedProtocol, code, detail)
		return false
	}
	return true
}

// correctProtocol restates the protocol after a turn without a valid receipt. A block that the page's rendering broke is
// corrected once without counting.
func (d *draft) correctProtocol(r receipt.Reading) verdict {
	if !r.Violation && d.Mangled == 0 {
		d.Mangled++
	} else if !d.violated(r.Code, r.Detail) {
		return acceptAs(r.Code)
	}
	next := d.reserve(KindCorrection, d.Effect.ID, d.Turn.AnswerDigest)
	next.Protocol, next.Failed = true, bounded([]string{r.Detail}, maxDetail)
	d.follow(next)
	return acceptAs(r.Code)
}

// recoverTurn asks once, with a fixed prompt, to go on after a failure that the provider itself states. The original prompt
// is never replayed. Source: "Turn authority", Provider observation.
func (d *draft) recoverTurn(class string) verdict {
	if d.Recoveries >= *d.Goal.Continuation.MaxRecoveries {
		d.block(BlockedRecovery, class, "the provider failed again after its recovery turn")
		return acceptAs("recovery_exhausted")
	}
	d.Recoveries++
	d.follow(d.reserve(KindRecovery, d.Effect.ID, d.Turn.AnswerDigest))
	return acceptAs("recovery_reserved")
}

// follow makes a reserved effect of the same round the present one.
func (d *draft) follow(next Effect) {
	d.closeTurn()
	d.Effect = d.rendered(next)
	d.Turn, d.Blocker = Turn{}, nil
	d.enter(Dispatching, StageDispatching)
}

// recover reserves one recovery of the present applied effect on an operator's word.
func (d *draft) recover(e RecoveryRequested) verdict {
	if v := d.owed(e.EffectID); v.Verdict != kernel.Accept {
		return v
	}
	switch {
	case e.Operator == "":
		return needs(CodeOperatorMissing, "operator")
	case e.Reason == "":
		return needs(CodeReasonMissing, "reason")
	case d.Status != Blocked || d.Blocker.Class != BlockedRecovery:
		return reject(CodeRoundAlive)
	}
	d.follow(d.reserve(KindRecovery, d.Effect.ID, d.Turn.AnswerDigest))
	return accepted
}

// disposition takes a receipt before its turn has settled, or an explicit wait.
func (d *draft) disposition(e SemanticDispositionSubmitted) verdict {
	if d.Completion.Effect == e.EffectID && d.Effect.ID == e.EffectID {
		return d.completed(e.Receipt, e.AnswerDigest)
	}
	if v := d.owed(e.EffectID); v.Verdict != kernel.Accept {
		return v
	}
	if d.unbound() {
		return reject(CodeUnbound)
	}
	// A receipt or a disposition that names the effect is evidence of the claim: only who works on it can know its id.
	if d.Status == Dispatched && (e.Receipt != nil || e.Disposition == DispositionWait || e.Disposition == DispositionHandoff) {
		d.claim(d.at)
	}
	if d.Status != Claimed {
		return reject(CodeIllegal)
	}
	switch {
	case e.Receipt != nil && d.refusesScope(e.Receipt):
		return reject(CodeScopeRefused)
	case e.Receipt != nil:
		return d.commit(*e.Receipt, e.AnswerDigest, e.Progress)
	case e.Disposition == DispositionWait:
		d.close(e, "WAIT")
		d.enter(Waiting, StageClosed)
		return accepted
	case e.Disposition == DispositionHandoff:
		return d.handoff(e)
	}
	return reject(CodeNotSubmittable)
}

// close completes the present effect by a disposition that no receipt carried.
func (d *draft) close(e SemanticDispositionSubmitted, action string) {
	d.Completion = Completion{
		ID: d.derive("cp_", "wait"+d.Effect.ID, 0), Effect: d.Effect.ID, Action: action, Checkpoint: clip(e.Checkpoint, maxText),
		Reason: clip(e.Reason, maxDetail), Progress: d.Completion.Progress, At: d.at,
	}
}

// commit records the completion of the present effect and, in the same decision, reserves the one successor or opens the
// proposal. Source: "Workflow Supervisor authority", Exactly-once continuation.
func (d *draft) commit(r receipt.Receipt, answerDigest, progress string) verdict {
	if progress == "" {
		progress = d.ownProgress(r, answerDigest)
	}
	last := d.Completion
	d.Completion = Completion{
		ID: d.completionID(r, answerDigest), Effect: d.Effect.ID, Action: string(r.Action), Form: string(r.Form),
		Checkpoint: clip(r.Checkpoint, maxText), Reason: clip(r.Reason, maxDetail), Evidence: bounded(r.Evidence, maxLine),
		Answer: answerDigest, Progress: progress, At: d.at,
	}
	if u := r.UserAction; u != nil {
		d.Completion.Ask = &UserAsk{Kind: clip(u.Kind, maxWord), Ask: clip(u.Ask, maxText), Tried: clip(u.Tried, maxDetail)}
	}
	if r.Action != receipt.NeedsUser {
		d.OtherAsk = ""
	}
	d.Violations, d.Mangled, d.Recoveries, d.Blocker = 0, 0, 0, nil
	adopted := d.register(r.Scope)
	if last.ID != "" && last.Progress == progress {
		d.Budgets.RepeatedState++
	} else {
		d.Budgets.RepeatedState, d.Budgets.Stagnation = 0, false
	}
	d.enter(PendingRelease, StageClosed)
	switch r.Action {
	case receipt.Done:
		if adopted {
			return d.refuse("done_rejected", []string{"DONE: this turn was to find out the task; claim DONE with the receipt of a later one"})
		}
		return d.propose()
	case receipt.NeedsUser:
		return d.needsUser()
	}
	d.succeed(KindContinuation, nil)
	return acceptAs("continue_committed")
}

// ownProgress is the progress fingerprint without probes: the words of the receipt, or of the answer where a compact
// receipt has none. Provider health is never part of it.
func (d *draft) ownProgress(r receipt.Receipt, answerDigest string) string {
	if r.Form == receipt.Compact {
		return answerDigest
	}
	words := append([]string{r.Checkpoint}, r.Evidence...)
	for i, w := range words {
		words[i] = strings.Join(strings.Fields(strings.ToLower(w)), " ")
	}
	return digest(words...)
}

// succeed reserves the prompt that opens the next round, or blocks on the budget that is used up. A stagnating run gets
// its one root-cause prompt instead.
func (d *draft) succeed(kind EffectKind, failed []string) {
	b := &d.Budgets
	if b.RepeatedState >= *d.Goal.Continuation.StagnationAfter && !b.Stagnation {
		kind, b.Stagnation = KindStagnation, true
	}
	next := d.reserve(kind, d.Effect.ID, d.Completion.Answer)
	next.NewRound, next.Failed = true, failed
	next = d.rendered(next)
	d.Next = &next
	switch {
	case b.RepeatedState >= b.MaxRepeatedState:
		d.block(BlockedRepeatedState, string(BlockedRepeatedState), "the last receipts show no progress")
	case b.Rounds >= b.MaxRounds:
		d.blockRounds()
	}
}

// released takes the observation that the committed turn is settled and idle.
func (d *draft) released(e ControllerReleaseObserved) verdict {
	switch {
	case d.Completion.Effect != e.EffectID && d.Effect.ID == e.EffectID:
		return needs(CodeNotCommitted, "receipt")
	case d.Effect.ID != e.EffectID:
		return noOp(CodeReleasedEarlier)
	case d.Status != PendingRelease:
		return reject(CodeIllegal)
	case !d.Turn.SettledAt.IsZero():
		return noOp(CodeDuplicate)
	case e.At.IsZero() && !d.Turn.Overdue && d.at.Sub(d.Completion.At) >= d.Goal.Continuation.AttentionAfter.Std():
		d.Turn.Overdue = true
		d.Turn.Look++
		return acceptAs("turn_open")
	case e.At.IsZero():
		return needs(CodeNotSettled, "settled_at")
	}
	d.Turn.SettledAt, d.Turn.Overdue = e.At, false
	d.release()
	return accepted
}

// release opens the next round with its reserved effect once the committed turn has settled, unless the run is about to end.
func (d *draft) release() {
	if d.Status != PendingRelease || d.Next == nil || d.Turn.SettledAt.IsZero() || d.Stop != nil {
		return
	}
	d.closeTurn()
	d.Effect, d.Next = *d.Next, nil
	d.Turn, d.Proposal = Turn{}, nil
	if d.Effect.NewRound {
		d.Budgets.Rounds++
		d.rotate()
	}
	d.enter(Dispatching, StageDispatching)
}

// rotate gives a truly new round its own authority. Source: "ControllerRound transition policy", Authority contract.
func (d *draft) rotate() {
	d.Rotations++
	d.AuthorityID = d.derive("au_", "authority", d.Rotations)
}

// closeTurn puts the present turn into the ledger before another effect takes its place.
func (d *draft) closeTurn() { d.Ledger = appendBounded(d.Ledger, maxLedger, d.openTurn()) }
