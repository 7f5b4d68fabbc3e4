package policy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/workflows/machine/kernel"
	"steward/workflows/run/goal"
	"steward/workflows/run/policy"
	"steward/workflows/run/receipt"
)

// small is a contract in which every bound is near.
func small(g *goal.Goal, s *goal.SiteFacts) {
	g.Completion.Checks = g.Completion.Checks[:1]
	g.Completion.OperatorApproval = true
	c := &g.Continuation
	for _, bound := range []**int{
		&c.MaxRepeatedState, &c.MaxRounds, &c.MaxProviderFailures, &c.MaxGenerations, &c.UnknownBound,
	} {
		two := 2
		*bound = &two
	}
	for _, bound := range []**int{&c.StagnationAfter, &c.MaxProtocolViolations, &c.MaxRecoveryEpochs, &c.MaxRecoveries} {
		one := 1
		*bound = &one
	}
	s.Pace.Unclear = []goal.Duration{goal.Duration(time.Second)}
	g.UserBlocker.Allowed = []string{"decision"}
}

// place is a state of the model, with what is true of the world: whether the message of the present effect stands in the
// conversation.
type place struct {
	s      policy.State
	at     time.Time
	landed bool
	from   *place
	by     string
}

// move is an event that can come at a place, and what it makes true.
type move struct {
	e      policy.Event
	landed bool
	after  time.Duration
	owed   bool // it answers what the state owes
}

// key is what the policy's further answers depend on. Counters that only number things are left out: an event either has
// the present number or not, and the model delivers both.
func (p *place) key() string {
	s := p.s
	e, b, c := s.Effect, s.Budgets, s.Completion
	blocker, proposal, deferral, word, stop := "", "", "", "", ""
	if x := s.Blocker; x != nil {
		blocker = fmt.Sprint(x.Class, x.Mechanical, x.Resumed, x.NotBefore.IsZero())
	}
	if x := s.Proposal; x != nil {
		proposal = fmt.Sprint(min(x.Unclear, 2), x.Approval, x.NotBefore.IsZero())
	}
	if x := e.Deferral; x != nil {
		deferral = fmt.Sprint(x.Class, x.Overdue)
	}
	if x := e.Word; x != nil {
		word = fmt.Sprint(x.Refuted)
	}
	if x := s.Stop; x != nil {
		stop = fmt.Sprint(x.Canceled, x.Interrupt, x.Interrupted)
	}
	if x := s.Succession; x != nil {
		stop += fmt.Sprint(x.Kind, x.Begun, x.ConversationURL == "")
	}
	return fmt.Sprint(
		p.landed, s.Status, s.Stage, s.Paused != nil, stop, blocker, proposal, s.Next != nil, s.Doubted,
		"|", e.Fenced, e.State, min(e.Generation-e.EpochBase, 3), e.NotBefore.IsZero(), deferral, min(e.Looks, 2), word,
		"|", !s.Turn.SettledAt.IsZero(), c.Effect == e.ID, c.ID != "",
		"|", b.Rounds, b.RepeatedState, b.Stagnation, b.ProviderFailures.Streak, min(b.ProviderFailures.Epoch, 2),
		"|", s.Violations, s.Mangled, s.Recoveries,
	)
}

// outline is what tells whether an event is addressed to a place at all.
func (p *place) outline() string {
	s, class := p.s, policy.BlockerClass("")
	if s.Blocker != nil {
		class = s.Blocker.Class
	}
	return fmt.Sprint(s.Status, s.Stage, s.Effect.State, class, s.Paused != nil, s.Stop != nil, s.Proposal != nil, s.Next != nil, s.Succession != nil,
		s.Completion.Effect == s.Effect.ID, s.Turn.SettledAt.IsZero(), s.Effect.NotBefore.IsZero(), s.Effect.ID == s.Chain()[0].Effect)
}

// String is the way that leads to a place.
func (p *place) String() string {
	if p.from == nil {
		return p.by
	}
	return p.from.String() + " → " + p.by
}

