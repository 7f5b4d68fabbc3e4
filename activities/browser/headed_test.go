package browser

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"steward/activities"
)

// display starts a screen that nobody sees, for this test.
func display(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a browser")
	}
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		t.Skip("needs Xvfb")
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	cmd := exec.Command(path, "-displayfd", "3", "-screen", "0", "1280x900x24", "-nolisten", "tcp")
	cmd.ExtraFiles = []*os.File{w}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	require.NoError(t, w.Close())
	number, err := bufio.NewReader(r).ReadString('\n')
	require.NoError(t, err)
	t.Setenv("DISPLAY", ":"+strings.TrimSpace(number))
}

func TestABrowserWithAWindowMakesATurn(t *testing.T) {
	display(t)
	l := alone(t, func(o *Options) { o.Headed = true })
	c := l.conversation(t, `otherwise: [{text: '`+valid+`'}]`)
	fx := effect()
	require.Equal(t, activities.SendCommitted, l.send(t, sendInput(c, fx, "words")).Outcome)
	require.Equal(t, activities.TurnSettled, l.observe(t, observeInput(c, fx)).Turn)
	agent, err := l.browser.engine.live.context.Pages()[0].Evaluate("() => navigator.userAgent")
	require.NoError(t, err)
	require.NotContains(t, agent, "Headless")
}
