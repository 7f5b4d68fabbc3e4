package policy

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
)

// Kinds of a succession.
const (
	// SuccessionHandoff gives the work to a new scope of the same conversation, or to another conversation.
	SuccessionHandoff = "handoff"
	// SuccessionRebind moves the run as it is to another conversation.
	SuccessionRebind = "rebind"
	// SuccessionBootstrap moves it to the durable address of the conversation that its first send created.
	SuccessionBootstrap = "bootstrap"
)

// Succession is a move that was decided: nothing new is sent here any more, what was sent is observed to its end, and then
// the successor is bound and this one handed off in one decision.
// Source: "ControllerRound transition policy", Legal lifecycle skeleton.
type Succession struct {
	ID   string `json:"id"`
	Kind string `json:"kind"`
	// ConversationURL is where it goes; empty for the same conversation. Scope, Objective and Outcome are those of the
	// successor; empty means unchanged.
	ConversationURL string    `json:"conversation_url,omitempty"`
	Scope           string    `json:"scope,omitempty"`
	Objective       string    `json:"objective,omitempty"`
	Outcome         string    `json:"outcome,omitempty"`
	By              string    `json:"by,omitempty"`
	Reason          string    `json:"reason,omitempty"`
	At              time.Time `json:"at"`
	// Begun: the successor is being started; a stop has to go there. Tries counts the starts that found its id taken.
	Begun bool `json:"begun,omitempty"`
	Tries int  `json:"tries,omitempty"`
	// Successor is the workflow id that took over.
	Successor string `json:"successor,omitempty"`
}

// Node is an earlier scope of this lineage that has ended for good.
type Node struct {
	WorkflowID string    `json:"workflow_id"`
	Scope      string    `json:"scope"`
	Status     Status    `json:"status"`
	Completion string    `json:"completion,omitempty"`
	Rounds     int       `json:"rounds"`
	At         time.Time `json:"at"`
}

const maxNodes = 16

func (d *draft) plan(p Succession) {
	p.ID, p.At = d.derive("sc_", "succession", int(d.Revision)), d.at
	if p.By == "" {
		p.By = d.caller
	}
	d.Succession = &p
}

// handoff closes the present round in favour of another scope or conversation. The successor starts once the turn settled.
func (d *draft) handoff(e SemanticDispositionSubmitted) verdict {
	switch {
	case e.Scope == "" && e.ConversationURL == "":
		return needs(CodeSuccessorMissing, "scope or conversation_url")
	case e.ConversationURL == "" && (e.Scope == d.Scope || d.left(e.Scope) != nil):
		return reject(CodeScopeUsed)
	case d.Succession != nil:
		return reject(CodeSuccessionPending)
	case d.Budgets.Rounds >= d.Budgets.MaxRounds:
		return reject(string(BlockedRounds))
	}
	d.close(e, "HANDOFF")
	d.plan(Succession{
		Kind: SuccessionHandoff, Scope: e.Scope, ConversationURL: e.ConversationURL, Objective: e.Objective, Outcome: e.Outcome,
		Reason: clip(e.Reason, maxDetail),
	})
	d.enter(PendingRelease, StageClosed)
	return accepted
}

// left is the node of a scope of this workflow id that has ended for good.
func (s *State) left(scope string) *Node {
	i := slices.IndexFunc(s.Predecessors, func(n Node) bool { return n.Scope == scope && n.WorkflowID == s.WorkflowID })
	if i < 0 {
		return nil
	}
	return &s.Predecessors[i]
}

// rebound asks to move the run to another conversation: new sends are fenced at once, started ones are observed to their
// end, and an effect of unknown outcome is reconciled first.
func (d *draft) rebound(e ConversationRebound) verdict {
	switch p := d.Succession; {
	case d.Stop != nil:
		return reject(CodeStopping)
	case p != nil && p.ConversationURL == e.ConversationURL, e.ConversationURL == d.Site.ConversationURL:
		return noOp(CodeDuplicate)
	case p != nil:
		return reject(CodeSuccessionPending)
	case e.ConversationURL == "":
		return needs(CodeSuccessorMissing, "conversation_url")
	case e.Operator == "":
		return needs(CodeOperatorMissing, "operator")
	case e.Reason == "":
		return needs(CodeReasonMissing, "reason")
	}
	d.plan(Succession{Kind: SuccessionRebind, ConversationURL: e.ConversationURL, By: e.Operator, Reason: clip(e.Reason, maxDetail)})
	return accepted
}

