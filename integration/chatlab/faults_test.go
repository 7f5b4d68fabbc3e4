package chatlab_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mxschmitt/playwright-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"steward/integration/chatlab"
)

func reload(t *testing.T, p playwright.Page) {
	t.Helper()
	_, err := p.Reload()
	require.NoError(t, err)
}

func release(t *testing.T, srv *chatlab.Server, id, gate string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	require.NoError(t, srv.AwaitGate(ctx, id, gate))
	require.NoError(t, srv.Release(id, gate))
}

// turnTexts are the texts of the mounted turns, without the words of the page.
const turnTexts = `[...document.querySelectorAll('#root [data-turn] .turn-body')].map((body) => body.innerText.trim()).join(' | ')`

func shows(t *testing.T, p playwright.Page, turns string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		got, err := p.Evaluate(turnTexts)
		require.NoError(c, err)
		require.Equal(c, turns, got)
	}, 15*time.Second, 20*time.Millisecond)
}

func TestClickFaults(t *testing.T) {
	for name, scenario := range map[string]string{
		"form replaced on click":       "replies: [{click: {replace_form: click}, steps: [{text: ok}]}]",
		"form replaced on pointerdown": "replies: [{click: {replace_form: pointerdown}, steps: [{text: ok}]}]",
		"page hangs":                   "replies: [{click: {freeze: 500ms}, steps: [{text: ok}]}]",
		"click ignored once":           "replies: [{click: {ignore: 1}, steps: [{text: ok}]}]",
	} {
		t.Run(name, func(t *testing.T) {
			srv := site(t, chatlab.Options{})
			p, id := open(t, srv, scenario)
			fill(t, p, "hello")
			//nolint:staticcheck // a locator finds the new form; the old element itself has to be held
			old, err := p.Locator("form").ElementHandle()
			require.NoError(t, err)
			click := playwright.LocatorClickOptions{Timeout: playwright.Float(3000)}
			err = p.Locator("[data-testid=send-button]").Click(click)
			t.Logf("the click says: %v", err)
			if name == "click ignored once" {
				eventually(t, func() bool { return len(srv.Events()) == 1 })
				require.Empty(t, srv.Record(id))
				require.Equal(t, "hello", evaluate[string](t, p, editorText))
				require.NoError(t, p.Locator("[data-testid=send-button]").Click())
			}
			shows(t, p, "hello | ok")
			if strings.HasPrefix(name, "form") {
				connected, err := old.Evaluate("(form) => form.isConnected", nil)
				require.NoError(t, err)
				require.Equal(t, false, connected)
			}
			require.Len(t, srv.Record(id), 1)
			require.Empty(t, srv.Violations())
			require.Empty(t, evaluate[string](t, p, editorText))
		})
	}
}

func TestDeliveryFaults(t *testing.T) {
	t.Run("hidden until a reload", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "replies: [{delivery: {hide: true}, steps: [{text: ok}]}, [{text: second}]]")
		send(t, p, "one")
		_, err := srv.Await(t.Context(), id, 1)
		require.NoError(t, err)
		send(t, p, "two")
		shows(t, p, "two | second")
		reload(t, p)
		shows(t, p, "one | ok | two | second")
	})
	t.Run("shown but lost", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "replies: [{delivery: {lose: true}}]")
		send(t, p, "one")
		shows(t, p, "one")
		require.Empty(t, srv.Record(id))
		reload(t, p)
		sees(t, p, "[data-testid=composer-speech-button]")
		shows(t, p, "")
	})
	t.Run("cut short, shown late", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, _ := open(t, srv, "replies: [{delivery: {truncate: 4, show_after: 300ms}, steps: [drop]}]")
		send(t, p, "one two")
		shows(t, p, "one")
	})
	t.Run("connection cut", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "replies: [{delivery: {cut: true}, steps: [{gate: go}, {text: ok}]}]")
		send(t, p, "one")
		sees(t, p, "[role=alert]:has-text('network error')")
		shows(t, p, "")
		reload(t, p)
		sees(t, p, "[data-testid=stop-button]")
		shows(t, p, "one | Thinking")
		release(t, srv, id, "go")
		shows(t, p, "one | ok")
		require.Len(t, srv.Record(id), 1)
	})
	for _, optimistic := range []string{"false", "true"} {
		t.Run("refused, optimistic "+optimistic, func(t *testing.T) {
			srv := site(t, chatlab.Options{})
			p, id := open(t, srv, "page: {optimistic: "+optimistic+"}\nreplies: [{delivery: {status: 429}}, [{text: ok}]]")
			send(t, p, "one")
			sees(t, p, "[role=dialog]:has-text('Too many requests')")
			require.NoError(t, p.Locator("[role=dialog] button").Click())
			gone(t, p, "[role=dialog]")
			require.Empty(t, srv.Record(id))
			if optimistic == "true" {
				require.Equal(t, 0, count(t, p, "[data-turn=user] [data-message-id]"))
				sees(t, p, "[data-turn=user] [role=alert]")
				reload(t, p)
				sees(t, p, "[data-testid=composer-speech-button]")
				shows(t, p, "")
			} else {
				require.Equal(t, "one", evaluate[string](t, p, editorText))
				require.NoError(t, p.Locator("[data-testid=send-button]").Click())
				shows(t, p, "one | ok")
			}
			require.Equal(t, "got_it", srv.Events()[1].Kind)
		})
	}
}

