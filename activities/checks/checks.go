// Package checks carries out completion checks and progress probes on the host where the work is: commands, files,
// HTTP answers and git work trees. It only reads what it is told to read and runs what it is told to run, within the
// limits of its worker, and answers with evidence: an outcome with a stable code, never a status and never an output.
// Whatever it cannot carry out is cannot_tell, which is never a pass.
package checks

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"

	"steward/activities"
	"steward/workflows/run/goal"
)

const (
	heartbeatEvery = 2 * time.Second
	// fileTime bounds reading one file, or one git work tree.
	fileTime = time.Minute
)

// Checks runs the checks of one worker. Its methods are activities and may be called without Temporal too.
type Checks struct {
	limits Limits
	keep   keeper
	worker activities.Worker
}

// Options of a checks worker.
type Options struct {
	// Limits is what the worker may touch.
	Limits Limits
	// Folder keeps outputs, one 0600 file named by digest; it is made with mode 0700.
	Folder string
	// Worker is repeated in every result.
	Worker activities.Worker
}

// New prepares the folder for outputs and resolves the roots.
func New(o Options) (*Checks, error) {
	limits, err := o.Limits.resolve()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("the folder for check outputs cannot be made: %w", err)
	}
	if err := os.Chmod(o.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("the folder for check outputs cannot be made private: %w", err)
	}
	return &Checks{limits: limits, keep: keeper{folder: o.Folder, files: maxKeptFiles, bytes: maxKeptBytes}, worker: o.Worker}, nil
}

// Run carries out all checks, one after the other. When the worker's limits refuse one of them, none is started. The error
// is only the end of ctx.
func (c *Checks) Run(ctx context.Context, in activities.CheckInput) (activities.CheckResult, error) {
	defer heartbeat(ctx)()
	result := activities.CheckResult{Worker: c.worker}
	refusals := make([][]string, len(in.Checks))
	refused := false
	for i, check := range in.Checks {
		for _, p := range c.limits.check("", check) {
			refusals[i] = append(refusals[i], p.Message)
		}
		refused = refused || len(refusals[i]) > 0
	}
	for i, check := range in.Checks {
		e := begin(check)
		switch {
		case len(refusals[i]) > 0:
			e.cannotTell(activities.CheckRefused, "%s", strings.Join(refusals[i], "; "))
		case refused:
			e.cannotTell(activities.CheckNotStarted, "another check was refused by the worker, so none was started")
		default:
			c.one(ctx, check, in, e)
		}
		if err := context.Cause(ctx); err != nil {
			return activities.CheckResult{}, err
		}
		result.Evidence = append(result.Evidence, e.finish())
	}
	return result, nil
}

func (c *Checks) one(ctx context.Context, check goal.Check, in activities.CheckInput, e *evidence) {
	switch {
	case check.Command != nil:
		c.command(ctx, *check.Command, e)
	case check.File != nil:
		artifacts := make([]string, 0, len(in.Checks))
		for _, other := range in.Checks {
			if other.File != nil {
				artifacts = append(artifacts, other.File.Path)
			}
		}
		baseline, known := in.Totals[check.Name]
		c.file(ctx, *check.File, expectation{runIDs: in.RunIDs, artifacts: artifacts, baseline: baseline, known: known}, e)
	case check.HTTP != nil:
		c.http(ctx, *check.HTTP, e)
	default:
		e.cannotTell(activities.CheckCannotRun, "the check has no command, file or http part")
	}
}

// Baseline tells what the worker refuses to do for a goal, and else which counts its evidence files show now.
func (c *Checks) Baseline(ctx context.Context, in activities.BaselineInput) (activities.BaselineResult, error) {
	defer heartbeat(ctx)()
	result := activities.BaselineResult{Worker: c.worker}
	if result.Problems = c.Refused(in.Goal); len(result.Problems) > 0 {
		return result, nil
	}
	for _, check := range in.Goal.Completion.Checks {
		if check.File == nil || check.File.Total == "" {
			continue
		}
		total, found := c.total(ctx, *check.File)
		if err := context.Cause(ctx); err != nil {
			return activities.BaselineResult{}, err
		}
		if found {
			if result.Totals == nil {
				result.Totals = map[string]int64{}
			}
			result.Totals[check.Name] = total
		}
	}
	return result, nil
}

// evidence is built up while a check runs.
type evidence struct {
	activities.CheckEvidence
	started time.Time
}

func begin(check goal.Check) *evidence {
	e := &evidence{started: time.Now()}
	e.Name, e.At = check.Name, e.started.UTC()
	switch {
	case check.Command != nil:
		e.Kind, e.Subject = "command", shown(commandLine(check.Command.Argv))
	case check.File != nil:
		e.Kind, e.Subject = "file", shown(check.File.Path)
	case check.HTTP != nil:
		e.Kind, e.Subject = "http", shown(withoutQuery(check.HTTP.URL))
	}
	return e
}

func (e *evidence) pass(line string) {
	e.Outcome, e.Code, e.Line = activities.CheckPass, "", shown(line)
}

func (e *evidence) fail(code, format string, args ...any) {
	e.Outcome, e.Code, e.Line = activities.CheckFail, code, shown(fmt.Sprintf(format, args...))
}

func (e *evidence) cannotTell(code, format string, args ...any) {
	e.Outcome, e.Code, e.Line = activities.CheckCannotTell, code, shown(fmt.Sprintf(format, args...))
}

func (e *evidence) finish() activities.CheckEvidence {
	e.Took = time.Since(e.started).Milliseconds()
	return e.CheckEvidence
}

// heartbeat tells the server regularly that the activity is alive, which is also how its cancellation arrives. It returns
// the function that ends it.
func heartbeat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
