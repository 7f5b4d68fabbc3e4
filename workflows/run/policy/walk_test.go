package policy_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

const (
	workflowID = "run:chatgpt:6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e"
	firstRun   = "11111111-0000-4000-8000-000000000001"
	secondRun  = "22222222-0000-4000-8000-000000000002"
)

var began = time.Date(2026, 9, 1, 8, 0, 0, 0, time.UTC)

// tester is a test, or a check of a property.
type tester interface {
	Helper()
	Errorf(format string, args ...any)
	FailNow()
}

// walk is one run on its way: a state, a clock, and the events that brought it there.
type walk struct {
	tester
	s  policy.State
	at time.Time
	h  *history
	n  int // receipts made
}

type option func(*goal.Goal, *goal.SiteFacts)

func site() goal.SiteFacts {
	return goal.SiteFacts{
		Site: "chatgpt", ConversationID: "6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e",
		ConversationURL: "https://chatgpt.com/c/6710a2f4-8d1c-8000-9c55-0d2f6c1f2b9e",
		MinInterval:     goal.Duration(time.Minute), Host: "build-1", ProbeMessage: true,
	}
}

func resolved(options ...option) (goal.Goal, goal.SiteFacts) {
	g, s := goal.Goal{
		Objective: "Make go test pass in the orders service.", Target: goal.Target{Site: "chatgpt"},
		Completion: goal.Completion{Checks: []goal.Check{
			{Name: "tests", Command: &goal.Command{Argv: []string{"go", "test"}, Dir: "/src"}},
			{Name: "report", File: &goal.File{Path: "/src/REPORT.md"}},
		}},
	}, site()
	for _, o := range options {
		o(&g, &s)
	}
	return g.Normalize(s), s
}

func startOf(runID string, past *policy.State, options ...option) *policy.Start {
	g, s := resolved(options...)
	start := &policy.Start{WorkflowID: workflowID, RunID: runID, Goal: &g, Site: &s}
	if past != nil {
		start.Lineage = &policy.Lineage{RunID: firstRun, Closed: "completed", State: past}
	}
	return start
}

// zero is a run before its admission.
func zero(t tester) *walk {
	return &walk{tester: t, h: newHistory(), s: policy.State{Rules: policy.CurrentRules}, at: began}
}

// start is an admitted run that owes its enrollment.
func start(t tester, options ...option) *walk {
	t.Helper()
	w := zero(t)
	w.take(policy.OccurrenceRequested{Start: startOf(firstRun, nil, options...)})
	return w
}

// later is a start over what an earlier run of the same workflow id left behind.
func later(t tester, past policy.State, options ...option) *walk {
	t.Helper()
	w := zero(t)
	w.try(policy.OccurrenceRequested{Start: startOf(past.RunID+"+", &past, options...)})
	return w
}

func picture(t tester, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	return string(data)
}

// try decides one event: twice, to see that the answer depends on nothing else, with the old state compared before and
// after, to see that it is never written into. An accepted decision moves the walk.
func (w *walk) try(e policy.Event) policy.Decision {
	w.Helper()
	old := w.s
	before := picture(w, old)
	meta := kernel.Meta{At: w.at, Caller: "tester@host"}
	d := policy.Policy{}.Decide(old, e, meta)
	after := picture(w, d.Next)
	again := policy.Policy{}.Decide(old, e, meta)
	require.Equal(w, before, picture(w, old), "%s wrote into the old state", e.Name())
	require.Equal(w, after, picture(w, again.Next), "%s was decided differently the second time", e.Name())
	require.Equal(w, []any{d.Verdict, d.Code, d.Missing}, []any{again.Verdict, again.Code, again.Missing})
	require.Equal(w, after, picture(w, d.Next), "the second decision wrote into the first one")
	switch d.Verdict {
	case kernel.Accept:
		require.Equal(w, old.Revision+1, d.Next.Revision)
	default:
		require.Equal(w, before, after, "only an accept changes the state")
		require.NotEmpty(w, d.Code)
	}
	tabled(w, old, e, d)
	step(w, old, e, d)
	w.h.decided(w, old, e, d)
	w.s = carried(w, d.Next)
	return d
}

