package browser

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"steward/activities"
	"steward/integration/chatlab"
)

// points records the hook's points.
func points(seen *[]string, at map[string]func()) func(string) {
	return func(point string) {
		*seen = append(*seen, point)
		if f := at[point]; f != nil {
			f()
		}
	}
}

func TestASendWhoseArmingIsRefusedDoesNotPress(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"refused":    fmt.Errorf("%w: it has timed out", ErrRefused),
		"unanswered": errors.New("connection lost"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &armer{}
			l := hooked(t, func(o *Options) { o.Arm = a })
			a.answer = func(p activities.SendProgress) error {
				if p.Armed != 0 {
					return refusal
				}
				return nil
			}
			c := l.conversation(t, `otherwise: [{text: ok}]`)
			in := sendInput(c, effect(), "words")
			r := l.send(t, in)
			require.Equal(t, activities.SendReturned, r.Outcome, "%+v", r)
			require.Equal(t, "arming_refused", r.Code)
			require.False(t, r.Armed)
			require.Empty(t, l.draftOf(t, c), "what was typed is cleared")

			a.answer = nil
			again := l.send(t, in)
			require.Equal(t, activities.SendDoubtful, again.Outcome, "the same generation never arms twice: %+v", again)
			require.Equal(t, "ledger_refused", again.Code)
			in.Generation = 2
			require.Equal(t, activities.SendCommitted, l.send(t, in).Outcome)
			require.Len(t, l.Record(c.ID), 1)
		})
	}
}

func TestASendThatArmedTooLateDoesNotPress(t *testing.T) {
	t.Parallel()
	var seen []string
	l := hooked(t, func(o *Options) {
		o.Hook = points(&seen, map[string]func(){"armed": func() { time.Sleep(armWindow + 100*time.Millisecond) }})
	})
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendReturned, r.Outcome, "%+v", r)
	require.Equal(t, "arming_expired", r.Code)
	require.True(t, r.Armed)
	require.Empty(t, l.Record(c.ID))
	require.Equal(t, []string{"before_arm", "armed"}, seen)
}

func TestHeartbeatsAfterArmingCarryIt(t *testing.T) {
	t.Parallel()
	a := &armer{}
	l := hooked(t, func(o *Options) { o.Arm = a })
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, effect(), "words")).Outcome)
	armed := false
	for _, beat := range a.beats {
		require.False(t, armed && beat.Armed == 0, "%+v", a.beats)
		armed = armed || beat.Armed == 1
	}
	require.True(t, armed)
}

func TestAHeartbeatThatTheServerRefusesEndsTheSendBeforeArming(t *testing.T) {
	t.Parallel()
	a := &armer{answer: func(activities.SendProgress) error { return fmt.Errorf("%w: cancellation was requested", ErrRefused) }}
	l := hooked(t, func(o *Options) { o.Arm = a })
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendDeferred, r.Outcome, "nothing was noted yet: this generation is not used up")
	require.Equal(t, activities.DeferCancelled, r.Class)
	a.answer = func(activities.SendProgress) error { return errors.New("connection lost") }
	r = l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.DeferWorkerUnavailable, r.Class)
	require.Empty(t, l.Record(c.ID))
}

// TestACancelledSendUsesUpItsGenerationOnlyFromTheLedgerOn cancels a send at the named heartbeats and moments.
func TestACancelledSendUsesUpItsGenerationOnlyFromTheLedgerOn(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("%w: cancellation was requested", ErrRefused)
	for name, c := range map[string]struct {
		// step is where heartbeats are refused; hook stops the activity at that point.
		step, hook string
		outcome    activities.SendOutcome
		next       activities.SendOutcome
	}{
		"while it waits for the browser": {step: "open", outcome: activities.SendDeferred, next: activities.SendCommitted},
		"while it types":                 {step: "type", outcome: activities.SendDeferred, next: activities.SendCommitted},
		"once it is noted":               {hook: "before_arm", outcome: activities.SendReturned, next: activities.SendDoubtful},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &armer{}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := hooked(t, func(o *Options) {
				o.Arm = a
				o.Hook = func(point string) {
					if point == c.hook {
						cancel()
					}
				}
			})
			conv := l.conversation(t, `{page: {send_after: 2800ms}, otherwise: [{text: ok}]}`)
			refusing := true
			a.answer = func(p activities.SendProgress) error {
				if refusing && p.Step == c.step && len(a.beats) > 1 {
					return refused
				}
				return nil
			}
			if c.step == "open" {
				held, err := l.browser.pool.lease(t.Context(), l.place(t, conv).key, false)
				require.NoError(t, err)
				defer held.release()
			}
			in := sendInput(conv, effect(), "words")
			r, err := l.browser.Send(ctx, in)
			require.NoError(t, err)
			require.Equal(t, c.outcome, r.Outcome, "%+v", r)
			require.Equal(t, "cancelled", r.Code)
			require.Equal(t, c.outcome == activities.SendDeferred, r.Class == activities.DeferCancelled)
			a.mu.Lock()
			refusing, c.hook = false, ""
			a.mu.Unlock()
			if c.step == "open" {
				return
			}
			require.Empty(t, l.draftOf(t, conv), "what was typed is cleared")
			require.Equal(t, c.next, l.send(t, in).Outcome, "the same generation again")
		})
	}
}

