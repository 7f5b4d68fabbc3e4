package browser

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/integration/chatlab"
	"steward/workflows/discover/scan"
)

// Membership is read from the conversation's own address; a link of another project contradicts and changes nothing.
func TestMembersAreProvenByTheirOwnAddress(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	p, err := l.browser.place(newConversation(l, "k"))
	require.NoError(t, err)
	const a, b, c = "6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e", "22222222-2222-4222-8222-222222222222", "33333333-3333-4333-8333-333333333333"
	within, bare := l.URL()+"/g/"+project+"/c/", l.URL()+"/g/g-p-0123456789abcdef/c/"
	members, contradictions := p.members([]link{
		{l.URL() + "/c/" + a, "Stale"},
		{within + a, "Orders"},
		{within + a, "Orders again"},
		{bare + b, ""},
		{within + b, "Late title"},
		{l.URL() + "/g/g-p-fedcba9876543210-other/c/" + b, "Theirs"},
		{l.URL() + "/c/" + c, "Side bar"},
		{l.URL() + "/g/g-p-fedcba9876543210-other/c/" + c, "Other"},
		{"https://example.com/g/" + project + "/c/" + c, "Foreign"},
		{within + "WEB:1", "Unborn"},
		{l.URL() + "/g/" + project + "/project", "The page"},
	}, time.Now())
	require.Equal(t, []scan.Conversation{
		{ID: a, URL: within + a, Title: "Orders", CreatedAt: time.Unix(0x6710a2f4, 0).UTC()}, {ID: b, URL: bare + b, Title: "Late title"},
	}, members)
	require.Equal(t, 2, contradictions)
}

func TestDiscoverListsAndInspectLooksIn(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	in := activities.DiscoverInput{Site: "chatlab", Browser: "own", PageURL: l.URL() + "/g/" + project + "/project", Most: 3}
	found, err := l.browser.Discover(t.Context(), in)
	require.NoError(t, err)
	require.True(t, found.Readable && found.Complete, "%+v", found)
	require.Empty(t, found.Conversations)

	old := func(project, title string, said ...string) string {
		var history []chatlab.Message
		for _, text := range said {
			history = append(history, chatlab.Message{Role: "user", Text: text}, chatlab.Message{Role: "assistant", Text: "Yes."})
		}
		id, err := l.NewConversation(chatlab.Conversation{Project: project, Title: title, History: history, Scenario: chatlab.MustParse(`page: {virtual: 4}`)})
		require.NoError(t, err)
		return id
	}
	plain := old(project, "Plain", "Please do it.")
	supervised := old("g-p-0123456789abcdef-renamed", "Supervised", "Begin.\n[steward fx_0123456789abcdef]", "a", "b", "c", "d", "e", "f", "g", "h")
	old("g-p-fedcba9876543210-other", "Other", "Not here.")
	found, err = l.browser.Discover(t.Context(), in)
	require.NoError(t, err)
	require.Len(t, found.Conversations, 2)
	require.Equal(t, []string{"Supervised", "Plain"}, []string{found.Conversations[0].Title, found.Conversations[1].Title})
	require.WithinDuration(t, time.Now(), found.Conversations[0].CreatedAt, time.Minute)
	in.Most = 1
	found, err = l.browser.Discover(t.Context(), in)
	require.NoError(t, err)
	require.Len(t, found.Conversations, 1)
	require.False(t, found.Complete)

	inspect := func(id, url string) activities.InspectResult {
		r, err := l.browser.Inspect(t.Context(), activities.InspectInput{Conversation: activities.Conversation{Site: "chatlab", Browser: "own", ID: id, URL: url}})
		require.NoError(t, err)
		return r
	}
	r := inspect(plain, l.ConversationURL(plain))
	require.Equal(t, []bool{true, false, false}, []bool{r.Readable, r.Supervised, r.Moved}, "%+v", r)
	r = inspect(supervised, l.ConversationURL(supervised))
	require.True(t, r.Supervised, "a message far up, which the page did not mount: %+v", r)
	r = inspect("44444444-4444-4444-8444-444444444444", l.URL()+"/g/"+project+"/c/44444444-4444-4444-8444-444444444444")
	require.True(t, r.Moved, "%+v", r)
	require.False(t, r.Readable)
	require.Empty(t, l.Records(), "nothing was sent")
}