// take is an event that the state must accept.
func (w *walk) take(e policy.Event) policy.Decision {
	w.Helper()
	d := w.try(e)
	require.Equal(w, kernel.Accept, d.Verdict, "%s: %s", e.Name(), d.Code)
	return d
}

// refused is an event that must change nothing, with its code.
func (w *walk) refused(verdict kernel.Verdict, code string, e policy.Event) {
	w.Helper()
	d := w.try(e)
	require.Equal(w, verdict, d.Verdict, "%s: %s", e.Name(), d.Code)
	require.Equal(w, code, d.Code)
}

func (w *walk) wait(d time.Duration) { w.at = w.at.Add(d) }

func (w *walk) owes() kernel.Obligation { return policy.Policy{}.Obligation(w.s) }

// is asserts status, blocker class and what is owed.
func (w *walk) is(status policy.Status, owes string) {
	w.Helper()
	require.Equal(w, status, w.s.Status)
	require.Equal(w, owes, w.owes().Kind, "%+v", w.owes())
}

func (w *walk) blockedBy(class policy.BlockerClass) {
	w.Helper()
	require.NotNil(w, w.s.Blocker)
	require.Equal(w, class, w.s.Blocker.Class)
}

// due waits for the timer that is owed.
func (w *walk) due() time.Duration {
	w.Helper()
	o := w.owes()
	require.Equal(w, kernel.Timer, o.Class, "%+v", o)
	waited := o.At.Sub(w.at)
	if waited > 0 {
		w.at = o.At
	}
	w.take(policy.TimerElapsed{Key: o.Key})
	return waited
}

// begin begins the attempt that is owed, after its wait.
func (w *walk) begin() {
	w.Helper()
	for w.owes().Class == kernel.Timer {
		w.due()
	}
	w.take(policy.ProviderDispatchStarted{EffectID: w.s.Effect.ID, Generation: w.s.Effect.Generation})
	w.is(policy.Dispatching, policy.OweSend)
}

func (w *walk) tried() policy.Attempted {
	return policy.Attempted{
		EffectID: w.s.Effect.ID, Generation: w.s.Effect.Generation, Attempt: w.s.Dispatches, SiteDigest: "site-1",
		Worker: policy.Worker{Release: "r1", Incarnation: 3},
	}
}

func (w *walk) succeeded() policy.Event {
	return policy.ProviderDispatchSucceeded{Attempted: w.tried(), At: w.at, UserMessageID: "m1"}
}

func (w *walk) failed(code string) policy.Event {
	return policy.ProviderDispatchFailed{Attempted: w.tried(), Code: code, Detail: "it did not work"}
}

func (w *walk) deferred(class string, until time.Time) policy.Event {
	return policy.ProviderDispatchDeferred{Attempted: w.tried(), Class: class, Until: until}
}

// applied sends the present effect.
func (w *walk) applied() *walk {
	w.Helper()
	w.begin()
	w.take(w.succeeded())
	w.is(policy.Dispatched, policy.OweObserve)
	return w
}

// claimed is a turn that the assistant works on.
func (w *walk) claimed() *walk {
	w.Helper()
	w.applied()
	w.wait(5 * time.Second)
	w.take(policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at})
	return w
}

// unknown is a send of unknown outcome.
func (w *walk) unknown() *walk {
	w.Helper()
	w.begin()
	w.take(policy.ProviderDispatchOutcomeUnknown{Attempted: w.tried(), Code: "commit_not_seen"})
	return w
}

// fused is a run whose sends failed until the fuse went.
func (w *walk) fused() *walk {
	w.Helper()
	for w.s.Blocker == nil {
		w.begin()
		w.take(w.failed("composer_mismatch"))
	}
	w.blockedBy(policy.BlockedFailures)
	return w
}

// outage is n attempts at a site that does not answer.
func (w *walk) outage(n int) {
	w.Helper()
	for range n {
		w.begin()
		w.take(w.failed(policy.FailureUnreachable))
	}
}

