// Package discover is DiscoveryScan: a short workflow that looks at the page of one project and puts the conversations that its
// input chooses to work, each once. A Temporal Schedule repeats it. It has no policy: what is sent to a conversation, and
// whether at all, is for the conversation's own WorkflowRun to decide.
package discover

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"steward/activities"
	"steward/workflows"
	"steward/workflows/discover/scan"
	"steward/workflows/machine"
	"steward/workflows/machine/strict"
)

const (
	resolveTime = 2 * time.Minute
	readTime    = 5 * time.Minute
	// workerWait is how long a read waits for a browser worker, with all its retries.
	workerWait = 15 * time.Minute
	heartbeat  = 30 * time.Second
)

// scanning is one scan on its way.
type scanning struct {
	scan   scan.Scan
	result scan.Result
	// left is how many runs this scan may still start.
	left int
	// doing is what it does now.
	doing string
}

// Workflow is registered as workflows.TypeDiscoveryScan. Its input is a scan.Scan as JSON; the result of the scan before it,
// of the same schedule, tells what is known already. It fails as workflows.FailureScanRefused with every problem of its
// input, or as workflows.FailureScanUnreadable when the page could not be read.
func Workflow(ctx workflow.Context, input json.RawMessage) (scan.Result, error) {
	s := &scanning{doing: "resolve the input"}
	err := workflow.SetQueryHandlerWithOptions(ctx, workflows.QueryState, func() (scan.Result, error) { return s.result, nil },
		workflow.QueryHandlerOptions{Description: "What the scan has seen and done so far."})
	if err != nil {
		return s.result, err
	}
	if err := s.admit(ctx, input); err != nil {
		return s.result, err
	}
	if err := s.discover(ctx); err != nil {
		return s.result, err
	}
	if err := s.enroll(ctx); err != nil {
		return s.result, err
	}
	s.at(ctx, "")
	return s.result, nil
}

// at says what the scan does now, for people.
func (s *scanning) at(ctx workflow.Context, doing string) {
	s.doing = doing
	workflow.SetCurrentDetails(ctx, s.page())
}

func (s *scanning) admit(ctx workflow.Context, input json.RawMessage) error {
	info := workflow.GetInfo(ctx)
	o := machine.Read("", "resolve the input of the scan", machine.Times{StartToClose: resolveTime, ScheduleToClose: workerWait})
	out, failure := machine.Do[activities.AdmitScanResult](ctx, o, workflows.ActivityAdmitScan, activities.AdmitScanInput{
		Scan: input, WorkflowID: info.WorkflowExecution.ID,
	})
	if failure != nil {
		return refused([]strict.Problem{{Message: "the input could not be resolved: " + failure.Message}})
	}
	if len(out.Problems) > 0 {
		return refused(out.Problems)
	}
	s.scan, s.left = out.Scan, *out.Scan.MaxEnrollments
	s.result = scan.Result{
		Site: out.Scan.Site, Browser: out.Scan.Browser, Project: out.Project, PageURL: out.Scan.PageURL, At: workflow.Now(ctx),
	}
	site := workflows.AttributeSite.ValueSet(out.Scan.Site)
	if err := workflow.UpsertTypedSearchAttributes(ctx, site); err != nil {
		return err
	}
	var before scan.Result
	if workflow.HasLastCompletionResult(ctx) && workflow.GetLastCompletionResult(ctx, &before) == nil && before.Project == out.Project {
		s.result.Inventory = before.Inventory
	}
	return nil
}

func refused(problems []strict.Problem) error {
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = p.String()
	}
	return temporal.NewApplicationErrorWithOptions(workflows.FailureScanRefused+":\n- "+strings.Join(lines, "\n- "),
		workflows.FailureScanRefused, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{problems}})
}

func (s *scanning) read(summary string) workflow.ActivityOptions {
	return machine.Read(workflows.QueueRead(s.scan.Browser), summary,
		machine.Times{StartToClose: readTime, ScheduleToClose: workerWait, Heartbeat: heartbeat})
}

