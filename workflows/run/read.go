package run

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
)

const (
	admitTime     = 2 * time.Minute
	lookHeartbeat = 30 * time.Second
	lookTime      = 10 * time.Minute
	// progressTime is beside the time that the checks among the probes may take.
	progressTime = 5 * time.Minute
)

// admit resolves the start. All problems come back at once; the policy refuses the start with them.
func admit(ctx workflow.Context, input json.RawMessage) policy.Event {
	info := workflow.GetInfo(ctx)
	start := policy.Start{WorkflowID: info.WorkflowExecution.ID, RunID: info.OriginalRunID}
	if start.RunID == "" {
		start.RunID = info.WorkflowExecution.RunID
	}
	o := machine.Read("", "resolve the start", machine.Times{StartToClose: admitTime, Heartbeat: lookHeartbeat})
	out, failure := machine.Do[activities.AdmitResult](ctx, o, workflows.ActivityAdmit, activities.AdmitInput{
		Start: input, WorkflowID: start.WorkflowID, RunID: info.WorkflowExecution.RunID,
	})
	if failure != nil {
		start.Problems = []string{"the start could not be resolved: " + failure.Message}
		return policy.OccurrenceRequested{Start: &start}
	}
	for _, p := range out.Problems {
		start.Problems = append(start.Problems, p.String())
	}
	start.Goal, start.Site, start.LineageError = &out.Goal, &out.Site, out.LineageError
	if l := out.Lineage; l != nil {
		start.Lineage = &policy.Lineage{RunID: l.RunID, Closed: l.Closed, State: &policy.State{}}
		if err := json.Unmarshal(l.State, start.Lineage.State); err != nil {
			start.Lineage, start.LineageError = nil, fmt.Sprintf("run %s left a state that this release cannot read: %v", l.RunID, err)
		} else if start.Lineage.State.RunID == start.RunID { // the history was reset to before its admission, and this is all that it lost
			machine.Known(ctx, out.RunID)
		}
	}
	if len(start.Problems) == 0 && len(out.Goal.Completion.Checks)+len(out.Goal.Progress) > 0 {
		baseline(ctx, out.Goal, &start)
	}
	return policy.OccurrenceRequested{Start: &start}
}

// baseline asks the host of the checks what it refuses, and what its evidence files count now.
func baseline(ctx workflow.Context, g goal.Goal, start *policy.Start) {
	o := machine.Read(workflows.QueueChecks(g.Completion.Host), "what the checks worker refuses, and the counts of evidence files now",
		machine.Times{ScheduleToStart: workerWait, StartToClose: lookTime, Heartbeat: lookHeartbeat})
	out, failure := machine.Do[activities.BaselineResult](ctx, o, workflows.ActivityBaseline, activities.BaselineInput{Goal: g})
	switch {
	case failure != nil:
		start.Problems = append(start.Problems, fmt.Sprintf(
			"completion.host: the checks worker on %s did not answer (%s); start `steward worker --roles checks` there, or name another host",
			g.Completion.Host, failure.Message))
	default:
		for _, p := range out.Problems {
			start.Problems = append(start.Problems, p.String())
		}
		start.Totals = out.Totals
	}
}

func readOptions(s policy.State, o kernel.Obligation, t machine.Times) workflow.ActivityOptions {
	t.Heartbeat = lookHeartbeat
	return machine.Read(workflows.QueueRead(s.Goal.Target.Browser), o.Summary, t)
}

// look follows the turn of the present effect until it settles, or until a person should hear of it.
func look(ctx workflow.Context, s policy.State, o kernel.Obligation) (activities.ObserveResult, *machine.Failure) {
	patience := s.Goal.Continuation.AttentionAfter.Std()
	until := workflow.Now(ctx).Add(patience)
	return machine.Do[activities.ObserveResult](ctx, readOptions(s, o, machine.Times{StartToClose: patience + lookTime}), workflows.ActivityObserve,
		activities.ObserveInput{
			TaskID: s.TaskID, Conversation: conversation(s), EffectID: s.Effect.ID, Want: s.Want(),
			NotBefore: s.Turn.NotBefore, SettledNotBefore: s.NextTurnAt(), Until: until,
		})
}

func observe(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	e := policy.EffectObserved{EffectID: s.Effect.ID, Look: s.Turn.Look}
	out, failure := look(ctx, s, o)
	if failure != nil {
		e.Turn, e.Class, e.Detail = policy.TurnUnread, string(failure.Cause), failure.Message
		return e
	}
	e.Turn, e.Class, e.Detail = string(out.Turn), out.Class, out.Detail
	e.SeenAt, e.SettledAt, e.ActivityAt = out.SeenAt, out.SettledAt, out.ActivityAt
	e.Reading, e.AnswerDigest = out.Reading, out.AnswerDigest
	e.ConversationID, e.ConversationURL = out.ConversationID, out.ConversationURL
	e.SiteDigest, e.Worker = out.SiteDigest, worker(out.Worker)
	e.Late = late(ctx, s)
	if e.Reading.Receipt != nil && len(s.Goal.Progress) > 0 {
		e.Progress = readProgress(ctx, s)
	}
	return e
}

