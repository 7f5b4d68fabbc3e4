package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
)

// Rules versions that this code decides by. A branch on an older version is deleted when no open session carries it.
const (
	OldestRules  = 1
	CurrentRules = 1
)

// Policy is the transition policy of ReleaseSession.
type Policy struct{}

var _ kernel.Policy[State, Event] = Policy{}

// Decision is the policy's answer to one event.
type Decision = kernel.Decision[State]

// draft is a state under change: slices and pointers of the state it began with are replaced, never written into.
type draft struct {
	State
	at time.Time
}

type verdict struct {
	kernel.Verdict
	code    string
	missing []string
}

var accepted = verdict{Verdict: kernel.Accept}

func noOp(code string) verdict   { return verdict{Verdict: kernel.NoOp, code: code} }
func reject(code string) verdict { return verdict{Verdict: kernel.Reject, code: code} }
func needs(code string, missing ...string) verdict {
	return verdict{Verdict: kernel.NeedsEvidence, code: code, missing: missing}
}

// Decide answers one event: accept with the next state, no_op for what changes nothing, reject or needs_evidence with a
// stable code. It is the whole transition policy.
func (Policy) Decide(s State, e Event, m kernel.Meta) Decision {
	d := draft{State: s, at: m.At}
	v := d.guard(e)
	if v.Verdict == kernel.Accept {
		v = d.apply(e)
	}
	if v.Verdict != kernel.Accept {
		return Decision{Verdict: v.Verdict, Code: v.code, Missing: v.missing, Next: s}
	}
	if d.Phase == s.Phase && d.Deadline.Equal(s.Deadline) {
		d.expire()
	}
	d.Revision++
	return Decision{Verdict: kernel.Accept, Code: v.code, Next: d.State}
}

// Rules is the rules version that the state carries.
func (Policy) Rules(s State) int { return s.Rules }

// WithRules sets it.
func (Policy) WithRules(s State, rules int) State {
	s.Rules = rules
	return s
}

// Ending is how Temporal shows the end. Source: "ReleaseSession state", terminal phases.
func (Policy) Ending(s State) kernel.Ending {
	switch {
	case s.Phase == KnownGood || s.Phase == RolledBack:
		return kernel.Ending{}
	case !s.valid():
		return kernel.Ending{Failure: CodeInvalidState, Message: "the state of the session is not one that the policy knows"}
	case s.Cancelled && s.End.Code == CodeAborted:
		return kernel.Ending{Canceled: true}
	}
	message := s.End.Code + ": " + s.End.Detail
	if len(s.End.Problems) > 0 {
		message = "the start is refused: " + strings.Join(s.End.Problems, "; ")
	}
	return kernel.Ending{Failure: s.End.Code, Message: strings.TrimSuffix(message, ": ")}
}

// guard refuses what no state may take.
func (d *draft) guard(e Event) verdict {
	if !d.valid() {
		return reject(CodeInvalidState)
	}
	answer, isAnswer := e.(asked)
	if d.Terminal() {
		switch e.(type) {
		case AbortRequested, CancelRequested, PromoteRequested, OperationJudged:
			return noOp(CodeTerminal)
		case SessionRecorded, StepFailed, TimerElapsed:
		default:
			return reject(CodeTerminal)
		}
	}
	if isAnswer && answer.of() != (Policy{}).Obligation(d.State).Key {
		return reject(CodeStale)
	}
	return accepted
}

