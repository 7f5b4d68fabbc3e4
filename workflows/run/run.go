// Package run is WorkflowRun: one goal in one exact conversation, turn after turn, until it is verified done. Its
// deterministic code is the transition policy in the package policy; this package turns what the policy owes into
// activities, and what they bring back into the policy's events.
package run

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

// Options are the settings of a worker that a run depends on.
type Options struct {
	// RulesCap keeps new and continued runs at an older rules version while a rollout may still be undone; 0 means none.
	RulesCap int
}

// Workflow makes the workflow function for a worker. It is registered as workflows.TypeWorkflowRun; its input is the start
// input as JSON, its result the final policy.State.
func Workflow(o Options) func(workflow.Context, json.RawMessage, *machine.Carry[policy.State]) (any, error) {
	return func(ctx workflow.Context, input json.RawMessage, carry *machine.Carry[policy.State]) (any, error) {
		return machine.Run(ctx, spec(o, input), func() policy.State { return policy.State{} }, carry)
	}
}

func spec(o Options, input json.RawMessage) machine.Spec[policy.State, policy.Event] {
	return machine.Spec[policy.State, policy.Event]{
		Policy: policy.Policy{},
		Actions: map[string]machine.Action[policy.State, policy.Event]{
			policy.OweAdmit: func(ctx workflow.Context, _ policy.State, _ kernel.Obligation) policy.Event {
				return admit(ctx, input)
			},
			policy.OweSend:      send,
			policy.OweInterrupt: interrupt,
			policy.OweObserve:   observe,
			policy.OweRelease:   release,
			policy.OweReconcile: reconcile,
			policy.OweValidate:  validate,
			policy.OweProgress:  progress,
			policy.OweProbe:     probe,
			policy.OweSucceed:   succeed,
		},
		Begin: begin,
		Elapsed: func(_ policy.State, o kernel.Obligation) policy.Event {
			return policy.TimerElapsed{Key: o.Key}
		},
		Messages: messages,
		Queries: map[string]func(policy.State, machine.Book) any{
			workflows.QueryLedger: func(s policy.State, _ machine.Book) any { return s.Chain() },
			workflows.QueryWhy:    func(s policy.State, _ machine.Book) any { return s.Explain() },
			workflows.QueryProof:  func(s policy.State, _ machine.Book) any { return s.Proof() },
		},
		Cancel:  func() policy.Event { return policy.CancelRequested{} },
		Stalled: func() policy.Event { return policy.StalledRoundObserved{} },
		View:    view,
		Name:    policy.Event.Name,
		Rules:   machine.Rules{Oldest: policy.OldestRules, Current: policy.CurrentRules, Cap: o.RulesCap},
	}
}

func begin(s policy.State, o kernel.Obligation, suspect bool) policy.Event {
	e := policy.ProviderDispatchStarted{EffectID: s.Effect.ID, Generation: s.Effect.Generation, Suspect: suspect}
	switch o.Kind {
	case policy.OweProbe:
		e.EffectID, e.Generation = s.ProbeID(), 1
	case policy.OweInterrupt:
		e.EffectID, e.Generation = s.InterruptID(), 1
	case policy.OweSucceed:
		e.EffectID, e.Generation = s.Succession.ID, 1
	}
	return e
}
