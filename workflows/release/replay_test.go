package release_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/release"
)

var recordJournals = flag.Bool("record-journals", false, "write the journals beside the recorded histories")

// TestReplay replays every recorded history with the present code. Commands, final state and every single decision must be
// those of the recording: where they are not, an open session would break or go on differently, and the change needs a rules
// version of its own.
func TestReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/histories/*/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		name := strings.TrimSuffix(file, ".json")
		t.Run(filepath.Base(name), func(t *testing.T) {
			var journal strings.Builder
			replayer, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{
				Interceptors: machine.Record(func(e machine.Entry) {
					fmt.Fprintf(&journal, "%s %s %s\n", e.Event, e.Decision, e.Code)
				}),
				DisableDeadlockDetection: true,
			})
			require.NoError(t, err)
			replayer.RegisterWorkflowWithOptions(release.Workflow(release.Options{}), workflow.RegisterOptions{Name: workflows.TypeReleaseSession})
			require.NoError(t, replay(replayer, file))
			if *recordJournals {
				require.NoError(t, os.WriteFile(name+".journal", []byte(journal.String()), 0o600))
			}
			want, err := os.ReadFile(name + ".journal")
			require.NoError(t, err)
			require.Equal(t, string(want), journal.String())
		})
	}
}

// replay gives the replayer the identity of the recorded session: ids of sessions and operations are derived from it.
func replay(replayer worker.WorkflowReplayer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	history, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	if err != nil {
		return err
	}
	started := history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	return replayer.ReplayWorkflowHistoryWithOptions(nil, history, worker.ReplayWorkflowHistoryOptions{
		OriginalExecution: workflow.Execution{ID: started.GetWorkflowId(), RunID: started.GetOriginalExecutionRunId()},
	})
}
