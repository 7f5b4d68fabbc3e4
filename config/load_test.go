package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"steward/config"
)

// home is an empty home folder without settings of the machine that runs the test.
func home(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "STEWARD_") || strings.HasPrefix(name, "TEMPORAL_") || strings.HasPrefix(name, "XDG_") {
			t.Setenv(name, "") // restores it afterwards
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("HOME", dir)
	return dir
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func flags(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	set := pflag.NewFlagSet("steward", pflag.ContinueOnError)
	config.AddFlags(set, "data_dir", "sites_dir", "log.level", "log.format", "server.port", "server.ui_port", "temporal.profile",
		"temporal.address", "temporal.namespace", "worker.roles", "worker.deployment.name", "worker.deployment.build_id", "worker.stop_timeout")
	require.NoError(t, set.Parse(args))
	return set
}

func TestDefaults(t *testing.T) {
	dir := home(t)
	for _, set := range []*pflag.FlagSet{nil, flags(t)} {
		got, err := config.Load(set)
		require.NoError(t, err)
		data := filepath.Join(dir, ".local/share/steward")
		require.Equal(t, config.Settings{
			DataDir: data, SitesDir: filepath.Join(dir, ".config/steward/sites"),
			Log:    config.Log{Level: "info", Format: "text"},
			Server: config.Server{Host: "127.0.0.1", Port: 7233, UIPort: 8233, Namespace: "default"},
			Worker: config.Worker{
				Roles: []string{"run", "checks", "browser"}, Host: config.Host(), StopTimeout: 30 * time.Second,
				StickyCacheSize: 10_000, StickyTimeout: time.Second,
			},
			Checks: config.Checks{OutputDir: filepath.Join(data, "checks")},
			Browsers: []config.Browser{{
				Name: "chatgpt", Site: "chatgpt", Mode: config.Launch, ProfileDir: filepath.Join(data, "browsers/chatgpt/profile"),
				Headed: config.Auto, NoSandbox: config.Auto, MaxTabs: 12, ReadSlots: 2000,
			}},
		}, got)
		require.Equal(t, filepath.Join(data, "server"), got.ServerDir())
	}
}

func TestTheXDGFoldersAreUsed(t *testing.T) {
	dir := home(t)
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(dir, "c"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "d"))
	file := write(t, filepath.Join(dir, "c/steward/steward.yaml"), "log: {level: debug}\n")
	got, err := config.Load(nil)
	require.NoError(t, err)
	require.Equal(t, file, got.File)
	require.Equal(t, "debug", got.Log.Level)
	require.Equal(t, filepath.Join(dir, "d/steward"), got.DataDir)

	t.Setenv("XDG_DATA_HOME", "relative") // not allowed by the specification, so ignored
	got, err = config.Load(nil)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, ".local/share/steward"), got.DataDir)
}

const everything = `
data_dir: /srv/steward
sites_dir: ~/sites
log:
  level: warn
  format: json
server: {host: localhost, port: 7233, ui_port: -1, namespace: work}
temporal:
  profile: cloud
  address: temporal.example:7233
  namespace: prod
worker:
  roles: [run, checks]
  host: build-1
  deployment: {name: steward, build_id: b1}
  stop_timeout: 1m
  sticky_cache_size: 500
  sticky_timeout: 2s
checks:
  roots: [~/work, /srv/repos]
  commands: [go, /usr/bin/make]
  hosts: [build.example, "build.example:8080"]
  env: [GOFLAGS]
  output_dir: /srv/checks
browsers:
  - name: chatgpt
    headed: true
    no_sandbox: false
    executable: /usr/bin/chromium
    max_tabs: 3
    read_slots: 50
    screenshots: true
  - {name: second, site: chatgpt, mode: cdp, cdp_url: "http://127.0.0.1:9222", profile_dir: ~/chrome, headed: auto}
`

