package machine

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine/kernel"
)

// Bounds of what a run remembers over continue-as-new.
const (
	MaxJournal  = 64
	MaxRequests = 256
)

// Carry is all that a run hands to its successor: the second parameter of the workflow.
type Carry[S any] struct {
	State S `json:"state"`
	// Started is when the first run of the chain started.
	Started time.Time `json:"started"`
	// Runs counts the runs of the chain before this one.
	Runs int `json:"runs,omitempty"`
	// Cancelled is set once Temporal asked for cancellation.
	Cancelled bool `json:"cancelled,omitempty"`
	// Spent is the key of an effect whose start or outcome the policy did not accept. It is not started again before the
	// state changes.
	Spent     string    `json:"spent,omitempty"`
	Journal   []Entry   `json:"journal,omitempty"`
	Requests  []request `json:"requests,omitempty"`
	Published published `json:"published,omitzero"`
	Terms     terms     `json:"terms,omitzero"`
}

// terms are the settings of a worker that decide how a history goes on. A run keeps those it was started with: another
// worker, with other settings, must replay it alike.
type terms struct {
	Rules    int           `json:"rules"`
	MaxTurns int           `json:"max_turns"`
	MinLife  time.Duration `json:"min_life"`
}

// Entry is one line of the journal.
type Entry struct {
	At    time.Time `json:"at"`
	Event string    `json:"event"`
	// Decision is reject for a signal that could not be understood; Code then is signal_unknown or payload_malformed.
	Decision  kernel.Verdict `json:"decision"`
	Code      string         `json:"code,omitempty"`
	RequestID string         `json:"request_id,omitempty"`
	// Caller is who sent it, when the sender's client says so (Caller).
	Caller string `json:"caller,omitempty"`
	// Note says what was wrong with a signal.
	Note string `json:"note,omitempty"`
}

// Book is what views and queries may read of a run beside its state. They must not change it.
type Book struct {
	Journal   []Entry
	Started   time.Time
	Runs      int
	Cancelled bool
}

func (m *machine[S, E]) book() Book {
	return Book{Journal: m.carry.Journal, Started: m.carry.Started, Runs: m.carry.Runs, Cancelled: m.carry.Cancelled}
}

// load makes the state of this run: a fresh one, or the carried one.
func (m *machine[S, E]) load(ctx workflow.Context, fresh func() S) {
	if m.carry == nil {
		m.carry = &Carry[S]{State: fresh(), Started: workflow.Now(ctx)}
		m.recordTerms(ctx)
		m.carry.State = m.Policy.WithRules(m.carry.State, m.carry.Terms.Rules)
	}
	if m.carry.Terms == (terms{}) { // started by Succeed
		m.carry.Started = workflow.Now(ctx)
		m.recordTerms(ctx)
	}
	if rules := m.Policy.Rules(m.carry.State); rules < m.Rules.Oldest || rules > m.Rules.Current {
		panic(fmt.Sprintf("machine: the run carries rules version %d and this worker knows %d to %d: run a worker that knows it; "+
			"the run waits for one and loses nothing", rules, m.Rules.Oldest, m.Rules.Current))
	}
}

// recordTerms writes the worker's settings to the history, so that a later worker replays with the same.
func (m *machine[S, E]) recordTerms(ctx workflow.Context) {
	value := workflow.SideEffectWithOptions(ctx, workflow.SideEffectOptions{Summary: "rules version and limits"},
		func(workflow.Context) any { return m.offered() })
	if err := value.Get(&m.carry.Terms); err != nil {
		panic(fmt.Sprintf("machine: the recorded terms of the run are unreadable: %v", err))
	}
}

// offered are the terms that this worker gives to runs that start now.
func (s Spec[S, E]) offered() terms {
	t := terms{Rules: s.Rules.Current, MaxTurns: s.MaxTurns, MinLife: s.MinLife}
	if s.Rules.Cap != 0 {
		t.Rules = min(max(s.Rules.Cap, s.Rules.Oldest), s.Rules.Current)
	}
	if t.MaxTurns <= 0 {
		t.MaxTurns = defaultMaxTurns
	}
	if t.MinLife <= 0 {
		t.MinLife = defaultMinLife
	}
	return t
}

func (m *machine[S, E]) age(ctx workflow.Context) time.Duration {
	return workflow.Now(ctx).Sub(workflow.GetInfo(ctx).WorkflowStartTime)
}

// due tells whether the run should continue as new at its next quiet point.
func (m *machine[S, E]) due(ctx workflow.Context) bool {
	if m.taken == 0 || m.age(ctx) < m.carry.Terms.MinLife {
		return false
	}
	return m.life.renew || m.effects >= m.carry.Terms.MaxTurns || workflow.GetInfo(ctx).GetContinueAsNewSuggested()
}

// ripen wakes a run that was asked to continue as new once it is old enough. Without a request there is no hurry: the next
// event finds the run due.
func (m *machine[S, E]) ripen(ctx workflow.Context) {
	wait := m.carry.Terms.MinLife - m.age(ctx)
	if !m.life.renew || m.ripening || wait <= 0 {
		return
	}
	m.ripening = true
	workflow.GoNamed(ctx, "ripen", func(ctx workflow.Context) {
		timer := workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "continue as new when the run is old enough"})
		if timer.Get(ctx, nil) == nil {
			m.news = true
		}
	})
}

// renewal is the continue-as-new of this run. The type is taken by name: a worker with DisableRegistrationAliasing does
// not know the function.
func (m *machine[S, E]) renewal(ctx workflow.Context) error {
	next := *m.carry
	next.Runs++
	next.Terms = m.offered()
	next.Terms.Rules = max(next.Terms.Rules, m.Policy.Rules(next.State))
	next.State = m.Policy.WithRules(next.State, next.Terms.Rules)
	return workflow.NewContinueAsNewError(ctx, workflow.GetInfo(ctx).WorkflowType.Name, nil, &next)
}
