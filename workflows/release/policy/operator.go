package policy

import (
	"time"

	"steward/workflows/release/evidence"
)

// said checks that somebody stands behind a message.
func said(operator, reason string) (verdict, bool) {
	switch {
	case operator == "":
		return needs(CodeOperator, "operator"), false
	case reason == "":
		return needs(CodeReason, "reason"), false
	}
	return accepted, true
}

// abort ends the release: before the switch at once, during it when its outcome is known, after it by going back.
func (d *draft) abort(e AbortRequested) verdict {
	if v, ok := said(e.Operator, e.Reason); !ok {
		return v
	}
	if d.Aborted != nil || d.Back != nil {
		return noOp(CodeDuplicate)
	}
	d.Aborted = &Word{By: e.Operator, Reason: clip(e.Reason), At: d.at}
	switch {
	case d.Operation != nil:
		return accepted
	case d.switched():
		return d.goBack(CodeAborted, e.Reason)
	}
	return d.fail(CodeAborted, e.Reason)
}

func (d *draft) cancel() verdict {
	d.Cancelled = true
	v := d.abort(AbortRequested{Operator: "temporal", Reason: "the workflow was asked to cancel"})
	if v.Verdict != accepted.Verdict {
		return accepted
	}
	return v
}

// promote lets an eligible release switch. It counts nowhere else.
func (d *draft) promote(e PromoteRequested) verdict {
	if v, ok := said(e.Operator, e.Reason); !ok {
		return v
	}
	switch {
	case d.Phase != CutoverEligible:
		return reject(CodeIllegal)
	case d.Promoted != nil:
		return noOp(CodeDuplicate)
	case !d.Plan.NeedsPerson():
		return noOp(CodeNothing)
	}
	d.Promoted = &Word{By: e.Operator, Reason: clip(e.Reason), At: d.at}
	d.Deadline, d.Work = d.at.Add(d.Plan.Deadlines.Verify.Std()), Work{}
	if d.at.Sub(d.VerifiedAt) > freshness {
		d.VerifiedAt = time.Time{}
	}
	return accepted
}

// judged takes a person's word on an operation whose outcome the looks cannot settle. A look that shows otherwise wins.
func (d *draft) judged(e OperationJudged) verdict {
	if v, ok := said(e.Operator, e.Reason); !ok {
		return v
	}
	o := d.Operation
	switch {
	case e.Verdict == VerdictUnknown && e.Operation == "" && o == nil:
		return d.unpark()
	case o == nil || o.State != OperationUnknown:
		return reject(CodeNotUnknown)
	case o.ID != e.Operation:
		return reject(CodeOperation)
	case e.Verdict == VerdictUnknown:
		d.Work = Work{}
		return accepted
	case o.Seen == nil:
		return needs(CodeUnobserved, "one look at the live lane")
	}
	onNew := o.Seen.Active == d.Release
	onA := o.Seen.Active == d.Stable.Release
	if forward := (o.Kind == evidence.KindCutover) == (e.Verdict == VerdictApplied); forward && onA || !forward && onNew {
		return reject(CodeContradicted)
	}
	word := &Verdict{Word: Word{By: e.Operator, Reason: clip(e.Reason), At: d.at}, Verdict: e.Verdict}
	marked := *o
	marked.Word = word
	d.Operation = &marked
	aServes := o.Seen.Ready && o.Seen.Serving == d.Stable.Release
	switch {
	case o.Kind == evidence.KindCutover && e.Verdict == VerdictApplied:
		return d.commit(OperationReturned{Lane: evidence.Lane{Serving: d.expected()}})
	case o.Kind == evidence.KindRollback && e.Verdict == VerdictNotApplied:
		return d.rollbackAgain(Trouble{Code: "operator", Detail: e.Reason})
	case !aServes:
		return needs(CodeUnobserved, "the previous release serving")
	case o.Kind == evidence.KindRollback:
		return d.settle(returned, OperationReturned{})
	}
	return d.settle(notApplied, OperationReturned{Trouble: Trouble{Code: "operator", Detail: e.Reason}})
}

// unpark tries once more what gave neither pass nor failure.
func (d *draft) unpark() verdict {
	if !d.Work.Parked {
		return noOp(CodeNothingOpen)
	}
	d.Work = Work{Try: d.Work.Try, Unproven: maxUnproven - 1, Code: d.Work.Code, Detail: d.Work.Detail}
	return accepted
}
