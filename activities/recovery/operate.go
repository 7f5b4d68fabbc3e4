package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"steward/activities"
	"steward/activities/recovery/proof"
	"steward/workflows/release/evidence"
)

// Operations are the activities that need a Temporal server beside those of Recovery: the effects, of which each has at most one
// attempt that the server fences, and the live proof.
type Operations struct {
	*Recovery
	// Proof looks at acceptance runs; the file that their completion check needs is filled in.
	Proof proof.Proof
	// Beat makes one synchronous heartbeat of the running activity; nil only when the server has recorded it.
	Beat func(ctx context.Context, progress activities.OperationProgress) error
}

// Cutover switches the service to the session's release, or proves that it did not.
func (o Operations) Cutover(ctx context.Context, in activities.OperationInput) (activities.OperationResult, error) {
	return o.operate(ctx, in, evidence.KindCutover, func(ctx context.Context, w *work, pulse *pulse) error {
		now, next, err := o.ready(in)
		if err != nil {
			return w.notBegun(err)
		}
		return w.cutover(ctx, now, next, func(ctx context.Context) error { return pulse.arm(ctx, in.Generation) })
	})
}

// Rollback brings the exact stable release of the session back.
func (o Operations) Rollback(ctx context.Context, in activities.OperationInput) (activities.OperationResult, error) {
	return o.operate(ctx, in, evidence.KindRollback, func(ctx context.Context, w *work, pulse *pulse) error {
		if err := pulse.arm(ctx, in.Generation); err != nil {
			return w.notBegun(err)
		}
		return w.rollback(ctx, in.Reason)
	})
}

// operate runs one operation under the recovery lock and looks at what came of it.
func (o Operations) operate(
	ctx context.Context, in activities.OperationInput, kind string, do func(context.Context, *work, *pulse) error,
) (activities.OperationResult, error) {
	i := o.instance(in.Plan.Instance)
	pulse, err := startPulse(ctx, o.Beat)
	if err != nil {
		return activities.OperationResult{}, err
	}
	defer pulse.stop()
	w, err := o.enter(i, in, kind, pulse)
	if errors.Is(err, errRepeated) {
		return activities.OperationResult{}, temporal.NewNonRetryableApplicationError(err.Error(), activities.OperationRepeated, nil)
	}
	if err != nil {
		return o.returned(ctx, i, in, activities.OperationResult{}, err), nil
	}
	err = errors.Join(do(ctx, w, pulse), w.lock.leave())
	if err != nil {
		o.Log.Warn("the operation did not go through", "session", in.Session, "operation", in.Operation, "error", err)
	}
	w.result.OutageMillis, w.result.Database = w.j.OutageMillis, w.j.Database
	return o.returned(ctx, i, in, w.result, err), nil
}

// enter takes the lock and records the begin of the operation.
func (o Operations) enter(i instance, in activities.OperationInput, kind string, pulse *pulse) (*work, error) {
	authority, err := i.authority()
	if err != nil {
		return nil, err
	}
	l, err := i.take(in.Session, authority.Epoch)
	if err != nil {
		return nil, err
	}
	j, err := i.journal(in.Session)
	settled := err == nil && (len(j.Operations) == 0 || j.Outcome != "")
	if err == nil {
		err = j.begin(operation{ID: in.Operation, Kind: kind, Generation: in.Generation, Reason: in.Reason})
	}
	switch {
	case err != nil && settled:
		return nil, errors.Join(err, l.release())
	case err != nil: // the record that stood before is that of an operation which is not settled
		return nil, errors.Join(err, l.leave())
	}
	w := o.work(i, l, j, in.Plan.Deadlines.Cutover.Std())
	w.progress = pulse.at
	return w, nil
}

// ready proves that a cutover may begin: the stable release is the one that the session froze, the lane is the same, and the
// stored release is what was built.
func (o Operations) ready(in activities.OperationInput) (Authority, Release, error) {
	next := Release{Tree: in.Release, Revision: in.Plan.Source.Revision, Service: in.Plan.Service}
	now, err := o.instance(in.Plan.Instance).authority()
	switch {
	case err != nil:
		return now, next, err
	case now.Active.Tree != in.Stable.Release:
		return now, next, fmt.Errorf("%w: release %.12s is active, and the session began with %.12s",
			ErrAuthority, now.Active.Tree, in.Stable.Release)
	case now.Active.Service.Home != next.Service.Home, now.Active.Service.Label != next.Service.Label:
		return now, next, fmt.Errorf("the plan runs the service in %s as %s, and it runs in %s as %s; a release cannot move it",
			next.Service.Home, next.Service.Label, now.Active.Service.Home, now.Active.Service.Label)
	}
	return now, next, o.store.Verify(in.Release)
}

// returned adds the look that decides.
func (o Operations) returned(
	ctx context.Context, i instance, in activities.OperationInput, result activities.OperationResult, err error,
) activities.OperationResult {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	result.Lane, result.Worker = o.look(ctx, i, in.Session), o.Worker
	if err != nil {
		result.Failed = &activities.ReleaseFailure{Code: failureCode(err), Detail: shortError(err)}
	}
	return result
}

// ReconcileOperation looks at what is and changes nothing.
func (r *Recovery) ReconcileOperation(
	ctx context.Context, in activities.ReconcileOperationInput,
) (activities.ReconcileOperationResult, error) {
	return activities.ReconcileOperationResult{Lane: r.look(ctx, r.instance(in.Plan.Instance), in.Session), Worker: r.Worker}, nil
}

// betweenTurns tells whether the run has continued once and waits for the next answer: a moment at which a restart meets no message
// on its way.
func betweenTurns(turns []evidence.Turn) bool {
	return len(turns) > 1 && turns[0].Action == "CONTINUE" && !turns[1].Applied.IsZero() && turns[1].Committed.IsZero()
}

// LiveProof looks at the session's acceptance run, which it starts when there is none.
func (o Operations) LiveProof(ctx context.Context, in activities.LiveProofInput) (activities.LiveProofResult, error) {
	defer heartbeat(ctx)()
	i := o.instance(in.Plan.Instance)
	p := o.Proof
	p.Evidence = i.frozenFile(in.Session)
	seen, err := p.Look(ctx, "acceptance-"+in.Session, *in.Plan.Soak.LiveProof.Steward, in.Patience.Std(), func(seen proof.Seen) bool {
		return !in.Restarted && betweenTurns(seen.Turns)
	})
	return activities.LiveProofResult{
		WorkflowID: seen.WorkflowID, Status: seen.Status, Open: seen.Open, Turns: seen.Turns,
		MinIntervalMillis: seen.MinInterval.Milliseconds(), Lane: o.look(ctx, i, in.Session), Worker: o.Worker,
	}, err
}
