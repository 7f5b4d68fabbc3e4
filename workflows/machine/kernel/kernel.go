// Package kernel holds the few types that a policy and the driver share. It has no Temporal SDK, no clock and no I/O,
// so that a policy which imports only this package stays pure.
package kernel

import "time"

// Verdict is what a policy says of one event.
type Verdict string

// The four verdicts. Only Accept changes the state.
const (
	Accept        Verdict = "accept"
	NoOp          Verdict = "no_op"
	Reject        Verdict = "reject"
	NeedsEvidence Verdict = "needs_evidence"
)

// Meta is what the driver knows of an event beside its payload.
type Meta struct {
	// At is the workflow time at which the event was taken.
	At time.Time
	// RequestID is the caller's idempotency key; empty for events of activities and timers.
	RequestID string
	// Caller is the client identity that the server saw; empty for events of activities and timers.
	Caller string
}

// Decision answers one event. Next is the state after it: the unchanged one unless Verdict is Accept.
type Decision[S any] struct {
	Verdict Verdict
	// Code is a stable lower_snake word; always set for Reject and NeedsEvidence.
	Code string
	// Missing names the evidence that would turn NeedsEvidence into Accept.
	Missing []string
	Next    S
}

// Class says how the driver has to serve an obligation.
type Class int

const (
	// Idle owes nothing: only a message can move the state.
	Idle Class = iota
	// Timer waits until Obligation.At.
	Timer
	// ReadOnly is an activity that may be cancelled and derived again.
	ReadOnly
	// Effect is an activity with consequences outside: started once, never cancelled to be replaced.
	Effect
	// Finish ends the workflow.
	Finish
)

// Obligation is the one thing that a state owes the world next. It is derived from the state alone.
type Obligation struct {
	Class Class
	// Kind names the action that serves it.
	Kind string
	// Key is kind + effect or proposal id + generation: two obligations with the same key are the same debt.
	Key string
	// At is the due time of a Timer.
	At time.Time
	// Summary is one line for the Web UI.
	Summary string
}

// Ending tells how a finished machine closes its workflow. An empty Failure is a result.
type Ending struct {
	// Failure is the stable type of a non-retryable failure.
	Failure string
	Message string
	// Canceled closes the workflow as cancelled.
	Canceled bool
}

// Policy is the whole transition policy of one machine: pure functions of the state. Decide must not write into maps or
// slices of the state it was given.
type Policy[S, E any] interface {
	Decide(state S, event E, meta Meta) Decision[S]
	Obligation(state S) Obligation
	Ending(state S) Ending
	// Rules is the rules version that the state was started or last continued with; WithRules sets it.
	Rules(state S) int
	WithRules(state S, rules int) S
}
