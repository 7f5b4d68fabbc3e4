// Package machine is the driver of a long-lived workflow: a small loop around a pure policy.
//
// Everything that happens to a run (a signal, an update, the outcome of an activity, a fired timer, a cancellation)
// enters by one door as one typed event, is decided by the policy, and is journaled. After each decision the driver asks
// the policy what the state owes the world next and serves exactly that one obligation. The driver knows nothing of what
// the states mean; a workflow is a policy plus a table of actions and messages.
//
// Within one workflow task events are taken in this order: signals in the order of the history, then updates, then the
// outcomes of activities and timers. The SDK does not keep the order between signal names; the interceptor of Options
// does, and every worker, replayer and test environment that runs a machine needs it.
package machine

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine/kernel"
)

const (
	// UpgradeSignal forces a continue-as-new at the next quiet point, so that a new rules version takes hold.
	UpgradeSignal = "upgrade"
	// StateQuery returns the whole state of the policy.
	StateQuery = "state"
	// JournalQuery returns the last decisions, oldest first.
	JournalQuery = "journal"

	defaultMaxTurns = 20
	defaultMinLife  = 10 * time.Second
)

// Action serves one obligation: it blocks and returns the event that its outcome is. Its context is cancelled when the
// state no longer owes it. An effect returns its real outcome even then; what a cancelled read returns is dropped.
type Action[S, E any] func(ctx workflow.Context, s S, o kernel.Obligation) E

// Rules are the rules versions that this code can decide by.
type Rules struct {
	// Oldest and Current bound the versions that an open run may carry.
	Oldest, Current int
	// Cap, when not zero, is what new runs and continued runs get instead of Current: set it below Current while a
	// rollout may still be undone. A run is never lowered.
	Cap int
}

// Spec is one machine. Everything in it is fixed for the life of a worker.
type Spec[S, E any] struct {
	Policy kernel.Policy[S, E]
	// Actions serve read-only and effect obligations, by their kind.
	Actions map[string]Action[S, E]
	// Begin is the event "this attempt starts", taken directly before the action of an effect. Suspect marks the first
	// effect after a workflow reset: the discarded part of the history may have contained this very attempt. When the
	// state no longer owes the effect afterwards, its action is not run.
	Begin func(s S, o kernel.Obligation, suspect bool) E
	// Elapsed is the event of a Timer obligation that is due.
	Elapsed func(s S, o kernel.Obligation) E
	// Messages are the signals and updates.
	Messages []Message[E]
	// Queries answer beside StateQuery and JournalQuery.
	Queries map[string]func(s S, b Book) any
	// Cancel is the event of a Temporal cancellation, taken once in the life of a run.
	Cancel func() E
	// Stalled is the event of a run that continues an open state; nil for none.
	Stalled func() E
	// View is what an operator sees of the state.
	View func(s S, b Book) View
	// Name is the name of an event in journal and log.
	Name func(E) string
	// Rules bound the rules versions of this code.
	Rules Rules
	// MaxTurns is how many effects one run starts before it continues as new; default 20.
	MaxTurns int
	// MinLife is the age below which a run does not continue as new; default 10 s. The server delays the first task of a
	// run whose predecessor lived for less than a second.
	MinLife time.Duration
}

type machine[S, E any] struct {
	Spec[S, E]
	root     workflow.Context
	carry    *Carry[S]
	arrivals *arrivals
	messages map[string]Message[E]
	running  *serving
	life     *life

	news     bool   // something happened since the loop looked last
	leaving  bool   // the run would end or continue, were it not for an update handler
	ripening bool   // a timer waits for the run to be old enough to continue
	taken    int    // events taken in this run
	effects  int    // effects started in this run
	refusals int    // outcomes in a row that the policy did not accept
	run      string // the run that started the last effect, or knows all before it
	suspect  bool   // the history was reset since then
}

// life is what an action may tell the driver, through its context.
type life struct {
	renew bool
	known string
}

type lifeKey struct{}

// Renew asks for a continue-as-new at the next quiet point. It is for actions and needs their context.
func Renew(ctx workflow.Context) {
	ctx.Value(lifeKey{}).(*life).renew = true
}

// Known tells that the state holds every effect of the histories that were discarded by resets before the run of this id,
// so that its first effect is not suspect. The id must come from a recorded result. It is for actions and needs their context.
func Known(ctx workflow.Context, run string) {
	ctx.Value(lifeKey{}).(*life).known = run
}

