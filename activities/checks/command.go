package checks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"steward/activities"
	"steward/workflows/run/goal"
)

// command runs the command of a check.
func (c *Checks) command(ctx context.Context, command goal.Command, e *evidence) {
	dir, _, err := c.limits.locate(command.Dir)
	if err != nil {
		e.cannotTell(activities.CheckRefused, "%v", err)
		return
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		e.cannotTell(activities.CheckCannotRun, "the folder %s does not exist", command.Dir)
		return
	}
	program, err := findProgram(command.Argv[0], dir)
	switch here := strings.Contains(command.Argv[0], "/"); {
	case here && errors.Is(err, fs.ErrNotExist):
		e.fail(activities.CheckNotFound, "%s is not there", command.Argv[0])
		return
	case here && errors.Is(err, fs.ErrPermission):
		e.fail(activities.CheckNotFound, "%s is not executable", command.Argv[0])
		return
	case err != nil:
		e.cannotTell(activities.CheckCannotRun, "%v", err)
		return
	}
	if e.Revision, err = revision(ctx, dir); err != nil && !errors.Is(err, errNoWorkTree) {
		e.cannotTell(activities.CheckCannotRun, "%v", err)
		return
	}
	var out output
	limited, cancel := context.WithTimeout(ctx, command.Timeout.Std())
	defer cancel()
	end, err := process{
		program: program, argv: command.Argv, dir: dir, env: environment(dir, command.Env...), out: &out,
	}.run(limited)
	switch {
	case ctx.Err() != nil: // the activity ends; Run says so
		return
	case errors.Is(err, context.DeadlineExceeded):
		e.fail(activities.CheckTimedOut, "ended after %v: %s", *command.Timeout, tellingLine(out.kept(), true))
	case err != nil:
		e.cannotTell(activities.CheckCannotRun, "%v", err)
		return
	default:
		judgeCommand(command, end, out.kept(), e)
	}
	c.keepOutput(&out, e)
}

func judgeCommand(command goal.Command, end ended, output []byte, e *evidence) {
	if end.signal != "" {
		e.fail(activities.CheckExitMismatch, "ended by a signal (%s): %s", end.signal, tellingLine(output, true))
		return
	}
	e.Exit = &end.exit
	if end.exit != *command.Exit {
		e.fail(activities.CheckExitMismatch, "exit %d, not %d: %s", end.exit, *command.Exit, tellingLine(output, true))
		return
	}
	if command.Match != "" {
		match, err := regexp.Compile(command.Match)
		if err != nil {
			e.cannotTell(activities.CheckCannotRun, "match: %v", err)
			return
		}
		if !match.Match(output) {
			e.fail(activities.CheckOutputMismatch, "the output does not match %s: %s", command.Match, tellingLine(output, false))
			return
		}
	}
	e.pass(tellingLine(output, false))
}

// keepOutput keeps an output on the host. Evidence that cannot be kept is none.
func (c *Checks) keepOutput(out *output, e *evidence) {
	digest, err := c.keep.put(out.kept())
	e.Digest, e.Bytes = digest, out.total
	if err != nil && e.Outcome == activities.CheckPass {
		e.cannotTell(activities.CheckCannotKeep, "%v", err)
	}
}
