package config_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/config"
)

func valid(t *testing.T) config.Settings {
	t.Helper()
	home(t)
	s, err := config.Load(nil)
	require.NoError(t, err)
	return s
}

func TestEverythingWrongIsToldAtOnce(t *testing.T) {
	s := config.Settings{
		DataDir: "data", SitesDir: "sites", Log: config.Log{Level: "loud", Format: "xml"},
		Server:   config.Server{Host: "0.0.0.0", Port: 70000, UIPort: -2},
		Temporal: config.Temporal{Address: "temporal.example"},
		Worker: config.Worker{
			Roles: []string{"run", "cook"}, Host: "Build_1", Deployment: config.Deployment{BuildID: "b"}, StopTimeout: config.BrowserCloseTime,
			StickyCacheSize: -1, StickyTimeout: time.Hour,
		},
		Checks: config.Checks{
			Roots: []string{"/ok", "work"}, Commands: []string{"bin/go", ""}, HTTPHosts: []string{"http://x"}, Env: []string{"A=b"}, OutputDir: "out",
		},
		Browsers: []config.Browser{{Name: "Two Words", Mode: "remote", ProfileDir: "p", Executable: "chromium", Headed: "maybe", NoSandbox: "no"}},
	}
	err := s.Validate()
	require.Error(t, err)
	require.Equal(t, []string{
		`data_dir: is "data"; give an absolute path, or one that begins with ~/`,
		`sites_dir: is "sites"; give an absolute path, or one that begins with ~/`,
		`log.level: is "loud"; use debug, info, warn or error`,
		`log.format: is "xml"; use text or json`,
		`server.host: is "0.0.0.0"; the embedded server authenticates nobody, so give a loopback address like 127.0.0.1`,
		`server.port: is 70000; give a number from 0 to 65535`,
		`server.ui_port: is -2; give a number from -1 to 65535`,
		`server.namespace: is empty; give a name, like default`,
		`temporal.address: is "temporal.example"; give host:port, like 127.0.0.1:7233`,
		`worker.roles: is "cook"; use run, checks or browser`,
		`worker.host: is "Build_1"; give a host name of lower-case letters, digits, dots and hyphens`,
		`worker.deployment.build_id: is set without worker.deployment.name; set both, or neither to run unversioned`,
		`worker.stop_timeout: is 10s; give more than the 10s that closing a browser may take, and at most 1h0m0s`,
		`worker.sticky_cache_size: is -1; give a number from 0 to 1000000`,
		`worker.sticky_timeout: is 1h0m0s; give 100ms to 1m`,
		`checks.roots[1]: is "work"; give an absolute path, or one that begins with ~/`,
		`checks.commands[0]: is "bin/go"; give the name of a program, its absolute path, or *`,
		`checks.commands[1]: is ""; give the name of a program, its absolute path, or *`,
		`checks.hosts[0]: is "http://x"; give host or host:port in lower case, without a scheme`,
		`checks.env[0]: is "A=b"; give the name of a variable, without a value`,
		`checks.output_dir: is "out"; give an absolute path, or one that begins with ~/`,
		`browsers[0].name: is "Two Words"; give lower-case letters, digits, dots, underscores and hyphens, at most 64`,
		`browsers[0].site: is ""; give lower-case letters, digits, dots, underscores and hyphens, at most 64`,
		`browsers[0].mode: is "remote"; use launch or cdp`,
		`browsers[0].profile_dir: is "p"; give an absolute path, or one that begins with ~/`,
		`browsers[0].executable: is "chromium"; give an absolute path, or one that begins with ~/`,
		`browsers[0].headed: is "maybe"; use true, false or auto`,
		`browsers[0].no_sandbox: is "no"; use true, false or auto`,
		`browsers[0].max_tabs: is 0; give a number from 1 to 100`,
		`browsers[0].read_slots: is 0; give a number from 1 to 100000`,
	}, strings.Split(err.Error(), "\n"))
}

func TestSettingsThatExcludeEachOther(t *testing.T) {
	for want, change := range map[string]func(*config.Settings){
		"server.ui_port: is 7233 like server.port": func(s *config.Settings) { s.Server.Port, s.Server.UIPort = 7233, 7233 },
		"browsers[1].name: \"chatgpt\" is taken":   func(s *config.Settings) { s.Browsers = append(s.Browsers, s.Browsers[0]) },
		"browsers[1].profile_dir: is that of browsers[0]": func(s *config.Settings) {
			other := s.Browsers[0]
			other.Name, other.ProfileDir = "other", other.ProfileDir+"/../profile"
			s.Browsers = append(s.Browsers, other)
		},
		"browsers[0].cdp_url: belongs to mode cdp": func(s *config.Settings) { s.Browsers[0].CDPURL = "http://127.0.0.1:9222" },
		"worker.roles: is empty":                   func(s *config.Settings) { s.Worker.Roles = nil },
	} {
		s := valid(t)
		require.NoError(t, s.Validate())
		change(&s)
		require.ErrorContains(t, s.Validate(), want)
	}
	for address, ok := range map[string]bool{
		"http://127.0.0.1:9222": true, "ws://localhost:9222/devtools/browser/x": true, "http://[::1]:9222": true,
		"": false, "http://10.0.0.1:9222": false, "127.0.0.1:9222": false, "http://127.0.0.1": false, "https://127.0.0.1:9222": false,
		"http://evil.example:9222": false, "http://u:p@127.0.0.1:9222": false, "http://127.0.0.1.evil.example:9222": false,
	} {
		s := valid(t)
		s.Browsers[0].Mode, s.Browsers[0].CDPURL = config.CDP, address
		require.Equal(t, ok, s.Validate() == nil, address)
	}
}

func TestSwitchesResolve(t *testing.T) {
	for _, auto := range []bool{false, true} {
		require.True(t, config.On.Resolve(auto))
		require.False(t, config.Off.Resolve(auto))
		require.Equal(t, auto, config.Auto.Resolve(auto))
	}
}

func TestTheLogHandlerFollowsItsSettings(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(config.Log{Level: "warn", Format: "json"}.Handler(&out))
	log.Info("hidden")
	log.Warn("shown", "key", 1)
	require.Contains(t, out.String(), `"level":"WARN","msg":"shown","key":1}`)
	require.NotContains(t, out.String(), "hidden")

	out.Reset()
	slog.New(config.Log{Level: "debug", Format: "text"}.Handler(&out)).Debug("shown")
	require.Contains(t, out.String(), "level=DEBUG msg=shown")
}

func TestAFlagIsOnlyForSettingsThatHaveOne(t *testing.T) {
	set := flags(t)
	require.NotNil(t, set.Lookup("config"))
	require.Equal(t, "[run,checks,browser]", set.Lookup("roles").DefValue)
	require.NotContains(t, set.FlagUsages(), "`")
	require.Panics(t, func() { config.AddFlags(set, "checks.roots") })
	require.Panics(t, func() { config.AddFlags(set, "no.such") })
}
