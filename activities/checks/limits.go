package checks

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
)

// Limits is what a checks worker may touch: whoever may start a run on a namespace may ask for checks. The zero value
// refuses everything but requests to loopback.
type Limits struct {
	// Roots are folders; every path of a check or probe must lie in one of them after its symbolic links are followed
	// (setting checks.roots).
	Roots []string
	// Commands are the programs that may run: a name without a slash is looked up on the worker's PATH, a path is exact
	// (setting checks.commands).
	Commands []string
	// AnyCommand allows every program and every environment variable but the worker's own TEMPORAL_ and STEWARD_ ones.
	AnyCommand bool
	// HTTPHosts may be asked beside loopback, by host or host:port (setting checks.hosts).
	HTTPHosts []string
	// Env are further variables that a command may see (setting checks.env).
	Env []string
}

// Embedded is the default of a worker that a person runs at home: everything below the home folder, and any command.
func Embedded(home string) Limits {
	return Limits{Roots: []string{home}, AnyCommand: true}
}

// resolve follows the links of the roots and of the programs given by path, once.
func (l Limits) resolve() (Limits, error) {
	roots := make([]string, 0, len(l.Roots))
	for _, root := range l.Roots {
		if !filepath.IsAbs(root) {
			return l, fmt.Errorf("checks.roots: %s is not an absolute path", root)
		}
		resolved, err := filepath.EvalSymlinks(root)
		if err != nil {
			return l, fmt.Errorf("checks.roots: %w", err)
		}
		roots = append(roots, resolved)
	}
	commands := make([]string, 0, len(l.Commands))
	for _, command := range l.Commands {
		if strings.Contains(command, "/") {
			resolved, err := filepath.EvalSymlinks(command)
			if err != nil || !filepath.IsAbs(command) {
				return l, fmt.Errorf("checks.commands: %s is neither a name nor the absolute path of a program", command)
			}
			command = resolved
		}
		commands = append(commands, command)
	}
	l.Roots, l.Commands = roots, commands
	return l, nil
}

// Refused tells everything in a goal that this worker would not do.
func (c *Checks) Refused(g goal.Goal) []strict.Problem {
	var problems []strict.Problem
	for i, check := range g.Completion.Checks {
		problems = append(problems, c.limits.check(fmt.Sprintf("completion.checks[%d].", i), check)...)
	}
	for i, probe := range g.Progress {
		switch {
		case probe.Git != nil:
			problems = append(problems, c.limits.path(fmt.Sprintf("progress[%d].git.dir", i), probe.Git.Dir)...)
		case probe.File != nil:
			problems = append(problems, c.limits.path(fmt.Sprintf("progress[%d].file.path", i), probe.File.Path)...)
		}
	}
	return problems
}

func (l Limits) check(prefix string, check goal.Check) []strict.Problem {
	var problems []strict.Problem
	if command := check.Command; command != nil {
		problems = append(problems, l.path(prefix+"command.dir", command.Dir)...)
		problems = append(problems, l.program(prefix+"command.argv", *command)...)
		for i, name := range command.Env {
			if !l.variable(name) {
				problems = append(problems, strict.Problem{
					Path:    fmt.Sprintf("%scommand.env[%d]", prefix, i),
					Message: name + " is not in checks.env of this worker; leave it out or have it added there",
				})
			}
		}
	}
	if file := check.File; file != nil {
		problems = append(problems, l.path(prefix+"file.path", file.Path)...)
		if file.FreshFor != "" {
			problems = append(problems, l.path(prefix+"file.fresh_for", file.FreshFor)...)
		}
	}
	if check.HTTP != nil && !l.host(check.HTTP.URL) {
		problems = append(problems, strict.Problem{
			Path:    prefix + "http.url",
			Message: "the host is neither loopback nor in checks.hosts of this worker; use another or have it added there",
		})
	}
	return problems
}

func (l Limits) path(at, path string) []strict.Problem {
	if _, _, err := l.locate(path); err != nil {
		return []strict.Problem{{Path: at, Message: err.Error()}}
	}
	return nil
}

// locate follows the links of a path and returns where it really is and the root that holds it. The path, or its end, may
// not exist.
func (l Limits) locate(path string) (real, root string, err error) {
	real, err = follow(path, 0)
	if err != nil {
		return "", "", err
	}
	for _, root := range l.Roots {
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			return real, root, nil
		}
	}
	allowed := strings.Join(l.Roots, ", ")
	if allowed == "" {
		allowed = "none"
	}
	if real != filepath.Clean(path) {
		path += " (really " + real + ")"
	}
	return "", "", fmt.Errorf("%s lies outside checks.roots of this worker (%s); use a path inside or have it added there", path, allowed)
}

// follow is EvalSymlinks for a path whose end may not exist; a link that leads nowhere is followed to where it would lead.
func follow(path string, links int) (string, error) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !os.IsNotExist(err) || links == maxLinks {
		return "", fmt.Errorf("the path cannot be followed: %w", err)
	}
	parent, err := follow(filepath.Dir(path), links+1)
	if err != nil {
		return "", err
	}
	path = filepath.Join(parent, filepath.Base(path))
	target, err := os.Readlink(path)
	if err != nil {
		return path, nil //nolint:nilerr // not a link
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(parent, target)
	}
	return follow(target, links+1)
}

const maxLinks = 64 // parts and links of a path that are followed one by one

func (l Limits) program(at string, command goal.Command) []strict.Problem {
	if l.AnyCommand || len(command.Argv) == 0 {
		return nil
	}
	name := command.Argv[0]
	if slices.Contains(l.Commands, name) && !strings.Contains(name, "/") {
		return nil
	}
	if found, err := findProgram(name, command.Dir); err == nil {
		if real, err := filepath.EvalSymlinks(found); err == nil && slices.Contains(l.Commands, real) {
			return nil
		}
	}
	return []strict.Problem{{
		Path:    at,
		Message: fmt.Sprintf("%s is not in checks.commands of this worker; use another program or have it added there", command.Argv[0]),
	}}
}

func (l Limits) variable(name string) bool {
	if strings.HasPrefix(name, "TEMPORAL_") || strings.HasPrefix(name, "STEWARD_") {
		return false
	}
	return l.AnyCommand || slices.Contains(l.Env, name) || slices.Contains(basicEnv, name)
}

func (l Limits) host(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return goal.IsLoopback(u.Hostname()) || slices.Contains(l.HTTPHosts, u.Hostname()) || slices.Contains(l.HTTPHosts, u.Host)
}
