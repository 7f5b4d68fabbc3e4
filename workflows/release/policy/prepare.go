package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// admitted judges a start. Source: "ReleaseSession state", One non-terminal session, repeat rule, interrupted preparation.
func (d *draft) admitted(e Admitted) verdict {
	d.WorkflowID, d.RunID, d.Session = e.WorkflowID, e.RunID, e.Session
	d.Plan = e.Plan
	problems := e.Problems
	if e.Plan == nil && len(problems) == 0 {
		problems = []string{"the recovery process answered without a plan"}
	}
	if e.Plan != nil && len(problems) == 0 {
		if want := plan.WorkflowID(e.Plan.Instance); e.WorkflowID != want {
			problems = append(problems, fmt.Sprintf("the workflow id is %q; the session of instance %s must have the id %q", e.WorkflowID, e.Plan.Instance, want))
		}
		if e.Plan.Origin == plan.Automatic && len(e.Earlier) > 0 {
			last := e.Earlier[0]
			problems = append(problems, fmt.Sprintf("%s: revision %s has the finished session %s (%s %s); only a person may start it again",
				CodeRevisionFinished, last.Revision, last.ID, last.Phase, last.Code))
		}
		if e.Standing != "" && (e.Resume == nil || e.Standing != e.Resume.Session) {
			problems = append(problems, fmt.Sprintf(
				"the lock record of session %s stands: its operation is not finished; `steward recovery status` tells what it waits for", e.Standing))
		}
	}
	if len(problems) > 0 {
		d.fail(CodeStartRefused, "")
		d.End.Problems = problems
		return accepted
	}
	d.enter(Starting)
	if r := e.Resume; r != nil && r.Revision == e.Plan.Source.Revision && r.Source != "" && r.Stable.Release != "" {
		d.Session, d.Source, d.Stable = r.Session, r.Source, r.Stable
		d.enter(SourceFrozen)
	}
	return accepted
}

func (d *draft) frozen(e SourceWasFrozen) verdict {
	switch {
	case e.Code != "":
		return d.fail(e.Code, e.Detail)
	case e.Revision != d.Plan.Source.Revision:
		return d.fail(CodeSourceChanged, fmt.Sprintf("frozen was %s, the plan names %s", e.Revision, d.Plan.Source.Revision))
	case e.Source == "":
		return d.stepFailed(Trouble{Code: "source_unread", Detail: "the frozen source has no tree hash"})
	case e.Stable.Release == "":
		return d.stepFailed(Trouble{Code: "stable_missing", Detail: "no running release was found"})
	}
	d.Source, d.Stable = e.Source, e.Stable
	d.enter(SourceFrozen)
	return accepted
}

func (d *draft) built(e ReleaseWasBuilt) verdict {
	switch {
	case e.Code != "":
		return d.fail(e.Code, e.Detail)
	case e.Release == "":
		return d.stepFailed(Trouble{Code: "release_unread", Detail: "the release has no tree hash"})
	case e.Release == d.Stable.Release:
		return d.fail(CodeAlreadyActive, "the build is the very release that runs")
	case e.Repeated != nil && e.Repeated.Phase == string(RolledBack) && d.Plan.Origin == plan.Automatic:
		return d.fail(CodeReleaseRepeated, fmt.Sprintf("session %s rolled this very release back (%s); only a person may try it again",
			e.Repeated.ID, e.Repeated.Code))
	}
	d.Release = e.Release
	d.enter(Built)
	return accepted
}

