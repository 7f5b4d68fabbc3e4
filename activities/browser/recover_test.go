package browser

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"steward/activities"
	"steward/integration/chatlab"
)

// observing starts an observation in the background.
func (l *lab) observing(t *testing.T, in activities.ObserveInput) <-chan activities.ObserveResult {
	t.Helper()
	in.Until = time.Now().Add(90 * time.Second)
	done := make(chan activities.ObserveResult, 1)
	go func() {
		r, err := l.browser.Observe(context.WithoutCancel(t.Context()), in)
		if err != nil {
			r.Detail = err.Error()
		}
		done <- r
	}()
	return done
}

func TestLosingATabOrABrowserChangesNoTurn(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *tab){
		"the tab is closed":     func(t *testing.T, tb *tab) { require.NoError(t, tb.page.Close()) },
		"the page crashes":      func(_ *testing.T, tb *tab) { go func() { _, _ = tb.page.Goto("chrome://crash") }() },
		"the browser is killed": func(t *testing.T, tb *tab) { require.NoError(t, unix.Kill(tb.session.browser.PID, unix.SIGKILL)) },
		"the driver is killed":  func(t *testing.T, tb *tab) { require.NoError(t, unix.Kill(tb.session.driver.PID, unix.SIGKILL)) },
		"the driver is frozen":  func(t *testing.T, tb *tab) { require.NoError(t, unix.Kill(tb.session.driver.PID, unix.SIGSTOP)) },
		"the browser is frozen": func(t *testing.T, tb *tab) { require.NoError(t, unix.Kill(tb.session.browser.PID, unix.SIGSTOP)) },
		"the page hangs for long": func(t *testing.T, tb *tab) {
			_, err := tb.page.Evaluate(`() => { setTimeout(() => { for (;;); }, 0) }`)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := alone(t, func(*Options) {})
			c := l.conversation(t, `otherwise: [{text: begun}, {gate: go}, {text: '`+valid+`'}]`)
			fx := effect()
			require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
			p, err := l.browser.place(c)
			require.NoError(t, err)
			l.browser.tabs.mu.Lock()
			tb := l.browser.tabs.open[p.key]
			l.browser.tabs.mu.Unlock()
			done := l.observing(t, observeInput(c, fx))
			require.Eventually(t, tb.generating.Load, 10*time.Second, 20*time.Millisecond)
			lose(t, tb)
			require.NoError(t, l.Release(c.ID, "go"))
			r := <-done
			require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
			require.NotNil(t, r.Reading.Receipt)
			require.Len(t, l.Record(c.ID), 1)
		})
	}
}

func TestAnObservationStopsSoonWhenItIsCancelled(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: begun}, {gate: never}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := l.browser.Observe(ctx, observeInput(c, fx))
		done <- err
	}()
	time.Sleep(time.Second)
	began := time.Now()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Less(t, time.Since(began), time.Second)
}

func TestTheTimesOfAnObservation(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: '`+valid+`'}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)

	in := observeInput(c, fx)
	in.NotBefore, in.SettledNotBefore = time.Now().Add(500*time.Millisecond), time.Now().Add(4*time.Second)
	r := l.observe(t, in)
	require.Equal(t, activities.TurnSettled, r.Turn)
	require.False(t, time.Now().Before(in.SettledNotBefore))
	require.False(t, r.SeenAt.Before(in.NotBefore.Round(time.Millisecond)))

	c, fx = l.conversation(t, `otherwise: [{text: begun}, {gate: never}]`), effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	in = observeInput(c, fx)
	in.Until = time.Now().Add(5 * time.Second)
	r = l.observe(t, in)
	require.Equal(t, activities.TurnOpen, r.Turn)
	require.False(t, r.SeenAt.IsZero())
}

