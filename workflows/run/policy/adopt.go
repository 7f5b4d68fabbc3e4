package policy

import (
	"fmt"

	"steward/workflows/run/receipt"
)

// askAgain is for a history that was reset to before its admission: a conversation that may have been asked for its task is not
// asked again, and keeps the scope that it named.
func (d *draft) askAgain(past *State) {
	if !d.Adopting || past.RunID != d.RunID {
		return
	}
	d.Adopting = past.Adopting && past.Effect.Kind == KindAdopt && past.Effect.State == EffectReserved
	g := *d.Goal
	g.Scope = past.Scope
	d.Goal, d.Scope = &g, past.Scope
}

// refusesScope tells whether a conversation that is asked for its scope names one that may not be registered.
func (s *State) refusesScope(r *receipt.Receipt) bool {
	return s.Adopting && !s.Goal.Registers(r.Scope)
}

// foreignScope is the reading of such a receipt: it is asked for again, within the bound of the protocol.
func (s *State) foreignScope(r receipt.Receipt) receipt.Reading {
	return receipt.Reading{Code: CodeScopeRefused, Violation: true, Detail: fmt.Sprintf(
		"active_scope is %q; write %s, or one that matches %s", clip(r.Scope, maxWord), s.Scope, s.Goal.Adopt.Scopes)}
}

// register takes the scope that the conversation names as its own, once. Source: "ChatGPT Web adapter boundary".
func (d *draft) register(scope string) (adopted bool) {
	if !d.Adopting {
		return false
	}
	g := *d.Goal
	g.Scope = scope
	d.Goal, d.Scope, d.Adopting = &g, scope, false
	return true
}
