package browser

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mxschmitt/playwright-go"
)

var (
	errAmbiguous = errors.New("more than one tab shows the conversation")
	errNoRoom    = errors.New("every tab is in use")
	// errUnreachable is wrapped by errors of a page that could not be loaded.
	errUnreachable = errors.New("the site does not answer")
)

// tab is one page that shows one conversation. Whoever holds the conversation's lease uses it alone.
type tab struct {
	page    playwright.Page
	session *session
	key     string
	owned   bool
	used    time.Time
	// run is the workflow that it was used for last; asked is when it was last asked whether it still needs the tab.
	run   string
	asked time.Time
	// generating is what the last look saw.
	generating atomic.Bool
	// broken: the page does not answer, or is closed.
	broken atomic.Bool
	// fresh: loaded by this lease.
	fresh bool
}

// lost tells that the page is of no use any more.
func (t *tab) lost() bool {
	_, crashed := t.session.crashed.Load(t.page)
	return crashed || t.broken.Load() || t.page.IsClosed() || !t.session.lives()
}

// tabs keeps one tab per conversation, and the file that tells after a restart which tabs are ours. Tabs are disposable:
// losing one changes no run. (Disposable browser resources.)
type tabs struct {
	browser *Browser
	path    string

	mu      sync.Mutex
	records map[string]*record
	open    map[string]*tab
	opening int
	adopted int // the session whose pages were compared with the records
}

// ensure returns the conversation's tab: the owned one, else the only one that shows it, else a new one. The caller holds
// the conversation's lease.
func (t *tabs) ensure(ctx context.Context, p place) (*tab, error) {
	s, err := t.browser.engine.session(ctx)
	if err != nil {
		return nil, err
	}
	t.adopt(s)
	t.mu.Lock()
	tb := t.open[p.key]
	if tb != nil && (tb.session != s || tb.lost()) {
		delete(t.open, p.key)
		t.mu.Unlock()
		t.close(tb)
		tb = nil
	} else {
		t.mu.Unlock()
	}
	if tb != nil && !p.unbound() && !p.shows(tb.page.URL()) {
		if tb.owned {
			return tb, errors.Join(t.own(tb, ownerOf(ctx)), t.load(ctx, tb, p.url))
		}
		t.forget(tb) // a user's tab that went elsewhere
		tb = nil
	}
	if tb == nil {
		if tb, err = t.find(s, p); err != nil {
			return nil, err
		}
	}
	if tb != nil {
		t.mu.Lock()
		tb.used = time.Now()
		t.mu.Unlock()
		tb.fresh = false
		return tb, t.own(tb, ownerOf(ctx))
	}
	return t.create(ctx, s, p)
}

// find looks for the conversation in every tab of the browser.
func (t *tabs) find(s *session, p place) (*tab, error) {
	if p.unbound() {
		return nil, nil
	}
	var matches []playwright.Page
	for _, page := range s.context.Pages() {
		if _, crashed := s.crashed.Load(page); !crashed && !page.IsClosed() && p.shows(page.URL()) {
			matches = append(matches, page)
		}
	}
	switch len(matches) {
	case 0:
		return nil, nil
	case 1:
	default:
		return nil, fmt.Errorf("%w: %d tabs", errAmbiguous, len(matches))
	}
	t.mu.Lock()
	for _, other := range t.open {
		if other.page == matches[0] {
			t.mu.Unlock()
			return other, t.bind(other, p.key, p.url)
		}
	}
	tb := &tab{page: matches[0], session: s, key: p.key}
	t.open[p.key] = tb
	t.mu.Unlock()
	return tb, nil
}

// create opens a tab on the conversation. The record is written first, so that a failed open is found again.
func (t *tabs) create(ctx context.Context, s *session, p place) (*tab, error) {
	if err := t.makeRoom(ctx, p.key); err != nil {
		return nil, err
	}
	tb, err := t.newTab(s, p, ownerOf(ctx))
	t.mu.Lock()
	t.opening-- // from here on it counts as open, or not at all
	if err == nil {
		t.open[p.key] = tb
	}
	t.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return tb, t.load(ctx, tb, p.url)
}

