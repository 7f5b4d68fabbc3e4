package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// The largest state that a run can be driven to: a full ledger, long words of the assistant, of checks, activities and
// people, everywhere at once.
func TestStateStaysSmall(t *testing.T) {
	for name, c := range map[string]struct {
		letter string
		bound  int
	}{
		"plain text": {"w", maxState}, "text outside ASCII": {"界", maxState}, "text that JSON escapes": {"<", 4 * maxState},
	} {
		t.Run(name, func(t *testing.T) {
			long := strings.Repeat(c.letter, 100000)
			w := start(t, func(g *goal.Goal, _ *goal.SiteFacts) {
				g.Completion.Checks = nil
				for i := range 32 {
					check := goal.Check{Name: fmt.Sprint("check-", i), File: &goal.File{Path: "/x"}}
					g.Completion.Checks = append(g.Completion.Checks, check)
				}
				g.UserBlocker.Allowed = []string{"other"}
			}, rounds(1000), repeats(100), violations(20))
			tried := func() policy.Attempted {
				a := w.tried()
				a.SiteDigest, a.Worker.Release = strings.Repeat("d", 64), strings.Repeat("r", 64)
				return a
			}
			for i := range 12 {
				w.begin()
				w.take(policy.ProviderDispatchOutcomeUnknown{Attempted: tried(), Code: long, Detail: long})
				if i < 10 {
					w.take(supersede(w))
				} else {
					w.take(withoutLook(w))
				}
			}
			largest := 0
			for range 60 {
				w.begin()
				e := policy.ProviderDispatchSucceeded{Attempted: tried(), At: w.at, UserMessageID: long}
				w.take(e)
				r := w.receipt(receipt.Done)
				r.Checkpoint, r.Reason = long[:6000], long[:6000]
				r.Evidence = nil
				for range receipt.MaxEvidence {
					r.Evidence = append(r.Evidence, long[:3000])
				}
				turn := w.turn(r)
				turn.Class, turn.Detail = long, long
				w.take(turn)
				var results []policy.CheckVerdict
				for _, check := range w.s.Goal.Completion.Checks {
					results = append(results, policy.CheckVerdict{Name: check.Name, Outcome: policy.CheckCannotTell, Code: long, Revision: long, Line: long})
				}
				w.take(policy.ProposalValidated{Completion: w.s.Completion.ID, Results: results})
				largest = max(largest, size(t, w.s))
				for i := range results {
					results[i].Outcome = policy.CheckFail
				}
				w.take(policy.ProposalValidated{Completion: w.s.Completion.ID, Run: 1, Results: results})
				largest = max(largest, size(t, w.s))
			}
			t.Logf("%d bytes", largest)
			require.Less(t, largest, c.bound)
		})
	}
}