// Run drives one workflow run until it ends or continues as new; return what it returns. Carry is nil in the first run
// of a chain, where fresh makes the state. The workflow has two parameters: its input, and *Carry[S]; a continued run gets
// null as its input. Run must be called before the workflow function blocks for the first time.
//
// The result, the details of a failure and the details of a cancellation all hold the final state.
func Run[S, E any](ctx workflow.Context, spec Spec[S, E], fresh func() S, carry *Carry[S]) (any, error) {
	spec.check()
	seen, ok := ctx.Value(arrivalsKey{}).(*arrivals)
	if !ok {
		panic("machine: the worker lacks the interceptor of machine.Options(): add it to the options of worker, replayer and test environment")
	}
	m := &machine[S, E]{Spec: spec, root: ctx, carry: carry, arrivals: seen, life: &life{}}
	if m.run = workflow.GetInfo(ctx).OriginalRunID; m.run == "" {
		m.run = workflow.GetInfo(ctx).WorkflowExecution.RunID
	}
	m.load(ctx, fresh)
	m.listen(ctx)

	// Cancellation of the root context would cancel every activity, effects too. It is an event here, not a mechanism.
	loop, _ := workflow.NewDisconnectedContext(ctx)
	loop = workflow.WithValue(loop, lifeKey{}, m.life)
	if carry != nil && spec.Stalled != nil && m.owed().Class != kernel.Finish {
		m.take(loop, spec.Stalled(), sender{})
	}
	return m.loop(loop)
}

func (m *machine[S, E]) loop(ctx workflow.Context) (any, error) {
	for {
		m.news, m.leaving = false, false
		m.intake(ctx)
		m.noticeCancellation(ctx)
		owed, due := m.owed(), m.due(ctx)
		serve := m.running == nil && !due && m.servable(owed)
		if serve && owed.Class == kernel.Effect {
			if owed, serve = m.begin(ctx, owed); !serve {
				continue
			}
		}
		m.publish(ctx)
		switch {
		case serve:
			m.start(ctx, owed)
		case m.running != nil:
			if m.running.key != owed.Key || due && m.running.class != kernel.Effect {
				m.running.stop()
			}
		case owed.Class != kernel.Finish && !due:
		case !workflow.AllHandlersFinished(ctx):
			m.leaving = true
		case owed.Class == kernel.Finish:
			return m.end()
		default:
			return nil, m.renewal(ctx)
		}
		m.ripen(ctx)
		if err := workflow.Await(ctx, func() bool { return m.awake(ctx) }); err != nil {
			return nil, fmt.Errorf("the driver's own context was cancelled: %w", err)
		}
	}
}

func (m *machine[S, E]) owed() kernel.Obligation { return m.Policy.Obligation(m.carry.State) }

func (m *machine[S, E]) awake(ctx workflow.Context) bool {
	return m.news || len(m.arrivals.pending) > 0 || m.cancelled() || m.leaving && workflow.AllHandlersFinished(ctx)
}

func (m *machine[S, E]) cancelled() bool { return m.root.Err() != nil && !m.carry.Cancelled }

// noticeCancellation takes the cancel event once. The flag is carried, because a cancel request does not survive
// continue-as-new.
func (m *machine[S, E]) noticeCancellation(ctx workflow.Context) {
	if m.cancelled() {
		m.carry.Cancelled = true
		m.take(ctx, m.Cancel(), sender{})
	}
}

// end closes the workflow as the policy says. A failure never wraps another error: one that contained a CanceledError
// would close the run as cancelled.
func (m *machine[S, E]) end() (any, error) {
	ending := m.Policy.Ending(m.carry.State)
	switch {
	case ending.Failure != "":
		return nil, temporal.NewNonRetryableApplicationError(ending.Message, ending.Failure, nil, m.carry.State)
	case ending.Canceled:
		return nil, temporal.NewCanceledError(m.carry.State)
	default:
		return m.carry.State, nil
	}
}

// check panics on a spec that no run could be driven by: a fault of the code, seen by its first test.
func (s Spec[S, E]) check() {
	if s.Policy == nil || s.Begin == nil || s.Elapsed == nil || s.Cancel == nil || s.View == nil || s.Name == nil {
		panic("machine: a Spec needs Policy, Begin, Elapsed, Cancel, View and Name")
	}
	if s.Rules.Oldest > s.Rules.Current {
		panic(fmt.Sprintf("machine: the oldest rules version %d is above the current one %d", s.Rules.Oldest, s.Rules.Current))
	}
	names := map[string]bool{UpgradeSignal: true}
	for _, msg := range s.Messages {
		if names[msg.name] {
			panic(fmt.Sprintf("machine: two messages are named %q", msg.name))
		}
		names[msg.name] = true
	}
	for _, name := range []string{StateQuery, JournalQuery} {
		if _, taken := s.Queries[name]; taken {
			panic(fmt.Sprintf("machine: the query %q is built in", name))
		}
	}
}