func (d *draft) apply(e Event) verdict {
	switch e := e.(type) {
	case Admitted:
		return d.admitted(e)
	case SourceWasFrozen:
		return d.frozen(e)
	case ReleaseWasBuilt:
		return d.built(e)
	case CheckRan:
		return d.checked(e)
	case CandidateServes:
		return d.candidateServes(e)
	case CandidateIsQuiet:
		d.Quiet, d.Work = true, Work{}
		return accepted
	case LaneVerified:
		return d.verified(e)
	case LaneObserved:
		return d.observed(e.Lane)
	case OperationStarted:
		return d.operationStarted(e)
	case OperationReturned:
		return d.operationReturned(e)
	case OperationLost:
		return d.operationLost(e)
	case OperationNotStarted:
		return d.operationNotStarted(e)
	case WindowsObserved:
		return d.windows(e)
	case ProofObserved:
		return d.proofObserved(e)
	case RestartStarted:
		return d.restartStarted(e)
	case RestartReturned:
		return d.restartReturned(e)
	case BundleAttested:
		return d.bundled(e)
	case SessionRecorded:
		d.Recorded, d.Work = true, Work{}
		return accepted
	case StepFailed:
		return d.stepFailed(e.Trouble)
	case TimerElapsed:
		return d.elapsed()
	case OperationJudged:
		return d.judged(e)
	case AbortRequested:
		return d.abort(e)
	case PromoteRequested:
		return d.promote(e)
	case CancelRequested:
		return d.cancel()
	}
	return reject(CodeIllegal)
}

// enter begins a phase with its deadline.
func (d *draft) enter(p Phase) {
	d.Phase, d.Since, d.Work = p, d.at, Work{}
	if d.Plan != nil {
		d.Deadline = d.at.Add(d.allowance(p))
	}
}

// allowance is how long the part may take that a phase begins.
func (s *State) allowance(p Phase) time.Duration {
	limits := s.Plan.Deadlines
	switch p {
	case Starting:
		return limits.Freeze.Std()
	case SourceFrozen:
		return limits.Build.Std()
	case Built:
		return limits.Gates.Std()
	case StaticVerified:
		return limits.Candidate.Std()
	case CandidateBooted:
		return limits.Canaries.Std()
	case CutoverEligible:
		if s.Plan.NeedsPerson() {
			return limits.Person.Std()
		}
		return limits.Verify.Std()
	case CutoverAttempting:
		return limits.Cutover.Std()
	case CutoverCommitted:
		return limits.Commit.Std()
	case Soaking:
		return limits.Soak.Std()
	}
	return limits.Verify.Std()
}

// finish ends the session.
func (d *draft) finish(p Phase, code, detail string) verdict {
	d.End = &End{Code: code, Detail: clip(detail), At: d.at, During: d.Phase}
	d.Phase, d.Since, d.Work, d.Operation = p, d.at, Work{}, nil
	d.Deadline = d.at.Add(recordTime)
	return accepted
}

func (d *draft) fail(code, detail string) verdict { return d.finish(Failed, code, detail) }

// goBack makes the return to A what the session owes. It is asked for once; the first reason stays.
func (d *draft) goBack(code, detail string) verdict {
	if d.Back == nil {
		d.Back = &Back{Code: code, Detail: clip(detail), At: d.at}
		d.Work = Work{}
		d.Deadline = d.at.Add(d.Plan.Deadlines.Rollback.Std())
	}
	return accepted
}

// receive keeps a receipt.
func (d *draft) receive(r evidence.Receipt) {
	if r.Gate == "" {
		return
	}
	if r.At.IsZero() {
		r.At = d.at
	}
	r.Line, r.Code = clip(r.Line), clip(r.Code)
	kept := slices.Clone(d.Receipts[max(0, len(d.Receipts)-MaxReceipts+1):])
	d.Receipts = append(kept, r)
}

const longest = 400

// clip bounds what comes from outside.
func clip(s string) string {
	if r := []rune(s); len(r) > longest {
		return string(r[:longest-1]) + "…"
	}
	return s
}

func derive(prefix string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return prefix + hex.EncodeToString(sum[:])[:16]
}

// SessionID is derived, so that a workflow reset derives the same id again, and never repeated by a later start.
func SessionID(workflowID, runID string) string { return derive("rs_", workflowID, runID) }

// operationID names the nth operation of a kind.
func (s *State) operationID(kind string, n int) string {
	return derive("op_", s.Session, kind, strconv.Itoa(n))
}
