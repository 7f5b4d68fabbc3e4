package receipt_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"steward/workflows/run/receipt"
)

// words that a rendering, a JSON encoder or the parser could take for something else.
var words = []string{
	`"quoted"`, `'single'`, `a\b`, `C:\new\table`, `\`, `\\`, `\n`, `\u00e9`, "*stars*", "**bold**", "_under_score_", "`code`", "```go", "~~~",
	"[link](https://example.com/a_b?c=d&e=f)", "<https://x.y>", "<b>tag</b>", "&amp;", "# head", "- item", "1. item", "> quote", "|a|b|",
	"{", "}", "[", "]", ":", ",", `","`, `"}`, `"]`, "{}", "line\nbreak", "tab\there", "nul\x00", "\u001b[31m", "\u00a0", "\u2028", "—",
	"继续执行", "продолжить", "मानक", "مرحبا", "שלום", "ไทย\u200bคำ", "ภาษา", "한국어", "👩‍👩‍👧‍👦", "e\u0301", "\ufffd", "𝔘", "fx_00112233445566ff",
	receipt.StartMarker, receipt.EndMarker, "C 0123456", "DONE", "[steward fx_1]", "text", "Copy code", "$HOME", "%s", "true", "null",
}

func textOf(limit int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		piece := rapid.OneOf(rapid.SampledFrom(words), rapid.StringN(0, 20, -1), rapid.StringMatching(`[a-z ./:"\\]{0,12}`))
		text := strings.Join(rapid.SliceOfN(piece, 1, 8).Draw(t, "pieces"), rapid.SampledFrom([]string{"", " "}).Draw(t, "joint"))
		text = strings.TrimSpace(strings.ToValidUTF8("x"+text+"x", "?"))
		for utf8.RuneCountInString(text) > limit {
			text = text[:len(text)/2] + "x"
			text = strings.ToValidUTF8(text, "")
		}
		return text
	})
}

// generated is a receipt as an assistant means it.
type generated struct {
	Action     receipt.Action      `json:"action"`
	Conv       string              `json:"conversation_id"`
	Task       string              `json:"task_id"`
	State      string              `json:"supervisor_state"`
	Scope      string              `json:"active_scope"`
	Effect     string              `json:"source_effect_id"`
	Checkpoint string              `json:"checkpoint"`
	Reason     string              `json:"reason"`
	Evidence   []string            `json:"evidence"`
	UserAction *receipt.UserAction `json:"user_action,omitempty"`
}

func receipts() *rapid.Generator[generated] {
	return rapid.Custom(func(t *rapid.T) generated {
		g := generated{
			Action: rapid.SampledFrom([]receipt.Action{receipt.Continue, receipt.Done, receipt.NeedsUser}).Draw(t, "action"),
			Conv:   want.ConversationID, Task: want.TaskID, Scope: want.Scope, Effect: want.EffectID,
			Checkpoint: textOf(receipt.MaxText).Draw(t, "checkpoint"),
			Reason:     textOf(receipt.MaxText).Draw(t, "reason"),
			Evidence:   rapid.SliceOfN(textOf(receipt.MaxEvidenceItem), 0, receipt.MaxEvidence).Draw(t, "evidence"),
		}
		g.State = g.Action.State()
		if g.Action == receipt.NeedsUser {
			g.UserAction = &receipt.UserAction{
				Kind: textOf(receipt.MaxID).Draw(t, "kind"), Ask: textOf(receipt.MaxText).Draw(t, "ask"), Tried: textOf(receipt.MaxText).Draw(t, "tried"),
			}
		}
		return g
	})
}

// encode writes the JSON of a receipt as different assistants do.
func (g generated) encode(t *rapid.T) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(rapid.Bool().Draw(t, "escape html"))
	if rapid.Bool().Draw(t, "indent") {
		enc.SetIndent("", "  ")
	}
	require.NoError(t, enc.Encode(g))
	return strings.TrimSpace(b.String())
}

func TestGeneratedReceiptsAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for range 3 {
			g := receipts().Draw(t, "receipt")
			answer := block(g.encode(t))
			switch rapid.IntRange(0, 4).Draw(t, "frame") {
			case 0:
				answer = "```text\n" + answer + "\n```"
			case 1:
				answer = "text\nCopy code\n" + answer + "\n"
			case 2:
				answer = strings.ReplaceAll(answer, "\n", "\r\n") + "\u00a0\r\n"
			case 3:
				answer += "\n\n" + answer
			}
			answer = textOf(2000).Filter(func(s string) bool { return !strings.Contains(s, "<<<") }).Draw(t, "prose") + "\n" + answer

			got := receipt.Read(answer, want)
			require.Empty(t, got.Code, got.Detail)
			r := got.Receipt
			require.Equal(t, g.Action, r.Action)
			require.Equal(t, g.Checkpoint, r.Checkpoint)
			require.Equal(t, g.Reason, r.Reason)
			require.Equal(t, g.Evidence, append([]string{}, r.Evidence...))
			require.Equal(t, g.UserAction, r.UserAction)

			again := receipt.Read(block(g.encode(t)), want)
			require.Equal(t, r.Digest, again.Receipt.Digest)
		}
	})
}

// rendered is what markdown leaves of text outside a fence: no backslash before punctuation, other line breaks.
func rendered(t *rapid.T, text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte(`"\`, text[i+1]) >= 0 {
			i++
		}
		b.WriteByte(text[i])
	}
	text = b.String()
	if rapid.Bool().Draw(t, "wrap") {
		text = strings.ReplaceAll(text, " ", "\n")
	}
	return text
}

func TestABlockThatTheRenderingBrokeIsNoViolation(t *testing.T) {
	text := rapid.StringMatching(`[A-Za-z]{1,9}( "[a-z]{1,9}"| C:\\[A-Za-z]{1,9}| \\d\+| \("x"\)| [a-z]{1,9}){0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		g := receipts().Draw(t, "receipt")
		g.Checkpoint, g.Reason = text.Draw(t, "checkpoint"), text.Draw(t, "reason")
		g.Evidence, g.UserAction = rapid.SliceOfN(text, 0, 4).Draw(t, "evidence"), nil
		if g.Action == receipt.NeedsUser {
			g.UserAction = &receipt.UserAction{Kind: "decision", Ask: text.Draw(t, "ask"), Tried: text.Draw(t, "tried")}
		}
		answer := block(rendered(t, g.encode(t)))
		got := receipt.Read(answer, want)
		require.Contains(t, []string{"", receipt.CodeMangled}, got.Code, "%s\n%s", answer, got.Detail)
		require.False(t, got.Violation)
	})
}

func TestABlockCutAnywhereIsNeverAReceipt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		answer := block(receipts().Draw(t, "receipt").encode(t))
		cut := rapid.IntRange(0, len(answer)-1).Draw(t, "cut")
		require.Nil(t, receipt.Read(answer[:cut], want).Receipt)
		require.Nil(t, receipt.Read(answer[cut+1:], want).Receipt)
	})
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "Done.", valid, "```text\n" + valid + "\n```", valid + valid, block(body(needsUser)), block(`{"a":"b"c"}`), block("{"),
		"C " + receipt.Challenge(want.EffectID), receipt.EndMarker + receipt.StartMarker, block(`{"evidence":["x\y",],}`), "\xff<<<END_",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		for _, text := range []string{answer, block(answer), block(`{"checkpoint":"` + answer + `"}`), answer + "\n" + valid} {
			got := receipt.Read(text, want)
			require.Equal(t, got.Receipt == nil, got.Code != "")
			if got.Code != "" {
				requireQuotable(t, got.Detail)
				continue
			}
			again := receipt.Read(text, want)
			require.Equal(t, got, again)
			require.NotEmpty(t, got.Receipt.Action.State())
			require.LessOrEqual(t, len(got.Receipt.Evidence), receipt.MaxEvidence)
			elsewhere := want
			elsewhere.EffectID = "fx_ffffffffffffffff"
			require.Nil(t, receipt.Read(text, elsewhere).Receipt)
		}
	})
}