func TestSomebodyElsesMessageIsWaitedForAndReported(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `replies: [[{text: begun}, {gate: never}], [{text: theirs}, {pause: 1s}, {more: " ends"}]]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	done := l.observing(t, observeInput(c, fx))
	require.NoError(t, l.Say(c.ID, "a person's own words"))
	r := <-done
	require.Equal(t, activities.TurnMoved, r.Turn, "%+v", r)
}

func TestReconcile(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	ask := func(c activities.Conversation, fx string) activities.ReconcileResult {
		r, err := l.browser.Reconcile(t.Context(), activities.ReconcileInput{TaskID: taskID, Conversation: c, EffectID: fx})
		require.NoError(t, err)
		return r
	}
	c := l.conversation(t, `{page: {virtual: 4}, conversation: {filler_turns: 10}, otherwise: [{text: ok}]}`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	for range 10 {
		require.NoError(t, l.Say(c.ID, "more"))
	}
	r := ask(c, fx)
	require.True(t, r.Readable && r.Marker, "a marker far up is found: %+v", r)
	require.Equal(t, c.ID, r.ConversationID)
	r = ask(c, effect())
	require.True(t, r.Readable)
	require.False(t, r.Marker)

	c.ID = "00000000-0000-4000-8000-000000000000"
	c.URL = l.URL() + "/c/" + c.ID
	r = ask(c, fx)
	require.False(t, r.Readable)
	require.Equal(t, "missing", r.Class)

	r = ask(l.conversation(t, history+"\npage: {state: {kind: login}}"), fx)
	require.False(t, r.Readable)
	require.Equal(t, "login", r.Class)
}

func TestInterruptPressesStopOnce(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `{page: {decoys: [stop]}, otherwise: [{text: begun}, {gate: never}]}`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	in := activities.InterruptInput{ID: effect(), TaskID: taskID, EffectID: fx, Conversation: c}
	r, err := l.browser.Interrupt(t.Context(), in)
	require.NoError(t, err)
	require.True(t, r.Pressed && r.Stopped, "%+v", r)
	r, err = l.browser.Interrupt(t.Context(), in)
	require.NoError(t, err)
	require.False(t, r.Pressed, "%+v", r)
	stops := 0
	for _, e := range l.Events() {
		if e.ConversationID == c.ID && e.Kind == "stop" {
			stops++
		}
	}
	require.Equal(t, 1, stops)
}

func TestAMessageThatAPersonEditsAwayIsMoved(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, history+`
replies: [[{text: begun}, {gate: never}], [{text: theirs}]]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	done := l.observing(t, observeInput(c, fx))
	require.NoError(t, l.Edit(c.ID, "a person's own words"))
	r := <-done
	require.Equal(t, activities.TurnMoved, r.Turn, "%+v", r)
}

func TestARegeneratedAnswerIsTheTurnsAnswer(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `otherwise: [{text: half an answer}, {gate: never}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	done := l.observing(t, observeInput(c, fx))
	require.NoError(t, l.Regenerate(c.ID, chatlab.MustParse(`otherwise: [{text: '`+valid+`'}]`).Otherwise))
	r := <-done
	require.Equal(t, activities.TurnSettled, r.Turn, "%+v", r)
	require.NotNil(t, r.Reading.Receipt)
}

func TestANewConversationWhoseTabWasLostIsFoundByItsMarker(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	fx := effect()
	r := l.send(t, sendInput(activities.Conversation{Site: "chatlab", Browser: "own", NewKey: "k"}, fx, "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	for range 3 {
		l.conversation(t, history)
	}
	lost := activities.Conversation{Site: "chatlab", Browser: "own", NewKey: "another key: nothing is known of its tab"}
	seen, err := l.browser.Reconcile(t.Context(), activities.ReconcileInput{Conversation: lost, EffectID: fx})
	require.NoError(t, err)
	require.True(t, seen.Marker, "%+v", seen)
	require.Equal(t, r.ConversationID, seen.ConversationID)
	seen, err = l.browser.Reconcile(t.Context(), activities.ReconcileInput{Conversation: lost, EffectID: effect()})
	require.NoError(t, err)
	require.True(t, seen.Readable)
	require.False(t, seen.Marker)
}
