package browser

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"steward/workflows"
)

// RunState is how much a run still needs its tab.
type RunState int

const (
	// RunWorks: it may send or look at any time.
	RunWorks RunState = iota
	// RunParked: it waits for its user, and nothing happens before that.
	RunParked
	// RunOver: it has ended.
	RunOver
)

// Runs tells what became of the runs that work in a browser.
type Runs interface {
	State(ctx context.Context, workflowID string) (RunState, error)
}

// NewRuns asks the server. That adds nothing to any history, and the end of a run waits for nobody.
func NewRuns(c client.Client) Runs { return temporalRuns{c} }

type temporalRuns struct{ client client.Client }

func (r temporalRuns) State(ctx context.Context, workflowID string) (RunState, error) {
	answer, err := r.client.DescribeWorkflowExecution(ctx, workflowID, "")
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return RunOver, nil
	case err != nil:
		return RunWorks, err
	}
	info := answer.GetWorkflowExecutionInfo()
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return RunOver, nil
	}
	var status string
	payload := info.GetSearchAttributes().GetIndexedFields()[workflows.AttributeStatus.GetName()]
	if payload != nil {
		if err := converter.GetDefaultDataConverter().FromPayload(payload, &status); err != nil {
			return RunWorks, err
		}
	}
	if status == workflows.StatusWaitingForUser {
		return RunParked, nil
	}
	return RunWorks, nil
}

// throwaway is the owner of a tab that no run needs.
const throwaway = "-"

// ownerOf is the workflow whose activity this is; empty outside of one.
func ownerOf(ctx context.Context) string {
	if !activity.IsActivity(ctx) {
		return ""
	}
	return activity.GetInfo(ctx).WorkflowExecution.ID
}

// own notes for which run a tab is used.
func (t *tabs) own(tb *tab, run string) error {
	t.mu.Lock()
	same := run == "" || tb.run == run
	if !same {
		tb.run = run
	}
	t.mu.Unlock()
	if same {
		return nil
	}
	return t.change(tb.key, func(r *record) { r.Run = run })
}

// disown says that no run needs a conversation's tab.
func (t *tabs) disown(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tb := t.open[key]; tb != nil {
		tb.run = throwaway
	}
}

// Bounds of the retirement of one tab.
const (
	defaultIdle = 5 * time.Second
	askLimit    = 5 * time.Second
	giveUpLimit = 30 * time.Second
)

// retire gives up the tabs of runs that have ended or wait for their user, until ctx ends. A tab that nobody has used for a
// while is asked about, and then less and less often. (Disposable browser resources.)
func (b *Browser) retire(ctx context.Context) {
	for sleep(ctx, b.opts.idle/2) == nil {
		for _, tb := range b.tabs.idle() {
			state := RunOver
			if tb.run != throwaway {
				asking, cancel := context.WithTimeout(ctx, askLimit)
				var err error
				state, err = b.opts.Runs.State(asking, tb.run)
				cancel()
				if err != nil {
					b.log.Debug("state of a run", "run", tb.run, "error", err)
					break
				}
			}
			b.tabs.asked(tb.tab)
			if state == RunOver || state == RunParked && !strings.HasPrefix(tb.key, unboundPrefix) {
				b.giveUp(ctx, tb)
			}
		}
	}
}

// idleTab is a tab that nobody has used for a while, as it was then.
type idleTab struct {
	*tab
	key, run string
	used     time.Time
}

func (t *tabs) idle() (list []idleTab) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key, tb := range t.open {
		unused := time.Since(tb.used)
		if tb.run != "" && unused > t.browser.opts.idle && time.Since(tb.asked) > max(t.browser.opts.idle, unused/4) &&
			!t.browser.pool.leased(key) {
			list = append(list, idleTab{tb, key, tb.run, tb.used})
		}
	}
	return list
}

func (t *tabs) asked(tb *tab) {
	t.mu.Lock()
	defer t.mu.Unlock()
	tb.asked = time.Now()
}

// giveUp closes an owned tab, and forgets one that is a person's: that stays open. A tab that generates, that holds a text
// of somebody else or that cannot be read is kept for now.
func (b *Browser) giveUp(ctx context.Context, idle idleTab) {
	ctx, cancel := context.WithTimeout(ctx, giveUpLimit)
	defer cancel()
	lease, err := b.pool.lease(ctx, idle.key, false)
	if err != nil {
		return
	}
	defer lease.release()
	tb := idle.tab
	if !b.tabs.still(idle) || !tb.lost() && !b.quiet(tb) {
		return
	}
	b.tabs.forget(tb)
	closed := b.tabs.close(tb)
	err = b.tabs.change(idle.key, func(r *record) { r.Target, r.Token, r.Run = "", "", "" })
	b.log.Info("tab is retired", "run", idle.run, "conversation", idle.key, "closed", closed, "error", err)
}

// still tells whether nobody has used the tab since.
func (t *tabs) still(idle idleTab) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[idle.key] == idle.tab && idle.tab.run == idle.run && idle.tab.used.Equal(idle.used)
}

// quiet looks whether closing a tab would lose anything.
func (b *Browser) quiet(tb *tab) bool {
	site, err := b.site(siteOf(tb.key))
	if err != nil {
		return true // no profile knows what a look would mean
	}
	l, err := tb.look(site, lookQuery{})
	if err != nil {
		return false
	}
	tb.generating.Store(l.generating())
	return !l.generating() && (l.Draft == "" || digestOf(l.Draft) == b.tabs.noted(tb.key))
}

// siteOf is the site in a tab's key.
func siteOf(key string) string {
	for _, kind := range []string{"trace:", "probe:", unboundPrefix} {
		key = strings.TrimPrefix(key, kind)
	}
	site, _, _ := strings.Cut(key, ":")
	return site
}
