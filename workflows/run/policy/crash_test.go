package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// window is one row of the tables "Crash-window contract" and "Fault-injection matrix". The tests of the package integration
// with real kills: "killed before arming" is before_provider_dispatch_starts and crash_before_provider_call, "killed after the
// click" is provider_may_have_acted and receipt_write_lost with its positive reconciliation, "killed after arming" the same
// with the unknown that stays, "frozen" the eviction, a history that continues as new the restart; TestCrashWindowsWithKilledProcesses
// kills server, workers and browsers in the windows that a process can die in.
type window struct {
	name    string
	options []option
	// given leads to the durable fact; then is the fault and the one legal recovery.
	given func(w *walk)
	then  func(w *walk)
	want  string
}

// crash is the loss of every process: the state comes back from its JSON, and what it owes is derived anew.
func (w *walk) crash() {
	w.Helper()
	before := w.owes()
	w.s = carried(w, w.s)
	w.try(policy.StalledRoundObserved{})
	if w.s.Effect.State != policy.EffectUnknown {
		require.Equal(w, before.Key, w.owes().Key, "another debt after a restart")
	}
}

// facts is everything that the contract asks to be asserted, against the durable fact before the fault.
func facts(old, s policy.State) string {
	same := func(a, b string) string {
		if a == b {
			return "same"
		}
		return "new"
	}
	class := ""
	if s.Blocker != nil {
		class = " " + string(s.Blocker.Class)
	}
	f := s.Budgets.ProviderFailures
	return fmt.Sprintf("%s/%s%s · rounds %d repeated %d failures %d epoch %d total %d · "+
		"authority %s claim %d · effect %s %s gen %d · %d attempts %d messages · rev +%d",
		s.Status, s.Stage, class, s.Budgets.Rounds, s.Budgets.RepeatedState, f.Streak, f.Epoch, f.Total, same(old.AuthorityID, s.AuthorityID),
		s.ClaimGeneration, same(old.Effect.ID, s.Effect.ID), s.Effect.State, s.Effect.Generation, s.Dispatches, s.Turns, s.Revision-old.Revision)
}

func windows(t *testing.T, table []window) {
	t.Helper()
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			w := start(t, c.options...)
			c.given(w)
			old := w.s
			c.then(w)
			require.Equal(t, c.want, facts(old, w.s))
		})
	}
}

func TestCrashWindowContract(t *testing.T) {
	windows(t, []window{
		{
			name: "before_provider_dispatch_starts", given: func(w *walk) { w.round() },
			then: func(w *walk) { w.crash(); w.applied() },
			want: "dispatched/dispatch_confirmed · rounds 1 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 2 attempts 2 messages · rev +2",
		},
		{
			name: "provider_may_have_acted_before_receipt_persistence", given: func(w *walk) { w.begin() },
			then: func(w *walk) {
				w.crash()
				w.is(policy.Dispatching, policy.OweReconcile)
				w.refused(kernel.Reject, policy.CodeIllegal, beginEvent(w))
				w.take(w.look(true, true))
			},
			want: "dispatched/dispatch_confirmed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +2",
		},
		{
			name: "dispatch_receipt_before_dispatched", given: func(w *walk) { w.begin() },
			then: func(w *walk) {
				e := w.succeeded()
				w.take(e)
				w.crash()
				w.refused(kernel.NoOp, policy.CodeDuplicate, e)
				w.refused(kernel.Reject, policy.CodeIllegal, beginEvent(w))
			},
			want: "dispatched/dispatch_confirmed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +1",
		},
		{
			name: "dispatched_before_controller_claim", given: func(w *walk) { w.applied() },
			then: func(w *walk) {
				w.crash()
				w.refused(kernel.NoOp, policy.CodeDuplicate, policy.OccurrenceRequested{Start: startOf(secondRun, nil)})
				w.take(policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at})
			},
			want: "claimed/controller_claimed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +1",
		},
		{
			name: "claim_persisted_before_controller_observes_response", given: func(w *walk) { w.claimed() },
			then: func(w *walk) {
				w.crash()
				w.refused(kernel.NoOp, policy.CodeDuplicate, policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at})
			},
			want: "claimed/controller_claimed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +0",
		},
		{
			name: "semantic_disposition_persisted_before_release", given: committed,
			then: func(w *walk) {
				w.crash()
				w.refused(kernel.NoOp, policy.CodeDuplicate, again(w))
				w.take(release(w))
			},
			want: "dispatching/dispatching · rounds 1 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority new claim 1 · effect new reserved gen 1 · 1 attempts 1 messages · rev +1",
		},
		{
			name: "controller_released_before_next_round", given: committed,
			then: func(w *walk) {
				e := release(w)
				w.take(e)
				w.crash()
				w.refused(kernel.NoOp, policy.CodeReleasedEarlier, e)
			},
			want: "dispatching/dispatching · rounds 1 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority new claim 1 · effect new reserved gen 1 · 1 attempts 1 messages · rev +1",
		},
		{
			name: "predecessor_successor_handoff", given: func(w *walk) { w.rebind(); w.succeed() },
			then: func(w *walk) {
				w.crash()
				w.is(policy.Dispatching, policy.OweSucceed)
				next := w.successor()
				w.take(policy.SuccessorBound{Succession: w.s.Succession.ID, Successor: next.s.WorkflowID})
				w.refused(kernel.Reject, policy.CodeTerminal, policy.SuccessorBound{Successor: next.s.WorkflowID})
			},
			want: "handed_off/semantic_round_closed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same reserved gen 1 · 0 attempts 0 messages · rev +1",
		},
		{
			name: "runtime_restart", given: func(w *walk) { w.round().claimed() },
			then: func(w *walk) { w.crash(); w.crash() },
			want: "claimed/controller_claimed · rounds 1 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 2 attempts 2 messages · rev +0",
		},
		{
			name: "mcp_session_eviction", given: func(w *walk) { w.begin() },
			then: func(w *walk) {
				e := policy.RuntimeOrSessionEvicted{Attempted: w.tried()}
				w.take(e)
				w.refused(kernel.Reject, policy.CodeGenerationStale, e)
				w.applied()
			},
			want: "dispatched/dispatch_confirmed · rounds 0 repeated 0 failures 0 epoch 0 total 1 · " +
				"authority same claim 1 · effect same applied gen 2 · 2 attempts 1 messages · rev +4",
		},
	})
}

