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

// Public reports of tools that do a part of this job, at the level of decisions. Those about the page, the checks and the
// receipt are tested where these are.

func TestPublic_A01_a_loop_without_a_promise_ends_typed_within_its_budget(t *testing.T) {
	w := start(t)
	stuck := w.s
	for w.s.Blocker == nil { // word for word
		w.applied()
		w.same(receipt.Continue)
	}
	w.blockedBy(policy.BlockedRepeatedState)
	require.Equal(t, 5, w.s.Dispatches)

	w = &walk{tester: t, h: newHistory(), s: stuck, at: began} // a little different every time
	for w.s.Blocker == nil {
		w.round()
	}
	w.blockedBy(policy.BlockedRounds)
	require.Equal(t, 51, w.s.Dispatches)
	require.Equal(t, 50, w.s.Budgets.Rounds)

	w = start(t) // no receipt at all
	for w.s.Blocker == nil {
		w.applied()
		w.take(w.without(receipt.CodeMissing, true))
	}
	w.blockedBy(policy.BlockedProtocol)
	require.Equal(t, 4, w.s.Dispatches)
	w.wait(12 * time.Hour)
	w.is(policy.Blocked, "message")
}

func TestPublic_A06_nothing_of_another_conversation_is_adopted(t *testing.T) {
	w := start(t).applied()
	e := w.turn(w.receipt(receipt.Continue))
	e.EffectID = "" // no identity is not any identity
	w.refused(kernel.Reject, policy.CodeEffectMismatch, e)
	e.EffectID = "fx_ofanotherrun00"
	w.refused(kernel.Reject, policy.CodeEffectMismatch, e)
	require.Equal(t, w.s.Site.ConversationID, w.s.Want().ConversationID)
	require.NotEmpty(t, w.s.Want().ConversationID)
}

func TestPublic_A07_the_same_rejected_DONE_is_not_asked_for_over_and_over(t *testing.T) {
	w := start(t)
	var kinds []policy.EffectKind
	for w.s.Blocker == nil {
		kinds = append(kinds, w.s.Effect.Kind)
		w.applied()
		w.same(receipt.Done)
		w.take(w.validated(policy.CheckFail, policy.CheckPass))
	}
	w.blockedBy(policy.BlockedRepeatedState)
	require.Equal(t, []policy.EffectKind{
		policy.KindEnrollment, policy.KindCorrection, policy.KindCorrection, policy.KindStagnation, policy.KindCorrection,
	}, kinds, "never three identical prompts in a row")
	require.NotEqual(t, policy.GoalComplete, w.s.Status)
}

func TestPublic_A09_a_blocked_statement_parks_once(t *testing.T) {
	w := asked(start(t))
	sent := w.s.Dispatches
	w.wait(30 * 24 * time.Hour)
	w.is(policy.WaitingForUser, "message")
	w.refused(kernel.NoOp, policy.CodeDuplicate, w.turn(&receipt.Receipt{
		Form: receipt.Block, Action: receipt.NeedsUser, Digest: fmt.Sprintf("%064d", w.n),
		UserAction: &receipt.UserAction{Kind: "decision", Ask: "Which database?"},
	}))
	require.Equal(t, sent, w.s.Dispatches)
	require.Equal(t, "decision", w.s.Attention().Class)
}

func TestPublic_A11_a_stop_beats_a_late_CONTINUE_and_every_timer(t *testing.T) {
	w := start(t).claimed()
	late := w.turn(w.receipt(receipt.Continue))
	w.take(policy.StopRequested{Operator: "ann", Reason: "enough"})
	w.is(policy.Stopped, "finish")
	w.wait(13 * time.Minute)
	w.refused(kernel.Reject, policy.CodeTerminal, late)
	w.refused(kernel.Reject, policy.CodeTerminal, policy.TimerElapsed{Key: w.owes().Key})
	require.Equal(t, 1, w.s.Dispatches)

	w = start(t) // a timer of the next attempt is running
	w.begin()
	w.take(w.deferred("rate_limited", w.at.Add(time.Hour)))
	timer := w.owes().Key
	w.take(policy.StopRequested{Operator: "ann", Reason: "enough"})
	w.is(policy.Stopped, "finish")
	w.wait(2 * time.Hour)
	w.refused(kernel.Reject, policy.CodeTerminal, policy.TimerElapsed{Key: timer})
}

