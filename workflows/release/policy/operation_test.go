package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/policy"
)

// operate makes an operation of the kind end as given; the lane is changed before it is looked at.
func (w *world) operate(kind string, lane func(*evidence.Lane), event func(id string) policy.Event) {
	w.answer[kind] = func(kernel.Obligation) policy.Event {
		if lane != nil {
			lane(&w.lane)
		}
		return event(w.state.Operation.ID)
	}
}

func (w *world) returns(code string, restored bool) func(string) policy.Event {
	return func(id string) policy.Event {
		return policy.OperationReturned{Operation: id, Lane: w.lane, Restored: restored, Trouble: policy.Trouble{Code: code}}
	}
}

func lost(armed bool) func(string) policy.Event {
	return func(id string) policy.Event { return policy.OperationLost{Operation: id, Armed: armed} }
}

func (w *world) published(l *evidence.Lane) {
	l.Authority = evidence.Authority{
		Active: releaseB, Previous: releaseA, LastOperation: evidence.Operation{Kind: evidence.KindCutover, Session: w.state.Session},
	}
	l.Serving.Release = releaseB
}

func (w *world) wentBack(l *evidence.Lane) {
	l.Authority = evidence.Authority{
		Active: releaseA, Previous: releaseB, LastOperation: evidence.Operation{Kind: evidence.KindRollback, Session: w.state.Session},
	}
	l.Serving.Release, l.Serving.Ready, l.Settled = releaseA, true, true
}

func TestHowACutoverEnds(t *testing.T) {
	for name, c := range map[string]struct {
		lane  func(*world, *evidence.Lane)
		code  string
		full  bool
		phase policy.Phase
		end   string
	}{
		"A was started again": {func(*world, *evidence.Lane) {}, "stop_unproven", true, policy.Failed, policy.CodeNotApplied},
		"A does not serve": {
			func(_ *world, l *evidence.Lane) { l.Serving = evidence.Identity{} }, "stop_unproven", true,
			policy.Failed, policy.CodeUnserviceable,
		},
		"it went back itself": {func(w *world, l *evidence.Lane) { w.wentBack(l) }, "not_ready", true, policy.RolledBack, "not_ready"},
		"it went back, and A does not serve": {func(w *world, l *evidence.Lane) {
			w.wentBack(l)
			l.Serving.Ready = false
		}, "not_ready", true, policy.Failed, policy.CodeUnserviceable},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.operate(policy.OweCutover, func(l *evidence.Lane) { c.lane(w, l) }, w.returns(c.code, c.full))
			s := w.end()
			require.Equal(t, c.phase, s.Phase)
			require.Equal(t, c.end, s.End.Code, s.End.Detail)
			require.Equal(t, []string{policy.OweCutover}, w.effects, "one cutover, no rollback on top")
			if c.end == policy.CodeUnserviceable {
				require.Contains(t, s.Attention().Ask, "nothing was deleted")
			}
		})
	}
}

func TestALostCutoverIsNeverReplayed(t *testing.T) {
	for name, c := range map[string]struct {
		lane  func(*world, *evidence.Lane)
		armed bool
		phase policy.Phase
		end   string
	}{
		"it took hold":        {func(w *world, l *evidence.Lane) { w.published(l) }, true, policy.KnownGood, ""},
		"it did not":          {func(*world, *evidence.Lane) {}, true, policy.Failed, policy.CodeNotApplied},
		"it never was armed":  {func(*world, *evidence.Lane) {}, false, policy.Failed, policy.CodeNotApplied},
		"recovery went back":  {func(w *world, l *evidence.Lane) { w.wentBack(l) }, true, policy.RolledBack, "lost"},
		"nobody ever can say": {func(_ *world, l *evidence.Lane) { l.Observed = false }, true, policy.Failed, policy.CodeOutcomeUnknown},
		"a lock stands on":    {func(w *world, l *evidence.Lane) { w.published(l); l.Settled = false }, true, policy.Failed, policy.CodeOutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.operate(policy.OweCutover, func(l *evidence.Lane) { c.lane(w, l) }, lost(c.armed))
			s := w.end()
			require.Equal(t, c.phase, s.Phase)
			require.Equal(t, []string{policy.OweCutover}, w.effects)
			if s.End != nil && c.phase != policy.KnownGood {
				require.Equal(t, c.end, s.End.Code)
			}
		})
	}
}

