package recovery

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"steward/activities/recovery/database"
	"steward/activities/recovery/gate"
	"steward/activities/recovery/home"
	"steward/activities/recovery/service"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
)

// folder is where a release lies.
func (r *Recovery) folder(release Release) string { return r.store.Path(release.Tree) }

// databaseFile is the database of a service; empty when it has none.
func databaseFile(s plan.Service) string {
	if s.Database == nil {
		return ""
	}
	return filepath.Join(s.Home, s.Database.File)
}

func tokenFile(s plan.Service) string {
	if s.TokenFile == "" {
		return ""
	}
	return filepath.Join(s.Home, s.TokenFile)
}

// fill puts the places of a lane into a text of a plan. source is only known to gates.
func (r *Recovery) fill(release Release, source string) *strings.Replacer {
	s := release.Service
	return strings.NewReplacer(
		"{release}", r.folder(release), "{home}", s.Home, "{port}", strconv.Itoa(s.Port), "{label}", s.Label,
		"{database}", databaseFile(s), "{token_file}", tokenFile(s), "{source}", source,
	)
}

func fillAll(replacer *strings.Replacer, words []string) []string {
	filled := make([]string, len(words))
	for i, word := range words {
		filled[i] = replacer.Replace(word)
	}
	return filled
}

// program is an argument vector whose first word is a path inside of a release.
func (r *Recovery) program(release Release, source string, argv []string) []string {
	filled := fillAll(r.fill(release, source), argv)
	filled[0] = filepath.Join(r.folder(release), filled[0])
	return filled
}

func (r *Recovery) spec(release Release, epoch uint64) service.Spec {
	s, replacer := release.Service, r.fill(release, "")
	var given []string
	for _, v := range s.Set {
		given = append(given, v.Name+"="+replacer.Replace(v.Value))
	}
	given = append(given, home.EnvHome+"="+s.Home, home.EnvEpoch+"="+strconv.FormatUint(epoch, 10), home.EnvRelease+"="+release.Tree)
	return service.Spec{
		Label: s.Label, Argv: r.program(release, "", s.Argv), Dir: s.Home, Env: gate.Environment(s.Env, given...),
		Home: s.Home, Epoch: epoch, Release: release.Tree, LogFile: filepath.Join(r.Root, "logs", s.Label+".log"),
	}
}

// nextEpoch is the epoch that the next start in a home has to acquire.
func nextEpoch(dir string) (uint64, error) {
	now, err := home.ReadIncarnation(dir)
	return now.Epoch + 1, err
}

// start starts a release in its lane with an epoch and waits until it serves: owner, identity and readiness, nothing else. The
// caller has verified the release before the service was stopped.
func (r *Recovery) start(ctx context.Context, release Release, epoch uint64) error {
	if _, err := r.provider(release.Service).Start(ctx, r.spec(release, epoch)); err != nil {
		return err
	}
	return r.awaitServing(ctx, release, epoch)
}

// pollEvery is the time between two looks at a starting service.
const pollEvery = 25 * time.Millisecond

// errExited is wrapped when a service ended while it was waited for.
var errExited = errors.New("the service ended before it was ready")

func (r *Recovery) awaitServing(ctx context.Context, release Release, epoch uint64) error {
	s := release.Service
	ctx, cancel := context.WithTimeoutCause(ctx, s.StartTimeout.Std(), fmt.Errorf("it was not ready within %v", s.StartTimeout))
	defer cancel()
	var last string
	for {
		if err := r.owned(ctx, release, epoch); err != nil {
			return err
		}
		receipt, err := r.check(ctx, release, "ready", s.Ready)
		if err == nil && receipt.Outcome == evidence.Passed {
			if err = r.answers(ctx, release); err == nil {
				return r.owned(ctx, release, epoch)
			}
		}
		if last = receipt.Line; err != nil {
			last = err.Error()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("service %s: %w: %s", s.Label, context.Cause(ctx), last)
		case <-time.After(pollEvery):
		}
	}
}

// answers proves that what answers on the port of a lane is its service: a foreign listener could answer as well.
func (r *Recovery) answers(ctx context.Context, release Release) error {
	s := release.Service
	if s.Port == 0 {
		return nil
	}
	own, err := r.provider(s).Listens(ctx, s.Label, s.Port)
	if err == nil && !own {
		err = fmt.Errorf("somebody else listens on port %d", s.Port)
	}
	return err
}

// owned proves that exactly this release owns the service and its home with the epoch.
func (r *Recovery) owned(ctx context.Context, release Release, epoch uint64) error {
	s := release.Service
	status, err := r.provider(s).Observe(ctx, s.Label)
	if err != nil {
		return err
	}
	if !status.Running || status.Leftover {
		return fmt.Errorf("%w: %s, process %d; its log is %s", errExited, s.Label, status.Process.PID, r.spec(release, epoch).LogFile)
	}
	now, err := home.ReadIncarnation(s.Home)
	if err != nil {
		return err
	}
	if !status.Owned(release.Tree, epoch) || now.Owner != status.Process || now.Epoch != epoch || now.Release != release.Tree {
		return fmt.Errorf("service %s is release %.12s in epoch %d, and the home belongs to release %.12s in epoch %d; wanted is %.12s in %d",
			s.Label, status.Release, status.Epoch, now.Release, now.Epoch, release.Tree, epoch)
	}
	return nil
}

