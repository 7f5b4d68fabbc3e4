package browser

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/integration/chatlab"
)

func TestProbes(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	probe := func(level string, c activities.Conversation) activities.ProbeResult {
		require.NoError(t, l.browser.rest.cool(time.Time{}))
		r, err := l.browser.Probe(t.Context(), activities.ProbeInput{ID: effect(), Level: level, Conversation: c})
		require.NoError(t, err)
		return r
	}
	site := activities.Conversation{Site: "chatlab", Browser: "own"}
	r := probe(activities.ProbePage, site)
	require.True(t, r.Passed, "%+v", r)
	good := l.conversation(t, history+"\notherwise: [{text: ok}]")
	r = probe(activities.ProbePage, good)
	require.True(t, r.Passed, "%+v", r)
	for state, class := range map[string]string{
		"login": "login", "rate_limit": activities.DeferRateLimited, "disconnected": activities.DeferPageNotReady, "challenge": "challenge",
	} {
		r = probe(activities.ProbePage, l.conversation(t, history+"\npage: {state: {kind: "+state+"}}"))
		require.False(t, r.Passed)
		require.Equal(t, class, r.Class, "%+v", r)
	}
	r = probe(activities.ProbeMessage, site)
	require.False(t, r.Passed)
	require.Equal(t, "not_allowed", r.Class)
	require.Empty(t, l.Records())
}

// TestAProbeNamesTheRuleThatDrifted breaks each rule that a quiet page must match.
func TestAProbeNamesTheRuleThatDrifted(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(o *Options) { o.Screenshots, o.SnapshotDir = true, o.ProfileDir+"-pictures" })
	c := l.conversation(t, history+"\notherwise: [{text: ok}]")
	for rule, broken := range map[string]string{
		"editor":   "editor: ['#an-older-composer']",
		"form":     "form: ['form.older']",
		"turns":    "turns: ['[data-testid^=older-turn-]']",
		"turn_id":  "turn_id: [data-older-id], message_id: [data-an-older-id]",
		"content":  "content: ['.older-markdown']",
		"finished": "finished: ['[data-testid=an-older-mark]']",
	} {
		t.Run(rule, func(t *testing.T) {
			l.profile(t, "open: 10s", "open: 1500ms", "version: 1", "version: 1\npage: {"+broken+"}")
			began := time.Now()
			r, err := l.browser.Probe(t.Context(), activities.ProbeInput{ID: "probe_" + rule, Level: activities.ProbePage, Conversation: c})
			require.NoError(t, err)
			require.False(t, r.Passed, "%+v", r)
			require.Equal(t, "drift", r.Class)
			require.Contains(t, r.Drifted, rule)
			require.Less(t, time.Since(began), 20*time.Second)
			require.Contains(t, r.Detail, "picture: "+filepath.Join(l.browser.opts.SnapshotDir, "probe_"+rule))
			t.Log(r.Drifted, r.Detail)
		})
	}
}

// TestAMessageProbe sends the profile's one line in a conversation of its own, once per id, and only where it is allowed.
func TestAMessageProbe(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(o *Options) { o.Runs, o.idle = &runs{}, 200*time.Millisecond })
	l.profile(t, "version: 1", "version: 1\nmessage_probe: {allowed: true, text: Please reply with the single word pong.}",
		"commit: 20s", "commit: 5s")
	blocked := l.conversation(t, history+"\notherwise: [{text: ok}]")
	ask := func(id string) activities.ProbeResult {
		r, err := l.browser.Probe(t.Context(), activities.ProbeInput{ID: id, Level: activities.ProbeMessage, Conversation: blocked})
		require.NoError(t, err)
		return r
	}
	require.NoError(t, l.SetNew("", chatlab.MustParse(`otherwise: [{text: pong}]`)))
	r := ask("probe_1")
	require.True(t, r.Passed, "%+v", r)
	require.Equal(t, activities.ProbeMessage, r.Level)
	all := l.Records()
	require.Len(t, all, 1)
	require.NotEqual(t, blocked.ID, all[0].ConversationID)
	lines := strings.Split(all[0].Text, "\n")
	require.Equal(t, "Please reply with the single word pong.", lines[0])
	require.Len(t, lines, 2, "and its marker")
	require.Eventually(t, func() bool { return l.watching(all[0].ConversationID) == 0 }, 15*time.Second, 50*time.Millisecond,
		"its tab is given up")

	again := ask("probe_1")
	require.False(t, again.Passed, "an id is used once: %+v", again)
	require.Len(t, l.Records(), 1)

	require.NoError(t, l.SetNew("", chatlab.MustParse(`replies: [{delivery: {status: 429}, steps: [{text: no}]}]`)))
	failed := ask("probe_2")
	require.False(t, failed.Passed, "%+v", failed)
	require.Len(t, l.Records(), 1)
	require.Empty(t, l.Record(blocked.ID))
}
