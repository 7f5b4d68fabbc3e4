package chatlab

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShippedScenariosParse(t *testing.T) {
	require.NotEmpty(t, ScenarioNames())
	for _, name := range ScenarioNames() {
		sc, err := LoadScenario(name)
		require.NoError(t, err)
		require.NotEmpty(t, sc.About, name)
		require.True(t, len(sc.Replies) > 0 || len(sc.Otherwise) > 0, name)
	}
	_, err := LoadScenario("demoo")
	require.ErrorContains(t, err, "demo,")
}

func TestScenarioErrorsNameLineAndReason(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                             "empty",
		"replies: 1":                                                   "line 1",
		"about: x\nreply: []":                                          "line 2: unknown key \"reply\" (known: about, conversation, page",
		"about: x\nabout: y":                                           "line 2: mapping key \"about\" already defined at line 1",
		"about: x\n---\nabout: y":                                      "one YAML document",
		"page:\n  languages: de":                                       "line 2: unknown key \"languages\"",
		"page:\n  language: fr":                                        "language is \"fr\", want one of en, zh, de, ja",
		"page: {decoys: [submit, mouse]}":                              "decoys is \"mouse\"",
		"page: {state: logn}":                                          "state is \"logn\"",
		"page: {state: {kind: login, n: 1}}":                           "unknown key \"n\"",
		"replies:\n- - txt: a":                                         "line 2: unknown step \"txt\" (known: banner, draft",
		"replies:\n- - drop: 1":                                        "line 2: step \"drop\" takes no argument",
		"replies:\n- - text":                                           "line 2: step \"text\" needs an argument",
		"replies:\n- - {text: a, more: b}":                             "a step is one word",
		"replies:\n- - text: '{{.Effect'":                              "line 2: template",
		"replies:\n- - text: '{{reciept}}'":                            "function \"reciept\" not defined",
		"replies:\n- - pause: 2 s":                                     "line 2",
		"replies:\n- - pause: -2s":                                     "for is -2s, want 0 or more",
		"replies:\n- - stream: {every: 1s}":                            "pieces is 0",
		"replies:\n- - run: []":                                        "argument vector",
		"replies:\n- steps: []":                                        "line 2: a reply needs steps",
		"replies:\n- {times: 0, steps: [drop]}":                        "times is 0",
		"replies:\n- {when: {matches: '('}, steps: [drop]}":            "error parsing regexp",
		"replies:\n- {delivery: {status: 200}, steps: [drop]}":         "status is 200",
		"replies:\n- {click: {replace_form: hover}, steps: [drop]}":    "replace_form is \"hover\"",
		"replies:\n- - banner: oops":                                   "kind is \"oops\"",
		"conversation: {history: [{role: robot, text: a}]}":            "role is \"robot\"",
		"conversation: {filler_turns: -1}":                             "filler_turns is -1",
		"replies:\n- - tool: {name: a, output: b, role: user}":         "role is \"user\"",
		"otherwise:\n- late: {text: a, node: other}":                   "node is \"other\"",
		"replies:\n- {delivery: {show_after: -1s}, steps: [drop]}":     "show_after is -1s",
		"replies:\n- - write_file: {path: a, content: b, mode: '644'}": "unknown key \"mode\"",
	} {
		_, err := ParseScenario([]byte(text))
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestFactsOfAPrompt(t *testing.T) {
	f := factsOf("Go on.\n\nconversation_id: 6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e\n  task_id: `t_0123456789ab`\n" +
		"active_scope: goal:orders-green\nsource_effect_id: fx_1111111111111111\n" +
		"quoted: [steward fx_2222222222222222]\n[steward fx_3333333333333333]\n")
	require.Equal(t, "6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e", f.ConversationID)
	require.Equal(t, "t_0123456789ab", f.TaskID)
	require.Equal(t, "goal:orders-green", f.Scope)
	require.Equal(t, "fx_3333333333333333", f.EffectID)
	require.Equal(t, "1ed0980", f.Challenge)
	require.Equal(t, "fx_1111111111111111", factsOf("source_effect_id: fx_1111111111111111").EffectID)
	require.Empty(t, factsOf("no marker here").EffectID)
}

func render(t *testing.T, source string, f Facts) string {
	t.Helper()
	sc, err := ParseScenario([]byte("otherwise:\n- text: |-\n    " + source))
	require.NoError(t, err)
	out, err := sc.Otherwise[0].action.(*text).Body.render(f)
	require.NoError(t, err)
	return out
}

func TestReceiptTemplates(t *testing.T) {
	f := factsOf("conversation_id: new:orders\ntask_id: t_1\nactive_scope: goal:x\n[steward fx_0123456789abcdef]")
	block := render(t, `{{receipt "DONE" "all" "it <works>" (list "a" "b")}}`, f)
	lines := strings.Split(block, "\n")
	const begin, end = "<<<FORGE_WORKFLOW_SUPERVISOR_V1>>>", "<<<END_FORGE_WORKFLOW_SUPERVISOR_V1>>>"
	require.Equal(t, []string{"```text", begin, lines[2], end, "```"}, lines)
	var body map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[2]), &body))
	require.Equal(t, map[string]any{
		"action": "DONE", "supervisor_state": "done", "conversation_id": "new:orders", "task_id": "t_1", "active_scope": "goal:x",
		"source_effect_id": "fx_0123456789abcdef", "checkpoint": "all", "reason": "it <works>", "evidence": []any{"a", "b"},
	}, body)
	require.Contains(t, lines[2], "<works>")
	require.Contains(t, render(t, `{{needs_user "c" "r" "decision" "Which?" "both"}}`, f),
		`"user_action":{"kind":"decision","ask":"Which?","tried":"both"}`)
	require.Equal(t, "C "+f.Challenge, render(t, `{{compact "C"}}`, f))
	require.Equal(t, "fx_0", render(t, `{{.EffectID | replace "123456789abcdef" ""}}`, f))
	require.Len(t, render(t, `{{filler 3145728}}`, f), 3<<20)
}

func TestRepliesAreServedInOrder(t *testing.T) {
	sc := MustParse(`
replies:
  - {when: {contains: later}, steps: [{text: matched}]}
  - [{text: first}]
  - {times: 2, steps: [{text: twice}]}
otherwise: [{text: rest}]
`)
	c := newChat("id", "")
	c.setScenario(sc, 0)
	var served []string
	for _, message := range []string{"a", "b", "later", "later", "c"} {
		i, r := c.pick(message)
		if i >= 0 {
			c.used[i]++
		}
		out, err := r.Steps[0].action.(*text).Body.render(Facts{})
		require.NoError(t, err)
		served = append(served, out)
	}
	require.Equal(t, []string{"first", "twice", "matched", "twice", "rest"}, served)
}

func TestWriteFileStaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, replaceFile(dir, "a/b.txt", "one"))
	require.NoError(t, replaceFile(dir, dir+"/a/b.txt", "two"))
	require.FileExists(t, dir+"/a/b.txt")
	require.NoFileExists(t, dir+"/a/b.txt.part")
	require.Error(t, replaceFile(dir, "../outside.txt", "no"))
	require.Error(t, replaceFile(dir, "/etc/outside.txt", "no"))
}