// checked takes the receipt of a gate, of a canary or of a command as live proof.
func (d *draft) checked(e CheckRan) verdict {
	want, failure := d.nextGate(), CodeGateFailed
	switch d.Phase {
	case CandidateBooted:
		want, failure = d.nextCanary(), CodeCanaryFailed
	case Soaking:
		want, failure = GateLiveProof, CodeProofFailed
	}
	r := e.Receipt
	d.receive(r)
	after := func(code, detail string) verdict {
		if d.Phase == Soaking {
			return d.goBack(code, detail)
		}
		return d.fail(code, detail)
	}
	switch {
	case e.Code != "":
		return after(e.Code, want+": "+e.Detail)
	case r.Gate != want:
		return d.stepFailed(Trouble{Code: "receipt_mismatch", Detail: fmt.Sprintf("asked for %s, got a receipt of %q", want, r.Gate)})
	case r.Revision != d.Plan.Source.Revision || r.Release != d.Release || r.Runner != "" && r.Runner != d.Release:
		return after(CodeReleaseChanged, fmt.Sprintf("%s was proven of revision %s, release %s by %s", want, r.Revision, r.Release, r.Runner))
	case r.Outcome == evidence.Failed:
		return after(failure, fmt.Sprintf("%s: exit code %d %s %s", want, r.ExitCode, r.Code, r.Line))
	case r.Outcome != evidence.Passed:
		return d.unproven(string(cmp.Or(r.Outcome, evidence.NoData)), want+": "+r.Line)
	case d.Phase == Soaking:
		d.Soak.Proof.Passed, d.Work = true, Work{}
		return accepted
	}
	d.prove(want)
	switch {
	case d.Phase == Built && d.allGates():
		d.enter(StaticVerified)
	case d.Phase == CandidateBooted && d.allCanaries():
		d.enter(CandidateVerified)
	}
	return accepted
}

func (d *draft) candidateServes(e CandidateServes) verdict {
	switch shared := d.Stable.Overlap(e.Candidate); {
	case e.Code != "":
		return d.fail(e.Code, e.Detail)
	case e.Candidate.Release != d.Release:
		return d.fail(CodeReleaseChanged, fmt.Sprintf("the candidate runs %s, built was %s", e.Candidate.Release, d.Release))
	case len(shared) > 0:
		return d.fail(CodeLanesShared, "candidate and service share: "+strings.Join(shared, ", "))
	case !e.Candidate.Ready:
		return d.stepFailed(Trouble{Code: CodeNotServing, Detail: "the candidate is not ready"})
	}
	d.Candidate, d.Quiet = e.Candidate, false
	d.enter(CandidateBooted)
	return accepted
}

// verified takes one full verification of the live lane: of A before the switch, of the new release before known-good.
// What could not be seen is tried again, proven drift of A ends the session. Source: "ReleaseSession state", Before the
// first activation.
func (d *draft) verified(e LaneVerified) verdict {
	d.receive(e.Receipt)
	if d.Phase == Soaking {
		return d.verifiedActive(e)
	}
	seen, authority := e.Lane.Serving, e.Lane.Authority
	switch {
	case !e.Lane.Observed:
		return d.stepFailed(Trouble{Code: "lane_unobserved", Detail: "the running service could not be looked at"})
	case authority.Active != d.Stable.Release:
		return d.fail(CodeStableDrift, fmt.Sprintf("the active release is %q, at the start it was %q", authority.Active, d.Stable.Release))
	case seen.Release == "":
		return d.stepFailed(Trouble{Code: CodeNotServing, Detail: "no running service was found"})
	case !seen.SameLane(d.Stable):
		return d.fail(CodeStableDrift, fmt.Sprintf("%s runs in %s as %s on port %d; at the start it was %s in %s as %s on port %d",
			seen.Release, seen.Home, seen.Label, seen.Port, d.Stable.Release, d.Stable.Home, d.Stable.Label, d.Stable.Port))
	case e.Stored != "" && e.Stored != d.Release:
		return d.fail(CodeReleaseChanged, fmt.Sprintf("the store holds %s, built was %s", e.Stored, d.Release))
	case e.Stored == "":
		return d.stepFailed(Trouble{Code: "release_unread", Detail: "the release could not be read again from the store"})
	case !seen.Ready || e.Receipt.Outcome != evidence.Passed:
		return d.stepFailed(Trouble{Code: "stable_unverified", Detail: fmt.Sprintf("%s %s", e.Receipt.Outcome, e.Receipt.Line)})
	}
	if d.Phase == CandidateVerified {
		d.enter(CutoverEligible)
	}
	d.VerifiedAt, d.Work = d.at, Work{}
	return accepted
}

// freshness is how long a verification of A may be ago when a person promotes.
const freshness = time.Minute