// receipt is a block receipt that says something new.
func (w *walk) receipt(action receipt.Action) *receipt.Receipt {
	w.n++
	r := &receipt.Receipt{
		Form: receipt.Block, Action: action, Scope: w.s.Scope, Checkpoint: fmt.Sprintf("step %d", w.n), Reason: "there is more",
		Evidence: []string{fmt.Sprintf("commit %d", w.n)}, Digest: fmt.Sprintf("%064d", w.n),
	}
	if action == receipt.NeedsUser {
		r.UserAction = &receipt.UserAction{Kind: "decision", Ask: "Which database?", Tried: "read the documentation"}
	}
	return r
}

// turn is the observation that the present turn has settled.
func (w *walk) turn(r *receipt.Receipt) policy.EffectObserved {
	return policy.EffectObserved{
		EffectID: w.s.Effect.ID, Look: w.s.Turn.Look, Turn: policy.TurnSettled, SeenAt: w.at, SettledAt: w.at,
		Reading: receipt.Reading{Receipt: r}, AnswerDigest: "answer-" + w.s.Effect.ID,
	}
}

// without is a settled turn without a valid receipt.
func (w *walk) without(code string, violation bool) policy.EffectObserved {
	e := w.turn(nil)
	e.Reading = receipt.Reading{Code: code, Detail: "the receipt is not as it should be", Violation: violation}
	return e
}

func (w *walk) broken(class string) policy.EffectObserved {
	e := w.without(receipt.CodeMissing, true)
	e.Turn, e.Class = policy.TurnFailed, class
	return e
}

// settle ends the present turn with a receipt of that action.
func (w *walk) settle(action receipt.Action) policy.Decision {
	w.Helper()
	w.wait(time.Minute)
	return w.take(w.turn(w.receipt(action)))
}

// round is one whole turn that ends with CONTINUE.
func (w *walk) round() *walk {
	w.Helper()
	w.applied()
	w.settle(receipt.Continue)
	return w
}

// validated is the outcome of both checks.
func (w *walk) validated(tests, report string) policy.Event {
	return policy.ProposalValidated{Completion: w.s.Completion.ID, Run: w.s.Proposal.Runs, Results: []policy.CheckVerdict{
		{Name: "tests", Outcome: tests, Code: "exit_mismatch", Line: "exit 1"}, {Name: "report", Outcome: report},
	}}
}

func (w *walk) resume(answers string) policy.UserResumeRequested {
	return policy.UserResumeRequested{Operator: "ann", Reason: "solved", Answers: answers}
}

// look is a look at an unknown effect.
func (w *walk) look(marker, readable bool) policy.ProviderEffectReconciled {
	return policy.ProviderEffectReconciled{
		EffectID: w.s.Effect.ID, Generation: w.s.Effect.Generation, Look: w.s.Effect.Look, Marker: marker, Readable: readable,
	}
}

func (w *walk) word(verdict string) policy.ProviderEffectReconciled {
	return policy.ProviderEffectReconciled{
		EffectID: w.s.Effect.ID, Generation: w.s.Effect.Generation, Verdict: verdict, Operator: "ann", Reason: "I looked",
	}
}

func (w *walk) probe(passed bool, level string) policy.ProviderEnvironmentRecovered {
	return policy.ProviderEnvironmentRecovered{
		Probe: w.s.ProbeID(), Blocker: w.s.Blocker.ID, Revision: w.s.Blocker.Revision, Passed: passed, Level: level, SiteDigest: "site-1",
	}
}

// row is one line of a table: in this state, this event, this answer.
type row struct {
	name    string
	options []option
	given   func(w *walk)
	event   func(w *walk) policy.Event
	verdict kernel.Verdict // accept when empty
	code    string         // any when empty and accepted
	then    func(w *walk, old policy.State)
}

func run(t *testing.T, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			w := start(t, r.options...)
			if r.given != nil {
				r.given(w)
			}
			old := w.s
			d := w.try(r.event(w))
			verdict := r.verdict
			if verdict == "" {
				verdict = kernel.Accept
			}
			require.Equal(t, verdict, d.Verdict, d.Code)
			if r.code != "" || verdict != kernel.Accept {
				require.Equal(t, r.code, d.Code)
			}
			if r.then != nil {
				r.then(w, old)
			}
		})
	}
}
