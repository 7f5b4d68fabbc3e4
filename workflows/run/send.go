package run

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
)

const (
	// workerWait is how long an effect waits for a worker; after that the server itself proves that nobody began it.
	workerWait = 10 * time.Minute
	sendTime   = 5 * time.Minute
)

func effectOptions(s policy.State, o kernel.Obligation) workflow.ActivityOptions {
	return machine.Effect(workflows.QueueSend(s.Goal.Target.Browser), o.Summary, machine.Times{
		ScheduleToStart: workerWait, StartToClose: sendTime, Heartbeat: s.Site.Pace.Filled().Heartbeat.Std(),
	})
}

func conversation(s policy.State) activities.Conversation {
	c := activities.Conversation{
		Site: s.Site.Site, Browser: s.Goal.Target.Browser, ID: s.Site.ConversationID, URL: s.Site.ConversationURL, PageURL: s.Site.PageURL,
	}
	if n := s.Goal.Target.New; n != nil && c.ID == "" {
		c.NewKey = n.Key
	}
	return c
}

func send(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	tried := policy.Attempted{EffectID: s.Effect.ID, Generation: s.Effect.Generation, Attempt: s.Dispatches}
	text, err := s.Prompt(s.Effect)
	if err != nil {
		return policy.ProviderDispatchFailed{Attempted: tried, Code: "prompt_unavailable", Detail: err.Error()}
	}
	in := activities.SendInput{
		RunID: workflow.GetInfo(ctx).WorkflowExecution.RunID, TaskID: s.TaskID, Conversation: conversation(s), EffectID: s.Effect.ID, Generation: s.Effect.Generation,
		Kind: string(s.Effect.Kind), Prompt: text, PromptDigest: s.Effect.PromptDigest,
	}
	if s.Effect.Fenced {
		in.Fence = &activities.Fence{SourceEffect: s.Effect.Source, AnswerDigest: s.Effect.SourceAnswer}
	}
	out, failure := machine.Do[activities.SendResult](ctx, effectOptions(s, o), workflows.ActivitySend, in)
	if failure != nil {
		return lost(tried, *failure)
	}
	return sent(tried, out)
}

// sent turns the evidence of an attempt into the event that it is.
func sent(tried policy.Attempted, out activities.SendResult) policy.Event {
	tried.SiteDigest = out.SiteDigest
	tried.Worker = worker(out.Worker)
	switch out.Outcome {
	case activities.SendCommitted:
		return policy.ProviderDispatchSucceeded{
			Attempted: tried, At: out.CommittedAt, UserMessageID: out.UserMessageID,
			ConversationID: out.ConversationID, ConversationURL: out.ConversationURL,
		}
	case activities.SendReturned:
		if out.Code == activities.CodeUnreachable {
			out.Code = policy.FailureUnreachable
		}
		return policy.ProviderDispatchFailed{Attempted: tried, Code: out.Code, Detail: out.Detail}
	case activities.SendMissing:
		return policy.ProviderDispatchFailed{Attempted: tried, Code: policy.FailureConversationMissing, Detail: out.Detail}
	case activities.SendDrift:
		return policy.ProviderDispatchFailed{Attempted: tried, Code: policy.FailureDrift, Detail: out.Detail}
	case activities.SendDeferred:
		return policy.ProviderDispatchDeferred{Attempted: tried, Class: out.Class, Until: out.Until, Detail: out.Detail}
	case activities.SendUserAction:
		return policy.ProviderUserActionRequired{Attempted: tried, Class: out.Class, Detail: out.Detail}
	}
	return policy.ProviderDispatchOutcomeUnknown{Attempted: tried, Code: out.Code, Detail: out.Detail}
}

// lost turns the failure of an attempt that brought no evidence of its own into the event that it proves.
func lost(tried policy.Attempted, f machine.Failure) policy.Event {
	switch f.Cause {
	case machine.NeverStarted:
		class := activities.DeferWorkerUnavailable
		if f.Type == "Cancelled" {
			class = activities.DeferCancelled
		}
		return policy.ProviderDispatchDeferred{Attempted: tried, Class: class, Detail: f.Message}
	case machine.Lost:
		var progress activities.SendProgress
		armed := f.HasDetails() && (f.Details(&progress) != nil || progress.Armed != 0)
		return policy.RuntimeOrSessionEvicted{Attempted: tried, Armed: armed}
	}
	return policy.ProviderDispatchOutcomeUnknown{Attempted: tried, Code: "activity_" + string(f.Cause), Detail: f.Type + " " + f.Message}
}

func worker(w activities.Worker) policy.Worker {
	return policy.Worker{Release: w.Release, Incarnation: w.Incarnation}
}

func interrupt(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	out, failure := machine.Do[activities.InterruptResult](ctx, effectOptions(s, o), workflows.ActivityInterrupt, activities.InterruptInput{
		RunID: workflow.GetInfo(ctx).WorkflowExecution.RunID, ID: s.InterruptID(), TaskID: s.TaskID, EffectID: s.Effect.ID, Conversation: conversation(s),
	})
	outcome := policy.InterruptUnproven
	switch {
	case failure != nil:
	case out.Stopped:
		outcome = policy.InterruptStopped
	case out.Pressed:
		outcome = policy.InterruptPressed
	}
	return policy.InterruptObserved{EffectID: s.Effect.ID, Outcome: outcome}
}

func probe(ctx workflow.Context, s policy.State, o kernel.Obligation) policy.Event {
	e := policy.ProviderEnvironmentRecovered{Probe: s.ProbeID(), Blocker: s.Blocker.ID, Revision: s.Blocker.Revision}
	out, failure := machine.Do[activities.ProbeResult](ctx, effectOptions(s, o), workflows.ActivityProbe, activities.ProbeInput{
		RunID: workflow.GetInfo(ctx).WorkflowExecution.RunID, ID: e.Probe, Level: s.ProbeLevel(), Conversation: conversation(s),
	})
	if failure != nil {
		e.Class, e.Detail = string(failure.Cause), failure.Message
		return e
	}
	e.Passed, e.Level, e.Class, e.Detail = out.Passed, out.Level, out.Class, out.Detail
	e.SiteDigest, e.Worker = out.SiteDigest, worker(out.Worker)
	return e
}
