package policy

import (
	"cmp"
	"fmt"
	"time"

	"steward/workflows/release/evidence"
)

const (
	// maxCutovers bounds cutovers that the server proves nobody was given; one that was begun is the only one.
	maxCutovers  = 3
	maxRollbacks = 3
	// patientLooks is how many looks at an operation of unknown outcome come before a person is asked.
	patientLooks = 6
	maxLookPause = 10 * time.Minute
)

// result is what a look at the live lane says of an operation.
type result int

const (
	open result = iota
	applied
	notApplied
	returned // exact A serves again
	unserviceable
)

// nextOperation is the id of the operation that would begin now.
func (s *State) nextOperation(kind string) string {
	if kind == evidence.KindCutover {
		return s.operationID(kind, s.Cutovers+1)
	}
	return s.operationID(kind, s.Rollbacks+1)
}

func (d *draft) operationStarted(e OperationStarted) verdict {
	kind := evidence.KindCutover
	if d.Back != nil {
		kind = evidence.KindRollback
	}
	owed := (Policy{}).Obligation(d.State)
	if d.Operation != nil || owed.Kind != kind || e.Operation != d.nextOperation(kind) {
		return reject(CodeOperation)
	}
	o := &Operation{ID: e.Operation, Kind: kind, State: OperationRunning, Began: d.at}
	if kind == evidence.KindCutover {
		d.Cutovers++
		o.Generation = d.Cutovers
		d.enter(CutoverAttempting)
	} else {
		d.Rollbacks++
		o.Generation = d.Rollbacks
		d.Deadline, d.Work = d.at.Add(d.Plan.Deadlines.Rollback.Std()), Work{}
	}
	d.Operation = o
	if e.Suspect {
		return d.unknown("history_reset", true, "")
	}
	return accepted
}

// unknown: neither proven nor disproven. It never authorizes a second attempt.
func (d *draft) unknown(code string, armed bool, step string) verdict {
	o := *d.Operation
	o.State, o.Armed, o.Step, o.Code = OperationUnknown, armed || o.Armed, cmp.Or(step, o.Step), code
	d.Operation, d.Work = &o, Work{}
	d.Deadline = d.at.Add(d.Plan.Deadlines.Person.Std())
	return accepted
}

func (d *draft) operationReturned(e OperationReturned) verdict {
	if d.Operation == nil || d.Operation.ID != e.Operation || d.Operation.State != OperationRunning {
		return reject(CodeOperation)
	}
	d.receive(e.Receipt)
	outcome := d.Read(e.Lane)
	if outcome == open && e.Restored && d.returnedWithoutA(e.Lane) {
		outcome = unserviceable
	}
	d.noteLane(e.Lane)
	if outcome == open {
		return d.unknown(cmp.Or(e.Code, "outcome_open"), true, e.Lane.Last())
	}
	return d.settle(outcome, e)
}

func (d *draft) operationLost(e OperationLost) verdict {
	if d.Operation == nil || d.Operation.ID != e.Operation || d.Operation.State != OperationRunning {
		return reject(CodeOperation)
	}
	return d.unknown(cmp.Or(e.Code, "lost"), e.Armed, e.Step)
}

// operationNotStarted: the server proves that nobody was given it, so nothing was used up.
func (d *draft) operationNotStarted(e OperationNotStarted) verdict {
	o := d.Operation
	switch {
	case o == nil || o.ID != e.Operation || o.State != OperationRunning:
		return reject(CodeOperation)
	case o.Kind == evidence.KindRollback:
		d.Operation = nil
		return d.stepFailed(e.Trouble)
	case d.Aborted != nil:
		return d.fail(CodeAborted, d.Aborted.Reason)
	case d.Cutovers >= maxCutovers:
		return d.fail(CodeDeadline, "the recovery process took the cutover up in none of the attempts")
	}
	d.Operation, d.VerifiedAt = nil, time.Time{}
	d.enter(CutoverEligible)
	d.Deadline = d.at.Add(d.Plan.Deadlines.Verify.Std())
	return accepted
}

