package browser

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/config/sites"
)

var languages = []string{"en", "zh", "de", "ja"}

// spoken are the languages for the i-th case: two of them, all in the full suite.
func spoken(i int) []string {
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		return languages
	}
	return []string{languages[i%4], languages[(i+1)%4]}
}

// there opens a conversation and returns what stands there.
func (l *lab) there(t *testing.T, c activities.Conversation) arrival {
	t.Helper()
	p := l.place(t, c)
	lease, err := l.browser.pool.lease(t.Context(), p.key, false)
	require.NoError(t, err)
	defer lease.release()
	a, err := l.browser.arrive(t.Context(), p, lookQuery{})
	require.NoError(t, err)
	return a
}

func TestEveryPageStateIsKnownInEveryLanguage(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for i, one := range [][2]string{
		{"login", `{kind: login}`},
		{"consent", `{kind: consent}`},
		{"challenge", `{kind: challenge}`},
		{"rate_limited", `{kind: rate_limit, where: alert}`},
		{"plan_limit", `{kind: usage_limit, for: 1h}`},
		{"conversation_limit", `{kind: conversation_limit}`},
		{"disconnected", `{kind: disconnected}`},
		{"site_error", `{kind: error}`},
	} {
		state, page := one[0], one[1]
		for _, language := range spoken(i) {
			t.Run(state+" "+language, func(t *testing.T) {
				t.Parallel()
				c := l.conversation(t, history+"\npage: {language: "+language+", state: "+page+"}\notherwise: [{text: ok}]")
				a := l.there(t, c)
				require.False(t, a.ready)
				require.NotNil(t, a.state, "%+v", a.look)
				require.Equal(t, state, a.state.Name)
				if state == "plan_limit" {
					end := a.state.End(a.text, time.Now())
					require.WithinDuration(t, time.Now().Add(time.Hour), end, 2*time.Minute, a.text)
				}
			})
		}
	}
}

func TestAMissingConversationIsKnownInEveryLanguage(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	site := l.place(t, l.conversation(t, history)).site
	i := slices.IndexFunc(site.States, func(s sites.State) bool { return s.Name == "conversation_missing" })
	for _, language := range languages {
		require.NotEmpty(t, site.States[i].Rules[0].Text[language], language)
	}
	c := l.conversation(t, history)
	c.ID = "00000000-0000-4000-8000-000000000001"
	c.URL = l.URL() + "/c/" + c.ID
	a := l.there(t, c)
	require.True(t, a.missing)
	require.Equal(t, "conversation_missing", a.state.Name)
}

func TestEveryFailureOfATurnIsKnownInEveryLanguage(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for i, one := range [][2]string{
		{"error", "turn_error"},
		{"network_error", "network_error"},
		{"stopped_thinking", "stopped_thinking"},
		{"analysis_paused", "delivery_unavailable"},
		{"delivery_timed_out", "delivery_unavailable"},
		{"continue_button", "continue_button"},
	} {
		kind, class := one[0], one[1]
		for _, language := range spoken(i + 2) {
			t.Run(kind+" "+language, func(t *testing.T) {
				t.Parallel()
				c := l.conversation(t, `{page: {language: `+language+`}, otherwise: [{text: "Half an answer"}, {banner: `+kind+`}]}`)
				fx := effect()
				require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
				site := l.place(t, c).site
				require.Eventually(t, func() bool {
					a := l.there(t, c)
					state, _ := a.look.state(site, sites.Failed)
					return state != nil && state.Class == class && a.ready
				}, 10*time.Second, 100*time.Millisecond)
			})
		}
	}
}

// sayings are all words by which the profile knows a page state, of one language.
func sayings(site *sites.Site, language string) []string {
	var all []string
	for _, state := range site.States {
		for _, rule := range state.Rules {
			all = append(all, rule.Text[language]...)
			all = append(all, rule.Title[language]...)
		}
	}
	return all
}

// A conversation that speaks of limits, errors and logins, on both sides, is an ordinary one.
func TestWordsOfThePageInAConversationAreNoState(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for _, language := range spoken(2) {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			site := l.place(t, l.conversation(t, history)).site
			words := sayings(site, language)
			require.Greater(t, len(words), 15)
			quoted := strings.Join(words, ". ") + ".\n\n> " + strings.Join(words, "\n> ") + "\n\n- " + strings.Join(words, "\n- ") +
				"\n\n```text\n" + strings.Join(words, "\n") + "\n```\n\n"
			text := strings.NewReplacer("\n", "\n      ").Replace(quoted)
			c := l.conversation(t, "page: {language: "+language+"}\notherwise:\n  - text: |\n      "+text+"\n      "+valid+"\n")
			for range 2 {
				fx := effect()
				r := l.send(t, sendInput(c, fx, words...))
				require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
				turn := l.observe(t, observeInput(c, fx))
				require.Equal(t, activities.TurnSettled, turn.Turn, "%+v", turn)
				require.NotNil(t, turn.Reading.Receipt, "%+v", turn.Reading)
			}
			require.Len(t, l.Record(c.ID), 2)
		})
	}
}

// A person presses the page's Continue: the turn goes on, and nothing else was sent.
func TestATurnThatAPersonContinuesIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: "The first half. "}, {banner: continue_button},
		{more: "\n\n{{receipt \"CONTINUE\" \"a\" \"b\"}}"}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	require.NoError(t, l.AwaitGate(t.Context(), c.ID, "continue_button"))
	time.AfterFunc(time.Second, func() { _ = l.Release(c.ID, "continue_button") })
	turn := l.observe(t, observeInput(c, fx))
	require.Equal(t, activities.TurnSettled, turn.Turn, "%+v", turn)
	require.NotNil(t, turn.Reading.Receipt)
	require.Len(t, l.Record(c.ID), 1)
}
