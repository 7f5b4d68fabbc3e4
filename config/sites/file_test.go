package sites

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckingAFileTellsWhatItWouldOverride(t *testing.T) {
	dir := dirOf(t, map[string]string{
		"child.yaml":  "site: child\nextends: lab\norigins: ['http://127.0.0.1:9']\n",
		"other.yaml":  "site: other\nextends: chatgpt\n",
		"lab.yaml":    "site: lab\nextends: deep-chat\n",
		"README.text": "not a profile",
	})
	check := func(text string) (*Checked, error) {
		file := filepath.Join(dirOf(t, map[string]string{"new.yaml": text}), "new.yaml")
		return CheckFile(file, dir)
	}
	got, err := check("site: chatgpt\nextends: chatgpt\npage: {send: ['button.new']}\ntimings: {look: 300ms}\n")
	require.NoError(t, err)
	require.Equal(t, "embedded chatgpt.yaml", got.Replaces)
	require.Equal(t, []string{"page.send", "timings.look"}, got.Overrides)
	require.Equal(t, []string{"other"}, got.Affects)
	require.Len(t, got.Digest, 64)

	got, err = check("site: lab\nextends: deep-chat\nversion: 2\n")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "lab.yaml"), got.Replaces)
	require.Equal(t, []string{"version"}, got.Overrides)
	require.Equal(t, []string{"child"}, got.Affects)

	got, err = check("site: mine\nextends: assistant-ui\norigins: ['https://chat.example.com']\n")
	require.NoError(t, err)
	require.Empty(t, got.Replaces)
	require.Equal(t, []string{"origins"}, got.Overrides)

	_, err = check("site: lab\nextends: deep-chat\npage:\n  send:\n    - 'button['\n")
	require.ErrorContains(t, err, "new.yaml:5: page.send.0: not a CSS selector")
	_, err = CheckFile(filepath.Join(dir, "none.yaml"), dir)
	require.Error(t, err)
	_, err = CheckFile(filepath.Join(dir, "lab.yaml"), filepath.Join(dir, "none"))
	require.NoError(t, err, "a folder that is missing has no profiles")
}

func TestCheckingAFileThatStandsInTheFolderComparesWithWhatIsBelow(t *testing.T) {
	dir := dirOf(t, map[string]string{"mine.yaml": "site: chatgpt\nextends: chatgpt\nheaded: false\n"})
	got, err := CheckFile(filepath.Join(dir, "mine.yaml"), dir)
	require.NoError(t, err)
	require.Equal(t, "embedded chatgpt.yaml", got.Replaces)
	require.Equal(t, []string{"headed"}, got.Overrides)
}

func TestAFileThatBreaksAnotherIsRefused(t *testing.T) {
	dir := dirOf(t, map[string]string{
		"child.yaml": "site: child\nextends: lab\nmessage_probe: {allowed: true}\n", "lab.yaml": "site: lab\nextends: chatgpt\n",
	})
	file := filepath.Join(dirOf(t, map[string]string{"new.yaml": "site: lab\nextends: chatgpt\nmessage_probe: {text: ' '}\n"}), "new.yaml")
	_, err := CheckFile(file, dir)
	require.ErrorContains(t, err, "message_probe.text: want the line to send")
}
