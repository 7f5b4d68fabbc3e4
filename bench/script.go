package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/mxschmitt/playwright-go"

	"steward/activities/browser"
)

var effectID = regexp.MustCompile(`fx_[0-9a-f]{16}`)

// script starts the baseline of a page turn: a plain Playwright script that sends the same prompt for every answer.
func (s *stage) script(ctx context.Context) error {
	received := s.lab.Record(s.chat)
	prompt := received[len(received)-1].Text
	if err := os.Setenv("PLAYWRIGHT_NODEJS_PATH", node()); err != nil {
		return err
	}
	pw, err := playwright.Run(&playwright.RunOptions{SkipInstallBrowsers: true})
	if err != nil {
		return err
	}
	s.stop = append(s.stop, func() { _ = pw.Stop() })
	executable, err := browser.Executable("")
	if err != nil {
		return err
	}
	chromium, err := pw.Chromium.Launch(playwright.BrowserTypeLaunchOptions{
		ExecutablePath: &executable, ChromiumSandbox: playwright.Bool(os.Geteuid() != 0),
		Args: []string{"--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run", "--disable-quic"},
	})
	if err != nil {
		return err
	}
	page, err := chromium.NewPage()
	if err != nil {
		return err
	}
	if _, err := page.Goto(s.lab.ConversationURL(s.plain)); err != nil {
		return err
	}
	go func() {
		s.fail(fmt.Errorf("plain script: %w", plainTurns(ctx, page, prompt)))
	}()
	s.stop = append(s.stop, func() { _ = chromium.Close() })
	return nil
}

func node() string {
	path, _ := exec.LookPath("node")
	return path
}

// settled is the settle rule in the page: the last turn is an answer with finish marks, nothing generates, and its text
// has not changed for the rule's time. It returns the text.
const settled = `stable => {
	const last = [...document.querySelectorAll('[data-testid^=conversation-turn-]')].at(-1)
	const done = last?.querySelector('[data-message-author-role=assistant]') && last.querySelector('[data-testid=copy-turn-action-button]')
		&& !document.querySelector('[data-testid=stop-button]')
	const text = done ? last.innerText : undefined
	if (!done || window.benchText !== text) {
		window.benchText = text
		window.benchSince = performance.now()
		return false
	}
	return performance.now() - window.benchSince >= stable && text
}`

// plainTurns sends, waits, reads and sends again until the page is closed. It keeps no record and survives no crash.
func plainTurns(ctx context.Context, page playwright.Page, prompt string) error {
	composer, button := page.Locator("#prompt-textarea[contenteditable=true]"), page.Locator("button[data-testid=send-button]")
	var none float64
	for ctx.Err() == nil {
		effect := "fx_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:16]
		text := effectID.ReplaceAllString(prompt, effect)
		if err := composer.Focus(); err != nil {
			return err
		}
		if err := page.Keyboard().InsertText(text); err != nil {
			return err
		}
		if shown, err := composer.InnerText(); err != nil || len(shown) < len(text)/2 {
			return fmt.Errorf("the composer holds %d characters: %w", len(shown), err)
		}
		if err := button.Click(); err != nil {
			return err
		}
		if err := page.GetByText(effect).Last().WaitFor(); err != nil {
			return err
		}
		handle, err := page.WaitForFunction(settled, stable.Milliseconds(), playwright.PageWaitForFunctionOptions{Timeout: &none})
		if err != nil {
			return err
		}
		if _, err := handle.JSONValue(); err != nil {
			return err
		}
	}
	return nil
}