func TestTheFileSetsEverything(t *testing.T) {
	dir := home(t)
	file := write(t, filepath.Join(dir, "my.yaml"), everything)
	got, err := config.Load(flags(t, "--config", file))
	require.NoError(t, err)
	require.Equal(t, config.Settings{
		DataDir: "/srv/steward", SitesDir: filepath.Join(dir, "sites"), File: file,
		Log:      config.Log{Level: "warn", Format: "json"},
		Server:   config.Server{Host: "localhost", Port: 7233, UIPort: -1, Namespace: "work"},
		Temporal: config.Temporal{Profile: "cloud", Address: "temporal.example:7233", Namespace: "prod"},
		Worker: config.Worker{
			Roles: []string{"run", "checks"}, Host: "build-1", Deployment: config.Deployment{Name: "steward", BuildID: "b1"},
			StopTimeout: time.Minute, StickyCacheSize: 500, StickyTimeout: 2 * time.Second,
		},
		Checks: config.Checks{
			Roots: []string{filepath.Join(dir, "work"), "/srv/repos"}, Commands: []string{"go", "/usr/bin/make"},
			HTTPHosts: []string{"build.example", "build.example:8080"}, Env: []string{"GOFLAGS"}, OutputDir: "/srv/checks",
		},
		Browsers: []config.Browser{
			{
				Name: "chatgpt", Site: "chatgpt", Mode: config.Launch, ProfileDir: "/srv/steward/browsers/chatgpt/profile", Headed: config.On,
				NoSandbox: config.Off, Executable: "/usr/bin/chromium", MaxTabs: 3, ReadSlots: 50, Screenshots: true,
			},
			{
				Name: "second", Site: "chatgpt", Mode: config.CDP, CDPURL: "http://127.0.0.1:9222", ProfileDir: filepath.Join(dir, "chrome"),
				Headed: config.Auto, NoSandbox: config.Auto, MaxTabs: 12, ReadSlots: 2000,
			},
		},
	}, got)
}

func TestFlagsBeatEnvironmentBeatsFileBeatsDefaults(t *testing.T) {
	dir := home(t)
	t.Setenv("STEWARD_CONFIG", write(t, filepath.Join(dir, "my.yaml"), everything))
	t.Setenv("STEWARD_LOG_LEVEL", "error")
	t.Setenv("STEWARD_SERVER_PORT", "7300")
	t.Setenv("STEWARD_WORKER_ROLES", "run, browser,")
	t.Setenv("STEWARD_WORKER_STOP_TIMEOUT", "45s")
	t.Setenv("STEWARD_CHECKS_COMMANDS", "go")
	t.Setenv("STEWARD_TEMPORAL_ADDRESS", "") // an empty variable sets nothing

	got, err := config.Load(flags(t))
	require.NoError(t, err)
	require.Equal(t, "error", got.Log.Level)
	require.Equal(t, "json", got.Log.Format)
	require.Equal(t, 7300, got.Server.Port)
	require.Equal(t, []string{"run", "browser"}, got.Worker.Roles)
	require.Equal(t, 45*time.Second, got.Worker.StopTimeout)
	require.Equal(t, []string{"go"}, got.Checks.Commands)
	require.Equal(t, "temporal.example:7233", got.Temporal.Address)

	got, err = config.Load(flags(t, "--log-level=debug", "--port=7400", "--roles=checks", "--stop-timeout=50s", "--address=127.0.0.1:1",
		"--namespace", "other", "--profile", "p", "--deployment-name", "d", "--build-id", "b", "--ui-port", "0"))
	require.NoError(t, err)
	require.Equal(t, "debug", got.Log.Level)
	require.Equal(t, 7400, got.Server.Port)
	require.Equal(t, 0, got.Server.UIPort)
	require.Equal(t, []string{"checks"}, got.Worker.Roles)
	require.Equal(t, 50*time.Second, got.Worker.StopTimeout)
	require.Equal(t, config.Temporal{Address: "127.0.0.1:1", Namespace: "other", Profile: "p"}, got.Temporal)
	require.Equal(t, config.Deployment{Name: "d", BuildID: "b"}, got.Worker.Deployment)
}

func TestBrowsersFromTheEnvironment(t *testing.T) {
	home(t)
	t.Setenv("STEWARD_BROWSERS", `[{"name":"lab","headed":false},{"name":"two"}]`)
	got, err := config.Load(nil)
	require.NoError(t, err)
	require.Len(t, got.Browsers, 2)
	require.Equal(t, "lab", got.Browsers[0].Site)
	require.Equal(t, config.Off, got.Browsers[0].Headed)

	t.Setenv("STEWARD_BROWSERS", "[]")
	got, err = config.Load(nil)
	require.NoError(t, err)
	require.Empty(t, got.Browsers)

	for _, wrong := range []string{"lab", "{name: lab}", "[lab]", "[{name: lab, hedaed: true}]", "[{name: lab, max_tabs: many}]"} {
		t.Setenv("STEWARD_BROWSERS", wrong)
		_, err = config.Load(nil)
		require.ErrorContains(t, err, "browsers", wrong)
	}
}

