package browser

import (
	"testing"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/workflows/run/receipt"
)

func TestOneTurn(t *testing.T) {
	l := useLab(t)
	c := l.conversation(t, `
replies:
  - [{think: 300ms}, {text: "Working on it.\n\n{{receipt \"CONTINUE\" \"first\" \"more to do\"}}"}]
`)
	fx := effect()
	in := sendInput(c, fx, "Please go on.")
	sent := l.send(t, in)
	require.Equal(t, activities.SendCommitted, sent.Outcome, "%+v", sent)
	require.Equal(t, c.ID, sent.ConversationID)
	require.True(t, sent.Armed)
	got := l.Record(c.ID)
	require.Len(t, got, 1)
	require.Equal(t, in.Prompt, got[0].Text)
	require.Equal(t, "click", got[0].Via)

	seen := l.observe(t, observeInput(c, fx))
	require.Equal(t, activities.TurnSettled, seen.Turn, "%+v", seen)
	require.NotNil(t, seen.Reading.Receipt, "%+v", seen.Reading)
	require.Equal(t, receipt.Continue, seen.Reading.Receipt.Action)
	require.Empty(t, l.Violations())
}