func TestAnswerFaults(t *testing.T) {
	t.Run("pause without signs, then more", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, `
replies:
- - text: I
  - pause: {gate: go, stop_button: false, busy: false}
  - more: " go on"
  - late: {text: " at last", node: new}
`)
		send(t, p, "one")
		sees(t, p, "[data-turn=assistant]:not([aria-busy]) .markdown")
		shows(t, p, "one | I")
		require.Equal(t, 0, count(t, p, "[data-testid=stop-button]"))
		require.Equal(t, 0, count(t, p, "[data-turn=assistant] [data-testid=copy-turn-action-button]"))
		release(t, srv, id, "go")
		shows(t, p, "one | I go on\n\nat last")
		sees(t, p, finished)
	})
	t.Run("stall", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "replies: [[{text: half}, stall, {more: ' and whole'}]]")
		send(t, p, "one")
		shows(t, p, "one | half")
		eventually(t, func() bool {
			turns, err := srv.Transcript(id)
			require.NoError(t, err)
			return turns[1].Done
		})
		sees(t, p, "form [data-testid=stop-button]")
		reload(t, p)
		shows(t, p, "one | half and whole")
		sees(t, p, finished)
	})
	t.Run("no action bar", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, _ := open(t, srv, "replies: [[{text: {in: bare, body: words}}, no_action_bar]]")
		send(t, p, "one")
		sees(t, p, "[data-message-author-role=assistant]:not(:has(.markdown)) p")
		gone(t, p, "[data-testid=stop-button]")
		require.Equal(t, 0, count(t, p, finished))
	})
	t.Run("retry by the page itself", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "replies: [{steps: [{text: begun}, {banner: {kind: error, auto_retry: 200ms}}], on_retry: [{text: ok}]}]")
		send(t, p, "one")
		shows(t, p, "one | ok")
		require.Len(t, srv.Record(id), 1)
	})
	t.Run("retry by hand", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "replies: [{steps: [{banner: error}], on_retry: [{text: ok}]}]")
		send(t, p, "one")
		require.NoError(t, p.Locator("[data-testid=regenerate-thread-error-button]").Click())
		shows(t, p, "one | ok")
		require.Len(t, srv.Record(id), 1)
	})
	t.Run("continue", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, _ := open(t, srv, "replies: [[{text: long}, {banner: continue_button}, {more: ' and longer'}]]")
		send(t, p, "one")
		require.NoError(t, p.Locator("button:has-text('Continue generating')").Click())
		shows(t, p, "one | long and longer")
		sees(t, p, finished)
	})
	t.Run("stop", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "replies: [[{think: 1h}, {text: never}], [{text: ok}]]")
		send(t, p, "one")
		require.NoError(t, p.Locator("form [data-testid=stop-button]").Click())
		sees(t, p, "[role=status]:has-text('Stopped thinking')")
		gone(t, p, "[data-testid=stop-button]")
		require.Equal(t, "stop", srv.Events()[0].Kind)
		send(t, p, "two")
		sees(t, p, finished)
		require.Len(t, srv.Record(id), 2)
	})
	t.Run("3 MB", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, _ := open(t, srv, "replies: [[{stream: {pieces: 10, every: 20ms}}, {text: '{{filler 3145728}}the end'}]]")
		send(t, p, "one")
		sees(t, p, finished)
		require.Greater(t, evaluate[int](t, p, "document.querySelector('.markdown').innerText.length"), 3<<20-20000)
		require.True(t, evaluate[bool](t, p, "document.querySelector('.markdown').innerText.endsWith('the end')"))
	})
}

