package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/prompt"
	"steward/workflows/run/receipt"
)

func asError[E error](err error, into *E) bool { return errors.As(err, into) }

func TestRunWorksUntilItsGoalIsVerified(t *testing.T) {
	b := newBench(t, receipt.Continue, receipt.Continue, receipt.Done)
	b.execute()
	require.NoError(t, b.GetWorkflowError())
	s := b.state()
	require.Equal(t, policy.GoalComplete, s.Status)
	require.Len(t, b.sends, 3)
	require.Equal(t, 2, s.Budgets.Rounds)

	for i, kind := range []string{"enrollment", "continuation", "continuation"} {
		in := b.sends[i]
		require.Equal(t, kind, in.Kind)
		require.Equal(t, 1, in.Generation)
		require.Contains(t, in.Prompt, prompt.Marker(in.EffectID))
		require.Equal(t, prompt.Digest(in.Prompt), in.PromptDigest)
		require.Equal(t, activities.Conversation{Site: "chatgpt", Browser: "chatgpt", ID: conversationID, URL: b.site.ConversationURL}, in.Conversation)
	}
	require.Nil(t, b.sends[0].Fence, "an enrollment follows no turn of ours")
	require.Equal(t, b.sends[0].EffectID, b.sends[1].Fence.SourceEffect)
	require.NotEmpty(t, b.sends[1].Fence.AnswerDigest)
	require.Contains(t, b.sends[0].Prompt, b.goal.Objective)
	require.NotContains(t, b.sends[1].Prompt, b.goal.Objective)

	require.Equal(t, b.sends[0].EffectID, b.observed[0].Want.EffectID)
	require.True(t, b.observed[0].Until.After(b.observed[0].SettledNotBefore))
	require.Equal(t, []string{
		"occurrence_requested",
		"provider_dispatch_started", "provider_dispatch_succeeded", "effect_observed continue_committed",
		"provider_dispatch_started", "provider_dispatch_succeeded", "effect_observed continue_committed",
		"provider_dispatch_started", "provider_dispatch_succeeded", "effect_observed done_proposed",
		"proposal_validated done_verified",
	}, b.journal())
	require.Equal(t, map[string]int64{"tests": 12}, s.Totals)
}

func TestRejectedDoneIsCorrectedAndCheckedAgain(t *testing.T) {
	b := newBench(t, receipt.Done, receipt.Done)
	checked := 0
	b.checkFn = func(in activities.CheckInput) []activities.CheckEvidence {
		require.Equal(t, map[string]int64{"tests": 12}, in.Totals)
		require.Contains(t, in.RunIDs, workflowID)
		if checked++; checked == 1 {
			return []activities.CheckEvidence{{Name: "tests", Outcome: activities.CheckFail, Code: activities.CheckExitMismatch, Line: "FAIL orders"}}
		}
		return []activities.CheckEvidence{{Name: "tests", Outcome: activities.CheckPass}}
	}
	b.execute()
	require.Equal(t, policy.GoalComplete, b.state().Status)
	require.Len(t, b.sends, 2)
	require.Equal(t, "correction", b.sends[1].Kind)
	require.Contains(t, b.sends[1].Prompt, "tests: exit_mismatch FAIL orders")
}

func TestUnknownSendIsFoundByItsMarkerAndNotRepeated(t *testing.T) {
	b := newBench(t, receipt.Done)
	b.sendFn = func(context.Context, activities.SendInput) (activities.SendResult, error) {
		return activities.SendResult{Outcome: activities.SendDoubtful, Code: "commit_not_seen", Armed: true}, nil
	}
	b.lookFn = func(activities.ReconcileInput) activities.ReconcileResult {
		return activities.ReconcileResult{Readable: true, Marker: b.looks == 2, UserMessageID: "m1"}
	}
	began := b.Now()
	b.execute()
	s := b.state()
	require.Equal(t, policy.GoalComplete, s.Status)
	require.Len(t, b.sends, 1)
	require.Equal(t, 2, b.looks)
	require.GreaterOrEqual(t, b.Now().Sub(began), 40*time.Second)
	require.Equal(t, "m1", s.Effect.UserMessageID)
}

