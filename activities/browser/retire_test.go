package browser

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"

	"steward/activities"
	"steward/integration/chatlab"
	"steward/workflows"
	"steward/workflows/run/policy"
)

// runs says of every run the same.
type runs struct {
	mu    sync.Mutex
	state RunState
	asked map[string]int
}

func (r *runs) State(_ context.Context, id string) (RunState, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = map[string]int{}
	}
	r.asked[id]++
	return r.state, nil
}

func (r *runs) are(state RunState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = state
}

func (r *runs) times(id string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[id]
}

// sendAs makes a send as the activity of a workflow, whose name the test environment chooses.
func (l *lab) sendAs(t *testing.T, in activities.SendInput) {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	env.SetTestTimeout(time.Minute)
	env.RegisterActivity(l.browser.Send)
	value, err := env.ExecuteActivity(l.browser.Send, in)
	require.NoError(t, err)
	var r activities.SendResult
	require.NoError(t, value.Get(&r))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
}

const testRun = "default-test-workflow-id"

// watching is how many pages show a conversation, as the site knows.
func (l *lab) watching(id string) int {
	for _, c := range l.Conversations() {
		if c.ID == id {
			return c.Watching
		}
	}
	return 0
}

func (l *lab) retired(t *testing.T, c activities.Conversation, why string) {
	t.Helper()
	require.Eventually(t, func() bool { return l.watching(c.ID) == 0 }, 10*time.Second, 20*time.Millisecond, why)
	require.NotContains(t, l.browser.tabs.keys(), boundKey(l.place(t, c).site, c.ID))
}

func (t *tabs) keys() (keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.open {
		keys = append(keys, key)
	}
	return keys
}

func TestTheTabOfARunThatHasEndedOrWaitsForItsUserIsRetired(t *testing.T) {
	t.Parallel()
	r := &runs{}
	l := hooked(t, func(o *Options) { o.Runs, o.idle = r, 300*time.Millisecond })
	works := l.conversation(t, `otherwise: [{text: ok}]`)
	l.sendAs(t, sendInput(works, effect(), "words"))
	require.Eventually(t, func() bool { return r.times(testRun) > 1 }, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, 1, l.watching(works.ID), "a run that works keeps its tab")

	r.are(RunParked)
	l.retired(t, works, "a run that waits for its user")

	busy := l.conversation(t, `otherwise: [{text: begun}, {gate: go}, {text: '`+valid+`'}]`)
	l.sendAs(t, sendInput(busy, effect(), "words"))
	r.are(RunOver)
	asked := r.times(testRun)
	require.Eventually(t, func() bool { return r.times(testRun) > asked+2 }, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, 1, l.watching(busy.ID), "an answer that is being written is not cut off")
	require.NoError(t, l.Release(busy.ID, "go"))
	l.retired(t, busy, "the answer has ended")

	typed := l.conversation(t, `otherwise: [{text: ok}]`)
	r.are(RunWorks)
	l.sendAs(t, sendInput(typed, effect(), "words"))
	require.NoError(t, l.Draft(typed.ID, "a person's words"))
	require.Eventually(t, func() bool { return l.draftOf(t, typed) != "" }, 5*time.Second, 50*time.Millisecond)
	asked = r.times(testRun)
	r.are(RunOver)
	require.Eventually(t, func() bool { return r.times(testRun) > asked+2 }, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, 1, l.watching(typed.ID), "what a person types is not lost")
}

func TestAPersonsTabStaysOpenWhenTheRunEnds(t *testing.T) {
	r := &runs{}
	l, _ := attachedWith(t, func(o *Options) { o.Runs, o.idle = r, 300*time.Millisecond })
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	s, err := l.browser.engine.session(t.Context())
	require.NoError(t, err)
	own, err := s.context.NewPage()
	require.NoError(t, err)
	_, err = own.Goto(c.URL)
	require.NoError(t, err)
	l.sendAs(t, sendInput(c, effect(), "words"))
	r.are(RunOver)
	require.Eventually(t, func() bool { return len(l.browser.tabs.keys()) == 0 }, 10*time.Second, 20*time.Millisecond)
	require.False(t, own.IsClosed())
	require.Equal(t, 1, l.watching(c.ID))
	name, err := own.Evaluate("() => window.name")
	require.NoError(t, err)
	require.Empty(t, name, "nothing of ours is left in it")
}