// discover reads the page. What an earlier scan knew stays known.
func (s *scanning) discover(ctx workflow.Context) error {
	s.at(ctx, "read the page of the project")
	out, failure := machine.Do[activities.DiscoverResult](ctx, s.read("list the conversations of "+s.result.Project), workflows.ActivityDiscover,
		activities.DiscoverInput{Site: s.scan.Site, Browser: s.scan.Browser, PageURL: s.scan.PageURL, Most: *s.scan.MaxConversations})
	if failure != nil {
		out.Class, out.Detail = string(failure.Cause), failure.Message
	}
	if failure != nil || !out.Readable {
		return temporal.NewApplicationErrorWithOptions(
			fmt.Sprintf("the page of the project could not be read (%s): %s; `steward browser probe` tells what is missing", out.Class, out.Detail),
			workflows.FailureScanUnreadable, temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{s.result}})
	}
	before := s.result.Inventory
	s.result.Listed, s.result.Complete, s.result.Contradictions = len(out.Conversations), out.Complete, out.Contradictions
	s.result.Inventory = scan.Merge(before, out.Conversations, s.result.At)
	for i := range out.Conversations { // the others keep their standing
		e := &s.result.Inventory[i]
		e.Standing = s.scan.Stands(e.Conversation, scan.Find(before, e.ID))
	}
	return s.known(ctx, len(out.Conversations))
}

// known marks the listed candidates that have or had a run.
func (s *scanning) known(ctx workflow.Context, listed int) error {
	var ids []string
	for _, e := range s.result.Inventory[:listed] {
		if e.Standing == scan.Candidate {
			ids = append(ids, s.run(e))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	o := machine.Read("", "look for runs of the chosen conversations",
		machine.Times{StartToClose: resolveTime, ScheduleToClose: workerWait, Heartbeat: heartbeat})
	out, failure := machine.Do[activities.KnownRunsResult](ctx, o, workflows.ActivityKnownRuns, activities.KnownRunsInput{WorkflowIDs: ids})
	if failure != nil {
		return temporal.NewApplicationError("the runs of the conversations could not be looked for: "+failure.Message, workflows.FailureScanUnreadable)
	}
	for i := range s.result.Inventory[:listed] {
		e := &s.result.Inventory[i]
		if status, has := out.Status[s.run(*e)]; has && e.Standing == scan.Candidate {
			e.Standing, e.Run, e.Detail = scan.Known, s.run(*e), strings.ToLower(status)
		}
	}
	return nil
}

// run is the workflow id of the run of a conversation.
func (s *scanning) run(e scan.Entry) string { return "run:" + s.scan.Site + ":" + e.ID }

// enroll looks into each candidate and starts its run. The server refuses a second run of the same id, so that no repeated,
// concurrent or restarted scan asks a conversation twice.
func (s *scanning) enroll(ctx workflow.Context) error {
	for i := range s.result.Inventory {
		e := &s.result.Inventory[i]
		if e.Standing != scan.Candidate {
			continue
		}
		if s.left == 0 {
			e.Standing = scan.Postponed
			continue
		}
		s.at(ctx, "look into "+e.URL)
		if s.inspect(ctx, e); e.Standing == scan.Candidate {
			s.start(ctx, e)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// inspect leaves a candidate one only when it was read as a whole and shows nothing that speaks against it.
func (s *scanning) inspect(ctx workflow.Context, e *scan.Entry) {
	out, failure := machine.Do[activities.InspectResult](ctx, s.read("look into "+e.ID+" before it is enrolled"), workflows.ActivityInspect,
		activities.InspectInput{Conversation: activities.Conversation{Site: s.scan.Site, Browser: s.scan.Browser, ID: e.ID, URL: e.URL}})
	switch {
	case failure != nil:
		e.Standing, e.Detail = scan.Unreadable, failure.Message
	case out.Moved:
		e.Standing, e.Detail = scan.Moved, out.Detail
	case out.Supervised:
		e.Standing, e.Detail = scan.Supervised, "it holds a message of Steward"
	case !out.Readable:
		e.Standing, e.Detail = scan.Unreadable, strings.TrimSpace(out.Class+" "+out.Detail)
	}
}

// start starts the run as an abandoned child: it outlives the scan.
func (s *scanning) start(ctx workflow.Context, e *scan.Entry) {
	e.Run = s.run(*e)
	options := workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID: e.Run, TaskQueue: workflows.QueueRun, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary:         "adopted: " + e.ID,
		StaticDetails:         "Found by the scan of project " + s.result.Project + ".",
	})
	child := workflow.ExecuteChildWorkflow(options, workflows.TypeWorkflowRun, s.scan.Start(e.URL))
	err := child.GetChildWorkflowExecution().Get(ctx, nil)
	switch {
	case err == nil:
		e.Standing, e.Detail = scan.Enrolled, ""
		s.result.Started = append(s.result.Started, e.Run)
		s.left--
	case temporal.IsWorkflowExecutionAlreadyStartedError(err):
		e.Standing, e.Detail = scan.Known, "it has a run, or had one"
	default:
		e.Standing, e.Detail = scan.Refused, err.Error()
	}
}
