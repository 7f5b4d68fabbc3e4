package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/policy"
)

// steward runs the real command against the shared server and decodes its answer.
func (s *stack) steward(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := exec.Command(binary, append(args, "--output", "json", "--address", s.endpoint.Address, "--namespace", s.endpoint.Namespace)...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%v: %s", args, out)
	require.NoError(t, json.Unmarshal(out, into), "%s", out)
}

func TestInboxWhyAndProofOfARunThatWaitsForAPerson(t *testing.T) {
	s := start(t)
	s.browserWorker(t, "inbox", fault{})
	conversation := s.conversation(t, `
replies:
  - - text: '{{needs_user "blocked" "no password" "credentials" "Give me the password" "I looked for it"}}'
`)
	run := s.start(t, conversation, s.input(conversation, "inbox"))
	state := s.until(t, run.GetID(), "waiting for its user", func(st policy.State) bool { return st.Status == policy.WaitingForUser })

	type errand struct {
		WorkflowID string    `json:"workflow_id"`
		Status     string    `json:"status"`
		Class      string    `json:"class"`
		Since      time.Time `json:"since"`
		Ask        string    `json:"ask"`
		Command    string    `json:"command"`
	}
	var mine *errand
	require.Eventually(t, func() bool { // the list of the server follows a little later
		var errands []errand
		s.steward(t, &errands, "inbox")
		for _, e := range errands {
			if e.WorkflowID == run.GetID() {
				mine = &e
			}
		}
		return mine != nil
	}, 30*time.Second, 500*time.Millisecond)
	want := state.Attention()
	require.Equal(t, errand{run.GetID(), "waiting_for_user", want.Class, want.Since, want.Ask, want.Command},
		errand{mine.WorkflowID, mine.Status, mine.Class, mine.Since.UTC(), mine.Ask, mine.Command})
	require.Equal(t, "credentials", mine.Class)

	var why policy.Why
	s.steward(t, &why, "run", "why", run.GetID())
	require.Equal(t, state.Effect.ID, why.Effect)
	require.Equal(t, want.Command, why.Attention.Command)
	require.False(t, why.LastProof.IsZero())

	var proof policy.Proof
	s.steward(t, &proof, "run", "proof", run.GetID())
	require.Equal(t, []int{1, 1, 1}, []int{proof.Turns, proof.Dispatches, len(proof.Chain)})
	turn := proof.Chain[0]
	require.Equal(t, "NEEDS_USER", turn.Action)
	require.Equal(t, "test", turn.Release)
	for _, at := range []time.Time{turn.Reserved, turn.Dispatched, turn.Applied, turn.Seen, turn.Settled, turn.Committed} {
		require.False(t, at.IsZero())
	}
}