// Read judges a look at the live lane: service identity, authority and steps, and nothing else. Source: "ReleaseSession
// state", Interrupted after the rollback authority commit.
func (s *State) Read(l evidence.Lane) result {
	o := s.Operation
	if o == nil || !l.Observed || !l.Settled {
		return open
	}
	last, active := l.Authority.LastOperation, l.Authority.Active
	aServes := l.Serving.Ready && l.Serving.SameLane(s.Stable)
	switch {
	case last == evidence.Operation{Kind: evidence.KindRollback, Session: s.Session} && active == s.Stable.Release:
		if aServes {
			return returned
		}
	case last == evidence.Operation{Kind: evidence.KindCutover, Session: s.Session} && active == s.Release:
		if o.Kind == evidence.KindRollback {
			return notApplied
		}
		return applied
	case o.Kind == evidence.KindCutover && active == s.Stable.Release && last.Session != s.Session && aServes:
		return notApplied
	}
	return open
}

// returnedWithoutA: the operation ended, exact A is the active release, and it does not serve.
func (s *State) returnedWithoutA(l evidence.Lane) bool {
	return l.Observed && l.Authority.Active == s.Stable.Release && !(l.Serving.Ready && l.Serving.SameLane(s.Stable))
}

// settle takes a proven outcome.
func (d *draft) settle(outcome result, e OperationReturned) verdict {
	o := d.Operation
	why := e.Trouble
	if d.Back != nil {
		why = Trouble{Code: d.Back.Code, Detail: d.Back.Detail}
	}
	if e.Database != "" && d.Switch != nil {
		changed := *d.Switch
		changed.Database = e.Database
		d.Switch = &changed
	}
	switch outcome {
	case applied:
		return d.commit(e)
	case returned:
		if d.Aborted != nil {
			why = Trouble{Code: CodeAborted, Detail: d.Aborted.Reason}
		}
		reason := e.Lane.RollbackReason()
		return d.finish(RolledBack, cmp.Or(why.Code, reason, CodeCutoverFailed), why.Detail)
	case unserviceable:
		return d.fail(CodeUnserviceable, fmt.Sprintf("the previous release %s does not serve: %s %s", d.Stable.Release, why.Code, why.Detail))
	case notApplied:
		if o.Kind == evidence.KindRollback {
			return d.rollbackAgain(why)
		}
		if d.Aborted != nil {
			return d.fail(CodeAborted, d.Aborted.Reason)
		}
		return d.fail(CodeNotApplied, why.Code+" "+why.Detail)
	}
	return reject(CodeIllegal)
}

// rollbackAgain: the authority still names the new release, so the way back was not taken.
func (d *draft) rollbackAgain(why Trouble) verdict {
	if d.Rollbacks >= maxRollbacks {
		return d.fail(CodeRollbackNotApplied, fmt.Sprintf("after %d attempts the new release is still the active one: %s %s",
			d.Rollbacks, why.Code, why.Detail))
	}
	d.Operation = nil
	d.Deadline = d.at.Add(d.Plan.Deadlines.Rollback.Std())
	return d.stepFailed(Trouble{Code: CodeRollbackNotApplied, Detail: why.Detail})
}

// commit notes a cutover that took hold.
func (d *draft) commit(e OperationReturned) verdict {
	d.Switch = &Switch{At: d.at, OutageMillis: e.OutageMillis, Backup: cmp.Or(e.Backup, e.Lane.Authority.Backup), Incarnation: e.Lane.Serving.Incarnation}
	for _, step := range e.Lane.Steps {
		if step.Name == evidence.StepPublished {
			d.Switch.At = step.At
		}
	}
	d.Active, d.Operation = e.Lane.Serving, nil
	d.enter(CutoverCommitted)
	if d.Aborted != nil {
		return d.goBack(CodeAborted, d.Aborted.Reason)
	}
	return accepted
}

func (d *draft) noteLane(l evidence.Lane) {
	if !l.Observed || d.Operation == nil {
		return
	}
	o := *d.Operation
	o.Step = cmp.Or(l.Last(), o.Step)
	o.Seen = &LaneFacts{
		At: d.at, Serving: l.Serving.Release, Ready: l.Serving.Ready, Active: l.Authority.Active,
		Last: l.Authority.LastOperation, Step: l.Last(), Settled: l.Settled,
	}
	d.Operation = &o
}

// lookedInVain waits longer from look to look; after some a person is asked.
func (d *draft) lookedInVain(code string) verdict {
	o := *d.Operation
	o.Looks++
	o.Asked = o.Looks >= patientLooks
	o.Code = cmp.Or(code, o.Code)
	d.Operation = &o
	d.Work = Work{NotBefore: d.at.Add(min(firstPause<<min(o.Looks-1, 10), maxLookPause))}
	return accepted
}
