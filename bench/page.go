package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"steward/activities"
	"steward/activities/browser"
	"steward/config/sites"
	"steward/integration/chatlab"
	"steward/workflows"
)

// stable is the settle rule's time: the answer bears its finish marks and does not change for so long.
const stable = 300 * time.Millisecond

// stage is a chat site with a real browser of Steward on it, and a plain script beside it.
type stage struct {
	*pair
	lab     *chatlab.Server
	browser *counted
	// chat and plain are the conversations of both; turns are how many answers each has had.
	chat, plain           string
	chatTurns, plainTurns int
}

// page measures from "the settle rule is fulfilled" to "the site has the next message". The ground truth is the site's: it
// ends the answer, and it records the message.
func (b *bench) page(ctx context.Context) error {
	turns := pick(b, 8, 40)
	s, err := b.newStage(ctx, 3*turns+5)
	if err != nil {
		return err
	}
	defer s.close()
	if _, err := s.turn(ctx, true); err != nil { // warm-up
		return err
	}
	if starts := s.browser.starts.Load(); starts != 1 {
		return fmt.Errorf("%d browsers have started where one has, so their count is not to be trusted", starts)
	}
	if err := s.script(ctx); err != nil {
		return err
	}
	for _, own := range []bool{true, false} {
		if _, err := s.turn(ctx, own); err != nil {
			return err
		}
	}
	var own, plain []float64
	starts, observe := s.browser.starts.Load(), s.browser.observe.Load()
	for range turns {
		for _, side := range []struct {
			own  bool
			into *[]float64
		}{{true, &own}, {false, &plain}} {
			took, err := s.turn(ctx, side.own)
			if err != nil {
				return err
			}
			*side.into = append(*side.into, took)
		}
	}
	starts, observe = s.browser.starts.Load()-starts, s.browser.observe.Load()-observe
	sends := s.browser.sends()
	sends = sends[len(sends)-turns:]
	row := Row{What: "settled → successor at the site", Unit: "ms", Samples: len(own), Figure: figure(own)}.
		against("a plain Playwright script on the same site: waits for the same rule, reads, inserts, checks, clicks", figure(plain))
	b.add(row.bar("p95 ≤ 1.5x", row.P95/row.Baseline.P95, 1.5, pageReason))
	b.add(Row{
		What: "browser starts after warm-up", Figure: Figure{Median: float64(starts)}, Samples: turns,
		Note: "connecting anew counts as a start. Fixed pauses are not counted: there are none, every wait polls for what it waits for.",
	}.
		bar("0", float64(starts), 0, "the browser was lost and started again"))
	b.add(Row{What: "browser calls of a send", Samples: turns, Figure: figure(sends)})
	b.add(Row{
		What: "browser calls of an observation", Samples: turns, Figure: Figure{Median: float64(observe) / float64(turns)},
		Note: "the mean; one call is a look, here at one every 20 ms from the send to the settled answer, of which most is the 300 ms of the settle rule " +
			"and the time that the page is left alone.",
	})
	return b.crowded(ctx, s, turns, own)
}

const pageReason = "between the two stand two activity tasks and a workflow task, each committed to disk, two synchronous heartbeats of the send, " +
	"the fsynced send ledger, and the fences of a send: the page is read before and after typing and once more behind a closed gate at the press"

// crowded repeats the measurement while many other runs wait for their answers, and others for a place to be observed; and once more
// after they have gone.
func (b *bench) crowded(ctx context.Context, s *stage, turns int, alone []float64) error {
	release := s.site.Hold()
	defer release()
	list := conversations(s.reads+s.reads/5, 1)
	err := startAll(list, func(c string) error { _, err := s.start(ctx, c); return err })
	if err == nil {
		err = poll(ctx, 6*time.Minute, "all runs wait for their answer, or to be observed", func() (bool, error) {
			return s.site.Waiting() >= s.reads && s.site.Total() >= len(list), nil
		})
	}
	if err != nil {
		return err
	}
	own, err := s.ownTurns(ctx, turns)
	if err != nil {
		return err
	}
	err = startAll(list, func(c string) error { return s.client.TerminateWorkflow(ctx, runID(c), "", "measured") })
	if err != nil {
		return err
	}
	release()
	if err := poll(ctx, time.Minute, "no observation is open", func() (bool, error) { return s.site.Waiting() == 0, nil }); err != nil {
		return err
	}
	after, err := s.ownTurns(ctx, turns)
	if err != nil {
		return err
	}
	row := Row{
		What: fmt.Sprintf("the same with %d open observed runs", s.reads), Unit: "ms", Samples: len(own), Figure: figure(own),
		Note: fmt.Sprintf("and %d more that wait for a place in the full queue of observations. They are runs of a second login, so what they share with the "+
			"first is the server and the machine.", len(list)-s.reads),
	}.against("alone, before and after it in this run", figure(append(alone, after...)))
	b.add(row.bar("p95 ≤ 2x", row.P95/row.Baseline.P95, 2, "each open observation heartbeats, and each heartbeat is a write to the one SQLite connection"))
	return nil
}

