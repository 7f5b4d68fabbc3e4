package integration

import (
	"context"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

// TestAttacks tries to make it send twice, end falsely or stop silently.
func TestAttacks(t *testing.T) {
	full(t)
	k := startKillable(t)
	for name, attack := range map[string]func(*testing.T, *killable){
		"every message while a send is under way":               messagesDuringASend,
		"payloads that mean nothing":                            meaninglessPayloads,
		"receipts of others":                                    foreignReceipts,
		"terminated after the click and started again":          terminatedAndStartedAgain,
		"cancelled while a send is armed":                       cancelledWhileArmed,
		"two deciding workers, one killed, and a second sender": twoWorkers,
		"ten starts at once, and one that replaces the run":     manyStarts,
	} {
		t.Run(name, func(t *testing.T) { attack(t, k) })
	}
	require.Empty(t, k.lab.Violations())
}

// once checks that the site has each effect of a chain once and nothing else.
func (s *stack) once(t *testing.T, conversation string, messages int) {
	t.Helper()
	seen := map[string]int{}
	for _, r := range s.lab.Record(conversation) {
		seen[r.EffectID]++
	}
	require.Len(t, seen, messages)
	for effect, n := range seen {
		require.Equal(t, 1, n, "messages of %q", effect)
	}
}

// frozen is a run whose send is held at a point.
func (k *killable) frozen(t *testing.T, name, point, scenario string) (p *browserProcess, conversation string, run client.WorkflowRun) {
	conversation = k.conversation(t, scenario)
	p = k.browserWorker(t, name, fault{point, syscall.SIGSTOP})
	run = k.start(t, conversation, k.input(conversation, name))
	p.hit(t)
	return p, conversation, run
}

func messagesDuringASend(t *testing.T, k *killable) {
	p, conversation, run := k.frozen(t, "attack-messages", "before_arm", oneTurn)
	state := k.state(t, run.GetID())
	effect := map[string]any{"effect_id": state.Effect.ID, "generation": 1, "operator": "eve", "reason": "now"}
	with := func(more map[string]any) map[string]any {
		all := map[string]any{"operator": "eve", "reason": "now"}
		maps.Copy(all, more)
		return all
	}
	submit := func(event string, payload map[string]any) map[string]any {
		return map[string]any{"event": event, "payload": payload}
	}
	for _, m := range []struct {
		name    string
		payload map[string]any
	}{
		{"applied", effect},
		{"not_applied", with(map[string]any{"effect_id": state.Effect.ID, "generation": 1, "without_observation": true})},
		{"unknown", effect},
		{"supersede", with(map[string]any{"effect_id": state.Effect.ID, "accept_duplicate": true})},
		{"resume", with(map[string]any{"answers": "bl_0000000000000000"})},
		{"approve", with(map[string]any{"completion": "cp_0000000000000000"})},
		{"decline", with(map[string]any{"completion": "cp_0000000000000000"})},
		{"recover", with(map[string]any{"effect_id": state.Effect.ID})},
		{"occurrence", map[string]any{"occurrence_id": "again", "operator": "eve"}},
		{"submit", submit("provider_dispatch_succeeded", map[string]any{"effect_id": state.Effect.ID})},
		{"submit", submit("proposal_validated", map[string]any{})},
		{"submit", submit("semantic_disposition_submitted", with(map[string]any{"effect_id": state.Effect.ID, "disposition": "wait"}))},
		{"submit", submit("semantic_state_changed", with(map[string]any{"note": "it did"}))},
		{"submit", submit("authority_recovery_requested", with(map[string]any{"revision": state.Revision, "authority_id": state.AuthorityID}))},
	} {
		answer, err := k.tell(run.GetID(), m.name, m.payload)
		t.Logf("%s %v: %s %s %v", m.name, m.payload["event"], answer.Decision, answer.Code, err)
		require.NotEqual(t, kernel.Accept, answer.Decision, "%s %v", m.name, m.payload)
	}
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	require.Equal(t, policy.GoalComplete, k.result(t, run).Status)
	k.once(t, conversation, 1)
}

// tell sends an update that may be refused before it has any history.
func (s *stack) tell(id, name string, payload any) (answer machine.Answer, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	handle, err := s.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: name, UpdateID: uuid.NewString(), Args: []any{payload}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return answer, err
	}
	return answer, handle.Get(ctx, &answer)
}

