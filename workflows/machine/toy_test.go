package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
)

// The toy sends and observes Max turns. It has one state for everything the driver has to do.
type toy struct {
	Phase    string // "" admit, reserved, dispatching, unknown, observing, waiting, done
	Max      int
	Turn     int
	Gen      int
	Look     int
	Until    time.Time
	Paused   bool
	Stopping bool
	Closed   bool // Temporal asked for cancellation
	Failure  string
	Stalled  int
	Notes    []string
	Seen     int // messages accepted
	Rev      int64
	RulesVer int
}

type (
	event    any
	admitted struct{}
	begun    struct{ Suspect bool }
	sent     struct {
		Gen     int
		Outcome string
	}
	observed   struct{ Look int }
	reconciled struct{}
	elapsed    struct{}
	cancelAsk  struct{}
	stalled    struct{}

	pause  struct{}
	resume struct{}
	stop   struct{ Reason string }
	say    struct {
		Text string `json:"text"`
	}
	relook struct{}
	wait   struct {
		Seconds int `json:"seconds"`
	}
	fail  struct{}
	prove struct{}
	boom  struct{}
)

type policy struct{}

func (policy) Rules(s toy) int                  { return s.RulesVer }
func (policy) WithRules(s toy, version int) toy { s.RulesVer = version; return s }

func (policy) Obligation(s toy) kernel.Obligation {
	send := kernel.Obligation{Class: kernel.Effect, Kind: "send", Key: fmt.Sprintf("send/%d/%d", s.Turn, s.Gen), Summary: "send"}
	switch {
	case s.Phase == "dispatching" && s.Stopping:
		return kernel.Obligation{}
	case s.Phase == "dispatching":
		return send
	case s.Stopping || s.Failure != "" || s.Phase == "done":
		return kernel.Obligation{Class: kernel.Finish}
	case s.Phase == "":
		return kernel.Obligation{Class: kernel.ReadOnly, Kind: "admit", Key: "admit"}
	case s.Phase == "observing":
		return kernel.Obligation{Class: kernel.ReadOnly, Kind: "observe", Key: fmt.Sprintf("observe/%d/%d", s.Turn, s.Look)}
	case s.Phase == "unknown":
		return kernel.Obligation{Class: kernel.ReadOnly, Kind: "reconcile", Key: fmt.Sprintf("reconcile/%d", s.Turn)}
	case s.Phase == "waiting":
		return kernel.Obligation{Class: kernel.Timer, Key: "wait", At: s.Until, Summary: "wait a while"}
	case s.Phase == "reserved" && !s.Paused:
		return send
	default:
		return kernel.Obligation{}
	}
}

func (policy) Ending(s toy) kernel.Ending {
	return kernel.Ending{Failure: s.Failure, Message: "the toy failed", Canceled: s.Closed}
}

func (policy) Decide(s toy, e event, meta kernel.Meta) kernel.Decision[toy] {
	accept := func() kernel.Decision[toy] {
		s.Rev++
		return kernel.Decision[toy]{Verdict: kernel.Accept, Next: s}
	}
	say := func(text string) { s.Notes = append(slices.Clip(s.Notes), text) }
	reject := func(code string) kernel.Decision[toy] {
		return kernel.Decision[toy]{Verdict: kernel.Reject, Code: code, Next: s}
	}
	over := s.Phase == "done" || s.Failure != "" || s.Stopping && s.Phase != "dispatching"
	switch e := e.(type) {
	case admitted:
		s.Phase = "reserved"
	case begun:
		if s.Phase != "reserved" {
			return reject("not_reserved")
		}
		s.Phase = "dispatching"
		if e.Suspect {
			s.Phase = "unknown"
			say("suspect")
		}
	case sent:
		if s.Phase != "dispatching" || e.Gen != s.Gen {
			return reject("stale")
		}
		say("sent:" + e.Outcome)
		switch e.Outcome {
		case "applied":
			s.Phase = "observing"
		case "deferred":
			s.Phase = "reserved"
		case "refuse":
			return reject("refused_outcome")
		default:
			s.Phase = "unknown"
		}
	case observed:
		if s.Phase != "observing" || e.Look != s.Look {
			return reject("stale")
		}
		if e.Look == 100 {
			return kernel.Decision[toy]{Verdict: kernel.NoOp, Code: "nothing_new", Next: s}
		}
		s.Turn, s.Gen, s.Phase = s.Turn+1, s.Gen+1, "reserved"
		if s.Turn == s.Max {
			s.Phase = "done"
		}
	case reconciled:
		say("reconciled")
		s.Phase = "observing"
	case elapsed:
		say("elapsed")
		s.Phase = "reserved"
	case cancelAsk:
		s.Stopping, s.Closed = true, true
	case stalled:
		s.Stalled++
	case nothing:
		return kernel.Decision[toy]{Verdict: kernel.NoOp, Code: e.Why, Next: s}
	default:
		if over {
			return reject("already_over")
		}
		s.Seen++
		switch e := e.(type) {
		case pause:
			s.Paused = true
			say("pause")
		case resume:
			s.Paused = false
			say("resume")
		case stop:
			s.Stopping = true
			if e.Reason != "" {
				say("stop:" + e.Reason)
			}
		case saying:
			say(e.Text)
		case relook:
			s.Look++
		case wait:
			s.Phase, s.Until = "waiting", meta.At.Add(time.Duration(e.Seconds)*time.Second)
		case fail:
			s.Failure = "toy_failed"
		case prove:
			return kernel.Decision[toy]{Verdict: kernel.NeedsEvidence, Code: "no_proof", Missing: []string{"proof"}, Next: s}
		case boom:
			panic("boom")
		}
	}
	return accept()
}