// stop stops what runs in a lane and proves it: process group, writer, listener.
func (r *Recovery) stop(ctx context.Context, s plan.Service) error {
	if err := r.stopProcess(ctx, s); err != nil || s.Port == 0 {
		return err
	}
	return service.ListenerFree(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)))
}

// stopProcess is stop without a look at the listener.
func (r *Recovery) stopProcess(ctx context.Context, s plan.Service) error {
	if err := r.provider(s).Stop(ctx, s.Label, s.StopTimeout.Std()); err != nil {
		return err
	}
	now, err := home.ReadIncarnation(s.Home)
	if err == nil && now.Owner.Lives() {
		err = fmt.Errorf("%w: process %d still owns %s", service.ErrNotStopped, now.Owner.PID, s.Home)
	}
	return err
}

// serves tells whether exactly this release owns its lane now and is ready.
func (r *Recovery) serves(ctx context.Context, release Release) bool {
	now, err := home.ReadIncarnation(release.Service.Home)
	if err != nil || r.owned(ctx, release, now.Epoch) != nil {
		return false
	}
	receipt, err := r.check(ctx, release, "ready", release.Service.Ready)
	return err == nil && receipt.Outcome == evidence.Passed && r.answers(ctx, release) == nil && r.owned(ctx, release, now.Epoch) == nil
}

// bringUp makes exactly this release serve: it is left alone when it does, and started otherwise, at most Tries times. Whatever
// else runs in the lane is stopped before.
func (r *Recovery) bringUp(ctx context.Context, release Release) error {
	var failed error
	for try := range r.Tries {
		if r.serves(ctx, release) {
			return nil
		}
		if try > 0 {
			select {
			case <-ctx.Done():
				return errors.Join(context.Cause(ctx), failed)
			case <-time.After(r.TryEvery):
			}
		}
		failed = r.restart(ctx, release)
		if failed == nil {
			return nil
		}
		r.Log.Warn("the release does not start", "label", release.Service.Label, "release", release.Tree, "try", try+1, "error", failed)
	}
	return fmt.Errorf("release %.12s does not serve after %d tries: %w", release.Tree, r.Tries, failed)
}

// restart stops what runs in the lane and starts the release, which has to be whole, with the next epoch.
func (r *Recovery) restart(ctx context.Context, release Release) error {
	if err := r.store.Verify(release.Tree); err != nil {
		return err
	}
	if err := r.stop(ctx, release.Service); err != nil {
		return err
	}
	epoch, err := nextEpoch(release.Service.Home)
	if err != nil {
		return err
	}
	return r.start(ctx, release, epoch)
}

// identity is the service of a lane as it is now.
func (r *Recovery) identity(ctx context.Context, release Release) (evidence.Identity, error) {
	s := release.Service
	seen := evidence.Identity{Home: s.Home, Label: s.Label, Port: s.Port}
	status, err := r.provider(s).Observe(ctx, s.Label)
	if err != nil {
		return seen, err
	}
	if file := tokenFile(s); file != "" {
		token, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return seen, err
		}
		if len(token) > 0 {
			sum := sha256.Sum256(token)
			seen.TokenDigest = hex.EncodeToString(sum[:])
		}
	}
	now, err := home.ReadIncarnation(s.Home)
	if err != nil {
		return seen, err
	}
	seen.Incarnation = int64(now.Epoch)
	if status.Running && !status.Leftover {
		process := evidence.Process(status.Process)
		seen.Release, seen.Process = status.Release, &process
		seen.Ready = status.Release == release.Tree && r.serves(ctx, release)
	}
	return seen, nil
}

// look is one look at the stable lane and at the steps of a session.
func (r *Recovery) look(ctx context.Context, i instance, session string) evidence.Lane {
	lane := evidence.Lane{At: time.Now().UTC()}
	authority, err := i.authority()
	if err != nil {
		return lane
	}
	lane.Authority = authority.evidence()
	if lane.Serving, err = r.identity(ctx, authority.Active); err != nil {
		return lane
	}
	j, err := i.journal(session)
	if err != nil {
		return lane
	}
	lane.Steps = j.Steps
	record, err := i.locked()
	if err != nil {
		return lane
	}
	lane.Settled, lane.Observed = record == nil, ctx.Err() == nil
	return lane
}

// snapshotTo copies the database of a service that may be running; nil when it has none.
func snapshotTo(ctx context.Context, s plan.Service, file string) (*database.Backup, error) {
	if s.Database == nil {
		return nil, nil
	}
	backup, err := database.Snapshot(ctx, databaseFile(s), file)
	if err != nil {
		return nil, err
	}
	return &backup, nil
}
