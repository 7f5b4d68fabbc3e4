package release

import (
	"encoding/json"
	"time"

	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/release/plan"
	"steward/workflows/release/policy"
)

const (
	admitTime = 10 * time.Minute
	// heartbeat is how long a read may be silent: so long an abort waits for one whose process is gone.
	heartbeat = 15 * time.Second
	// shortest is what a step gets when its deadline has come meanwhile.
	shortest = time.Second
)

// admit has the plan read and the instance looked at. All problems come back at once; the policy refuses the start with them.
func admit(ctx workflow.Context, o kernel.Obligation, input json.RawMessage) policy.Event {
	info := workflow.GetInfo(ctx)
	e := policy.Admitted{Outcome: outcome(o), WorkflowID: info.WorkflowExecution.ID, RunID: info.OriginalRunID}
	if e.RunID == "" {
		e.RunID = info.WorkflowExecution.RunID
	}
	e.Session = policy.SessionID(e.WorkflowID, e.RunID)
	options := machine.Read("", o.Summary, machine.Times{StartToClose: admitTime, Heartbeat: heartbeat, ScheduleToClose: admitTime})
	out, failure := machine.Do[activities.AdmitReleaseResult](ctx, options, workflows.ActivityAdmitRelease, activities.AdmitReleaseInput{
		Start: input, Session: e.Session, WorkflowID: e.WorkflowID, RunID: info.WorkflowExecution.RunID,
	})
	if failure != nil {
		e.Problems = []string{"the start could not be read: " + failure.Message}
		return e
	}
	for _, p := range out.Problems {
		e.Problems = append(e.Problems, p.String())
	}
	if len(e.Problems) > 0 {
		return e
	}
	e.Plan, e.Earlier, e.Standing = &out.Plan, out.Earlier, out.Standing
	if r := out.Resume; r != nil {
		e.Resume = &policy.Freeze{Session: r.Session, Revision: r.Revision, Source: r.Source, Stable: r.Stable}
	}
	return e
}

func ref(s policy.State) activities.ReleaseRef {
	return activities.ReleaseRef{Session: s.Session, Plan: *s.Plan, Source: s.Source, Release: s.Release, Stable: s.Stable}
}

// read runs an activity that may be repeated, until the deadline of its part. When it brings no evidence the event is a
// failed step.
func read[R any](
	ctx workflow.Context, s policy.State, o kernel.Obligation, activity string, input any, event func(R) policy.Event,
) policy.Event {
	left := max(s.Deadline.Sub(workflow.Now(ctx)), shortest)
	options := machine.Read("", o.Summary, machine.Times{StartToClose: left, Heartbeat: heartbeat, ScheduleToClose: left})
	out, failure := machine.Do[R](ctx, options, activity, input)
	if failure != nil {
		return policy.StepFailed{Outcome: outcome(o), Trouble: lostStep(*failure)}
	}
	return event(out)
}

func lostStep(f machine.Failure) policy.Trouble {
	return policy.Trouble{Code: "activity_" + string(f.Cause), Detail: f.Type + " " + f.Message}
}

func trouble(f *activities.ReleaseFailure) policy.Trouble {
	if f == nil {
		return policy.Trouble{}
	}
	t := policy.Trouble{Code: f.Code, Detail: f.Detail}
	if t.Code == "" {
		t.Code = activities.ReleaseFailed
	}
	return t
}

func freeze(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	return read(ctx, s, o, workflows.ActivityFreeze, activities.FreezeInput{ReleaseRef: ref(s)}, func(r activities.FreezeResult) policy.Event {
		return policy.SourceWasFrozen{
			Outcome: outcome(o), Trouble: trouble(r.Failed),
			Freeze: policy.Freeze{Session: s.Session, Revision: r.Revision, Source: r.Source, Stable: r.Stable},
		}
	})
}

func build(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	return read(ctx, s, o, workflows.ActivityBuild, activities.BuildInput{ReleaseRef: ref(s)}, func(r activities.BuildResult) policy.Event {
		return policy.ReleaseWasBuilt{Outcome: outcome(o), Release: r.Release, Repeated: r.Repeated, Trouble: trouble(r.Failed)}
	})
}

// check runs one gate, canary or command. Its runner belongs to the place, whatever the plan says.
func check(ctx workflow.Context, s policy.State, o kernel.Obligation, name, place string, c plan.Check) policy.Event {
	input := activities.GateInput{ReleaseRef: ref(s), Name: name, Place: place, Check: c}
	return read(ctx, s, o, workflows.ActivityGate, input, func(r activities.GateResult) policy.Event {
		return policy.CheckRan{Outcome: outcome(o), Receipt: r.Receipt, Trouble: trouble(r.Failed)}
	})
}

func gate(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	name, command := s.Gate()
	return check(ctx, s, o, name, activities.PlaceSource, plan.Check{Command: &command})
}

func canary(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	name, c := s.Canary()
	return check(ctx, s, o, name, activities.PlaceCandidate, c)
}

func boot(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	input := activities.BootCandidateInput{ReleaseRef: ref(s)}
	return read(ctx, s, o, workflows.ActivityBootCandidate, input, func(r activities.BootCandidateResult) policy.Event {
		return policy.CandidateServes{Outcome: outcome(o), Candidate: r.Candidate, Trouble: trouble(r.Failed)}
	})
}

func stopCandidate(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	input := activities.StopCandidateInput{ReleaseRef: ref(s)}
	return read(ctx, s, o, workflows.ActivityStopCandidate, input, func(activities.StopCandidateResult) policy.Event {
		return policy.CandidateIsQuiet{Outcome: outcome(o)}
	})
}

func verify(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	input := activities.VerifyStableInput{ReleaseRef: ref(s)}
	return read(ctx, s, o, workflows.ActivityVerifyStable, input, func(r activities.VerifyStableResult) policy.Event {
		return policy.LaneVerified{Outcome: outcome(o), Lane: r.Lane, Receipt: r.Receipt, Stored: r.Stored}
	})
}

// look reads what is: service identity, authority and steps.
func look(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	input := activities.ReconcileOperationInput{ReleaseRef: ref(s)}
	return read(ctx, s, o, workflows.ActivityReconcileOperation, input, func(r activities.ReconcileOperationResult) policy.Event {
		return policy.LaneObserved{Outcome: outcome(o), Lane: r.Lane}
	})
}

func closeSession(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	input := activities.CloseSessionInput{ReleaseRef: ref(s), Record: s.Record(), Receipts: s.Receipts}
	if a := s.Attention(); a != nil {
		input.Attention = a.Ask + "\n" + a.Command
	}
	return read(ctx, s, o, workflows.ActivityCloseSession, input, func(activities.CloseSessionResult) policy.Event {
		return policy.SessionRecorded{Outcome: outcome(o)}
	})
}