func (t *tabs) newTab(s *session, p place, run string) (*tab, error) {
	token := "steward-" + rand.Text()
	if err := t.change(p.key, func(r *record) { r.URL, r.Token, r.Target, r.Run = p.url, token, "", run }); err != nil {
		return nil, err
	}
	page, err := within(openLimit, func() (playwright.Page, error) { return s.context.NewPage() })
	if err != nil {
		if errors.Is(err, errHung) || errors.Is(err, playwright.ErrTargetClosed) {
			t.browser.engine.kill(s, err)
		}
		return nil, fmt.Errorf("open a tab: %w", firstLine(err))
	}
	return &tab{page: page, session: s, key: p.key, owned: true, used: time.Now(), run: run}, nil
}

// Bounds of opening and closing a tab.
const (
	openLimit  = 20 * time.Second
	closeAgain = time.Second
	closeLimit = 15 * time.Second // past it the whole browser is given up, with everything in it: busy is not hung
)

// load navigates an owned tab to an address of its site and marks it as ours.
func (t *tabs) load(ctx context.Context, tb *tab, url string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tb.fresh = true
	_, err := within(openLimit+5*time.Second, func() (playwright.Response, error) {
		return tb.page.Goto(url, playwright.PageGotoOptions{Timeout: ms(openLimit), WaitUntil: playwright.WaitUntilStateDomcontentloaded})
	})
	if err != nil {
		return unreachable(tb.failed("open "+url, err))
	}
	return t.mark(tb)
}

// mark puts the token into the tab's name and its target id into the tab file.
func (t *tabs) mark(tb *tab) error {
	token := t.record(tb.key).Token
	target, err := within(lookLimit, func() (string, error) {
		if _, err := tb.page.Evaluate("(token) => { window.name = token }", token); err != nil {
			return "", err
		}
		return targetOf(tb.session, tb.page)
	})
	if err != nil {
		return tb.failed("mark the tab", err)
	}
	return t.change(tb.key, func(r *record) { r.Target = target })
}

func targetOf(s *session, page playwright.Page) (string, error) {
	cdp, err := s.context.NewCDPSession(page)
	if err != nil {
		return "", err
	}
	defer func() { _ = cdp.Detach() }()
	answer, err := cdp.Send("Target.getTargetInfo", nil)
	if err != nil {
		return "", err
	}
	fields, _ := answer.(map[string]any)
	info, _ := fields["targetInfo"].(map[string]any)
	id, _ := info["targetId"].(string)
	return id, nil
}

// reload loads the conversation afresh. A user's own tab is reloaded too: it shows the same conversation again.
func (t *tabs) reload(ctx context.Context, tb *tab) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	tb.fresh = true
	_, err := within(openLimit+5*time.Second, func() (playwright.Response, error) {
		return tb.page.Reload(playwright.PageReloadOptions{Timeout: ms(openLimit), WaitUntil: playwright.WaitUntilStateDomcontentloaded})
	})
	if err != nil {
		return unreachable(tb.failed("reload", err))
	}
	return nil
}

// unreachable marks the failure of a navigation that is the site's, and not that of a page which is gone or hangs.
func unreachable(err error) error {
	if errors.Is(err, errPageGone) || errors.Is(err, errHung) {
		return err
	}
	return fmt.Errorf("%w: %w", errUnreachable, err)
}

// makeRoom reserves a place for one more owned tab, and closes the one used longest ago that nobody uses and that does not
// generate. A send waits a moment for a look to give one back.
func (t *tabs) makeRoom(ctx context.Context, key string) error {
	deadline := time.Now()
	if t.browser.pool.sends(key) {
		deadline = deadline.Add(openPatience)
	}
	for {
		t.mu.Lock()
		owned, oldest := t.candidates()
		if owned+t.opening < t.browser.opts.MaxTabs {
			t.opening++
			t.mu.Unlock()
			return nil
		}
		if oldest != nil {
			delete(t.open, oldest.key)
		}
		t.mu.Unlock()
		if oldest != nil {
			t.close(oldest)
			continue
		}
		if time.Now().After(deadline) {
			return errNoRoom
		}
		if err := sleep(ctx, pace); err != nil {
			return err
		}
	}
}

