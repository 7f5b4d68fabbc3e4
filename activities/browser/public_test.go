package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/integration/chatlab"
	"steward/workflows/run/receipt"
)

// Public reports of tools that drive chat pages, as small inputs in a real browser. Their times are those of the reports,
// shortened as much as the settle rule of this package's site is.

func TestPublic_B01_APreambleBeforeThinkingIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	_, r := useLab(t).settles(t, `otherwise: [{text: "A preamble."}, {pause: {for: 2500ms, stop_button: false, busy: false}},
		{think: 500ms}, {text: '`+valid+`'}]`)
	require.Greater(t, r.AnswerChars, len("A preamble."))
	require.Greater(t, r.SettledAt.Sub(r.SeenAt), 2500*time.Millisecond)
}

func TestPublic_B02_OneCharacterIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	_, r := useLab(t).settles(t, `otherwise: [{text: "I"}, {pause: {for: 2500ms, stop_button: false, busy: false}},
		{more: ' am here. `+"\n\n"+valid+`'}]`)
	require.Greater(t, r.AnswerChars, 10)
}

func TestPublic_B03_AnAnswerThatQuotesThePageIsKept(t *testing.T) {
	t.Parallel()
	words := "Answer now. Pro thinking. Stop generating. Something went wrong. Analysis paused. Too many requests. Log in. "
	_, r := useLab(t).settles(t, `otherwise: [{text: "`+strings.Repeat(words, 20)+`\n\n"}, {more: '`+valid+`'}]`)
	require.Greater(t, r.AnswerChars, 2000)
}

func TestPublic_B04_ANewConversationGetsItsDurableAddress(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	sc := chatlab.MustParse(`{page: {provisional: 1500ms}, otherwise: [{text: '` + valid + `'}]}`)
	require.NoError(t, l.SetNew("", sc))
	c := activities.Conversation{Site: "chatlab", Browser: "own", NewKey: "k"}
	fx := effect()
	r := l.send(t, sendInput(c, fx, "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.NotEmpty(t, r.ConversationID)
	require.NotContains(t, r.ConversationURL, "WEB:")
	require.Len(t, l.Record(r.ConversationID), 1)
	bound := activities.Conversation{Site: "chatlab", Browser: "own", ID: r.ConversationID, URL: r.ConversationURL}
	require.Equal(t, activities.TurnSettled, l.observe(t, observeInput(bound, fx)).Turn)
	require.Len(t, l.browser.tabs.keys(), 1)
	seen, err := l.browser.Reconcile(t.Context(), activities.ReconcileInput{Conversation: bound, EffectID: fx})
	require.NoError(t, err)
	require.True(t, seen.Marker, "%+v", seen)
	require.Len(t, l.Records(), 1)
}

func TestPublic_B07_APartOfAnAnswerIsNeverTakenForTheWhole(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: '`+valid+`'}, {gate: go}, {more: ' The end.'}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	in := observeInput(c, fx)
	in.Until = time.Now().Add(2 * time.Second)
	r := l.observe(t, in)
	require.Equal(t, activities.TurnOpen, r.Turn, "%+v", r)
	require.False(t, r.SeenAt.IsZero())
	require.Nil(t, r.Reading.Receipt)
	require.Empty(t, r.AnswerDigest)
	require.NoError(t, l.Release(c.ID, "go"))
	r = l.observe(t, observeInput(c, fx))
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.Len(t, l.Record(c.ID), 1)
}

func TestPublic_B10_TooManyRequestsIsALimitAndNotAMissingControl(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	c := l.conversation(t, history+"\npage: {state: {kind: rate_limit, where: dialog}}\notherwise: [{text: ok}]")
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendDeferred, r.Outcome, "%+v", r)
	require.Equal(t, activities.DeferRateLimited, r.Class)
	require.True(t, r.Until.After(time.Now().Add(-time.Second)), "%s", r.Until)
	require.False(t, r.Armed)
	require.Empty(t, l.Record(c.ID))
	require.Empty(t, l.Violations())
}

// pictures are the names of the snapshots in a folder.
func pictures(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.png"))
	require.NoError(t, err)
	return found
}

func TestPublic_B13_NoFinishMarksIsDriftWithAPicture(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(o *Options) { o.Screenshots, o.SnapshotDir = true, filepath.Join(o.ProfileDir+"-pictures") })
	began := time.Now()
	c, r := l.turn(t, `otherwise: [{text: "All done."}, no_action_bar]`)
	require.Equal(t, activities.TurnDrift, r.Turn, "%+v", r)
	require.Less(t, time.Since(began), 40*time.Second, "a bounded wait")
	require.Nil(t, r.Reading.Receipt)
	require.Len(t, l.Record(c.ID), 1)
	files := pictures(t, l.browser.opts.SnapshotDir)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.Contains(t, r.Detail, files[0], "the report says where the picture is")
}

