package policy_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// world is a run among everything that can happen to it: what it asks for, what people say, and what comes late, twice or
// for something else.
type world struct {
	*walk
	rt   *rapid.T
	past []happened
	mood string // what goes wrong most in these days
}

// moods are the kinds of bad days.
var moods = []string{"fair", "fair", "fair", "typing", "outage", "draft", "limits", "crashes", "checks", "receipts", "provider", "people"}

func (x *world) bad(mood string) bool { return x.mood == mood && x.chance(80, mood) }

type happened struct {
	policy.Event
	accepted bool
}

func (x *world) chance(percent int, what string) bool {
	return rapid.IntRange(1, 100).Draw(x.rt, what) <= percent
}

func pick[T any](x *world, what string, of ...T) T { return rapid.SampledFrom(of).Draw(x.rt, what) }

func (x *world) happen(e policy.Event) policy.Decision {
	d := x.try(e)
	if x.past = append(x.past, happened{e, d.Verdict == kernel.Accept}); len(x.past) > 40 {
		x.past = x.past[1:]
	}
	return d
}

// serve does what the state owes, with an outcome of the world's choosing.
func (x *world) serve() {
	o := x.owes()
	switch o.Class {
	case kernel.Timer:
		if o.At.After(x.at) {
			x.at = o.At
		}
		require.Equal(x, kernel.Accept, x.happen(policy.TimerElapsed{Key: o.Key}).Verdict)
		require.NotEqual(x, o.Key, x.owes().Key, "a timer that changes nothing")
		return
	case kernel.Idle:
		x.person()
		return
	case kernel.Effect:
		begun := x.s.Effect.State == policy.EffectDispatching || o.Kind == policy.OweSucceed && x.s.Succession.Begun
		if !begun && !x.begins(o) {
			return
		}
	}
	x.wait(time.Duration(rapid.IntRange(0, 5000).Draw(x.rt, "seconds")) * time.Second)
	before := x.owes().Key
	d := x.happen(x.outcome(o.Kind))
	if d.Verdict != kernel.Accept {
		require.Contains(x, []string{policy.CodeNotSettled, policy.CodeTurnUnread}, d.Code, "the outcome of %s was %s", o.Kind, d.Verdict)
		return
	}
	require.NotEqual(x, before, x.owes().Key, "%s was served and is owed again", o.Kind)
}

// begins takes the event before an effect; false when the effect is then not owed any more.
func (x *world) begins(o kernel.Obligation) bool {
	e := policy.ProviderDispatchStarted{EffectID: x.s.Effect.ID, Generation: x.s.Effect.Generation, Suspect: x.chance(2, "reset")}
	switch o.Kind {
	case policy.OweProbe:
		e.EffectID, e.Generation = x.s.ProbeID(), 1
	case policy.OweInterrupt:
		e.EffectID, e.Generation = x.s.InterruptID(), 1
	case policy.OweSucceed:
		e.EffectID, e.Generation = x.s.Succession.ID, 1
	}
	require.Equal(x, kernel.Accept, x.happen(e).Verdict, "an effect that is owed may not begin: %+v", o)
	return x.owes().Key == o.Key
}

