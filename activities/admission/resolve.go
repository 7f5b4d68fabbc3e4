package admission

import (
	"context"

	"steward/activities"
	"steward/workflows/run/goal"
)

// ResolveConversation finds the facts of an address that a run is to move to, and what earlier runs of that conversation left
// behind. What is wrong with it is a problem in the result, never an error.
func (a *Admission) ResolveConversation(ctx context.Context, in activities.ResolveInput) (activities.ResolveResult, error) {
	facts, problems := resolveSite(goal.Goal{Target: goal.Target{Site: in.Site, ConversationURL: in.ConversationURL}}, a.Sites)
	if len(problems) > 0 {
		return activities.ResolveResult{Problem: problems[0].String()}, nil
	}
	if facts.ConversationID == "" {
		return activities.ResolveResult{Problem: "target.conversation_url: names no conversation"}, nil
	}
	facts.Host = a.Host
	result := activities.ResolveResult{Site: facts}
	left, err := lineageBefore(ctx, a.Client, goal.WorkflowID(goal.Goal{}, facts))
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	if result.Lineage = left; err != nil {
		result.LineageError = err.Error()
	}
	return result, nil
}
