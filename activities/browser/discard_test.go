package browser

import (
	"testing"
	"time"

	"github.com/mxschmitt/playwright-go"
	"github.com/stretchr/testify/require"

	"steward/activities"
)

// TestADiscardedTabIsOpenedAgain has the browser itself take a tab out of memory.
func TestADiscardedTabIsOpenedAgain(t *testing.T) {
	l, _ := attachedWith(t, func(*Options) {})
	c := l.conversation(t, `otherwise: [{text: begun}, {pause: {gate: go, stop_button: false, busy: false}}, {text: '`+valid+`'}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	done := l.observing(t, observeInput(c, fx))
	discards, err := l.browser.engine.live.context.NewPage()
	require.NoError(t, err)
	_, err = discards.Goto("chrome://discards")
	require.NoError(t, err)
	row := discards.Locator("tr", playwright.PageLocatorOptions{HasText: c.ID})
	require.NoError(t, row.First().WaitFor())
	require.NoError(t, row.Locator("text=Urgent Discard").First().Click())
	require.Eventually(t, func() bool { return l.watching(c.ID) == 0 }, 10*time.Second, 20*time.Millisecond, "the browser has discarded it")
	require.NoError(t, l.Release(c.ID, "go"))
	r := <-done
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.NotNil(t, r.Reading.Receipt)
	require.Len(t, l.Record(c.ID), 1)
}
