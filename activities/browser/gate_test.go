package browser

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mxschmitt/playwright-go"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"steward/activities"
)

// loaded is a conversation's tab with a text in its composer, and a closed gate before it.
func (l *lab) loaded(t *testing.T, c activities.Conversation, text string) (*tab, *gate) {
	t.Helper()
	p, err := l.browser.place(c)
	require.NoError(t, err)
	a, err := l.browser.arrive(t.Context(), p, lookQuery{})
	require.NoError(t, err)
	require.True(t, a.ready)
	_, err = a.tab.composer(p.site, "focus")
	require.NoError(t, err)
	require.NoError(t, a.tab.page.Keyboard().InsertText(text))
	require.Eventually(t, func() bool {
		c, err := a.tab.composer(p.site, "read")
		return err == nil && c.Control
	}, 5*time.Second, 20*time.Millisecond)
	g, err := a.tab.closeGate(p.site, controlSend, text)
	require.NoError(t, err)
	return a.tab, g
}

func TestAPressThatComesLateIsStoppedInThePage(t *testing.T) {
	t.Parallel()
	for _, held := range []string{"driver", "browser", "page"} {
		t.Run("held up in the "+held, func(t *testing.T) {
			t.Parallel()
			l := alone(t, func(*Options) {})
			c := l.conversation(t, `otherwise: [{text: ok}]`)
			tab, g := l.loaded(t, c, "words")
			deadline := time.Now().Add(1500 * time.Millisecond)
			x, y, err := g.aim(deadline)
			require.NoError(t, err)

			pid := map[string]int{"driver": tab.session.driver.PID, "browser": tab.session.browser.PID}[held]
			if pid != 0 {
				require.NoError(t, unix.Kill(pid, unix.SIGSTOP))
			} else {
				busy := make(chan bool, 1)
				tab.page.OnConsole(func(playwright.ConsoleMessage) { busy <- true })
				_, err := tab.page.Evaluate(`() => {
					setTimeout(() => { console.log("busy"); const end = performance.now() + 4000; while (performance.now() < end); }, 0) }`)
				require.NoError(t, err)
				<-busy
			}
			pressed := make(chan error, 1)
			go func() { pressed <- tab.page.Mouse().Click(x, y) }()
			time.Sleep(time.Until(deadline) + 100*time.Millisecond)
			if pid != 0 {
				require.NoError(t, unix.Kill(pid, unix.SIGCONT))
			}
			require.NoError(t, <-pressed)
			passed, refused, err := g.shut()
			require.NoError(t, err)
			require.Zero(t, passed)
			require.Equal(t, "late", refused)
			require.Empty(t, l.Record(c.ID))
		})
	}
}

func TestTheGateLetsOnePressThroughAndOnlyOnItsControl(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	c := l.conversation(t, `{page: {decoys: [submit]}, otherwise: [{text: ok}]}`)
	tab, g := l.loaded(t, c, "words")
	click := func(x, y float64) { require.NoError(t, tab.page.Mouse().Click(x, y)) }

	x, y, err := g.aim(time.Now().Add(time.Hour))
	require.NoError(t, err)
	_, _, err = g.shut()
	require.NoError(t, err)
	click(x, y)
	require.Empty(t, l.Record(c.ID), "a closed gate lets nothing through")

	_, _, err = g.aim(time.Now().Add(time.Hour))
	require.NoError(t, err)
	click(x-200, y)
	click(x-80, y)
	_, refused, err := g.shut()
	require.NoError(t, err)
	require.Equal(t, "closed", refused)
	for _, e := range l.Events() {
		require.NotEqual(t, "decoy_submit", e.Kind)
	}
	require.Empty(t, l.Record(c.ID), "presses elsewhere are stopped")

	_, _, err = g.aim(time.Now().Add(time.Hour))
	require.NoError(t, err)
	click(x, y)
	passed, _, err := g.shut()
	require.NoError(t, err)
	require.Positive(t, passed)
	require.Eventually(t, func() bool { return len(l.Record(c.ID)) == 1 }, 5*time.Second, 20*time.Millisecond)
}

func TestAGateWithoutTimeDoesNotOpen(t *testing.T) {
	t.Parallel()
	l := hooked(t, func(*Options) {})
	c := l.conversation(t, `otherwise: [{text: ok}]`)
	_, g := l.loaded(t, c, "words")
	proven, code, _ := g.press(l.browser.tabs, time.Now().Add(-time.Second))
	require.True(t, proven)
	require.Equal(t, "arming_expired", code)
	_, _, err := g.aim(time.Now().Add(-50 * time.Millisecond))
	require.ErrorContains(t, err, "late")
	require.Empty(t, l.Record(c.ID))
}

// TestTheMonotonicClockRunsWhileAProcessIsStopped is what the window between arming and the press rests on.
func TestTheMonotonicClockRunsWhileAProcessIsStopped(t *testing.T) {
	if os.Getenv("BROWSER_TEST_CLOCK") != "" {
		began := time.Now()
		fmt.Println("ready")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Println(time.Since(began).Milliseconds())
		os.Exit(0)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "BROWSER_TEST_CLOCK=1")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewReader(out)
	_, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(unix.SIGSTOP))
	time.Sleep(time.Second)
	require.NoError(t, cmd.Process.Signal(unix.SIGCONT))
	_, err = in.Write([]byte("\n"))
	require.NoError(t, err)
	var passed int
	_, err = fmt.Fscan(lines, &passed)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.GreaterOrEqual(t, passed, 1000)
}
