package run_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/strict"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

const anyArg = mock.Anything

func TestMessagesAreDecodedStrictly(t *testing.T) {
	for name, test := range map[string]struct {
		message string
		payload string
		paths   []string
	}{
		"unknown and missing fields": {workflows.MessagePause, `{"operator":"ann","resaon":"x"}`, []string{"resaon"}},
		"empty fields":               {workflows.MessagePause, `{"operator":"","reason":""}`, []string{"operator", "reason"}},
		"doubled field":              {workflows.MessageStop, `{"operator":"a","operator":"b","reason":"x"}`, []string{"operator"}},
		"wrong type":                 {workflows.MessageNotApplied, `{"effect_id":"fx_1","generation":"1","operator":"a","reason":"x"}`, []string{"generation"}},
		"beyond its limit":           {workflows.MessageResume, `{"operator":"a","reason":"` + strings.Repeat("x", 2001) + `"}`, []string{"reason"}},
		"generation of nothing":      {workflows.MessageApplied, `{"effect_id":"fx_1","generation":0,"operator":"a","reason":"x"}`, []string{"generation"}},
		"event without its payload":  {workflows.UpdateSubmit, `{"event":"stop_requested"}`, []string{"operator", "reason"}},
		"disposition of no kind": {
			workflows.UpdateSubmit, `{"event":"semantic_disposition_submitted","payload":{"effect_id":"fx_1","disposition":"sleep","reason":"x"}}`,
			[]string{"disposition"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(activities.ObserveResult{Turn: activities.TurnOpen}, nil).After(time.Hour)
			var refused *answer
			b.after(time.Minute, func() { refused = b.update(test.message, json.RawMessage(test.payload)) })
			b.after(2*time.Minute, func() { b.SignalWorkflow(workflows.MessageStop, by()) })
			b.execute()
			var malformed *temporal.ApplicationError
			require.ErrorAs(t, refused.refused, &malformed)
			require.Equal(t, machine.CodeMalformed, malformed.Type())
			var problems []strict.Problem
			require.NoError(t, malformed.Details(&problems))
			var paths []string
			for _, p := range problems {
				paths = append(paths, p.Path)
			}
			require.ElementsMatch(t, test.paths, paths, "%v", problems)
			require.Nil(t, b.state().Paused)
		})
	}
}

func TestMalformedSignalIsJournaledShownAndChangesNothing(t *testing.T) {
	b := newBench(t)
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(activities.ObserveResult{Turn: activities.TurnOpen}, nil).After(time.Hour)
	b.after(time.Minute, func() { b.SignalWorkflow(workflows.MessagePause, map[string]any{"operator": "ann"}) })
	b.after(2*time.Minute, func() { b.SignalWorkflow("puase", by()) })
	b.after(3*time.Minute, func() {
		require.Nil(t, b.present().Paused)
		require.Contains(t, b.page(), "**Refused signals**")
		require.Contains(t, b.page(), "puase")
		b.SignalWorkflow(workflows.MessageStop, by())
	})
	b.execute()
	journal := b.journal()
	require.Contains(t, journal, "pause payload_malformed")
	require.Contains(t, journal, "puase signal_unknown")
}

func TestSubmit(t *testing.T) {
	b := newBench(t, receipt.Done)
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(
		func(_ context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
			return b.reply(in), nil
		},
	).After(time.Hour)
	submit := func(event string, payload any) *answer {
		return b.update(workflows.UpdateSubmit, map[string]any{"event": event, "payload": payload})
	}
	var owned, made, foreign, stale, occurrence, rebound, paused *answer
	b.after(time.Minute, func() {
		s := b.present()
		owned = submit("provider_dispatch_succeeded", map[string]any{})
		made = submit("made_up", nil)
		foreign = submit("recovery_requested", by("effect_id", "fx_other"))
		stale = submit("authority_recovery_requested", by("revision", 0, "authority_id", s.AuthorityID))
		occurrence = submit("occurrence_requested", map[string]any{"occurrence_id": "o1"})
		rebound = submit("semantic_state_changed", map[string]any{"operator": "ann", "note": "changed"})
		paused = submit("user_resume_requested", by())
	})
	b.execute()
	for a, code := range map[*answer]string{
		owned: policy.CodeNotSubmittable, made: policy.CodeNotSubmittable, foreign: policy.CodeEffectMismatch, stale: policy.CodeRevisionMismatch,
		occurrence: policy.CodeIllegal, rebound: policy.CodeIllegal, paused: policy.CodeNothingToResume,
	} {
		require.True(t, a.done)
		require.Equal(t, code, a.Code)
		require.NotEqual(t, "accept", string(a.Decision))
		require.Equal(t, "dispatched", a.Status)
		require.NotNil(t, a.Current)
	}
	require.Equal(t, policy.GoalComplete, b.state().Status)
}