func TestUnknownSendWaitsForAnOperatorWhoAnswersByUpdate(t *testing.T) {
	b := newBench(t, receipt.Done)
	b.sendFn = func(_ context.Context, in activities.SendInput) (activities.SendResult, error) {
		if in.Generation == 1 {
			return activities.SendResult{Outcome: activities.SendDoubtful, Code: "commit_not_seen", Armed: true}, nil
		}
		return b.committed(), nil
	}
	b.lookFn = func(activities.ReconcileInput) activities.ReconcileResult {
		return activities.ReconcileResult{Readable: true}
	}
	var mismatch, accepted *answer
	b.after(time.Hour, func() {
		s := b.present()
		require.Equal(t, policy.BlockedUnknown, s.Blocker.Class)
		require.Contains(t, b.page(), "provider_dispatch_outcome_unknown")
		mismatch = b.update(workflows.MessageNotApplied, by("effect_id", "fx_other", "generation", 1))
		accepted = b.update(workflows.MessageNotApplied, by("effect_id", s.Effect.ID, "generation", 1))
	})
	b.execute()
	require.Equal(t, []string{"reject", policy.CodeEffectMismatch}, []string{string(mismatch.Decision), mismatch.Code})
	require.NotNil(t, mismatch.Current)
	require.Equal(t, []string{"accept", policy.CodeObservationPending}, []string{string(accepted.Decision), accepted.Code})
	require.Equal(t, policy.GoalComplete, b.state().Status)
	require.Equal(t, []int{1, 2}, []int{b.sends[0].Generation, b.sends[1].Generation})
	require.Equal(t, b.sends[0].EffectID, b.sends[1].EffectID)
	require.Equal(t, 5, b.looks, "four to the bound, and one fresh look for the operator's word")
}

// timeout is how the server ends an activity that was not heard of again.
func timeout(kind enumspb.TimeoutType, details ...any) error {
	if len(details) > 0 {
		return temporal.NewHeartbeatTimeoutError(details...)
	}
	return temporal.NewTimeoutError(kind, nil)
}

func TestLostSendIsJudgedByItsLastHeartbeat(t *testing.T) {
	for name, test := range map[string]struct {
		err        error
		state      policy.EffectState
		generation int
		streak     int
		code       string
	}{
		"never started": {timeout(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START), policy.EffectReserved, 1, 0, "provider_dispatch_deferred"},
		"lost before its first heartbeat": {
			timeout(enumspb.TIMEOUT_TYPE_HEARTBEAT), policy.EffectReserved, 2, 1, "runtime_or_session_evicted",
		},
		"lost before arming": {
			timeout(enumspb.TIMEOUT_TYPE_HEARTBEAT, activities.SendProgress{Step: "type"}), policy.EffectReserved, 2, 1, "runtime_or_session_evicted",
		},
		"lost after arming": {
			timeout(enumspb.TIMEOUT_TYPE_HEARTBEAT, activities.SendProgress{Step: "press", Armed: 1}), policy.EffectUnknown, 1, 0,
			"runtime_or_session_evicted",
		},
		"lost with a heartbeat that cannot be read": {
			timeout(enumspb.TIMEOUT_TYPE_HEARTBEAT, "armed?"), policy.EffectUnknown, 1, 0, "runtime_or_session_evicted",
		},
		"failed with an error of its own": {
			temporal.NewNonRetryableApplicationError("broken", "broken", nil), policy.EffectUnknown, 1, 0, "provider_dispatch_outcome_unknown",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.sendFn = func(context.Context, activities.SendInput) (activities.SendResult, error) {
				if len(b.sends) == 1 {
					return activities.SendResult{}, test.err
				}
				return activities.SendResult{Outcome: activities.SendDeferred, Class: activities.DeferBusy}, nil
			}
			b.lookFn = func(activities.ReconcileInput) activities.ReconcileResult { return activities.ReconcileResult{} }
			b.after(5*time.Second, func() {
				s := b.present()
				require.Equal(t, test.state, s.Effect.State)
				require.Equal(t, test.generation, s.Effect.Generation)
				require.Equal(t, test.streak, s.Budgets.ProviderFailures.Streak)
				b.CancelWorkflow()
			})
			b.execute()
			require.Contains(t, strings.Join(b.journal(), "\n"), test.code)
			require.Equal(t, policy.Stopped, b.state().Status)
		})
	}
}

