package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

//go:generate go test -run TestSettingsReference -update

// key is one setting: where its value may come from, and what it means.
type key struct {
	name  string // path in the file
	value any    // default; its type is the type of the setting
	flag  string // name of the flag, for commands that offer one
	// shown is the default as documented, where it depends on the machine.
	shown string
	doc   string
}

// env is the environment variable of the key.
func (k key) env() string {
	return "STEWARD_" + strings.ToUpper(strings.ReplaceAll(k.name, ".", "_"))
}

// keys are all settings but those of the browsers.
func keys() []key {
	return []key{
		{
			"data_dir", "", "data-dir", "`$XDG_DATA_HOME/steward`",
			"Folder for everything that Steward keeps: the embedded server, browser profiles, check outputs, releases.",
		},
		{
			"sites_dir", "", "sites-dir", "`$XDG_CONFIG_HOME/steward/sites`",
			"Folder with your own site profiles; one with the name of a built-in profile overrides it.",
		},

		{"log.level", "info", "log-level", "", "`debug`, `info`, `warn` or `error`."},
		{"log.format", "text", "log-format", "", "`text` or `json`."},

		{"server.host", "127.0.0.1", "", "", "Loopback address of the embedded server; it authenticates nobody."},
		{"server.port", 7233, "port", "", "gRPC port. `0` takes the port of the last run when it is free, else any free one."},
		{"server.ui_port", 8233, "ui-port", "", "Port of the Web UI. `0` works as for `server.port`, `-1` starts none."},
		{"server.namespace", "default", "", "", "Namespace of the embedded server; created when missing."},

		{
			"server.postgres", "", "postgres", "SQLite in the data folder",
			"PostgreSQL that keeps the embedded server's state: `postgres://user@host:5432/database`. A password belongs into `PGPASSWORD`, " +
				"the settings file or this variable, not on a command line.",
		},

		{"temporal.profile", "", "profile", "none", "Profile in the `temporal.toml` of the temporal CLI."},
		{"temporal.address", "", "address", "the embedded server", "`host:port` of the Temporal server."},
		{"temporal.namespace", "", "namespace", "that of the server or profile", "Namespace to work in."},

		{"worker.roles", []string{"run", "checks", "browser"}, "roles", "", "What this worker does: `run`, `checks`, `browser`."},
		{"worker.host", "", "", "short host name", "This machine in the names of task queues; checks name it in `completion.host`."},
		{"worker.deployment.name", "", "deployment-name", "none", "Worker deployment for Temporal's worker versioning; none runs unversioned."},
		{"worker.deployment.build_id", "", "build-id", "revision of the binary", "Build id within the deployment."},
		{
			"worker.stop_timeout", 30 * time.Second, "stop-timeout", "",
			"How long a stop waits for running activities; longer than closing a browser, which takes up to " + BrowserCloseTime.String() + ".",
		},
		{"worker.sticky_cache_size", 10_000, "", "", "How many runs the worker keeps in memory."},
		{
			"worker.sticky_timeout", time.Second, "", "",
			"How long the next task of a run waits for the worker that has it in memory, before any other may take it.",
		},
		{
			"worker.metrics", "", "metrics", "none",
			"Loopback `host:port` where this worker answers Prometheus at `/metrics`. Each worker of a host needs a port of its own.",
		},

		{
			"checks.roots", []string(nil), "", "embedded server: your home folder; else none",
			"Folders that the paths of checks and progress probes must lie in.",
		},
		{
			"checks.commands", []string(nil), "", "embedded server: `*`; else none",
			"Programs that checks may run: a name is looked up on the `PATH`, a path is exact, `*` allows any.",
		},
		{"checks.hosts", []string(nil), "", "none", "Hosts (`host` or `host:port`) that checks may ask beside loopback."},
		{"checks.env", []string(nil), "", "none", "Environment variables that a check's command may see beside a fixed basic set."},
		{"checks.output_dir", "", "", "`<data_dir>/checks`", "Folder for the outputs of checks; they never leave this host."},
	}
}

// browserKey is one key of an entry of `browsers`.
type browserKey struct{ name, shown, doc string }

var browserKeys = []browserKey{
	{"name", "", "Name of the login; runs name it in `target.browser`. Lower-case letters, digits, dots, underscores and hyphens. Required."},
	{"site", "the name", "Name of the site profile."},
	{"mode", "`launch`", "`launch` starts a browser on `profile_dir`; `cdp` attaches to a running one."},
	{"cdp_url", "", "Mode `cdp`: address of the browser's debugging port, like `http://127.0.0.1:9222`."},
	{"profile_dir", "`<data_dir>/browsers/<name>/profile`", "The browser's user data directory, of this login alone; its files stand beside it."},
	{"executable", "an installed Chrome or Chromium", "Path of the browser."},
	{"headed", "`auto`", "Show a window: `true`, `false`, or `auto` for what the site profile says."},
	{"no_sandbox", "`auto`", "Run without Chromium's sandbox, for containers: `true`, `false`, or `auto` for only as root."},
	{"max_tabs", "`12`", "Most tabs that stay open."},
	{"read_slots", "`2000`", "Most conversations observed at once."},
	{"screenshots", "`false`", "Keep a local screenshot of a failed send."},
}

// newBrowser has the defaults of a browser.
func newBrowser() Browser {
	return Browser{Mode: Launch, Headed: Auto, NoSandbox: Auto, MaxTabs: 12, ReadSlots: 2000}
}

// AddFlags adds the flags of the named settings, and --config, to a command. It panics on a name without a flag.
func AddFlags(flags *pflag.FlagSet, names ...string) {
	if flags.Lookup("config") == nil {
		flags.String("config", "", "settings file (default $XDG_CONFIG_HOME/steward/steward.yaml)")
	}
	for _, name := range names {
		k := lookup(name)
		usage := strings.ReplaceAll(k.doc, "`", "")
		if k.shown != "" {
			usage += " (default: " + strings.ReplaceAll(k.shown, "`", "") + ")"
		}
		switch value := k.value.(type) {
		case string:
			flags.String(k.flag, value, usage)
		case int:
			flags.Int(k.flag, value, usage)
		case time.Duration:
			flags.Duration(k.flag, value, usage)
		case []string:
			flags.StringSlice(k.flag, value, usage)
		}
	}
}

func lookup(name string) key {
	for _, k := range keys() {
		if k.name == name && k.flag != "" {
			return k
		}
	}
	panic(fmt.Sprintf("config.AddFlags: the setting %q has no flag", name))
}
