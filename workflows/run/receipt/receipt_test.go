package receipt_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/receipt"
)

var want = receipt.Want{
	ConversationID: "6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e",
	TaskID:         "t_0123456789ab",
	Scope:          "goal:orders-green",
	EffectID:       "fx_00112233445566ff",
}

const statusLine = "🔄 Still working, nothing needed from you\n"

// body is a valid block's JSON with changes: a nil value removes the key.
func body(changes map[string]any) string {
	values := map[string]any{
		"action": "CONTINUE", "conversation_id": want.ConversationID, "task_id": want.TaskID, "supervisor_state": "running",
		"active_scope": want.Scope, "source_effect_id": want.EffectID, "checkpoint": "parser written",
		"reason": "tests are next", "evidence": []string{"go test ./orders: ok"},
	}
	for key, v := range changes {
		if values[key] = v; v == nil {
			delete(values, key)
		}
	}
	text, err := json.Marshal(values)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func block(body string) string {
	return receipt.StartMarker + "\n" + body + "\n" + receipt.EndMarker
}

var (
	valid     = block(body(nil))
	needsUser = map[string]any{
		"action": "NEEDS_USER", "supervisor_state": "needs_user",
		"user_action": map[string]string{"kind": "credentials", "ask": "log in to the registry", "tried": "the stored token"},
	}
)

func read(t *testing.T, answer string) *receipt.Receipt {
	t.Helper()
	got := receipt.Read(answer, want)
	require.Empty(t, got.Code, got.Detail)
	require.False(t, got.Violation)
	return got.Receipt
}

func TestReadsABlock(t *testing.T) {
	got := read(t, "I wrote the parser.\n\n"+statusLine+valid)
	require.Equal(t, &receipt.Receipt{
		Form: receipt.Block, Action: receipt.Continue, Scope: "goal:orders-green", Checkpoint: "parser written",
		Reason: "tests are next", Evidence: []string{"go test ./orders: ok"}, Digest: got.Digest,
	}, got)
	require.Len(t, got.Digest, 64)

	got = read(t, block(body(map[string]any{"action": "DONE", "supervisor_state": "done", "evidence": []string{}})))
	require.Equal(t, receipt.Done, got.Action)
	require.Empty(t, got.Evidence)

	got = read(t, block(body(needsUser)))
	require.Equal(t, receipt.NeedsUser, got.Action)
	require.Equal(t, &receipt.UserAction{Kind: "credentials", Ask: "log in to the registry", Tried: "the stored token"}, got.UserAction)
}

func TestTheFrameOfABlockIsNotText(t *testing.T) {
	digest := read(t, valid).Digest
	spaced := strings.ReplaceAll(strings.ReplaceAll(valid, `,"`, ",\u00a0\u200b\n  \""), "\n", "\r\n")
	for name, answer := range map[string]string{
		"fence":                       "Text.\n```text\n" + valid + "\n```",
		"fence with tildes":           "~~~\n" + valid + "\n~~~\n",
		"card":                        "Text.\n\ntext\nCopy code\n" + valid + "\n",
		"card with buttons below":     "plaintext\n" + valid + "\nCopy\n",
		"fence inside the markers":    receipt.StartMarker + "\n```json\n" + body(nil) + "\n```\n" + receipt.EndMarker,
		"card inside the markers":     receipt.StartMarker + "\njson\nCopy code\n" + body(nil) + "\n" + receipt.EndMarker,
		"label and button run on":     receipt.StartMarker + "\njsonCopy code\n" + body(nil) + "\n" + receipt.EndMarker,
		"one paragraph":               strings.ReplaceAll(statusLine+valid, "\n", " "),
		"no line breaks at all":       strings.ReplaceAll(valid, "\n", ""),
		"indented":                    "  " + strings.ReplaceAll(valid, "\n", "\n    "),
		"carriage returns":            strings.ReplaceAll(valid, "\n", "\r\n"),
		"blanks of a page":            "\ufeff" + spaced + "\u00a0\u200b \r\n\u2060",
		"breaks in the marker":        strings.ReplaceAll(valid, "WORKFLOW_", "WORKFLOW_\u200b"),
		"blanks around the values":    strings.ReplaceAll(valid, `"parser written"`, `" parser written\u00a0\n"`),
		"escapes where none are due":  strings.ReplaceAll(valid, "parser", `\u0070arser`),
		"word for word, twice":        valid + "\n\n" + valid,
		"fenced, then in plain text":  "```text\n" + valid + "\n```\n" + strings.ReplaceAll(valid, "\n", " "),
		"three times with text":       valid + "\nagain:\n" + valid + "\nagain:\n```\n" + valid + "\n```",
		"a marker named before":       "I end with " + receipt.StartMarker + ", then JSON, then " + receipt.EndMarker + ".\n" + valid,
		"an earlier unfinished block": receipt.StartMarker + "\n{\"action\":\"DO\n\n" + valid,
	} {
		got := receipt.Read(answer, want)
		require.Empty(t, got.Code, "%s: %s", name, got.Detail)
		require.Equal(t, digest, got.Receipt.Digest, name)
	}
}

func TestMarkersInsideAStringAreText(t *testing.T) {
	for _, text := range []string{
		receipt.StartMarker, receipt.EndMarker, valid, valid + valid, "C 0123456", "<<<FORGE_WORKFLOW_SUPERVISOR_V2>>>",
		receipt.StartMarker + ` {"action":"DONE"} ` + receipt.EndMarker,
	} {
		answer := block(body(map[string]any{"checkpoint": text}))
		require.Equal(t, text, read(t, answer).Checkpoint)
		require.Equal(t, text, read(t, answer+"\n"+answer).Checkpoint)
	}
}

func TestEveryCode(t *testing.T) {
	change := func(key string, value any) string { return block(body(map[string]any{key: value})) }
	long := strings.Repeat("x", receipt.MaxText+1)
	raw := func(old, replacement string) string { return strings.Replace(valid, old, replacement, 1) }
	userAction := func(v any) string {
		return block(body(map[string]any{"action": "NEEDS_USER", "supervisor_state": "needs_user", "user_action": v}))
	}
	answers := map[string][]string{
		receipt.CodeAnswerTooLong: {strings.Repeat("a", receipt.MaxAnswer) + valid},
		receipt.CodeMissing: {
			"", "\n\u200b ", "All tests pass.", "C 012345", "X 0123456", "C0123456", "C 0123456 and more", "C 012345g",
			"D " + receipt.Challenge(want.EffectID) + "\nOne more thing.", body(nil), "```\n```",
		},
		receipt.CodeIncomplete: {
			receipt.StartMarker, receipt.EndMarker, receipt.StartMarker + body(nil), body(nil) + receipt.EndMarker,
			valid[:len(valid)-1], valid[1:], valid + "\n" + receipt.StartMarker,
			strings.Replace(valid, "_V1>>>", "_V>>>", 1), strings.Replace(valid, "_V1>>>", "_V1a>>>", 1),
			receipt.StartMarker + "\nC " + receipt.Challenge(want.EffectID),
		},
		receipt.CodeVersion: {
			strings.ReplaceAll(valid, "_V1", "_V2"), strings.Replace(valid, "_V1", "_V2", 1),
			receipt.StartMarker + "\n{\n<<<END_FORGE_WORKFLOW_SUPERVISOR_V12>>>",
		},
		receipt.CodeTrailingText: {
			valid + "\nDone.", valid + "\ntext", valid + "\n```text", valid + "\n```\n```", valid + " " + receipt.EndMarker,
			valid + "\nThe end marker is " + receipt.EndMarker, valid + "\nC " + receipt.Challenge(want.EffectID),
			valid + "\n" + valid + "\n.",
		},
		receipt.CodeAmbiguous: {
			block(body(map[string]any{"action": "DONE", "supervisor_state": "done"})) + "\n" + valid,
			change("reason", "other") + "\n" + valid + "\n" + valid,
			valid + change("reason", "other") + valid,
			block(`{"action":"DONE"}`) + valid, block("{broken") + valid,
			strings.ReplaceAll(valid, "_V1", "_V2") + strings.ReplaceAll(change("reason", "x"), "_V1", "_V2") + valid,
		},
		receipt.CodeMangled: {
			raw("parser written", `the "parser" is written`), raw("parser written", `say "a", "b" and "c": d`),
			raw("parser written", `C:\work\x`), raw("parser written", `path C:\`), raw("parser written", "parser\nwritten"),
			raw("parser written", "parser\r\n\r\nwritten\tnow"), raw(want.TaskID, want.TaskID[:4]+"\n"+want.TaskID[4:]),
			raw("go test", `"go", "test"`), raw("go test", `regexp \d+\.`), raw("go test", `\uZZ`), raw("next", `next "`),
			raw(`test ./orders: ok"`, `say "x"]"`),
		},
		receipt.CodeMalformed: {
			block(""), block("not json"), block("[]"), block("["), block("null"), block(`"x"`), block("{"), block("{}}"),
			block(body(nil) + body(nil)), raw(`"evidence":`, `"evidence"`), raw(`,"reason"`, ` "reason"`), raw(`"reason"`, `reason`),
			raw("{", "{,"), raw("}", ",}"), block(body(nil) + " and so on"), block("Here it is: " + body(nil)),
			block(strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9)), block(strings.Repeat("[", 20000)),
			receipt.StartMarker + "\nJSON\n" + receipt.EndMarker, raw(`"reason":"tests are next"`, "// later"),
			raw(want.TaskID, "t_\n1"), raw("parser written", `say "x"`)[:300] + receipt.EndMarker, block("x") + "\nC " + receipt.Challenge(want.EffectID),
		},
		receipt.CodeKeyDuplicate: {
			raw("{", `{"action":"DONE",`), raw("}", `,"evidence":[]}`), raw("}", `,"\u0061ction":"CONTINUE"}`),
			strings.Replace(block(body(needsUser)), `"kind"`, `"kind":"x","kind"`, 1),
		},
		receipt.CodeKeyUnknown: {
			change("next_prompt", "rm -rf"), change("Action", "DONE"), change("", "x"), change("confidence", 1),
			userAction(map[string]string{"kind": "a", "ask": "b", "tried": "c", "": "d"}),
		},
		receipt.CodeKeyMissing: {
			change("action", nil), change("evidence", nil), change("supervisor_state", nil), block("{}"),
			userAction(map[string]string{"kind": "a", "ask": "b"}),
		},
		receipt.CodeValue: {
			change("checkpoint", ""), change("reason", " \u00a0\u200b"), change("checkpoint", 7), change("action", true),
			change("task_id", []string{want.TaskID}), change("evidence", "none"), change("evidence", []any{"a", 1}),
			change("evidence", []any{nil}), change("evidence", map[string]string{"a": "b"}), change("evidence", []string{"a", " "}),
			raw(`"tests are next"`, "null"), raw(`"tests are next"`, "1e999"),
			userAction(map[string]any{"kind": "a", "ask": "b", "tried": 3}),
		},
		receipt.CodeLimit: {
			change("checkpoint", long), change("reason", long), change("evidence", []string{strings.Repeat("é", receipt.MaxEvidenceItem+1)}),
			change("evidence", strings.Split(strings.Repeat("x ", receipt.MaxEvidence)+"x", " ")),
			change("task_id", strings.Repeat("t", receipt.MaxID+1)), change("checkpoint", strings.Repeat("x", 600<<10)),
			userAction(map[string]string{"kind": "a", "ask": long, "tried": "c"}),
		},
		receipt.CodeAction: {change("action", "continue"), change("action", "FINISHED"), change("action", "CONTINUE | DONE | NEEDS_USER")},
		receipt.CodeState:  {change("supervisor_state", "done"), change("supervisor_state", "Running")},
		receipt.CodeIdentity: {
			change("conversation_id", "another"), change("task_id", "t_ffffffffffff"), change("active_scope", "goal:other"),
			change("source_effect_id", "fx_ffffffffffffffff"), change("conversation_id", strings.ToUpper(want.ConversationID)),
			change("conversation_id", "new:orders-green"),
		},
		receipt.CodeUserAction: {
			change("user_action", map[string]string{"kind": "a", "ask": "b", "tried": "c"}), change("user_action", "x"),
			block(body(map[string]any{"action": "NEEDS_USER", "supervisor_state": "needs_user"})), userAction("log in"), userAction([]string{}),
		},
		receipt.CodeChallenge: {"C 0123456", "Text\nD 0123456\n", "U " + strings.ToUpper(receipt.Challenge(want.EffectID))},
	}
	for _, row := range receipt.Codes {
		if row.Code == receipt.CodeForm {
			continue // TestOnlyListedFormsAreAccepted
		}
		require.NotEmpty(t, answers[row.Code], "no answer for %s", row.Code)
		for _, answer := range answers[row.Code] {
			got := receipt.Read(answer, want)
			shown := answer[:min(len(answer), 700)]
			require.Equal(t, row.Code, got.Code, "%s\n%s", shown, got.Detail)
			require.Equal(t, row.Violation, got.Violation, shown)
			require.Nil(t, got.Receipt)
			requireQuotable(t, got.Detail)
		}
	}
}

func requireQuotable(t require.TestingT, detail string) {
	require.NotEmpty(t, detail)
	require.LessOrEqual(t, len(detail), receipt.MaxDetail)
	require.NotContains(t, detail, "\n")
	require.NotContains(t, detail, "`")
	require.NotContains(t, detail, "[")
}

func TestTheDetailNamesEverythingThatIsWrong(t *testing.T) {
	got := receipt.Read(block(body(map[string]any{"reason": nil, "evidence": "x", "task_id": "t_1", "foo<<<": 1})), want)
	require.Equal(t, receipt.CodeKeyUnknown, got.Code)
	require.Equal(t, `the key "foo???" is not part of the receipt; the key reason is missing; evidence must be an array of strings; `+
		`task_id is "t_1", not the one in the message`, got.Detail)

	many := map[string]any{}
	for i := range 100 {
		many[fmt.Sprintf("%d%s", i, strings.Repeat("é", 100))] = i
	}
	got = receipt.Read(block(body(many)), want)
	require.Equal(t, receipt.CodeKeyUnknown, got.Code)
	requireQuotable(t, got.Detail)
}

func TestLimitsAreCountedInCharactersAndReached(t *testing.T) {
	text, item := strings.Repeat("é", receipt.MaxText), strings.Repeat("界", receipt.MaxEvidenceItem)
	evidence := make([]string, receipt.MaxEvidence)
	for i := range evidence {
		evidence[i] = item
	}
	got := read(t, block(body(map[string]any{"checkpoint": text, "reason": "  " + text + "\n", "evidence": evidence})))
	require.Equal(t, text, got.Reason)
	require.Equal(t, evidence, got.Evidence)

	escaped := strings.Repeat(`\ud83d\ude00`, receipt.MaxText)
	got = read(t, strings.Replace(valid, "parser written", escaped, 1))
	require.Equal(t, strings.Repeat("😀", receipt.MaxText), got.Checkpoint)

	answer := strings.Repeat("a", receipt.MaxAnswer-len(valid)) + valid
	require.Len(t, answer, receipt.MaxAnswer)
	read(t, answer)
}

func TestACompactLineCarriesTheActionOnly(t *testing.T) {
	code := receipt.Challenge(want.EffectID)
	require.Regexp(t, "^[0-9a-f]{7}$", code)
	for letter, action := range map[string]receipt.Action{"C": receipt.Continue, "D": receipt.Done, "U": receipt.NeedsUser} {
		line := letter + " " + code
		first := read(t, line)
		require.Equal(t, &receipt.Receipt{Form: receipt.Compact, Action: action, Digest: first.Digest}, first)
		require.Equal(t, letter, action.Letter())
		for _, answer := range []string{
			"Text.\n" + line, "Text.\r\n" + line + "\r\n", "C 0000000\n" + line + " \n", letter + "\u00a0\u200b " + code,
			"```\n" + line + "\n```", "text\nCopy code\n" + line + "\nCopy\n", "Text.\n\u200b" + line + "\u200b\n\n",
		} {
			require.Equal(t, first, read(t, answer), "%q", answer)
		}
	}
	require.NotEqual(t, read(t, "C "+code).Digest, read(t, "D "+code).Digest)
}

func TestOnlyListedFormsAreAccepted(t *testing.T) {
	line := "C " + receipt.Challenge(want.EffectID)
	for _, row := range []struct {
		answer string
		forms  []receipt.Form
		code   string
	}{
		{valid, []receipt.Form{receipt.Block}, ""},
		{valid, []receipt.Form{receipt.Compact}, receipt.CodeForm},
		{valid, []receipt.Form{receipt.Compact, receipt.Block}, ""},
		{line, []receipt.Form{receipt.Compact}, ""},
		{line, []receipt.Form{receipt.Block}, receipt.CodeForm},
		{"Done.", []receipt.Form{receipt.Block}, receipt.CodeMissing},
	} {
		w := want
		w.Forms = row.forms
		got := receipt.Read(row.answer, w)
		require.Equal(t, row.code, got.Code)
		require.Equal(t, row.code != "", got.Violation)
	}
}

func TestTheAliasIsValidForItsEffectOnly(t *testing.T) {
	answer := block(body(map[string]any{"conversation_id": "new:orders-green"}))
	require.Equal(t, receipt.CodeIdentity, receipt.Read(answer, want).Code)

	bootstrap := want
	bootstrap.ConversationAlias = "new:orders-green"
	require.Empty(t, receipt.Read(answer, bootstrap).Code)
	require.Empty(t, receipt.Read(valid, bootstrap).Code)
	bootstrap.ConversationID = ""
	require.Empty(t, receipt.Read(answer, bootstrap).Code)
	require.Equal(t, receipt.CodeIdentity, receipt.Read(valid, bootstrap).Code)
}

func TestAProposedScopeIsHandedBack(t *testing.T) {
	adopt := want
	adopt.Scope, adopt.ProposeScope = "", true
	got := receipt.Read(block(body(map[string]any{"active_scope": "goal:found"})), adopt)
	require.Empty(t, got.Code, got.Detail)
	require.Equal(t, "goal:found", got.Receipt.Scope)
	require.Equal(t, receipt.CodeValue, receipt.Read(block(body(map[string]any{"active_scope": " "})), adopt).Code)
}

func TestAnEmptyIdentityMatchesNothing(t *testing.T) {
	require.Equal(t, receipt.CodeIdentity, receipt.Read(valid, receipt.Want{}).Code)
	blank := block(body(map[string]any{"conversation_id": "", "task_id": "", "active_scope": "", "source_effect_id": ""}))
	require.Equal(t, receipt.CodeValue, receipt.Read(blank, receipt.Want{}).Code)
	require.Equal(t, receipt.CodeChallenge, receipt.Read("D "+receipt.Challenge(""), receipt.Want{}).Code)
}

func TestNoPrefixOfAnAnswerIsAReceipt(t *testing.T) {
	answer := "Working.\n```text\n" + valid
	for i := range len(answer) {
		require.Nil(t, receipt.Read(answer[:i], want).Receipt, answer[:i])
	}
	read(t, answer)
}

func TestEveryAnswerIsReadInBoundedTime(t *testing.T) {
	fill := func(piece string) string { return strings.Repeat(piece, receipt.MaxAnswer/len(piece)) }
	tail := func(text string) string { return text[:receipt.MaxAnswer-len(valid)-1] + "\n" + valid }
	open, end := receipt.StartMarker, receipt.EndMarker
	for name, answer := range map[string]string{
		"prose":                 tail(fill("The quick brown fox. ")),
		"no receipt":            fill("The quick brown fox. "),
		"one line":              fill("x"),
		"blank":                 fill(" \u200b\n"),
		"brackets":              fill("<"),
		"braces":                open + fill("{")[:3<<19] + end,
		"starts":                fill(open),
		"starts and a block":    tail(fill(open)),
		"starts with objects":   tail(fill(open + "{")),
		"ends":                  fill(end),
		"starts, then ends":     fill(open + "{")[:3<<19] + fill(end)[:3<<19-100] + valid,
		"copies":                fill(valid + "\n")[:receipt.MaxAnswer/(len(valid)+1)*(len(valid)+1)],
		"quotes":                open + `{"checkpoint":"` + fill(`"}`)[:500<<10] + end,
		"commas":                open + `{"checkpoint":"` + fill(`","`)[:500<<10] + end,
		"backslashes":           open + `{"checkpoint":"` + fill(`\`)[:500<<10] + end,
		"backslashes and quote": open + `{"checkpoint":"` + fill(`\" `)[:500<<10] + end,
		"a huge block":          open + `{"checkpoint":"` + fill("x")[:3<<19] + `"}` + end,
		"marks in strings":      block(`{"checkpoint":"` + fill(open)[:400<<10] + `"}`),
		"fences":                valid + fill("```\n")[:1<<20],
		"here documents":        fill("cat <<<EOF\n"),
	} {
		began := time.Now()
		receipt.Read(answer, want)
		require.Less(t, time.Since(began), 5*time.Second, name)
		t.Logf("%-22s %v", name, time.Since(began))
	}
}

func TestTheFingerprintTellsEveryPartApart(t *testing.T) {
	seen := map[string]bool{}
	for _, parts := range [][5]string{
		{"t", "c", "e", "x", "r"},
		{"t2", "c", "e", "x", "r"},
		{"t", "c2", "e", "x", "r"},
		{"t", "c", "e2", "x", "r"},
		{"t", "c", "e", "x2", "r"},
		{"t", "c", "e", "x", "r2"},
		{"tc", "", "e", "x", "r"},
		{"", "tc", "e", "x", "r"},
	} {
		f := receipt.Fingerprint(parts[0], parts[1], parts[2], parts[3], parts[4])
		require.Len(t, f, 64)
		require.False(t, seen[f])
		require.Equal(t, f, receipt.Fingerprint(parts[0], parts[1], parts[2], parts[3], parts[4]))
		seen[f] = true
	}
}

func TestEveryCodeHasOneMeaning(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range receipt.Codes {
		require.False(t, seen[row.Code], row.Code)
		require.NotEmpty(t, row.Meaning)
		require.Equal(t, row.Code != receipt.CodeMangled, row.Violation)
		seen[row.Code] = true
	}
}
