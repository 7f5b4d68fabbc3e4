package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"steward/workflows"
	"steward/workflows/machine"
)

// runs is the operator's side of WorkflowRun: the only code of the command that knows its queries and updates.
type runs struct {
	client    client.Client
	namespace string
	// ui is the address of the Web UI, without a slash at its end; empty when it is not known.
	ui string
}

// row is a run as a list shows it, read from the list alone.
type row struct {
	WorkflowID   string          `json:"workflow_id"`
	RunID        string          `json:"run_id"`
	Status       string          `json:"status"`
	Blocker      string          `json:"blocker,omitempty"`
	Site         string          `json:"site,omitempty"`
	Conversation string          `json:"conversation,omitempty"`
	Round        int64           `json:"round"`
	Open         bool            `json:"open"`
	Started      time.Time       `json:"started"`
	Closed       time.Time       `json:"closed,omitzero"`
	Attention    json.RawMessage `json:"attention,omitempty"`
	WebUI        string          `json:"web_ui,omitempty"`
	// Rules and WaitsFor are known only when the run itself was asked.
	Rules    int    `json:"rules,omitempty"`
	WaitsFor string `json:"waits_for,omitempty"`
}

// link is the address of a run's page in the Web UI.
func (r runs) link(workflowID, runID string) string {
	if r.ui == "" {
		return ""
	}
	return fmt.Sprintf("%s/namespaces/%s/workflows/%s/%s/history", r.ui, url.PathEscape(r.namespace), url.PathEscape(workflowID), runID)
}

func (r runs) row(info *workflowpb.WorkflowExecutionInfo) row {
	id, run := info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()
	shown := row{WorkflowID: id, RunID: run, Started: info.GetStartTime().AsTime(), Open: info.GetCloseTime() == nil, WebUI: r.link(id, run)}
	if !shown.Open {
		shown.Closed = info.GetCloseTime().AsTime()
	}
	attributes := info.GetSearchAttributes().GetIndexedFields()
	read(attributes[workflows.AttributeStatus.GetName()], &shown.Status)
	read(attributes[workflows.AttributeBlocker.GetName()], &shown.Blocker)
	read(attributes[workflows.AttributeSite.GetName()], &shown.Site)
	read(attributes[workflows.AttributeConversation.GetName()], &shown.Conversation)
	read(attributes[workflows.AttributeRound.GetName()], &shown.Round)
	if memo := info.GetMemo().GetFields()[workflows.MemoAttention]; memo != nil && string(memo.GetData()) != "null" {
		read(memo, &shown.Attention)
	}
	return shown
}

// read leaves the target as it is when the payload is absent or of another type.
func read(p *commonpb.Payload, target any) {
	if p != nil {
		_ = converter.GetDefaultDataConverter().FromPayload(p, target)
	}
}

// list returns the newest runs that a visibility query selects, at most limit.
func (r runs) list(ctx context.Context, query string, limit int) ([]row, error) {
	var rows []row
	var token []byte
	for len(rows) < limit {
		page, err := r.client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: query, PageSize: int32(min(limit-len(rows), 1000)), NextPageToken: token,
		})
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, info := range page.GetExecutions() {
			rows = append(rows, r.row(info))
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			break
		}
	}
	return rows, nil
}

// describe is the newest run of a workflow id.
func (r runs) describe(ctx context.Context, id string) (row, error) {
	described, err := r.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return row{}, r.explain(id, err)
	}
	return r.row(described.GetWorkflowExecutionInfo()), nil
}

// find turns what a person types into a workflow id: the id itself, or a conversation id with exactly one run.
func (r runs) find(ctx context.Context, typed string) (string, error) {
	if strings.HasPrefix(typed, "run:") {
		return typed, nil
	}
	conversation := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(strings.ToLower(typed))
	rows, err := r.list(ctx, fmt.Sprintf("%s = '%s'", workflows.AttributeConversation.GetName(), conversation), 100)
	if err != nil {
		return "", err
	}
	ids := map[string]bool{}
	for _, found := range rows {
		ids[found.WorkflowID] = true
	}
	switch len(ids) {
	case 0:
		return "", exitWith(exitNotFound, "no run has the conversation %s; a workflow id is like run:<site>:<conversation id>, "+
			"see `steward run list --all`", typed)
	case 1:
		return rows[0].WorkflowID, nil
	}
	return "", exitWith(exitUsage, "%d runs have the conversation %s; give the whole workflow id", len(ids), typed)
}

// query asks a run. It waits for a run that has only just started or continued.
func (r runs) query(ctx context.Context, id, run, name string, target any) error {
	return retryNotReady(ctx, func() error {
		value, err := r.client.QueryWorkflow(ctx, id, run, name)
		if err != nil {
			return r.explain(id, err)
		}
		return value.Get(target)
	})
}

// update sends a message and returns the run's answer. A repeated call after a lost answer is taken once: the update id
// and the request id are the same.
func (r runs) update(ctx context.Context, id, name string, payload map[string]any) (machine.Answer, error) {
	var answer machine.Answer
	request := uuid.NewString()
	payload["request_id"] = request
	err := retryNotReady(ctx, func() error {
		handle, err := r.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			UpdateID: request, WorkflowID: id, UpdateName: name, Args: []any{payload},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			err = handle.Get(ctx, &answer)
		}
		return err
	})
	var refused *temporal.ApplicationError
	switch {
	case err == nil:
		return answer, nil
	case errors.As(err, &refused):
		return answer, exitWith(exitUsage, "%s was refused: %s", name, refused.Message())
	case ctx.Err() != nil:
		return answer, fmt.Errorf("no worker answered in time; %s may still be taken when one comes, `steward run why` tells. "+
			"With --signal a message waits for a worker for certain: %w", name, err)
	}
	return answer, r.explain(id, err)
}

// signal leaves a message that a worker takes whenever there is one. There is no answer.
func (r runs) signal(ctx context.Context, id, name string, payload map[string]any) error {
	payload["request_id"] = uuid.NewString()
	if err := r.client.SignalWorkflow(ctx, id, "", name, payload); err != nil {
		return r.explain(id, err)
	}
	return nil
}

// explain says what a server's error means for a person.
func (r runs) explain(id string, err error) error {
	var missing *serviceerror.NotFound
	var failed *serviceerror.QueryFailed
	switch {
	case errors.As(err, &missing) && strings.Contains(missing.Message, "already completed"):
		return exitWith(exitRefused, "%s has ended: %w", id, err)
	case errors.As(err, &missing):
		return exitWith(exitNotFound, "there is no run %s in namespace %s: %w", id, r.namespace, err)
	case errors.As(err, &failed):
		return fmt.Errorf("%s cannot be asked: %w", id, err)
	}
	return err
}

// retryNotReady repeats a call while the run is between two of its executions.
func retryNotReady(ctx context.Context, call func() error) error {
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := call()
		var notReady *serviceerror.WorkflowNotReady
		if !errors.As(err, &notReady) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
