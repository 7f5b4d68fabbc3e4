package browser

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mxschmitt/playwright-go"
)

// Bounds of the calls that start and end a browser.
const (
	startLimit = 60 * time.Second
	stopLimit  = 10 * time.Second
)

// errNoBrowser is wrapped by errors that say why no browser answers.
var errNoBrowser = errors.New("no browser")

// engine is the one connection to the one browser of a login: started on first use, and again after it was lost.
type engine struct {
	opts Options
	log  *slog.Logger

	turn   chan struct{} // held while live is read, made or ended
	live   *session
	starts int
	closed bool
}

func newEngine(opts Options, log *slog.Logger) *engine {
	return &engine{opts: opts, log: log, turn: make(chan struct{}, 1)}
}

// session is one connection. It is replaced as a whole.
type session struct {
	playwright *playwright.Playwright
	driver     process
	browser    process // zero over CDP
	context    playwright.BrowserContext
	number     int
	dead       atomic.Bool
	ended      sync.Once
	crashed    sync.Map // of pages
}

// lives tells whether the connection can still be used.
func (s *session) lives() bool { return !s.dead.Load() && s.driver.lives() }

// session returns the live connection, or makes one.
func (e *engine) session(ctx context.Context) (*session, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if e.closed {
		return nil, fmt.Errorf("%w: the worker stops", errNoBrowser)
	}
	if e.live != nil && e.live.lives() {
		return e.live, nil
	}
	if e.live != nil {
		e.end(e.live)
		e.live = nil
	}
	began := time.Now()
	s, err := e.start(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoBrowser, err)
	}
	e.starts++
	s.number = e.starts
	e.live = s
	e.log.Info("browser is ready", "pid", s.browser.PID, "start", s.number, "took", time.Since(began).Round(time.Millisecond))
	return s, nil
}

// watch notes when a page crashes. A crashed page still tells its address, but is of no use.
func (s *session) watch(page playwright.Page) {
	page.OnCrash(func(playwright.Page) { s.crashed.Store(page, true) })
}

// kill ends a connection that does not answer any more; the next use makes a new one.
func (e *engine) kill(s *session, why error) {
	if !s.dead.Swap(true) {
		e.log.Warn("browser connection is given up", "reason", why)
	}
	s.ended.Do(func() { e.force(s) })
}

func (e *engine) close() {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	e.closed = true
	if e.live != nil {
		e.live.dead.Store(true)
		e.end(e.live)
		e.live = nil
	}
}

func (e *engine) start(ctx context.Context) (*session, error) {
	if e.opts.CDPURL == "" {
		if err := endLeftover(ctx, e.opts.ProfileDir); err != nil {
			return nil, err
		}
		if err := freeProfile(ctx, e.opts.ProfileDir); err != nil {
			return nil, err
		}
	}
	pw, err := startDriver()
	if err != nil {
		return nil, err
	}
	s := &session{playwright: pw, driver: process{PID: pw.Pid(), Started: started(pw.Pid())}}
	if e.opts.CDPURL == "" {
		err = e.launch(s)
	} else {
		err = e.attach(s)
	}
	if err != nil {
		e.end(s)
		return nil, err
	}
	s.context.SetDefaultTimeout(10_000)
	s.context.OnClose(func(playwright.BrowserContext) { s.dead.Store(true) })
	s.context.OnPage(s.watch)
	for _, page := range s.context.Pages() {
		s.watch(page)
	}
	return s, nil
}

// driverMu guards the environment variable that names Node to Playwright.
var driverMu sync.Mutex

// startDriver starts Playwright's driver with the Node on PATH.
func startDriver() (*playwright.Playwright, error) {
	driverMu.Lock()
	defer driverMu.Unlock()
	if os.Getenv("PLAYWRIGHT_NODEJS_PATH") == "" {
		node, err := exec.LookPath("node")
		if err != nil {
			return nil, fmt.Errorf("Node.js is needed to drive a browser and is not on PATH: %w", err)
		}
		if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", node); err != nil {
			return nil, err
		}
	}
	options := &playwright.RunOptions{SkipInstallBrowsers: true, Verbose: false, Stderr: os.Stderr, Logger: slog.New(slog.DiscardHandler)}
	if err := do(5*time.Minute, func() error { return playwright.Install(options) }); err != nil {
		return nil, fmt.Errorf("Playwright driver: %w", err)
	}
	pw, err := within(startLimit, func() (*playwright.Playwright, error) { return playwright.Run(options) })
	if err != nil {
		return nil, fmt.Errorf("Playwright driver: %w", err)
	}
	return pw, nil
}

