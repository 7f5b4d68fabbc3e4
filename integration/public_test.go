package integration

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

const done = `
otherwise:
  - text: '{{receipt "DONE" "done" "all is well" (list "proof")}}'
`

// Public reports of tools that do a part of this job, as small scripts, driven through the whole of Steward.
var publicReports = []struct {
	name, scenario string
	// messages are the user messages on the site at the end, kinds the effects of the ledger.
	messages int
	kinds    string
	// codes are the codes of the turns without a commit.
	codes string
}{
	{
		name:     "TestPublic_A02_a_bare_DONE_completes_nothing",
		scenario: "replies:\n  - - text: DONE\n  - - text: Done.\n" + done,
		messages: 3, kinds: "enrollment correction correction", codes: "receipt_missing receipt_missing",
	},
	{
		name: "TestPublic_A03_a_malformed_block_is_typed_and_never_DONE",
		scenario: `
replies:
  - - text: '{{receipt "DONE" "a" "b" | replace "}\n" ",}\n"}}'
  - - text: '{{receipt "FINISHED" "a" "b"}}'
  - - text: '{{receipt "CONTINUE" "a" "b" | replace "{\"action\"" "{\"action\":\"DONE\",\"action\""}}'
` + done,
		messages: 4, kinds: "enrollment correction correction correction", codes: "receipt_malformed receipt_value receipt_key_duplicate",
	},
	{
		name: "TestPublic_A04_a_block_after_the_stop_button_is_seen",
		scenario: `
replies:
  - - text: The change is in.
    - pause: {for: 2s, stop_button: false, busy: false}
    - text: '{{receipt "CONTINUE" "after a silent pause" "more to do"}}'
` + done,
		messages: 2, kinds: "enrollment continuation",
	},
	{
		name: "TestPublic_A05_a_block_after_a_tool_call_in_the_same_turn_is_seen",
		scenario: `
replies:
  - - text: I look around first.
    - tool: {name: command, output: "ok", for: 200ms}
    - text: '{{receipt "CONTINUE" "suite green" "the report is missing"}}'
` + done,
		messages: 2, kinds: "enrollment continuation",
	},
	{
		name:     "TestPublic_A10_a_promise_to_continue_is_a_missing_block",
		scenario: "replies:\n  - - text: I am continuing, no input required.\n" + done,
		messages: 2, kinds: "enrollment correction", codes: "receipt_missing",
	},
	{
		name: "TestPublic_A24_an_answer_of_3_MB_is_bounded",
		scenario: `
replies:
  - - text: "{{filler 3300000}}\n\n{{receipt \"CONTINUE\" \"huge\" \"more to do\"}}"
` + done,
		messages: 2, kinds: "enrollment correction", codes: "answer_too_long",
	},
	{
		name: "TestPublic_B12_a_form_replaced_on_the_click_is_no_failure",
		scenario: `
replies:
  - click: {replace_form: click}
    steps: [{text: '{{receipt "CONTINUE" "one" "more to do"}}'}]
  - click: {replace_form: pointerdown}
    steps: [{text: '{{receipt "CONTINUE" "two" "more to do"}}'}]
` + done,
		messages: 3, kinds: "enrollment continuation continuation",
	},
	{
		name:     "TestPublic_B20_the_voice_button_is_never_clicked",
		scenario: "page: {send_after: 500ms}\n" + done,
		messages: 1, kinds: "enrollment",
	},
	{
		name: "TestPublic_B25_a_fenced_block_is_parsed_once",
		scenario: `
replies:
  - - text: |
        {{receipt "CONTINUE" "a" "b"}}

        {{receipt "CONTINUE" "a" "b"}}
` + done,
		messages: 2, kinds: "enrollment continuation",
	},
	{
		name: "TestPublic_B34_a_last_chunk_after_the_finish_marker_is_read",
		scenario: `
replies:
  - - text: The tests pass.
    - late: {after: 800ms, text: "\n\n{{receipt \"CONTINUE\" \"after the marker\" \"more to do\"}}"}
  - - text: All is done.
    - late: {after: 800ms, node: new, text: '{{receipt "DONE" "late node" "all is well" (list "proof")}}'}
`,
		messages: 2, kinds: "enrollment continuation",
	},
}

func TestPublicReports(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "public", fault{})
	for _, r := range publicReports {
		t.Run(r.name, func(t *testing.T) {
			conversation := s.conversation(t, r.scenario)
			run := s.start(t, conversation, s.input(conversation, "public"))
			state := s.result(t, run)
			require.Equal(t, policy.GoalComplete, state.Status)
			require.Len(t, s.lab.Record(conversation), r.messages)
			var kinds, codes []string
			for _, turn := range state.Chain() {
				kinds = append(kinds, string(turn.Kind))
				if turn.Action == "" {
					codes = append(codes, turn.Receipt)
				}
				require.Equal(t, 1, s.marked(conversation, turn.Effect), "messages of %s", turn.Effect)
			}
			require.Equal(t, r.kinds, strings.Join(kinds, " "))
			require.Equal(t, r.codes, strings.Join(codes, " "))
			require.Empty(t, s.lab.Violations())
		})
	}
}

// B31: what was typed arrives exactly, with blank lines, tabs, markup and emoji.
func TestPublic_B31_a_prompt_of_many_lines_keeps_them(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "typed", fault{})
	conversation := s.conversation(t, done)
	objective := "Line one\n\n\tindented with <b>markup</b> and `code`\n\n- a list\n1. a number\n**bold** _under_ 🙂\n\nעברית · 中文"
	run := s.start(t, conversation, s.input(conversation, "typed", func(in map[string]any) { in["objective"] = objective }))
	state := s.result(t, run)
	text, err := state.Prompt(state.Effect)
	require.NoError(t, err)
	require.Contains(t, text, "indented with <b>markup</b>")
	require.Equal(t, text, s.lab.Record(conversation)[0].Text)
}

func TestDoneIsVerifiedByTheContractAndNotByTheAssistant(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "verified", fault{})
	conversation := s.conversation(t, `
replies:
  - - text: '{{receipt "DONE" "report written" "all is well" (list "report")}}'
  - - write_file: {path: verified-report.md, content: "all green\n"}
    - text: '{{receipt "DONE" "report really written" "all is well" (list "report")}}'
`)
	run := s.start(t, conversation, s.input(conversation, "verified", func(in map[string]any) {
		in["completion"] = map[string]any{"checks": []any{
			map[string]any{"name": "report", "file": map[string]any{"path": s.dir + "/verified-report.md", "contains": "all green"}},
		}}
	}))
	state := s.result(t, run)
	require.Equal(t, policy.GoalComplete, state.Status)
	require.Equal(t, 1, state.Budgets.Rounds)
	records := s.lab.Record(conversation)
	require.Len(t, records, 2)
	require.Contains(t, records[1].Text, "report: not_found", "the correction names the failed check")
}

func TestStopDuringAnAnswerSendsNothingMore(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "stopped", fault{})
	conversation := s.conversation(t, `
replies:
  - - text: working
    - gate: go
    - text: '{{receipt "CONTINUE" "late" "more to do"}}'
`)
	run := s.start(t, conversation, s.input(conversation, "stopped"))
	s.until(t, run.GetID(), "observing", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	answer := s.update(t, run.GetID(), "stop", map[string]any{"operator": "me", "reason": "enough"})
	require.Equal(t, kernel.Accept, answer.Decision)
	state := s.result(t, run)
	require.Equal(t, policy.Stopped, state.Status)
	require.NoError(t, s.lab.Release(conversation, "go"))
	require.Len(t, s.lab.Record(conversation), 1)
}