func TestALookThatComesLaterSettlesALostCutover(t *testing.T) {
	w := newWorld(t, nil)
	w.operate(policy.OweCutover, func(l *evidence.Lane) { l.Settled = false }, lost(true))
	w.until(policy.CutoverAttempting)
	for range 5 {
		w.serve()
	}
	require.Equal(t, policy.OperationUnknown, w.state.Operation.State)
	w.published(&w.lane)
	w.lane.Settled = true
	require.Equal(t, policy.KnownGood, w.end().Phase)
}

func TestACutoverThatNobodyWasGivenIsNoAttempt(t *testing.T) {
	w := newWorld(t, nil)
	never := 0
	w.answer[policy.OweCutover] = func(o kernel.Obligation) policy.Event {
		if never++; never < 3 {
			return policy.OperationNotStarted{Operation: w.state.Operation.ID}
		}
		return w.good(o)
	}
	require.Equal(t, policy.KnownGood, w.end().Phase)
	require.Equal(t, []string{policy.OweCutover, policy.OweCutover, policy.OweCutover}, w.effects)

	w = newWorld(t, nil)
	w.operate(policy.OweCutover, nil, func(id string) policy.Event { return policy.OperationNotStarted{Operation: id} })
	s := w.end()
	require.Equal(t, policy.CodeDeadline, s.End.Code)
	require.Len(t, w.effects, 3)
}

func TestAResetTakesTheCutoverForUnknown(t *testing.T) {
	w := newWorld(t, nil).until(policy.CutoverEligible)
	id := w.state.Next(w.owed())
	w.accept(policy.OperationStarted{Operation: id, Suspect: true})
	require.Equal(t, policy.OweReconcile, w.owed().Kind)
	w.published(&w.lane)
	w.serve()
	require.Equal(t, policy.CutoverCommitted, w.state.Phase)
}

func TestOperatorsJudgeWhatTheLooksCannot(t *testing.T) {
	open := func(lane func(*world, *evidence.Lane)) *world {
		w := newWorld(t, nil)
		w.operate(policy.OweCutover, func(l *evidence.Lane) { l.Settled = false; lane(w, l) }, lost(true))
		w.until(policy.CutoverAttempting)
		return w
	}
	word := func(w *world, verdict string) policy.OperationJudged {
		return policy.OperationJudged{Operation: w.state.Operation.ID, Verdict: verdict, Operator: "o", Reason: "r"}
	}
	w := open(func(*world, *evidence.Lane) {})
	said(t, w.take(word(w, policy.VerdictApplied)), kernel.NeedsEvidence, policy.CodeUnobserved)
	w.serveUntil(func() bool { return w.state.Operation.Asked })
	require.Equal(t, policy.CodeOutcomeUnknown, w.state.Attention().Class)
	require.Equal(t, kernel.Timer, w.owed().Class)
	w.accept(word(w, policy.VerdictUnknown))
	require.Equal(t, policy.OweReconcile, w.owed().Kind, "unknown looks once more now")
	said(t, w.take(word(w, policy.VerdictApplied)), kernel.Reject, policy.CodeContradicted)
	wrong := word(w, policy.VerdictNotApplied)
	wrong.Operation = "op_other"
	said(t, w.take(wrong), kernel.Reject, policy.CodeOperation)
	w.accept(word(w, policy.VerdictNotApplied))
	require.Equal(t, policy.CodeNotApplied, w.state.End.Code)

	w = open(func(w *world, l *evidence.Lane) { w.published(l) })
	w.serve()
	said(t, w.take(word(w, policy.VerdictNotApplied)), kernel.Reject, policy.CodeContradicted)
	w.accept(word(w, policy.VerdictApplied))
	require.Equal(t, policy.CutoverCommitted, w.state.Phase)
	w.lane.Settled = true
	require.Equal(t, policy.KnownGood, w.end().Phase, "what the operator said is observed all the same")
}

