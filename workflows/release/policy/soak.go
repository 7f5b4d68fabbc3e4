package policy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// observed takes one look at the live lane.
func (d *draft) observed(l evidence.Lane) verdict {
	if d.Operation != nil {
		d.noteLane(l)
		if outcome := d.Read(l); outcome != open {
			return d.settle(outcome, OperationReturned{Lane: l, Trouble: Trouble{Code: d.Operation.Code}})
		}
		return d.lookedInVain("")
	}
	if v, overtaken := d.overtaken(l); overtaken {
		return v
	}
	serves := l.Observed && l.Settled && l.Serving.Ready && l.Serving.SameLane(d.expected())
	if !serves {
		return d.stepFailed(Trouble{Code: CodeNotServing, Detail: "the new release was not seen serving; last step " + l.Last()})
	}
	d.Active = l.Serving
	if d.Phase == CutoverCommitted {
		d.enter(Soaking)
		d.Soak = Soak{Since: d.at, Until: d.at.Add(d.Plan.Soak.Time.Std())}
		return accepted
	}
	d.Work = Work{}
	d.Soak.Looks++
	d.Soak.Served = !d.at.Before(d.Soak.Until)
	d.Soak.NextAt = earliest(d.at.Add(d.Plan.Soak.LookEvery.Std()), d.Soak.Until)
	return accepted
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// expected is the new release in the place of A.
func (s *State) expected() evidence.Identity {
	i := s.Stable
	i.Release = s.Release
	return i
}

// overtaken finds what a look can show that others did: the watchdog's rollback is this session's rollback, a foreign
// authority or a foreign release is drift. Source: "ReleaseSession and Recovery", Watchdog.
func (d *draft) overtaken(l evidence.Lane) (verdict, bool) {
	if !l.Observed {
		return accepted, false
	}
	switch last := l.Authority.LastOperation; {
	case last == evidence.Operation{Kind: evidence.KindRollback, Session: d.Session}:
		d.Rollbacks++
		d.Operation = &Operation{
			ID: d.operationID(evidence.KindRollback, d.Rollbacks), Kind: evidence.KindRollback, Generation: d.Rollbacks,
			State: OperationRunning, Began: d.at,
		}
		d.goBack(cmp.Or(l.RollbackReason(), CodeWatchdog), "observed: the recovery process went back")
		d.unknown(CodeWatchdog, true, l.Last())
		return d.observed(l), true
	case l.Authority.Active != d.Release || last.Session != d.Session:
		return d.fail(CodeAuthorityDrift, fmt.Sprintf("the active release is %q by %s of %q; this session published %q",
			l.Authority.Active, last.Kind, last.Session, d.Release)), true
	case l.Settled && l.Serving.Ready && !l.Serving.SameLane(d.expected()):
		return d.goBack(CodeIdentityMismatch, fmt.Sprintf("%q serves in %s, expected was %q", l.Serving.Release, l.Serving.Home, d.Release)), true
	}
	return accepted, false
}

// windows judges CPU use. Definite runaway is a rejection at once; what is off schedule proves nothing.
// Source: "ReleaseSession state", performance observation.
func (d *draft) windows(e WindowsObserved) verdict {
	if v, overtaken := d.overtaken(e.Lane); overtaken {
		return v
	}
	kept := slices.Clone(d.Soak.Windows)
	for _, w := range e.Windows {
		if w.OffSchedule {
			d.Soak.OffSchedule++
		} else {
			kept = append(kept, w)
		}
	}
	fresh := len(kept) > len(d.Soak.Windows)
	d.Soak.Windows = kept
	perf := d.Plan.Soak.Performance
	rejected, detail := runaway(kept, *perf.Windows, *perf.MaxMeanCPU*100, *perf.MaxP95CPU*100)
	receipt := evidence.Receipt{Gate: "performance", Revision: d.Plan.Source.Revision, Release: d.Release, Line: detail, At: d.at}
	switch {
	case rejected:
		receipt.Outcome = evidence.Failed
		d.receive(receipt)
		return d.goBack(CodePerformance, detail)
	case !fresh:
		return d.stepFailed(Trouble{Code: string(evidence.NoData), Detail: "no window was on schedule"})
	case len(kept) >= *perf.Windows:
		receipt.Outcome = evidence.Passed
		d.receive(receipt)
		d.Soak.Performance = true
	}
	d.Work = Work{}
	return accepted
}

// runaway tells whether the windows, of which there will be all, can no longer stay under the limits: the missing ones
// could be idle altogether. The percentile is by nearest rank.
func runaway(windows []evidence.Window, all, maxMean, maxP95 int) (bool, string) {
	sum, above := 0, 0
	for _, w := range windows {
		sum += w.CPU
		if w.CPU > maxP95 {
			above++
		}
	}
	all = max(all, len(windows), 1)
	allowed := all - (95*all+99)/100
	detail := fmt.Sprintf("%d of %d windows, mean CPU %d.%02d %%, %d windows above %d %%", len(windows), all, sum/all/100, sum/all%100, above, maxP95/100)
	return sum > maxMean*all || above > allowed, detail
}

// verifiedActive is the one full verification of the new release in the stable lane.
func (d *draft) verifiedActive(e LaneVerified) verdict {
	if v, overtaken := d.overtaken(e.Lane); overtaken {
		return v
	}
	switch {
	case e.Stored != "" && e.Stored != d.Release:
		return d.goBack(CodeReleaseChanged, fmt.Sprintf("the store holds %s, released was %s", e.Stored, d.Release))
	case e.Receipt.Outcome == evidence.Failed:
		return d.goBack(CodeVerification, e.Receipt.Line)
	case !e.Lane.Observed || !e.Lane.Serving.Ready || e.Stored == "" || e.Receipt.Outcome != evidence.Passed:
		return d.stepFailed(Trouble{Code: "active_unverified", Detail: fmt.Sprintf("%s %s", e.Receipt.Outcome, e.Receipt.Line)})
	}
	d.Soak.Verified, d.Active, d.Work = true, e.Lane.Serving, Work{}
	return accepted
}

func (d *draft) bundled(e BundleAttested) verdict {
	if v, overtaken := d.overtaken(e.Lane); overtaken {
		return v
	}
	switch {
	case e.Code != "":
		return d.unproven(e.Code, e.Detail)
	case !e.Validated || e.ID == "" || e.Digest == "" || e.Release != d.Release:
		return d.unproven("bundle_unproven", fmt.Sprintf("bundle %q protects %q", e.ID, e.Release))
	case !e.Lane.Observed || !e.Lane.Settled || !e.Lane.Serving.Ready:
		return d.stepFailed(Trouble{Code: CodeNotServing, Detail: "the new release was not seen serving when its bundle was published"})
	}
	d.receive(evidence.Receipt{
		Gate: "bundle", Outcome: evidence.Passed, Revision: d.Plan.Source.Revision, Release: e.Release, Digest: e.Digest, Line: e.ID,
	})
	d.Soak.Bundle = e.ID
	return d.finish(KnownGood, "", "")
}

func (d *draft) restartStarted(e RestartStarted) verdict {
	if e.Key != (Policy{}).Obligation(d.State).Key {
		return reject(CodeStale)
	}
	return accepted
}

// restartReturned: another incarnation of the same release serves, so the restart was made, whoever made it.
func (d *draft) restartReturned(e RestartReturned) verdict {
	if v, overtaken := d.overtaken(e.Lane); overtaken {
		return v
	}
	serving := e.Lane.Serving
	if !e.Lane.Observed || !serving.Ready || serving.Incarnation <= d.Soak.Proof.Before {
		return d.stepFailed(Trouble{Code: "restart_unproven", Detail: "no later incarnation was seen serving"})
	}
	d.Soak.Proof.Restarted, d.Active, d.Work = true, serving, Work{}
	return accepted
}

// command tells whether the live proof is a command of the service.
func (s *State) command() bool { return s.Plan.Soak.LiveProof.Kind == plan.ProofCommand }
