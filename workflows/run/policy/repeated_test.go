package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

func gitProgress(g *goal.Goal, _ *goal.SiteFacts) {
	g.Progress = []goal.Probe{{Git: &goal.GitProbe{Dir: "/src"}}}
}

// same ends the present turn with a receipt that says what the last one said.
func (w *walk) same(action receipt.Action) policy.Decision {
	w.Helper()
	if w.n > 0 {
		w.n--
	}
	return w.settle(action)
}

// repeated is a run that is blocked because its receipts stand still.
func repeated(w *walk) {
	for w.s.Blocker == nil {
		w.applied()
		w.same(receipt.Continue)
	}
	w.blockedBy(policy.BlockedRepeatedState)
}

func TestRepeatedState(t *testing.T) {
	t.Run("counts equal fingerprints in a row, injects one root-cause prompt, then blocks", func(t *testing.T) {
		w := start(t)
		var kinds []policy.EffectKind
		var counts []int
		for w.s.Blocker == nil {
			w.applied()
			w.same(receipt.Continue)
			counts = append(counts, w.s.Budgets.RepeatedState)
			kinds = append(kinds, w.s.Effect.Kind)
		}
		require.Equal(t, []int{0, 1, 2, 3, 4}, counts)
		c := policy.KindContinuation
		require.Equal(t, []policy.EffectKind{c, c, policy.KindStagnation, c, c}, kinds)
		w.is(policy.Blocked, "message")
		w.blockedBy(policy.BlockedRepeatedState)
		require.Equal(t, 5, w.s.Dispatches)
	})
	t.Run("words that differ only in case and white space are the same", func(t *testing.T) {
		w := start(t).round().applied()
		w.n--
		r := w.receipt(receipt.Continue)
		r.Checkpoint, r.Digest = "  STEP\t1 ", "another"
		w.take(w.turn(r))
		require.Equal(t, 1, w.s.Budgets.RepeatedState)
	})
	t.Run("progress resets the count and the root-cause prompt", func(t *testing.T) {
		w := start(t)
		for w.s.Effect.Kind != policy.KindStagnation {
			w.applied()
			w.same(receipt.Continue)
		}
		w.n++
		w.round()
		require.Zero(t, w.s.Budgets.RepeatedState)
		require.False(t, w.s.Budgets.Stagnation)
	})
	t.Run("every action counts: a DONE that is rejected again and again ends as well", func(t *testing.T) {
		w := start(t)
		for w.s.Blocker == nil {
			w.applied()
			w.same(receipt.Done)
			w.take(w.validated(policy.CheckFail, policy.CheckPass))
		}
		w.blockedBy(policy.BlockedRepeatedState)
		require.Equal(t, 5, w.s.Dispatches)
	})
	t.Run("with progress probes only what they see counts", func(t *testing.T) {
		w := start(t, gitProgress)
		for i, digest := range []string{"a", "a", "b", "b"} {
			w.applied()
			e := w.turn(w.receipt(receipt.Continue))
			e.Progress = digest
			w.take(e)
			require.Equal(t, []int{0, 1, 0, 1}[i], w.s.Budgets.RepeatedState)
		}
	})
	t.Run("a compact receipt is judged by its answer", func(t *testing.T) {
		w := start(t)
		for i, answer := range []string{"a", "b", "b"} {
			w.applied()
			e := w.turn(&receipt.Receipt{Form: receipt.Compact, Action: receipt.Continue, Digest: answer})
			e.AnswerDigest = answer
			w.take(e)
			require.Equal(t, []int{0, 0, 1}[i], w.s.Budgets.RepeatedState)
		}
	})
	t.Run("an explicit wait between two equal receipts hides no repetition", func(t *testing.T) {
		w := start(t).round()
		waiting(w)
		w.take(policy.OccurrenceRequested{OccurrenceID: "o1"})
		w.take(release(w))
		w.applied()
		w.same(receipt.Continue)
		require.Equal(t, 1, w.s.Budgets.RepeatedState)
	})
	t.Run("neither time, a failed send, a recovery nor a restart of the worker resets it", func(t *testing.T) {
		w := start(t).round().applied()
		w.same(receipt.Continue)
		w.wait(1000 * time.Hour)
		w.try(policy.StalledRoundObserved{})
		w.begin()
		w.take(w.failed("hung"))
		w.applied()
		w.take(w.broken("stopped"))
		require.Equal(t, 1, w.s.Budgets.RepeatedState)
	})
}

