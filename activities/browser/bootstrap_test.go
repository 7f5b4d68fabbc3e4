package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/integration/chatlab"
)

const project = "g-p-0123456789abcdef-orders"

func newConversation(l *lab, key string) activities.Conversation {
	return activities.Conversation{Site: "chatlab", Browser: "own", NewKey: key, PageURL: l.URL() + "/g/" + project + "/project"}
}

// A conversation that keeps its temporary address for longer than the send waits is sent to once, and found.
func TestATemporaryAddressIsFollowedByTheObservation(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	require.NoError(t, l.SetNew(project, chatlab.MustParse(`{page: {provisional: 3s}, otherwise: [{text: '`+valid+`'}]}`)))
	site, err := l.browser.opts.Sites.Site("chatlab")
	require.NoError(t, err)
	site.Timings.Address = 100 * time.Millisecond
	c, fx := newConversation(l, "k"), effect()
	r := l.send(t, sendInput(c, fx, "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Empty(t, r.ConversationID)
	seen, err := l.browser.Reconcile(t.Context(), activities.ReconcileInput{Conversation: c, EffectID: fx})
	require.NoError(t, err)
	require.True(t, seen.Marker, "%+v", seen)
	require.Empty(t, seen.ConversationURL)
	l.browser.tabs.mu.Lock()
	tab := l.browser.tabs.open["new:chatlab:k"]
	require.True(t, l.browser.tabs.keep(tab), "the only way to the conversation")
	l.browser.tabs.mu.Unlock()
	o := l.observe(t, observeInput(c, fx))
	require.Equal(t, activities.TurnOpen, o.Turn, "%+v", o)
	require.NotEmpty(t, o.ConversationID)
	require.Equal(t, l.ConversationURL(o.ConversationID), o.ConversationURL)
	require.Len(t, l.Record(o.ConversationID), 1)
	require.Len(t, l.browser.tabs.open, 1)
	bound := activities.Conversation{Site: "chatlab", Browser: "own", ID: o.ConversationID, URL: o.ConversationURL}
	require.Equal(t, activities.TurnSettled, l.observe(t, observeInput(bound, fx)).Turn)
	require.Empty(t, l.Violations())
}

// The page of a project that is gone may lead elsewhere. No conversation begins there.
func TestANewConversationBeginsOnItsOwnPageOnly(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	c := newConversation(l, "k")
	in := sendInput(c, effect(), "words")
	in.Kind = "continuation"
	r := l.send(t, in)
	require.Equal(t, activities.SendReturned, r.Outcome, "another prompt would create a second conversation")
	require.Equal(t, "prompt_refused", r.Code)

	p, err := l.browser.place(c)
	require.NoError(t, err)
	tab, err := l.browser.tabs.ensure(t.Context(), p)
	require.NoError(t, err)
	for _, elsewhere := range []string{l.URL() + "/", l.conversation(t, history).URL, l.URL() + "/g/g-p-fedcba9876543210/project"} {
		a := l.browser.judge(p, tab, look{URL: elsewhere, Ready: true})
		require.True(t, a.missing, elsewhere)
		require.False(t, a.ready, elsewhere)
	}
	require.True(t, l.browser.judge(p, tab, look{URL: l.URL() + "/g/g-p-0123456789abcdef/project", Ready: true}).ready, "the slug may be missing")
	require.NoError(t, l.browser.tabs.load(t.Context(), tab, l.URL()+"/"))
	fx := effect()
	r = l.send(t, sendInput(c, fx, "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Contains(t, r.ConversationURL, "/g/"+project+"/c/", "its tab was led back")
	require.Len(t, l.Records(), 1)
}

// A listed conversation of another project, or one that another prompt created, is not looked into.
func TestOnlyLikelyConversationsAreSearched(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	p, err := l.browser.place(newConversation(l, "k"))
	require.NoError(t, err)
	const other = "/c/11111111-1111-4111-8111-111111111111"
	mine := l.URL() + "/g/g-p-0123456789abcdef/c/22222222-2222-4222-8222-222222222222"
	theirs := l.URL() + "/g/" + project + "/c/33333333-3333-4333-8333-333333333333"
	require.NoError(t, l.browser.tabs.born(p, nil, "fx_theirs", "33333333-3333-4333-8333-333333333333", theirs))
	links := []string{l.URL() + other, l.URL() + "/g/g-p-fedcba9876543210" + other, l.URL() + "/g/" + project + "/c/WEB:1", theirs, mine, "https://example.com" + other}
	require.Equal(t, []string{mine}, l.browser.candidates(p, "fx_mine", links))
	require.Equal(t, []string{theirs, mine}, l.browser.candidates(p, "fx_theirs", links))
}

// The text of a bootstrap that never armed may stand in the composer that the next one of the same page gets.
func TestTheResidueOfAnotherBootstrapOfTheSamePageIsReplacedOnce(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	first, fx := newConversation(l, "first"), effect()
	residue := prompt(first, fx, "the first one")
	sc := chatlab.MustParse(`otherwise: [{text: ok}]`)
	sc.Page.Draft = residue
	require.NoError(t, l.SetNew(project, sc))
	note := &draftNote{Effect: fx, Length: length(residue), Digest: digestOf(residue)}
	require.NoError(t, l.browser.tabs.change("new:chatlab:first", func(r *record) { r.URL, r.Note = first.PageURL, note }))
	r := l.send(t, sendInput(newConversation(l, "second"), effect(), "the second one"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	r = l.send(t, sendInput(newConversation(l, "third"), effect(), "the third one"))
	require.Equal(t, activities.DeferForeignDraft, r.Class, "it was cleared once already")
	require.Len(t, l.Records(), 1)
}