func TestPageStates(t *testing.T) {
	history := "conversation: {history: [{role: user, text: old}, {role: assistant, text: older}]}\n"
	t.Run("signed out", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, history+"replies: [[{text: ok}, {state: {kind: login, composer: true}}]]")
		shows(t, p, "old | older")
		send(t, p, "one")
		sees(t, p, "button:has-text('Log in')")
		shows(t, p, "")
		reload(t, p)
		sees(t, p, "button:has-text('Log in')")
		require.Equal(t, 0, count(t, p, "[data-turn]"))
		require.Empty(t, srv.Violations())
		send(t, p, "two")
		shows(t, p, "two")
		require.Len(t, srv.Violations(), 1)
		require.True(t, srv.Record(id)[1].SignedOut)
		require.NoError(t, srv.SetState(id, chatlab.State{}))
		shows(t, p, "old | older | one | ok")
		require.NoError(t, srv.SetState("", chatlab.State{Kind: "login"}))
		gone(t, p, "#prompt-textarea")
	})
	t.Run("challenge for one load", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, _ := open(t, srv, history+"page: {state: {kind: challenge, loads: 1}}")
		title, err := p.Title()
		require.NoError(t, err)
		require.Contains(t, title, "Just a moment")
		require.Equal(t, 0, count(t, p, "#prompt-textarea"))
		reload(t, p)
		shows(t, p, "old | older")
	})
	t.Run("a limited reload ends on /", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, history)
		require.NoError(t, srv.SetState(id, chatlab.State{Kind: "rate_limit_on_load"}))
		reload(t, p)
		sees(t, p, "[role=dialog]:has-text('Too many requests')")
		require.Equal(t, srv.URL()+"/", p.URL())
	})
	t.Run("the usage dialog outlives its limit until a reload", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, history+"otherwise: [{text: ok}]")
		require.NoError(t, srv.SetState(id, chatlab.State{Kind: "usage_limit", For: 300 * time.Millisecond}))
		sees(t, p, "[role=dialog]:has-text('It resets at')")
		eventually(t, func() bool { return srv.Say(id, "hello") == nil })
		require.Equal(t, 1, count(t, p, "[role=dialog]"))
		reload(t, p)
		shows(t, p, "old | older | hello | ok")
		require.Equal(t, 0, count(t, p, "[role=dialog]"))
	})
	t.Run("consent", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, _ := open(t, srv, history+"page: {state: consent}\notherwise: [{text: ok}]")
		require.NoError(t, p.Locator("[role=dialog] button").Click())
		gone(t, p, "[role=dialog]")
		send(t, p, "one")
		shows(t, p, "old | older | one | ok")
	})
}

func TestPageVariants(t *testing.T) {
	t.Run("long chats are virtualised", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, _ := open(t, srv, "conversation: {filler_turns: 60}\npage: {virtual: 4, turn_element: section}\notherwise: [{text: ok}]")
		require.Equal(t, 2, count(t, p, "#server-rendered article"), "hidden copies")
		eventually(t, func() bool { return count(t, p, "section[data-turn]") == 4 })
		send(t, p, "one")
		sees(t, p, "section:last-child "+finished[len("[data-turn=assistant] "):])
		require.Equal(t, 4, count(t, p, "section[data-turn]"))
		script(t, p, "document.querySelector('.scroller').scrollTop = 0")
		eventually(t, func() bool { return strings.HasPrefix(evaluate[string](t, p, turnTexts), "Earlier question 1.") })
		require.Equal(t, 4, count(t, p, "section[data-turn]"))
	})
	t.Run("drafts", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "page: {draft: half a, keep_draft: true}\notherwise: [{text: ok}]")
		require.NoError(t, srv.Draft(id, " sentence"))
		eventually(t, func() bool { return evaluate[string](t, p, editorText) == "half a sentence" })
		reload(t, p)
		sees(t, p, "[data-testid=send-button]")
		require.Equal(t, "half a sentence", evaluate[string](t, p, editorText))
	})
	t.Run("slow and quiet page", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "page: {hydrate_after: 400ms, send_after: 200ms, enter: newline, autolink: true, "+
			"long_poll: true, decoys: [busy]}\notherwise: [{text: ok}]")
		require.Equal(t, 1, count(t, p, "textarea[name=prompt-textarea]"))
		require.Equal(t, 0, count(t, p, "#prompt-textarea"))
		fill(t, p, "see https://example.com/a")
		require.Equal(t, 0, count(t, p, "[data-testid=send-button]"))
		require.NoError(t, p.Keyboard().Press("Enter"))
		require.NoError(t, p.Keyboard().InsertText("and b"))
		sees(t, p, "#prompt-textarea a[href='https://example.com/a']")
		sees(t, p, "nav [aria-busy=true]")
		require.NoError(t, p.Locator("[data-testid=send-button]").Click())
		sees(t, p, finished)
		require.Equal(t, "see https://example.com/a\nand b", srv.Record(id)[0].Text)
	})
	t.Run("two tabs, a reload while it streams, another answer", func(t *testing.T) {
		srv := site(t, chatlab.Options{})
		p, id := open(t, srv, "otherwise: [{text: half}, {gate: go}, {more: ' whole'}]")
		other := page(t)
		visit(t, other, srv.ConversationURL(id))
		sees(t, other, "[data-testid=composer-speech-button]")
		send(t, p, "one")
		shows(t, other, "one | half")
		reload(t, p)
		shows(t, p, "one | half")
		release(t, srv, id, "go")
		shows(t, p, "one | half whole")
		shows(t, other, "one | half whole")
		require.NoError(t, srv.Regenerate(id, chatlab.MustParse("otherwise: [{text: new}]").Otherwise))
		shows(t, p, "one | new")
		require.NoError(t, srv.Edit(id, "two"))
		shows(t, p, "two | half whole")
	})
}