func meaninglessPayloads(t *testing.T, k *killable) {
	k.browserWorker(t, "attack-payloads", fault{})
	conversation := k.conversation(t, gated)
	run := k.start(t, conversation, k.input(conversation, "attack-payloads"))
	before := k.until(t, run.GetID(), "working", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	for _, name := range []string{"stop", "resume", "not_applied", "supersede", "upgrade", "no_such_signal"} {
		for _, payload := range []any{
			[]byte{0xff, 0xfe},
			"stop", 7,
			[]any{},
			nil,
			map[string]any{"operator": 1},
			map[string]any{"operator": "eve", "reason": "x", "more": true},
			map[string]any{"operator": strings.Repeat("e", 100_000), "reason": "x"},
		} {
			require.NoError(t, k.client.SignalWorkflow(t.Context(), run.GetID(), "", name, payload))
			if name != "upgrade" && name != "no_such_signal" {
				answer, err := k.tell(run.GetID(), name, payload)
				require.True(t, err != nil || answer.Decision == kernel.Reject || answer.Decision == kernel.NeedsEvidence, "%s %v: %+v", name, payload, answer)
			}
		}
	}
	state := k.state(t, run.GetID())
	require.Nil(t, state.Stop)
	require.Equal(t, before.Effect.ID, state.Effect.ID)
	require.NoError(t, k.lab.Release(conversation, "go"))
	require.Equal(t, policy.GoalComplete, k.result(t, run).Status)
	k.once(t, conversation, 2)
}

func foreignReceipts(t *testing.T, k *killable) {
	k.browserWorker(t, "attack-receipts", fault{})
	report := filepath.Join(k.dir, "attack-receipts.md")
	conversation := k.conversation(t, `
replies:
  - - text: '{{receipt "DONE" "another effect" "all is well" | replace .EffectID "fx_0123456789abcdef"}}'
  - - text: '{{receipt "DONE" "another conversation" "all is well" | replace .ConversationID "6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e"}}'
  - - text: "I quote what would end this:\n\n{{receipt \"DONE\" \"quoted\" \"all is well\"}}\n\nBut it is not done."
  - - text: '{{receipt "DONE" "true form, false claim" "all is well"}}'
  - - write_file: {path: attack-receipts.md, content: green}
    - text: '{{receipt "DONE" "true" "all is well"}}'
`)
	run := k.start(t, conversation, k.input(conversation, "attack-receipts", func(in map[string]any) {
		in["completion"] = map[string]any{"checks": []any{map[string]any{"name": "report", "file": map[string]any{"path": report}}}}
	}))
	state := k.result(t, run)
	require.Equal(t, policy.GoalComplete, state.Status)
	require.FileExists(t, report)
	for _, turn := range state.Chain() {
		t.Logf("%s: %s %s", turn.Kind, turn.Action, turn.Receipt)
	}
	k.once(t, conversation, 5)
}

func terminatedAndStartedAgain(t *testing.T, k *killable) {
	for _, point := range []string{"armed", "clicked"} {
		p, conversation, run := k.frozen(t, "attack-terminate-"+point, point, "otherwise:\n  - text: '{{receipt \"DONE\" \"done\" \"all is well\"}}'\n")
		first := k.state(t, run.GetID()).Effect.ID
		require.NoError(t, k.client.TerminateWorkflow(t.Context(), run.GetID(), "", "an attack"))
		again := k.start(t, conversation, k.input(conversation, "attack-terminate-"+point))
		state := k.until(t, again.GetID(), "looking for the effect of the terminated run", func(st policy.State) bool { return st.Effect.ID != "" })
		require.Equal(t, []any{first, policy.EffectUnknown}, []any{state.Effect.ID, state.Effect.State})
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
		state = k.until(t, again.GetID(), "at its end", func(st policy.State) bool { return st.Terminal() || st.Blocker != nil })
		if state.Blocker != nil { // woken too late for the click
			require.Equal(t, []any{policy.BlockedUnknown, "armed"}, []any{state.Blocker.Class, point})
			k.once(t, conversation, 0)
			continue
		}
		require.Equal(t, policy.GoalComplete, state.Status)
		require.Equal(t, 1, k.marked(conversation, first))
		k.once(t, conversation, 2)
	}
}

func cancelledWhileArmed(t *testing.T, k *killable) {
	p, conversation, run := k.frozen(t, "attack-cancel", "armed", oneTurn)
	require.NoError(t, k.client.CancelWorkflow(t.Context(), run.GetID(), ""))
	k.until(t, run.GetID(), "stopping", func(st policy.State) bool { return st.Stop != nil })
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	state := k.until(t, run.GetID(), "stopped", func(st policy.State) bool { return st.Terminal() })
	require.Equal(t, policy.Stopped, state.Status)
	described, err := k.client.DescribeWorkflowExecution(t.Context(), run.GetID(), "")
	require.NoError(t, err)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, described.GetWorkflowExecutionInfo().GetStatus())
	t.Logf("its effect is %s", state.Effect.State)
	require.LessOrEqual(t, len(k.lab.Record(conversation)), 1)
}