// decide takes one event to the next place; nil when it changes nothing.
func (p *place) decide(t tester, m move) *place {
	at := p.at.Add(m.after)
	if o := (policy.Policy{}).Obligation(p.s); o.Class == kernel.Timer && o.At.After(at) {
		if _, elapsed := m.e.(policy.TimerElapsed); elapsed {
			at = o.At
		}
	}
	d := policy.Policy{}.Decide(p.s, m.e, kernel.Meta{At: at})
	step(t, p.s, m.e, d)
	if d.Verdict != kernel.Accept {
		return nil
	}
	next := &place{s: d.Next, at: at, landed: m.landed, from: p, by: m.e.Name()}
	if next.s.Effect.ID != p.s.Effect.ID {
		next.landed = false
	}
	if next.s.Dispatches != p.s.Dispatches && p.landed {
		require.Fail(t, "a send begins for a message that stands in the conversation", "%v", next)
	}
	return next
}

// lenses are the parts of the world that the model looks at together; the whole of it at once is for the long tests.
var lenses = map[string]func(policy.Event) bool{
	"succession": func(e policy.Event) bool {
		switch e := e.(type) {
		case policy.EffectObserved:
			return e.Reading.Receipt != nil
		case policy.SemanticDispositionSubmitted:
			return e.Disposition == policy.DispositionHandoff
		case policy.ProviderDispatchDeferred:
			return e.Class == "cancelled"
		case policy.ProviderDispatchFailed:
			return e.Code == policy.FailureConversationMissing
		case policy.RuntimeOrSessionEvicted, policy.AuthorityRecoveryRequested, policy.RecoveryRequested, policy.ControllerClaimObserved:
			return false
		}
		return true
	},
	"sends": func(e policy.Event) bool {
		switch e := e.(type) {
		case policy.ConversationRebound:
			return false
		case policy.EffectObserved:
			return e.Reading.Receipt != nil && strings.HasPrefix(e.Reading.Receipt.Checkpoint, "from")
		case policy.StopRequested:
			return !e.Interrupt
		case policy.SemanticDispositionSubmitted, policy.RecoveryRequested, policy.AuthorityRecoveryRequested, policy.CancelRequested,
			policy.ControllerClaimObserved, policy.PauseRequested:
			return false
		}
		return true
	},
	"turns": func(e policy.Event) bool {
		switch e := e.(type) {
		case policy.ProviderDispatchStarted:
			return !e.Suspect
		case policy.ProviderDispatchDeferred:
			return e.Class == "conversation_moved"
		case policy.SemanticDispositionSubmitted:
			return e.Disposition != policy.DispositionHandoff
		case policy.ConversationRebound, policy.ProviderDispatchFailed, policy.RuntimeOrSessionEvicted, policy.ProviderUserActionRequired,
			policy.ProviderDispatchOutcomeUnknown, policy.PauseRequested, policy.AuthorityRecoveryRequested, policy.CancelRequested:
			return false
		}
		return true
	},
	"people": func(e policy.Event) bool {
		switch e := e.(type) {
		case policy.EffectObserved:
			return e.Reading.Receipt != nil
		case policy.ProviderDispatchStarted:
			return !e.Suspect
		case policy.ProviderDispatchDeferred:
			return e.Class == "cancelled"
		case policy.SemanticDispositionSubmitted:
			return e.Disposition != policy.DispositionHandoff
		case policy.ConversationRebound, policy.ProviderDispatchFailed, policy.RuntimeOrSessionEvicted, policy.ProviderUserActionRequired:
			return false
		}
		return true
	},
}

// Every state that two rounds can come to, with every event that can come there, late, twice, or for something else, and a
// restart or a reset at any point.
func TestEveryStateOfTwoRounds(t *testing.T) {
	for name, lens := range lenses {
		t.Run(name, func(t *testing.T) { explore(t, lens) })
	}
	if os.Getenv("STEWARD_TEST_FULL") != "" {
		t.Run("everything", func(t *testing.T) { explore(t, func(policy.Event) bool { return true }) })
	}
}