func (x *world) outcome(kind string) policy.Event {
	switch kind {
	case policy.OweSend:
		return x.sent()
	case policy.OweInterrupt:
		return policy.InterruptObserved{EffectID: x.s.Effect.ID, Outcome: pick(x, "press", policy.InterruptStopped, policy.InterruptUnproven)}
	case policy.OweSucceed:
		e := policy.SuccessorBound{Succession: x.s.Succession.ID, Successor: "run:chatgpt:other"}
		e.Owned = x.chance(20, "owned")
		if x.chance(20, "refused") {
			e.Refused = "no conversation can have that address"
		}
		return e
	case policy.OweObserve:
		if x.s.Site.ConversationID == "" && x.chance(50, "address") {
			return x.addressed(x.turn(nil))
		}
		return x.observation()
	case policy.OweRelease:
		if x.chance(20, "open") {
			return policy.ControllerReleaseObserved{EffectID: x.s.Effect.ID}
		}
		return release(x.walk)
	case policy.OweReconcile:
		e := x.look(x.chance(25, "marker"), x.chance(70, "readable"))
		if x.s.Site.ConversationID == "" && x.chance(50, "address") {
			e.ConversationID, e.ConversationURL = otherSite().ConversationID, otherURL
		}
		return e
	case policy.OweValidate:
		outcomes := []string{policy.CheckPass, policy.CheckPass, policy.CheckFail, policy.CheckCannotTell}
		if x.bad("checks") {
			outcomes = outcomes[3:]
		}
		return x.validated(pick(x, "tests", outcomes...), pick(x, "report", outcomes...))
	case policy.OweProgress:
		f := pick(x, "fingerprint", x.s.Completion.Progress, "changed")
		return policy.SemanticStateChanged{Blocker: x.s.Blocker.ID, Look: x.s.Blocker.Probes, Fingerprint: f}
	case policy.OweProbe:
		e := x.probe(x.chance(50, "passed"), pick(x, "level", x.s.ProbeLevel(), "page"))
		e.SiteDigest = pick(x, "site", "site-1", "site-2")
		return e
	}
	require.Fail(x, "nobody serves "+kind)
	return nil
}

func (x *world) sent() policy.Event {
	switch {
	case x.bad("outage"):
		return x.failed(policy.FailureUnreachable)
	case x.bad("typing"):
		return x.failed("composer_mismatch")
	case x.bad("draft"):
		return x.deferred("foreign_draft", time.Time{})
	case x.bad("limits"):
		return x.deferred("rate_limited", x.at.Add(5*time.Hour))
	case x.bad("crashes"):
		return policy.RuntimeOrSessionEvicted{Attempted: x.tried(), Armed: x.chance(70, "armed")}
	}
	switch pick(x, "attempt", "ok", "ok", "ok", "ok", "failed", "deferred", "deferred", "unknown", "lost", "user") {
	case "ok":
		if x.s.Site.ConversationID == "" && x.chance(50, "address") {
			return x.succeededAt(otherURL)
		}
		return x.succeeded()
	case "failed":
		return x.failed(pick(x, "code", "composer_mismatch", "hung", "cancelled", policy.FailureUnreachable, policy.FailureDrift, policy.FailureConversationMissing))
	case "deferred":
		until := time.Time{}
		if x.chance(20, "limit") {
			until = x.at.Add(3 * time.Hour)
		}
		return x.deferred(pick(x, "class", "busy", "rate_limited", "foreign_draft", "conversation_moved", "cancelled", "fenced"), until)
	case "unknown":
		return policy.ProviderDispatchOutcomeUnknown{Attempted: x.tried(), Code: "commit_not_seen"}
	case "lost":
		return policy.RuntimeOrSessionEvicted{Attempted: x.tried(), Armed: x.chance(50, "armed")}
	}
	return policy.ProviderUserActionRequired{Attempted: x.tried(), Class: "login"}
}

func (x *world) observation() policy.Event {
	switch {
	case x.bad("receipts"):
		return x.without(receipt.CodeMalformed, true)
	case x.bad("provider"):
		return x.broken("stopped")
	}
	switch pick(x, "turn", "receipt", "receipt", "receipt", "none", "broken", "other") {
	case "receipt":
		e := x.turn(x.statement())
		if len(x.s.Goal.Progress) > 0 {
			e.Progress = pick(x, "progress", "p1", "p2")
		}
		return e
	case "none":
		violation := x.chance(70, "violation")
		return x.without(map[bool]string{true: receipt.CodeMissing, false: receipt.CodeMangled}[violation], violation)
	case "broken":
		return x.broken("delivery_unavailable")
	}
	e := x.turn(nil)
	e.Turn = pick(x, "state", policy.TurnOpen, policy.TurnMoved, policy.TurnMissing, policy.TurnUserAction, policy.TurnDrift, policy.TurnUnread)
	return e
}

