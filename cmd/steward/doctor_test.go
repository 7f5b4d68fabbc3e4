package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/cmd/steward/setup"
)

func TestDoctorNamesTheFixForWhatIsWrong(t *testing.T) {
	isolated(t)
	sites := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(sites, "mine.yaml"), []byte("site: mine\nnonsense: 1\n"), 0o600))
	data := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(data, 0o755))
	out, err := command(t.Context(), "", "doctor", "-o", "json", "--address", "127.0.0.1:1", "--data-dir", data, "--sites-dir", sites)
	require.Equal(t, exitFailed, exitCode(err))
	findings := decode[[]setup.Finding](t, out)
	for _, name := range []string{"site profiles", "data folder", "Temporal server"} {
		at := slices.IndexFunc(findings, func(f setup.Finding) bool { return f.Name == name })
		require.GreaterOrEqual(t, at, 0, name)
		require.False(t, findings[at].OK, name)
		require.NotEmpty(t, findings[at].Detail, name)
		require.NotEmpty(t, findings[at].Fix, name)
	}
	require.Equal(t, "chmod 700 "+data, findings[slices.IndexFunc(findings, func(f setup.Finding) bool { return f.Name == "data folder" })].Fix)
}

func TestSitesAreListedShownAndChecked(t *testing.T) {
	isolated(t)
	out, err := command(t.Context(), "", "sites", "list", "-o", "json")
	require.NoError(t, err)
	names := []string{}
	for _, row := range decode[[]siteRow](t, out) {
		names = append(names, row.Name)
	}
	require.Equal(t, []string{"assistant-ui", "chatgpt", "deep-chat"}, names)
	out, err = command(t.Context(), "", "sites", "show", "chatgpt")
	require.NoError(t, err)
	require.Contains(t, out, "site: chatgpt\n")
	_, err = command(t.Context(), "", "sites", "show", "nowhere")
	require.Equal(t, exitNotFound, exitCode(err))

	folder := t.TempDir()
	_, err = command(t.Context(), "", "sites", "check", folder)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "mine.yaml"), []byte("site: mine\nextends: chatgpt\nverzion: 2\n"), 0o600))
	_, err = command(t.Context(), "", "sites", "check", folder)
	require.Equal(t, exitUsage, exitCode(err))
	require.ErrorContains(t, err, "mine.yaml:3")

	file := filepath.Join(t.TempDir(), "new.yaml")
	require.NoError(t, os.WriteFile(file, []byte("site: chatgpt\nextends: chatgpt\npage: {send: [button.new]}\n"), 0o600))
	out, err = command(t.Context(), "", "sites", "check", file)
	require.NoError(t, err)
	require.Contains(t, out, "it replaces embedded chatgpt.yaml\n  overrides page.send\n")
	require.NoError(t, os.WriteFile(file, []byte("site: chatgpt\nextends: chatgpt\npage:\n  send: ['button[']\n"), 0o600))
	_, err = command(t.Context(), "", "sites", "check", file)
	require.Equal(t, exitUsage, exitCode(err))
	require.ErrorContains(t, err, file+":4: page.send.0: not a CSS selector")
	_, err = command(t.Context(), "", "sites", "check", file+"x")
	require.Equal(t, exitUsage, exitCode(err))
}

func TestUpHandsTheUsersFlagsToItsChildren(t *testing.T) {
	isolated(t)
	up := newRoot()
	cmd, _, err := up.Find([]string{"up"})
	require.NoError(t, err)
	require.NoError(t, cmd.ParseFlags([]string{"--data-dir", "/tmp/x", "--roles", "run,checks", "--port", "0"}))
	require.Equal(t, []string{"server", "--data-dir=/tmp/x", "--port=0"}, childArgs(cmd, "server", "port", "ui-port"))
	require.Equal(t, []string{"worker", "--data-dir=/tmp/x", "--roles=run,checks"}, childArgs(cmd, "worker", "roles", "stop-timeout"))
}

func TestDoctorAsksABrowserThatIsAttachedTo(t *testing.T) {
	isolated(t)
	dir := t.TempDir()
	settings := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("browsers: [{name: own, site: chatgpt, mode: cdp, cdp_url: 'http://127.0.0.1:1', profile_dir: %s}]\n", filepath.Join(dir, "login"))
	require.NoError(t, os.WriteFile(settings, []byte(text), 0o600))
	out, err := command(t.Context(), "", "doctor", "-o", "json", "--config", settings, "--address", "127.0.0.1:1", "--data-dir", filepath.Join(dir, "data"))
	require.Equal(t, exitFailed, exitCode(err))
	findings := decode[[]setup.Finding](t, out)
	at := slices.IndexFunc(findings, func(f setup.Finding) bool { return f.Name == "browser own" })
	require.GreaterOrEqual(t, at, 0, out)
	require.False(t, findings[at].OK)
	require.Contains(t, findings[at].Fix, "--remote-debugging-port=1 --user-data-dir=")
}
