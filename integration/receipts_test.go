package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"steward/activities"
	"steward/activities/browser"
	"steward/config/sites"
	"steward/integration/chatlab"
	"steward/workflows/run/prompt"
	"steward/workflows/run/receipt"
)

// awkward are words that a markdown renderer, a page or a parser could take for something else.
var awkward = []string{
	`"quoted"`, `'single'`, `C:\new\table`, `\`, `\\n`, `\u00e9`, "*stars*", "**bold**", "_under_score_", "`code`", "```", "~~~",
	"[link](https://example.com/a_b?c=d&e=f)", "<https://x.y>", "https://example.com/a*b*c", "<b>tag</b>", "&amp;", "# head", "- item", "1. item",
	"> quote", "|a|b|", `"}`, `"]`, "line\nbreak", "tab\there", "  two  spaces  ", "继续执行", "продолжить", "मानक", "مرحبا", "שלום", "한국어",
	"👩‍👩‍👧‍👦", "é", "𝔘", "$x^2$", "C 0123456", "DONE", "Copy code", "https://example.com/very/long/" + strings.Repeat("path/", 20),
}

func words() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return "x" + strings.Join(rapid.SliceOfN(rapid.SampledFrom(awkward), 1, 6).Draw(t, "words"), " ") + "x"
	})
}

// Two hundred generated receipts come back exactly through the page that rendered them.
func TestGeneratedReceiptsComeBackThroughTheRenderedPage(t *testing.T) {
	s := start(t)
	const n, perPage = 200, 20
	dir := t.TempDir()
	require.NoError(t, writeSite(dir, s.lab.URL()))
	profile := "site: receipts\nextends: chatlab\nsettle: {looks: 1, stable: 1ms, extra: 1ms}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "receipts.yaml"), []byte(profile), 0o600))
	registry, err := sites.Load(dir)
	require.NoError(t, err)
	b, err := browser.Open(t.Context(), browser.Options{Name: "receipts", Sites: registry, ProfileDir: filepath.Join(dir, "profile"), NoSandbox: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.Background())) })

	for first := 0; first < n; first += perPage {
		var sent []receipt.Receipt
		var history []chatlab.Message
		id := fmt.Sprintf("6710a2f4-8d1c-8000-9c55-%012x", first+1)
		for i := first; i < first+perPage; i++ {
			r := receipt.Receipt{
				Action: receipt.Continue, Checkpoint: words().Example(3*i + 1), Reason: words().Example(3*i + 2),
				Evidence: rapid.SliceOfN(words(), 0, 4).Example(3*i + 3),
			}
			sent = append(sent, r)
			data, err := json.Marshal(map[string]any{
				"action": r.Action, "supervisor_state": r.Action.State(), "conversation_id": id, "task_id": "t_0123456789ab", "active_scope": "goal:x",
				"source_effect_id": effectOf(i), "checkpoint": r.Checkpoint, "reason": r.Reason, "evidence": append([]string{}, r.Evidence...),
			})
			require.NoError(t, err)
			history = append(history,
				chatlab.Message{Role: "user", Text: "Go on.\n" + prompt.Marker(effectOf(i))},
				chatlab.Message{Role: "assistant", Text: "Done so far.\n\n````text\n" + receipt.StartMarker + "\n" + string(data) + "\n" + receipt.EndMarker + "\n````"})
		}
		_, err := s.lab.NewConversation(chatlab.Conversation{ID: id, History: history})
		require.NoError(t, err)
		for i, want := range sent {
			effect := effectOf(first + i)
			out, err := b.Observe(t.Context(), activities.ObserveInput{
				TaskID: "t_0123456789ab", EffectID: effect,
				Conversation: activities.Conversation{Site: "receipts", Browser: "receipts", ID: id, URL: s.lab.ConversationURL(id)},
				Want:         receipt.Want{ConversationID: id, TaskID: "t_0123456789ab", Scope: "goal:x", EffectID: effect},
			})
			require.NoError(t, err)
			got := out.Reading.Receipt
			require.NotNil(t, got, "receipt %d: %s %s", first+i, out.Reading.Code, out.Reading.Detail)
			require.Equal(t, []any{want.Checkpoint, want.Reason, len(want.Evidence)}, []any{got.Checkpoint, got.Reason, len(got.Evidence)})
			for j := range want.Evidence {
				require.Equal(t, want.Evidence[j], got.Evidence[j])
			}
		}
	}
}

func effectOf(i int) string { return fmt.Sprintf("fx_%016x", i+1) }
