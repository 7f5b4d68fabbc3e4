package recovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"steward/activities"
	"steward/activities/recovery/durable"
	"steward/activities/recovery/home"
	"steward/workflows/release/plan"
)

// candidateService is the service contract in the candidate's lane.
func candidateService(p plan.Plan) plan.Service {
	s := p.Service
	s.Home, s.Port, s.Label = p.Candidate.Home, p.Candidate.Port, p.Candidate.Label
	return s
}

// errForeignHome is wrapped when the candidate's home belongs to somebody else.
var errForeignHome = errors.New("the candidate's home belongs to somebody else")

// BootCandidate makes the candidate's lane and starts the release in it.
func (r *Recovery) BootCandidate(ctx context.Context, in activities.BootCandidateInput) (activities.BootCandidateResult, error) {
	defer heartbeat(ctx)()
	result := activities.BootCandidateResult{Worker: r.Worker}
	i := r.instance(in.Plan.Instance)
	release := Release{Tree: in.Release, Revision: in.Plan.Source.Revision, Service: candidateService(in.Plan)}
	snapshot, err := r.bootCandidate(ctx, i, in.Session, release)
	switch {
	case errors.Is(err, errForeignHome):
		result.Failed = &activities.ReleaseFailure{Code: activities.ReleaseLaneShared, Detail: shortError(err)}
		return result, nil
	case errors.Is(err, errExited):
		result.Failed = &activities.ReleaseFailure{Code: activities.ReleaseCandidateExited, Detail: shortError(err)}
		return result, nil
	case err != nil:
		result.Failed, err = definite(err)
		return result, err
	}
	result.Snapshot = snapshot
	result.Candidate, err = r.identity(ctx, release)
	return result, err
}

func (r *Recovery) bootCandidate(ctx context.Context, i instance, session string, release Release) (snapshot string, err error) {
	authority, err := i.authority()
	if err != nil {
		return "", err
	}
	s, active := release.Service, authority.Active.Service
	if s.Home == active.Home || s.Label == active.Label || s.Port != 0 && s.Port == active.Port {
		return "", fmt.Errorf("%w: it shares home, label or port with the running service", errForeignHome)
	}
	if err := r.isolated(release, active.Home); err != nil {
		return "", err
	}
	owner, err := candidateHome(s.Home)
	if err != nil {
		return "", err
	}
	if owner == session && r.serves(ctx, release) {
		return "", nil
	}
	if owner != "" {
		// A finished session's lane, or one of ours that was interrupted while it was made.
		if err := r.retire(ctx, s, owner); err != nil {
			return "", err
		}
	}
	if err := makeHome(s, session); err != nil {
		return "", err
	}
	if file := databaseFile(s); file != "" {
		copied, err := snapshotTo(ctx, active, file)
		if err != nil {
			return "", err
		}
		snapshot = copied.SHA256
	}
	return snapshot, r.restart(ctx, release)
}

// isolated proves that nothing that the candidate is started with leads into the running service's home. The folder of recovery
// may lie in there: the program itself comes from its store.
func (r *Recovery) isolated(release Release, live string) error {
	spec := r.spec(release, 0)
	for _, word := range append(spec.Argv, spec.Env...) {
		if strings.Contains(strings.ReplaceAll(word, r.Root, ""), live) {
			return fmt.Errorf("%w: %.200q names %s of the running service; write {home} in the plan", errForeignHome, word, live)
		}
	}
	return nil
}

// candidateHome is the session whose candidate lives in a folder; empty when there is no folder.
func candidateHome(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	owner, err := home.CandidateOf(dir)
	if err != nil || owner == "" {
		return "", errors.Join(fmt.Errorf("%w: %s is not empty and no session made it", errForeignHome, dir), err)
	}
	return owner, nil
}

// makeHome makes a home with a token of its own; nothing of the running service's identity gets into it.
func makeHome(s plan.Service, session string) error {
	if err := home.MarkCandidate(s.Home, session); err != nil {
		return err
	}
	if file := tokenFile(s); file != "" {
		return durable.WriteFile(file, []byte(rand.Text()+"\n"))
	}
	return nil
}

// retire stops a candidate and removes its home, once. A home that is not the session's stays.
func (r *Recovery) retire(ctx context.Context, s plan.Service, session string) error {
	if err := r.stop(ctx, s); err != nil {
		return err
	}
	owner, err := candidateHome(s.Home)
	if err != nil || owner != session {
		return err
	}
	return os.RemoveAll(s.Home)
}

// StopCandidate stops the candidate and proves it.
func (r *Recovery) StopCandidate(ctx context.Context, in activities.StopCandidateInput) (activities.StopCandidateResult, error) {
	defer heartbeat(ctx)()
	return activities.StopCandidateResult{Worker: r.Worker}, r.stop(ctx, candidateService(in.Plan))
}

// VerifyStable is one full verification of the live lane, and the tree hash of the session's release as it is on disk.
func (r *Recovery) VerifyStable(ctx context.Context, in activities.VerifyStableInput) (activities.VerifyStableResult, error) {
	defer heartbeat(ctx)()
	i := r.instance(in.Plan.Instance)
	result := activities.VerifyStableResult{Worker: r.Worker}
	authority, err := i.authority()
	if err != nil {
		return result, err
	}
	if result.Receipt, err = r.verify(ctx, authority.Active, verifyGate(authority, in.Release), i.outputs(in.Session)); err != nil {
		return result, err
	}
	if r.store.Verify(in.Release) == nil {
		result.Stored = in.Release
	}
	result.Lane = r.look(ctx, i, in.Session)
	return result, nil
}

// verifyGate names the verification of the live lane by whether the session's release is the active one.
func verifyGate(a Authority, release string) string {
	if a.Active.Tree == release {
		return "active"
	}
	return "stable"
}

// heartbeat keeps a repeatable activity alive until the returned function is called. It does nothing outside of one.
func heartbeat(ctx context.Context) func() {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	activity.RecordHeartbeat(ctx)
	quit := make(chan struct{})
	go func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit) }
}
