// Package release is ReleaseSession: stable A, an isolated candidate B, one fenced cutover, then known-good or back. Its
// deterministic code is the transition policy in the package policy; this package turns what the policy owes into
// activities of the recovery process, and what they bring back into the policy's events.
package release

import (
	"encoding/json"

	"go.temporal.io/sdk/workflow"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/release/policy"
)

// Options are the settings of a recovery process that a session depends on.
type Options struct {
	// RulesCap keeps new and continued sessions at an older rules version while a rollout may still be undone; 0 means none.
	RulesCap int
}

// Workflow makes the workflow function for a worker. It is registered as workflows.TypeReleaseSession; its input is the
// plan as JSON, its result the final policy.State.
func Workflow(o Options) func(workflow.Context, json.RawMessage, *machine.Carry[policy.State]) (any, error) {
	return func(ctx workflow.Context, input json.RawMessage, carry *machine.Carry[policy.State]) (any, error) {
		return machine.Run(ctx, spec(o, input), func() policy.State { return policy.State{} }, carry)
	}
}

func spec(o Options, input json.RawMessage) machine.Spec[policy.State, policy.Event] {
	return machine.Spec[policy.State, policy.Event]{
		Policy: policy.Policy{},
		Actions: map[string]machine.Action[policy.State, policy.Event]{
			policy.OweAdmit: func(ctx workflow.Context, _ policy.State, o kernel.Obligation) policy.Event {
				return admit(ctx, o, input)
			},
			policy.OweFreeze:    freeze,
			policy.OweBuild:     build,
			policy.OweGate:      gate,
			policy.OweBoot:      boot,
			policy.OweCanary:    canary,
			policy.OweStop:      stopCandidate,
			policy.OweVerify:    verify,
			policy.OweCutover:   cutover,
			policy.OweRollback:  rollback,
			policy.OweReconcile: look,
			policy.OweLook:      look,
			policy.OweWindows:   observeWindows,
			policy.OweProof:     liveProof,
			policy.OweCommand:   proofCommand,
			policy.OweRestart:   restart,
			policy.OweBundle:    bundle,
			policy.OweClose:     closeSession,
		},
		Begin: begin,
		Elapsed: func(_ policy.State, o kernel.Obligation) policy.Event {
			return policy.TimerElapsed{Outcome: outcome(o)}
		},
		Messages: messages,
		Queries: map[string]func(policy.State, machine.Book) any{
			workflows.QueryWhy:      func(s policy.State, _ machine.Book) any { return s.Explain() },
			workflows.QueryReceipts: func(s policy.State, _ machine.Book) any { return s.Receipts },
		},
		Cancel: func() policy.Event { return policy.CancelRequested{} },
		View:   view,
		Name:   policy.Event.Name,
		Rules:  machine.Rules{Oldest: policy.OldestRules, Current: policy.CurrentRules, Cap: o.RulesCap},
	}
}

func begin(s policy.State, o kernel.Obligation, suspect bool) policy.Event {
	if o.Kind == policy.OweRestart {
		return policy.RestartStarted{Key: o.Key}
	}
	return policy.OperationStarted{Operation: s.Next(o), Suspect: suspect}
}

func outcome(o kernel.Obligation) policy.Outcome { return policy.Outcome{Key: o.Key} }