func TestDeferredSendWaitsAndIsMadeOnce(t *testing.T) {
	b := newBench(t, receipt.Done)
	until := b.Now().Add(5 * time.Hour)
	b.sendFn = func(context.Context, activities.SendInput) (activities.SendResult, error) {
		if len(b.sends) == 1 {
			return activities.SendResult{Outcome: activities.SendDeferred, Class: activities.DeferRateLimited, Until: until}, nil
		}
		require.False(t, b.Now().Before(until))
		return b.committed(), nil
	}
	b.after(time.Hour, func() {
		require.Contains(t, b.page(), "**Send deferred:** `rate_limited`")
		require.Equal(t, "send_deferred", b.attention(), "after attention_after it shows in the inbox")
	})
	b.execute()
	require.Equal(t, policy.GoalComplete, b.state().Status)
	require.Len(t, b.sends, 2)
	require.Equal(t, []int{1, 1}, []int{b.sends[0].Generation, b.sends[1].Generation})
}

func TestStopDuringAnObservationBeatsALateReceipt(t *testing.T) {
	b := newBench(t)
	b.observeFn = func(ctx context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
		return b.settled(in, receipt.Continue), nil
	}
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(b.observeFn).After(time.Hour)
	b.after(10*time.Minute, func() { b.SignalWorkflow(workflows.MessageStop, by()) })
	began := b.Now()
	b.execute()
	s := b.state()
	require.Equal(t, policy.Stopped, s.Status)
	require.Empty(t, s.Completion.ID)
	require.Len(t, b.sends, 1)
	require.Less(t, b.Now().Sub(began), 11*time.Minute)
}

func TestStopWithInterruptPressesOnce(t *testing.T) {
	b := newBench(t)
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(activities.ObserveResult{Turn: activities.TurnOpen}, nil).After(time.Hour)
	b.pressFn = func(in activities.InterruptInput) activities.InterruptResult {
		require.Equal(t, b.sends[0].EffectID, in.EffectID)
		return activities.InterruptResult{Pressed: true, Stopped: true}
	}
	b.after(time.Minute, func() { b.SignalWorkflow(workflows.MessageStop, by("interrupt", true)) })
	b.execute()
	s := b.state()
	require.Equal(t, policy.Stopped, s.Status)
	require.Equal(t, []any{1, policy.InterruptStopped}, []any{b.presses, s.Stop.Interrupted})
}

func TestCancellationEndsTheRunAsCancelledWithItsState(t *testing.T) {
	b := newBench(t)
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(activities.ObserveResult{Turn: activities.TurnOpen}, nil).After(time.Hour)
	b.after(time.Minute, func() { b.CancelWorkflow() })
	b.execute()
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, b.GetWorkflowError(), &cancelled)
	require.Equal(t, policy.Stopped, b.state().Status)
	require.True(t, b.state().Stop.Canceled)
}

func TestMalformedInputIsRefusedWithEveryProblem(t *testing.T) {
	b := newBench(t)
	b.admitFn = func(in activities.AdmitInput) (activities.AdmitResult, error) {
		require.JSONEq(t, `{}`, string(in.Start))
		return activities.AdmitResult{Problems: []strict.Problem{
			{Path: "objective", Message: "must not be empty"}, {Path: "target.site", Message: "no profile is named x"},
		}}, nil
	}
	b.execute()
	var failure *temporal.ApplicationError
	require.ErrorAs(t, b.GetWorkflowError(), &failure)
	require.Equal(t, workflows.FailureStartRefused, failure.Type())
	require.True(t, failure.NonRetryable())
	require.Contains(t, failure.Error(), "objective: must not be empty")
	require.Contains(t, failure.Error(), "target.site: no profile is named x")
	require.Equal(t, policy.Failed, b.state().Status)
	require.Empty(t, b.sends)
}

func TestStartIsRefusedOverACompleteGoalOfTheSameScope(t *testing.T) {
	first := newBench(t, receipt.Done)
	first.execute()
	s := first.state()
	s.RunID = "an earlier run" // every run of a test environment has the same id
	left, err := json.Marshal(s)
	require.NoError(t, err)
	left = bytes.ReplaceAll(left, []byte(s.Effect.ID), []byte("fx_0123456789abcdef"))

	b := newBench(t)
	b.lineage = &activities.Lineage{RunID: "r1", Closed: activities.ClosedCompleted, State: left}
	b.execute()
	require.ErrorContains(t, b.GetWorkflowError(), policy.CodeLineageComplete)

	b = newBench(t, receipt.Done)
	b.goal.Scope = "goal:next"
	b.lineage = &activities.Lineage{RunID: "r1", Closed: activities.ClosedCompleted, State: left}
	b.execute()
	require.Equal(t, policy.GoalComplete, b.state().Status)
}

