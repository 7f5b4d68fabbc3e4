package policy

import (
	"fmt"
	"slices"

	"steward/workflows/machine/kernel"
)

// Outcomes of a check.
const (
	CheckPass       = "pass"
	CheckFail       = "fail"
	CheckCannotTell = "cannot_tell"
)

// propose opens the validation of a DONE. The words of the assistant complete nothing.
// Source: "Workflow Supervisor authority", DONE and NEEDS_USER validation.
func (d *draft) propose() verdict {
	contract := d.Goal.Completion
	d.Proposal = &Proposal{Completion: d.Completion.ID}
	if named := len(d.Completion.Evidence); named < contract.Evidence.Min {
		return d.refuse("done_rejected", []string{
			fmt.Sprintf("evidence: %d items named, at least %d are asked for", named, contract.Evidence.Min),
		})
	}
	if len(contract.Checks) == 0 {
		d.awaitApproval()
		return acceptAs("approval_awaited")
	}
	return acceptAs("done_proposed")
}

func (d *draft) awaitApproval() {
	p := *d.Proposal
	p.Approval = true
	d.Proposal = &p
	d.enter(WaitingForUser, StageClosed)
}

// validated takes the outcome of all checks. A check that cannot tell is never a pass: it is run again, later, and no
// prompt is sent meanwhile.
func (d *draft) validated(e ProposalValidated) verdict {
	if v := d.proposal(e.Completion); v.Verdict != kernel.Accept {
		return v
	}
	validating := d.Status == PendingRelease || d.Status == Blocked && d.Blocker.Class == BlockedValidation
	if !validating {
		return reject(CodeIllegal)
	}
	if e.Run != d.Proposal.Runs {
		return noOp(CodeDuplicate)
	}
	p := *d.Proposal
	p.Runs++
	p.Results = nil
	d.Proposal = &p
	var failed []string
	unclear := false
	for _, c := range d.Goal.Completion.Checks {
		r := resultOf(c.Name, e.Results)
		p.Results = append(p.Results, r)
		switch r.Outcome {
		case CheckPass:
		case CheckFail:
			failed = append(failed, fmt.Sprintf("%s: %s %s", r.Name, r.Code, r.Line))
		default:
			unclear = true
		}
	}
	switch {
	case len(failed) > 0:
		d.Blocker = nil
		return d.refuse("done_rejected", failed)
	case unclear:
		d.again(&p)
		return acceptAs("validation_unclear")
	case d.Goal.Completion.OperatorApproval:
		d.Blocker = nil
		d.awaitApproval()
		return acceptAs("approval_awaited")
	}
	d.complete()
	return acceptAs("done_verified")
}

// resultOf is what a check of the contract proved. Without exactly one result of its own it cannot tell.
func resultOf(check string, results []CheckVerdict) CheckVerdict {
	named := func(r CheckVerdict) bool { return r.Name == check }
	i := slices.IndexFunc(results, named)
	if i < 0 || slices.ContainsFunc(results[i+1:], named) {
		return CheckVerdict{Name: check, Outcome: CheckCannotTell, Code: "no_result"}
	}
	r := results[i]
	r.Code, r.Line, r.Revision = clip(r.Code, maxWord), clip(r.Line, maxLine), clip(r.Revision, maxWord)
	return r
}

// again schedules the next run of a validation that could not tell.
func (d *draft) again(p *Proposal) {
	steps := d.pace().Unclear
	if p.Unclear < len(steps) {
		p.NotBefore = d.at.Add(steps[p.Unclear].Std())
		p.Unclear++
		return
	}
	p.Unclear++
	if d.Blocker == nil {
		d.block(BlockedValidation, "cannot_tell", "a check of the completion contract cannot tell")
	}
	d.nextProbe()
}

func (d *draft) complete() {
	d.Blocker, d.Next, d.Proposal = nil, nil, nil
	d.enter(GoalComplete, StageClosed)
}

// refuse turns a proposal into a correction round that names what failed; it never lowers the gate.
func (d *draft) refuse(code string, failed []string) verdict {
	d.Proposal = nil
	d.enter(PendingRelease, StageClosed)
	d.succeed(KindCorrection, bounded(failed, maxDetail))
	d.release()
	return acceptAs(code)
}

// bounded keeps a list within what a prompt and the state may hold.
func bounded(list []string, longest int) []string {
	const most = 16
	list = slices.Clone(list[:min(len(list), most)])
	for i, item := range list {
		list[i] = clip(item, longest)
	}
	return list
}

func (d *draft) proposal(completion string) verdict {
	switch {
	case d.Proposal == nil:
		return reject(CodeNoProposal)
	case d.Proposal.Completion != completion:
		return reject(CodeCompletionMismatch)
	}
	return accepted
}

func (d *draft) approval(completion, operator, reason string) verdict {
	if v := d.proposal(completion); v.Verdict != kernel.Accept {
		return v
	}
	switch {
	case !d.Proposal.Approval || d.Status != WaitingForUser:
		return reject(CodeIllegal)
	case operator == "":
		return needs(CodeOperatorMissing, "operator")
	case reason == "":
		return needs(CodeReasonMissing, "reason")
	}
	return accepted
}

func (d *draft) approved(e ApprovalGiven) verdict {
	v := d.approval(e.Completion, e.Operator, e.Reason)
	if v.Verdict == kernel.Accept {
		d.complete()
	}
	return v
}

func (d *draft) declined(e ApprovalDeclined) verdict {
	v := d.approval(e.Completion, e.Operator, e.Reason)
	if v.Verdict == kernel.Accept {
		return d.refuse("done_declined", []string{"the operator declined: " + e.Reason})
	}
	return v
}

// needsUser judges a NEEDS_USER at once: only an allowed kind waits for a person. Test, tool, session and provider
// failures are never user blockers. Source: "Workflow Supervisor authority", DONE and NEEDS_USER validation.
func (d *draft) needsUser() verdict {
	ask := d.Completion.Ask
	if ask == nil {
		return d.refuse("needs_user_rejected", []string{
			"NEEDS_USER: repeat it with the block form, and with user_action: kind, ask and what you tried",
		})
	}
	allowed := slices.Contains(d.Goal.UserBlocker.Allowed, ask.Kind)
	before, same := d.OtherAsk, digest(ask.Ask)
	d.OtherAsk = ""
	if allowed && (ask.Kind != "other" || before == same) {
		d.awaitUser()
		return acceptAs("needs_user_accepted")
	}
	if allowed {
		d.OtherAsk = same
		return d.refuse("needs_user_rejected", []string{
			"NEEDS_USER: first try to go on without a person; if that is impossible, ask exactly the same again",
		})
	}
	return d.refuse("needs_user_rejected", []string{fmt.Sprintf("NEEDS_USER: %q is nothing that only a person can do here", ask.Kind)})
}

func (d *draft) awaitUser() { d.enter(WaitingForUser, StageClosed) }
