package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

func doubted(w *walk) { w.unknown() }

// bounded is an unknown effect whose looks are used up.
func bounded(w *walk) {
	w.unknown()
	for w.s.Blocker == nil {
		w.due()
		w.take(w.look(false, true))
	}
	w.blockedBy(policy.BlockedUnknown)
}

func supersede(w *walk) policy.Event {
	return policy.SupersedeRequested{EffectID: w.s.Effect.ID, Operator: "ann", Reason: "lost", AcceptDuplicate: true}
}

func withoutLook(w *walk) policy.Event {
	e := w.word(policy.VerdictNotApplied)
	e.WithoutObservation = true
	return e
}

func TestReconcile(t *testing.T) {
	run(t, []row{
		{
			name: "an unknown effect is looked for after 10 s, 30 s, 2 min and 10 min, then blocks, then once a day", given: begun,
			event: func(w *walk) policy.Event {
				return policy.ProviderDispatchOutcomeUnknown{Attempted: w.tried(), Code: "commit_not_seen"}
			},
			then: func(w *walk, _ policy.State) {
				var waits []time.Duration
				for range 6 {
					waits = append(waits, w.due())
					w.is(w.s.Status, policy.OweReconcile)
					w.take(w.look(false, len(waits)%2 == 0))
				}
				const day = 24 * time.Hour
				require.Equal(w, []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, day, day}, waits)
				w.blockedBy(policy.BlockedUnknown)
				require.Equal(w, policy.Failures{Max: 3}, w.s.Budgets.ProviderFailures)
				require.Contains(w, w.s.Attention().Command, w.s.Effect.ID)
			},
		},
		{
			name: "its marker makes it applied, also long after the block", given: bounded,
			event: func(w *walk) policy.Event { return w.look(true, true) }, code: "marker_seen",
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatched, policy.OweObserve)
				require.Nil(w, w.s.Blocker)
				require.Equal(w, old.AuthorityID, w.s.AuthorityID)
				require.Equal(w, 1, w.s.Dispatches)
			},
		},
		{
			name: "the same look twice counts once", verdict: kernel.NoOp, code: policy.CodeLookStale,
			given: func(w *walk) { w.unknown(); w.due(); w.take(w.look(false, true)) },
			event: func(w *walk) policy.Event {
				e := w.look(false, true)
				e.Look--
				return e
			},
		},
		{
			name: "the marker twice is a duplicate", verdict: kernel.NoOp, code: policy.CodeDuplicate,
			given: func(w *walk) { w.unknown(); w.take(w.look(true, true)) },
			event: func(w *walk) policy.Event { return w.look(true, true) },
		},
		{
			name: "a look at an effect that is not unknown proves nothing", verdict: kernel.Reject, code: policy.CodeNotUnknown,
			event: func(w *walk) policy.Event { return w.look(false, true) },
		},
		{
			name:  "a marker that is seen after an operator said there is none beats the operator",
			given: func(w *walk) { w.unknown(); w.take(withoutLook(w)) },
			event: func(w *walk) policy.Event {
				return policy.ProviderEffectReconciled{EffectID: w.s.Effect.ID, Generation: 1, Marker: true, Readable: true}
			},
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatched, policy.OweObserve)
				require.Equal(w, 1, w.s.Dispatches)
			},
		},
		{
			name: "the same marker while the next generation is under way leaves that attempt its own outcome", verdict: kernel.Reject,
			code:  policy.CodeNotUnknown,
			given: func(w *walk) { w.unknown(); w.take(withoutLook(w)); w.begin() },
			event: func(w *walk) policy.Event {
				return policy.ProviderEffectReconciled{EffectID: w.s.Effect.ID, Generation: 1, Marker: true, Readable: true}
			},
		},
		{
			name: "a lost worker or a load of the state does not make it known", given: doubted, verdict: kernel.NoOp,
			code:  policy.CodeDuplicate,
			event: func(w *walk) policy.Event { return policy.RuntimeOrSessionEvicted{Attempted: w.tried()} },
		},
		{
			name:  "an unknown is reconciled while paused",
			given: func(w *walk) { w.unknown(); w.take(policy.PauseRequested{Operator: "ann", Reason: "wait"}) },
			event: func(w *walk) policy.Event { w.due(); return w.look(true, true) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatched, policy.OweObserve) },
		},
	})
}

