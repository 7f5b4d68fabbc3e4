package policy

import (
	"fmt"
	"strings"
	"time"

	"steward/workflows/release/evidence"
)

// The actions of an acceptance run, in their order.
var acceptance = []string{"CONTINUE", "CONTINUE", "DONE"}

// GateLiveProof is the name of the live proof in receipts.
const GateLiveProof = "live_proof"

const goalComplete = "goal_complete"

// successorSlack is beside the run's own pace the longest time from a completion to its successor.
const successorSlack = 30 * time.Second

// proofObserved takes the ledger of the acceptance run. An open run proves nothing yet; an ended one is judged once.
// Source: "Completion closure", Release / rollback.
func (d *draft) proofObserved(e ProofObserved) verdict {
	if v, overtaken := d.overtaken(e.Lane); overtaken {
		return v
	}
	p := d.Soak.Proof
	p.WorkflowID, p.Status, p.Turns = e.WorkflowID, e.Status, e.Turns[max(0, len(e.Turns)-8):]
	if e.Open {
		d.Work = Work{Try: d.Work.Try + 1}
		if !p.Continued && continued(e.Turns) {
			p.Continued, p.Before = true, max(d.Active.Incarnation, e.Turns[0].Incarnation)
			d.Work = Work{}
		}
		d.Soak.Proof = p
		return accepted
	}
	limit := e.MinInterval + successorSlack
	if set := d.Plan.Soak.LiveProof.MaxSuccessorLatency; set != nil {
		limit = set.Std()
	}
	wrong := d.chain(e)
	late := latency(e.Turns)
	p.LatencyMillis = late.Milliseconds()
	code := CodeProofFailed
	if wrong == "" && late > limit {
		code, wrong = CodeProofLate, fmt.Sprintf("a successor came %v after its completion; %v is allowed", late, limit)
	}
	p.Passed = wrong == ""
	d.Soak.Proof, d.Work = p, Work{}
	receipt := evidence.Receipt{
		Gate: GateLiveProof, Outcome: evidence.Passed, Revision: d.Plan.Source.Revision, Release: d.Release,
		Line: fmt.Sprintf("%s: longest wait for a successor %v", e.WorkflowID, late),
	}
	if !p.Passed {
		receipt.Outcome, receipt.Code, receipt.Line = evidence.Failed, code, wrong
	}
	d.receive(receipt)
	if !p.Passed {
		return d.goBack(code, wrong)
	}
	return accepted
}

// continued tells whether the first turn was committed with CONTINUE.
func continued(turns []evidence.Turn) bool {
	return len(turns) > 0 && turns[0].Action == acceptance[0] && !turns[0].Committed.IsZero()
}

// chain says what is wrong with the causal chain of an ended run; nothing when it is the proof.
func (s *State) chain(e ProofObserved) string {
	if e.Status != goalComplete {
		return fmt.Sprintf("the acceptance run ended as %s", e.Status)
	}
	if len(e.Turns) != len(acceptance) {
		return fmt.Sprintf("the acceptance run has %d turns; the proof is %s", len(e.Turns), strings.Join(acceptance, ", "))
	}
	incarnations, effects := map[int64]bool{}, map[string]bool{}
	for i, t := range e.Turns {
		at := fmt.Sprintf("turn %d", i+1)
		switch {
		case t.Action != acceptance[i] || t.Committed.IsZero() || t.Completion == "":
			return fmt.Sprintf("%s is %q, the proof needs a completed %s", at, t.Action, acceptance[i])
		case t.Dispatches != 1 || t.Applied.IsZero():
			return fmt.Sprintf("%s has %d dispatches; the proof needs one, with one applied receipt", at, t.Dispatches)
		case t.Effect == "" || effects[t.Effect]:
			return at + " has no effect of its own"
		case t.Release != s.Release:
			return fmt.Sprintf("%s was made by release %q, active is %q", at, t.Release, s.Release)
		case t.Dispatched.Before(s.Switch.At):
			return at + " was sent before the release was activated"
		case i > 0 && (t.Source != e.Turns[i-1].Effect || t.Dispatched.Before(e.Turns[i-1].Committed)):
			return at + " does not continue the turn before it"
		}
		incarnations[t.Incarnation], effects[t.Effect] = true, true
	}
	if len(incarnations) < 2 {
		return "the acceptance run saw one incarnation; the proof needs a restart in between"
	}
	return ""
}

// latency is the longest time from a completion to the message that followed.
func latency(turns []evidence.Turn) time.Duration {
	var longest time.Duration
	for i := 1; i < len(turns); i++ {
		longest = max(longest, turns[i].Applied.Sub(turns[i-1].Committed))
	}
	return longest
}