// late looks for the markers of superseded effects, once a turn: one that stands there after all has to be told.
func late(ctx workflow.Context, s policy.State) (seen []string) {
	for _, id := range s.Watched() {
		o := machine.Read(workflows.QueueRead(s.Goal.Target.Browser), "look for the superseded "+id,
			machine.Times{StartToClose: lookTime, ScheduleToClose: 2 * lookTime, Heartbeat: lookHeartbeat})
		c := conversation(s)
		if key := s.NewKey(id); key != "" {
			c.ID, c.URL, c.NewKey = "", "", key
		}
		out, failure := machine.Do[activities.ReconcileResult](ctx, o, workflows.ActivityReconcile,
			activities.ReconcileInput{TaskID: s.TaskID, Conversation: c, EffectID: id})
		if failure == nil && out.Marker {
			seen = append(seen, id)
		}
	}
	return seen
}

func release(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	e := policy.ControllerReleaseObserved{EffectID: s.Effect.ID}
	if out, failure := look(ctx, s, o); failure == nil && out.Turn.Ended() {
		if e.At = out.SettledAt; e.At.IsZero() {
			e.At = workflow.Now(ctx)
		}
	}
	return e
}

func reconcile(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	e := policy.ProviderEffectReconciled{EffectID: s.Effect.ID, Generation: s.Effect.Generation, Look: s.Effect.Look}
	out, failure := machine.Do[activities.ReconcileResult](ctx,
		readOptions(s, o, machine.Times{StartToClose: lookTime, ScheduleToClose: 2 * lookTime}),
		workflows.ActivityReconcile, activities.ReconcileInput{TaskID: s.TaskID, Conversation: conversation(s), EffectID: s.Effect.ID})
	if failure != nil {
		return e
	}
	e.Readable, e.Marker, e.UserMessageID = out.Readable, out.Marker, out.UserMessageID
	e.ConversationID, e.ConversationURL = out.ConversationID, out.ConversationURL
	e.SiteDigest, e.Worker = out.SiteDigest, worker(out.Worker)
	return e
}

// runIDs are the names by which an evidence file may say that it belongs to this run.
func runIDs(s policy.State) []string {
	return []string{s.TaskID, s.WorkflowID, s.Site.ConversationID, s.Scope}
}

func checkOptions(s policy.State, summary string, longest time.Duration) workflow.ActivityOptions {
	return machine.Read(workflows.QueueChecks(s.Goal.Completion.Host), summary, machine.Times{
		ScheduleToStart: workerWait, StartToClose: longest, Heartbeat: lookHeartbeat, ScheduleToClose: workerWait + 2*longest,
	})
}

// validate runs every check of the completion contract. Checks that could not run at all are no results: the policy takes
// that as "cannot tell".
func validate(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	e := policy.ProposalValidated{Completion: s.Proposal.Completion, Run: s.Proposal.Runs}
	c := s.Goal.Completion
	out, failure := machine.Do[activities.CheckResult](ctx, checkOptions(s, o.Summary, c.Timeout()), workflows.ActivityChecks,
		activities.CheckInput{Checks: c.Checks, Totals: s.Totals, RunIDs: runIDs(s)})
	if failure != nil {
		return e
	}
	for _, r := range out.Evidence {
		e.Results = append(e.Results, policy.CheckVerdict{
			Name: r.Name, Outcome: string(r.Outcome), Code: r.Code, Revision: r.Revision, Line: r.Line,
		})
	}
	return e
}

func progress(ctx workflow.Context, s policy.State, _ kernel.Obligation) policy.Event {
	return policy.SemanticStateChanged{Blocker: s.Blocker.ID, Look: s.Blocker.Probes, Fingerprint: readProgress(ctx, s)}
}

// readProgress is the digest of the progress probes. What cannot be read is no progress: the last digest again.
func readProgress(ctx workflow.Context, s policy.State) string {
	c := s.Goal.Completion
	out, failure := machine.Do[activities.ProgressResult](ctx, checkOptions(s, "read the progress probes", progressTime+c.Timeout()),
		workflows.ActivityProgress, activities.ProgressInput{Probes: s.Goal.Progress, Checks: c.Checks, Totals: s.Totals, RunIDs: runIDs(s)})
	if failure != nil {
		return s.Completion.Progress
	}
	return out.Digest
}
