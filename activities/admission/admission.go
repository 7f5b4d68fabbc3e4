// Package admission resolves a start, once, on the worker that accepts it: everything that a run has to know and that
// workflow code may not read by itself. It judges only what the input says; the policy judges the lineage.
package admission

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"steward/activities"
	"steward/config/sites"
	"steward/workflows/machine/strict"
	"steward/workflows/run/goal"
)

// Admission is the activity Admit with what it needs.
type Admission struct {
	Client client.Client
	Sites  *sites.Registry
	// Host is where this worker runs: the default for the checks.
	Host   string
	Worker activities.Worker
}

// Admit reads a start strictly, resolves its site, and reads what the same workflow id left behind. What is wrong with the
// start is a problem in the result; the error is only for what another attempt may mend.
func (a *Admission) Admit(ctx context.Context, in activities.AdmitInput) (activities.AdmitResult, error) {
	result := activities.AdmitResult{RunID: in.RunID, Worker: a.Worker}
	left, err := lineage(ctx, a.Client, in.WorkflowID, in.RunID)
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	result.Lineage = left
	if err != nil {
		result.LineageError = err.Error()
	}
	start, problems := Resolve(in.Start, a.Sites, a.Host)
	result.Problems = append(problems, start.idProblems(in.WorkflowID)...)
	result.Goal, result.Site = start.Goal, start.Site
	return result, nil
}

// Start is a start input that was read and resolved.
type Start struct {
	// Goal has every default filled in.
	Goal goal.Goal
	Site goal.SiteFacts
	// WorkflowID is the id that the run must have; empty when the input does not say enough.
	WorkflowID string
}

// Resolve reads a start input and resolves its target with the site profiles at hand. Both a worker and the command that
// starts a run use it, so that a person reads the same text from either.
func Resolve(raw []byte, registry *sites.Registry, host string) (Start, []strict.Problem) {
	g, problems := goal.Decode(raw)
	facts, unresolved := resolveSite(g, registry)
	problems = strict.Merge(problems, unresolved)
	var start Start
	if len(unresolved) == 0 && (facts.ConversationID != "" || g.Target.New != nil) {
		start.WorkflowID = goal.WorkflowID(g, facts)
	}
	if len(problems) > 0 {
		return start, problems
	}
	facts.Host = host
	start.Goal, start.Site = g.Normalize(facts), facts
	return start, nil
}

// resolveSite finds the facts of the target's site. A target that says nothing usable has no facts and no problem of its
// own: decoding has told it.
func resolveSite(g goal.Goal, registry *sites.Registry) (goal.SiteFacts, []strict.Problem) {
	if g.Target.Site == "" {
		return goal.SiteFacts{}, nil
	}
	site, err := registry.Site(g.Target.Site)
	if err != nil {
		return goal.SiteFacts{}, []strict.Problem{{Path: "target.site", Message: err.Error()}}
	}
	facts := goal.SiteFacts{
		Site: site.Name, Origins: site.Origins, MinInterval: goal.Duration(site.Timings.MinInterval),
		ProbeMessage: site.MessageProbe.Allowed, Pace: pace(site.Timings.Pace),
	}
	path := "target.conversation_url"
	switch {
	case g.Target.ConversationURL != "":
		facts.ConversationID, facts.ConversationURL, err = site.Conversation(g.Target.ConversationURL)
	case g.Target.New != nil:
		path = "target.new.page_url"
		facts.PageURL, err = site.NewChat(g.Target.New.PageURL)
	}
	if err != nil {
		return facts, []strict.Problem{{Path: path, Message: err.Error()}}
	}
	return facts, nil
}

func pace(p sites.Pace) goal.Pace {
	durations := func(list []time.Duration) (out []goal.Duration) {
		for _, d := range list {
			out = append(out, goal.Duration(d))
		}
		return out
	}
	return goal.Pace{
		Retry: goal.Duration(p.Retry), Defer: goal.Duration(p.Defer), Probe: goal.Duration(p.Probe), Heartbeat: goal.Duration(p.Heartbeat),
		Reconcile: durations(p.Reconcile), Unclear: durations(p.Unclear),
	}
}

// idProblems refuses a workflow id that is not the one of the goal: the id is what keeps a conversation to one open run.
func (s Start) idProblems(workflowID string) []strict.Problem {
	if s.WorkflowID == "" || s.WorkflowID == workflowID {
		return nil
	}
	return []strict.Problem{{Message: fmt.Sprintf(
		"the workflow id is %q; the run of this target must be started as %q", workflowID, s.WorkflowID)}}
}
