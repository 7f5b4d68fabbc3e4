package browser

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
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
	return e.proveLogin(s)
}

// idFile holds the random name of a login, in its user data directory. It says nothing of tasks, accounts or pages.
const idFile = "steward-id"

// loginID is the name of a login, made on first use.
func loginID(profileDir string) (string, error) {
	path := filepath.Join(profileDir, idFile)
	id, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		name := rand.Text()
		return name, writePrivate(path, []byte(name+"\n"))
	case err != nil:
		return "", err
	case len(bytes.TrimSpace(id)) == 0:
		return "", fmt.Errorf("%s is empty; remove it", path)
	}
	return string(bytes.TrimSpace(id)), nil
}

// proveLogin has the browser that answered tell its user data directory and read the id file there: only the one that runs
// on the configured directory can. Another browser behind the same port is never used in its place.
func (e *engine) proveLogin(s *session) error {
	want, err := loginID(e.opts.ProfileDir)
	if err != nil {
		return fmt.Errorf("id of the login: %w", err)
	}
	page, err := within(openLimit, func() (playwright.Page, error) { return s.context.NewPage() })
	if err != nil {
		return fmt.Errorf("identity of the browser: %w", firstLine(err))
	}
	defer func() { _ = do(closeLimit, func() error { return page.Close() }) }()
	folder, err := shown(page, "chrome://version", "#profile_path")
	if err != nil {
		return fmt.Errorf("the browser at %s does not tell its user data directory: %w", e.opts.CDPURL, err)
	}
	file := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(filepath.Dir(folder), idFile))}
	id, err := shown(page, file.String(), "body")
	if err != nil || id != want {
		return fmt.Errorf("the browser at %s is another login: it runs on %s, not on %s", e.opts.CDPURL, filepath.Dir(folder), e.opts.ProfileDir)
	}
	return nil
}

// shown is the text of an element of a page of the browser's own.
func shown(page playwright.Page, address, selector string) (string, error) {
	text, err := within(openLimit, func() (string, error) {
		if _, err := page.Goto(address, playwright.PageGotoOptions{Timeout: ms(lookLimit)}); err != nil {
			return "", err
		}
		return page.Locator(selector).InnerText(playwright.LocatorInnerTextOptions{Timeout: ms(lookLimit)})
	})
	return strings.TrimSpace(text), firstLine(err)
}
