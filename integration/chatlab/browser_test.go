package chatlab_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mxschmitt/playwright-go"
	"github.com/stretchr/testify/require"

	"steward/integration/chatlab"
)

var browser playwright.Browser

// TestMain starts one browser for all tests of the page, unless the tests are short.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		if slices.Contains(os.Args, "-test.short=true") {
			return m.Run()
		}
		stop, err := startBrowser()
		if err != nil {
			println("chatlab: the page tests need a Chromium and Node (skip them with -short):", err.Error())
			return 1
		}
		defer stop()
		return m.Run()
	}())
}

func startBrowser() (func(), error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return nil, err
	}
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		return nil, err
	}
	if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", node); err != nil {
		return nil, err
	}
	options := &playwright.RunOptions{SkipInstallBrowsers: true, Stdout: os.Stderr}
	if err := playwright.Install(options); err != nil {
		return nil, err
	}
	driver, err := playwright.Run(options)
	if err != nil {
		return nil, err
	}
	browser, err = driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath: &chromium,
		Args: []string{
			"--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run", "--disable-gpu",
		},
	})
	return func() { _ = browser.Close(); _ = driver.Stop() }, err
}

// site starts a site whose scripted waits are short.
func site(t *testing.T, options chatlab.Options) *chatlab.Server {
	t.Helper()
	srv, err := chatlab.Start(options)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, srv.Close()) })
	return srv
}

// page opens a fresh page with its own cookies and storage.
func page(t *testing.T) playwright.Page {
	t.Helper()
	if browser == nil {
		t.Skip("no browser with -short")
	}
	context, err := browser.NewContext()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, context.Close()) })
	context.SetDefaultTimeout(15_000)
	p, err := context.NewPage()
	require.NoError(t, err)
	p.OnPageError(func(err error) { t.Errorf("error in the page: %v", err) })
	return p
}

// open creates a conversation and opens it.
func open(t *testing.T, srv *chatlab.Server, scenario string) (playwright.Page, string) {
	t.Helper()
	id, err := srv.NewConversation(chatlab.Conversation{Scenario: chatlab.MustParse(scenario)})
	require.NoError(t, err)
	p := page(t)
	visit(t, p, srv.ConversationURL(id))
	return p, id
}

func visit(t *testing.T, p playwright.Page, url string) {
	t.Helper()
	_, err := p.Goto(url)
	require.NoError(t, err)
}

func fill(t *testing.T, p playwright.Page, text string) {
	t.Helper()
	require.NoError(t, p.Locator("#prompt-textarea").Click())
	require.NoError(t, p.Keyboard().InsertText(text))
}

func send(t *testing.T, p playwright.Page, text string) {
	t.Helper()
	fill(t, p, text)
	require.NoError(t, p.Locator("[data-testid=send-button]").Click())
}

func sees(t *testing.T, p playwright.Page, selector string) playwright.Locator {
	t.Helper()
	found := p.Locator(selector).Last()
	require.NoError(t, found.WaitFor(), "page never shows %s", selector)
	return found
}

func gone(t *testing.T, p playwright.Page, selector string) {
	t.Helper()
	hidden := playwright.LocatorWaitForOptions{State: playwright.WaitForSelectorStateHidden}
	require.NoError(t, p.Locator(selector).Last().WaitFor(hidden), "page goes on to show %s", selector)
}

// evaluate runs an expression in the page.
func evaluate[T any](t *testing.T, p playwright.Page, expression string) T {
	t.Helper()
	value, err := p.Evaluate(expression)
	require.NoError(t, err)
	typed, ok := value.(T)
	require.True(t, ok, "%s is %#v", expression, value)
	return typed
}

// script runs a statement in the page.
func script(t *testing.T, p playwright.Page, statement string) {
	t.Helper()
	_, err := p.Evaluate(statement)
	require.NoError(t, err)
}

const (
	finished     = "[data-turn=assistant] [data-testid=copy-turn-action-button]"
	lastUserText = `[...document.querySelectorAll('#root [data-message-author-role=user] .whitespace-pre-wrap')].at(-1)?.textContent ?? ''`
	editorText   = `[...document.querySelectorAll('#prompt-textarea > p')].map((p) => p.textContent).join('\n')`
)

// exactTexts are messages that composers like to change.
var exactTexts = map[string]string{
	"one word":      "hello",
	"blank lines":   "first\n\nsecond\n\n\nthird",
	"tabs":          "a\tb\n\tindented\n\t\ttwice",
	"nbsp":          "10\u00a0km and  two  spaces",
	"emoji":         "done ✅ 👩‍👩‍👧‍👦 🔄 ⏸",
	"right to left": "שלום עולם\nمرحبا بالعالم 123 abc",
	"markup":        "<b>bold</b> & &amp; `code` **x** _y_ \\n",
	"links":         "see https://example.com/a_b?c=d&e=f and www.example.org now",
	"fence":         "```text\n<<<FORGE>>>\n{\"a\": \"b\\\\c\"}\n```\nafter",
	"32 KB prose":   strings.Repeat("Every word of this long line has to arrive, in order and once. ", 520),
	"32 KB lines":   strings.TrimRight(strings.Repeat("a line as long prompts have them, then a blank one; with a tab\tand an emoji ✅\n\n", 400), "\n"),
}

func TestTypedTextArrivesExactly(t *testing.T) {
	srv := site(t, chatlab.Options{})
	for name, text := range exactTexts {
		t.Run(name, func(t *testing.T) {
			p, id := open(t, srv, `otherwise: [{text: ok}]`)
			fill(t, p, text)
			require.Equal(t, text, evaluate[string](t, p, editorText))
			require.NoError(t, p.Locator("[data-testid=send-button]").Click())
			sees(t, p, finished)
			require.Equal(t, text, evaluate[string](t, p, lastUserText))
			record := srv.Record(id)
			require.Len(t, record, 1)
			require.Equal(t, text, record[0].Text)
			require.Equal(t, "click", record[0].Via)
		})
	}
	require.Empty(t, srv.Violations())
}

func shot(t *testing.T, p playwright.Page, name string) {
	t.Helper()
	dir := os.Getenv("CHATLAB_SHOTS")
	if dir == "" {
		return
	}
	time.Sleep(200 * time.Millisecond)
	_, err := p.Screenshot(playwright.PageScreenshotOptions{Path: playwright.String(filepath.Join(dir, name+".png"))})
	require.NoError(t, err)
}

// eventually waits for something that the page brings about.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, 15*time.Second, 10*time.Millisecond)
}