// statement is a receipt of any action; it often says what the last one said.
func (x *world) statement() *receipt.Receipt {
	action := pick(x, "action", receipt.Continue, receipt.Continue, receipt.Done, receipt.NeedsUser)
	r := x.receipt(action)
	if x.chance(60, "same words") {
		r.Checkpoint, r.Evidence = "no change", []string{"none"}
	}
	r.Digest = fmt.Sprintf("%064d", x.n)
	x.n++
	if x.s.Adopting {
		r.Scope = pick(x, "scope", x.s.Scope, "goal:orders-green", "goal:billing")
	}
	if u := r.UserAction; u != nil {
		u.Kind = pick(x, "kind", "decision", "other", "test_failure")
	}
	if x.chance(10, "long") {
		r.Reason, r.Checkpoint = strings.Repeat("<é", 1000), strings.Repeat("words ", 300)+fmt.Sprint(x.n)
	}
	return r
}

// person sends a message: often the one that the state waits for.
func (x *world) person() {
	x.wait(time.Duration(rapid.IntRange(0, 600).Draw(x.rt, "thinking")) * time.Second)
	if o := x.owes(); o.Class == kernel.Idle && x.chance(70, "helpful") {
		e := x.expected(o)
		d := x.happen(e)
		require.Equal(x, kernel.Accept, d.Verdict, "%q names a message that is refused: %s %s", o.Summary, e.Name(), d.Code)
		return
	}
	x.happen(pick(x, "message", x.messages()...))
}

// expected is the message that an idle obligation names.
func (w *walk) expected(o kernel.Obligation) policy.Event {
	switch {
	case strings.HasPrefix(o.Summary, "the outcome"):
		return w.succeeded()
	case o.Summary == "resume":
		return w.resume("")
	case strings.HasPrefix(o.Summary, "resume, answering "):
		e := w.resume(strings.Fields(o.Summary)[2])
		e.Note = "please go on"
		return e
	case o.Summary == "approve or decline":
		return policy.ApprovalGiven{Completion: w.s.Completion.ID, Operator: "ann", Reason: "good"}
	case o.Summary == "an occurrence":
		return policy.OccurrenceRequested{OccurrenceID: fmt.Sprint("revision ", w.s.Revision), Operator: "cron"}
	case o.Summary == "recover":
		return recoverEvent(w)
	case o.Summary == "stop":
		return stopEvent(w)
	}
	require.Fail(w, "nobody knows how to answer "+o.Summary)
	return nil
}

// messages are what people and programs may say at any time.
func (x *world) messages() []policy.Event {
	answers := []string{"", x.s.Completion.ID, "cp_other"}
	if x.s.Blocker != nil {
		answers = append(answers, x.s.Blocker.ID)
	}
	answer := x.resume(pick(x, "answers", answers...))
	answer.Note = pick(x, "note", "", "go on")
	word := x.word(pick(x, "verdict", policy.VerdictApplied, policy.VerdictNotApplied, policy.VerdictUnknown))
	word.WithoutObservation = x.chance(30, "without look")
	events := []policy.Event{
		pauseEvent(x.walk), x.resume(""), answer, word, supersede(x.walk), recoverEvent(x.walk),
		policy.AuthorityRecoveryRequested{Revision: x.s.Revision, AuthorityID: x.s.AuthorityID, Operator: "ann", Reason: "leaked"},
		policy.SemanticDispositionSubmitted{EffectID: x.s.Effect.ID, Disposition: policy.DispositionWait, Reason: "later"},
		policy.SemanticDispositionSubmitted{EffectID: x.s.Effect.ID, Receipt: x.statement(), AnswerDigest: "early"},
		policy.OccurrenceRequested{OccurrenceID: pick(x, "occurrence", "o1", "o2")},
		policy.ApprovalGiven{Completion: x.s.Completion.ID, Operator: "ann", Reason: "good"},
		policy.ApprovalDeclined{Completion: x.s.Completion.ID, Operator: "ann", Reason: "bad"},
		policy.SemanticStateChanged{Operator: "ann", Note: "changed"},
		policy.StalledRoundObserved{},
		policy.ControllerClaimObserved{EffectID: x.s.Effect.ID, At: x.at},
	}
	if x.s.Status == policy.Claimed {
		events = events[7:9] // what only a turn in flight can say
	}
	if x.chance(10, "ending") {
		events = append(events, stopEvent(x.walk), interruptEvent(x.walk), cancelEvent(x.walk))
	}
	return events
}
