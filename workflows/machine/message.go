package machine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"steward/workflows/machine/kernel"
	"steward/workflows/machine/strict"
)

// Codes of messages that never reach the policy.
const (
	// CodeMalformed is also the type of the error that refuses an update; its details are []strict.Problem.
	CodeMalformed = "payload_malformed"
	CodeUnknown   = "signal_unknown"
)

// Kinds are the ways by which a message may come; they are combined with |.
type Kinds int

const (
	// Signal is sent without an answer.
	Signal Kinds = 1 << iota
	// Update is answered with an Answer.
	Update
)

// Message is one row of the table of messages.
type Message[E any] struct {
	name, doc string
	kinds     Kinds
	build     func(data []byte) (E, error)
}

// mail is a message that was understood.
type mail[E any] struct {
	sender
	name  string
	sum   string
	event E
}

// On declares the message name. Its payload is one JSON object, decoded strictly into P; beside the fields of P it may carry
// request_id. No payload at all is an empty object. Build makes the event; its error refuses the payload like a decoding
// problem does, and a *strict.Error keeps its problems apart. Doc is one sentence for the Web UI and the CLI.
//
// What a message was accepted with is decoded again at every replay: P and build may learn to take more, never to refuse
// what they took.
func On[E, P any](name, doc string, kinds Kinds, build func(P) (E, error)) Message[E] {
	return Message[E]{name: name, doc: doc, kinds: kinds, build: func(data []byte) (E, error) {
		var p P
		if err := strict.Unmarshal(data, &p); err != nil {
			var none E
			return none, err
		}
		return build(p)
	}}
}

// listen registers every handler. It must run before the workflow function blocks.
func (m *machine[S, E]) listen(ctx workflow.Context) {
	m.messages = make(map[string]Message[E], len(m.Messages))
	must := func(err error) {
		if err != nil {
			panic(fmt.Sprintf("machine: %v", err))
		}
	}
	workflow.GetSignalChannelWithOptions(ctx, UpgradeSignal, workflow.SignalChannelOptions{
		Description: "Continue as new at the next quiet point, so that a new rules version takes hold.",
	})
	for _, msg := range m.Messages {
		if msg.kinds&Signal != 0 {
			m.messages[msg.name] = msg
			workflow.GetSignalChannelWithOptions(ctx, msg.name, workflow.SignalChannelOptions{Description: msg.doc})
		}
		if msg.kinds&Update != 0 {
			must(workflow.SetUpdateHandlerWithOptions(ctx, msg.name,
				func(ctx workflow.Context, raw converter.RawValue) (Answer, error) { return m.update(ctx, msg, raw) },
				workflow.UpdateHandlerOptions{
					Description: msg.doc,
					Validator:   func(ctx workflow.Context, raw converter.RawValue) error { return m.validate(ctx, msg, raw) },
				}))
		}
	}
	query := func(name, doc string, answer any) {
		must(workflow.SetQueryHandlerWithOptions(ctx, name, answer, workflow.QueryHandlerOptions{Description: doc}))
	}
	query(StateQuery, "The whole state.", func() (S, error) { return m.carry.State, nil })
	query(JournalQuery, "The last decisions, oldest first.", func() ([]Entry, error) { return m.carry.Journal, nil })
	for _, name := range workflow.DeterministicKeys(m.Queries) {
		answer := m.Queries[name]
		query(name, "", func() (any, error) { return answer(m.carry.State, m.book()), nil })
	}
}

// intake takes every signal that has arrived, in order. It never yields.
func (m *machine[S, E]) intake(ctx workflow.Context) {
	for len(m.arrivals.pending) > 0 {
		a := m.arrivals.pending[0]
		m.arrivals.pending = m.arrivals.pending[1:]
		var raw converter.RawValue
		readable := workflow.GetSignalChannel(ctx, a.name).ReceiveAsync(&raw)
		m.signal(ctx, a, raw, readable)
	}
}

func (m *machine[S, E]) signal(ctx workflow.Context, a arrival, raw converter.RawValue, readable bool) {
	refuse := func(code, why string) {
		m.note(ctx, Entry{
			At: workflow.Now(ctx), Event: clip(a.name, 64), Decision: kernel.Reject, Code: code, Caller: a.caller,
			Note: clip(oneLine(why), 300),
		})
	}
	msg, known := m.messages[a.name]
	if a.name == UpgradeSignal {
		msg, known = On(UpgradeSignal, "", Signal, func(struct{}) (e E, err error) { return e, nil }), true
	}
	switch {
	case !known:
		refuse(CodeUnknown, "no such signal; known are "+strings.Join(append(workflow.DeterministicKeys(m.messages), UpgradeSignal), ", "))
		return
	case !readable:
		refuse(CodeMalformed, "the payload cannot be decoded")
		return
	case a.payloads > 1:
		refuse(CodeMalformed, fmt.Sprintf("%d payloads; send one JSON object", a.payloads))
		return
	}
	received, err := open(msg, raw)
	if err != nil {
		refuse(CodeMalformed, err.Error())
		return
	}
	received.caller = a.caller
	if a.name == UpgradeSignal {
		m.life.renew = true
		m.note(ctx, Entry{
			At: workflow.Now(ctx), Event: UpgradeSignal, Decision: kernel.Accept, Code: "upgrade_requested",
			RequestID: received.requestID, Caller: a.caller,
		})
		return
	}
	m.deliver(ctx, received)
}

