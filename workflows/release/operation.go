package release

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/release/plan"
	"steward/workflows/release/policy"
)

// workerWait is how long an effect waits for the recovery process; after that the server itself proves that nobody began it.
const workerWait = 10 * time.Minute

// silence is how long an operation may be silent before its outcome is read instead.
const silence = 30 * time.Second

func effect(summary string, longest time.Duration) workflow.ActivityOptions {
	return machine.Effect("", summary, machine.Times{ScheduleToStart: workerWait, StartToClose: longest, Heartbeat: silence})
}

func cutover(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	return operate(ctx, s, effect(o.Summary, s.Plan.Deadlines.Cutover.Std()), workflows.ActivityCutover, "")
}

func rollback(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	return operate(ctx, s, effect(o.Summary, s.Plan.Deadlines.Rollback.Std()), workflows.ActivityRollback, "session")
}

// operate runs the one attempt of a physical operation.
func operate(ctx workflow.Context, s policy.State, o workflow.ActivityOptions, activity, reason string) policy.Event {
	id := s.Operation.ID
	out, failure := machine.Do[activities.OperationResult](ctx, o, activity, activities.OperationInput{
		ReleaseRef: ref(s), Operation: id, Generation: s.Operation.Generation, Reason: reason,
	})
	if failure != nil {
		return lost(id, *failure)
	}
	t := trouble(out.Failed)
	if t.Code == activities.ReleaseFailed {
		t.Code = "" // the policy has the better word for how an operation ended
	}
	return policy.OperationReturned{
		Operation: id, Lane: out.Lane, Restored: out.Restored, OutageMillis: out.OutageMillis, Backup: out.Backup,
		Database: out.Database, Receipt: out.Receipt, Trouble: t,
	}
}

// lost turns the failure of an operation that brought no evidence of its own into the event that it proves.
func lost(id string, f machine.Failure) policy.Event {
	if f.Cause == machine.NeverStarted {
		return policy.OperationNotStarted{Operation: id, Trouble: lostStep(f)}
	}
	e := policy.OperationLost{Operation: id, Armed: f.Cause != machine.Lost, Trouble: lostStep(f)}
	if f.Cause == machine.Lost && f.HasDetails() {
		var progress activities.OperationProgress
		unreadable := f.Details(&progress) != nil
		e.Armed, e.Step = unreadable || progress.Armed != 0, progress.Step
	}
	return e
}

func observeWindows(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	n, first := s.Batch()
	input := activities.ObserveSoakInput{ReleaseRef: ref(s), First: first, Windows: n}
	return read(ctx, s, o, workflows.ActivityObserveSoak, input, func(r activities.ObserveSoakResult) policy.Event {
		return policy.WindowsObserved{Outcome: outcome(o), Windows: r.Windows, Lane: r.Lane}
	})
}

// proofPatience is how long one look at the acceptance run lasts at most.
const proofPatience = plan.Duration(10 * time.Minute)

func liveProof(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	input := activities.LiveProofInput{ReleaseRef: ref(s), Restarted: s.Soak.Proof.Restarted, Patience: proofPatience}
	return read(ctx, s, o, workflows.ActivityLiveProof, input, func(r activities.LiveProofResult) policy.Event {
		return policy.ProofObserved{
			Outcome: outcome(o), WorkflowID: r.WorkflowID, Status: r.Status, Open: r.Open, Turns: r.Turns,
			MinInterval: time.Duration(r.MinIntervalMillis) * time.Millisecond, Lane: r.Lane,
		}
	})
}

func proofCommand(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	return check(ctx, s, o, policy.GateLiveProof, activities.PlaceActive, s.ProofCheck())
}

// restart is repeatable by its own fence: the incarnation that it replaces.
func restart(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	longest := s.Plan.Service.StopTimeout.Std() + s.Plan.Service.StartTimeout.Std() + time.Minute
	out, failure := machine.Do[activities.RestartActiveResult](ctx, effect(o.Summary, longest), workflows.ActivityRestartActive,
		activities.RestartActiveInput{ReleaseRef: ref(s), Before: s.Soak.Proof.Before})
	if failure != nil {
		return policy.StepFailed{Outcome: outcome(o), Trouble: lostStep(*failure)}
	}
	return policy.RestartReturned{Outcome: outcome(o), Lane: out.Lane}
}

func bundle(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	input := activities.BundleInput{ReleaseRef: ref(s)}
	return read(ctx, s, o, workflows.ActivityBundle, input, func(r activities.BundleResult) policy.Event {
		return policy.BundleAttested{
			Outcome: outcome(o), ID: r.ID, Release: r.Release, Digest: r.Digest, Validated: r.Validated, Lane: r.Lane,
			Trouble: trouble(r.Failed),
		}
	})
}