// TestTabsAreOwnedAgainAfterARestart: another worker finds the tab by its target and its name, and for which run it was.
func TestTabsAreOwnedAgainAfterARestart(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a browser")
	}
	dir := tempDir(t)
	site, err := chatlab.Start(chatlab.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { _ = site.Close() })
	url := person(t, filepath.Join(dir, "own"))
	r := &runs{}
	open := func() *lab {
		b, err := openBrowser(dir, site, "own", func(o *Options) { o.CDPURL, o.Runs, o.idle = url, r, 300*time.Millisecond })
		require.NoError(t, err)
		return &lab{Server: site, browser: b, dir: dir}
	}
	l := open()
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	l.sendAs(t, sendInput(c, effect(), "words"))
	closeBrowser(t, l.browser)
	require.Equal(t, 1, l.watching(c.ID), "the browser is a person's, and so stays open")
	l = open()
	t.Cleanup(func() { closeBrowser(t, l.browser) })
	r.are(RunOver)
	_, err = l.browser.Probe(t.Context(), activities.ProbeInput{ID: "p", Level: activities.ProbePage, Conversation: activities.Conversation{Site: "chatlab"}})
	require.NoError(t, err)
	l.retired(t, c, "its run ended while no worker was there")
}

// TestTheOnlyTabOfANewConversationIsKeptUntilTheRunIsOver: its message may stand nowhere else yet.
func TestTheOnlyTabOfANewConversationIsKeptUntilTheRunIsOver(t *testing.T) {
	t.Parallel()
	r := &runs{state: RunParked}
	l := hooked(t, func(o *Options) { o.Runs, o.idle = r, 200*time.Millisecond })
	p, err := l.browser.place(activities.Conversation{Site: "chatlab", Browser: "own", NewKey: "k"})
	require.NoError(t, err)
	tb, err := l.browser.tabs.ensure(t.Context(), p)
	require.NoError(t, err)
	require.NoError(t, l.browser.tabs.own(tb, "run"))
	require.Eventually(t, func() bool { return r.times("run") > 2 }, 10*time.Second, 20*time.Millisecond)
	require.Contains(t, l.browser.tabs.keys(), p.key)
	r.are(RunOver)
	require.Eventually(t, func() bool { return len(l.browser.tabs.keys()) == 0 }, 10*time.Second, 20*time.Millisecond)
}

// describer answers what a server says of one workflow.
type describer struct {
	client.Client
	answer *workflowservice.DescribeWorkflowExecutionResponse
	err    error
}

func (d describer) DescribeWorkflowExecution(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return d.answer, d.err
}

func TestWhatAServerSaysOfARun(t *testing.T) {
	require.Equal(t, string(policy.WaitingForUser), workflows.StatusWaitingForUser)
	described := func(status enums.WorkflowExecutionStatus, attribute string) describer {
		payload, err := converter.GetDefaultDataConverter().ToPayload(attribute)
		require.NoError(t, err)
		info := &workflow.WorkflowExecutionInfo{Status: status, SearchAttributes: &common.SearchAttributes{
			IndexedFields: map[string]*common.Payload{workflows.AttributeStatus.GetName(): payload},
		}}
		return describer{answer: &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}}
	}
	for name, c := range map[string]struct {
		server describer
		want   RunState
	}{
		"runs":       {described(enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "running"), RunWorks},
		"needs user": {described(enums.WORKFLOW_EXECUTION_STATUS_RUNNING, "waiting_for_user"), RunParked},
		"done":       {described(enums.WORKFLOW_EXECUTION_STATUS_COMPLETED, "goal_complete"), RunOver},
		"cancelled":  {described(enums.WORKFLOW_EXECUTION_STATUS_CANCELED, "stopped"), RunOver},
		"deleted":    {describer{err: serviceerror.NewNotFound("no such workflow")}, RunOver},
	} {
		state, err := NewRuns(c.server).State(t.Context(), "w")
		require.NoError(t, err, name)
		require.Equal(t, c.want, state, name)
	}
	_, err := NewRuns(describer{err: serviceerror.NewUnavailable("down")}).State(t.Context(), "w")
	require.Error(t, err)
}
