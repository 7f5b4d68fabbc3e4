package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"
)

func TestAWrongPlanIsRefusedBeforeItIsSent(t *testing.T) {
	isolated(t)
	_, err := command(t.Context(), "instance: shop\nwhat: 1\n", "release", "start", "--plan", "-")
	require.Equal(t, exitUsage, exitCode(err))
	require.ErrorContains(t, err, "start_refused")
	require.ErrorContains(t, err, "what")
	require.ErrorContains(t, err, "gates.type.argv")

	_, err = command(t.Context(), "", "release", "start", "--plan", filepath.Join(t.TempDir(), "none"))
	require.Equal(t, exitUsage, exitCode(err))
	_, err = command(t.Context(), "", "release", "promote", "shop")
	require.Equal(t, exitUsage, exitCode(err), "a reason is needed")
}

func TestBundlesOfAnInstanceThatIsNotHere(t *testing.T) {
	isolated(t)
	out, err := command(t.Context(), "", "release", "bundles", "shop", "--data-dir", t.TempDir(), "--output", "json")
	require.NoError(t, err)
	require.Equal(t, "[]", strings.TrimSpace(out))
}

func TestReplayNeedsToKnowWhat(t *testing.T) {
	isolated(t)
	_, err := command(t.Context(), "", "replay")
	require.Equal(t, exitUsage, exitCode(err))
	_, err = command(t.Context(), "", "replay", "--open", "--address", "127.0.0.1:1")
	require.Equal(t, exitInconclusive, exitCode(err), "no server: nothing is proven either way")
}

// Histories of both workflows are taken over; one that this binary would continue differently is found.
func TestReplayFindsWhatWouldBreak(t *testing.T) {
	for _, file := range []string{
		"../../workflows/run/testdata/histories/v1/continue_continue_done.json", "../../workflows/release/testdata/histories/v1/aborted_in_soak.json",
	} {
		history := recorded(t, file)
		started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
		execution := workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()}
		require.NoError(t, replay(execution, history), file)

		for _, event := range history.GetEvents() {
			if event.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
				event.GetActivityTaskScheduledEventAttributes().ActivityType.Name = "Another"
			}
		}
		require.Error(t, replay(execution, history), file)
	}
}

func recorded(t *testing.T, file string) *historypb.History {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	history, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err)
	return history
}