// validate refuses what cannot be understood, without any trace in the history, and lets the policy decide once in vain:
// a panic there refuses the update, where in the handler it would block the run.
func (m *machine[S, E]) validate(ctx workflow.Context, msg Message[E], raw converter.RawValue) error {
	received, err := open(msg, raw)
	if err != nil {
		return malformed(err)
	}
	if m.answered(received.requestID) >= 0 {
		return nil
	}
	m.Policy.Decide(m.carry.State, received.event, kernel.Meta{At: workflow.Now(ctx), RequestID: received.requestID})
	return nil
}

func (m *machine[S, E]) update(ctx workflow.Context, msg Message[E], raw converter.RawValue) (Answer, error) {
	m.intake(ctx)
	received, err := open(msg, raw)
	if err != nil { // only a worker of another version can have accepted it
		return Answer{}, malformed(err)
	}
	if received.requestID == "" { // the server forgets update ids at continue-as-new
		received.requestID = workflow.GetCurrentUpdateInfo(ctx).ID
	}
	received.caller, _ = ctx.Value(callerKey{}).(string)
	return m.deliver(ctx, received), nil
}

// open decodes a payload. Its error tells every problem.
func open[E any](msg Message[E], raw converter.RawValue) (mail[E], error) {
	received := mail[E]{name: msg.name}
	data, err := payload(raw)
	if err != nil {
		return received, err
	}
	var own []byte
	received.requestID, own, err = envelope(data)
	event, buildErr := msg.build(own)
	if err := errors.Join(err, buildErr); err != nil {
		return received, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, own); err != nil {
		return received, err
	}
	sum := sha256.Sum256(compact.Bytes())
	received.sum, received.event = hex.EncodeToString(sum[:8]), event
	return received, nil
}

func payload(raw converter.RawValue) ([]byte, error) {
	p := raw.Payload()
	switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
	case "", converter.MetadataEncodingNil:
		if len(p.GetData()) > 0 {
			return nil, errors.New("the payload names no encoding; send JSON")
		}
		return []byte("{}"), nil
	case converter.MetadataEncodingJSON:
		return p.GetData(), nil
	default:
		return nil, fmt.Errorf("the payload is encoded as %q; send JSON (json/plain)", encoding)
	}
}

// envelope takes request_id out of an object and leaves the message's own fields. What is not an object is left alone, for
// the strict decoder to say what is wrong with it.
func envelope(data []byte) (id string, own []byte, err error) {
	fields, ok := split(data)
	if !ok {
		return "", data, nil
	}
	own = []byte{'{'}
	found := false
	for _, f := range fields {
		if f.key == "request_id" && !found {
			found = true
			if json.Unmarshal(f.value, &id) != nil || id == "" || len(id) > maxRequestID {
				err = &strict.Error{Problems: []strict.Problem{{
					Path: "request_id", Message: fmt.Sprintf("must be a string of 1 to %d bytes", maxRequestID),
				}}}
			}
			continue
		}
		if len(own) > 1 {
			own = append(own, ',')
		}
		key, _ := json.Marshal(f.key)
		own = append(append(append(own, key...), ':'), f.value...)
	}
	return id, append(own, '}'), err
}

const maxRequestID = 200

type field struct {
	key   string
	value json.RawMessage
}

// split lists the fields of one JSON object, doubles included.
func split(data []byte) (fields []field, ok bool) {
	if !utf8.Valid(data) || !json.Valid(data) {
		return nil, false
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	if start, _ := dec.Token(); start != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, false
		}
		f := field{key: key.(string)}
		if err := dec.Decode(&f.value); err != nil {
			return nil, false
		}
		fields = append(fields, f)
	}
	return fields, true
}

// malformed is the error that refuses an update: type payload_malformed, with every problem as details.
func malformed(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), CodeMalformed, nil, problems(err))
}

// problems lists everything that is wrong, in order.
func problems(err error) []strict.Problem {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []strict.Problem
		for _, e := range joined.Unwrap() {
			all = append(all, problems(e)...)
		}
		return all
	}
	var several *strict.Error
	if errors.As(err, &several) {
		return several.Problems
	}
	return []strict.Problem{{Message: err.Error()}}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// clip cuts s to at most limit bytes, at the start of a character.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