func TestPublic_A12_A13_a_contract_that_is_not_met_completes_nothing(t *testing.T) {
	for _, code := range []string{"run_id_mismatch", "total_shrunk", "stale"} {
		w := proposed(start(t))
		e := w.validated(policy.CheckPass, policy.CheckFail).(policy.ProposalValidated)
		e.Results[1].Code = code
		require.Equal(t, "done_rejected", w.take(e).Code)
		w.is(policy.Dispatching, policy.OweSend)
		require.Equal(t, policy.KindCorrection, w.s.Effect.Kind)
		require.Contains(t, w.s.Effect.Failed[0], code)
	}
}

func TestPublic_A15_a_limit_with_a_reset_time_is_one_durable_timer_and_then_one_send(t *testing.T) {
	w := start(t)
	w.begin()
	reset := w.at.Add(5 * time.Hour)
	w.take(w.deferred("rate_limited", reset))
	require.Equal(t, 45*time.Minute, w.due(), "a person hears of it")
	require.Equal(t, "send_deferred", w.s.Attention().Class)
	w.due()
	require.Equal(t, reset, w.at)
	w.take(beginEvent(w))
	w.take(w.succeeded())
	require.Equal(t, []int{2, 1, 1}, []int{w.s.Dispatches, w.s.Turns, w.s.Effect.Generation})
	require.Zero(t, w.s.Budgets.ProviderFailures.Total)
}

func TestPublic_A16_waiting_out_a_limit_without_a_reset_time_sends_nothing(t *testing.T) {
	w := start(t)
	var waits []time.Duration
	for range 3 {
		w.begin()
		w.take(w.deferred("rate_limited", time.Time{}))
		require.Equal(t, policy.EffectReserved, w.s.Effect.State)
		require.Zero(t, w.s.Turns)
		waits = append(waits, w.owes().At.Sub(w.at))
	}
	for i, base := range []time.Duration{30 * time.Second, time.Minute, 2 * time.Minute} {
		require.GreaterOrEqual(t, waits[i], base)
		require.LessOrEqual(t, waits[i], base*6/5)
	}
	w.applied()
	require.Equal(t, []int{1, 1}, []int{w.s.Turns, w.s.Effect.Generation})
}

func TestPublic_A17_waiting_for_outside_progress_is_not_stagnation(t *testing.T) {
	w := start(t, gitProgress)
	for i := range 6 {
		w.applied()
		w.n = 0 // "still building", word for word
		e := w.turn(w.receipt(receipt.Continue))
		e.Progress = fmt.Sprint("tree-", i)
		w.take(e)
		require.Zero(t, w.s.Budgets.RepeatedState)
		require.Equal(t, policy.KindContinuation, w.s.Effect.Kind)
	}
}

func TestPublic_A19_a_loop_guard_is_never_a_completion(t *testing.T) {
	w := start(t)
	repeated(w)
	require.Equal(t, "blocked", w.s.Attribute())
	require.Equal(t, policy.Blocked, w.s.Shown())
	require.Equal(t, policy.Blocked, w.s.Proof().Status)
	require.Equal(t, policy.Blocked, w.s.Explain().Status)
	require.Equal(t, "repeated_state", w.s.Attention().Class)
	past := stopped(w)
	require.Equal(t, "stopped", past.Attribute())
	require.Equal(t, policy.Blocked, past.Stop.Left)
}

func TestPublic_A20_a_second_attempt_only_observes(t *testing.T) {
	w := start(t)
	w.begin()
	first := w.tried()
	w.take(policy.RuntimeOrSessionEvicted{Attempted: first, Armed: true})
	w.refused(kernel.Reject, policy.CodeIllegal, beginEvent(w))
	w.is(policy.Dispatching, "timer")
	w.take(policy.ProviderDispatchSucceeded{Attempted: first, At: w.at}) // the first one was alive after all
	w.is(policy.Dispatched, policy.OweObserve)
	require.Equal(t, []int{1, 1}, []int{w.s.Dispatches, w.s.Turns})
}