func explore(t *testing.T, lens func(policy.Event) bool) {
	t.Helper()
	first := start(t, small)
	begin := &place{s: first.s, at: first.at, by: "start"}
	seen := map[string]*place{begin.key(): begin}
	into := map[string][]string{} // key → keys of the places that lead there without a stop
	queue, outlines := []*place{begin}, map[string]bool{}
	decisions := 0
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		here := p.key()
		w := &walk{tester: t, s: p.s, at: p.at}
		o, alive := w.owes(), false
		if o.Class == kernel.Idle {
			alive = p.decide(t, move{e: w.expected(o), landed: p.landed}) != nil
		}
		for _, m := range p.natural(w) {
			if !lens(m.e) {
				continue
			}
			decisions++
			next := p.decide(t, m)
			if next == nil {
				continue
			}
			decisions++
			if again := next.decide(t, m); again != nil {
				require.True(t, repeatable(m.e), "%s is accepted twice: %v", m.e.Name(), again)
			}
			key := next.key()
			alive = alive || m.owed && (key != here || policy.Policy{}.Obligation(next.s).Key != o.Key)
			if next.s.Stop == nil || p.s.Stop != nil {
				into[key] = append(into[key], here)
			}
			if seen[key] == nil {
				seen[key] = next
				if !next.s.Terminal() {
					queue = append(queue, next)
				}
			}
		}
		require.True(t, alive, "nothing that is owed moves this state: %v", p)
		if outlines[p.outline()] {
			continue
		}
		outlines[p.outline()] = true
		for _, e := range misaddressed(w) {
			decisions++
			d := policy.Policy{}.Decide(p.s, e, kernel.Meta{At: p.at})
			require.NotEqual(t, kernel.Accept, d.Verdict, "%s is not for this state: %+v after %v", e.Name(), e, p)
		}
	}
	t.Logf("%d states, %d decisions", len(seen), decisions)
	require.Greater(t, len(seen), 200)

	ends := reaching(into, seen, func(p *place) bool {
		return p.s.Status == policy.GoalComplete || p.s.Status == policy.HandedOff || p.s.Blocker != nil && p.s.Blocker.Class == policy.BlockedRounds
	})
	for key, p := range seen {
		require.True(t, ends[key] || p.s.Stop != nil, "neither the goal nor the end of the budget can be reached from here: %v", p)
	}
}

// reaching are the places from which a place of that sort can be reached.
func reaching(into map[string][]string, seen map[string]*place, sort func(*place) bool) map[string]bool {
	found := map[string]bool{}
	var queue []string
	for key, p := range seen {
		if sort(p) {
			found[key] = true
			queue = append(queue, key)
		}
	}
	for len(queue) > 0 {
		key := queue[0]
		queue = queue[1:]
		for _, before := range into[key] {
			if !found[before] {
				found[before] = true
				queue = append(queue, before)
			}
		}
	}
	return found
}

// natural is what can truly happen at a place: the outcomes of what is owed, messages of people, a restart.
func (p *place) natural(w *walk) []move {
	var moves []move
	add := func(landed bool, events ...policy.Event) {
		for _, e := range events {
			moves = append(moves, move{e: e, landed: landed, after: time.Second, owed: true})
		}
	}
	o, id := w.owes(), w.s.Effect.ID
	if w.s.Effect.State == policy.EffectDispatching {
		add(true, w.succeeded())
		if !p.landed {
			add(false, w.failed("hung"), w.failed("cancelled"), w.failed(policy.FailureDrift), w.deferred("busy", time.Time{}),
				w.deferred("rate_limited", w.at.Add(3*time.Hour)), w.deferred("cancelled", time.Time{}), w.deferred("conversation_moved", time.Time{}),
				policy.RuntimeOrSessionEvicted{Attempted: w.tried()}, policy.ProviderUserActionRequired{Attempted: w.tried(), Class: "login"})
			moves = append(moves, move{e: w.deferred("foreign_draft", time.Time{}), after: 2 * time.Hour})
		}
		for _, landed := range []bool{p.landed, true} {
			add(landed, policy.ProviderDispatchOutcomeUnknown{Attempted: w.tried()}, policy.RuntimeOrSessionEvicted{Attempted: w.tried(), Armed: true})
		}
	}
	switch o.Kind {
	case policy.OweSend:
		add(p.landed, beginEvent(w), policy.ProviderDispatchStarted{EffectID: id, Generation: w.s.Effect.Generation, Suspect: true})
	case policy.OweProbe:
		begin := policy.ProviderDispatchStarted{EffectID: w.s.ProbeID(), Generation: 1}
		passed := w.probe(true, "message")
		passed.SiteDigest = "site-2"
		add(p.landed, begin, w.probe(false, "page"), w.probe(true, "page"), passed)
		begin.Suspect = true
		add(p.landed, begin)
	case policy.OweInterrupt:
		begin := policy.ProviderDispatchStarted{EffectID: w.s.InterruptID(), Generation: 1}
		add(p.landed, begin, policy.InterruptObserved{EffectID: id, Outcome: policy.InterruptPressed})
	case policy.OweRelease:
		add(p.landed, release(w), policy.ControllerReleaseObserved{EffectID: id})
	case policy.OweReconcile:
		add(p.landed, w.look(p.landed, true), w.look(false, false))
	case policy.OweValidate:
		for _, outcome := range []string{policy.CheckPass, policy.CheckFail, policy.CheckCannotTell} {
			add(p.landed, w.validated(outcome, ""))
		}
	case policy.OweObserve:
		add(p.landed, observations(w)...)
	case policy.OweSucceed:
		begin := policy.ProviderDispatchStarted{EffectID: w.s.Succession.ID, Generation: 1}
		bound := policy.SuccessorBound{Succession: w.s.Succession.ID, Successor: "run:chatgpt:other"}
		owned, refused := bound, bound
		owned.Owned, refused.Refused = true, "no such site"
		add(p.landed, begin, bound, owned, refused)
		begin.Suspect = true
		add(p.landed, begin)
	}
	if o.Class == kernel.Timer {
		add(p.landed, policy.TimerElapsed{Key: o.Key})
	}
	for _, e := range spoken(w, p.landed) {
		moves = append(moves, move{e: e, landed: p.landed, after: time.Second})
	}
	return moves
}