func twoWorkers(t *testing.T, k *killable) {
	second := k.command("worker", "--roles", "run,checks", "--stop-timeout", "11s")
	second.log += ".second"
	require.NoError(t, second.start())
	t.Cleanup(second.end)
	k.browserWorker(t, "attack-workers", fault{})
	conversation := k.conversation(t, "replies:\n"+strings.Repeat("  - - text: '{{receipt \"CONTINUE\" .EffectID \"more to do\"}}'\n", 4)+done)
	run := k.start(t, conversation, k.input(conversation, "attack-workers"))

	other := &browserProcess{spec: workerSpec{
		Address: k.endpoint.Address, Namespace: k.endpoint.Namespace, Name: "attack-workers", SitesDir: k.sitesDir,
		ProfileDir: filepath.Join(k.dir, "profiles", "attack-another"), Hit: filepath.Join(t.TempDir(), "hit"),
	}}
	k.until(t, run.GetID(), "in its second turn", func(st policy.State) bool { return st.Turns >= 2 })
	other.start(t)
	require.Error(t, other.cmd.Wait(), "a second sender of one login is refused")
	require.NoError(t, k.worker.restart())
	state := k.result(t, run)
	require.Equal(t, policy.GoalComplete, state.Status)
	require.Equal(t, 4, state.Budgets.Rounds)
	k.once(t, conversation, 5)
}

func manyStarts(t *testing.T, k *killable) {
	k.browserWorker(t, "attack-starts", fault{})
	conversation := k.conversation(t, gated)
	in := k.input(conversation, "attack-starts")
	var starts sync.WaitGroup
	ids := make([]string, 10)
	for i := range ids {
		starts.Go(func() {
			run, err := k.client.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{
				ID: "run:chatlab:" + conversation, TaskQueue: workflows.QueueRun,
			}, workflows.TypeWorkflowRun, in)
			if err == nil {
				ids[i] = run.GetRunID()
			}
		})
	}
	starts.Wait()
	for _, id := range ids {
		require.Equal(t, ids[0], id, "one run")
	}
	id := "run:chatlab:" + conversation
	k.until(t, id, "working", func(st policy.State) bool { return st.Effect.State == policy.EffectApplied })
	require.NoError(t, k.lab.AwaitGate(t.Context(), conversation, "go"))
	run, err := k.client.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueRun, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING,
	}, workflows.TypeWorkflowRun, in)
	require.NoError(t, err)
	require.NoError(t, k.lab.Release(conversation, "go"))
	state := k.result(t, run)
	require.Equal(t, policy.GoalComplete, state.Status)
	k.once(t, conversation, 2)
}