func TestPublic_A21_the_identity_of_an_effect_survives_every_kill(t *testing.T) {
	for _, armed := range []bool{false, true} {
		w := start(t)
		w.begin()
		id, digest := w.s.Effect.ID, w.s.Effect.PromptDigest
		w.take(policy.RuntimeOrSessionEvicted{Attempted: w.tried(), Armed: armed})
		w.crash()
		require.Equal(t, []any{id, digest}, []any{w.s.Effect.ID, w.s.Effect.PromptDigest})
		require.Equal(t, armed, w.s.Effect.State == policy.EffectUnknown)
	}
}

func TestPublic_A25_three_hundred_turns_keep_the_state_small_and_the_budgets_whole(t *testing.T) {
	w := start(t, rounds(400))
	w.h = newHistory()
	for range 300 {
		w.round()
	}
	require.Equal(t, 300, w.s.Budgets.Rounds)
	require.Equal(t, 300, w.s.Turns)
	require.LessOrEqual(t, len(w.s.Ledger), 50)
	require.Less(t, size(t, w.s), maxState)
}

func TestPublic_A28_a_browser_that_died_in_a_turn_is_noticed(t *testing.T) {
	w := start(t).claimed()
	lost := w.turn(nil)
	lost.Turn, lost.SettledAt, lost.Class = policy.TurnUnread, time.Time{}, "lost"
	w.refused(kernel.NeedsEvidence, policy.CodeTurnUnread, lost)
	w.is(policy.Claimed, policy.OweObserve)
	w.wait(45 * time.Minute)
	w.take(lost)
	require.Equal(t, "turn_overdue", w.s.Attention().Class)
	w.is(policy.Claimed, policy.OweObserve)
	require.Equal(t, 1, w.s.Dispatches)
}

func TestPublic_A29_a_message_to_a_parked_run_is_taken_once(t *testing.T) {
	w := asked(start(t))
	e := w.resume(w.s.Completion.ID)
	e.Note = "Use the second one."
	w.take(e)
	require.Equal(t, "Use the second one.", w.s.Effect.Note)
	text, err := w.s.Prompt(w.s.Effect)
	require.NoError(t, err)
	require.Contains(t, text, "Use the second one.")
	w.refused(kernel.NoOp, policy.CodeNothingToResume, e)
	w.round()
	require.Empty(t, w.s.Effect.Note, "the next prompt does not repeat it")
}

func TestPublic_A31_a_pause_stops_the_sends_and_not_only_a_flag(t *testing.T) {
	w := start(t).claimed()
	w.take(policy.PauseRequested{Operator: "ann", Reason: "wait"})
	w.settle(receipt.Continue)
	w.is(policy.Dispatching, "message")
	w.refused(kernel.Reject, policy.CodePaused, beginEvent(w))
	w.wait(100 * time.Hour)
	w.is(policy.Dispatching, "message")
	require.Equal(t, "ann", w.s.Explain().Paused.By)
	require.Equal(t, "paused", w.s.Attribute())
	w.take(w.resume(""))
	w.begin()
	require.Equal(t, 2, w.s.Dispatches)
}

// A login, consent, challenge or plan limit is no failure: it says what to do, and nothing is sent meanwhile.
func TestPagesThatAskForTheirUserSayWhatToDo(t *testing.T) {
	for _, class := range []string{"login", "consent", "challenge", "plan_limit"} {
		w := start(t)
		w.begin()
		w.take(policy.ProviderUserActionRequired{Attempted: w.tried(), Class: class, Detail: "do it in the browser"})
		w.is(policy.WaitingForUser, "message")
		w.blockedBy(policy.BlockedUserAction)
		a := w.s.Attention()
		require.Equal(t, string(policy.BlockedUserAction), a.Class)
		require.Contains(t, a.Ask, class)
		require.Contains(t, a.Command, "--answers "+w.s.Blocker.ID)
		w.wait(1000 * time.Hour)
		w.is(policy.WaitingForUser, "message")
		require.Equal(t, []int{1, 0, 0}, []int{w.s.Effect.Generation, w.s.Budgets.ProviderFailures.Total, w.s.Turns})
		w.take(w.resume(w.s.Blocker.ID))
		w.is(policy.WaitingForUser, policy.OweProbe)
		w.take(policy.ProviderDispatchStarted{EffectID: w.s.ProbeID(), Generation: 1})
		w.take(w.probe(true, "page"))
		w.applied()
		require.Equal(t, []int{1, 1}, []int{w.s.Effect.Generation, w.s.Turns})
	}
}
