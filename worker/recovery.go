package worker

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/release"
)

// RoleRecovery decides and carries out releases of this host: ReleaseSession and its activities. It is not one of Roles: a
// process that replaces the others must not be one of them, so it runs in `steward recovery` alone.
const RoleRecovery Role = "recovery"

// Recovery is what the role recovery carries out: the activities of ReleaseSession.
type Recovery interface {
	AdmitRelease(context.Context, activities.AdmitReleaseInput) (activities.AdmitReleaseResult, error)
	Freeze(context.Context, activities.FreezeInput) (activities.FreezeResult, error)
	Build(context.Context, activities.BuildInput) (activities.BuildResult, error)
	Gate(context.Context, activities.GateInput) (activities.GateResult, error)
	BootCandidate(context.Context, activities.BootCandidateInput) (activities.BootCandidateResult, error)
	StopCandidate(context.Context, activities.StopCandidateInput) (activities.StopCandidateResult, error)
	VerifyStable(context.Context, activities.VerifyStableInput) (activities.VerifyStableResult, error)
	Cutover(context.Context, activities.OperationInput) (activities.OperationResult, error)
	Rollback(context.Context, activities.OperationInput) (activities.OperationResult, error)
	ReconcileOperation(context.Context, activities.ReconcileOperationInput) (activities.ReconcileOperationResult, error)
	ObserveSoak(context.Context, activities.ObserveSoakInput) (activities.ObserveSoakResult, error)
	LiveProof(context.Context, activities.LiveProofInput) (activities.LiveProofResult, error)
	RestartActive(context.Context, activities.RestartActiveInput) (activities.RestartActiveResult, error)
	Bundle(context.Context, activities.BundleInput) (activities.BundleResult, error)
	CloseSession(context.Context, activities.CloseSessionInput) (activities.CloseSessionResult, error)
}

// RegisterRecovery registers the activities of ReleaseSession under their names.
func RegisterRecovery(registry worker.ActivityRegistry, r Recovery) {
	for name, function := range map[string]any{
		workflows.ActivityAdmitRelease:       r.AdmitRelease,
		workflows.ActivityFreeze:             r.Freeze,
		workflows.ActivityBuild:              r.Build,
		workflows.ActivityGate:               r.Gate,
		workflows.ActivityBootCandidate:      r.BootCandidate,
		workflows.ActivityStopCandidate:      r.StopCandidate,
		workflows.ActivityVerifyStable:       r.VerifyStable,
		workflows.ActivityCutover:            r.Cutover,
		workflows.ActivityRollback:           r.Rollback,
		workflows.ActivityReconcileOperation: r.ReconcileOperation,
		workflows.ActivityObserveSoak:        r.ObserveSoak,
		workflows.ActivityLiveProof:          r.LiveProof,
		workflows.ActivityRestartActive:      r.RestartActive,
		workflows.ActivityBundle:             r.Bundle,
		workflows.ActivityCloseSession:       r.CloseSession,
	} {
		registry.RegisterActivityWithOptions(function, activity.RegisterOptions{Name: name})
	}
}

// addRecovery serves ReleaseSession and its activities.
func addRecovery(o Options, base worker.Options, add adder) error {
	if o.Recovery == nil {
		return errors.New("it needs the activities of the recovery process: run `steward recovery`")
	}
	base.StickyScheduleToStartTimeout = o.StickyTimeout
	base.DeadlockDetectionTimeout = deadlockTimeout
	registry := add(workflows.QueueRecovery(o.Host), base)
	registry.RegisterWorkflowWithOptions(release.Workflow(o.Release), workflow.RegisterOptions{
		Name: workflows.TypeReleaseSession, VersioningBehavior: behavior(base.DeploymentOptions),
	})
	RegisterRecovery(registry, o.Recovery)
	return nil
}
