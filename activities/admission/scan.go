package admission

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"

	"steward/activities"
	"steward/config/sites"
	"steward/workflows/discover/scan"
	"steward/workflows/machine/strict"
)

// ResolvedScan is the input of a scan that was read and resolved.
type ResolvedScan struct {
	// Scan has every default filled in and the canonical address of the project's page.
	Scan scan.Scan
	// Project is the id of the project, WorkflowID the id that the scan must have; empty when the input does not say enough.
	Project    string
	WorkflowID string
}

// AdmitScan reads the input of a scan strictly and resolves its page. What is wrong with it is a problem in the result.
func (a *Admission) AdmitScan(_ context.Context, in activities.AdmitScanInput) (activities.AdmitScanResult, error) {
	resolved, problems := ResolveScan(in.Scan, a.Sites)
	if want := resolved.WorkflowID; want != "" {
		if wrong := scan.IDProblem(in.WorkflowID, want); wrong != "" {
			problems = append(problems, strict.Problem{Message: wrong})
		}
	}
	return activities.AdmitScanResult{Problems: problems, Scan: resolved.Scan, Project: resolved.Project, Worker: a.Worker}, nil
}

// ResolveScan reads the input of a scan and resolves its page with the site profiles at hand. Both a worker and the command
// use it, so that a person reads the same text from either.
func ResolveScan(raw []byte, registry *sites.Registry) (ResolvedScan, []strict.Problem) {
	s, problems := scan.Decode(raw)
	var found ResolvedScan
	if s.Site == "" || s.PageURL == "" {
		return found, problems
	}
	add := func(path, format string, args ...any) {
		problems = strict.Merge(problems, []strict.Problem{{Path: path, Message: fmt.Sprintf(format, args...)}})
	}
	site, err := registry.Site(s.Site)
	if err != nil {
		add("site", "%v", err)
		return found, problems
	}
	switch page, err := site.Address(s.PageURL); {
	case err != nil:
		add("page_url", "%v", err)
	case !page.NewChat || page.Project == "":
		add("page_url", "%q is not the page of a project on site %s", s.PageURL, site.Name)
	default:
		s.PageURL, found.Project, found.WorkflowID = page.URL, page.Project, scan.WorkflowID(site.Name, page.Project)
	}
	if s.Enroll.CreatedAfter != "" && len(site.URLs.Created) == 0 {
		add("enroll.created_after", "the ids of site %s do not tell when a conversation was created; list the ids", site.Name)
	}
	if len(problems) == 0 {
		found.Scan = s.Normalize()
	}
	return found, problems
}

// KnownRuns asks the server which workflow ids have had a run, as far as its retention goes.
func (a *Admission) KnownRuns(ctx context.Context, in activities.KnownRunsInput) (activities.KnownRunsResult, error) {
	known := activities.KnownRunsResult{Status: map[string]string{}}
	for _, id := range in.WorkflowIDs {
		if activity.IsActivity(ctx) {
			activity.RecordHeartbeat(ctx)
		}
		described, err := a.Client.DescribeWorkflowExecution(ctx, id, "")
		var missing *serviceerror.NotFound
		switch {
		case errors.As(err, &missing):
		case err != nil:
			return known, fmt.Errorf("%s: %w", id, err)
		default:
			known.Status[id] = described.GetWorkflowExecutionInfo().GetStatus().String()
		}
	}
	return known, nil
}
