package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"steward/integration/chatlab"
	"steward/workflows"
	"steward/workflows/discover/scan"
	"steward/workflows/run/policy"
)

const adopted = `
replies:
  - - text: '{{receipt "CONTINUE" "the report is open" "I know the task"}}'
  - - text: '{{receipt "DONE" "all green" "nothing is left"}}'
otherwise: [{text: one too many}]
`

// old makes a conversation that somebody began before anything was scanned.
func (s *stack) old(t *testing.T, project, title string) string {
	t.Helper()
	sc, err := chatlab.ParseScenario([]byte(adopted))
	require.NoError(t, err)
	id, err := s.lab.NewConversation(chatlab.Conversation{
		Scenario: sc, Project: project, Title: title,
		History: []chatlab.Message{{Role: "user", Text: "Write the report."}, {Role: "assistant", Text: "I began."}},
	})
	require.NoError(t, err)
	return id
}

func (s *stack) scanInput(project, browser string, change ...func(map[string]any)) map[string]any {
	in := map[string]any{
		"site": "chatlab", "browser": browser, "page_url": s.lab.URL() + "/g/" + project + "/project",
		"goal":   s.input("", browser, func(g map[string]any) { delete(g, "target") }),
		"enroll": map[string]any{"created_after": time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)},
	}
	for _, c := range change {
		c(in)
	}
	return in
}

// discover makes one scan.
func (s *stack) discover(t *testing.T, project string, in map[string]any) scan.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run, err := s.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: scan.WorkflowID("chatlab", project), TaskQueue: workflows.QueueRun,
	}, workflows.TypeDiscoveryScan, in)
	require.NoError(t, err)
	var result scan.Result
	require.NoError(t, run.Get(ctx, &result))
	t.Cleanup(func() {
		for _, id := range result.Started {
			_ = s.client.TerminateWorkflow(context.Background(), id, "", "the test is over")
		}
	})
	return result
}

func standings(r scan.Result) map[string]scan.Standing {
	all := map[string]scan.Standing{}
	for _, e := range r.Inventory {
		all[e.ID] = e.Standing
	}
	return all
}

// Each chosen conversation of the project is asked for its task once, over repeated scans and a restart; the run that a first
// message began, and what is excluded, undated or of another project, is left alone.
func TestDiscoveryEnrollsEachChosenConversationOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	p := s.browserWorker(t, "found", fault{})
	const name, project, other = "g-p-00000000000000d1-found", "g-p-00000000000000d1", "g-p-00000000000000d2-other"
	first, second, excluded := s.old(t, name, "One"), s.old(t, name, "Two"), s.old(t, "g-p-00000000000000d1-renamed", "Three")
	undated, err := s.lab.NewConversation(chatlab.Conversation{ID: uuid.NewString(), Project: name})
	require.NoError(t, err)
	s.old(t, other, "Four")
	born := s.create(t, "discovered", s.project(t, name, oneTurn), "found")
	own := s.successor(t, born).Site.ConversationID

	in := s.scanInput(name, "found", func(in map[string]any) { in["exclude"], in["max_enrollments"] = []string{excluded}, 1 })
	result := s.discover(t, project, in)
	require.Equal(t, []any{true, 5, 0}, []any{result.Complete, result.Listed, result.Contradictions})
	require.Len(t, result.Started, 1, "the bound of a scan")
	require.Equal(t, map[string]scan.Standing{
		second: scan.Enrolled, first: scan.Postponed, excluded: scan.Excluded, undated: scan.Undated, own: scan.Known,
	}, standings(result))
	require.Equal(t, "Two", scan.Find(result.Inventory, second).Title)

	if os.Getenv("STEWARD_RECORD_HISTORIES") != "" {
		dir := filepath.Join("..", "workflows", "discover", "testdata", "histories", "v1")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		data, err := s.history(scan.WorkflowID("chatlab", project), "")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "enrolled_and_postponed.json"), data, 0o600))
	}

	terminate(p.cmd)
	p.start(t)
	result = s.discover(t, project, in)
	require.Equal(t, []string{"run:chatlab:" + first}, result.Started)
	require.Equal(t, scan.Known, standings(result)[second])
	require.Empty(t, s.discover(t, project, in).Started)
	for _, id := range []string{first, second} {
		state := s.result(t, s.client.GetWorkflow(context.Background(), "run:chatlab:"+id, ""))
		require.Equal(t, policy.GoalComplete, state.Status)
		require.Equal(t, []policy.EffectKind{policy.KindAdopt, policy.KindContinuation}, kinds(state))
		require.Len(t, s.lab.Record(id), 2)
	}
	for _, id := range []string{excluded, undated} {
		require.Empty(t, s.lab.Record(id))
	}
	require.Len(t, s.lab.Record(own), 1)
	require.Len(t, s.in(other), 1)
}

// What a scan cannot take is told whole, and starts nothing.
func TestAScanThatIsRefused(t *testing.T) {
	s := start(t)
	in := s.scanInput("g-p-00000000000000d3-none", "nobody", func(in map[string]any) {
		in["page_url"], in["excluded"] = s.lab.URL()+"/", []string{"x"}
		in["goal"].(map[string]any)["objective"] = ""
	})
	run, err := s.client.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{
		ID: "discover:chatlab:refused", TaskQueue: workflows.QueueRun,
	}, workflows.TypeDiscoveryScan, in)
	require.NoError(t, err)
	err = run.Get(context.Background(), nil)
	for _, problem := range []string{workflows.FailureScanRefused, "excluded: unknown key", "goal.objective: ", "page_url: "} {
		require.ErrorContains(t, err, problem)
	}
}
