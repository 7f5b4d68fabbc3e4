package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mxschmitt/playwright-go"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/worker/embedded"
	"steward/workflows/run/policy"
)

// installation is a person's own Steward: a home, a settings file, one `steward up`.
type installation struct {
	home string
	cmd  *exec.Cmd
}

func (s *stack) install(t *testing.T) *installation {
	t.Helper()
	i := &installation{home: t.TempDir()}
	settings := fmt.Sprintf("sites_dir: %s\nserver: {port: 0, ui_port: -1}\nbrowsers:\n  - {name: home, site: chatlab}\n", s.sitesDir)
	require.NoError(t, os.MkdirAll(filepath.Join(i.home, ".config/steward"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(i.home, ".config/steward/steward.yaml"), []byte(settings), 0o600))
	return i
}

// run is the command in the installation's home. The Playwright driver is that of the tester.
func (i *installation) run(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	driver, err := playwright.NewDriver(&playwright.RunOptions{})
	require.NoError(t, err)
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "HOME="+i.home, "PLAYWRIGHT_DRIVER_PATH="+filepath.Join(cache, "ms-playwright-go", driver.Version),
		"XDG_CACHE_HOME=", "XDG_CONFIG_HOME=", "XDG_DATA_HOME=")
	return cmd
}

func (i *installation) data() string { return filepath.Join(i.home, ".local/share/steward") }

func (i *installation) up(t *testing.T) {
	t.Helper()
	i.cmd = i.run(t, "up")
	log, err := os.OpenFile(filepath.Join(i.home, "up.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	i.cmd.Stdout, i.cmd.Stderr = log, log
	require.NoError(t, i.cmd.Start())
	t.Cleanup(func() {
		terminate(i.cmd)
		_ = log.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log.Name())
			t.Logf("steward up:\n%s", text[max(0, len(text)-6000):])
		}
	})
}

func (i *installation) client(t *testing.T) client.Client {
	t.Helper()
	var c client.Client
	require.Eventually(t, func() bool {
		endpoint, err := embedded.ReadEndpoint(filepath.Join(i.data(), "server"))
		if err != nil {
			return false
		}
		c, err = client.Dial(client.Options{HostPort: endpoint.Address, Namespace: endpoint.Namespace, Logger: quiet()})
		return err == nil
	}, time.Minute, 100*time.Millisecond, "the server does not answer")
	t.Cleanup(c.Close)
	return c
}

// pids are the processes of server and worker.
func (i *installation) pids(t *testing.T) (pids []int) {
	t.Helper()
	for _, file := range []string{"server/endpoint.json", "worker.json"} {
		data, err := os.ReadFile(filepath.Join(i.data(), file))
		require.NoError(t, err)
		var record struct{ PID int }
		require.NoError(t, json.Unmarshal(data, &record))
		pids = append(pids, record.PID)
	}
	return pids
}

func TestServerAndWorkerKilledTogetherAndUpAgainFinishTheRun(t *testing.T) {
	s := start(t)
	i := s.install(t)
	conversation := s.conversation(t, `
replies:
  - - text: '{{receipt "CONTINUE" "one" "more to do"}}'
  - - text: working
    - gate: go
    - text: '{{receipt "CONTINUE" "two" "more to do"}}'
`+done)
	i.up(t)
	home := *s
	home.client = i.client(t)
	in := s.input(conversation, "home", func(in map[string]any) {
		in["completion"] = map[string]any{"checks": []any{map[string]any{"name": "true", "command": map[string]any{"argv": []string{"true"}, "dir": i.home}}}}
	})
	run := home.start(t, conversation, in)
	home.until(t, run.GetID(), "in its second turn", func(st policy.State) bool { return st.Turns == 2 })

	for _, pid := range append(i.pids(t), i.cmd.Process.Pid) {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	_ = i.cmd.Wait()
	require.NoError(t, s.lab.Release(conversation, "go"))
	i.up(t)
	home.client = i.client(t)
	state := home.result(t, home.client.GetWorkflow(context.Background(), run.GetID(), ""))
	require.Equal(t, policy.GoalComplete, state.Status)
	require.Len(t, s.lab.Record(conversation), 3)
	for _, turn := range state.Ledger {
		require.Equal(t, 1, s.marked(conversation, turn.Effect))
	}
}

func TestDemoPrintsOneObject(t *testing.T) {
	s := start(t)
	i := s.install(t)
	demo := i.run(t, "demo", "--output", "json")
	demo.Stderr = os.Stderr
	out, err := demo.Output()
	require.NoError(t, err)
	var result struct {
		RunID        string `json:"run_id"`
		Status       string `json:"status"`
		Turns        int    `json:"turns"`
		UserMessages int    `json:"user_messages"`
		Dispatches   int    `json:"dispatches"`
		WebUI        string `json:"web_ui"`
		ElapsedMS    int64  `json:"elapsed_ms"`
	}
	require.NoError(t, json.Unmarshal(out, &result), string(out))
	require.Equal(t, "goal_complete", result.Status)
	require.Equal(t, []int{3, 3, 3}, []int{result.Turns, result.UserMessages, result.Dispatches})
	require.NotEmpty(t, result.RunID)
	require.Contains(t, result.WebUI, "http://127.0.0.1:")
	require.Positive(t, result.ElapsedMS)
}
