package sites

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARefreshTakesCorrectedFilesAndKeepsWhatItHadOverBadOnes(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("mine.yaml", "site: mine\nextends: chatgpt\nversion: 1\norigins: ['http://127.0.0.1:1']\n")
	write("other.yaml", "site: other\nextends: chatgpt\nversion: 1\norigins: ['http://127.0.0.1:2']\n")
	r, err := Load(dir)
	require.NoError(t, err)
	site := func(name string) *Site {
		s, err := r.Site(name)
		require.NoError(t, err)
		return s
	}
	news, err := r.Refresh()
	require.NoError(t, err)
	require.False(t, news, "nothing changed")
	mine, other := site("mine"), site("other")

	write("mine.yaml", "site: mine\nextends: chatgpt\nversion: 2 # corrected\norigins: ['http://127.0.0.1:1']\n")
	news, err = r.Refresh()
	require.NoError(t, err)
	require.True(t, news)
	require.Equal(t, 2, site("mine").Version)
	require.NotEqual(t, mine.Digest(), site("mine").Digest())
	require.Same(t, other, site("other"), "a profile that did not change is the same")

	write("mine.yaml", "site: mine\nverzion: 3\n")
	news, err = r.Refresh()
	require.True(t, news)
	require.ErrorContains(t, err, "mine.yaml:2")
	require.Equal(t, 2, site("mine").Version)
	news, err = r.Refresh()
	require.False(t, news, "told once")
	require.Error(t, err)

	require.NoError(t, os.Remove(filepath.Join(dir, "mine.yaml")))
	_, err = r.Refresh()
	require.NoError(t, err)
	_, err = r.Site("mine")
	require.Error(t, err)

	embedded, err := Load("")
	require.NoError(t, err)
	news, err = embedded.Refresh()
	require.NoError(t, err)
	require.False(t, news)
}
