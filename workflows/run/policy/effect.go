package policy

import (
	"cmp"
	"slices"
	"time"

	"steward/workflows/run/goal"
	"steward/workflows/run/prompt"
	"steward/workflows/run/receipt"
)

// aliasPrefix begins what stands for the id of a conversation that is still to be created.
const aliasPrefix = "new:"

// reserve makes an effect with its own id. It is not sent before it is the present effect and its attempt begins.
func (d *draft) reserve(kind EffectKind, source, sourceAnswer string) Effect {
	d.Sequence++
	e := Effect{
		ID: d.effectID(d.Sequence), Kind: kind, State: EffectReserved, Generation: 1, Template: prompt.Current,
		Source: source, SourceAnswer: sourceAnswer, ReservedAt: d.at,
	}
	switch kind {
	case KindBootstrap:
		e.Alias = aliasPrefix + d.Goal.Target.New.Key
	case KindEnrollment, KindAdopt, KindResume:
	default:
		e.Fenced = true
	}
	return e
}

// rendered records the digest of the prompt that the effect stands for.
func (d *draft) rendered(e Effect) Effect {
	text, err := d.State.Prompt(e)
	if err == nil {
		e.PromptDigest = prompt.Digest(text)
	}
	return e
}

// Prompt is the text of an effect: a fixed template filled from the state, the same for every generation.
// Source: "Workflow Supervisor authority", Completion proposal protocol.
func (s *State) Prompt(e Effect) (string, error) {
	p := prompt.Params{
		Kind: prompt.Kind(e.Kind), Version: e.Template, Outcome: s.Goal.Outcome, Objective: s.Goal.Objective,
		ConversationID: cmp.Or(e.Alias, s.Site.ConversationID), TaskID: s.TaskID, Scope: s.Scope, EffectID: e.ID,
		Form: s.forms(e)[0], MinEvidence: s.Goal.Completion.Evidence.Min,
		Failed: e.Failed, Note: e.Note, Protocol: e.Protocol,
	}
	if c := s.Goal.Context; c != nil {
		p.Mention, p.Tools = c.Mention, c.Tools
		if c.Workspace != nil {
			p.Workspace = &prompt.Workspace{Repo: c.Workspace.Repo, Checkout: c.Workspace.Checkout}
		}
	}
	return prompt.Render(p)
}

// Want is what a receipt for the present effect must echo.
func (s *State) Want() receipt.Want {
	return receipt.Want{
		ConversationID: s.Site.ConversationID, ConversationAlias: s.Effect.Alias, TaskID: s.TaskID, Scope: s.Scope,
		EffectID: s.Effect.ID, ProposeScope: s.Adopting, Forms: s.forms(s.Effect),
	}
}

func (s *State) pace() goal.Pace { return s.Site.Pace.Filled() }

// NextTurnAt is the earliest time for the prompt after the present turn.
func (s *State) NextTurnAt() time.Time {
	if s.Effect.AppliedAt.IsZero() || s.Goal.Continuation.MinInterval == nil {
		return time.Time{}
	}
	return s.Effect.AppliedAt.Add(s.Goal.Continuation.MinInterval.Std())
}

// forms are the accepted receipt forms of an effect, the one that its prompt asks for first. A correction after a rejected
// proposal asks for the block: only that can say what a person or a check needs to know.
func (s *State) forms(e Effect) []receipt.Form {
	if s.Adopting { // a compact receipt names no scope
		return []receipt.Form{receipt.Block}
	}
	forms := make([]receipt.Form, 0, len(s.Goal.Continuation.Receipts)+1)
	if e.Kind == KindCorrection && !e.Protocol {
		forms = append(forms, receipt.Block)
	}
	for _, f := range s.Goal.Continuation.Receipts {
		if form := receipt.Form(f); !slices.Contains(forms, form) {
			forms = append(forms, form)
		}
	}
	return forms
}
