package policy

import (
	"fmt"
	"slices"
	"time"
)

const (
	firstPause = 10 * time.Second
	maxPause   = time.Minute
	// maxUnproven is how many results in a row may be neither pass nor failure before a person is asked.
	maxUnproven = 3
	// recordTime is how long the session tries to write down how it ended.
	recordTime = 10 * time.Minute
)

func pause(try int) time.Duration { return min(firstPause<<min(max(try, 0), 10), maxPause) }

// stepFailed tries the present step again after a pause. It proves nothing; the deadline bounds it.
func (d *draft) stepFailed(t Trouble) verdict {
	if d.Operation != nil && d.Operation.State == OperationUnknown {
		return d.lookedInVain(t.Code)
	}
	w := d.Work
	d.Work = Work{Try: w.Try + 1, Unproven: w.Unproven, NotBefore: d.at.Add(pause(w.Try)), Code: t.Code, Detail: clip(t.Detail)}
	return accepted
}

// unproven is a result that is neither pass nor failure. It never adds up to a pass: after some in a row only a person may
// ask for another try. Source: "ReleaseSession state", receipts.
func (d *draft) unproven(code, detail string) verdict {
	v := d.stepFailed(Trouble{Code: code, Detail: detail})
	if d.Work.Unproven++; d.Work.Unproven >= maxUnproven {
		d.Work.Parked, d.Work.NotBefore = true, time.Time{}
	}
	return v
}

// elapsed ends a wait. What was waited for is owed again; a deadline is noticed by expire.
func (d *draft) elapsed() verdict {
	if owed := (Policy{}).Obligation(d.State); d.at.Before(owed.At) {
		return reject(CodeNotDue)
	}
	if d.Work.NotBefore.IsZero() {
		d.Soak.NextAt = time.Time{}
	}
	d.Work.NotBefore = time.Time{}
	return accepted
}

// expire ends what is past its deadline: before the switch as failed, after it with a return to A. An operation under way
// is bounded by its own time-out and is never cut off here.
func (d *draft) expire() {
	if d.Deadline.IsZero() || d.at.Before(d.Deadline) {
		return
	}
	reason := fmt.Sprintf("%s was not over in time", d.Shown())
	if d.Work.Code != "" {
		reason += fmt.Sprintf("; last: %s %s", d.Work.Code, d.Work.Detail)
	}
	switch {
	case d.Terminal():
		d.Recorded = true
	case d.Operation != nil && d.Operation.State == OperationRunning:
	case d.Operation != nil:
		d.fail(CodeOutcomeUnknown, fmt.Sprintf("the outcome of the %s %s was neither proven nor judged in time", d.Operation.Kind, d.Operation.ID))
	case d.Back != nil:
		d.fail(CodeUnserviceable, "the way back could not be begun in time: "+d.Back.Code+"; last: "+d.Work.Code+" "+d.Work.Detail)
	case d.switched():
		d.goBack(CodeDeadline, reason)
	default:
		d.fail(CodeDeadline, reason)
	}
}

func (d *draft) prove(name string) {
	if !slices.Contains(d.Proven, name) {
		d.Proven = append(slices.Clone(d.Proven), name)
	}
	d.Work = Work{}
}

func (s *State) nextGate() string {
	if s.Plan == nil {
		return "?"
	}
	for _, g := range s.Plan.GateCommands() {
		if !slices.Contains(s.Proven, g.Name) {
			return g.Name
		}
	}
	return ""
}

func (s *State) nextCanary() string {
	if s.Plan == nil {
		return "?"
	}
	for _, c := range s.Plan.CanaryChecks() {
		if !slices.Contains(s.Proven, c.Name) {
			return c.Name
		}
	}
	return ""
}
