package run

import (
	"encoding/json"
	"fmt"
	"strings"
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
	target, refused := earlier(s, out)
	if refused != "" {
		e.Refused = refused
		return e
	}
	err := machine.Succeed(ctx, id, o.Summary, s.Successor(out.Site, target, workflow.Now(ctx)))
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

// earlier is what the earlier runs of the conversation to move to left behind, or why they forbid it.
func earlier(s policy.State, out activities.ResolveResult) (target *policy.Lineage, refused string) {
	unreadable := func(err string) (*policy.Lineage, string) {
		return nil, fmt.Sprintf("%s: what earlier runs of that conversation left behind cannot be read (%s)", policy.CodeLineageUnreadable, err)
	}
	if out.LineageError != "" {
		return unreadable(out.LineageError)
	}
	if l := out.Lineage; l != nil {
		target = &policy.Lineage{RunID: l.RunID, Closed: l.Closed, State: &policy.State{}}
		if err := json.Unmarshal(l.State, target.State); err != nil {
			return unreadable(err.Error())
		}
	}
	return target, strings.Join(s.Barred(target), "; ")
}
