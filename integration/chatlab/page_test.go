package chatlab_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mxschmitt/playwright-go"
	"github.com/stretchr/testify/require"

	"steward/integration/chatlab"
)

const prompt = `Please go on.

conversation_id: 6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e
task_id: t_0123456789ab
active_scope: goal:orders-green
source_effect_id: fx_0123456789abcdef
[steward fx_0123456789abcdef]`

func TestDemoConversation(t *testing.T) {
	dir := t.TempDir()
	srv := site(t, chatlab.Options{Dir: dir, Speed: 4})
	demo, err := chatlab.LoadScenario("demo")
	require.NoError(t, err)
	id, err := srv.NewConversation(chatlab.Conversation{Scenario: demo})
	require.NoError(t, err)
	p := page(t)
	visit(t, p, srv.ConversationURL(id))
	sees(t, p, "[data-testid=composer-speech-button]")
	shot(t, p, "demo-0")
	for turn := 1; turn <= 3; turn++ {
		fill(t, p, prompt)
		if turn == 1 {
			shot(t, p, "demo-typed")
		}
		require.NoError(t, p.Locator("[data-testid=send-button]").Click())
		sees(t, p, "form [data-testid=stop-button]")
		require.Equal(t, 0, count(t, p, "[data-testid=send-button]"))
		if turn == 1 {
			sees(t, p, "[aria-busy=true] .tool-card")
			shot(t, p, "demo-streaming")
		}
		gone(t, p, "form [data-testid=stop-button]")
		require.Equal(t, 2+2*turn, count(t, p, "#root [data-testid^=conversation-turn-]"))
		require.Equal(t, 0, count(t, p, "article[aria-busy]"))
		sees(t, p, "article:last-child [data-testid=copy-turn-action-button]")
		block := evaluate[string](t, p, `[...document.querySelectorAll('#root .markdown code')].at(-1).innerText`)
		require.Regexp(t, `^<<<FORGE_WORKFLOW_SUPERVISOR_V1>>>\n\{.*"source_effect_id":"fx_0123456789abcdef".*\}\n<<<END`, block)
		if turn == 1 {
			require.NoFileExists(t, filepath.Join(dir, "REPORT.md"))
		}
	}
	require.FileExists(t, filepath.Join(dir, "REPORT.md"))
	require.Equal(t, prompt, evaluate[string](t, p, lastUserText))
	shot(t, p, "demo-3")

	before := evaluate[string](t, p, `document.querySelector('#root .turns').innerText`)
	_, err = p.Reload()
	require.NoError(t, err)
	sees(t, p, finished)
	require.Equal(t, before, evaluate[string](t, p, `document.querySelector('#root .turns').innerText`))
	require.Len(t, srv.Record(id), 3)
	require.Empty(t, srv.Violations())
}

func count(t *testing.T, p playwright.Page, selector string) int {
	t.Helper()
	n, err := p.Locator(selector).Count()
	require.NoError(t, err)
	return n
}

func TestDOMOfATurn(t *testing.T) {
	srv := site(t, chatlab.Options{})
	p, _ := open(t, srv, `
replies:
- - think: {for: 1ms, seconds: 12}
  - tool: {name: command, output: ok}
  - text: |
      Look:

      `+"```json\n      {\"a\": 1,\n      \"b\": [2]}\n      ```"+`
`)
	require.Equal(t, 1, count(t, p, "textarea[name=prompt-textarea]"))
	require.Equal(t, 1, count(t, p, "div#prompt-textarea.ProseMirror[contenteditable=true]"))
	send(t, p, "hello")
	sees(t, p, finished)
	require.Equal(t, 1, count(t, p, "article[data-testid=conversation-turn-1][data-turn=user][data-turn-id] "+
		"[data-message-author-role=user][data-message-id]"))
	require.Equal(t, 2, count(t, p, "article[data-testid=conversation-turn-2] > * > [data-message-author-role=assistant][data-message-id]"))
	require.Equal(t, 1, count(t, p, "[data-message-author-role=tool][data-message-id]"))
	require.Equal(t, "Thought for 12s", evaluate[string](t, p, `document.querySelector('.thought').textContent`))
	require.Equal(t, 1, count(t, p, "pre .code-head button"))
	require.Equal(t, 1, count(t, p, "pre code br"))
	require.Equal(t, `{"a": 1,"b": [2]}`, evaluate[string](t, p, `document.querySelector('pre code').textContent`))
	require.Equal(t, "{\"a\": 1,\n\"b\": [2]}", evaluate[string](t, p, `document.querySelector('pre code').innerText`))
}