// conversationBound takes the durable address of the conversation that the applied effect created.
func (d *draft) conversationBound(e ConversationBound) verdict {
	switch {
	case e.EffectID != d.Effect.ID && d.past(e.EffectID):
		return noOp(CodeDuplicate)
	case e.EffectID != d.Effect.ID:
		return reject(CodeEffectMismatch)
	case d.Effect.State != EffectApplied:
		return reject(CodeNotApplied)
	case e.ConversationID == "" || e.ConversationURL == "":
		return needs(CodeSuccessorMissing, "conversation_id", "conversation_url")
	case d.Site.ConversationID == e.ConversationID,
		d.Succession != nil && d.Succession.Kind == SuccessionBootstrap && d.Succession.ConversationURL == e.ConversationURL:
		return noOp(CodeDuplicate)
	case !d.unbound() || d.Succession != nil && d.Succession.Kind == SuccessionBootstrap:
		return reject(CodeConversationMismatch)
	}
	d.arrived(e.ConversationID, e.ConversationURL)
	return accepted
}

// unbound tells whether the conversation is still to be created, or has no durable address yet.
func (s *State) unbound() bool {
	return s.Site != nil && s.Site.ConversationID == "" && s.Goal != nil && s.Goal.Target.New != nil
}

// arrived binds a new conversation to its durable address, once: its run goes on under that conversation's own id. A run
// that is about to end or to move elsewhere only notes where its message stands.
func (d *draft) arrived(id, url string) {
	switch {
	case !d.unbound() || id == "" || url == "":
	case d.Stop != nil || d.Succession != nil && d.Succession.Kind != SuccessionBootstrap:
		site := *d.Site
		site.ConversationID, site.ConversationURL = id, url
		d.Site = &site
	case d.Succession == nil:
		d.plan(Succession{Kind: SuccessionBootstrap, ConversationURL: url, Reason: "the conversation has its durable address"})
	}
}

// HandedTo is the workflow id of the run that goes on in place of this one; empty when none does.
func (s *State) HandedTo() string {
	if s.Status != HandedOff || s.Succession == nil {
		return ""
	}
	return s.Succession.Successor
}

// moves tells whether nothing of the present conversation is under way any more, so that the successor may start.
func (s *State) moves() bool {
	p := s.Succession
	switch {
	case p == nil || s.Effect.State == EffectDispatching || s.Effect.State == EffectUnknown:
		return false
	case p.Begun:
		return true
	case s.Status == Dispatched || s.Status == Claimed:
		return p.Kind == SuccessionBootstrap
	case s.Status == PendingRelease && s.Turn.SettledAt.IsZero():
		return false
	}
	return s.Proposal == nil
}

func (s *State) oweSucceed() kernel.Obligation {
	key := s.Succession.ID + ":" + strconv.Itoa(s.Succession.Tries)
	if b := s.Blocker; b != nil && b.Class == BlockedOwned && !b.NotBefore.IsZero() {
		return until(b.NotBefore, "succeed:"+key, "until the next look whether the other run has ended")
	}
	return owe(kernel.Effect, OweSucceed, key, fmt.Sprintf("hand over (%s)", s.Succession.Kind))
}

func (d *draft) successionStarted() verdict {
	switch {
	case d.Stop != nil:
		return reject(CodeStopping)
	case !d.moves():
		return reject(CodeIllegal)
	case d.Succession.Begun:
		return noOp(CodeDuplicate)
	case d.Blocker != nil && d.Blocker.Class == BlockedOwned && !d.Blocker.NotBefore.IsZero():
		return reject(CodeNotDue)
	}
	next := *d.Succession
	next.Begun = true
	d.Succession = &next
	return accepted
}

// bound takes the outcome of the start of the successor: predecessor and successor change in one decision, or neither does.
func (d *draft) bound(e SuccessorBound) verdict {
	if d.Succession == nil || d.Succession.ID != e.Succession {
		return reject(CodeNoSuccession)
	}
	if !d.Succession.Begun {
		return reject(CodeIllegal)
	}
	next := *d.Succession
	next.Begun, next.Successor = false, e.Successor
	d.Succession = &next
	switch {
	case e.Refused != "":
		d.abandon(e.Refused)
		return acceptAs(CodeSuccessorRefused)
	case e.Owned:
		return d.owned(e.Successor)
	case e.Successor == "":
		return needs(CodeSuccessorMissing, "successor")
	case next.ConversationURL == "":
		d.Succession = nil
		d.leave()
		d.newScope(next)
		return acceptAs("scope_handed_off")
	}
	d.Blocker, d.Next = nil, nil
	d.enter(HandedOff, StageClosed)
	return accepted
}

