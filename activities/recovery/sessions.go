package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"steward/activities"
	"steward/activities/recovery/durable"
	"steward/activities/recovery/source"
	"steward/workflows/machine/strict"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// closedSession is session.json: how a session ended. It stays and decides about repeated starts.
type closedSession struct {
	evidence.Session
	Receipts  []evidence.Receipt `json:"receipts,omitempty"`
	Attention string             `json:"attention,omitempty"`
}

// maxReceipts is how many receipts of a session are kept, the last ones; maxEarlier how many finished sessions a start sees.
const (
	maxReceipts = 64
	maxEarlier  = 16
)

// finished are all sessions that ended, the newest first. It reads every record: a bounded list never decides.
func (i instance) finished() ([]evidence.Session, error) {
	ids, err := i.sessionIDs()
	if err != nil {
		return nil, err
	}
	var all []evidence.Session
	for _, id := range ids {
		var closed closedSession
		err := durable.ReadJSON(i.closedFile(id), &closed)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, closed.Session)
	}
	slices.SortFunc(all, func(a, b evidence.Session) int { return b.At.Compare(a.At) })
	return all, nil
}

func (i instance) sessionIDs() ([]string, error) {
	entries, err := os.ReadDir(i.sessions())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, entry := range entries {
		if entry.IsDir() {
			ids = append(ids, entry.Name())
		}
	}
	return ids, err
}

// AdmitRelease reads a start and what earlier sessions of the instance left behind.
func (r *Recovery) AdmitRelease(ctx context.Context, in activities.AdmitReleaseInput) (activities.AdmitReleaseResult, error) {
	result := activities.AdmitReleaseResult{Worker: r.Worker}
	p, problems := plan.Decode(in.Start)
	if len(problems) == 0 {
		result.Plan = p.Normalize()
		problems = r.hostProblems(result.Plan, in.Session)
	}
	if len(problems) > 0 {
		return activities.AdmitReleaseResult{Problems: problems, Worker: r.Worker}, nil
	}
	i := r.instance(result.Plan.Instance)
	earlier, err := i.finished()
	if err != nil {
		return result, err
	}
	for _, s := range earlier {
		if s.Revision == result.Plan.Source.Revision && len(result.Earlier) < maxEarlier {
			result.Earlier = append(result.Earlier, s)
		}
	}
	record, err := i.locked()
	if err != nil {
		return result, err
	}
	if record != nil {
		result.Standing = record.Session
	}
	result.Resume, err = r.resumable(ctx, i, result.Plan)
	return result, err
}

// hostProblems are what keeps this host from carrying a plan out.
func (r *Recovery) hostProblems(p plan.Plan, session string) []strict.Problem {
	var found []strict.Problem
	add := func(path, format string, args ...any) {
		found = append(found, strict.Problem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	if !isSession(session) {
		add("", "the session id %q cannot name a folder", session)
	}
	if info, err := os.Stat(p.Source.Repository); err != nil || !info.IsDir() {
		add("source.repository", "there is no folder %s on this host", p.Source.Repository)
	}
	authority, err := r.instance(p.Instance).authority()
	switch active := authority.Active.Service; {
	case err != nil:
		add("instance", "%v", err)
	case active.Home != p.Service.Home, active.Label != p.Service.Label, active.Provider != p.Service.Provider:
		add("service", "the running service lives in %s as %s (%s); a release cannot move it", active.Home, active.Label, active.Provider)
	}
	if p.Service.Provider == plan.ProviderSystemd && r.UnitDir == "" {
		add("service.provider", "this host has no folder for systemd user units")
	}
	return found
}

// resumable is an unfinished session of the revision that was interrupted right after its source was frozen, when source and
// stable release still match.
func (r *Recovery) resumable(ctx context.Context, i instance, p plan.Plan) (*activities.FreezeResult, error) {
	ids, err := i.sessionIDs()
	if err != nil {
		return nil, err
	}
	authority, err := i.authority()
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		var frozen frozenSource
		if durable.ReadJSON(i.frozenFile(id), &frozen) != nil || frozen.Revision != p.Source.Revision || i.wentOn(id) {
			continue
		}
		stable, err := r.identity(ctx, authority.Active)
		if err != nil || !stable.SameLane(frozen.Stable) || frozen.Check(ctx, i.sourceFolder(id)) != nil {
			continue
		}
		return &activities.FreezeResult{
			Session: id, Revision: frozen.Revision, Source: frozen.Tree, Stable: frozen.Stable, Worker: r.Worker,
		}, nil
	}
	return nil, nil
}

// wentOn tells whether a session came further than its frozen source.
func (i instance) wentOn(id string) bool {
	return slices.ContainsFunc([]string{i.builtFile(id), i.steps(id), i.closedFile(id)}, func(file string) bool {
		_, err := os.Stat(file)
		return !errors.Is(err, fs.ErrNotExist)
	})
}

// CloseSession records how a session ended, removes what only served it, and prunes.
func (r *Recovery) CloseSession(ctx context.Context, in activities.CloseSessionInput) (activities.CloseSessionResult, error) {
	defer heartbeat(ctx)()
	i := r.instance(in.Plan.Instance)
	closed := closedSession{in.Record, in.Receipts[max(0, len(in.Receipts)-maxReceipts):], in.Attention}
	if err := durable.WriteJSON(i.closedFile(in.Session), closed); err != nil {
		return activities.CloseSessionResult{}, err
	}
	err := r.retire(ctx, candidateService(in.Plan), in.Session)
	if err != nil && !errors.Is(err, errForeignHome) {
		return activities.CloseSessionResult{}, err
	}
	if err := source.Remove(ctx, in.Plan.Source.Repository, i.sourceFolder(in.Session)); err != nil {
		r.Log.Warn("the work tree of the session stays", "session", in.Session, "error", err)
	}
	return activities.CloseSessionResult{Worker: r.Worker}, r.Prune(ctx, in.Plan.Instance, in.Plan.Retention)
}
