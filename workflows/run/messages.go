package run

import (
	"encoding/json"
	"fmt"

	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/strict"
	"steward/workflows/run/policy"
)

// The payloads of the operator's messages. Every one may carry request_id too.
type (
	// Word is what an operator says of an effect of unknown outcome.
	Word struct {
		EffectID           string `json:"effect_id" min:"1" max:"64"`
		Generation         int    `json:"generation" min:"1" max:"1000"`
		Operator           string `json:"operator" min:"1" max:"512"`
		Reason             string `json:"reason" min:"1" max:"2000"`
		WithoutObservation bool   `json:"without_observation,omitempty"`
	}
	// Supersede gives an effect of unknown outcome up for a new one.
	Supersede struct {
		EffectID        string `json:"effect_id" min:"1" max:"64"`
		Operator        string `json:"operator" min:"1" max:"512"`
		Reason          string `json:"reason" min:"1" max:"2000"`
		AcceptDuplicate bool   `json:"accept_duplicate"`
	}
	// Pause stops new sends.
	Pause struct {
		Operator string `json:"operator" min:"1" max:"512"`
		Reason   string `json:"reason" min:"1" max:"2000"`
	}
	// Resume lifts a pause, or answers what the run waits for a person for.
	Resume struct {
		Operator string `json:"operator" min:"1" max:"512"`
		Reason   string `json:"reason" min:"1" max:"2000"`
		Answers  string `json:"answers,omitempty" max:"128"`
		Note     string `json:"note,omitempty" max:"2000" lines:"true"`
	}
	// Approval is an operator's word on a DONE.
	Approval struct {
		Completion string `json:"completion" min:"1" max:"128"`
		Operator   string `json:"operator" min:"1" max:"512"`
		Reason     string `json:"reason" min:"1" max:"2000"`
	}
	// Recover asks for one recovery prompt.
	Recover struct {
		EffectID string `json:"effect_id" min:"1" max:"64"`
		Operator string `json:"operator" min:"1" max:"512"`
		Reason   string `json:"reason" min:"1" max:"2000"`
	}
	// Occurrence is what a waiting run waits for.
	Occurrence struct {
		OccurrenceID string `json:"occurrence_id" min:"1" max:"200"`
		Operator     string `json:"operator,omitempty" max:"512"`
	}
	// Stop ends the run.
	Stop struct {
		Operator  string `json:"operator" min:"1" max:"512"`
		Reason    string `json:"reason" min:"1" max:"2000"`
		Interrupt bool   `json:"interrupt,omitempty"`
	}
	// Submit is one event of the policy by its name, for callers that speak events.
	Submit struct {
		Event   string          `json:"event" min:"1" max:"64"`
		Payload json.RawMessage `json:"payload,omitempty"`
	}
)

const both = machine.Signal | machine.Update

// on declares a message whose payload is checked against the limits in its tags.
func on[P any](name, doc string, kinds machine.Kinds, build func(P) policy.Event) machine.Message[policy.Event] {
	return machine.On(name, doc, kinds, func(p P) (policy.Event, error) {
		if problems := strict.Limits(p, nil); len(problems) > 0 {
			return nil, &strict.Error{Problems: problems}
		}
		return build(p), nil
	})
}

func word(verdict string) func(Word) policy.Event {
	return func(p Word) policy.Event {
		return policy.ProviderEffectReconciled{
			EffectID: p.EffectID, Generation: p.Generation, Verdict: verdict, Operator: p.Operator, Reason: p.Reason,
			WithoutObservation: p.WithoutObservation,
		}
	}
}

var messages = []machine.Message[policy.Event]{
	on(workflows.MessageApplied, "An operator saw that the effect reached the site.", both, word(policy.VerdictApplied)),
	on(workflows.MessageNotApplied, "An operator saw that the effect did not reach the site; checked by one fresh look.", both,
		word(policy.VerdictNotApplied)),
	on(workflows.MessageUnknown, "Leave the effect unknown and look once more now.", both, word(policy.VerdictUnknown)),
	on(workflows.MessageSupersede, "Give up an effect of unknown outcome and send a new one: it may stand twice.", both, func(p Supersede) policy.Event {
		return policy.SupersedeRequested{EffectID: p.EffectID, Operator: p.Operator, Reason: p.Reason, AcceptDuplicate: p.AcceptDuplicate}
	}),
	on(workflows.MessagePause, "Send nothing new until resume; a turn in flight is observed.", both, func(p Pause) policy.Event {
		return policy.PauseRequested{Operator: p.Operator, Reason: p.Reason}
	}),
	on(workflows.MessageResume, "Lift a pause; with answers, end exactly the wait for a person that it names.", both, resume),
	on(workflows.MessageApprove, "Approve the DONE that waits for it.", both, func(p Approval) policy.Event {
		return policy.ApprovalGiven{Completion: p.Completion, Operator: p.Operator, Reason: p.Reason}
	}),
	on(workflows.MessageDecline, "Decline the DONE that waits for approval; the assistant is told why.", both, func(p Approval) policy.Event {
		return policy.ApprovalDeclined{Completion: p.Completion, Operator: p.Operator, Reason: p.Reason}
	}),
	on(workflows.MessageRecover, "Send one recovery prompt when the automatic ones are used up.", both, recovery),
	on(workflows.MessageOccurrence, "The occurrence that a waiting run waits for; the same id counts once.", both, occurrence),
	on(workflows.MessageStop, "End the run: nothing new is sent, an armed send ends normally first.", both, stop),
	machine.On(workflows.UpdateSubmit, "Submit one event by its name.", machine.Update, submit),
}

