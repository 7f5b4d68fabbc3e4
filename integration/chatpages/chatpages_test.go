package chatpages_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/config/sites"
	"steward/integration/chatlab"
	"steward/integration/chatpages"
)

func get(t *testing.T, url string) (string, http.Header) {
	t.Helper()
	response, err := http.Get(url)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusOK, response.StatusCode, url)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return string(body), response.Header
}

func TestEveryInterfaceIsServedWithWhatItNeedsAndHasAProfile(t *testing.T) {
	registry, err := sites.Load("")
	require.NoError(t, err)
	for _, name := range chatpages.Names() {
		_, err := registry.Site(name)
		require.NoError(t, err)
		ui, err := chatpages.UI(name)
		require.NoError(t, err)
		site, err := chatlab.Start(chatlab.Options{UI: ui})
		require.NoError(t, err)
		id, err := site.NewConversation(chatlab.Conversation{Scenario: chatlab.MustParse("page: {language: ja}\notherwise: [{text: ok}]")})
		require.NoError(t, err)
		page, header := get(t, site.ConversationURL(id))
		require.Contains(t, page, `<html lang="ja">`)
		require.Contains(t, page, id, "the page knows its conversation")
		require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'self'")
		for _, file := range []string{"app.js", "app.css", "frame.css"} {
			get(t, site.URL()+"/assets/"+file)
		}
		require.NoError(t, site.Close())
	}
	_, err = chatpages.UI("nothing")
	require.ErrorContains(t, err, "assistant-ui, deep-chat")
}

// What is checked in stays small, and names the licences of what it holds.
func TestTheBundle(t *testing.T) {
	var size int64
	require.NoError(t, filepath.Walk("web/dist", func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return err
	}))
	require.Less(t, size, int64(2<<20))
	licences, err := os.ReadFile("web/dist/licences.txt")
	require.NoError(t, err)
	for _, name := range []string{"deep-chat 2.4.2", "@assistant-ui/react 0.11.58", "@assistant-ui/react-ui 0.2.1", "react 19.3.1"} {
		require.Contains(t, string(licences), name+"\n")
	}
}