func (e *engine) launch(s *session) error {
	executable, err := Executable(e.opts.Executable)
	if err != nil {
		return err
	}
	options := playwright.BrowserTypeLaunchPersistentContextOptions{
		ExecutablePath:  &executable,
		Headless:        playwright.Bool(!e.opts.Headed),
		ChromiumSandbox: playwright.Bool(!e.opts.NoSandbox && os.Geteuid() != 0),
		Args: []string{
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-quic",
		},
		Env:             environment(),
		AcceptDownloads: playwright.Bool(false),
		Timeout:         ms(startLimit),
		// The worker's own signals end the browser; it is closed in order.
		HandleSIGINT: playwright.Bool(false), HandleSIGTERM: playwright.Bool(false), HandleSIGHUP: playwright.Bool(false),
	}
	if e.opts.Headed {
		options.NoViewport = playwright.Bool(true)
	} else {
		options.Viewport = &playwright.Size{Width: 1280, Height: 900}
	}
	s.context, err = within(startLimit+5*time.Second, func() (playwright.BrowserContext, error) {
		return s.playwright.Chromium.LaunchPersistentContext(e.opts.ProfileDir, options)
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", executable, firstLine(err))
	}
	if s.browser, err = browserProcess(s.context.Browser()); err != nil {
		return err
	}
	return writeJSON(ownProcess(e.opts.ProfileDir), s.browser)
}

// browserProcess asks the browser for its own process id.
func browserProcess(b playwright.Browser) (process, error) {
	if b == nil {
		return process{}, errors.New("the browser does not tell its process")
	}
	return within(10*time.Second, func() (process, error) {
		cdp, err := b.NewBrowserCDPSession()
		if err != nil {
			return process{}, err
		}
		defer func() { _ = cdp.Detach() }()
		answer, err := cdp.Send("SystemInfo.getProcessInfo", nil)
		if err != nil {
			return process{}, err
		}
		fields, _ := answer.(map[string]any)
		list, _ := fields["processInfo"].([]any)
		for _, one := range list {
			info, _ := one.(map[string]any)
			if info["type"] == "browser" {
				pid := int(number(info["id"]))
				return process{PID: pid, Started: started(pid)}, nil
			}
		}
		return process{}, errors.New("the browser does not tell its process")
	})
}

func number(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int:
		return float64(n)
	}
	return 0
}

// end closes a connection in order, and by force what does not close. A browser over CDP stays open.
func (e *engine) end(s *session) {
	s.ended.Do(func() {
		if s.context != nil && e.opts.CDPURL == "" && s.driver.lives() {
			if err := do(stopLimit, func() error { return s.context.Close() }); err != nil && !errors.Is(err, playwright.ErrTargetClosed) {
				e.log.Debug("browser does not close in order", "error", firstLine(err))
			}
		}
		if err := do(stopLimit, s.playwright.Stop); err != nil {
			e.log.Debug("browser driver does not end in order", "error", firstLine(err))
		}
		e.force(s)
	})
}

// force ends the processes of a connection.
func (e *engine) force(s *session) {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	err := errors.Join(s.driver.end(ctx), s.browser.end(ctx))
	_ = do(stopLimit, s.playwright.Stop) // reaps the driver; that it was killed is no news
	if err != nil {
		e.log.Error("browser process is left over", "error", err)
		return
	}
	if s.browser.PID != 0 {
		_ = os.Remove(ownProcess(e.opts.ProfileDir))
	}
}

// passed are the variables that a browser needs to show itself, speak the user's language and reach the network.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LANG", "LANGUAGE", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY",
	"XDG_RUNTIME_DIR", "XDG_SESSION_TYPE", "DBUS_SESSION_BUS_ADDRESS", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	"http_proxy", "https_proxy", "no_proxy",
}

func environment() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	return env
}

// firstLine shortens Playwright's errors, which carry their call logs.
func firstLine(err error) error {
	if err == nil {
		return nil
	}
	line, _, cut := strings.Cut(err.Error(), "\n")
	if !cut {
		return err
	}
	return shortError{line, err}
}

type shortError struct {
	text string
	err  error
}

func (e shortError) Error() string { return e.text }
func (e shortError) Unwrap() error { return e.err }
