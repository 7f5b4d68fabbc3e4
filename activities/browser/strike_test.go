package browser

import (
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
	require.Equal(t, activities.SendReturned, r.Outcome)
	require.Equal(t, "cancelled", r.Code)
	a.answer = func(activities.SendProgress) error { return errors.New("connection lost") }
	r = l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.DeferWorkerUnavailable, r.Class)
	require.Empty(t, l.Record(c.ID))
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
	l := useLab(t)
	c := l.conversation(t, `replies: [{click: {freeze: 3s}, steps: [{text: ok}]}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendCommitted, r.Outcome, "%+v", r)
	require.Len(t, l.Record(c.ID), 1)
}

func TestAPressThatThePageSwallowsIsADoubt(t *testing.T) {
	t.Parallel()
	l := useLab(t)
	c := l.conversation(t, `replies: [{click: {ignore: 1}, steps: [{text: ok}]}]`)
	r := l.send(t, sendInput(c, effect(), "words"))
	require.Equal(t, activities.SendDoubtful, r.Outcome, "%+v", r)
	require.True(t, r.Armed)
	require.Empty(t, l.Record(c.ID))
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
	l := hooked(t, func(*Options) {})
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
