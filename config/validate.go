package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

var roles = []string{"run", "checks", "browser"}

var (
	namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	hostPattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
)

const longestStop = time.Hour

// problems collects what is wrong, each with the key of the setting.
type problems []error

func (p *problems) add(key, format string, args ...any) {
	*p = append(*p, fmt.Errorf(key+": "+format, args...))
}

func (p *problems) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		last := len(allowed) - 1
		p.add(key, "is %q; use %s or %s", value, strings.Join(allowed[:last], ", "), allowed[last])
	}
}

func (p *problems) absolute(key, path string) {
	if !filepath.IsAbs(path) {
		p.add(key, "is %q; give an absolute path, or one that begins with ~/", path)
	}
}

func (p *problems) between(key string, value, low, high int) {
	if value < low || value > high {
		p.add(key, "is %d; give a number from %d to %d", value, low, high)
	}
}

// Validate tells everything that is wrong with complete settings.
func (s Settings) Validate() error {
	var p problems
	if s.DataDir == "" {
		p.add("data_dir", "is empty and there is no home folder to derive it from; set it, or HOME")
	} else {
		p.absolute("data_dir", s.DataDir)
	}
	if s.SitesDir != "" {
		p.absolute("sites_dir", s.SitesDir)
	}
	p.oneOf("log.level", s.Log.Level, "debug", "info", "warn", "error")
	p.oneOf("log.format", s.Log.Format, "text", "json")
	s.Server.validate(&p)
	if s.Temporal.Address != "" {
		p.address("temporal.address", s.Temporal.Address)
	}
	s.Worker.validate(&p)
	s.Checks.validate(&p)
	validateBrowsers(&p, s.Browsers)
	return errors.Join(p...)
}

func (p *problems) address(key, value string) {
	host, port, err := net.SplitHostPort(value)
	number, numeric := strconv.Atoi(port)
	if err != nil || host == "" || numeric != nil || number < 1 || number > 65535 {
		p.add(key, "is %q; give host:port, like 127.0.0.1:7233", value)
	}
}

func (s Server) validate(p *problems) {
	if !loopback(s.Host) {
		p.add("server.host", "is %q; the embedded server authenticates nobody, so give a loopback address like 127.0.0.1", s.Host)
	}
	p.between("server.port", s.Port, 0, 65535)
	p.between("server.ui_port", s.UIPort, -1, 65535)
	if s.Port > 0 && s.Port == s.UIPort {
		p.add("server.ui_port", "is %d like server.port; give another one, 0 for any, or -1 for no Web UI", s.UIPort)
	}
	if s.Namespace == "" {
		p.add("server.namespace", "is empty; give a name, like default")
	}
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (w Worker) validate(p *problems) {
	if len(w.Roles) == 0 {
		p.add("worker.roles", "is empty; name at least one of %s", strings.Join(roles, ", "))
	}
	for _, role := range w.Roles {
		p.oneOf("worker.roles", role, roles...)
	}
	if !hostPattern.MatchString(w.Host) {
		p.add("worker.host", "is %q; give a host name of lower-case letters, digits, dots and hyphens", w.Host)
	}
	if w.Deployment.Name == "" && w.Deployment.BuildID != "" {
		p.add("worker.deployment.build_id", "is set without worker.deployment.name; set both, or neither to run unversioned")
	}
	if w.StopTimeout <= BrowserCloseTime || w.StopTimeout > longestStop {
		p.add("worker.stop_timeout", "is %v; give more than the %v that closing a browser may take, and at most %v",
			w.StopTimeout, BrowserCloseTime, longestStop)
	}
	p.between("worker.sticky_cache_size", w.StickyCacheSize, 0, 1_000_000)
	if w.StickyTimeout < 100*time.Millisecond || w.StickyTimeout > time.Minute {
		p.add("worker.sticky_timeout", "is %v; give 100ms to 1m", w.StickyTimeout)
	}
	if host, _, err := net.SplitHostPort(w.Metrics); w.Metrics != "" && (err != nil || !loopback(host)) {
		p.add("worker.metrics", "is %q; the endpoint authenticates nobody, so give a loopback address like 127.0.0.1:9464", w.Metrics)
	}
}

func (c Checks) validate(p *problems) {
	for i, root := range c.Roots {
		p.absolute(fmt.Sprintf("checks.roots[%d]", i), root)
	}
	for i, command := range c.Commands {
		if command == "" || strings.Contains(command, "/") && !filepath.IsAbs(command) {
			p.add(fmt.Sprintf("checks.commands[%d]", i), "is %q; give the name of a program, its absolute path, or %s", command, AnyCommand)
		}
	}
	for i, host := range c.HTTPHosts {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			name = host
		}
		if net.ParseIP(name) == nil && !hostPattern.MatchString(name) || strings.Contains(host, "/") {
			p.add(fmt.Sprintf("checks.hosts[%d]", i), "is %q; give host or host:port in lower case, without a scheme", host)
		}
	}
	for i, name := range c.Env {
		if name == "" || strings.ContainsAny(name, "= ") {
			p.add(fmt.Sprintf("checks.env[%d]", i), "is %q; give the name of a variable, without a value", name)
		}
	}
	p.absolute("checks.output_dir", c.OutputDir)
}

func validateBrowsers(p *problems, browsers []Browser) {
	names, folders := map[string]bool{}, map[string]int{}
	for i, b := range browsers {
		key := fmt.Sprintf("browsers[%d].", i)
		b.validate(p, key)
		if names[b.Name] {
			p.add(key+"name", "%q is taken by an earlier browser; a name stands for one login", b.Name)
		}
		names[b.Name] = true
		folder := filepath.Clean(b.ProfileDir)
		if earlier, taken := folders[folder]; taken && b.ProfileDir != "" {
			p.add(key+"profile_dir", "is that of browsers[%d]; two browsers cannot share a profile", earlier)
		}
		folders[folder] = i
	}
}

func (b Browser) validate(p *problems, key string) {
	for _, field := range [][2]string{{"name", b.Name}, {"site", b.Site}} {
		if !namePattern.MatchString(field[1]) {
			p.add(key+field[0], "is %q; give lower-case letters, digits, dots, underscores and hyphens, at most 64", field[1])
		}
	}
	p.oneOf(key+"mode", string(b.Mode), string(Launch), string(CDP))
	switch {
	case b.Mode == CDP && !localURL(b.CDPURL):
		p.add(key+"cdp_url", "is %q; mode cdp needs the address of a debugging port on this machine, like http://127.0.0.1:9222", b.CDPURL)
	case b.Mode == Launch && b.CDPURL != "":
		p.add(key+"cdp_url", "belongs to mode cdp; set mode: cdp, or leave it out")
	}
	p.absolute(key+"profile_dir", b.ProfileDir)
	if b.Executable != "" {
		p.absolute(key+"executable", b.Executable)
	}
	p.oneOf(key+"headed", string(b.Headed), string(On), string(Off), string(Auto))
	p.oneOf(key+"no_sandbox", string(b.NoSandbox), string(On), string(Off), string(Auto))
	p.between(key+"max_tabs", b.MaxTabs, 1, 100)
	p.between(key+"read_slots", b.ReadSlots, 1, 100_000)
}

// localURL tells whether an address is one of this machine: whoever reaches a debugging port controls the browser.
func localURL(address string) bool {
	u, err := url.Parse(address)
	return err == nil && slices.Contains([]string{"http", "ws"}, u.Scheme) && u.Port() != "" && u.User == nil && loopback(u.Hostname())
}
