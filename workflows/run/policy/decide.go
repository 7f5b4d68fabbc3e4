package policy

import (
	"fmt"
	"time"
	"unicode/utf8"

	"steward/workflows/machine/kernel"
)

// Rules versions that this code decides by. A branch on an older version is deleted when no open run carries it.
const (
	OldestRules  = 1
	CurrentRules = 1
)

// Policy is the transition policy of WorkflowRun.
type Policy struct{}

var _ kernel.Policy[State, Event] = Policy{}

// Decision is the policy's answer to one event.
type Decision = kernel.Decision[State]

// draft is a state under change: slices and pointers of the state it began with are replaced, never written into.
type draft struct {
	State
	at     time.Time
	caller string
}

type verdict struct {
	kernel.Verdict
	code    string
	missing []string
}

var accepted = verdict{Verdict: kernel.Accept}

func acceptAs(code string) verdict { return verdict{Verdict: kernel.Accept, code: code} }
func noOp(code string) verdict     { return verdict{Verdict: kernel.NoOp, code: code} }
func reject(code string) verdict   { return verdict{Verdict: kernel.Reject, code: code} }
func needs(code string, missing ...string) verdict {
	return verdict{Verdict: kernel.NeedsEvidence, code: code, missing: missing}
}

// Decide answers one event: accept with the next state, no_op for a duplicate, reject or needs_evidence with a stable
// code. It is the whole transition policy. Source: "ControllerRound transition policy", Required implementation shape.
func (Policy) Decide(s State, e Event, m kernel.Meta) (decision Decision) {
	d := draft{State: s, at: m.At, caller: m.Caller}
	v := d.guard(e)
	if v.Verdict == kernel.Accept {
		v = d.apply(e)
	}
	// Field by field: the state is large, and a literal would copy it twice.
	decision.Verdict, decision.Code, decision.Missing = v.Verdict, v.code, v.missing
	if v.Verdict != kernel.Accept {
		decision.Next = s
		return decision
	}
	d.settleStop()
	d.Revision++
	decision.Next = d.State
	return decision
}

// guard refuses what no state may take.
func (d *draft) guard(e Event) verdict {
	if !d.valid() {
		return reject(CodeInvalidState)
	}
	if _, no := e.(NotSubmittable); no {
		return reject(CodeNotSubmittable)
	}
	if d.Terminal() {
		switch e.(type) {
		case StopRequested, CancelRequested, GoalCancelled, PauseRequested:
			return noOp(CodeTerminal)
		}
		return reject(CodeTerminal)
	}
	if d.Status != "" {
		return accepted
	}
	switch e.(type) {
	case OccurrenceRequested, StopRequested, CancelRequested, GoalCancelled, PauseRequested, UserResumeRequested:
		return accepted
	}
	return reject(CodeNotAdmitted)
}

func (d *draft) apply(e Event) verdict {
	switch e := e.(type) {
	case OccurrenceRequested:
		return d.occurrence(e)
	case ProviderDispatchStarted:
		return d.started(e)
	case ProviderDispatchSucceeded:
		return d.succeeded(e)
	case ProviderDispatchFailed:
		return d.failed(e)
	case ProviderDispatchDeferred:
		return d.deferred(e)
	case ProviderDispatchOutcomeUnknown:
		return d.outcomeUnknown(e.Attempted, e.Code)
	case RuntimeOrSessionEvicted:
		return d.evicted(e)
	case ProviderUserActionRequired:
		return d.userAction(e)
	case ProviderEffectReconciled:
		return d.reconciled(e)
	case EffectObserved:
		return d.observed(e)
	case ControllerClaimObserved:
		return d.claimed(e)
	case ControllerTurnSettled:
		return d.observed(EffectObserved{
			EffectID: e.EffectID, Look: d.Turn.Look, Turn: TurnSettled, SeenAt: e.At, SettledAt: e.At, AnswerDigest: e.AnswerDigest,
			Reading: missingReceipt,
		})
	case SemanticDispositionSubmitted:
		return d.disposition(e)
	case ControllerReleaseObserved:
		return d.released(e)
	case ProposalValidated:
		return d.validated(e)
	case ApprovalGiven:
		return d.approved(e)
	case ApprovalDeclined:
		return d.declined(e)
	default:
		return d.applyOther(e)
	}
}