func TestOperatorsWordOnAnUnknownEffect(t *testing.T) {
	run(t, []row{
		{
			name: "applied", given: bounded, event: func(w *walk) policy.Event { return w.word(policy.VerdictApplied) },
			then: func(w *walk, _ policy.State) { w.is(policy.Dispatched, policy.OweObserve) },
		},
		{
			name: "applied twice is a duplicate", given: func(w *walk) { w.applied() }, verdict: kernel.NoOp, code: policy.CodeDuplicate,
			event: func(w *walk) policy.Event { return w.word(policy.VerdictApplied) },
		},
		{
			name: "unknown asks for a look now and sends nothing", given: bounded, code: policy.CodeObservationPending,
			event: func(w *walk) policy.Event { return w.word(policy.VerdictUnknown) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Blocked, policy.OweReconcile) },
		},
		{
			name:  "not_applied is checked by one fresh look, not by one that had begun before",
			given: func(w *walk) { w.unknown(); w.due() },
			event: func(w *walk) policy.Event { return w.word(policy.VerdictNotApplied) }, code: policy.CodeObservationPending,
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweReconcile)
				require.NotEqual(w, policy.Policy{}.Obligation(old).Key, w.owes().Key)
				stale := w.look(false, true)
				stale.Look = old.Effect.Look
				w.refused(kernel.NoOp, policy.CodeLookStale, stale)
				w.refused(kernel.NoOp, policy.CodeObservationPending, w.word(policy.VerdictNotApplied))
				require.Equal(w, "operator_confirmed", w.take(w.look(false, true)).Code)
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, 2, w.s.Effect.Generation)
				require.Equal(w, old.Effect.ID, w.s.Effect.ID)
				require.Equal(w, policy.Failures{Max: 3}, w.s.Budgets.ProviderFailures)
			},
		},
		{
			name:  "not_applied is refuted by a visible marker",
			given: func(w *walk) { bounded(w); w.take(w.word(policy.VerdictNotApplied)) },
			event: func(w *walk) policy.Event { return w.look(true, true) },
			then:  func(w *walk, _ policy.State) { w.is(policy.Dispatched, policy.OweObserve) },
		},
		{
			name:  "not_applied needs evidence when the page cannot be read",
			given: func(w *walk) { bounded(w); w.take(w.word(policy.VerdictNotApplied)) },
			event: func(w *walk) policy.Event { return w.look(false, false) }, code: "operator_unconfirmed",
			then: func(w *walk, _ policy.State) {
				require.Equal(w, policy.EffectUnknown, w.s.Effect.State)
				require.Contains(w, w.s.Effect.Word.Refuted, "without_observation: true")
				require.Equal(w, 24*time.Hour, w.owes().At.Sub(w.at))
				w.take(withoutLook(w))
				w.is(policy.Dispatching, policy.OweSend)
			},
		},
		{
			name: "not_applied without observation decides at once", given: bounded, event: withoutLook,
			then: func(w *walk, _ policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.Equal(w, 2, w.s.Effect.Generation)
				require.Equal(w, "operator_without_observation", w.s.Effect.Attempts[1].Code)
			},
		},
		{
			name: "not_applied for an effect that is not unknown", event: withoutLook, verdict: kernel.Reject, code: policy.CodeNotUnknown,
		},
		{
			name: "not_applied for an applied effect", given: func(w *walk) { w.applied() }, event: withoutLook, verdict: kernel.Reject,
			code: policy.CodeNotUnknown,
		},
		{
			name: "a word twice speaks of a stale generation", given: func(w *walk) { w.unknown(); w.take(withoutLook(w)) },
			verdict: kernel.Reject, code: policy.CodeGenerationStale,
			event: func(w *walk) policy.Event {
				e := withoutLook(w).(policy.ProviderEffectReconciled)
				e.Generation = 1
				return e
			},
		},
		{
			name: "a word on another effect", given: doubted, verdict: kernel.Reject, code: policy.CodeEffectMismatch,
			event: func(w *walk) policy.Event {
				e := w.word(policy.VerdictApplied)
				e.EffectID = "fx_other"
				return e
			},
		},
		{
			name: "a word without an operator", given: doubted, verdict: kernel.NeedsEvidence, code: policy.CodeOperatorMissing,
			event: func(w *walk) policy.Event {
				e := w.word(policy.VerdictApplied)
				e.Operator = ""
				return e
			},
		},
		{
			name: "a word without a reason", given: doubted, verdict: kernel.NeedsEvidence, code: policy.CodeReasonMissing,
			event: func(w *walk) policy.Event {
				e := w.word(policy.VerdictApplied)
				e.Reason = ""
				return e
			},
		},
		{
			name: "a resume does not answer for an effect of unknown outcome", given: bounded, verdict: kernel.Reject,
			code:  policy.CodeBlocker,
			event: func(w *walk) policy.Event { return w.resume(w.s.Blocker.ID) },
		},
	})
}

