package browser

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/integration/chatlab"
)

// person starts a browser as a person would, with a port for CDP, and returns its address.
func person(t *testing.T, profile string) string {
	t.Helper()
	_, url := personal(t, profile)
	return url
}

func personal(t *testing.T, profile string) (*exec.Cmd, string) {
	t.Helper()
	executable, err := Executable("")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(profile, 0o700))
	// Its own page of tabs is one of those that only a person who works on browsers switches on.
	require.NoError(t, os.WriteFile(filepath.Join(profile, "Local State"), []byte(`{"internal_only_uis_enabled":true}`), 0o600))
	cmd := exec.Command(executable, "--headless", "--no-sandbox", "--remote-debugging-port=0", "--no-first-run", "--user-data-dir="+profile)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "DevTools listening on ws://"); ok {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			host, _, _ := strings.Cut(address, "/")
			return cmd, "http://" + host
		}
	}
	t.Fatal("the browser did not tell its address")
	return nil, ""
}

// relay passes connections on to an address until they are cut.
type relay struct {
	mu    sync.Mutex
	conns []net.Conn
	url   string
}

func relayTo(t *testing.T, url string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	r := &relay{url: "http://" + listener.Addr().String()}
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				_ = in.Close()
				continue
			}
			r.mu.Lock()
			r.conns = append(r.conns, in, out)
			r.mu.Unlock()
			go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
			go func() { _, _ = io.Copy(in, out); _ = in.Close() }()
		}
	}()
	return r
}

func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

// attached is a lab whose browser belongs to a person.
func attached(t *testing.T) (*lab, *relay) { return attachedWith(t, func(*Options) {}) }

func attachedWith(t *testing.T, edit func(*Options)) (*lab, *relay) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser")
	}
	dir := tempDir(t)
	site, err := chatlab.Start(chatlab.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = site.Close() })
	r := relayTo(t, person(t, filepath.Join(dir, "own")))
	b, err := openBrowser(dir, site, "own", func(o *Options) { o.CDPURL = r.url; edit(o) })
	require.NoError(t, err)
	t.Cleanup(func() { closeBrowser(t, b) })
	return &lab{Server: site, browser: b, dir: dir}, r
}