func (d *draft) applyOther(e Event) verdict {
	switch e := e.(type) {
	case SemanticStateChanged:
		return d.stateChanged(e)
	case ProviderEnvironmentRecovered:
		return d.probed(e)
	case PauseRequested:
		return d.pause(e)
	case UserResumeRequested:
		return d.resume(e)
	case AuthorityRecoveryRequested:
		return d.recoverAuthority(e)
	case RecoveryRequested:
		return d.recover(e)
	case SupersedeRequested:
		return d.supersede(e)
	case GoalCancelled:
		return d.stop(Stop{By: e.Operator, Reason: e.Reason})
	case StopRequested:
		return d.stop(Stop{By: e.Operator, Reason: e.Reason, Interrupt: e.Interrupt})
	case CancelRequested:
		return d.stop(Stop{By: "temporal", Reason: "the workflow was cancelled", Canceled: true})
	case InterruptObserved:
		return d.interrupted(e)
	case StalledRoundObserved:
		return d.stalled()
	case TimerElapsed:
		return d.elapsed(e)
	case ConversationBound:
		return d.conversationBound(e)
	case ConversationRebound:
		return d.rebound(e)
	case SuccessorBound:
		return d.bound(e)
	case TerminalWorkObserved:
		return reject(CodeNotSupported)
	}
	return reject(CodeNotSubmittable)
}

// Rules is the rules version that the state carries.
func (Policy) Rules(s State) int { return s.Rules }

// WithRules sets it.
func (Policy) WithRules(s State, rules int) State {
	s.Rules = rules
	return s
}

// Ending says how the workflow of a terminal state closes.
func (Policy) Ending(s State) kernel.Ending {
	switch {
	case !s.valid():
		return kernel.Ending{
			Failure: CodeInvalidState,
			Message: fmt.Sprintf("the state cannot be: status %q on stage %q with effect %q", s.Status, s.Stage, s.Effect.State),
		}
	case s.Failure != nil:
		return kernel.Ending{Failure: s.Failure.Code, Message: s.Failure.message()}
	case s.Stop != nil && s.Stop.Canceled:
		return kernel.Ending{Canceled: true}
	}
	return kernel.Ending{}
}

// enter moves to a status of the table with its stage.
func (d *draft) enter(status Status, stage Stage) {
	d.Status, d.Stage = status, stage
}

// block stops automatic progress until the class's own evidence comes. It keeps the stage.
func (d *draft) block(class BlockerClass, code, detail string) {
	d.Blocker = d.newBlocker(class, code, detail)
	d.Status = Blocked
}

func (d *draft) newBlocker(class BlockerClass, code, detail string) *Blocker {
	b := &Blocker{
		Class: class, ID: d.derive("bl_", string(class), int(d.Revision)), Code: clip(code, maxWord), Detail: clip(detail, maxDetail),
		Since: d.at, Revision: d.Revision + 1,
	}
	switch class {
	case BlockedRepeatedState, BlockedFailures, BlockedDrift, BlockedMissing, BlockedForeignDraft, BlockedOwned:
		b.NotBefore = d.at.Add(d.pace().Probe.Std())
	}
	return b
}

func (d *draft) editBlocker() *Blocker {
	b := *d.Blocker
	d.Blocker = &b
	return &b
}

// unblock returns to the status that belongs to the stage.
func (d *draft) unblock() {
	d.Blocker, d.Effect.Deferral = nil, nil
	switch d.Stage {
	case StageDispatching:
		d.Status = Dispatching
	case StageConfirmed:
		d.Status = Dispatched
	case StageClaimed:
		d.Status = Claimed
	case StageClosed:
		d.Status = PendingRelease
	}
}

// backoff doubles from base with each step, up to limit.
func backoff(base, limit time.Duration, step int) time.Duration {
	for ; step > 0 && base < limit; step-- {
		base *= 2
	}
	return min(base, limit)
}

// Bounds of what activities say, in bytes.
const (
	maxWord   = 128
	maxLine   = 200
	maxDetail = 400
	maxText   = 2000
)

// clip cuts s to at most limit bytes, at the start of a character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}

func appendBounded[T any](list []T, bound int, item T) []T {
	kept := list[max(0, len(list)+1-bound):]
	return append(append(make([]T, 0, len(kept)+1), kept...), item)
}