func TestARollbackIsBegunOnceAndReadBack(t *testing.T) {
	aborted := func() *world {
		w := newWorld(t, nil).until(policy.Soaking)
		w.accept(policy.AbortRequested{Operator: "o", Reason: "r"})
		return w
	}
	w := aborted()
	require.Equal(t, policy.RolledBack, w.end().Phase)
	require.Equal(t, policy.CodeAborted, w.state.End.Code)
	require.Equal(t, "kept", w.state.Switch.Database)

	w = aborted()
	w.operate(policy.OweRollback, func(l *evidence.Lane) { w.wentBack(l) }, lost(true))
	require.Equal(t, policy.RolledBack, w.end().Phase)
	require.Equal(t, []string{policy.OweCutover, policy.OweRollback}, w.effects, "a lost answer replays nothing")

	w = aborted()
	w.operate(policy.OweRollback, func(l *evidence.Lane) { w.wentBack(l); l.Serving.Ready = false }, w.returns("not_ready", true))
	s := w.end()
	require.Equal(t, policy.CodeUnserviceable, s.End.Code)
	require.Equal(t, "recovery status", s.Attention().Command[len("steward "):])

	w = aborted()
	w.operate(policy.OweRollback, nil, w.returns("authority_write_failed", false))
	require.Equal(t, policy.CodeRollbackNotApplied, w.end().End.Code)
	require.Len(t, w.effects, 4, "proven not applied: three attempts")
}

func TestAbort(t *testing.T) {
	abort := policy.AbortRequested{Operator: "o", Reason: "r"}
	for _, phase := range policy.Order[1:7] {
		w := newWorld(t, manual).until(phase)
		w.accept(abort)
		s := w.end()
		require.Equal(t, policy.CodeAborted, s.End.Code, phase)
		require.Empty(t, w.effects)
		said(t, w.take(abort), kernel.NoOp, policy.CodeTerminal)
	}
	w := newWorld(t, nil)
	w.operate(policy.OweCutover, nil, func(id string) policy.Event { return policy.OperationNotStarted{Operation: id} })
	w.serveUntil(w.owes(policy.OweCutover))
	w.begin(w.owed())
	w.accept(abort)
	require.Equal(t, kernel.Idle, w.owed().Class, "its end is waited for")
	w.accept(policy.OperationNotStarted{Operation: w.state.Operation.ID})
	require.Equal(t, policy.CodeAborted, w.state.End.Code)
}

func TestCancellationIsAnAbortByTemporal(t *testing.T) {
	w := newWorld(t, nil).until(policy.Built)
	w.accept(policy.CancelRequested{})
	require.Equal(t, kernel.Ending{Canceled: true}, policy.Policy{}.Ending(w.end()))

	w = newWorld(t, nil).until(policy.Soaking)
	w.accept(policy.CancelRequested{})
	require.Equal(t, kernel.Ending{}, policy.Policy{}.Ending(w.end()))
	require.Equal(t, policy.RolledBack, w.state.Phase)

	w = newWorld(t, nil)
	w.accept(policy.CancelRequested{})
	require.Equal(t, kernel.Finish, w.owed().Class)
}

func TestDeadlineOfAnOperationUnderWayIsItsOwn(t *testing.T) {
	w := newWorld(t, nil)
	w.serveUntil(w.owes(policy.OweCutover))
	w.begin(w.owed())
	w.now = w.now.Add(48 * time.Hour)
	w.accept(policy.AbortRequested{Operator: "o", Reason: "r"})
	require.Equal(t, policy.CutoverAttempting, w.state.Phase)
}

func TestTheSwitchIsAsOldAsThePublishedAuthority(t *testing.T) {
	w := newWorld(t, nil)
	at := start.Add(time.Minute)
	w.operate(policy.OweCutover, func(l *evidence.Lane) {
		w.published(l)
		l.Steps = []evidence.Step{{Name: evidence.StepStopped, At: start}, {Name: evidence.StepPublished, At: at}, {Name: evidence.StepStarted, At: w.now}}
	}, lost(true))
	w.until(policy.CutoverCommitted)
	require.Equal(t, at, w.state.Switch.At, "work after it counts, although it was learnt later")
}