func TestRepeatedStateEndsOnlyByAChange(t *testing.T) {
	read := func(fingerprint string) func(w *walk) policy.Event {
		return func(w *walk) policy.Event {
			return policy.SemanticStateChanged{Blocker: w.s.Blocker.ID, Look: w.s.Blocker.Probes, Fingerprint: fingerprint}
		}
	}
	probed := []option{gitProgress}
	standing := func(w *walk) {
		for w.s.Blocker == nil {
			w.applied()
			e := w.turn(w.receipt(receipt.Continue))
			e.Progress = "unchanged"
			w.take(e)
		}
		w.due()
		w.is(policy.Blocked, policy.OweProgress)
	}
	released := func(w *walk, old policy.State) {
		w.is(policy.Dispatching, policy.OweSend)
		require.Zero(w, w.s.Budgets.RepeatedState)
		require.Equal(w, old.Budgets.ProviderFailures, w.s.Budgets.ProviderFailures)
		require.Equal(w, old.Budgets.Rounds+1, w.s.Budgets.Rounds, "the closed round is followed by one new round")
	}
	run(t, []row{
		{
			name: "a changed fingerprint releases the reserved successor", options: probed, given: standing, event: read("changed"),
			then: func(w *walk, old policy.State) {
				released(w, old)
				require.Equal(w, old.Next.ID, w.s.Effect.ID)
			},
		},
		{
			name: "an unchanged one schedules the next look, 5 min growing to 1 h", options: probed, given: standing,
			event: read("unchanged"),
			then: func(w *walk, _ policy.State) {
				var waits []time.Duration
				for range 5 {
					waits = append(waits, w.due())
					w.take(read("unchanged")(w))
				}
				m := time.Minute
				require.Equal(w, []time.Duration{10 * m, 20 * m, 40 * m, 60 * m, 60 * m}, waits)
				w.blockedBy(policy.BlockedRepeatedState)
			},
		},
		{
			name: "the same look twice counts once", options: probed, given: func(w *walk) { standing(w); w.take(read("unchanged")(w)) },
			verdict: kernel.NoOp, code: policy.CodeDuplicate,
			event: func(w *walk) policy.Event {
				return policy.SemanticStateChanged{Blocker: w.s.Blocker.ID, Look: 0, Fingerprint: "unchanged"}
			},
		},
		{
			name: "a look that was made for an earlier block rearms nothing", options: probed, given: standing, verdict: kernel.Reject,
			code: policy.CodeProbeStale,
			event: func(*walk) policy.Event {
				return policy.SemanticStateChanged{Blocker: "bl_earlier", Fingerprint: "changed"}
			},
		},
		{
			name: "a look that could read nothing", options: probed, given: standing, event: read(""), verdict: kernel.NeedsEvidence,
			code: policy.CodeUnchanged,
		},
		{
			name: "an operator's note is a change", given: repeated, then: released,
			event: func(*walk) policy.Event {
				return policy.SemanticStateChanged{Operator: "ann", Note: "the licence arrived"}
			},
		},
		{
			name: "an operator without a note", given: repeated, verdict: kernel.NeedsEvidence, code: policy.CodeUnchanged,
			event: func(*walk) policy.Event { return policy.SemanticStateChanged{Operator: "ann"} },
		},
		{
			name: "a resume with a note is a change, and its note reaches the prompt", given: repeated,
			event: func(w *walk) policy.Event {
				e := w.resume(w.s.Blocker.ID)
				e.Note = "the licence arrived"
				return e
			},
			then: func(w *walk, old policy.State) {
				released(w, old)
				require.Equal(w, policy.KindResume, w.s.Effect.Kind)
				text, err := w.s.Prompt(w.s.Effect)
				require.NoError(w, err)
				require.Contains(w, text, "the licence arrived")
			},
		},
		{
			name: "a resume without a note", given: repeated, verdict: kernel.NeedsEvidence, code: policy.CodeUnchanged,
			event: func(w *walk) policy.Event { return w.resume(w.s.Blocker.ID) },
		},
		{
			name: "a change elsewhere changes nothing", verdict: kernel.Reject, code: policy.CodeIllegal,
			event: func(*walk) policy.Event { return policy.SemanticStateChanged{Operator: "ann", Note: "changed"} },
		},
	})
	t.Run("a turn that has not settled is not released by the change", func(t *testing.T) {
		w := start(t)
		for w.s.Blocker == nil {
			w.claimed()
			if w.n > 0 {
				w.n--
			}
			early(w, receipt.Continue)
			if w.s.Blocker == nil {
				w.take(release(w))
			}
		}
		w.refused(kernel.Reject, policy.CodeIllegal, release(w))
		w.take(policy.SemanticStateChanged{Operator: "ann", Note: "changed"})
		w.is(policy.PendingRelease, policy.OweRelease)
		w.take(release(w))
		w.is(policy.Dispatching, policy.OweSend)
	})
}
