package goal

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"

	"steward/workflows/machine/strict"
)

// forms are the named shapes of strings in the struct tags of Goal.
var forms = map[string]strict.Form{
	"name": shape(`^[a-z0-9][a-z0-9._-]*$`, "must be lower-case letters, digits, dots, underscores and hyphens"),
	"key":  shape(`^[A-Za-z0-9][A-Za-z0-9._-]*$`, "must be letters, digits, dots, underscores and hyphens"),
	"scope": shape(`^[a-z]+:[A-Za-z0-9][A-Za-z0-9._:/#-]*$`,
		"must be a kind, a colon and an id of letters, digits and ._:/#-, like goal:orders-green"),
	"host":     shape(`^[A-Za-z0-9][A-Za-z0-9.-]*$`, "must be a host name"),
	"variable": shape(`^[A-Za-z_][A-Za-z0-9_]*$`, "must be the name of an environment variable, without a value"),
	"sha256":   shape(`^[0-9a-f]{64}$`, "must be 64 lower-case hex digits"),
	"path":     absolute,
	"regexp":   compiles,
	"url":      webAddress,
	"page":     pageAddress,
}

// Forms are the named shapes of strings; other inputs share them.
func Forms() map[string]strict.Form { return forms }

func shape(pattern, wrong string) strict.Form {
	re := regexp.MustCompile(pattern)
	return func(s string) string {
		if re.MatchString(s) {
			return ""
		}
		return wrong
	}
}

func absolute(s string) string {
	if !path.IsAbs(s) {
		return "must be an absolute path; ~ and variables are not expanded"
	}
	return ""
}

func compiles(s string) string {
	if _, err := regexp.Compile(s); err != nil {
		return "must be a regular expression (RE2): " + strings.TrimPrefix(err.Error(), "error parsing regexp: ")
	}
	return ""
}

func webAddress(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "must be an absolute http or https address"
	case u.User != nil:
		return "must not hold a user name or password"
	}
	return ""
}

func pageAddress(s string) string {
	if wrong := webAddress(s); wrong != "" {
		return wrong
	}
	if u, err := url.Parse(s); err != nil || u.Scheme == "http" && !IsLoopback(u.Hostname()) {
		return "must be https; http is for loopback addresses only"
	}
	return ""
}

// IsLoopback tells whether a host of an address, without port, is this machine by its very name.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