// ownTurns measures so many turns of Steward's own conversation.
func (s *stage) ownTurns(ctx context.Context, n int) (times []float64, err error) {
	for range n {
		took, err := s.turn(ctx, true)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	return times, nil
}

func (b *bench) newStage(ctx context.Context, turns int) (s *stage, err error) {
	s = &stage{}
	if s.lab, err = chatlab.Start(chatlab.Options{}); err != nil {
		return nil, err
	}
	s.pair, err = b.newPair(ctx, "page", func(r *rig) error {
		r.stop = append(r.stop, func() { _ = s.lab.Close() })
		r.reads = pick(b, 150, 1000)
		return r.profile("chatlab", s.lab.URL(), fmt.Sprintf("settle: {looks: 3, stable: %v}\n", stable))
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	var script strings.Builder
	script.WriteString("replies:\n")
	for i := 1; i <= turns; i++ {
		fmt.Fprintf(&script, "  - - text: '{{filler 1500}}\n\n      {{receipt \"CONTINUE\" \"step %d\" \"more to do\" (list \"commit %d\")}}'\n", i, i)
		fmt.Fprintf(&script, "    - gate: g%d\n", i)
	}
	scenario, err := chatlab.ParseScenario([]byte(script.String()))
	if err != nil {
		return nil, err
	}
	for _, id := range []*string{&s.chat, &s.plain} {
		history := []chatlab.Message{{Role: "user", Text: "Hello"}, {Role: "assistant", Text: "Hi."}}
		if *id, err = s.lab.NewConversation(chatlab.Conversation{Scenario: scenario, History: history}); err != nil {
			return nil, err
		}
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	_, err = s.client.ExecuteWorkflow(ctx, startOptions("chatlab", s.chat), workflows.TypeWorkflowRun,
		input("chatlab", "chatlab", s.lab.ConversationURL(s.chat)))
	return s, err
}

// open serves the login of the chat site with a real browser.
func (s *stage) open(ctx context.Context) error {
	registry, err := sites.Load(s.sites())
	if err != nil {
		return err
	}
	s.browser = &counted{}
	s.browser.Browser, err = browser.Open(ctx, browser.Options{
		Name: "chatlab", Sites: registry, ProfileDir: filepath.Join(s.dir, "profiles", "chatlab"), Arm: browser.NewArmer(s.client),
		Log: slog.New(startCounter{slog.DiscardHandler, &s.browser.starts}),
	})
	if err != nil {
		return err
	}
	s.stop = append(s.stop, func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.browser.Close(ctx)
	})
	return s.browse(ctx, "chatlab", s.browser)
}

// turn ends the present answer of a side and waits for its next message: the time between the two beyond the settle rule's
// own, in ms. Before that the page is left alone for a while, so that no poll is in step with it.
func (s *stage) turn(ctx context.Context, own bool) (float64, error) {
	id, n := s.plain, &s.plainTurns
	if own {
		id, n = s.chat, &s.chatTurns
	}
	*n++
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("no next message within a minute"))
	defer cancel()
	gate := fmt.Sprint("g", *n)
	if _, err := s.lab.Await(ctx, id, *n); err != nil {
		return 0, cmp.Or(context.Cause(ctx), err)
	}
	if err := s.lab.AwaitGate(ctx, id, gate); err != nil {
		return 0, err
	}
	time.Sleep(300*time.Millisecond + time.Duration(*n*67%200)*time.Millisecond)
	began := time.Now()
	if err := s.lab.Release(id, gate); err != nil {
		return 0, err
	}
	received, err := s.lab.Await(ctx, id, *n+1)
	if err != nil {
		return 0, cmp.Or(context.Cause(ctx), err)
	}
	return millis(received[*n].At.Sub(began) - stable), nil
}

// counted counts the calls that the activities make. No other activity of the login runs beside one of a single run.
type counted struct {
	*browser.Browser
	starts, observe atomic.Int64
	mu              sync.Mutex
	sent            []float64 // calls of each send
}

func (c *counted) sends() []float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sent)
}

// Send counts the calls of a send.
func (c *counted) Send(ctx context.Context, in activities.SendInput) (activities.SendResult, error) {
	before := browser.Calls()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sent = append(c.sent, float64(browser.Calls()-before))
	}()
	return c.Browser.Send(ctx, in)
}

// Observe counts the calls of an observation.
func (c *counted) Observe(ctx context.Context, in activities.ObserveInput) (activities.ObserveResult, error) {
	before := browser.Calls()
	defer func() { c.observe.Add(browser.Calls() - before) }()
	return c.Browser.Observe(ctx, in)
}

// startCounter counts the log lines of started browsers.
type startCounter struct {
	slog.Handler
	starts *atomic.Int64
}

// Enabled implements slog.Handler.
func (startCounter) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (c startCounter) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "browser is ready" {
		c.starts.Add(1)
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (c startCounter) WithAttrs([]slog.Attr) slog.Handler { return c }
