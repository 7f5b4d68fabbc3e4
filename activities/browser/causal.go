package browser

import (
	"context"
	"slices"
	"strings"
	"time"

	"steward/activities"
	"steward/workflows/run/receipt"
)

// causal checks that the conversation still ends with what this prompt follows. A page that is still loading may not show
// the end yet, so that a difference must last.
func (s *sending) causal(ctx context.Context) error {
	f := s.in.Fence
	deadline := time.Now().Add(max(s.place.site.Settle.Stable, pace))
	for {
		problem := ""
		switch last := s.base.Last; {
		case last == nil:
			problem = "it shows no user message"
		case !strings.Contains(last.Text, marker(f.SourceEffect)):
			problem = "its latest user message is not that of the turn this prompt follows"
		case f.AnswerDigest != "" && receipt.TextDigest(s.base.LastAnswer.Texts) != f.AnswerDigest:
			problem = "its latest answer is not the one this prompt follows"
		case f.AnswerDigest == "" && receipt.CanonicalText(s.base.LastAnswer.Texts) != "":
			problem = "its latest turn has an answer now"
		}
		if problem == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return deferred(activities.DeferConversationMoved, "conversation_moved", problem, time.Time{})
		}
		if err := sleep(ctx, pace); err != nil {
			return err
		}
		l, err := s.tab.look(s.place.site, lookQuery{Marker: s.marker, Texts: true})
		if err != nil {
			return err
		}
		s.base = l
	}
}

// sameEnd tells whether two looks saw the same end of the conversation.
func sameEnd(a, b look) bool {
	if (a.Last == nil) != (b.Last == nil) {
		return false
	}
	return a.Last == nil || *a.Last == *b.Last && slices.Equal(a.LastAnswer.Texts, b.LastAnswer.Texts)
}
