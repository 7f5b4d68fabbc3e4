package target

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/workflows/run/receipt"
)

func TestSiteIsTheSameInAnotherProcess(t *testing.T) {
	site := NewSite()
	address, err := site.Serve(t.Context())
	require.NoError(t, err)
	for _, seam := range []Seam{site, Remote(address)} {
		conversation := Conversation(2)
		require.NoError(t, seam.Take(t.Context(), Message{Conversation: conversation, Effect: "fx_" + conversation, Generation: 1}))
		got, err := seam.Sent(t.Context(), conversation)
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, "fx_"+conversation, got[0].Effect)
		require.NoError(t, seam.Answered(t.Context(), conversation))

		release := site.Hold()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		require.Error(t, seam.Answered(ctx, conversation), "answers are held")
		cancel()
		release()
		require.Empty(t, site.Twice())
	}
	require.Equal(t, 2, site.Total())
}

// accepting is a server that wants every attempt.
type accepting struct{}

func (accepting) Beat(context.Context, activities.SendProgress) error { return nil }

func TestEffectIsDeliveredOnceAndItsLastTurnIsDone(t *testing.T) {
	site := NewSite()
	b := &Browser{Site: site, Armer: accepting{}}
	conversation := Conversation(2)
	at := activities.Conversation{ID: conversation}
	for i, want := range []receipt.Action{receipt.Continue, receipt.Done} {
		effect := []string{"fx_0000000000000001", "fx_0000000000000002"}[i]
		for try := range 2 {
			out, err := b.Send(t.Context(), activities.SendInput{EffectID: effect, Generation: 1, Conversation: at})
			require.NoError(t, err)
			require.Equal(t, activities.SendCommitted, out.Outcome)
			require.Equal(t, try == 1, out.AlreadyThere)
		}
		look, err := b.Reconcile(t.Context(), activities.ReconcileInput{EffectID: effect, Conversation: at})
		require.NoError(t, err)
		require.True(t, look.Marker)
		answer, err := answer(receipt.Want{
			ConversationID: conversation, TaskID: "t", Scope: "s", EffectID: effect, Forms: []receipt.Form{receipt.Block},
		}, want, i)
		require.NoError(t, err)
		require.Contains(t, answer, string(want))
	}
	require.Equal(t, 2, site.Total())
	require.NoError(t, site.Take(t.Context(), Message{Conversation: conversation, Effect: "fx_0000000000000002"}))
	require.Equal(t, []string{"fx_0000000000000002"}, site.Twice())
}
