package admission

import (
	"context"
	"testing"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/mocks"

	"steward/activities"
)

func TestAnAddressToMoveToIsResolvedByTheSiteAlone(t *testing.T) {
	never := &mocks.Client{}
	never.On("DescribeWorkflowExecution", mock.Anything, "run:chatgpt:"+conversation, "").Return(nil, serviceerror.NewNotFound("no run"))
	a := Admission{Client: never, Sites: registry(t), Host: "build-1"}
	got, err := a.ResolveConversation(context.Background(), activities.ResolveInput{
		Site: "chatgpt", ConversationURL: "https://chatgpt.com/c/" + conversation + "?x=1",
	})
	require.NoError(t, err)
	require.Empty(t, got.Problem)
	require.Nil(t, got.Lineage)
	require.Empty(t, got.LineageError)
	require.Equal(t, []string{conversation, "https://chatgpt.com/c/" + conversation, "build-1"},
		[]string{got.Site.ConversationID, got.Site.ConversationURL, got.Site.Host})
	for _, bad := range []activities.ResolveInput{
		{Site: "chatgpt", ConversationURL: "https://chatgpt.com.example.org/c/" + conversation},
		{Site: "chatgpt", ConversationURL: "https://chatgpt.com/settings"},
		{Site: "nowhere", ConversationURL: "https://chatgpt.com/c/" + conversation},
	} {
		got, err := a.ResolveConversation(context.Background(), bad)
		require.NoError(t, err)
		require.NotEmpty(t, got.Problem)
		require.Empty(t, got.Site.ConversationID)
	}
}

// An empty conversation is no conversation: nothing else is taken for it.
func TestPublic_A06_an_empty_conversation_adopts_no_other(t *testing.T) {
	for _, target := range []string{
		`{"site":"chatgpt","conversation_url":""}`, `{"site":"chatgpt"}`, `{"site":"chatgpt","conversation_url":"https://chatgpt.com/c/"}`,
	} {
		got, problems := Resolve(start(target), registry(t), "build-1")
		require.NotEmpty(t, problems, target)
		require.Empty(t, got.WorkflowID, target)
	}
	a := Admission{Sites: registry(t)}
	got, err := a.ResolveConversation(context.Background(), activities.ResolveInput{Site: "chatgpt"})
	require.NoError(t, err)
	require.NotEmpty(t, got.Problem)
}
