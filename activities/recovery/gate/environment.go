package gate

import (
	"os"
	"slices"
	"strings"
)

// basic is what every child sees of the environment.
var basic = []string{"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"}

// private are the prefixes of variables that say who a process is; no child inherits one.
// (Stable A / Candidate B and ReleaseSession authority, Incarnation and writer fence.)
var private = []string{"STEWARD_", "TEMPORAL_"}

// Environment is what a child gets: the basic variables and the allowed ones of this process, without any that carries the
// identity of a writer, a release or a runtime; then the given ones (NAME=value), which win.
func Environment(allowed []string, given ...string) []string {
	var env []string
	add := func(entry string) {
		name, _, _ := strings.Cut(entry, "=")
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, name+"=") })
		env = append(env, entry)
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !isPrivate(name) && (slices.Contains(basic, name) || slices.Contains(allowed, name)) {
			add(entry)
		}
	}
	for _, entry := range given {
		add(entry)
	}
	return env
}

func isPrivate(name string) bool {
	return slices.ContainsFunc(private, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
