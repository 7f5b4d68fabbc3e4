package plan

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
)

// forms are the named shapes of strings in the struct tags of Plan.
var forms = map[string]strict.Form{
	"name":             shape(`^[a-z0-9][a-z0-9._-]*$`, "must be lower-case letters, digits, dots, underscores and hyphens"),
	"revision":         shape(`^([0-9a-f]{40}|[0-9a-f]{64})$`, "must be a whole commit id of 40 or 64 lower-case hex digits; `git rev-parse` prints it"),
	"name_of_variable": shape(`^[A-Za-z_][A-Za-z0-9_]*$`, "must be the name of an environment variable"),
	"variable":         inherited,
	"path":             absolute,
	"inside":           inside,
	"loopback":         loopback,
	"page":             page,
	"regexp":           compiles,
}

func shape(pattern, wrong string) strict.Form {
	re := regexp.MustCompile(pattern)
	return func(s string) string {
		if re.MatchString(s) {
			return ""
		}
		return wrong
	}
}

var variableName = shape(`^[A-Za-z_][A-Za-z0-9_]*$`, "must be the name of an environment variable, without a value")

// inherited are variables that a child may get from the recovery process: never those that identify that process.
// Source: "ReleaseSession and Recovery", Incarnation and writer fence.
func inherited(s string) string {
	if strings.HasPrefix(s, "STEWARD_") || strings.HasPrefix(s, "TEMPORAL_") {
		return "must not be a variable of the recovery process itself; set what the service needs with service.set"
	}
	return variableName(s)
}

func absolute(s string) string {
	switch {
	case !path.IsAbs(s):
		return "must be an absolute path; ~ and variables are not expanded"
	case path.Clean(s) != s || s == "/":
		return "must be a plain path without . and .. and double slashes, and not the root"
	}
	return ""
}

func inside(s string) string {
	if path.IsAbs(s) || path.Clean(s) != s || s == "." || s == ".." || strings.HasPrefix(s, "../") {
		return "must be a plain relative path that stays inside"
	}
	return ""
}

func loopback(s string) string {
	filled := strings.ReplaceAll(s, "{port}", "1")
	u, err := url.Parse(filled)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || !goal.IsLoopback(u.Hostname()):
		return "must be an http address on this host, like http://127.0.0.1:{port}/ready"
	case u.User != nil:
		return "must not hold a user name or password"
	}
	return ""
}

func page(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !goal.IsLoopback(u.Hostname())) {
		return "must be an https address without a password; http is for loopback addresses only"
	}
	return ""
}

func compiles(s string) string {
	if _, err := regexp.Compile(s); err != nil {
		return "must be a regular expression (RE2): " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	return ""
}