func TestPublic_B06_ALostDevtoolsSocketIsOpenedAgain(t *testing.T) {
	l, r := attached(t)
	c := l.conversation(t, `otherwise: [{text: begun}, {gate: go}, {text: '`+valid+`'}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	done := l.observing(t, observeInput(c, fx))
	time.Sleep(500 * time.Millisecond)
	pages := len(l.browser.engine.live.context.Pages())
	r.cut()
	require.NoError(t, l.Release(c.ID, "go"))
	seen := <-done
	require.Equal(t, activities.TurnSettled, seen.Turn, "%+v", seen)
	require.Len(t, l.browser.engine.live.context.Pages(), pages, "our tab was found again, by its target and its name")
	require.Len(t, l.Record(c.ID), 1)
	for _, tb := range l.browser.tabs.open {
		require.True(t, tb.owned)
	}
}

func TestAPersonsTabIsUsedAndNeverClosed(t *testing.T) {
	l, _ := attached(t)
	c := l.conversation(t, `otherwise: [{text: '`+valid+`'}]`)
	s, err := l.browser.engine.session(t.Context())
	require.NoError(t, err)
	own, err := s.context.NewPage()
	require.NoError(t, err)
	_, err = own.Goto(c.URL)
	require.NoError(t, err)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	require.Len(t, l.browser.tabs.open, 1)
	for _, tb := range l.browser.tabs.open {
		require.False(t, tb.owned)
		require.False(t, l.browser.tabs.close(tb))
	}
	require.False(t, own.IsClosed())

	second, err := s.context.NewPage()
	require.NoError(t, err)
	_, err = second.Goto(c.URL)
	require.NoError(t, err)
	_, err = own.Goto("about:blank")
	require.NoError(t, err)
	third, err := s.context.NewPage()
	require.NoError(t, err)
	_, err = third.Goto(c.URL)
	require.NoError(t, err)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.DeferTabAmbiguous, r.Class, "%+v", r)
	require.Len(t, l.Record(c.ID), 1)
}

func TestAnotherLoginBehindThePortIsNotUsed(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a browser")
	}
	dir := tempDir(t)
	site, err := chatlab.Start(chatlab.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = site.Close() })
	url := person(t, filepath.Join(dir, "somebody else"))
	b, err := openBrowser(dir, site, "own", func(o *Options) { o.CDPURL = url })
	require.NoError(t, err)
	t.Cleanup(func() { closeBrowser(t, b) })
	l := &lab{Server: site, browser: b, dir: dir}
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendDeferred, r.Outcome)
	require.Equal(t, activities.DeferBrowserMissing, r.Class, "%+v", r)
	require.Contains(t, r.Detail, "another login")
	probe, err := b.Probe(context.Background(), activities.ProbeInput{ID: "p", Level: activities.ProbePage, Conversation: c})
	require.NoError(t, err)
	require.Equal(t, activities.DeferBrowserMissing, probe.Class)
}

// TestALoginIsProvenByTheFileInItsOwnDirectory: the path by which a directory is named does not matter, and a copy of the
// command line would not do.
func TestALoginIsProvenByTheFileInItsOwnDirectory(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a browser")
	}
	dir := tempDir(t)
	site, err := chatlab.Start(chatlab.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = site.Close() })
	real := filepath.Join(dir, "a login with spaces #1")
	require.NoError(t, os.MkdirAll(real, 0o700))
	require.NoError(t, os.Symlink(real, filepath.Join(dir, "link")))
	url := person(t, filepath.Join(dir, "link"))
	b, err := openBrowser(dir, site, filepath.Base(real), func(o *Options) { o.CDPURL = url })
	require.NoError(t, err)
	t.Cleanup(func() { closeBrowser(t, b) })
	s, err := b.engine.session(t.Context())
	require.NoError(t, err)
	require.Len(t, s.context.Pages(), 1, "the page that was asked is closed again")
	info, err := os.Stat(filepath.Join(real, idFile))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	// The same browser is another login as soon as the file says so.
	require.NoError(t, os.Remove(filepath.Join(real, idFile)))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o700))
	other, err := openBrowser(dir, site, "other", func(o *Options) { o.CDPURL = url })
	require.NoError(t, err)
	t.Cleanup(func() { closeBrowser(t, other) })
	_, err = other.engine.session(t.Context())
	require.ErrorIs(t, err, errNoBrowser)
	require.ErrorContains(t, err, "another login")
}

func TestTabsAreBounded(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(o *Options) { o.MaxTabs = 3 })
	busy := l.conversation(t, `otherwise: [{text: begun}, {gate: never}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(busy, fx, "words")).Outcome)
	in := observeInput(busy, fx)
	in.Until = time.Now().Add(time.Second)
	require.Equal(t, activities.TurnOpen, l.observe(t, in).Turn)
	first := ""
	for i := range 5 {
		c := l.conversation(t, fmt.Sprintf(`otherwise: [{text: 'answer %d'}]`, i))
		fx := effect()
		require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
		require.Equal(t, activities.TurnSettled, l.observe(t, observeInput(c, fx)).Turn)
		if i == 0 {
			first = boundKey(l.place(t, c).site, c.ID)
		}
	}
	require.Len(t, l.browser.tabs.open, 3)
	require.NotContains(t, l.browser.tabs.open, first)
	require.Contains(t, l.browser.tabs.open, boundKey(l.place(t, busy).site, busy.ID), "a tab that generates stays")
	watching := 0
	for _, c := range l.Conversations() {
		watching += c.Watching
	}
	require.Equal(t, 3, watching, "as the site sees it")
}

func (l *lab) place(t *testing.T, c activities.Conversation) place {
	t.Helper()
	p, err := l.browser.place(c)
	require.NoError(t, err)
	return p
}