func TestResetToBeforeTheAdmissionNeverRepeatsAnEffectID(t *testing.T) {
	first := newBench(t, receipt.Continue, receipt.Done)
	first.execute()
	s := first.state()
	left, err := json.Marshal(s)
	require.NoError(t, err)

	for name, known := range map[string]bool{"its past was read": true, "its past was not read": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, receipt.Done)
			b.OnMutableSideEffect("run").Return("the run after the reset")
			b.admitFn = func(activities.AdmitInput) (activities.AdmitResult, error) {
				r := activities.AdmitResult{
					RunID: "the run after the reset", Goal: b.goal.Normalize(b.site), Site: b.site,
					Lineage: &activities.Lineage{RunID: "r1", Closed: activities.ClosedTerminated, State: left},
				}
				if !known {
					r.RunID, r.Lineage = "the run before", nil
				}
				return r, nil
			}
			b.goal.Scope = "goal:next"
			if !known {
				b.after(time.Hour, b.CancelWorkflow)
				b.execute()
				require.Empty(t, b.sends, "its first send may have been made before the reset")
				return
			}
			b.execute()
			require.Equal(t, policy.GoalComplete, b.state().Status)
			for _, turn := range s.Chain() {
				require.NotEqual(t, turn.Effect, b.sends[0].EffectID)
			}
		})
	}
}

func TestLineageThatCannotBeReadRefuses(t *testing.T) {
	b := newBench(t)
	b.lineage = &activities.Lineage{RunID: "r1", Closed: activities.ClosedCompleted, State: json.RawMessage(`{"revision":"seven"}`)}
	b.execute()
	require.ErrorContains(t, b.GetWorkflowError(), policy.CodeLineageUnreadable)
}

func TestObservationThatFailsIsRepeatedWithoutFillingTheHistory(t *testing.T) {
	b := newBench(t)
	failing := true
	b.observeFn = func(_ context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
		if failing {
			return activities.ObserveResult{}, temporal.NewNonRetryableApplicationError("no such browser", "browser_unknown", nil)
		}
		return b.settled(in, receipt.Done), nil
	}
	b.after(2*time.Hour, func() {
		require.Less(t, len(b.observed), 150, "about one look a minute")
		require.Equal(t, "turn_overdue", b.attention())
		require.Contains(t, b.page(), "Needs a person")
		failing = false
	})
	b.execute()
	require.Equal(t, policy.GoalComplete, b.state().Status)
}

func TestFuseIsProbedAndTheSameEffectGoesOn(t *testing.T) {
	b := newBench(t, receipt.Done)
	b.sendFn = func(_ context.Context, in activities.SendInput) (activities.SendResult, error) {
		if in.Generation <= 3 {
			return activities.SendResult{Outcome: activities.SendReturned, Code: "composer_mismatch"}, nil
		}
		return b.committed(), nil
	}
	b.probeFn = func(in activities.ProbeInput) activities.ProbeResult {
		return activities.ProbeResult{Passed: len(b.probes) == 2, Level: in.Level}
	}
	b.execute()
	s := b.state()
	require.Equal(t, policy.GoalComplete, s.Status)
	require.Len(t, b.sends, 4)
	require.Len(t, b.probes, 2)
	require.NotEqual(t, b.probes[0].ID, b.probes[1].ID)
	require.Equal(t, activities.ProbeMessage, b.probes[0].Level)
	require.Equal(t, policy.Failures{Epoch: 1, Total: 3, Max: 3, Opened: b.probes[1].ID}, s.Budgets.ProviderFailures)
}

func TestStandstillIsProbedWhileBlocked(t *testing.T) {
	b := newBench(t)
	b.goal.Progress = []goal.Probe{{Git: &goal.GitProbe{Dir: "/src"}}}
	b.observeFn = func(_ context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
		return b.settled(in, receipt.Continue), nil
	}
	b.after(48*time.Hour, func() {
		s := b.present()
		require.Equal(t, policy.BlockedRepeatedState, s.Blocker.Class)
		require.Greater(t, s.Blocker.Probes, 40, "read-only, at most once an hour")
		b.SignalWorkflow(workflows.MessageStop, by())
	})
	b.execute()
	require.Equal(t, policy.Stopped, b.state().Status)
	require.Len(t, b.sends, 5)
	require.Equal(t, "stagnation", b.sends[3].Kind)
}
