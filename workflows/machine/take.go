package machine

import (
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine/kernel"
)

// Answer is what an update returns.
type Answer struct {
	Decision kernel.Verdict `json:"decision"`
	Code     string         `json:"code"`
	// Revision and Status are those of the state after the decision.
	Revision int64  `json:"revision"`
	Status   string `json:"status"`
	// Missing names the evidence that would turn needs_evidence into accept.
	Missing []string `json:"missing,omitempty"`
	// Current shows what the decision was made against when it is not an accept.
	Current any `json:"current,omitempty"`
	// Duplicate marks the repeated answer to a request_id that was answered before.
	Duplicate bool `json:"duplicate,omitempty"`
}

// CodeReused rejects a request_id that was used before for something else.
const CodeReused = "request_id_reused"

// sender is who brought an event; zero for activities, timers and cancellation.
type sender struct {
	requestID string
	caller    string
}

// request is what is remembered of an answered request_id.
type request struct {
	ID string `json:"id"`
	// Message and Sum are the name and a digest of the payload: the same id with other content is a mistake of the caller,
	// and answering it as before would lose a message.
	Message  string         `json:"message"`
	Sum      string         `json:"sum"`
	Decision kernel.Verdict `json:"decision"`
	Code     string         `json:"code,omitempty"`
	Revision int64          `json:"revision"`
	Status   string         `json:"status"`
	Missing  []string       `json:"missing,omitempty"`
}

// take is the only door of the machine: one event, one decision, one journal entry. It never yields, so it is atomic in
// whichever coroutine brings the event.
func (m *machine[S, E]) take(ctx workflow.Context, e E, from sender) kernel.Decision[S] {
	now := workflow.Now(ctx)
	d := m.Policy.Decide(m.carry.State, e, kernel.Meta{At: now, RequestID: from.requestID, Caller: from.caller})
	if d.Verdict == kernel.Accept {
		m.carry.State = d.Next
		m.carry.Spent, m.refusals = "", 0
	}
	m.note(ctx, Entry{
		At: now, Event: m.Name(e), Decision: d.Verdict, Code: d.Code,
		RequestID: from.requestID, Caller: from.caller,
	})
	return d
}

// note journals and logs what happened.
func (m *machine[S, E]) note(ctx workflow.Context, entry Entry) {
	m.news = true
	m.taken++
	m.carry.Journal = append(m.carry.Journal, entry)
	if over := len(m.carry.Journal) - MaxJournal; over > 0 {
		m.carry.Journal = slices.Delete(m.carry.Journal, 0, over)
	}
	if record, ok := m.root.Value(recordKey{}).(func(Entry)); ok {
		record(entry)
	}
	fields := []any{"run", workflow.GetInfo(ctx).WorkflowExecution.ID, "event", entry.Event, "decision", entry.Decision, "code", entry.Code}
	if entry.Note != "" {
		workflow.GetLogger(ctx).Warn("decision", append(fields, "note", entry.Note)...)
		return
	}
	workflow.GetLogger(ctx).Info("decision", fields...)
}

// deliver takes a message. A request_id that was answered before is answered alike and changes nothing.
func (m *machine[S, E]) deliver(ctx workflow.Context, msg mail[E]) Answer {
	if i := m.answered(msg.requestID); i >= 0 {
		return m.repeat(ctx, msg, m.carry.Requests[i])
	}
	d := m.take(ctx, msg.event, msg.sender)
	view := m.View(m.carry.State, m.book())
	a := Answer{Decision: d.Verdict, Code: d.Code, Revision: view.Revision, Status: view.Status, Missing: d.Missing}
	if d.Verdict != kernel.Accept {
		a.Current = view.Current
	}
	m.remember(msg, a)
	return a
}

// answered is the index of an answered request_id, or -1.
func (m *machine[S, E]) answered(requestID string) int {
	if requestID == "" {
		return -1
	}
	return slices.IndexFunc(m.carry.Requests, func(r request) bool { return r.ID == requestID })
}

func (m *machine[S, E]) repeat(ctx workflow.Context, msg mail[E], r request) Answer {
	if r.Message != msg.name || r.Sum != msg.sum {
		view := m.View(m.carry.State, m.book())
		m.note(ctx, Entry{
			At: workflow.Now(ctx), Event: msg.name, Decision: kernel.Reject, Code: CodeReused,
			RequestID: msg.requestID, Caller: msg.caller, Note: fmt.Sprintf("request_id %s was used for %s with other content", r.ID, r.Message),
		})
		return Answer{Decision: kernel.Reject, Code: CodeReused, Revision: view.Revision, Status: view.Status, Current: view.Current}
	}
	workflow.GetLogger(ctx).Info("duplicate", "run", workflow.GetInfo(ctx).WorkflowExecution.ID,
		"event", msg.name, "decision", r.Decision, "code", r.Code, "request_id", r.ID)
	return Answer{
		Decision: r.Decision, Code: r.Code, Revision: r.Revision, Status: r.Status,
		Missing: r.Missing, Duplicate: true,
	}
}

func (m *machine[S, E]) remember(msg mail[E], a Answer) {
	if msg.requestID == "" {
		return
	}
	m.carry.Requests = append(m.carry.Requests, request{
		ID: msg.requestID, Message: msg.name, Sum: msg.sum,
		Decision: a.Decision, Code: a.Code, Revision: a.Revision, Status: a.Status, Missing: a.Missing,
	})
	if over := len(m.carry.Requests) - MaxRequests; over > 0 {
		m.carry.Requests = slices.Delete(m.carry.Requests, 0, over)
	}
}

// refusedSignals are the lines of the current details that tell an operator of signals which changed nothing because they
// could not be understood.
func (m *machine[S, E]) refusedSignals() string {
	const shown = 3
	plain := strings.NewReplacer("`", "'", "<", "&lt;") // a name or a payload must not become part of the page
	var lines []string
	for _, e := range m.carry.Journal {
		if e.Code == CodeUnknown || e.Code == CodeMalformed {
			at := e.At.UTC().Format("2006-01-02 15:04:05")
			lines = append(lines, fmt.Sprintf("- %s signal `%s`: %s", at, plain.Replace(e.Event), plain.Replace(e.Note)))
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "\n\n**Refused signals** (they changed nothing)\n\n" + strings.Join(lines[max(0, len(lines)-shown):], "\n") + "\n"
}
