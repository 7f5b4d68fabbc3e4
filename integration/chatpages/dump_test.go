package chatpages_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mxschmitt/playwright-go"

	"steward/integration/chatlab"
	"steward/integration/chatpages"
)

func TestDump(t *testing.T) {
	node, _ := exec.LookPath("node")
	os.Setenv("PLAYWRIGHT_NODEJS_PATH", node)
	options := &playwright.RunOptions{SkipInstallBrowsers: true, Stdout: os.Stderr}
	must(playwright.Install(options))
	driver, err := playwright.Run(options)
	must(err)
	defer driver.Stop()
	path := "/usr/bin/chromium"
	b, err := driver.Chromium.Launch(playwright.BrowserTypeLaunchOptions{ExecutablePath: &path, Args: []string{"--no-sandbox"}})
	must(err)
	defer b.Close()
	for _, name := range []string{"deep-chat", "assistant-ui"} {
		ui, err := chatpages.UI(name)
		must(err)
		s, err := chatlab.Start(chatlab.Options{UI: ui})
		must(err)
		defer s.Close()
		sc := chatlab.MustParse("replies: [[{think: 600ms}, {text: \"First *words*.\\n\\n\"}, {tool: {name: run, output: ok, for: 300ms}}, {gate: go}, {more: '{{receipt \"CONTINUE\" \"a\" \"b\"}}'}]]")
		id, err := s.NewConversation(chatlab.Conversation{Scenario: sc, History: []chatlab.Message{{Role: "user", Text: "Hello\n\n\tthere"}, {Role: "assistant", Text: "Hi **you**."}}})
		must(err)
		p, err := b.NewPage()
		must(err)
		p.OnConsole(func(m playwright.ConsoleMessage) { fmt.Println("console", m.Text()) })
		p.OnPageError(func(e error) { fmt.Println("pageerror", e) })
		_, err = p.Goto(s.ConversationURL(id))
		must(err)
		time.Sleep(time.Second)
		dump := func(what string) {
			v, err := p.Evaluate(`() => { const r = document.querySelector('deep-chat'); const x = r ? r.shadowRoot : document.querySelector('main'); const c = x.cloneNode ? (r ? [...x.children].filter(e => e.tagName !== 'STYLE').map(e => e.outerHTML).join('\n') : x.outerHTML) : ''; return c.replace(/<svg[\s\S]*?<\/svg>/g, '<svg/>') }`)
			must(err)
			fmt.Println("=====", name, what)
			fmt.Println(v)
		}
		dump("loaded")
		sel := "#text-input"
		if name == "assistant-ui" {
			sel = ".aui-composer-input"
		}
		must(p.Locator(sel).Click())
		text := "first\n\n\nsecond\n  indented\n\tafter a tab\ttab\nthird one\u00a0two\u00a0\u00a0three end"
		must(p.Keyboard().InsertText(text))
		if name == "deep-chat" {
			for _, style := range []string{"", "white-space: pre-wrap", "-webkit-user-modify: read-write-plaintext-only"} {
				_, err := p.Evaluate(`(style) => { const e = document.querySelector('deep-chat').shadowRoot.querySelector('#text-input'); e.setAttribute('style', style); e.focus() }`, style)
				must(err)
				for _, how := range []string{"insertText", "execCommand", "paste"} {
					must(p.Keyboard().Press("ControlOrMeta+a"))
					must(p.Keyboard().Press("Delete"))
					switch how {
					case "insertText":
						must(p.Keyboard().InsertText(text))
					case "execCommand":
						_, err = p.Evaluate(`(text) => document.execCommand('insertText', false, text)`, text)
					case "paste":
						_, err = p.Evaluate(`(text) => { const e = document.querySelector('deep-chat').shadowRoot.querySelector('#text-input'); const data = new DataTransfer(); data.setData('text/plain', text); e.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true, composed: true})) }`, text)
					}
					must(err)
					v, err := p.Evaluate(`() => { const e = document.querySelector('deep-chat').shadowRoot.querySelector('#text-input'); return [e.innerText, e.innerHTML, e.textContent] }`)
					must(err)
					fmt.Printf("STYLE %q %s inner %v\n", style, how, v.([]any)[0] == text)
					for _, one := range v.([]any) {
						fmt.Printf("   %q\n", one)
					}
				}
			}
			must(p.Keyboard().Press("ControlOrMeta+a"))
			must(p.Keyboard().Press("Delete"))
			_, err := p.Evaluate(`() => document.querySelector('deep-chat').shadowRoot.querySelector('#text-input').removeAttribute('style')`)
			must(err)
			must(p.Keyboard().InsertText(text))
		}
		time.Sleep(300 * time.Millisecond)
		dump("typed")
		v, _ := p.Evaluate(`() => { const r = document.querySelector('deep-chat'); return r ? r.shadowRoot.querySelector('#text-input').innerText : document.querySelector('textarea').value }`)
		fmt.Printf("inner %q\nwant  %q\n", v, text)
		p.Screenshot(playwright.PageScreenshotOptions{Path: playwright.String("/tmp/sites-npm/" + name + "-typed.png")})
		send := ".input-button"
		if name == "assistant-ui" {
			send = ".aui-composer-send"
		}
		must(p.Locator(send).Last().Click())
		time.Sleep(150 * time.Millisecond)
		dump("sent")
		time.Sleep(1200 * time.Millisecond)
		dump("streaming")
		p.Screenshot(playwright.PageScreenshotOptions{Path: playwright.String("/tmp/sites-npm/" + name + "-streaming.png")})
		must(s.Release(id, "go"))
		time.Sleep(600 * time.Millisecond)
		dump("done")
		p.Screenshot(playwright.PageScreenshotOptions{Path: playwright.String("/tmp/sites-npm/" + name + "-done.png")})
		fmt.Printf("record %+v\nviolations %v\n", s.Record(id), s.Violations())
		p.Reload()
		time.Sleep(600 * time.Millisecond)
		dump("reloaded")
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
