package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"steward/workflows/machine"
	"steward/workflows/machine/kernel"
	"steward/workflows/machine/strict"
)

const anyArg = mock.Anything

func TestSignalsOfOneTaskAreTakenInTheOrderOfTheHistory(t *testing.T) {
	b := newBench(t, nil)
	var update *outcome
	b.after(time.Minute, func() {
		b.SignalWorkflowSkippingWorkflowTask("resume", nil)
		b.SignalWorkflowSkippingWorkflowTask("say", say{"a"})
		b.SignalWorkflowSkippingWorkflowTask("pause", nil)
		b.SignalWorkflowSkippingWorkflowTask("say", say{"b"})
		b.SignalWorkflowSkippingWorkflowTask("resume", nil)
		b.SignalWorkflowSkippingWorkflowTask("pause", nil)
		update = b.update("say", "u", say{"after the signals"})
	})
	b.after(2*time.Minute, func() { b.SignalWorkflow("stop", stop{}) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.Equal(t, []string{"resume", "a", "pause", "b", "resume", "pause", "after the signals"}, b.state().Notes)
	require.Equal(t, kernel.Accept, update.answer.Decision)
	require.Zero(t, b.sends)
}

func TestUpdateAnswers(t *testing.T) {
	b := newBench(t, nil)
	var accepted, missing, late *outcome
	b.after(time.Minute, func() { accepted = b.update("say", "1", say{"hello"}) })
	b.after(2*time.Minute, func() { missing = b.update("prove", "2", nil) })
	b.after(3*time.Minute, func() {
		b.SignalWorkflowSkippingWorkflowTask("stop", stop{})
		late = b.update("say", "3", say{"too late"})
	})
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.NoError(t, b.GetWorkflowError())

	require.Equal(t, machine.Answer{Decision: kernel.Accept, Revision: accepted.answer.Revision, Status: "paused"}, accepted.answer)
	require.NotZero(t, accepted.answer.Revision)
	require.Equal(t, machine.Answer{
		Decision: kernel.NeedsEvidence, Code: "no_proof", Missing: []string{"proof"}, Status: "paused",
		Revision: accepted.answer.Revision, Current: map[string]any{"phase": "reserved"},
	}, missing.answer)
	require.True(t, late.done, "a message to a run that ends is answered")
	require.Equal(t, kernel.Reject, late.answer.Decision)
	require.Equal(t, "already_over", late.answer.Code)
	require.Equal(t, "stopped", late.answer.Status)
}

func TestMessageBeforeAdmissionIsDecided(t *testing.T) {
	b := newBench(t, nil)
	b.OnActivity("admit", anyArg, anyArg, anyArg).Return("", nil).After(time.Hour)
	var early *outcome
	b.after(time.Minute, func() { early = b.update("say", "1", say{"early"}) })
	b.ExecuteWorkflow(toyWorkflow, 1, nil)
	require.Equal(t, kernel.Accept, early.answer.Decision)
	require.Equal(t, "early", b.state().Notes[0])
}

func TestRequestIDIsAnsweredOnce(t *testing.T) {
	b := newBench(t, nil)
	type tagged struct {
		RequestID string `json:"request_id"`
		Text      string `json:"text"`
	}
	var first, again, spaced, reused, byUpdateID *outcome
	b.after(1*time.Minute, func() { first = b.update("say", "1", tagged{"r1", "once"}) })
	b.after(2*time.Minute, func() { again = b.update("say", "2", tagged{"r1", "once"}) })
	b.after(3*time.Minute, func() { spaced = b.update("say", "3", raw(`{ "text" : "once" , "request_id":"r1" }`)) })
	b.after(4*time.Minute, func() { reused = b.update("say", "4", tagged{"r1", "something else"}) })
	b.after(5*time.Minute, func() { b.SignalWorkflow("say", tagged{"r1", "once"}) })
	b.after(6*time.Minute, func() { b.SignalWorkflow("say", tagged{"u9", "by signal"}) })
	b.after(7*time.Minute, func() { byUpdateID = b.update("say", "u9", say{"by signal"}) })
	b.after(8*time.Minute, func() { b.SignalWorkflow("stop", stop{}) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.Equal(t, []string{"once", "by signal"}, b.state().Notes)

	require.False(t, first.answer.Duplicate)
	want := first.answer
	want.Duplicate = true
	require.Equal(t, want, again.answer)
	require.Equal(t, want, spaced.answer)
	require.Equal(t, kernel.Reject, reused.answer.Decision)
	require.Equal(t, machine.CodeReused, reused.answer.Code)
	require.True(t, byUpdateID.answer.Duplicate, "without request_id the update id is the request id")
}

// fragile breaks at the second message.
type fragile struct{ policy }

func (p fragile) Decide(s toy, e event, meta kernel.Meta) kernel.Decision[toy] {
	if _, ok := e.(say); ok && s.Seen > 0 {
		panic("broken")
	}
	return p.policy.Decide(s, e, meta)
}

func TestRepeatedUpdateIsNotDecidedAgain(t *testing.T) {
	b := newBench(t, func(s *machine.Spec[toy, event]) { s.Policy = fragile{} })
	once := map[string]string{"text": "once", "request_id": "r"}
	var again, other *outcome
	b.after(1*time.Minute, func() { b.SignalWorkflow("say", once) })
	b.after(2*time.Minute, func() { again = b.update("say", "1", once) })
	b.after(3*time.Minute, func() { other = b.update("say", "2", say{"other"}) })
	b.after(4*time.Minute, func() { b.SignalWorkflow("stop", stop{}) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.NoError(t, again.refused)
	require.True(t, again.answer.Duplicate)
	require.ErrorContains(t, other.refused, "broken")
}

func TestRequestsAreBounded(t *testing.T) {
	b := newBench(t, nil)
	b.after(time.Minute, func() {
		for i := range machine.MaxRequests + 1 {
			b.SignalWorkflowSkippingWorkflowTask("say", map[string]any{"text": "x", "request_id": fmt.Sprint("r", i)})
		}
		b.signals(
			"say", map[string]any{"text": "x", "request_id": "r1"},
			"say", map[string]any{"text": "x", "request_id": "r0"},
			"upgrade", nil)
	})
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	carry := b.carry()
	require.Len(t, carry.Requests, machine.MaxRequests)
	require.Len(t, carry.Journal, machine.MaxJournal)
	require.Equal(t, machine.MaxRequests+2, carry.State.Seen, "r1 is remembered, r0 is not")
}

func TestMalformedUpdateIsRefusedWithEveryProblem(t *testing.T) {
	for name, test := range map[string]struct {
		payload any
		want    []string
	}{
		"unknown field and bad request id": {
			raw(`{"request_id":7,"text":"x","txet":1,"text":"y"}`),
			[]string{"request_id", "txet", "text"},
		},
		"second request id": {raw(`{"request_id":"a","request_id":"b","text":"x"}`), []string{"request_id"}},
		"build refuses":     {raw(`{"text":""}`), []string{""}},
		"not an object":     {raw(`[1]`), []string{""}},
		"null":              {raw(`null`), []string{""}},
		"not JSON":          {raw(`{"text":`), []string{""}},
		"not UTF-8":         {raw("{\"text\":\"\xff\"}"), []string{""}},
		"binary":            {[]byte{1, 2}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			var o *outcome
			b.after(time.Minute, func() { o = b.update("say", "1", test.payload) })
			b.after(2*time.Minute, func() { b.SignalWorkflow("stop", stop{}) })
			b.ExecuteWorkflow(toyWorkflow, nil, idle())
			require.NoError(t, b.GetWorkflowError())
			var refusal *temporal.ApplicationError
			require.ErrorAs(t, o.refused, &refusal)
			require.Equal(t, machine.CodeMalformed, refusal.Type())
			var problems []strict.Problem
			require.NoError(t, refusal.Details(&problems))
			var paths []string
			for _, p := range problems {
				paths = append(paths, p.Path)
				require.NotEmpty(t, p.Message)
			}
			require.ElementsMatch(t, test.want, paths)
			require.Zero(t, b.state().Seen-1, "only the stop was taken")
		})
	}
}

func TestUpdateThatPanicsThePolicyIsRefused(t *testing.T) {
	b := newBench(t, nil)
	var o *outcome
	b.after(time.Minute, func() { o = b.update("boom", "1", nil) })
	b.after(2*time.Minute, func() { b.SignalWorkflow("stop", stop{}) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.ErrorContains(t, o.refused, "boom")
	require.Equal(t, 1, b.state().Seen)
}

func TestPanicOfThePolicyFailsTheTask(t *testing.T) {
	b := newBench(t, nil)
	b.after(time.Minute, func() { b.SignalWorkflow("boom", nil) })
	b.ExecuteWorkflow(toyWorkflow, nil, idle())
	require.ErrorContains(t, b.GetWorkflowError(), "boom", "the test environment makes a failed task a failed workflow")
}

func TestRefusedSignalsChangeNothingAndAreShown(t *testing.T) {
	for name, test := range map[string]struct {
		signal  string
		payload any
		code    string
		note    string
	}{
		"unknown name":     {"paus", nil, machine.CodeUnknown, "known are boom, fail, pause"},
		"hostile name":     {"`<b>", nil, machine.CodeUnknown, "no such signal"},
		"unknown field":    {"pause", raw(`{"reson":"x"}`), machine.CodeMalformed, "reson"},
		"binary payload":   {"say", []byte("text"), machine.CodeMalformed, "binary/plain"},
		"bad upgrade":      {"upgrade", raw(`{"now":true}`), machine.CodeMalformed, "now"},
		"not JSON":         {"say", raw(`{"text"`), machine.CodeMalformed, "not valid JSON"},
		"missing argument": {"say", nil, machine.CodeMalformed, "must not be empty"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.after(time.Minute, func() { b.SignalWorkflow(test.signal, test.payload) })
			b.after(2*time.Minute, func() { b.SignalWorkflow("stop", stop{}) })
			b.ExecuteWorkflow(toyWorkflow, nil, idle())
			require.Equal(t, 1, b.state().Seen)
			entries := b.journal()
			require.Len(t, entries, 3, "stalled, the refusal, stop")
			require.Equal(t, test.signal, entries[1].Event)
			require.Equal(t, kernel.Reject, entries[1].Decision)
			require.Equal(t, test.code, entries[1].Code)
			require.Contains(t, entries[1].Note, test.note)
			require.Contains(t, currentDetails(t, b), "signal `"+strings.NewReplacer("`", "'", "<", "&lt;").Replace(test.signal)+"`: ")
		})
	}
}

// raw is a JSON payload as it was written.
func raw(json string) converter.RawValue {
	payload, err := converter.GetDefaultDataConverter().ToPayload("")
	if err != nil {
		panic(err)
	}
	payload.Data = []byte(json)
	return converter.NewRawValue(payload)
}