// abandon gives a move up that cannot be: a handoff leaves a run that waits; a bootstrap whose conversation has an address
// that no run can have, one that a person or another site profile must help; a rebind leaves it as it was.
func (d *draft) abandon(why string) {
	switch d.Succession.Kind {
	case SuccessionHandoff:
		d.Blocker = nil
		d.enter(Waiting, StageClosed)
	case SuccessionBootstrap:
		d.block(BlockedDrift, CodeSuccessorRefused, why)
	}
	d.Succession = nil
}

// owned: another open run has the conversation. Its end is looked for; a wait for a person or another kind of blocker is
// not given up for that.
func (d *draft) owned(id string) verdict {
	d.Succession.Tries++
	switch {
	case d.Blocker != nil && d.Blocker.Class == BlockedOwned:
		d.nextProbe()
	case d.Status == Dispatching, d.Status == Dispatched, d.Status == Claimed, d.Status == PendingRelease, d.pageBound():
		d.Succession.Successor = ""
		d.block(BlockedOwned, string(BlockedOwned), "an open run has it: "+id)
	default:
		d.abandon(string(BlockedOwned))
	}
	return acceptAs(string(BlockedOwned))
}

// pageBound tells whether the blocker is one of the conversation's page alone.
func (s *State) pageBound() bool {
	if s.Status != Blocked {
		return false
	}
	switch s.Blocker.Class {
	case BlockedMissing, BlockedDrift, BlockedForeignDraft, BlockedOwned:
		return true
	}
	return false
}

// newScope begins the next scope: a round of the same lineage with its own authority. The maxima stay; what the browser
// failed at is no matter of the scope. Source: "ControllerRound transition policy", Authority contract 3.
func (d *draft) newScope(p Succession) {
	d.Adopting = d.Adopting && p.Scope == ""
	if p.Scope != "" && p.Scope != d.Scope {
		d.Budgets.Rounds, d.Budgets.RepeatedState, d.Budgets.Stagnation = 0, 0, false
		d.Scope = p.Scope
	}
	g := *d.Goal
	g.Scope = d.Scope
	if p.Objective != "" {
		g.Objective = p.Objective
	}
	if p.Outcome != "" {
		g.Outcome = p.Outcome
	}
	d.Goal = &g
	d.ClaimGeneration++
	d.rotate()
	d.enrollAnew()
	d.Completion = Completion{}
}

// leave notes the present scope as handed off.
func (d *draft) leave() {
	d.Predecessors = appendBounded(d.Predecessors, maxNodes, Node{
		WorkflowID: d.WorkflowID, Scope: d.Scope, Status: HandedOff, Completion: d.Completion.ID, Rounds: d.Budgets.Rounds, At: d.at,
	})
}

// enrollAnew replaces whatever was to be said by the opening of the same round.
func (d *draft) enrollAnew() {
	d.closeTurn()
	d.Effect = d.rendered(d.reserve(d.opening(), "", ""))
	d.Turn, d.Next, d.Proposal, d.Blocker = Turn{}, nil, nil, nil
	d.enter(Dispatching, StageDispatching)
}

// Successor is the whole state that the run of another conversation goes on with: the same task, relay scope and budgets.
// A rebind keeps the authority of its round, and every wait and blocker that is not of the page it leaves. Target is what earlier
// runs of that conversation left behind.
func (s State) Successor(to goal.SiteFacts, target *Lineage, at time.Time) State {
	d := draft{State: s, at: at}
	p := *s.Succession
	d.Succession = nil
	d.leave()
	g := *d.Goal
	g.Target.ConversationURL, g.Target.New = to.ConversationURL, nil
	to.PageURL = s.Site.PageURL
	d.Goal, d.Site = &g, &to
	d.WorkflowID = goal.WorkflowID(g, to)
	d.RunID = s.RunID + ":" + p.ID // were this run reset, it would derive the ids of its own effects again, and not those of the successor
	d.Revision++
	switch {
	case p.Kind == SuccessionHandoff:
		d.newScope(p)
		d.takeOver(target)
		return d.State
	case p.Kind == SuccessionRebind && (d.Status == Dispatching || d.pageBound()), p.Kind == SuccessionBootstrap && d.Stage == StageDispatching:
		d.enrollAnew()
	case d.pageBound():
		d.unblock()
	}
	if d.Effect.Kind == KindBootstrap && d.Effect.State != EffectApplied { // there is a conversation now
		d.Effect = d.rendered(d.reserve(KindEnrollment, "", ""))
	}
	d.ClaimGeneration++
	d.takeOver(target)
	return d.State
}
