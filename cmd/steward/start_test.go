package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

func TestABadGoalIsRefusedBeforeAnyServerIsAsked(t *testing.T) {
	isolated(t)
	goal := filepath.Join(t.TempDir(), "goal.yaml")
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"all at once": {
			"objective: ''\nextra: 1\ntarget: {site: chatgpt, conversation_url: 'https://example.org/c/1'}\ncompletion: {}\n",
			[]string{"extra: ", "objective: ", "completion.checks: ", "target.conversation_url: "},
		},
		"a duplicate key": {"objective: a\nobjective: b\n", []string{"objective"}},
		"not YAML":        {"objective: [", []string{"start_refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(goal, []byte(c.text), 0o600))
			_, err := command(t.Context(), "", "run", "start", "-f", goal)
			require.Equal(t, exitUsage, exitCode(err))
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
	_, err := command(t.Context(), "", "run", "start", "-f", filepath.Join(t.TempDir(), "none.yaml"))
	require.Equal(t, exitUsage, exitCode(err))
}

func TestARefusalReadsLikeTheFailureOfARefusedRun(t *testing.T) {
	problems := []string{"objective: is missing", "target: needs one"}
	refused := policy.Policy{}.Decide(policy.State{}, policy.OccurrenceRequested{Start: &policy.Start{Problems: problems}}, kernel.Meta{})
	require.Equal(t, policy.Policy{}.Ending(refused.Next).Message, refusedStart(exitUsage, problems).Error())
}

func TestUsageErrors(t *testing.T) {
	isolated(t)
	for _, args := range [][]string{
		{"version", "--output", "xml"},
		{"run", "list", "--nonsense"},
		{"run", "show"},
		{"nonsense"},
		{"run", "nonsense"},
		{"--log-level", "loud", "version"},
	} {
		_, err := command(t.Context(), "", args...)
		require.Equal(t, exitUsage, exitCode(err), "%v: %v", args, err)
	}
	out, err := command(t.Context(), "", "version")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(out, "steward "), out)
}

func TestUpRefusesAForeignServer(t *testing.T) {
	isolated(t)
	t.Setenv("STEWARD_TEMPORAL_ADDRESS", "127.0.0.1:7233")
	_, err := command(t.Context(), "", "up")
	require.Equal(t, exitUsage, exitCode(err))
}

func TestListQuery(t *testing.T) {
	require.Equal(t, "WorkflowType = 'WorkflowRun' AND ExecutionStatus = 'Running'", listQuery(false, "", ""))
	require.Equal(t, "WorkflowType = 'WorkflowRun' AND StewardStatus = 'blocked' AND (StewardRound > 3)", listQuery(true, "blo'cked", "StewardRound > 3"))
}
