package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"steward/activities"
	"steward/activities/recovery/durable"
	"steward/activities/recovery/gate"
	"steward/activities/recovery/source"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// frozenSource is frozen.json of a session.
type frozenSource struct {
	source.Frozen
	Instance string            `json:"instance"`
	Stable   evidence.Identity `json:"stable"`
	At       time.Time         `json:"at"`
}

// Freeze checks the plan's exact revision out into a folder of its own and looks at the stable release.
func (r *Recovery) Freeze(ctx context.Context, in activities.FreezeInput) (activities.FreezeResult, error) {
	defer heartbeat(ctx)()
	i := r.instance(in.Plan.Instance)
	result := activities.FreezeResult{Session: in.Session, Worker: r.Worker}
	authority, err := i.authority()
	if err != nil {
		result.Failed, err = definite(err)
		return result, err
	}
	if _, err := os.Stat(in.Plan.Source.Repository); errors.Is(err, fs.ErrNotExist) {
		result.Failed = &activities.ReleaseFailure{Code: activities.ReleaseSourceMissing, Detail: in.Plan.Source.Repository + " does not exist"}
		return result, nil
	}
	frozen, err := source.Freeze(ctx, in.Plan.Source.Repository, in.Plan.Source.Revision, i.sourceFolder(in.Session))
	switch {
	case errors.Is(err, source.ErrNoRevision):
		result.Failed = &activities.ReleaseFailure{Code: activities.ReleaseSourceMissing, Detail: shortError(err)}
		return result, nil
	case err != nil:
		result.Failed, err = definite(err)
		return result, err
	}
	stable, err := r.identity(ctx, authority.Active)
	if err != nil {
		return result, err
	}
	record := frozenSource{frozen, in.Plan.Instance, stable, time.Now().UTC()}
	if err := durable.WriteJSON(i.frozenFile(in.Session), record); err != nil {
		return result, err
	}
	result.Revision, result.Source, result.Stable = frozen.Revision, frozen.Tree, stable
	return result, nil
}

// frozen proves that the source of a session is what was frozen.
func (r *Recovery) frozen(ctx context.Context, ref activities.ReleaseRef) (source.Frozen, error) {
	i := r.instance(ref.Plan.Instance)
	var record frozenSource
	if err := durable.ReadJSON(i.frozenFile(ref.Session), &record); err != nil {
		return record.Frozen, err
	}
	if record.Tree != ref.Source {
		return record.Frozen, fmt.Errorf("%w: frozen was %s, the session says %s", source.ErrDrift, record.Tree, ref.Source)
	}
	return record.Frozen, record.Check(ctx, i.sourceFolder(ref.Session))
}

// builtRelease is built.json of a session.
type builtRelease struct {
	Release string `json:"release"`
}

// Build builds the frozen source and stores the result. A release that the session has built already is only verified again.
func (r *Recovery) Build(ctx context.Context, in activities.BuildInput) (activities.BuildResult, error) {
	defer heartbeat(ctx)()
	i, result := r.instance(in.Plan.Instance), activities.BuildResult{Worker: r.Worker}
	frozen, err := r.frozen(ctx, in.ReleaseRef)
	if err != nil {
		result.Failed, err = definite(err)
		return result, err
	}
	var built builtRelease
	if err := durable.ReadJSON(i.builtFile(in.Session), &built); err != nil || r.store.Verify(built.Release) != nil {
		built.Release, result.Failed, err = r.build(ctx, i, in.Session, in.Plan, frozen)
		if err != nil || result.Failed != nil {
			return result, err
		}
		if err := durable.WriteJSON(i.builtFile(in.Session), built); err != nil {
			return result, err
		}
	}
	result.Release = built.Release
	if result.Files, result.Bytes, err = r.store.Size(built.Release); err != nil {
		return result, err
	}
	result.Repeated, err = r.repeated(i, in.Session, built.Release)
	return result, err
}

// build runs the build command of a plan and imports its output.
func (r *Recovery) build(
	ctx context.Context, i instance, session string, p plan.Plan, frozen source.Frozen,
) (tree string, failed *activities.ReleaseFailure, err error) {
	dir := i.sourceFolder(session)
	output := filepath.Join(dir, p.Build.Output)
	receipt, err := gate.Command{
		Name: "build", Argv: p.Build.Argv, Dir: dir, Env: gate.Environment(p.Build.Env), Timeout: p.Build.Timeout.Std(),
		OutputDir: i.outputs(session),
	}.Run(ctx)
	if err != nil {
		return "", nil, err
	}
	if receipt.Outcome != evidence.Passed {
		detail := fmt.Sprintf("%s %d: %s", receipt.Code, receipt.ExitCode, receipt.Line)
		return "", &activities.ReleaseFailure{Code: activities.ReleaseBuildFailed, Detail: detail}, nil
	}
	if err := frozen.Check(ctx, dir); err != nil {
		failed, err = definite(err)
		return "", failed, err
	}
	if info, err := os.Stat(output); err != nil || !info.IsDir() {
		missing := activities.ReleaseFailure{Code: activities.ReleaseOutputMissing, Detail: "the build made no folder " + p.Build.Output}
		return "", &missing, nil //nolint:nilerr // a missing output is the build's failure, not this activity's
	}
	tree, err = r.store.Import(output, p.Service.Home, p.Candidate.Home)
	if err != nil {
		failed, err = definite(err)
	}
	return tree, failed, err
}

// Gate runs one check in its place, with the runner of that place.
func (r *Recovery) Gate(ctx context.Context, in activities.GateInput) (activities.GateResult, error) {
	defer heartbeat(ctx)()
	i, result := r.instance(in.Plan.Instance), activities.GateResult{Worker: r.Worker}
	release, dir, err := r.place(ctx, i, in)
	if err == nil {
		err = errors.Join(r.store.Verify(release.Tree), r.runner(release, in.Check))
	}
	if err != nil {
		result.Failed, err = definite(err)
		return result, err
	}
	if in.Name == canaryRestart && in.Place == activities.PlaceCandidate {
		if err := r.restart(ctx, release); err != nil {
			result.Failed, err = definite(err)
			return result, err
		}
	}
	result.Receipt, err = r.checkIn(ctx, release, in.Name, in.Check, dir, i.outputs(in.Session))
	return result, err
}

// canaryRestart is the canary before which the candidate is restarted.
const canaryRestart = "recovery_restart"

// place is the release that runs a check, with the lane that its arguments name, and the folder of the source for gates.
func (r *Recovery) place(ctx context.Context, i instance, in activities.GateInput) (Release, string, error) {
	candidate := Release{Tree: in.Release, Revision: in.Plan.Source.Revision, Service: candidateService(in.Plan)}
	switch in.Place {
	case activities.PlaceSource:
		_, err := r.frozen(ctx, in.ReleaseRef)
		return candidate, i.sourceFolder(in.Session), err
	case activities.PlaceCandidate:
		return candidate, "", nil
	case activities.PlaceActive:
		authority, err := i.authority()
		return authority.Active, "", err
	}
	return Release{}, "", fmt.Errorf("there is no place %q", in.Place)
}

// repeated is the newest finished session that had the very release.
func (r *Recovery) repeated(i instance, session, tree string) (*evidence.Session, error) {
	earlier, err := i.finished()
	for _, s := range earlier {
		if s.Release == tree && s.ID != session {
			return &s, nil
		}
	}
	return nil, err
}

// isSession tells whether a name can be that of a session's folder.
func isSession(id string) bool {
	return id != "" && id != "." && id != ".." && !strings.ContainsAny(id, "/\\\x00") && len(id) <= 200
}