func TestSubmittedStopAndGoalCancelledEndTheRun(t *testing.T) {
	for _, event := range []string{"stop_requested", "goal_cancelled"} {
		b := newBench(t)
		b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(activities.ObserveResult{Turn: activities.TurnOpen}, nil).After(time.Hour)
		b.after(time.Minute, func() { b.update(workflows.UpdateSubmit, map[string]any{"event": event, "payload": by()}) })
		b.execute()
		require.Equal(t, policy.Stopped, b.state().Status)
	}
}

func TestPersonIsAskedAndTheirAnswerGoesOn(t *testing.T) {
	b := newBench(t, receipt.NeedsUser, receipt.Done)
	var missing, accepted *answer
	b.after(time.Hour, func() {
		s := b.present()
		require.Equal(t, policy.WaitingForUser, s.Status)
		require.Contains(t, b.page(), "Which database?")
		require.Contains(t, b.page(), "steward run resume "+workflowID+" --answers "+s.Completion.ID)
		missing = b.update(workflows.MessageResume, by())
		accepted = b.update(workflows.MessageResume, by("answers", s.Completion.ID, "note", "PostgreSQL\nplease"))
	})
	b.execute()
	require.Equal(t, []any{"needs_evidence", []string{"answers"}}, []any{string(missing.Decision), missing.Missing})
	require.Equal(t, "accept", string(accepted.Decision))
	require.Equal(t, policy.GoalComplete, b.state().Status)
	require.Equal(t, "resume", b.sends[1].Kind)
	require.Contains(t, b.sends[1].Prompt, "PostgreSQL\nplease")
	require.Nil(t, b.sends[1].Fence)
}

func TestPauseDuringATurnSendsNothingUntilResume(t *testing.T) {
	b := newBench(t)
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(
		func(_ context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
			return b.settled(in, []receipt.Action{receipt.Continue, receipt.Done}[len(b.sends)-1]), nil
		},
	).After(10 * time.Minute)
	b.after(time.Minute, func() { b.SignalWorkflow(workflows.MessagePause, by()) })
	b.after(5*time.Hour, func() {
		require.Len(t, b.sends, 1)
		s := b.present()
		require.NotEmpty(t, s.Completion.ID, "the turn in flight was observed and committed")
		require.Equal(t, "ann", s.Paused.By)
		require.Contains(t, b.page(), "**paused** by ann: because")
		b.SignalWorkflow(workflows.MessageResume, by())
	})
	b.execute()
	require.Equal(t, policy.GoalComplete, b.state().Status)
	require.Len(t, b.sends, 2)
}

func TestRequestIDIsDecidedOnce(t *testing.T) {
	b := newBench(t)
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(activities.ObserveResult{Turn: activities.TurnOpen}, nil).After(time.Hour)
	var first, again *answer
	b.after(1*time.Minute, func() { first = b.update(workflows.MessagePause, by("request_id", "r1")) })
	b.after(2*time.Minute, func() { b.SignalWorkflow(workflows.MessageResume, by()) })
	b.after(3*time.Minute, func() { again = b.update(workflows.MessagePause, by("request_id", "r1")) })
	b.after(4*time.Minute, func() {
		require.Nil(t, b.present().Paused, "the repeated message did not pause again")
		b.SignalWorkflow(workflows.MessageStop, by())
	})
	b.execute()
	require.False(t, first.Duplicate)
	require.True(t, again.Duplicate)
	require.Equal(t, first.Revision, again.Revision)
}