func TestAddressOfANewChat(t *testing.T) {
	srv := site(t, chatlab.Options{})
	require.NoError(t, srv.SetNew("", chatlab.MustParse("page: {provisional: 700ms}\notherwise: [{text: hello}]")))
	project := "g-p-0123456789abcdef0123456789abcdef-orders"
	require.NoError(t, srv.SetNew(project, chatlab.MustParse("page: {provisional: 0s}\notherwise: [{text: project}]")))

	p := page(t)
	visit(t, p, srv.URL()+"/")
	shot(t, p, "new-chat")
	send(t, p, "first")
	require.NoError(t, p.WaitForURL(regexp.MustCompile(`/c/WEB:[0-9a-f-]{36}$`)))
	sees(t, p, finished)
	durable := regexp.MustCompile(`/c/[0-9a-f]{8}-[0-9a-f-]{27}$`)
	require.NoError(t, p.WaitForURL(durable))
	id := p.URL()[strings.LastIndex(p.URL(), "/")+1:]
	require.Len(t, srv.Record(id), 1)
	_, err := p.Reload()
	require.NoError(t, err)
	sees(t, p, finished)

	visit(t, p, srv.URL()+"/g/"+project+"/project")
	send(t, p, "in the project")
	require.NoError(t, p.WaitForURL(regexp.MustCompile(`/g/`+project+durable.String())))
	sees(t, p, finished)
	id = p.URL()[strings.LastIndex(p.URL(), "/")+1:]
	require.Equal(t, p.URL(), srv.ConversationURL(id))

	visit(t, p, srv.URL()+"/g/"+project+"/project")
	shot(t, p, "project")
	require.Equal(t, 1, count(t, p, "main .listed a"))
	require.Equal(t, 2, count(t, p, "nav #history a"))
	visit(t, p, srv.URL()+"/g/g-p-0123456789abcdef0123456789abcdef/c/"+id) // a route without the slug
	sees(t, p, finished)
	visit(t, p, srv.URL()+"/g/g-p-ffffffffffffffffffffffffffffffff-other/c/"+id)
	sees(t, p, "[role=alert]:has-text('Unable to load conversation')")
	require.Empty(t, srv.Violations())
}

func TestLanguages(t *testing.T) {
	srv := site(t, chatlab.Options{})
	for language, words := range map[string][2]string{
		"en": {"Too many requests", "Got it"},
		"de": {"Zu viele Anfragen", "Verstanden"},
		"zh": {"请求过多", "知道了"},
		"ja": {"リクエストが多すぎます", "了解"},
	} {
		p, id := open(t, srv, "page: {language: "+language+"}\notherwise: [{text: ok}]")
		require.Equal(t, language, evaluate[string](t, p, "document.documentElement.lang"))
		send(t, p, "hello")
		sees(t, p, finished)
		require.NoError(t, srv.SetState(id, chatlab.State{Kind: "rate_limit"}))
		sees(t, p, "[role=dialog]:has-text('"+words[0]+"') button:has-text('"+words[1]+"')")
	}
}

func TestWhoDoesNotClickSendIsCaught(t *testing.T) {
	srv := site(t, chatlab.Options{})
	scenario := "page: {decoys: [submit, stop]}\notherwise: [{text: ok}]"
	for _, c := range []struct{ name, via, violation string }{
		{"enter", "enter", "submitted by enter"},
		{"script", "script", "submitted by script"},
		{"form", "form", "submitted by form"},
		{"keyboard", "keyboard", "submitted by keyboard"},
		{"voice", "", "the voice button was clicked"},
		{"decoy submit", "", "the decoy submit button was clicked"},
		{"decoy stop", "click", "a stop button outside the composer was clicked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, id := open(t, srv, scenario)
			act := func(err error) { require.NoError(t, err) }
			if c.name == "voice" {
				act(p.Locator("[data-testid=composer-speech-button]").Click())
			} else {
				fill(t, p, "hello")
			}
			switch c.name {
			case "enter":
				act(p.Keyboard().Press("Enter"))
			case "script":
				script(t, p, "document.querySelector('[data-testid=send-button]').click()")
			case "form":
				script(t, p, "document.querySelector('form').requestSubmit()")
			case "keyboard":
				act(p.Locator("[data-testid=send-button]").Focus())
				act(p.Keyboard().Press("Space"))
			case "decoy submit":
				act(p.Locator("form button[type=submit]").First().Click())
			case "decoy stop":
				act(p.Locator("[data-testid=send-button]").Click())
				sees(t, p, finished)
				act(p.Locator("[data-testid=stop-button]").Click())
			}
			eventually(t, func() bool {
				return strings.Contains(strings.Join(srv.Violations(), "\n"), id+": "+c.violation)
			})
			if c.via != "" {
				got, err := srv.Await(t.Context(), id, 1)
				require.NoError(t, err)
				require.Equal(t, c.via, got[0].Via)
			}
		})
	}
}

func TestShots(t *testing.T) {
	if os.Getenv("CHATLAB_SHOTS") == "" {
		t.Skip("set CHATLAB_SHOTS to a folder for screenshots")
	}
	srv := site(t, chatlab.Options{})
	for _, kind := range []string{"login", "consent", "challenge", "rate_limit", "usage_limit", "conversation_limit", "disconnected"} {
		p, _ := open(t, srv, "conversation: {history: [{role: user, text: hello}, {role: assistant, text: Hello there.}]}\n"+
			"page: {state: {kind: "+kind+", composer: true, for: 1h}}")
		shot(t, p, "state-"+kind)
	}
	for _, kind := range []string{"error", "analysis_paused", "continue_button"} {
		p, _ := open(t, srv, "otherwise: [{text: I begin with the parser.}, {banner: "+kind+"}]")
		send(t, p, "go")
		sees(t, p, ".note")
		shot(t, p, "banner-"+kind)
	}
}
