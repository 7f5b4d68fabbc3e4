package policy_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/release/evidence"
	"steward/workflows/release/plan"
	"steward/workflows/release/policy"
	"steward/workflows/run/goal"
)

// tester is a *testing.T or a *rapid.T.
type tester interface {
	require.TestingT
	Helper()
}

const (
	releaseA   = "aaaa0000"
	releaseB   = "bbbb1111"
	revisionB  = "3f786850e387550fdab836ed7e6dc881de23001b"
	workflowID = "release:shop"
	homeA      = "/var/lib/shop"
)

var start = time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)

// world is one session with the clock, and the stable lane that it acts on. Tests change what its fakes answer.
type world struct {
	t     tester
	state policy.State
	now   time.Time
	plan  plan.Plan
	lane  evidence.Lane
	// answer overrides what an obligation's activity brings back.
	answer map[string]func(o kernel.Obligation) policy.Event
	// decided are all accepted events by name, effects the kinds of the effects that began.
	decided []string
	effects []string
}

func readPlan(t tester, adjust func(*plan.Plan)) plan.Plan {
	t.Helper()
	data, err := os.ReadFile("../plan/testdata/plan.yaml")
	require.NoError(t, err)
	raw, err := goal.FromYAML(data)
	require.NoError(t, err)
	p, problems := plan.Decode(raw)
	require.Empty(t, problems)
	if adjust != nil {
		adjust(&p)
		require.Empty(t, p.Validate())
	}
	return p.Normalize()
}

func newWorld(t tester, adjust func(*plan.Plan)) *world {
	t.Helper()
	a := evidence.Identity{Release: releaseA, Home: homeA, Label: "shop", Port: 8080, TokenDigest: "ta", Incarnation: 3, Ready: true}
	w := &world{t: t, now: start, plan: readPlan(t, adjust), answer: map[string]func(kernel.Obligation) policy.Event{}}
	w.state = policy.Policy{}.WithRules(w.state, policy.CurrentRules)
	w.lane = evidence.Lane{Observed: true, Settled: true, Serving: a, Authority: evidence.Authority{Active: releaseA}}
	return w
}

func (w *world) owed() kernel.Obligation { return policy.Policy{}.Obligation(w.state) }

// take is the driver's door: every decision is checked against the invariants.
func (w *world) take(e policy.Event) policy.Decision {
	w.t.Helper()
	before, err := json.Marshal(w.state)
	require.NoError(w.t, err)
	d := policy.Policy{}.Decide(w.state, e, kernel.Meta{At: w.now})
	after, err := json.Marshal(w.state)
	require.NoError(w.t, err)
	require.Equal(w.t, string(before), string(after), "%s wrote into the state it was given", e.Name())
	if d.Verdict != kernel.Accept {
		after, err := json.Marshal(d.Next)
		require.NoError(w.t, err)
		require.Equal(w.t, string(before), string(after), "%s was not accepted and changed the state", e.Name())
		return d
	}
	w.check(w.state, e, d.Next)
	w.state = d.Next
	w.decided = append(w.decided, e.Name())
	return d
}

func (w *world) accept(e policy.Event) {
	w.t.Helper()
	d := w.take(e)
	require.Equal(w.t, kernel.Accept, d.Verdict, "%s: %s", e.Name(), d.Code)
}

// serve serves what is owed once, as the driver does. It is false when nothing is left to serve.
func (w *world) serve() bool {
	w.t.Helper()
	o := w.owed()
	switch o.Class {
	case kernel.Finish, kernel.Idle:
		return false
	case kernel.Timer:
		w.now = o.At
		w.accept(policy.TimerElapsed{Outcome: of(o)})
		return true
	case kernel.Effect:
		w.begin(o)
		if now := w.owed(); now.Key != o.Key {
			return true
		}
	}
	w.now = w.now.Add(time.Second)
	if answer := w.answer[o.Kind]; answer != nil {
		w.take(answer(o))
		return true
	}
	w.accept(w.good(o))
	return true
}

