package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
)

// history is a turn that stands in a conversation already.
const history = `conversation: {history: [{role: user, text: hello}, {role: assistant, text: hi}]}`

func TestPageStatesBeforeASend(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	const limited = activities.DeferRateLimited
	for _, c := range []struct {
		name, page, class string
		outcome           activities.SendOutcome
		until             bool
	}{
		{"login", `{state: {kind: login}}`, "login", activities.SendUserAction, false},
		{"login in German", `{language: de, state: {kind: login}}`, "login", activities.SendUserAction, false},
		{"consent", `{state: {kind: consent}}`, "consent", activities.SendUserAction, false},
		{"consent in Japanese", `{language: ja, state: {kind: consent}}`, "consent", activities.SendUserAction, false},
		{"challenge", `{state: {kind: challenge}}`, "challenge", activities.SendUserAction, false},
		{"too many requests in an alert", `{language: zh, state: {kind: rate_limit, where: alert}}`, limited, activities.SendDeferred, true},
		{"usage limit with an end", `{state: {kind: usage_limit, for: 1h}}`, limited, activities.SendDeferred, true},
		{"usage limit in Japanese", `{language: ja, state: {kind: usage_limit, for: 1h}}`, limited, activities.SendDeferred, true},
		{"conversation limit", `{state: {kind: conversation_limit}}`, "conversation_limit", activities.SendUserAction, false},
		{"disconnected", `{state: {kind: disconnected}}`, activities.DeferPageNotReady, activities.SendDeferred, false},
		{"error", `{state: {kind: error}}`, activities.DeferPageNotReady, activities.SendDeferred, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, l.browser.rest.cool(time.Time{}))
			conv := l.conversation(t, history+"\npage: "+c.page+"\notherwise: [{text: ok}]")
			r := l.send(t, sendInput(conv, effect(), "words"))
			require.Equal(t, c.outcome, r.Outcome, "%+v", r)
			require.Equal(t, c.class, r.Class)
			require.Equal(t, c.until, !r.Until.IsZero())
			require.False(t, r.Armed)
			require.Empty(t, l.Record(conv.ID))
		})
	}
}

func TestPublic_A15_A16_ALimitHoldsUntilItsEndAndThenOneMessageGoes(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	c := l.conversation(t, history+"\npage: {state: {kind: rate_limit, loads: 1, where: dialog}}\notherwise: [{text: ok}]")
	in := sendInput(c, effect(), "words")
	first := l.send(t, in)
	require.Equal(t, activities.DeferRateLimited, first.Class, "%+v", first)
	again := l.send(t, in)
	require.Equal(t, activities.DeferCooldown, again.Class, "a resting browser does not even look: %+v", again)
	require.Empty(t, l.Record(c.ID))
	time.Sleep(time.Until(first.Until))
	require.Equal(t, activities.SendCommitted, l.send(t, in).Outcome, "the dialog that still stands there is loaded away")
	require.Len(t, l.Record(c.ID), 1)
}

func TestAMissingConversation(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, history)
	c.ID = "00000000-0000-4000-8000-000000000000"
	c.URL = l.URL() + "/c/" + c.ID
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendMissing, r.Outcome, "%+v", r)
	seen := l.observe(t, observeInput(c, effect()))
	require.Equal(t, activities.TurnMissing, seen.Turn, "%+v", seen)
}

func TestABusyConversationWaits(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `replies: [[{text: begun}, {gate: go}], [{text: ok}]]`)
	first := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, first, "words")).Outcome)
	r := l.send(t, sendInput(c, effect(), "more words"))
	require.Equal(t, activities.DeferBusy, r.Class, "%+v", r)
	require.NoError(t, l.Release(c.ID, "go"))
	require.Equal(t, activities.TurnSettled, l.observe(t, observeInput(c, first)).Turn)
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, effect(), "more words")).Outcome)
	require.Len(t, l.Record(c.ID), 2)
}

func TestTheCausalFence(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: '`+valid+`'}]`)
	source := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, source, "words")).Outcome)
	turn := l.observe(t, observeInput(c, source))
	require.Equal(t, activities.TurnSettled, turn.Turn)

	next := sendInput(c, effect(), "more words")
	next.Fence = &activities.Fence{SourceEffect: source, AnswerDigest: digestOf("another answer")}
	r := l.send(t, next)
	require.Equal(t, activities.DeferConversationMoved, r.Class, "%+v", r)

	next.Fence.AnswerDigest = turn.AnswerDigest
	require.Equal(t, activities.SendCommitted, l.send(t, next).Outcome)

	third := sendInput(c, effect(), "a late one")
	third.Fence = &activities.Fence{SourceEffect: source, AnswerDigest: turn.AnswerDigest}
	require.Equal(t, activities.TurnSettled, l.observe(t, observeInput(c, next.EffectID)).Turn)
	r = l.send(t, third)
	require.Equal(t, activities.DeferConversationMoved, r.Class, "%+v", r)
	require.Len(t, l.Record(c.ID), 2)
}

func TestTheSameEffectIsNeverSentTwice(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	in := sendInput(c, effect(), "words")
	require.Equal(t, activities.SendCommitted, l.send(t, in).Outcome)
	in.Generation = 2
	r := l.send(t, in)
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.True(t, r.AlreadyThere)
	require.False(t, r.Armed)
	require.Len(t, l.Record(c.ID), 1)
}

func TestASiteThatDoesNotAnswerHasACodeOfItsOwn(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	c := l.conversation(t, history)
	require.NoError(t, l.Close())
	for range 2 {
		r := l.send(t, sendInput(c, effect(), "words"))
		require.Equal(t, []any{activities.SendReturned, activities.CodeUnreachable, false}, []any{r.Outcome, r.Code, r.Armed}, "%+v", r)
	}
	r, err := l.browser.Probe(t.Context(), activities.ProbeInput{ID: "pr_1", Level: activities.ProbePage, Conversation: c})
	require.NoError(t, err)
	require.False(t, r.Passed)

	// The browser loses a close that comes with the error page of the last navigation.
	s, err := l.browser.engine.session(t.Context())
	require.NoError(t, err)
	for _, tb := range l.browser.tabs.open {
		require.True(t, l.browser.tabs.close(tb))
		require.True(t, tb.page.IsClosed())
	}
	require.False(t, s.dead.Load(), "one tab is no reason to give the browser up")
}