type saying = say

// world is what the actions of the toy do; activities by name.
func spec() machine.Spec[toy, event] {
	times := machine.Times{ScheduleToStart: time.Minute, StartToClose: time.Minute, Heartbeat: 5 * time.Second}
	look := func(name string, outcome func(toy) event) machine.Action[toy, event] {
		return func(ctx workflow.Context, s toy, o kernel.Obligation) event {
			if _, failure := machine.Do[string](ctx, machine.Read("", o.Summary, times), name, s.Turn, s.Look); failure != nil {
				return nothing{failure.Message}
			}
			return outcome(s)
		}
	}
	return machine.Spec[toy, event]{
		Policy: policy{},
		Actions: map[string]machine.Action[toy, event]{
			"admit":     look("admit", func(toy) event { return admitted{} }),
			"observe":   look("observe", func(s toy) event { return observed{s.Look} }),
			"reconcile": look("reconcile", func(toy) event { return reconciled{} }),
			"send": func(ctx workflow.Context, s toy, o kernel.Obligation) event {
				outcome, failure := machine.Do[string](ctx, machine.Effect("", o.Summary, times), "send", s.Turn, s.Gen)
				if failure != nil {
					outcome = string(failure.Cause)
					if failure.Cause == machine.NeverStarted {
						outcome = "deferred"
					}
				}
				return sent{s.Gen, outcome}
			},
		},
		Begin:    func(_ toy, _ kernel.Obligation, suspect bool) event { return begun{suspect} },
		Elapsed:  func(toy, kernel.Obligation) event { return elapsed{} },
		Cancel:   func() event { return cancelAsk{} },
		Stalled:  func() event { return stalled{} },
		Messages: messages(),
		Queries:  map[string]func(toy, machine.Book) any{"turn": func(s toy, b machine.Book) any { return []int{s.Turn, b.Runs} }},
		View: func(s toy, b machine.Book) machine.View {
			v := machine.View{
				Details: fmt.Sprintf("# toy\n\nphase %s, turn %d", s.Phase, s.Turn), Status: status(s), Revision: s.Rev,
				Current: map[string]any{"phase": s.Phase}, Keywords: map[string]string{"ToyStatus": status(s)},
			}
			if s.Paused {
				v.Attention = map[string]any{"class": "paused"}
			}
			return v
		},
		Name:  func(e event) string { return fmt.Sprintf("%T", e) },
		Rules: machine.Rules{Oldest: 1, Current: 1},
	}
}

type nothing struct{ Why string }

func status(s toy) string {
	switch {
	case s.Failure != "":
		return "failed"
	case s.Stopping:
		return "stopped"
	case s.Phase == "done":
		return "done"
	case s.Paused:
		return "paused"
	}
	return "running"
}

func messages() []machine.Message[event] {
	both := machine.Signal | machine.Update
	return []machine.Message[event]{
		on[pause]("pause", both), on[resume]("resume", both), on[stop]("stop", both), on[relook]("relook", both), on[wait]("wait", both),
		on[fail]("fail", both), on[prove]("prove", both), on[boom]("boom", both),
		machine.On("say", "notes a text", both, func(p say) (event, error) {
			if p.Text == "" {
				return nil, errors.New("text: must not be empty")
			}
			return p, nil
		}),
	}
}

func on[P any](name string, kinds machine.Kinds) machine.Message[event] {
	return machine.On(name, "the toy's "+name, kinds, func(p P) (event, error) { return p, nil })
}

const toyWorkflow = "Toy"

// toyRun is the workflow; adjust changes the spec of a test.
func toyRun(adjust func(*machine.Spec[toy, event])) func(workflow.Context, any, *machine.Carry[toy]) (any, error) {
	return func(ctx workflow.Context, input any, carry *machine.Carry[toy]) (any, error) {
		s := spec()
		if adjust != nil {
			adjust(&s)
		}
		fresh := func() toy {
			n, _ := input.(float64)
			return toy{Max: int(n)}
		}
		return machine.Run(ctx, s, fresh, carry)
	}
}