// committed is a CONTINUE whose turn has not settled.
func committed(w *walk) {
	w.claimed()
	early(w, receipt.Continue)
	w.is(policy.PendingRelease, policy.OweRelease)
}

// again is the receipt of committed once more.
func again(w *walk) policy.Event {
	w.n--
	return policy.SemanticDispositionSubmitted{EffectID: w.s.Effect.ID, Receipt: w.receipt(receipt.Continue), AnswerDigest: "answer"}
}

func TestFaultInjectionMatrix(t *testing.T) {
	windows(t, []window{
		{
			name: "01_crash_before_provider_call", given: func(w *walk) { w.begin() },
			then: func(w *walk) {
				w.take(policy.RuntimeOrSessionEvicted{Attempted: w.tried()})
				require.Equal(w, 30*time.Second, w.due())
				w.applied()
			},
			want: "dispatched/dispatch_confirmed · rounds 0 repeated 0 failures 0 epoch 0 total 1 · " +
				"authority same claim 1 · effect same applied gen 2 · 2 attempts 1 messages · rev +4",
		},
		{
			name: "02_provider_call_succeeds_receipt_write_lost", given: func(w *walk) { w.begin() },
			then: func(w *walk) {
				w.take(policy.RuntimeOrSessionEvicted{Attempted: w.tried(), Armed: true})
				w.refused(kernel.Reject, policy.CodeIllegal, beginEvent(w))
			},
			want: "dispatching/dispatching · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same unknown gen 1 · 1 attempts 0 messages · rev +1",
		},
		{
			name: "03_receipt_exists_dispatched_transition_lost", given: func(w *walk) { w.begin() },
			then: func(w *walk) {
				e := w.succeeded()
				w.crash()
				w.take(e)
				w.refused(kernel.NoOp, policy.CodeDuplicate, e)
			},
			want: "dispatched/dispatch_confirmed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +2",
		},
		{
			name: "04_dispatched_exists_claim_response_lost", given: func(w *walk) { w.applied() },
			then: func(w *walk) {
				e := policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at}
				w.take(e)
				w.crash()
				w.refused(kernel.NoOp, policy.CodeDuplicate, e)
			},
			want: "claimed/controller_claimed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +1",
		},
		{
			name: "05_claim_persists_then_restart", given: func(w *walk) {
				w.claimed()
				e := w.turn(nil)
				e.Turn, e.Worker = policy.TurnOpen, policy.Worker{Release: "r1", Incarnation: 3}
				w.take(e)
			},
			then: func(w *walk) {
				w.crash()
				e := w.turn(nil)
				e.Turn, e.Worker = policy.TurnOpen, policy.Worker{Release: "r2", Incarnation: 4}
				w.take(e)
			},
			want: "claimed/controller_claimed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 2 · effect same applied gen 1 · 1 attempts 1 messages · rev +1",
		},
		{
			name: "06_disposition_persists_then_release_fails", given: committed,
			then: func(w *walk) {
				w.refused(kernel.NeedsEvidence, policy.CodeNotSettled, policy.ControllerReleaseObserved{EffectID: w.s.Effect.ID})
				w.crash()
				w.refused(kernel.NoOp, policy.CodeDuplicate, again(w))
				w.is(policy.PendingRelease, policy.OweRelease)
			},
			want: "pending_release/semantic_round_closed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +0",
		},
		{
			name: "07_release_persists_then_next_round_creation_fails", given: committed,
			then: func(w *walk) {
				e := release(w)
				w.take(e)
				w.crash()
				w.refused(kernel.NoOp, policy.CodeReleasedEarlier, e)
				w.begin()
				w.refused(kernel.NoOp, policy.CodeDuplicate, beginEvent(w))
			},
			want: "dispatching/dispatching · rounds 1 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority new claim 1 · effect new dispatching gen 1 · 2 attempts 1 messages · rev +2",
		},
		{
			name: "08_handoff_crashes_between_predecessor_and_successor", given: func(w *walk) { w.rebind(); w.succeed() },
			then: func(w *walk) {
				// The successor has started, the predecessor does not know: its second start finds the id taken and sends nothing.
				w.crash()
				w.take(policy.SuccessorBound{Succession: w.s.Succession.ID, Successor: "run:chatgpt:other", Owned: true})
				w.refused(kernel.Reject, policy.CodeIllegal, beginEvent(w))
			},
			want: "blocked/dispatching conversation_owned · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same reserved gen 1 · 0 attempts 0 messages · rev +1",
		},
		{
			name: "09_repeated_state_with_unchanged_fingerprint", options: []option{gitProgress}, given: repeated,
			then: func(w *walk) {
				w.due()
				w.take(policy.SemanticStateChanged{Blocker: w.s.Blocker.ID, Look: w.s.Blocker.Probes, Fingerprint: w.s.Completion.Progress})
			},
			want: "blocked/semantic_round_closed repeated_state · rounds 4 repeated 4 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 5 attempts 5 messages · rev +2",
		},
		{
			name: "10_repeated_state_with_changed_fingerprint", options: []option{gitProgress}, given: repeated,
			then: func(w *walk) {
				w.due()
				w.take(policy.SemanticStateChanged{Blocker: w.s.Blocker.ID, Look: w.s.Blocker.Probes, Fingerprint: "changed"})
			},
			want: "dispatching/dispatching · rounds 5 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority new claim 1 · effect new reserved gen 1 · 5 attempts 5 messages · rev +2",
		},
		{
			name: "11_provider_failures_reach_fuse", given: func(w *walk) { w.round() }, then: func(w *walk) { w.fused() },
			want: "blocked/dispatching consecutive_failures · rounds 1 repeated 0 failures 3 epoch 0 total 3 · " +
				"authority same claim 1 · effect same not_applied gen 3 · 4 attempts 1 messages · rev +8",
		},
		{
			name: "12_verified_recovery_for_that_fuse", given: func(w *walk) { w.round().fused() },
			then: func(w *walk) {
				w.due()
				w.take(policy.ProviderDispatchStarted{EffectID: w.s.ProbeID(), Generation: 1})
				w.take(w.probe(true, "message"))
				w.applied()
			},
			want: "dispatched/dispatch_confirmed · rounds 1 repeated 0 failures 0 epoch 1 total 3 · " +
				"authority same claim 1 · effect same applied gen 4 · 5 attempts 2 messages · rev +5",
		},
		{
			name: "13_stale_or_mismatched_recovery_evidence", given: func(w *walk) { w.fused() },
			then: func(w *walk) {
				e := w.probe(true, "message")
				e.Revision--
				w.refused(kernel.Reject, policy.CodeProbeStale, e)
				e = w.probe(true, "message")
				e.Blocker = "bl_other"
				w.refused(kernel.Reject, policy.CodeProbeStale, e)
				e = w.probe(true, "message")
				e.Probe = "pr_other"
				w.refused(kernel.NoOp, policy.CodeDuplicate, e)
				w.due()
				w.take(policy.ProviderDispatchStarted{EffectID: w.s.ProbeID(), Generation: 1})
				w.take(w.probe(true, "page"))
			},
			want: "blocked/dispatching consecutive_failures · rounds 0 repeated 0 failures 3 epoch 0 total 3 · " +
				"authority same claim 1 · effect same not_applied gen 3 · 3 attempts 0 messages · rev +3",
		},
		{
			name: "14_outcome_unknown_positive_reconciliation", given: func(w *walk) { w.unknown() },
			then: func(w *walk) {
				w.due()
				e := w.look(true, true)
				w.take(e)
				w.refused(kernel.NoOp, policy.CodeDuplicate, e)
			},
			want: "dispatched/dispatch_confirmed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +2",
		},
		{
			name: "15_outcome_unknown_proven_not_executed", given: func(w *walk) { w.unknown() },
			then: func(w *walk) {
				w.take(w.word(policy.VerdictNotApplied))
				w.take(w.look(false, true))
				w.applied()
			},
			want: "dispatched/dispatch_confirmed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 2 · 2 attempts 1 messages · rev +4",
		},
		{
			name: "16_hard_round_budget_exhaustion", options: []option{rounds(1)}, given: func(w *walk) { w.round() },
			then: func(w *walk) {
				w.round()
				w.refused(kernel.Reject, policy.CodeBlocker, w.resume(w.s.Blocker.ID))
			},
			want: "blocked/semantic_round_closed round_budget_exhausted · rounds 1 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 2 attempts 2 messages · rev +3",
		},
		{
			name: "17_waiting_scheduled_occurrence", given: func(w *walk) { waiting(w) },
			then: func(w *walk) {
				e := policy.OccurrenceRequested{OccurrenceID: "2026-09-02", Operator: "cron"}
				w.refused(kernel.NeedsEvidence, policy.CodeOccurrenceMissing, policy.OccurrenceRequested{})
				w.take(e)
				w.refused(kernel.NoOp, policy.CodeOccurrenceSeen, e)
				w.take(release(w))
			},
			want: "dispatching/dispatching · rounds 1 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority new claim 1 · effect new reserved gen 1 · 1 attempts 1 messages · rev +2",
		},
		{
			name: "18_waiting_for_user_without_resolution", given: func(w *walk) { asked(w) },
			then: func(w *walk) {
				w.wait(1000 * time.Hour)
				w.crash()
				w.refused(kernel.NoOp, policy.CodeNotDue, policy.TimerElapsed{Key: w.owes().Key})
				w.refused(kernel.NeedsEvidence, policy.CodeAnswerMissing, w.resume(""))
				w.refused(kernel.Reject, policy.CodeAnswerMismatch, w.resume("cp_other"))
				w.refused(kernel.Reject, policy.CodeIllegal, policy.OccurrenceRequested{OccurrenceID: "o1"})
			},
			want: "waiting_for_user/semantic_round_closed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +0",
		},
		{
			name: "19_relaunch_after_goal_complete_and_handed_off", given: func(w *walk) { proposed(w) },
			then: func(w *walk) {
				w.take(w.validated(policy.CheckPass, policy.CheckPass))
				w.refused(kernel.Reject, policy.CodeTerminal, policy.OccurrenceRequested{Start: startOf(secondRun, nil)})
				require.Contains(w, later(w, w.s).s.Failure.Problems[0], policy.CodeLineageComplete)
				left := w.s
				left.Status = policy.HandedOff
				require.Contains(w, later(w, left).s.Failure.Problems[0], policy.CodeLineageHandedOff)
			},
			want: "goal_complete/semantic_round_closed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +1",
		},
		{
			name: "20a_terminal_cleanup_with_an_active_claim", given: func(w *walk) { w.claimed() },
			then: func(w *walk) {
				w.refused(kernel.Reject, policy.CodeNotSupported, policy.TerminalWorkObserved{})
				w.take(policy.GoalCancelled{Operator: "ann", Reason: "not wanted any more"})
				w.refused(kernel.Reject, policy.CodeTerminal, w.turn(w.receipt(receipt.Continue)))
			},
			want: "stopped/controller_claimed · rounds 0 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same applied gen 1 · 1 attempts 1 messages · rev +1",
		},
		{
			name: "20b_terminal_cleanup_without_a_claim", given: func(w *walk) { w.round() },
			then: func(w *walk) {
				w.take(policy.GoalCancelled{Operator: "ann", Reason: "not wanted any more"})
				w.refused(kernel.Reject, policy.CodeTerminal, beginEvent(w))
			},
			want: "stopped/dispatching · rounds 1 repeated 0 failures 0 epoch 0 total 0 · " +
				"authority same claim 1 · effect same reserved gen 1 · 1 attempts 1 messages · rev +1",
		},
	})
}