func (w *world) begin(o kernel.Obligation) {
	w.t.Helper()
	w.effects = append(w.effects, o.Kind)
	if o.Kind == policy.OweRestart {
		w.accept(policy.RestartStarted{Key: o.Key})
		return
	}
	w.accept(policy.OperationStarted{Operation: w.state.Next(o)})
}

// until serves until the phase is reached, and fails when the session stops before.
func (w *world) until(p policy.Phase) *world {
	w.t.Helper()
	for range 500 {
		if w.state.Phase == p {
			return w
		}
		if !w.serve() {
			break
		}
	}
	require.Equal(w.t, p, w.state.Phase, "%+v", w.state.End)
	return w
}

// serveUntil serves until the condition holds, and fails when that takes too long.
func (w *world) serveUntil(reached func() bool) {
	w.t.Helper()
	for range 500 {
		if reached() {
			return
		}
		w.serve()
	}
	require.Fail(w.t, "never reached", "%s owes %s", w.state.Phase, w.owed().Key)
}

func (w *world) owes(kind string) func() bool { return func() bool { return w.owed().Kind == kind } }

// end serves until nothing is owed.
func (w *world) end() policy.State {
	w.t.Helper()
	for range 20000 {
		if !w.serve() {
			return w.state
		}
	}
	require.Fail(w.t, "the session does not end", "%s %+v", w.state.Phase, w.owed())
	return w.state
}

func of(o kernel.Obligation) policy.Outcome { return policy.Outcome{Key: o.Key} }

func (w *world) receipt(gate string) evidence.Receipt {
	return evidence.Receipt{Gate: gate, Outcome: evidence.Passed, Revision: revisionB, Release: releaseB, Runner: releaseB, At: w.now}
}

// good is what an activity brings back when everything goes well.
func (w *world) good(o kernel.Obligation) policy.Event {
	w.t.Helper()
	switch o.Kind {
	case policy.OweAdmit:
		return w.admission(o)
	case policy.OweFreeze:
		return policy.SourceWasFrozen{Outcome: of(o), Freeze: policy.Freeze{Revision: revisionB, Source: "5555", Stable: w.lane.Serving}}
	case policy.OweBuild:
		return policy.ReleaseWasBuilt{Outcome: of(o), Release: releaseB}
	case policy.OweGate:
		name, _ := w.state.Gate()
		return policy.CheckRan{Outcome: of(o), Receipt: w.receipt(name)}
	case policy.OweCanary:
		name, _ := w.state.Canary()
		return policy.CheckRan{Outcome: of(o), Receipt: w.receipt(name)}
	case policy.OweBoot:
		return policy.CandidateServes{Outcome: of(o), Candidate: evidence.Identity{
			Release: releaseB, Home: homeA + "-candidate", Label: "shop-candidate", Port: 8081, TokenDigest: "tb", Incarnation: 1, Ready: true,
		}}
	case policy.OweStop:
		return policy.CandidateIsQuiet{Outcome: of(o)}
	case policy.OweVerify:
		return policy.LaneVerified{Outcome: of(o), Lane: w.lane, Receipt: w.receipt("stable"), Stored: releaseB}
	case policy.OweCutover:
		w.switchTo(releaseB, evidence.KindCutover)
		return policy.OperationReturned{Operation: w.state.Operation.ID, Lane: w.lane, OutageMillis: 40}
	case policy.OweRollback:
		w.switchTo(releaseA, evidence.KindRollback)
		return policy.OperationReturned{Operation: w.state.Operation.ID, Lane: w.lane, Database: "kept"}
	case policy.OweReconcile, policy.OweLook:
		return policy.LaneObserved{Outcome: of(o), Lane: w.lane}
	case policy.OweWindows:
		n, _ := w.state.Batch()
		return policy.WindowsObserved{Outcome: of(o), Windows: idle(n), Lane: w.lane}
	case policy.OweCommand:
		return policy.CheckRan{Outcome: of(o), Receipt: w.receipt(policy.GateLiveProof)}
	case policy.OweProof:
		return w.proof(o)
	case policy.OweRestart:
		w.lane.Serving.Incarnation++
		return policy.RestartReturned{Outcome: of(o), Lane: w.lane}
	case policy.OweBundle:
		return policy.BundleAttested{Outcome: of(o), Lane: w.lane, ID: "kg-1", Release: releaseB, Digest: "d1", Validated: true}
	case policy.OweClose:
		return policy.SessionRecorded{Outcome: of(o)}
	}
	require.Fail(w.t, "nobody serves", o.Kind)
	return nil
}

