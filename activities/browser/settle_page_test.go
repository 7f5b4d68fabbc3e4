package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/workflows/run/receipt"
)

// turn sends one message and observes its turn.
func (l *lab) turn(t *testing.T, scenario string) (activities.Conversation, activities.ObserveResult) {
	t.Helper()
	c := l.conversation(t, scenario)
	fx := effect()
	r := l.send(t, sendInput(c, fx, "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	in := observeInput(c, fx)
	in.Until = time.Now().Add(2 * time.Minute)
	return c, l.observe(t, in)
}

const valid = `{{receipt "CONTINUE" "first" "more to do"}}`

// settles makes a turn that must end with its receipt read, and be one message on the site.
func (l *lab) settles(t *testing.T, scenario string) (activities.Conversation, activities.ObserveResult) {
	t.Helper()
	c, r := l.turn(t, scenario)
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.NotNil(t, r.Reading.Receipt, "%+v", r.Reading)
	require.Equal(t, receipt.Continue, r.Reading.Receipt.Action)
	require.Len(t, l.Record(c.ID), 1)
	return c, r
}

func TestTurnsThatSettleWithAReceipt(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for name, scenario := range map[string]string{
		"A04 B34 receipt after the finish marks": `otherwise: [{text: "Working.\n\n"}, {late: {text: '` + valid + `', after: 800ms}}]`,
		"A04 receipt three seconds later":        `otherwise: [{text: "Working."}, {late: {text: '` + valid + `', after: 3s, node: new}}]`,
		"B25 code with newlines":                 `{page: {code: newlines}, otherwise: [{text: '` + valid + `'}]}`,
		"B25 code with line breaks":              `{page: {code: breaks}, otherwise: [{text: '` + valid + `'}]}`,
		"look-alikes":                            `{page: {decoys: [submit, stop, busy]}, otherwise: [{text: '` + valid + `'}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l.settles(t, scenario)
		})
	}
}

func TestATurnWithoutAReceiptSettlesAfterTheExtraTime(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	began := time.Now()
	_, r := l.turn(t, `otherwise: [{text: "I go on, no input required."}]`)
	require.Equal(t, activities.TurnSettled, r.Turn)
	require.Nil(t, r.Reading.Receipt)
	require.Equal(t, receipt.CodeMissing, r.Reading.Code)
	require.NotEmpty(t, r.AnswerDigest)
	require.Greater(t, time.Since(began), 3*time.Second)
}

func TestATurnOfToolsAloneSettles(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	_, r := l.turn(t, `otherwise: [{tool: {name: run, output: done, for: 200ms}}]`)
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.Empty(t, r.AnswerDigest)
	require.False(t, r.SeenAt.IsZero())
}

func TestProviderFailuresComeFromStatusRegions(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for kind, class := range map[string]string{
		"error": "turn_error", "network_error": "network_error", "stopped_thinking": "stopped_thinking",
		"analysis_paused": "delivery_unavailable", "delivery_timed_out": "delivery_unavailable", "continue_button": "continue_button",
	} {
		for _, language := range []string{"en", "zh"} {
			t.Run(kind+" "+language, func(t *testing.T) {
				t.Parallel()
				_, r := l.turn(t, `{page: {language: `+language+`}, otherwise: [{text: "Half an answer"}, {banner: `+kind+`}]}`)
				require.Equal(t, activities.TurnFailed, r.Turn, "%+v", r)
				require.Equal(t, class, r.Class)
			})
		}
	}
}

func TestPublic_B27_AStalledPageIsLoadedAgain(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	_, r := l.turn(t, `otherwise: [{text: "Before."}, stall, {text: '`+valid+`'}]`)
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.NotNil(t, r.Reading.Receipt)
}

func TestPublic_B33_AFailureThatThePageMendsItselfIsNone(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c, r := l.turn(t, `replies: [{steps: [{text: "I begin with"}, {banner: {kind: error, auto_retry: 1500ms}}],
		on_retry: [{text: '`+valid+`'}]}]`)
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.NotNil(t, r.Reading.Receipt)
	require.Len(t, l.Record(c.ID), 1)
}

func TestPublic_A24_AHugeAnswerIsReadWholeAndLeavesOnlyDigests(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	_, r := l.turn(t, `otherwise: [{text: "{{filler 3000000}}\n\n{{receipt \"CONTINUE\" \"huge\" \"more to do\"}}"}]`)
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.NotNil(t, r.Reading.Receipt, "%+v", r.Reading)
	require.Greater(t, r.AnswerChars, 2_000_000)

	_, r = l.turn(t, `otherwise: [{text: "{{filler 3400000}}\n\n{{receipt \"CONTINUE\" \"huge\" \"more to do\"}}"}]`)
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.Equal(t, receipt.CodeAnswerTooLong, r.Reading.Code)
}

func TestTheDigestOfAnAnswerDoesNotDependOnHowItIsShown(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	digests := map[string]bool{}
	for _, page := range []string{`{code: breaks}`, `{code: newlines, language: de, turn_element: div, decoys: [stop]}`} {
		_, r := l.turn(t, `{page: `+page+`, otherwise: [{think: 100ms},
			{text: "One *word*.\n\n- a\n- b\n\n`+"```go\\nx := 1\\n\\ny := 2\\n```"+`"}]}`)
		require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
		digests[r.AnswerDigest] = true
	}
	require.Equal(t, map[string]bool{receipt.TextDigest([]string{"One word. a b x := 1 y := 2"}): true}, digests)
}
