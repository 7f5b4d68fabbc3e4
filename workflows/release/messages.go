package release

import (
	"steward/workflows"
	"steward/workflows/machine"
	"steward/workflows/machine/strict"
	"steward/workflows/release/policy"
)

// The payloads of the operator's messages. Every one may carry request_id too.
type (
	// Word is what an operator says of an operation of unknown outcome.
	Word struct {
		Operation string `json:"operation" min:"1" max:"64"`
		Operator  string `json:"operator" min:"1" max:"512"`
		Reason    string `json:"reason" min:"1" max:"2000"`
	}
	// Again asks for one more look, or for one more try of a check that could not tell.
	Again struct {
		Operation string `json:"operation,omitempty" max:"64"`
		Operator  string `json:"operator" min:"1" max:"512"`
		Reason    string `json:"reason" min:"1" max:"2000"`
	}
	// Decision ends the release, or lets it switch.
	Decision struct {
		Operator string `json:"operator" min:"1" max:"512"`
		Reason   string `json:"reason" min:"1" max:"2000"`
	}
)

// on declares a message, as signal and update, whose payload is checked against the limits in its tags.
func on[P any](name, doc string, build func(P) policy.Event) machine.Message[policy.Event] {
	return machine.On(name, doc, machine.Signal|machine.Update, func(p P) (policy.Event, error) {
		if problems := strict.Limits(p, nil); len(problems) > 0 {
			return nil, &strict.Error{Problems: problems}
		}
		return build(p), nil
	})
}

func word(verdict string) func(Word) policy.Event {
	return func(p Word) policy.Event {
		return policy.OperationJudged{Operation: p.Operation, Verdict: verdict, Operator: p.Operator, Reason: p.Reason}
	}
}

var messages = []machine.Message[policy.Event]{
	on(workflows.MessageApplied, "An operator saw that the operation took hold.", word(policy.VerdictApplied)),
	on(workflows.MessageNotApplied, "An operator saw that the operation did not take hold.", word(policy.VerdictNotApplied)),
	on(workflows.MessageUnknown, "Look once more now, at an operation of unknown outcome or at what was parked.", func(p Again) policy.Event {
		return policy.OperationJudged{Operation: p.Operation, Verdict: policy.VerdictUnknown, Operator: p.Operator, Reason: p.Reason}
	}),
	on(workflows.MessageAbort, "End the release: before the switch at once, after it by going back.", func(p Decision) policy.Event {
		return policy.AbortRequested{Operator: p.Operator, Reason: p.Reason}
	}),
	on(workflows.MessagePromote, "Let an eligible release switch.", func(p Decision) policy.Event {
		return policy.PromoteRequested{Operator: p.Operator, Reason: p.Reason}
	}),
}
