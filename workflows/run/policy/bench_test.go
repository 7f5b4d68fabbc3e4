package policy_test

import (
	"testing"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// BenchmarkDecide decides the events of a turn, in a run whose ledger is full.
func BenchmarkDecide(b *testing.B) {
	full := func() *walk {
		w := start(b, rounds(1000))
		for range 55 {
			w.round()
		}
		return w
	}
	for _, c := range []struct {
		name  string
		given func(w *walk)
		event func(w *walk) policy.Event
	}{
		{"begin", func(*walk) {}, beginEvent},
		{"succeeded", begun, (*walk).succeeded},
		{"failed", begun, func(w *walk) policy.Event { return w.failed("hung") }},
		{"claim", applied, func(w *walk) policy.Event { return policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at} }},
		{"open", applied, func(w *walk) policy.Event {
			e := w.turn(nil)
			e.Turn = policy.TurnOpen
			return e
		}},
		{"continue", applied, func(w *walk) policy.Event { return w.turn(w.receipt(receipt.Continue)) }},
		{"timer", func(w *walk) { w.begin(); w.take(w.failed("hung")); w.at = w.owes().At }, func(w *walk) policy.Event {
			return policy.TimerElapsed{Key: w.owes().Key}
		}},
		{"look", doubted, func(w *walk) policy.Event { return w.look(false, true) }},
		{"pause", func(*walk) {}, pauseEvent},
		{"duplicate", applied, (*walk).succeeded},
		{"misaddressed", applied, func(*walk) policy.Event { return policy.ControllerClaimObserved{EffectID: "fx_other"} }},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := full()
			c.given(w)
			e, meta := c.event(w), kernel.Meta{At: w.at}
			b.ReportAllocs()
			for b.Loop() {
				policy.Policy{}.Decide(w.s, e, meta)
			}
		})
	}
}

// BenchmarkObligation derives what a state owes.
func BenchmarkObligation(b *testing.B) {
	w := start(b).applied()
	b.ReportAllocs()
	for b.Loop() {
		policy.Policy{}.Obligation(w.s)
	}
}
