package policy

import (
	"fmt"
	"strconv"
	"time"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// Kinds of obligations: what a state can owe the world next.
const (
	OweAdmit     = "admit"
	OweFreeze    = "freeze"
	OweBuild     = "build"
	OweGate      = "gate"
	OweBoot      = "boot_candidate"
	OweCanary    = "canary"
	OweStop      = "stop_candidate"
	OweVerify    = "verify"
	OweCutover   = evidence.KindCutover
	OweRollback  = evidence.KindRollback
	OweReconcile = "reconcile"
	OweLook      = "look"
	OweWindows   = "observe_windows"
	OweProof     = "live_proof"
	OweCommand   = "live_proof_command"
	OweRestart   = "restart"
	OweBundle    = "bundle"
	OweClose     = "close_session"
	oweTimer     = "timer"
	oweMessage   = "message"
	oweFinish    = "finish"
)

// batch is how many windows one activity observes: a service that runs away is noticed after each.
const batch = 5

func owe(class kernel.Class, kind, key, summary string) kernel.Obligation {
	return kernel.Obligation{Class: class, Kind: kind, Key: kind + ":" + key, Summary: summary}
}

func until(at time.Time, key, summary string) kernel.Obligation {
	o := owe(kernel.Timer, oweTimer, key+":"+strconv.FormatInt(at.UnixMilli(), 36), summary)
	o.At = at
	return o
}

// step owes a read, a wait before it, or, parked, a person's word until the deadline.
func (s *State) step(class kernel.Class, kind, name, summary string) kernel.Obligation {
	key := fmt.Sprintf("%s:%s:%d", s.Phase, name, s.Work.Try)
	switch {
	case s.Work.Parked:
		return until(s.Deadline, "parked:"+kind+":"+key, fmt.Sprintf("unknown (look once more) or abort: %s", s.Work.Code))
	case !s.Work.NotBefore.IsZero():
		return until(s.bounded(s.Work.NotBefore), kind+":"+key, "until the next try: "+summary)
	}
	return owe(class, kind, key, summary)
}

func (s *State) bounded(at time.Time) time.Time {
	if s.Deadline.IsZero() || at.Before(s.Deadline) {
		return at
	}
	return s.Deadline
}

// Obligation is the one thing that the state owes next, derived from the state alone: a restart takes up the same debt.
// Source: "ReleaseSession state", The coordinator is stateless.
func (Policy) Obligation(s State) kernel.Obligation {
	switch {
	case !s.valid():
		return owe(kernel.Finish, oweFinish, "invalid", "finish")
	case s.Terminal() && (s.Recorded || s.Refused() || s.Session == ""):
		return owe(kernel.Finish, oweFinish, string(s.Phase), "finish")
	case s.Terminal():
		return s.step(kernel.ReadOnly, OweClose, s.Session, "record the end, remove the candidate lane")
	case s.Plan == nil:
		return owe(kernel.ReadOnly, OweAdmit, "start", "read the plan and what earlier sessions left behind")
	case s.Operation != nil:
		return s.oweOperation()
	case s.Back != nil:
		return s.oweRollback()
	}
	return s.owePhase()
}

func (s *State) owePhase() kernel.Obligation {
	switch s.Phase {
	case Starting:
		return s.step(kernel.ReadOnly, OweFreeze, "source", "freeze "+s.Plan.Source.Revision)
	case SourceFrozen:
		return s.step(kernel.ReadOnly, OweBuild, "release", "build the release and store it")
	case Built:
		return s.step(kernel.ReadOnly, OweGate, s.nextGate(), "gate "+s.nextGate())
	case StaticVerified:
		return s.step(kernel.ReadOnly, OweBoot, "candidate", "start the candidate in its own lane")
	case CandidateBooted:
		return s.step(kernel.ReadOnly, OweCanary, s.nextCanary(), "canary "+s.nextCanary())
	case CandidateVerified:
		if !s.Quiet {
			return s.step(kernel.ReadOnly, OweStop, "candidate", "stop the candidate")
		}
		return s.oweVerify("verify the running release")
	case CutoverEligible:
		return s.oweEligible()
	case CutoverCommitted:
		return s.step(kernel.ReadOnly, OweLook, "active", "see the new release serving")
	}
	return s.oweSoak()
}

func (s *State) oweVerify(summary string) kernel.Obligation {
	return s.step(kernel.ReadOnly, OweVerify, "lane", summary)
}

func (s *State) oweEligible() kernel.Obligation {
	switch {
	case s.Plan.NeedsPerson() && s.Promoted == nil:
		return until(s.Deadline, "promote", "promote")
	case s.VerifiedAt.IsZero():
		return s.oweVerify("verify the running release once more")
	}
	id := s.nextOperation(evidence.KindCutover)
	return owe(kernel.Effect, OweCutover, id, fmt.Sprintf("cutover %s to %s", id, short(s.Release)))
}

// oweOperation serves the operation that has begun: its activity, or looks at what it did.
func (s *State) oweOperation() kernel.Obligation {
	o := s.Operation
	switch {
	case o.State == OperationRunning && o.Kind == evidence.KindCutover && s.Aborted != nil:
		what := "the outcome of the cutover under way, then the way back"
		return owe(kernel.Idle, oweMessage, what, what)
	case o.State == OperationRunning && o.Kind == evidence.KindCutover:
		return owe(kernel.Effect, OweCutover, o.ID, fmt.Sprintf("cutover %s to %s", o.ID, short(s.Release)))
	case o.State == OperationRunning:
		return owe(kernel.Effect, OweRollback, o.ID, fmt.Sprintf("rollback %s to %s", o.ID, short(s.Stable.Release)))
	case !s.Work.NotBefore.IsZero():
		return until(s.bounded(s.Work.NotBefore), fmt.Sprintf("reconcile:%s:%d", o.ID, o.Looks), "until the next look at what "+o.ID+" did")
	}
	return owe(kernel.ReadOnly, OweReconcile, fmt.Sprintf("%s:%d", o.ID, o.Looks), "read what "+o.ID+" did")
}

func (s *State) oweRollback() kernel.Obligation {
	id := s.nextOperation(evidence.KindRollback)
	if !s.Work.NotBefore.IsZero() {
		return until(s.bounded(s.Work.NotBefore), "rollback:"+id, "until the next attempt to go back")
	}
	return owe(kernel.Effect, OweRollback, id, fmt.Sprintf("rollback %s to %s", id, short(s.Stable.Release)))
}

// oweSoak is the next of what known-good needs. Source: "ReleaseSession state", known_good.
func (s *State) oweSoak() kernel.Obligation {
	k := s.Soak
	switch {
	case !k.Performance:
		return s.step(kernel.ReadOnly, OweWindows, strconv.Itoa(len(k.Windows)),
			fmt.Sprintf("observe CPU use, %d of %d windows", len(k.Windows), *s.Plan.Soak.Performance.Windows))
	case !k.Served && !k.NextAt.IsZero() && s.Work.NotBefore.IsZero():
		return until(s.bounded(k.NextAt), "soak:"+strconv.Itoa(k.Looks), "soak until "+k.Until.UTC().Format(time.TimeOnly))
	case !k.Served:
		return s.step(kernel.ReadOnly, OweLook, strconv.Itoa(k.Looks), "look at the new release")
	case !k.Proof.Passed && s.command():
		return s.step(kernel.ReadOnly, OweCommand, "command", "live proof by command")
	case !k.Proof.Passed && k.Proof.Continued && !k.Proof.Restarted:
		return s.step(kernel.Effect, OweRestart, s.Session, "restart the new release once, for the live proof")
	case !k.Proof.Passed:
		return s.step(kernel.ReadOnly, OweProof, s.Session, "live proof: an acceptance run with CONTINUE, CONTINUE, DONE")
	case !k.Verified:
		return s.oweVerify("verify the new release in the stable lane")
	}
	return s.step(kernel.ReadOnly, OweBundle, "known_good", "write the known-good bundle and read it back")
}

// Next is the id of the operation that the obligation begins.
func (s *State) Next(o kernel.Obligation) string { return s.nextOperation(o.Kind) }

// Gate is the gate that is due.
func (s *State) Gate() (string, plan.Command) {
	name := s.nextGate()
	for _, g := range s.Plan.GateCommands() {
		if g.Name == name {
			return name, g.Command
		}
	}
	return name, plan.Command{}
}

// Canary is the canary that is due.
func (s *State) Canary() (string, plan.Check) {
	name := s.nextCanary()
	for _, c := range s.Plan.CanaryChecks() {
		if c.Name == name {
			return name, c.Check
		}
	}
	return name, plan.Check{}
}

// ProofCheck is the command of the live proof.
func (s *State) ProofCheck() plan.Check { return plan.Check{Command: s.Plan.Soak.LiveProof.Command} }

// Batch is how many windows are observed next, and whether they are the first.
func (s *State) Batch() (n int, first bool) {
	return min(batch, max(1, *s.Plan.Soak.Performance.Windows-len(s.Soak.Windows))), len(s.Soak.Windows) == 0
}

func short(hash string) string { return hash[:min(12, len(hash))] }