func (w *world) admission(o kernel.Obligation) policy.Admitted {
	p := w.plan
	return policy.Admitted{
		Outcome: of(o), WorkflowID: workflowID, RunID: "run-1", Session: policy.SessionID(workflowID, "run-1"), Plan: &p,
	}
}

// switchTo is an operation that went through.
func (w *world) switchTo(release, kind string) {
	w.lane.Authority = evidence.Authority{
		Active: release, Previous: w.lane.Authority.Active, LastOperation: evidence.Operation{Kind: kind, Session: w.state.Session},
	}
	name := evidence.StepPublished
	if kind == evidence.KindRollback {
		name = evidence.StepRollbackPublished
	}
	w.lane.Steps = append(w.lane.Steps, evidence.Step{Name: name, At: w.now})
	w.lane.Serving.Release, w.lane.Serving.Ready, w.lane.Settled = release, true, true
	w.lane.Serving.Incarnation++
}

func idle(n int) []evidence.Window {
	windows := make([]evidence.Window, n)
	for i := range windows {
		windows[i].CPU = 100
	}
	return windows
}

// turns is the ledger of an acceptance run, one turn a minute, with a restart after the first.
func (w *world) turns(n int) []evidence.Turn {
	actions := []string{"CONTINUE", "CONTINUE", "DONE"}
	var turns []evidence.Turn
	source := ""
	for i := range n {
		at := w.state.Switch.At.Add(time.Duration(i+1) * time.Minute)
		id := "fx_" + string(rune('a'+i))
		turn := evidence.Turn{
			Effect: id, Source: source, Generation: 1, Action: actions[i], Completion: "c" + id, Dispatches: 1,
			Dispatched: at, Applied: at.Add(time.Second), Committed: at.Add(50 * time.Second), Release: releaseB, Incarnation: w.state.Soak.Proof.Before,
		}
		if i > 0 {
			turn.Incarnation++
		}
		turns, source = append(turns, turn), id
	}
	return turns
}

func (w *world) proof(o kernel.Obligation) policy.ProofObserved {
	e := policy.ProofObserved{Outcome: of(o), WorkflowID: "run:chatlab:new:release-1", Status: "dispatching", Open: true, Lane: w.lane}
	if w.state.Soak.Proof.Restarted {
		e.Open, e.Status, e.Turns = false, "goal_complete", w.turns(3)
		return e
	}
	e.Turns = []evidence.Turn{{Effect: "fx_a", Action: "CONTINUE", Committed: w.now, Incarnation: w.lane.Serving.Incarnation}}
	return e
}

func stewardProof(p *plan.Plan) {
	p.Soak.LiveProof = plan.LiveProof{Kind: plan.ProofSteward, Steward: &plan.AcceptanceRun{Site: "chatlab"}}
}

func manual(p *plan.Plan) { p.Cutover = plan.Manual }

func said(w *testing.T, d policy.Decision, v kernel.Verdict, code string) {
	w.Helper()
	require.Equal(w, v, d.Verdict, d.Code)
	require.Equal(w, code, d.Code)
}
