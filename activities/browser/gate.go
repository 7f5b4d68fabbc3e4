package browser

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mxschmitt/playwright-go"

	"steward/config/sites"
)

// gate is the page's own judge of one press; see js/gate.js. The page's clock and ours run at the same
// rate (both are the system's monotonic clock), so that a deadline can be carried over: a reading of the page's clock that
// was made before zero is never ahead of it.
type gate struct {
	tab    *tab
	handle playwright.JSHandle
	// page is a reading of the page's clock in milliseconds, made before the moment zero of ours.
	page float64
	zero time.Time
	gone bool
}

// Controls that a gate lets a press through to.
const (
	controlSend = "send"
	controlStop = "stop"
)

// closeGate puts a closed gate before the page. Only a press on the control can ever pass, and on Send only while the
// composer holds exactly the text.
func (t *tab) closeGate(site *sites.Site, control, text string) (*gate, error) {
	raw, err := json.Marshal(argument{Rules: site.Page, Query: map[string]string{"control": control}, Text: text})
	if err != nil {
		return nil, err
	}
	handle, err := within(lookLimit, func() (playwright.JSHandle, error) { return t.page.EvaluateHandle(gateScript, string(raw)) })
	if err != nil {
		return nil, t.failed("guard the page", err)
	}
	g := &gate{tab: t, handle: handle}
	reading, err := g.call(lookLimit, "(gate) => gate.now()", nil)
	if err != nil {
		return nil, err
	}
	g.page, g.zero = number(reading), time.Now()
	return g, nil
}

func (g *gate) call(limit time.Duration, source string, arg any) (any, error) {
	value, err := within(limit, func() (any, error) { return g.handle.Evaluate(source, arg) })
	if err != nil {
		return nil, g.tab.failed("ask the guard of the page", err)
	}
	return value, nil
}

// aim opens the gate for one press until the deadline, and returns the point to press. A problem leaves it closed.
func (g *gate) aim(deadline time.Time) (x, y float64, err error) {
	until := g.page + float64(deadline.Sub(g.zero))/float64(time.Millisecond)
	value, err := g.call(lookLimit, "(gate, until) => gate.aim(until)", until)
	if err != nil {
		return 0, 0, err
	}
	fields, _ := value.(map[string]any)
	if problem, _ := fields["problem"].(string); problem != "" {
		return 0, 0, fmt.Errorf("the page refuses the press: %s", problem)
	}
	return number(fields["x"]), number(fields["y"]), nil
}

// shut closes the gate for good and tells how many events of a press it let through, and why it stopped others.
func (g *gate) shut() (passed int, refused string, err error) {
	value, err := g.call(lookLimit, "(gate) => gate.close()", nil)
	if err != nil {
		return 0, "", err
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return 0, "", errors.New("the guard of the page gave no answer")
	}
	refused, _ = fields["refused"].(string)
	return int(number(fields["passed"])), refused, nil
}

// press gives the one command to click, and then closes the gate for good. proven tells that the press did not and will not
// take effect: the page refused it, no time was left, or no event of it passed; why says which.
func (g *gate) press(tabs *tabs, deadline time.Time) (proven bool, code, why string) {
	const expired, late = "arming_expired", "too much time passed between arming and the press; it was not made"
	if !time.Now().Before(deadline) {
		return true, expired, late
	}
	x, y, err := g.aim(deadline)
	if err != nil {
		return true, "press_refused", err.Error()
	}
	if !time.Now().Before(deadline) {
		return true, expired, late
	}
	pressed := do(pressLimit, func() error { return g.tab.page.Mouse().Click(x, y) })
	passed, refused, err := g.shut()
	if err != nil || passed > 0 {
		return false, "", ""
	}
	// Parts of a command without an answer may still be on their way to this page. They end with it.
	if pressed != nil && !tabs.close(g.tab) {
		return false, "", ""
	}
	switch refused {
	case "late":
		return true, expired, "the press reached the page too late and was stopped there"
	case "":
		refused = "none arrived"
	}
	return true, "press_stopped", "no event of the press took effect: " + refused
}

// pressLimit bounds the command. Its deadline is the gate's; this is for a browser that does not answer.
const pressLimit = 10 * time.Second

// dispose takes the gate away, as far as its page still lives.
func (g *gate) dispose() {
	if g == nil || g.gone || g.tab.lost() {
		return
	}
	g.gone = true
	_, _ = g.call(closeLimit, "(gate) => gate.remove()", nil)
}