func resume(p Resume) policy.Event {
	return policy.UserResumeRequested{Operator: p.Operator, Reason: p.Reason, Answers: p.Answers, Note: p.Note}
}

func recovery(p Recover) policy.Event {
	return policy.RecoveryRequested{EffectID: p.EffectID, Operator: p.Operator, Reason: p.Reason}
}

func occurrence(p Occurrence) policy.Event {
	return policy.OccurrenceRequested{OccurrenceID: p.OccurrenceID, Operator: p.Operator}
}

func stop(p Stop) policy.Event {
	return policy.StopRequested{Operator: p.Operator, Reason: p.Reason, Interrupt: p.Interrupt}
}

// The payloads that only submit takes.
type (
	// Disposition is an explicit wait or handoff of the present turn.
	Disposition struct {
		EffectID    string `json:"effect_id" min:"1" max:"64"`
		Disposition string `json:"disposition" min:"1" max:"16" oneof:"wait handoff"`
		// Scope, ConversationURL, Objective and Outcome are those of the successor of a handoff; empty means unchanged.
		Scope           string `json:"scope,omitempty" max:"200"`
		ConversationURL string `json:"conversation_url,omitempty" max:"2048"`
		Objective       string `json:"objective,omitempty" max:"2000" lines:"true"`
		Outcome         string `json:"outcome,omitempty" max:"200"`
		Checkpoint      string `json:"checkpoint,omitempty" max:"2000"`
		Reason          string `json:"reason" min:"1" max:"2000"`
	}
	// Changed tells a changed progress fingerprint.
	Changed struct {
		Operator string `json:"operator" min:"1" max:"512"`
		Note     string `json:"note" min:"1" max:"2000" lines:"true"`
	}
	// Authority rekeys the round.
	Authority struct {
		Revision    int64  `json:"revision" min:"0" max:"1000000000"`
		AuthorityID string `json:"authority_id" min:"1" max:"64"`
		Operator    string `json:"operator" min:"1" max:"512"`
		Reason      string `json:"reason" min:"1" max:"2000"`
	}
	// Rebound moves the run to another conversation.
	Rebound struct {
		ConversationURL string `json:"conversation_url" min:"1" max:"2048"`
		Operator        string `json:"operator" min:"1" max:"512"`
		Reason          string `json:"reason" min:"1" max:"2000"`
	}
)

func submit(p Submit) (policy.Event, error) {
	switch p.Event {
	case "occurrence_requested":
		return read(p, occurrence)
	case "semantic_disposition_submitted":
		return read(p, func(p Disposition) policy.Event {
			return policy.SemanticDispositionSubmitted{
				EffectID: p.EffectID, Disposition: p.Disposition, Checkpoint: p.Checkpoint, Reason: p.Reason,
				Scope: p.Scope, ConversationURL: p.ConversationURL, Objective: p.Objective, Outcome: p.Outcome,
			}
		})
	case "semantic_state_changed":
		return read(p, func(p Changed) policy.Event {
			return policy.SemanticStateChanged{Operator: p.Operator, Note: p.Note}
		})
	case "user_resume_requested":
		return read(p, resume)
	case "authority_recovery_requested":
		return read(p, func(p Authority) policy.Event {
			return policy.AuthorityRecoveryRequested{Revision: p.Revision, AuthorityID: p.AuthorityID, Operator: p.Operator, Reason: p.Reason}
		})
	case "recovery_requested":
		return read(p, recovery)
	case "conversation_rebound":
		return read(p, func(p Rebound) policy.Event {
			return policy.ConversationRebound{ConversationURL: p.ConversationURL, Operator: p.Operator, Reason: p.Reason}
		})
	case "goal_cancelled":
		return read(p, func(p Pause) policy.Event { return policy.GoalCancelled{Operator: p.Operator, Reason: p.Reason} })
	case "stop_requested":
		return read(p, stop)
	}
	return policy.NotSubmittable{Event: p.Event}, nil
}

// read decodes the payload of a submitted event like that of a message of its own.
func read[P any](s Submit, build func(P) policy.Event) (policy.Event, error) {
	var p P
	data := s.Payload
	if len(data) == 0 {
		data = json.RawMessage("{}")
	}
	if err := strict.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("payload of %s: %w", s.Event, err)
	}
	if problems := strict.Limits(p, nil); len(problems) > 0 {
		return nil, &strict.Error{Problems: problems}
	}
	return build(p), nil
}