func TestAFencedWorkerIsDeferred(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(o *Options) { o.Fence = func() error { return errors.New("the home has incarnation 4") } })
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.DeferFenced, r.Class, "%+v", r)
	require.Empty(t, l.draftOf(t, c))
}

func TestPublic_B12_AFormThatIsReplacedByThePressIsNotNotApplied(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for _, when := range []string{"click", "pointerdown"} {
		t.Run(when, func(t *testing.T) {
			t.Parallel()
			c := l.conversation(t, `replies: [{click: {replace_form: `+when+`}, steps: [{text: ok}]}]`)
			r := l.send(t, sendInput(c, effect(), "words"))
			require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
			require.Len(t, l.Record(c.ID), 1)
			require.Equal(t, "click", l.Record(c.ID)[0].Via)
		})
	}
}

func TestAPageThatFreezesAtThePressIsWaitedFor(t *testing.T) {
	t.Parallel()
	l := alone(t, func(*Options) {}) // pages of one site may share a process, which freezes whole
	c := l.conversation(t, `replies: [{click: {freeze: 3s}, steps: [{text: ok}]}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Len(t, l.Record(c.ID), 1)
}

func TestPublic_B26_AMessageThatThePageDoesNotShowIsFoundByLoadingItAgain(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	for name, delivery := range map[string]string{"hidden": "hide: true", "cut": "cut: true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := l.conversation(t, `replies: [{delivery: {`+delivery+`}, steps: [{text: ok}]}]`)
			r := l.send(t, sendInput(c, effect(), "words"))
			require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
			require.Len(t, l.Record(c.ID), 1)
		})
	}
}

func TestARefusedMessageIsADoubtAndCoolsDown(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	l.profile(t, "commit: 20s", "commit: 5s")
	c := l.conversation(t, `replies: [{delivery: {status: 429}, steps: [{text: ok}]}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendDoubtful, r.Outcome, "%+v", r)
	require.False(t, l.browser.rest.file.CooldownUntil.IsZero())
}

func TestAMessageThatTheSiteCutsIsCommittedAndSaidToDiffer(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `replies: [{delivery: {truncate: 80}, steps: [{text: ok}]}]`)
	fx := effect()
	in := sendInput(c, fx, "words")
	in.Prompt = marker(fx) + "\n" + "words that follow the marker and are cut off by the site, which says nothing of it, alas"
	r := l.send(t, in)
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Equal(t, "text_cut", r.Code)
}

func TestSendsOfOneBrowserKeepTheirDistance(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(o *Options) {})
	site := *l.place(t, l.conversation(t, history)).site
	require.Zero(t, site.Timings.SendGap)
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	began := time.Now()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, effect(), "words")).Outcome)
	next := l.browser.rest.until(5*time.Second, time.Now())
	require.WithinRange(t, next, began.Add(5*time.Second), time.Now().Add(5*time.Second))
}

func TestANewConversationWhosePageFreezesIsNotGivenUp(t *testing.T) {
	t.Parallel()
	l := alone(t, func(*Options) {})
	require.NoError(t, l.SetNew("", chatlab.MustParse(`replies: [{click: {freeze: 14s}, steps: [{text: ok}]}]`)))
	c := activities.Conversation{Site: "chatlab", Browser: "own", NewKey: "k"}
	fx := effect()
	r := l.send(t, sendInput(c, fx, "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Len(t, l.Record(r.ConversationID), 1)
}

func TestTheLoginBrowserIsPlain(t *testing.T) {
	cmd, err := LoginCommand("true", "/profile", "https://example.com/")
	require.NoError(t, err)
	require.Contains(t, cmd.Args, "--user-data-dir=/profile")
	for _, arg := range cmd.Args {
		require.NotContains(t, arg, "automation")
		require.NotContains(t, arg, "remote-debugging")
	}
}
