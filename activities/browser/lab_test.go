package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/config/sites"
	"steward/integration/chatlab"
	"steward/workflows/run/receipt"
)

// lab is a fixture chat site and one real browser, shared by the tests of this package.
type lab struct {
	*chatlab.Server
	browser *Browser
	dir     string
}

const labProfile = `
site: chatlab
extends: chatgpt
version: 1
origins: [%s]
headed: false
settle: {looks: 3, stable: 600ms, extra: 3s, drift_after: 3s, reload_after: 4s}
timings: {send_gap: 0s, min_interval: 0s, cooldown: 1s, open: 10s, hydrate: 300ms, control: 3s, commit: 20s, address: 20s,
  look: 100ms, look_max: 500ms}
`

var shared = sync.OnceValues(func() (*lab, error) {
	dir, err := os.MkdirTemp("", "steward-browser-test-")
	if err != nil {
		return nil, err
	}
	return startLab(dir)
})

func startLab(dir string) (*lab, error) {
	site, err := chatlab.Start(chatlab.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	b, err := openBrowser(dir, site, "lab", func(*Options) {})
	if err != nil {
		return nil, err
	}
	return &lab{Server: site, browser: b, dir: dir}, nil
}

func openBrowser(dir string, site *chatlab.Server, name string, edit func(*Options)) (*Browser, error) {
	profiles := filepath.Join(dir, "sites")
	if err := os.MkdirAll(profiles, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(profiles, "chatlab.yaml"), fmt.Appendf(nil, labProfile, site.URL()), 0o600); err != nil {
		return nil, err
	}
	registry, err := sites.Load(profiles)
	if err != nil {
		return nil, err
	}
	opts := Options{
		Name: name, Sites: registry, ProfileDir: filepath.Join(dir, name), Arm: &armer{}, Log: slog.New(slog.DiscardHandler),
	}
	if testing.Verbose() {
		opts.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	edit(&opts)
	return Open(context.Background(), opts)
}

// used is the lab, once a test has used it.
var used atomic.Pointer[lab]

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // these tests wait for pages, they do not compute
		panic(err)
	}
	code := m.Run()
	if l := used.Load(); l != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		if err := l.browser.Close(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
		cancel()
		_ = l.Close()
		_ = os.RemoveAll(l.dir)
	}
	os.Exit(code)
}

func useLab(t *testing.T) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser")
	}
	l, err := shared()
	require.NoError(t, err)
	used.Store(l)
	return l
}

// hooked is a login of its own, with options of its own and a site of its own. Its tabs are in the browser that all share.
func hooked(t *testing.T, edit func(*Options)) *lab {
	t.Helper()
	common := useLab(t)
	l := newLab(t, edit)
	l.browser.engine = common.browser.engine
	t.Cleanup(func() {
		l.browser.stop()
		for _, tb := range l.browser.tabs.open {
			l.browser.tabs.close(tb)
		}
		require.NoError(t, errors.Join(l.browser.ledger.close(), l.browser.lock.Close()))
	})
	return l
}

// browsers bounds how many tests have a browser of their own at the same time.
var browsers = make(chan struct{}, 2)

// alone is hooked with a browser process of its own, for tests that hurt it.
func alone(t *testing.T, edit func(*Options)) *lab {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser")
	}
	browsers <- struct{}{}
	t.Cleanup(func() { <-browsers })
	l := newLab(t, edit)
	t.Cleanup(func() { closeBrowser(t, l.browser) })
	return l
}

func newLab(t *testing.T, edit func(*Options)) *lab {
	t.Helper()
	dir := tempDir(t)
	site, err := chatlab.Start(chatlab.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = site.Close() })
	b, err := openBrowser(dir, site, "own", edit)
	require.NoError(t, err)
	return &lab{Server: site, browser: b, dir: dir}
}

// profile writes the site's profile anew, with some of its text replaced by other text; it takes effect with the next call.
func (l *lab) profile(t *testing.T, changes ...string) {
	t.Helper()
	text := strings.NewReplacer(changes...).Replace(fmt.Sprintf(labProfile, l.URL()))
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, "sites", "chatlab.yaml"), []byte(text), 0o600))
}

func closeBrowser(t *testing.T, b *Browser) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, b.Close(ctx))
}

// armer is an Armer in memory.
type armer struct {
	mu    sync.Mutex
	beats []activities.SendProgress
	// answer decides each beat; nil accepts.
	answer func(activities.SendProgress) error
}

func (a *armer) Beat(_ context.Context, p activities.SendProgress) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.beats = append(a.beats, p)
	if a.answer != nil {
		return a.answer(p)
	}
	return nil
}

// conversation makes a conversation of a scenario.
func (l *lab) conversation(t *testing.T, scenario string) activities.Conversation {
	t.Helper()
	sc, err := chatlab.ParseScenario([]byte(scenario))
	require.NoError(t, err)
	id, err := l.NewConversation(chatlab.Conversation{Scenario: sc})
	require.NoError(t, err)
	return activities.Conversation{Site: "chatlab", Browser: l.browser.opts.Name, ID: id, URL: l.ConversationURL(id)}
}

var effects atomic.Int64

// effect is a new effect id.
func effect() string {
	return fmt.Sprintf("fx_%016x", time.Now().UnixNano()+effects.Add(1))
}

const taskID = "t_0123456789ab"

// prompt carries everything that the fixture site's receipts echo.
func prompt(c activities.Conversation, fx string, lines ...string) string {
	return strings.Join(append(lines,
		"conversation_id: "+c.ID, "task_id: "+taskID, "active_scope: goal:lab", marker(fx)), "\n")
}

func sendInput(c activities.Conversation, fx string, lines ...string) activities.SendInput {
	text, kind := prompt(c, fx, lines...), "enrollment"
	if c.NewKey != "" {
		kind = kindBootstrap
	}
	return activities.SendInput{
		TaskID: taskID, Conversation: c, EffectID: fx, Generation: 1, Kind: kind, Prompt: text, PromptDigest: digestOf(text),
	}
}

func observeInput(c activities.Conversation, fx string) activities.ObserveInput {
	return activities.ObserveInput{
		TaskID: taskID, Conversation: c, EffectID: fx, Until: time.Now().Add(40 * time.Second),
		Want: receipt.Want{ConversationID: c.ID, TaskID: taskID, Scope: "goal:lab", EffectID: fx},
	}
}

func (l *lab) send(t *testing.T, in activities.SendInput) activities.SendResult {
	t.Helper()
	r, err := l.browser.Send(t.Context(), in)
	require.NoError(t, err)
	return r
}

func (l *lab) observe(t *testing.T, in activities.ObserveInput) activities.ObserveResult {
	t.Helper()
	r, err := l.browser.Observe(t.Context(), in)
	require.NoError(t, err)
	return r
}

// tempDir is a folder that goes away with the test, also when a browser that was killed still writes into it for a moment.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "steward-browser-test-")
	require.NoError(t, err)
	t.Cleanup(func() {
		require.Eventually(t, func() bool { return os.RemoveAll(dir) == nil }, 10*time.Second, 50*time.Millisecond)
	})
	return dir
}