// candidates counts the owned tabs and picks the one to close next: a lost one, else the one used longest ago.
func (t *tabs) candidates() (owned int, next *tab) {
	for _, tb := range t.open {
		if !tb.owned {
			continue
		}
		owned++
		switch {
		case t.browser.pool.leased(tb.key):
		case tb.lost():
			next = tb
		case t.keep(tb) || next != nil && (next.lost() || next.used.Before(tb.used)):
		default:
			next = tb
		}
	}
	return owned, next
}

// keep tells that closing a tab would lose something: an answer being written, or a conversation without an address. The
// caller holds t.mu.
func (t *tabs) keep(tb *tab) bool {
	return tb.generating.Load() || strings.HasPrefix(tb.key, unboundPrefix) && t.sent(tb)
}

// sent tells whether a message may have been sent from a tab.
func (t *tabs) sent(tb *tab) bool {
	r := t.records[tb.key]
	return r == nil || tb.page.URL() != r.URL || r.Note != nil && t.browser.ledger.holds(r.Note.Effect)
}

// drop closes a tab that does not answer; when even that hangs, the whole browser is given up.
func (t *tabs) drop(tb *tab) {
	t.forget(tb)
	t.close(tb)
}

func (t *tabs) forget(tb *tab) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open[tb.key] == tb {
		delete(t.open, tb.key)
	}
}

// close closes an owned tab and tells whether it is closed now.
func (t *tabs) close(tb *tab) bool {
	if tb.page.IsClosed() {
		return true
	}
	if !tb.owned {
		return false
	}
	tb.broken.Store(true)
	closed := make(chan error, 1)
	go func() { closed <- tb.page.Close() }()
	again := time.AfterFunc(closeAgain, func() {
		if err := tb.closeTarget(); err != nil {
			t.browser.log.Debug("close a tab once more", "error", err)
		}
	})
	defer again.Stop()
	select {
	case err := <-closed:
		return err == nil || tb.page.IsClosed()
	case <-time.After(closeLimit):
		t.browser.engine.kill(tb.session, fmt.Errorf("close a tab: %w", errHung))
		return true
	}
}

// closeTarget asks the browser itself to close a tab that Playwright has asked it to close: Chromium forgets that when it comes just as
// the error page of a failed navigation takes the place of the page.
func (tb *tab) closeTarget() error {
	return do(lookLimit, func() error {
		target, err := targetOf(tb.session, tb.page)
		if err != nil {
			return err
		}
		cdp, err := tb.session.context.Browser().NewBrowserCDPSession()
		if err != nil {
			return err
		}
		defer func() { _ = cdp.Detach() }()
		_, err = cdp.Send("Target.closeTarget", map[string]any{"targetId": target})
		return err
	})
}

// adopt finds our tabs again in a browser that outlived us: target id and window.name must both match the tab file.
func (t *tabs) adopt(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.adopted == s.number {
		return
	}
	t.adopted = s.number
	t.open = map[string]*tab{}
	if t.browser.opts.CDPURL == "" {
		return
	}
	for _, page := range s.context.Pages() {
		target, err := within(lookLimit, func() (string, error) { return targetOf(s, page) })
		if err != nil || target == "" {
			continue
		}
		for key, r := range t.records {
			if r.Target != target || r.Token == "" {
				continue
			}
			name, err := within(lookLimit, func() (any, error) { return page.Evaluate("() => window.name") })
			if err == nil && name == r.Token {
				t.open[key] = &tab{page: page, session: s, key: key, owned: true, used: r.Used, run: r.Run}
			}
		}
	}
}