func TestSupersede(t *testing.T) {
	run(t, []row{
		{
			name:  "the unknown effect is retired and one new effect of the same round is reserved, in one decision",
			given: func(w *walk) { w.round(); bounded(w) }, event: supersede,
			then: func(w *walk, old policy.State) {
				w.is(policy.Dispatching, policy.OweSend)
				require.NotEqual(w, old.Effect.ID, w.s.Effect.ID)
				require.Equal(w, old.Effect.Kind, w.s.Effect.Kind)
				require.Equal(w, []string{old.Effect.Source, old.Effect.SourceAnswer}, []string{w.s.Effect.Source, w.s.Effect.SourceAnswer})
				require.Equal(w, 1, w.s.Effect.Generation)
				require.Equal(w, []any{old.AuthorityID, old.Budgets}, []any{w.s.AuthorityID, w.s.Budgets})
				require.Equal(w, []string{old.Effect.ID}, w.s.Proof().Unknown)
			},
		},
		{
			name: "the same supersede again is a duplicate", given: func(w *walk) { w.unknown(); w.take(supersede(w)) },
			verdict: kernel.NoOp, code: policy.CodeDuplicate,
			event: func(w *walk) policy.Event {
				return policy.SupersedeRequested{EffectID: w.s.Retired[0].ID, Operator: "ann", Reason: "lost", AcceptDuplicate: true}
			},
		},
		{
			name: "a late marker of the retired effect is reported, once", given: func(w *walk) { w.unknown(); w.take(supersede(w)) },
			event: func(w *walk) policy.Event {
				return policy.ProviderEffectReconciled{EffectID: w.s.Retired[0].ID, Marker: true}
			},
			code: "superseded_effect_applied",
			then: func(w *walk, _ policy.State) {
				require.Equal(w, policy.EffectApplied, w.s.Retired[0].State)
				require.Empty(w, w.s.Proof().Unknown)
				w.refused(kernel.NoOp, policy.CodeDuplicate, policy.ProviderEffectReconciled{EffectID: w.s.Retired[0].ID, Marker: true})
			},
		},
		{
			name: "it needs the acceptance of a duplicate", given: doubted, verdict: kernel.NeedsEvidence, code: policy.CodeDuplicateRisk,
			event: func(w *walk) policy.Event {
				return policy.SupersedeRequested{EffectID: w.s.Effect.ID, Operator: "ann", Reason: "lost"}
			},
		},
		{
			name: "it needs an operator", given: doubted, verdict: kernel.NeedsEvidence, code: policy.CodeOperatorMissing,
			event: func(w *walk) policy.Event {
				return policy.SupersedeRequested{EffectID: w.s.Effect.ID, Reason: "lost", AcceptDuplicate: true}
			},
		},
		{
			name: "it needs a reason", given: doubted, verdict: kernel.NeedsEvidence, code: policy.CodeReasonMissing,
			event: func(w *walk) policy.Event {
				return policy.SupersedeRequested{EffectID: w.s.Effect.ID, Operator: "ann", AcceptDuplicate: true}
			},
		},
		{
			name: "an effect under way cannot be superseded", given: begun, event: supersede, verdict: kernel.Reject,
			code: policy.CodeNotUnknown,
		},
		{name: "a reserved effect cannot be superseded", event: supersede, verdict: kernel.Reject, code: policy.CodeNotUnknown},
		{
			name: "another effect cannot be superseded", given: doubted, verdict: kernel.Reject, code: policy.CodeEffectMismatch,
			event: func(*walk) policy.Event {
				return policy.SupersedeRequested{EffectID: "fx_other", Operator: "ann", Reason: "x", AcceptDuplicate: true}
			},
		},
	})
	t.Run("retired effects are bounded and keep no prompt parts", func(t *testing.T) {
		w := start(t)
		for range 12 {
			w.unknown()
			w.take(supersede(w))
		}
		require.Len(t, w.s.Retired, 8)
	})
}
