package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/config/sites"
	"steward/integration/chatlab"
)

func TestChatlabServesAScenarioForAPerson(t *testing.T) {
	isolated(t)
	out, err := command(t.Context(), "", "chatlab", "--list", "-o", "json")
	require.NoError(t, err)
	rows := decode[[]scenarioRow](t, out)
	require.Len(t, rows, len(chatlab.ScenarioNames()))
	for _, row := range rows {
		require.NotEmpty(t, row.About, row.Name)
	}
	for ui, base := range map[string]string{"": "chatgpt", "deep-chat": "deep-chat", "assistant-ui": "assistant-ui"} {
		got := serve(t, "--scenario", "late_receipt", "--ui", ui)
		require.NotEmpty(t, got.About)
		dir := t.TempDir()
		file := filepath.Join(dir, "lab.yaml")
		require.NoError(t, os.WriteFile(file, []byte(got.Profile), 0o600))
		checked, err := sites.CheckFile(file, dir)
		require.NoError(t, err)
		require.Equal(t, base, checked.Extends)
		registry, err := sites.Load(dir)
		require.NoError(t, err)
		lab, err := registry.Site("lab")
		require.NoError(t, err)
		_, _, err = lab.Conversation(got.ConversationURL)
		require.NoError(t, err)
	}
	for _, args := range [][]string{{"--scenario", "nothing"}, {"--ui", "nothing"}} {
		_, err := command(t.Context(), "", append([]string{"chatlab"}, args...)...)
		require.Equal(t, exitUsage, exitCode(err))
		require.ErrorContains(t, err, "known: ")
	}
}

// serve runs the site until its page was loaded once.
func serve(t *testing.T, args ...string) served {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	address := free(t)
	loaded := make(chan error, 1)
	go func() {
		defer stop()
		for ctx.Err() == nil {
			if response, err := http.Get("http://" + address + "/assets/app.js"); err == nil {
				_, err = io.Copy(io.Discard, response.Body)
				loaded <- err
				response.Body.Close()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		loaded <- ctx.Err()
	}()
	out, err := command(ctx, "", append([]string{"chatlab", "-o", "json", "--listen", address}, args...)...)
	require.NoError(t, err)
	require.NoError(t, <-loaded)
	return decode[served](t, out)
}

// free is a loopback address that was free a moment ago.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