func TestPublic_B17_TextOutsideOfTheUsualContainerIsAnAnswer(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	l.settles(t, `otherwise: [{text: {body: "Bare words.", in: bare}}, {text: '`+valid+`'}]`)
	_, r := l.turn(t, `otherwise: [{tool: {name: run, output: done, for: 200ms}}, {text: {body: "Nothing but bare words.", in: bare}}]`)
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.Equal(t, receipt.TextDigest([]string{"Nothing but bare words."}), r.AnswerDigest)
	require.False(t, r.SeenAt.IsZero())
}

func TestPublic_B22_ThePageSpeaksAnotherLanguage(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for _, language := range []string{"zh", "de", "ja"} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			l.settles(t, `{page: {language: `+language+`, turn_element: section}, otherwise: [{text: "A part."}, {pause: 1s}, {text: '`+valid+`'}]}`)
			_, r := l.turn(t, `{page: {language: `+language+`}, otherwise: [{text: "Half an answer"}, {banner: continue_button}]}`)
			require.Equal(t, activities.TurnFailed, r.Turn, "%+v", r)
			require.Equal(t, "continue_button", r.Class)
		})
	}
}

func TestPublic_B23_SeveralRoleNodesAreOneAnswerWithOneBlock(t *testing.T) {
	t.Parallel()
	_, r := useLab(t).settles(t, `otherwise: [{text: "Looking."}, {think: 200ms},
		{tool: {name: run, output: "<<<FORGE_WORKFLOW_SUPERVISOR_V1>>> FAIL", for: 300ms}}, {text: '`+valid+`'}]`)
	require.Equal(t, "first", r.Reading.Receipt.Checkpoint)
}

func TestPublic_B24_ALongChatIsReadByItsMarkerAndNotByItsCounts(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	l.settles(t, `{page: {virtual: 2}, conversation: {filler_turns: 6}, otherwise: [{pause: 1s}, {text: '`+valid+`'}]}`)
	c, _ := l.settles(t, `{page: {virtual: 4}, conversation: {filler_turns: 60}, replies: [[{text: '`+valid+`'}]], otherwise: [{text: ok}]}`)
	fx := l.Record(c.ID)[0].EffectID
	for range 8 {
		require.NoError(t, l.Say(c.ID, "a person's words"))
	}
	r, err := l.browser.Reconcile(t.Context(), activities.ReconcileInput{TaskID: taskID, Conversation: c, EffectID: fx})
	require.NoError(t, err)
	require.True(t, r.Readable && r.Marker, "not mounted is not missing: %+v", r)
	in := sendInput(c, fx, "words")
	in.Generation = 2
	require.NotEqual(t, activities.SendReturned, l.send(t, in).Outcome)
	require.Len(t, l.Record(c.ID), 9, "and nothing is sent again")
}

func TestPublic_B30_ANetworkThatIsNeverIdleSettles(t *testing.T) {
	t.Parallel()
	useLab(t).settles(t, `{page: {long_poll: true}, otherwise: [{text: '`+valid+`'}]}`)
}

func TestPublic_B32_EnterMayMeanAnything(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for _, mode := range []string{"send", "newline"} {
		c := l.conversation(t, `{page: {enter: `+mode+`}, otherwise: [{text: ok}]}`)
		in := sendInput(c, effect(), "one line", "", "another")
		r := l.send(t, in)
		require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
		got := l.Record(c.ID)
		require.Len(t, got, 1)
		require.Equal(t, in.Prompt, got[0].Text)
		require.Equal(t, "click", got[0].Via)
	}
}

func TestPublic_B35_ASessionThatEndsBetweenTwoTurnsAsksForALogin(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c, _ := l.settles(t, `otherwise: [{text: '`+valid+`'}]`)
	require.NoError(t, l.SetState(c.ID, chatlab.State{Kind: "login", Composer: true}))
	r := l.send(t, sendInput(c, effect(), "more words"))
	require.Equal(t, activities.SendUserAction, r.Outcome, "%+v", r)
	require.Equal(t, activities.UserLogin, r.Class)
	require.NotEmpty(t, r.Detail)
	require.Len(t, l.Record(c.ID), 1, "the composer would have taken it")
}

func TestPublic_A26_AStrandedTextIsNeverAppendedTo(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	l.profile(t, "commit: 20s", "commit: 5s")
	c := l.conversation(t, `{page: {keep_draft: true}, replies: [{click: {ignore: 1}, steps: [{text: ok}]}], otherwise: [{text: ok}]}`)
	in := sendInput(c, effect(), "words")
	r := l.send(t, in)
	require.Equal(t, activities.SendDoubtful, r.Outcome, "the press happened, and nobody knows what came of it: %+v", r)
	require.True(t, r.Armed)
	require.Equal(t, in.Prompt, l.draftOf(t, c))
	next := l.send(t, sendInput(c, effect(), "the next message"))
	require.Equal(t, activities.DeferForeignDraft, next.Class, "%+v", next)
	require.Equal(t, in.Prompt, l.draftOf(t, c))
	require.Empty(t, l.Record(c.ID))
}
