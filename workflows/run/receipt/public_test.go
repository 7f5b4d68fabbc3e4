package receipt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/receipt"
)

// https://github.com/anthropics/claude-code/issues/81827: a bare promise word ended the loop.
func TestPublic_A02_ABareWordCompletesNothing(t *testing.T) {
	for _, answer := range []string{"DONE", "Done.", "done", "✅ Done, this chat can be closed", "<promise>DONE</promise>", "D", "DONE\nD\n"} {
		got := receipt.Read(answer, want)
		require.Equal(t, receipt.CodeMissing, got.Code, answer)
		require.True(t, got.Violation)
	}
}

// https://github.com/anthropics/claude-plugins-official/issues/442: a malformed line ended the loop without a word.
func TestPublic_A03_ABrokenBlockHasATypedCode(t *testing.T) {
	done := map[string]any{"action": "DONE", "supervisor_state": "done"}
	for answer, code := range map[string]string{
		block(strings.Replace(body(done), `"reason":`, `"reason"`, 1)):                  receipt.CodeMalformed,
		block(body(map[string]any{"action": "FINISHED"})):                               receipt.CodeAction,
		block(strings.Replace(body(nil), "{", `{"action":"DONE",`, 1)):                  receipt.CodeKeyDuplicate,
		block(body(done))[:300]:                                                         receipt.CodeIncomplete,
		block(body(map[string]any{"action": "DONE", "supervisor_state": "needs_user"})): receipt.CodeState,
	} {
		got := receipt.Read(answer, want)
		require.Equal(t, code, got.Code, answer)
		require.Nil(t, got.Receipt)
		require.NotEmpty(t, got.Detail)
	}
}

// https://github.com/anthropics/claude-plugins-official/issues/3632: the tag after a tool call was missed.
func TestPublic_A05_TheBlockInTheLastOfTwoTextNodesIsSeen(t *testing.T) {
	nodes := []string{"I run the tests first.", "Ran go test ./...\n14 passed", "They pass.\n" + statusLine + valid}
	require.Equal(t, receipt.Continue, read(t, strings.Join(nodes, "\n")).Action)
}

// https://github.com/openai/codex/issues/36596: the turn ended with a promise to continue.
func TestPublic_A10_APromiseInProseIsAMissingReceipt(t *testing.T) {
	got := receipt.Read("I am continuing with the next package now, no input required.", want)
	require.Equal(t, receipt.CodeMissing, got.Code)
	require.True(t, got.Violation)
}

// https://github.com/pydantic/pydantic-ai/issues/7157: a result over the payload limit was retried for ever.
func TestPublic_A24_AnAnswerOf3MBGivesASmallReading(t *testing.T) {
	evidence := make([]string, receipt.MaxEvidence)
	for i := range evidence {
		evidence[i] = strings.Repeat("界", receipt.MaxEvidenceItem)
	}
	text := strings.Repeat("界", receipt.MaxText)
	largest := block(body(map[string]any{
		"action": "NEEDS_USER", "supervisor_state": "needs_user", "checkpoint": text, "reason": text, "evidence": evidence,
		"user_action": map[string]string{"kind": "decision", "ask": text, "tried": text},
	}))
	prose := strings.Repeat("x", receipt.MaxAnswer-len(largest))
	for _, answer := range []string{prose + largest, prose + prose, block("{" + prose), strings.Repeat(valid+"\n", 6000)} {
		encoded, err := json.Marshal(receipt.Read(answer, want))
		require.NoError(t, err)
		require.Less(t, len(encoded), 100<<10)
	}
	require.Equal(t, receipt.NeedsUser, read(t, prose+largest).Action)
	require.Equal(t, receipt.CodeAnswerTooLong, receipt.Read("y"+prose+largest, want).Code)
}

// https://github.com/urzeye/ophel/issues/514: a turn of several role nodes doubled the reply.
func TestPublic_B23_SeveralRoleNodesAreOneMessageWithOneBlock(t *testing.T) {
	intro, thought, final := "Let me look.", "Thought for 12s", "It works.\n"+statusLine+valid
	once := read(t, strings.Join([]string{intro, thought, final}, "\n"))
	doubled := read(t, strings.Join([]string{intro, thought, final, final}, "\n"))
	require.Equal(t, once, doubled)
}

// https://github.com/Trifall/chat-export/issues/10: the text of code blocks lost newlines and fences.
func TestPublic_B25_ABlockShownAsCodeAndAsTextIsParsedOnce(t *testing.T) {
	code := "text\nCopy code\n" + valid + "\n"
	flat := strings.ReplaceAll(valid, "\n", " ")
	for _, answer := range []string{valid, code, flat, code + flat, flat + "\n" + code, strings.ReplaceAll(valid, ",", ",\n")} {
		require.Equal(t, read(t, valid), read(t, "Text.\n"+answer))
	}
}

// https://github.com/acheong08/ChatGPT-to-API/issues/3: the last words of an answer were dropped.
func TestPublic_B34_ABlockIsReadOnlyOnceItsLastChunkIsThere(t *testing.T) {
	answer := "All green.\n" + statusLine + valid
	for cut := range len(answer) {
		got := receipt.Read(answer[:cut], want)
		require.Contains(t, []string{receipt.CodeMissing, receipt.CodeIncomplete}, got.Code)
	}
	require.Equal(t, receipt.Continue, read(t, answer).Action)
}
