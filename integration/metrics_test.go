package integration

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/policy"
)

// A worker of the real command tells Prometheus what it did, with no label that grows with the runs.
func TestMetricsOfALiveWorker(t *testing.T) {
	s := start(t)
	dir := t.TempDir()
	settings := filepath.Join(dir, "steward.yaml")
	require.NoError(t, os.WriteFile(settings, []byte("browsers:\n  - {name: metered, site: chatlab, no_sandbox: true}\n"), 0o600))
	log, err := os.Create(filepath.Join(dir, "worker.log"))
	require.NoError(t, err)
	defer log.Close()
	cmd := exec.Command(binary, "worker", "--config", settings, "--data-dir", filepath.Join(dir, "data"), "--sites-dir", s.sitesDir,
		"--address", s.endpoint.Address, "--namespace", s.endpoint.Namespace, "--roles", "run,browser", "--metrics", "127.0.0.1:0")
	cmd.Env = append(os.Environ(), "HOME="+dir, "STEWARD_WORKER_HOST=test")
	cmd.Stderr = log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { terminate(cmd) })
	var address string
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(log.Name())
		found := regexp.MustCompile(`address=(http://127\.0\.0\.1:\d+/metrics)`).FindSubmatch(text)
		if err == nil && found != nil {
			address = string(found[1])
		}
		return address != ""
	}, 30*time.Second, 20*time.Millisecond)

	conversation := s.conversation(t, `
replies:
  - - text: '{{receipt "CONTINUE" "one" "more to do"}}'
`+done)
	run := s.start(t, conversation, s.input(conversation, "metered"))
	require.Equal(t, policy.GoalComplete, s.result(t, run).Status)

	scrape := func() string {
		response, err := http.Get(address)
		require.NoError(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, response.StatusCode)
		return string(text)
	}
	text := scrape()
	for metric, value := range map[string]float64{
		`steward_sends_total{browser="metered",kind="enrollment",outcome="committed"}`:   1,
		`steward_sends_total{browser="metered",kind="continuation",outcome="committed"}`: 1,
		`steward_turns_total{browser="metered",receipt="valid",turn="settled"}`:          2,
		`steward_successor_seconds_count{browser="metered"}`:                             1,
		`steward_unknown_effects`: 0,
		`steward_list_up`:         1,
	} {
		require.Equal(t, value, sample(t, text, metric), metric)
	}
	require.Contains(t, text, "temporal_activity_execution_latency_seconds_bucket")
	require.Contains(t, text, "temporal_request_total")
	require.Contains(t, text, "go_goroutines")
	require.NotContains(t, text, conversation)
	require.NotContains(t, text, run.GetRunID())
	require.NotRegexp(t, `fx_[0-9a-f]{16}`, text)
	require.Less(t, strings.Count(text, "\n"), 5000)
}

// sample is the value of a series.
func sample(t *testing.T, text, series string) float64 {
	t.Helper()
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			value, err := strconv.ParseFloat(rest, 64)
			require.NoError(t, err)
			return value
		}
	}
	slog.Error("no such series", "text", text)
	t.Fatalf("there is no %s", series)
	return 0
}
