package recovery

import (
	"context"
	"errors"
	"fmt"

	"steward/activities/recovery/durable"
	"steward/activities/recovery/source"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// installSession names the first installation of an instance where a session would stand.
const installSession = "install"

// Install makes the first release of an instance from a plan: frozen, built, stored, started and verified. Whoever installs
// says that it is good, so it gets a known-good bundle. An instance that has a release is refused: that is what sessions are for.
func (r *Recovery) Install(ctx context.Context, p plan.Plan) (release Release, err error) {
	p = p.Normalize()
	i := r.instance(p.Instance)
	if _, err := i.authority(); !errors.Is(err, ErrNotInstalled) {
		return Release{}, errors.Join(fmt.Errorf("instance %s has a release; `steward release start` replaces it", i.name), err)
	}
	frozen, err := source.Freeze(ctx, p.Source.Repository, p.Source.Revision, i.sourceFolder(installSession))
	if err != nil {
		return Release{}, err
	}
	tree, failed, err := r.build(ctx, i, installSession, p, frozen)
	if err != nil || failed != nil {
		return Release{}, errors.Join(err, failure(failed))
	}
	release, err = r.installStored(ctx, i, p, tree)
	return release, errors.Join(err, source.Remove(ctx, p.Source.Repository, i.sourceFolder(installSession)))
}

// installStored makes a stored release the first one of an instance.
func (r *Recovery) installStored(ctx context.Context, i instance, p plan.Plan, tree string) (release Release, err error) {
	release = Release{Tree: tree, Revision: p.Source.Revision, Service: p.Service}
	l, err := i.take(installSession, 0)
	if err != nil {
		return release, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	if err := durable.MkdirAll(p.Service.Home); err != nil {
		return release, err
	}
	epoch, err := nextEpoch(p.Service.Home)
	if err != nil {
		return release, err
	}
	if err := r.start(ctx, release, epoch); err != nil {
		return release, errors.Join(err, r.stop(context.WithoutCancel(ctx), p.Service))
	}
	receipt, err := r.verify(ctx, release, "active", i.outputs(installSession))
	if err == nil && receipt.Outcome != evidence.Passed {
		err = fmt.Errorf("the verification ended as %s: %s", receipt.Outcome, receipt.Line)
	}
	if err != nil {
		return release, errors.Join(err, r.stop(context.WithoutCancel(ctx), p.Service))
	}
	err = i.publish(Authority{Epoch: epoch, Active: release, LastOperation: evidence.Operation{Kind: "install"}}, 0)
	if err != nil {
		return release, err
	}
	_, err = r.attest(ctx, i, installSession, release)
	return release, err
}