func observations(w *walk) []policy.Event {
	statements := func(action receipt.Action, words string) policy.Event {
		r := w.receipt(action)
		r.Checkpoint, r.Evidence, r.Digest = words, nil, words
		return w.turn(r)
	}
	events := []policy.Event{
		statements(receipt.Continue, "same"), statements(receipt.Continue, "from "+w.s.Effect.ID), statements(receipt.Done, "same"),
		statements(receipt.NeedsUser, "same"), w.without(receipt.CodeMissing, true), w.without(receipt.CodeMangled, false), w.broken("stopped"),
		policy.ControllerClaimObserved{EffectID: w.s.Effect.ID, At: w.at},
	}
	for _, state := range []string{policy.TurnOpen, policy.TurnUnread, policy.TurnMoved, policy.TurnMissing, policy.TurnUserAction, policy.TurnDrift} {
		e := w.turn(nil)
		e.Turn = state
		events = append(events, e)
	}
	return events
}

// spoken is what people and programs can truly say: nobody lies about a message that stands there.
func spoken(w *walk, landed bool) []policy.Event {
	id := w.s.Effect.ID
	events := []policy.Event{
		pauseEvent(w), w.resume(""), stopEvent(w), interruptEvent(w),
		policy.CancelRequested{},
		policy.StalledRoundObserved{},
		w.word(policy.VerdictUnknown), supersede(w), recoverEvent(w),
		policy.OccurrenceRequested{OccurrenceID: "o1"},
		policy.OccurrenceRequested{OccurrenceID: fmt.Sprint("o", 1+len(w.s.Occurrences))},
		policy.SemanticStateChanged{Operator: "ann", Note: "changed"},
		policy.ApprovalGiven{Completion: w.s.Completion.ID, Operator: "ann", Reason: "good"},
		policy.ApprovalDeclined{Completion: w.s.Completion.ID, Operator: "ann", Reason: "bad"},
		policy.SemanticDispositionSubmitted{EffectID: id, Disposition: policy.DispositionWait},
		policy.SemanticDispositionSubmitted{EffectID: id, Receipt: &receipt.Receipt{Form: receipt.Block, Action: receipt.Continue, Digest: "early"}},
		policy.AuthorityRecoveryRequested{Revision: w.s.Revision, AuthorityID: w.s.AuthorityID, Operator: "ann"},
		policy.ConversationRebound{ConversationURL: otherURL, Operator: "ann", Reason: "moved"},
		policy.SemanticDispositionSubmitted{EffectID: id, Disposition: policy.DispositionHandoff, Scope: "goal:" + id},
		policy.SemanticDispositionSubmitted{EffectID: id, Disposition: policy.DispositionHandoff, ConversationURL: otherURL},
	}
	if landed {
		events = append(events, w.word(policy.VerdictApplied))
	} else {
		events = append(events, w.word(policy.VerdictNotApplied), withoutLook(w))
	}
	answer := w.resume(w.s.Completion.ID)
	answer.Note = "go on"
	if w.s.Blocker != nil {
		answer.Answers = w.s.Blocker.ID
	}
	return append(events, answer)
}
