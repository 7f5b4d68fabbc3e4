package config

import (
	"os"
	"path/filepath"
	"strings"
)

const maxHost = 63 // characters of a host name in the names of task queues

// Host is the short, lower-case name of this machine, as it stands in the names of task queues; "localhost" when the
// machine has none.
func Host() string {
	name, err := os.Hostname()
	if err != nil {
		return hostName("")
	}
	return hostName(name)
}

func hostName(name string) string {
	name, _, _ = strings.Cut(strings.ToLower(name), ".")
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, name)
	if name = strings.Trim(name[:min(len(name), maxHost)], "-"); name == "" {
		return "localhost"
	}
	return name
}

// xdgDir is a base folder of the XDG base directory specification; empty when neither it nor a home folder is known.
func xdgDir(variable, below string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, below)
}

func configDir() string { return under(xdgDir("XDG_CONFIG_HOME", ".config"), "steward") }

func dataDir() string { return under(xdgDir("XDG_DATA_HOME", ".local/share"), "steward") }

// under joins, but keeps an unknown folder unknown.
func under(dir string, below ...string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(append([]string{dir}, below...)...)
}

// expandHome replaces a leading ~/ by the home folder.
func expandHome(path string) string {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return path
	}
	return filepath.Join(home, rest)
}