func TestQueriesAnswer(t *testing.T) {
	b := newBench(t, receipt.Continue, receipt.Done)
	b.execute()
	var chain []policy.LedgerTurn
	b.query(workflows.QueryLedger, &chain)
	require.Len(t, chain, 2)
	for i, turn := range chain {
		require.Equal(t, b.sends[i].EffectID, turn.Effect)
		require.Equal(t, []any{"r1", int64(2), "block"}, []any{turn.Release, turn.Incarnation, turn.Receipt})
		for _, at := range []time.Time{turn.Reserved, turn.Dispatched, turn.Applied, turn.Seen, turn.Settled, turn.Committed} {
			require.False(t, at.IsZero())
		}
	}
	require.Equal(t, []string{"CONTINUE", "DONE"}, []string{chain[0].Action, chain[1].Action})

	var why policy.Why
	b.query(workflows.QueryWhy, &why)
	require.Equal(t, policy.GoalComplete, why.Status)
	require.False(t, why.LastProof.IsZero())

	var proof policy.Proof
	b.query(workflows.QueryProof, &proof)
	require.Equal(t, []any{2, 2, "DONE", 2}, []any{proof.Turns, proof.Dispatches, proof.Completion.Action, len(proof.Chain)})
	require.Empty(t, proof.Unknown)

	require.Equal(t, b.state(), b.present())
}

func TestCurrentDetailsAreAPageThatAPersonCanRead(t *testing.T) {
	b := newBench(t)
	b.goal.Outcome = "Green <b>tests</b> & `more`"
	b.OnActivity(workflows.ActivityObserve, anyArg, anyArg).Return(activities.ObserveResult{Turn: activities.TurnOpen}, nil).After(time.Hour)
	b.after(time.Minute, func() {
		page := b.page()
		for _, want := range []string{
			"**Status:** `dispatched`", "**Goal:** Green &lt;b>tests&lt;/b> & 'more'", "**Conversation:** " + b.site.ConversationURL,
			"**Waits for:** follow the turn of " + b.sends[0].EffectID, "| rounds | 0 | 50 |", "`" + b.sends[0].EffectID + "` enrollment, generation 1, `applied`",
			"| provider_dispatch_succeeded | accept", "scope `goal:6710a2f4`",
		} {
			require.Contains(t, page, want)
		}
		require.NotContains(t, page, "%!", "a format verb without its argument")
		require.Less(t, len(page), 8000)
		b.SignalWorkflow(workflows.MessageStop, by())
	})
	b.execute()
	require.Contains(t, b.page(), "stop asked for by ann: because")
}

func TestListsAreToldAtMostOnceATurnAndTheInboxWhenItMatters(t *testing.T) {
	b := newBench(t, receipt.Continue, receipt.Continue, receipt.NeedsUser, receipt.Done)
	upserts, memos := 0, []string{}
	b.OnUpsertTypedSearchAttributes(anyArg).Run(func(mock.Arguments) { upserts++ }).Return(nil)
	b.OnUpsertMemo(anyArg).Run(func(args mock.Arguments) {
		memo, ok := args.Get(0).(map[string]any)
		require.True(t, ok)
		class := ""
		if a, needed := memo[workflows.MemoAttention].(*policy.Attention); needed && a != nil {
			class = a.Class
		}
		memos = append(memos, class)
	}).Return(nil)
	b.after(time.Hour, func() { b.SignalWorkflow(workflows.MessageResume, by("answers", b.present().Completion.ID)) })
	b.execute()
	require.Equal(t, policy.GoalComplete, b.state().Status)
	require.Equal(t, []string{"decision", ""}, memos)
	require.LessOrEqual(t, upserts, 1+len(b.sends)+2, "the start, each turn, the wait for a person and the end")
}
