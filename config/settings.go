// Package config holds the settings of the steward command and its workers. Load reads them once, at the edge; below it
// they are passed on as plain values.
package config

import (
	"io"
	"log/slog"
	"path/filepath"
	"time"
)

// BrowserCloseTime is the longest that a browser takes to close. A worker that stops waits longer than that.
const BrowserCloseTime = 10 * time.Second

// Settings are all settings, complete and checked. docs/settings.md describes every key.
type Settings struct {
	DataDir  string    `mapstructure:"data_dir"`
	SitesDir string    `mapstructure:"sites_dir"`
	Log      Log       `mapstructure:"log"`
	Server   Server    `mapstructure:"server"`
	Temporal Temporal  `mapstructure:"temporal"`
	Worker   Worker    `mapstructure:"worker"`
	Checks   Checks    `mapstructure:"checks"`
	Browsers []Browser `mapstructure:"-"`
	// File is the settings file that was read; empty when there is none.
	File string `mapstructure:"-"`
}

// ServerDir is the data folder of the embedded Temporal server.
func (s Settings) ServerDir() string { return filepath.Join(s.DataDir, "server") }

// Log says what is logged and how.
type Log struct {
	Level  string `mapstructure:"level"`  // debug, info, warn, error
	Format string `mapstructure:"format"` // text, json
}

// Handler writes log records to w.
func (l Log) Handler(w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: levels[l.Level]}
	if l.Format == "json" {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// Server is the embedded Temporal server.
type Server struct {
	Host      string `mapstructure:"host"`    // a loopback address
	Port      int    `mapstructure:"port"`    // gRPC; 0: the last one used, or any free one
	UIPort    int    `mapstructure:"ui_port"` // Web UI; 0 as for Port, -1 for none
	Namespace string `mapstructure:"namespace"`
	Postgres  string `mapstructure:"postgres"` // postgres://user@host:5432/database; empty for SQLite in the data folder
}

// Temporal names the server that workers and commands connect to. Empty fields were not set; see Settings.ClientOptions.
type Temporal struct {
	Profile   string `mapstructure:"profile"`
	Address   string `mapstructure:"address"`
	Namespace string `mapstructure:"namespace"`
}

// Worker are the settings of a worker process.
type Worker struct {
	Roles      []string   `mapstructure:"roles"` // run, checks, browser
	Host       string     `mapstructure:"host"`  // this machine in the names of task queues
	Deployment Deployment `mapstructure:"deployment"`
	// StopTimeout is how long a stop waits for running activities.
	StopTimeout time.Duration `mapstructure:"stop_timeout"`
	// StickyCacheSize is how many runs are kept in memory. StickyTimeout is how long the first task of a run waits for the
	// worker that had it.
	StickyCacheSize int           `mapstructure:"sticky_cache_size"`
	StickyTimeout   time.Duration `mapstructure:"sticky_timeout"`
	// Metrics is the loopback host:port of the Prometheus endpoint; empty for none.
	Metrics string `mapstructure:"metrics"`
}

// Deployment places a worker in Temporal's worker versioning; an empty name runs unversioned.
type Deployment struct {
	Name    string `mapstructure:"name"`
	BuildID string `mapstructure:"build_id"`
}

// AnyCommand in Checks.Commands allows every program.
const AnyCommand = "*"

// Checks is what completion checks may touch on this host. Nil Roots or Commands were not set; see Within.
type Checks struct {
	Roots     []string `mapstructure:"roots"`
	Commands  []string `mapstructure:"commands"`
	HTTPHosts []string `mapstructure:"hosts"`
	Env       []string `mapstructure:"env"`
	OutputDir string   `mapstructure:"output_dir"`
}

// Within fills what was not set. A person's own server is used by that person: everything below the home folder, and
// any command. A shared server is not: nothing.
func (c Checks) Within(embedded bool, home string) Checks {
	if c.Roots == nil && embedded {
		c.Roots = []string{home}
	}
	if c.Commands == nil && embedded {
		c.Commands = []string{AnyCommand}
	}
	return c
}

// Switch is a setting that may be left to the program.
type Switch string

// The values of a Switch.
const (
	Auto Switch = "auto"
	On   Switch = "true"
	Off  Switch = "false"
)

// Resolve is the value of the switch, with what the program would choose.
func (s Switch) Resolve(auto bool) bool { return s == On || s == Auto && auto }

// Mode is how a browser is reached.
type Mode string

// The modes.
const (
	Launch Mode = "launch"
	CDP    Mode = "cdp"
)

// Browser is one login on this host.
type Browser struct {
	Name string `mapstructure:"name"`
	Site string `mapstructure:"site"`
	Mode Mode   `mapstructure:"mode"`
	// CDPURL is the address of a running browser (mode cdp).
	CDPURL     string `mapstructure:"cdp_url"`
	ProfileDir string `mapstructure:"profile_dir"`
	Executable string `mapstructure:"executable"` // empty: an installed one is looked for
	Headed     Switch `mapstructure:"headed"`     // auto: as the site profile says
	NoSandbox  Switch `mapstructure:"no_sandbox"` // auto: when the worker runs as root
	MaxTabs    int    `mapstructure:"max_tabs"`
	// ReadSlots is how many observations may be open at once.
	ReadSlots   int  `mapstructure:"read_slots"`
	Screenshots bool `mapstructure:"screenshots"`
}