func TestARelativeDataDirIsMeantOnlyByAFlag(t *testing.T) {
	home(t)
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	require.NoError(t, err)
	got, err := config.Load(flags(t, "--data-dir", "x"))
	require.NoError(t, err)
	require.Equal(t, filepath.Join(here, "x"), got.DataDir)
	require.Equal(t, filepath.Join(here, "x/checks"), got.Checks.OutputDir)

	t.Setenv("STEWARD_DATA_DIR", "x")
	_, err = config.Load(flags(t))
	require.ErrorContains(t, err, `data_dir: is "x"; give an absolute path`)
}

func TestANamedFileMustExistAndBeReadable(t *testing.T) {
	dir := home(t)
	_, err := config.Load(flags(t, "--config", filepath.Join(dir, "none.yaml")))
	require.ErrorContains(t, err, "none.yaml")
	t.Setenv("STEWARD_CONFIG", filepath.Join(dir, "none.yaml"))
	_, err = config.Load(nil)
	require.ErrorIs(t, err, os.ErrNotExist)

	for text, wants := range map[string][]string{
		"log: [":                       {"yaml"},
		"- a\n":                        {":1: must be a mapping"},
		"log:\n  level: a\n  level: b": {"level", "already defined at line 2"},
		strings.Repeat("# padding\n", 1<<17) + "log: {level: debug}": {"longer than"},
		"log: debug\nserver: [1]\nbrowsers: {name: x}\n":             {":1: log must be a mapping", ":2: server must be a mapping", ":3: browsers must be a list"},
		"browsers:\n- lab\n- {name: x, port: 1}\n":                   {":2: browsers[0] must be a mapping", ":3: unknown setting browsers.port; known are cdp_url, executable"},
		"Log: {level: debug}\nworker:\n  role: [run]\n  deployment: {nam: x}\nfoo: 1\n": {
			":1: unknown setting Log; known are browsers, checks, data_dir, log,", ":3: unknown setting worker.role; known are deployment, host, metrics, roles,",
			":4: unknown setting worker.deployment.nam; known are build_id, name", ":5: unknown setting foo",
		},
	} {
		file := write(t, filepath.Join(dir, "my.yaml"), text)
		_, err := config.Load(flags(t, "--config", file))
		require.Error(t, err, text)
		for _, want := range wants {
			require.ErrorContains(t, err, want)
		}
	}
	for _, empty := range []string{"", "# nothing\n", "log:\nbrowsers:\n", "---\n"} {
		got, err := config.Load(flags(t, "--config", write(t, filepath.Join(dir, "my.yaml"), empty)))
		require.NoError(t, err, "%q", empty)
		require.Equal(t, "info", got.Log.Level)
	}
}

func TestWrongTypesAreNamedTogether(t *testing.T) {
	dir := home(t)
	t.Setenv("STEWARD_SERVER_UI_PORT", "many")
	file := write(t, filepath.Join(dir, "my.yaml"),
		"log: {level: [a]}\nserver: {port: x}\nworker: {stop_timeout: soon, roles: {a: b}}\nbrowsers: [{name: [x], max_tabs: lots}]\n")
	_, err := config.Load(flags(t, "--config", file))
	for _, key := range []string{
		"server.port", "server.ui_port", "worker.stop_timeout", "worker.roles[0]", "log.level", "browsers[0].max_tabs", "browsers[0].name",
	} {
		require.ErrorContains(t, err, key+": ")
	}
}

func TestUnsetListsDifferFromEmptyOnes(t *testing.T) {
	dir := home(t)
	got, err := config.Load(nil)
	require.NoError(t, err)
	require.Equal(t, []string{"/home/me"}, got.Checks.Within(true, "/home/me").Roots)
	require.Equal(t, []string{config.AnyCommand}, got.Checks.Within(true, "/home/me").Commands)
	require.Empty(t, got.Checks.Within(false, "/home/me").Roots)
	require.Empty(t, got.Checks.Within(false, "/home/me").Commands)

	file := write(t, filepath.Join(dir, "my.yaml"), "checks: {roots: [], commands: [go]}\n")
	got, err = config.Load(flags(t, "--config", file))
	require.NoError(t, err)
	require.Empty(t, got.Checks.Within(true, "/home/me").Roots)
	require.Equal(t, []string{"go"}, got.Checks.Within(true, "/home/me").Commands)
}

func TestWithoutAHomeFolderTheDataDirIsAskedFor(t *testing.T) {
	home(t)
	t.Setenv("HOME", "")
	_, err := config.Load(nil)
	require.ErrorContains(t, err, "data_dir: is empty")
	t.Setenv("STEWARD_DATA_DIR", "/srv/steward")
	got, err := config.Load(nil)
	require.NoError(t, err)
	require.Empty(t, got.SitesDir)
	require.Empty(t, got.File)
}
