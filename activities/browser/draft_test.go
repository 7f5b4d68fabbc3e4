package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/integration/chatlab"
)

// draftOf reads the composer of a conversation's tab.
func (l *lab) draftOf(t *testing.T, c activities.Conversation) string {
	t.Helper()
	p, err := l.browser.place(c)
	require.NoError(t, err)
	lease, err := l.browser.pool.lease(t.Context(), p.key, false)
	require.NoError(t, err)
	defer lease.release()
	a, err := l.browser.arrive(t.Context(), p, lookQuery{})
	require.NoError(t, err)
	return a.look.Draft
}

func TestPublic_B08_B21_AForeignDraftIsNeverTouched(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `{page: {draft: "a fragment of forty characters, or so it is"}, otherwise: [{text: ok}]}`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendDeferred, r.Outcome, "%+v", r)
	require.Equal(t, activities.DeferForeignDraft, r.Class)
	require.False(t, r.Armed)
	require.Equal(t, "a fragment of forty characters, or so it is", l.draftOf(t, c))
	require.Empty(t, l.Record(c.ID))
}

func TestOwnIdenticalDraftIsUsed(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	in := sendInput(c, effect(), "words", "", "more words")
	require.Empty(t, l.draftOf(t, c))
	require.NoError(t, l.Draft(c.ID, in.Prompt))
	require.Eventually(t, func() bool { return l.draftOf(t, c) == in.Prompt }, 5*time.Second, 50*time.Millisecond)
	r := l.send(t, in)
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Equal(t, in.Prompt, l.Record(c.ID)[0].Text)
}

// residueOf leaves the text of an attempt in the composer, noted as typed.
func (l *lab) residueOf(t *testing.T, c activities.Conversation, in activities.SendInput) place {
	t.Helper()
	p, err := l.browser.place(c)
	require.NoError(t, err)
	note := &draftNote{Effect: in.EffectID, Length: length(in.Prompt), Digest: digestOf(in.Prompt)}
	require.NoError(t, l.browser.tabs.change(p.key, func(r *record) { r.Note = note }))
	l.draftOf(t, c)
	require.NoError(t, l.Draft(c.ID, in.Prompt))
	require.Eventually(t, func() bool { return l.draftOf(t, c) == in.Prompt }, 5*time.Second, 50*time.Millisecond)
	return p
}

func TestResidueOfAnUnarmedEffectIsClearedOnce(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	l.residueOf(t, c, sendInput(c, effect(), "an effect that was stopped"))
	in := sendInput(c, effect(), "the next effect")
	r := l.send(t, in)
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Equal(t, in.Prompt, l.Record(c.ID)[0].Text)
}

func TestResidueOfAnArmedOrClearedEffectIsForeign(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for name, change := range map[string]func(place, string){
		"armed": func(_ place, fx string) {
			require.NoError(t, l.browser.ledger.append(attempt{Effect: fx, Generation: 1, At: now()}))
		},
		"cleared before": func(p place, _ string) {
			require.NoError(t, l.browser.tabs.change(p.key, func(r *record) { r.Note.Cleared = true }))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := l.conversation(t, `otherwise: [{text: ok}]`)
			old := sendInput(c, effect(), "an effect that was stopped")
			change(l.residueOf(t, c, old), old.EffectID)
			r := l.send(t, sendInput(c, effect(), "the next effect"))
			require.Equal(t, activities.DeferForeignDraft, r.Class, "%+v", r)
			require.Empty(t, l.Record(c.ID))
			require.Equal(t, old.Prompt, l.draftOf(t, c))
		})
	}
}

func TestPublic_B21_TextThatChangesAtTheLastMomentIsNotSent(t *testing.T) {
	t.Parallel()
	var l *lab
	var c activities.Conversation
	l = hooked(t, func(o *Options) {
		o.Hook = func(point string) {
			if point == "armed" {
				p := l.place(t, c)
				require.NoError(t, l.Draft(c.ID, " and a person's words"))
				require.Eventually(t, func() bool {
					now, err := l.browser.tabs.open[p.key].composer(p.site, "read")
					return err == nil && strings.HasSuffix(now.Text, "words")
				}, armWindow, 10*time.Millisecond)
			}
		}
	})
	c = l.conversation(t, `otherwise: [{text: ok}]`)
	in := sendInput(c, effect(), "words")
	r := l.send(t, in)
	require.Equal(t, activities.SendReturned, r.Outcome, "%+v", r)
	require.True(t, r.Armed)
	require.Equal(t, "press_refused", r.Code)
	require.Empty(t, l.Record(c.ID))
	require.Equal(t, in.Prompt+" and a person's words", l.draftOf(t, c))
}

func TestAPageWithAForeignDraftIsNotLoadedAgain(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	c := l.conversation(t, history+"\notherwise: [{text: ok}]")
	require.Empty(t, l.draftOf(t, c))
	require.NoError(t, l.Draft(c.ID, "half a sentence"))
	require.NoError(t, l.SetState(c.ID, chatlab.State{Kind: "disconnected"}))
	require.Eventually(t, func() bool { return l.draftOf(t, c) == "half a sentence" }, 10*time.Second, 50*time.Millisecond)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendDeferred, r.Outcome, "%+v", r)
	seen, err := l.browser.Reconcile(t.Context(), activities.ReconcileInput{Conversation: c, EffectID: effect()})
	require.NoError(t, err)
	require.False(t, seen.Marker)
	require.Equal(t, "half a sentence", l.draftOf(t, c))
}
