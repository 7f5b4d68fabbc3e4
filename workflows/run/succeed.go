package run

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
)

const resolveTime = time.Minute

// succeed hands over. The same conversation goes on in this run, which then continues as new; another conversation gets a
// run of its own that has started before this one ends.
func succeed(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	e := policy.SuccessorBound{Succession: s.Succession.ID}
	if s.Succession.ConversationURL == "" {
		machine.Renew(ctx)
		e.Successor = s.WorkflowID
		return e
	}
	options := machine.Read("", "resolve the address of the successor", machine.Times{StartToClose: resolveTime})
	out, failure := machine.Do[activities.ResolveResult](ctx, options, workflows.ActivityResolve, activities.ResolveInput{
		Site: s.Goal.Target.Site, ConversationURL: s.Succession.ConversationURL,
	})
	switch {
	case failure != nil:
		e.Refused = "the address could not be resolved: " + failure.Message
		return e
	case out.Problem != "":
		e.Refused = out.Problem
		return e
	}
	id := goal.WorkflowID(*s.Goal, out.Site)
	if id == s.WorkflowID {
		e.Refused = "it is the conversation of this run"
		return e
	}
	err := machine.Succeed(ctx, id, o.Summary, s.Successor(out.Site, workflow.Now(ctx)))
	switch {
	case err == nil:
		e.Successor = id
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		e.Successor, e.Owned = id, true
	default:
		e.Refused = "the successor could not be started: " + err.Error()
	}
	return e
}
