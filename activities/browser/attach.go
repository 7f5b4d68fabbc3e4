package browser

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/mxschmitt/playwright-go"
)

// attach connects to a running browser over CDP and proves that it is the one of this profile directory.
func (e *engine) attach(s *session) error {
	b, err := within(startLimit+5*time.Second, func() (playwright.Browser, error) {
		return s.playwright.Chromium.ConnectOverCDP(e.opts.CDPURL, playwright.BrowserTypeConnectOverCDPOptions{Timeout: ms(startLimit)})
	})
	if err != nil {
		return fmt.Errorf("connect to %s: %w", e.opts.CDPURL, firstLine(err))
	}
	contexts := b.Contexts()
	if len(contexts) == 0 {
		return fmt.Errorf("the browser at %s has no default profile open", e.opts.CDPURL)
	}
	s.context = contexts[0]
	b.OnDisconnected(func(playwright.Browser) { s.dead.Store(true) })
	return e.proveLogin(b)
}

// proveLogin compares the user data directory of the browser that answered with the configured one: another browser
// behind the same port is never used in its place.
func (e *engine) proveLogin(b playwright.Browser) error {
	line, err := within(10*time.Second, func() (string, error) {
		cdp, err := b.NewBrowserCDPSession()
		if err != nil {
			return "", err
		}
		defer func() { _ = cdp.Detach() }()
		answer, err := cdp.Send("SystemInfo.getInfo", nil)
		if err != nil {
			return "", err
		}
		fields, _ := answer.(map[string]any)
		line, _ := fields["commandLine"].(string)
		return line, nil
	})
	if err != nil {
		return fmt.Errorf("identity of the browser: %w", firstLine(err))
	}
	_, rest, found := strings.Cut(line, "--user-data-dir=")
	if !found {
		return errors.New("the browser runs on its default user data directory; start it with --user-data-dir")
	}
	wanted, err := filepath.EvalSymlinks(e.opts.ProfileDir)
	if err != nil {
		return fmt.Errorf("profile directory: %w", err)
	}
	rest = strings.Trim(rest, `"'`)
	for _, candidate := range []string{wanted, e.opts.ProfileDir} {
		if tail, ok := strings.CutPrefix(rest, candidate); ok && (tail == "" || strings.ContainsAny(tail[:1], ` /"'`)) {
			return nil
		}
	}
	return fmt.Errorf("the browser at %s is another login than %s", e.opts.CDPURL, e.opts.ProfileDir)
}
