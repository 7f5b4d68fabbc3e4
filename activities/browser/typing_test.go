package browser

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/activities"
)

// texts are what a composer tends to spoil.
var texts = map[string]string{
	"paragraphs and blank lines": "first\n\n\nsecond\n  indented\n\tafter a tab\ttab\nthird",
	"links":                      "see https://example.com/a?b=1&c=2#d and http://localhost:8080/x_y_z, both",
	"non-breaking spaces":        "one\u00a0two\u00a0\u00a0three \u202ffour",
	"emoji":                      "🔄 👩‍💻 🇯🇵 e\u0301 ✅",
	"right to left":              "עברית and العربية mixed (123)",
	"fences and markup":          "```go\nfunc main() {\n\tfmt.Println(\"<b>&amp;</b>\")\n}\n```\n<b>bold</b> *stars* \\backslash `tick`",
	"spaces around":              "  two in front\n   \nand a line of three spaces before",
	"chinese, japanese":          "继续使用此对话\n質問してみましょう",
}

func TestPublic_B31_TextsArriveExactly(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := l.conversation(t, `otherwise: [{text: "ok"}]`)
			in := sendInput(c, effect(), text)
			r := l.send(t, in)
			require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
			require.Empty(t, r.Code)
			got := l.Record(c.ID)
			require.Len(t, got, 1)
			require.Equal(t, in.Prompt, got[0].Text)
			require.Equal(t, "click", got[0].Via)
		})
	}
}

func TestALongPromptArrivesExactly(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `{page: {autolink: true, send_after: 300ms}, otherwise: [{text: "ok"}]}`)
	line := "A line of some words, with a link http://example.com/path?q=1 and a tab\there.\n"
	in := sendInput(c, effect(), strings.TrimSpace(strings.Repeat(line, 32<<10/len(line))))
	r := l.send(t, in)
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Equal(t, in.Prompt, l.Record(c.ID)[0].Text)
}

func TestPublic_B09_B20_OnlyTheSendControlIsPressed(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `
page: {language: zh, decoys: [submit, stop, busy], send_after: 500ms, enter: newline, long_poll: true}
conversation: {history: [{role: user, text: hello}, {role: assistant, text: hi}]}
otherwise: [{text: "ok"}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Len(t, l.Record(c.ID), 1)
	require.Equal(t, "click", l.Record(c.ID)[0].Via)
	for _, e := range l.Events() {
		require.False(t, e.ConversationID == c.ID && (e.Kind == "voice" || e.Kind == "decoy_submit" || e.Kind == "decoy_stop"), "%+v", e)
	}
}

func TestPromptsThatCannotBeSentAreRefused(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: "ok"}]`)
	for code, change := range map[string]func(*activities.SendInput){
		"prompt_refused":  func(in *activities.SendInput) { in.Prompt = "no marker" },
		"prompt_too_long": func(in *activities.SendInput) { in.Prompt += strings.Repeat("x", 50_000) },
	} {
		in := sendInput(c, effect(), "words")
		change(&in)
		r := l.send(t, in)
		require.Equal(t, activities.SendReturned, r.Outcome)
		require.Equal(t, code, r.Code)
		require.False(t, r.Armed)
	}
	foreign := sendInput(c, effect(), "words")
	foreign.Conversation.URL = "https://example.com/c/" + c.ID
	r := l.send(t, foreign)
	require.Equal(t, activities.SendDeferred, r.Outcome)
	require.Equal(t, activities.DeferSiteMismatch, r.Class)
	require.Empty(t, l.Record(c.ID))
}
