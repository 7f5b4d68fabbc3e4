package browser

import (
	"fmt"
	"time"

	"steward/config/sites"
)

// watch follows one turn over many looks and applies the site's settle rule. It is pure: time comes with each look.
type watch struct {
	site *sites.Site
	// since is when the turn began to look as it does; looks counts how often it was seen so.
	since time.Time
	looks int
	seen  string
	// reload is how long the turn may stay as it is before its page is reloaded.
	reload time.Duration
	// driftReload: the page was reloaded because the finish signs were missing.
	driftReload bool
}

// stage is what a look means for the turn.
type stage string

const (
	// stageOpen: it goes on, or nobody can say.
	stageOpen stage = "open"
	// stageLikely: it looks finished or failed, and must stay so.
	stageLikely stage = "likely"
	// stageFinished: finished by the settle rule. Extra tells that it has stayed so for the longer time.
	stageFinished stage = "finished"
	// stageFailed: the site has said for long enough that the turn failed.
	stageFailed stage = "failed"
	// stageMoved: somebody else's message follows an unfinished turn, and its own answer is settled.
	stageMoved stage = "moved"
	// stageGone: the conversation is settled and does not show the effect's message.
	stageGone stage = "gone"
	// stageStuck: unchanged for so long that the page should be loaded again.
	stageStuck stage = "stuck"
	// stageDrift: quiet for long, without the signs of a finished turn, also after a reload.
	stageDrift stage = "drift"
)

// see takes one look and returns what it means, and how long the turn has stayed as it is.
func (w *watch) see(l look, at time.Time) (stage, time.Duration) {
	failed, _ := l.state(w.site, sites.Failed)
	key := fmt.Sprint(l.Answer.Signature, l.Answer.Finished, l.Answer.Busy, l.Stop, l.Found, l.Later, l.LastAnswer, failed)
	if key != w.seen {
		w.seen, w.since, w.looks = key, at, 0
	}
	w.looks++
	quiet := at.Sub(w.since)
	stable := w.looks >= w.site.Settle.Looks && quiet >= w.site.Settle.Stable
	long := stable && quiet >= w.site.Settle.Stable+w.site.Settle.Extra

	// The stop control belongs to the last turn; a message behind ours has its own.
	working := l.Answer.Busy || l.Stop && l.Later == 0
	finished := l.Found && l.Answer.Present && l.Answer.Finished && !working
	moved := l.Later > 0 && l.quietAtEnd()
	switch {
	case failed != nil && !working && l.Found && l.Later == 0:
		return pick(long, stageFailed), quiet
	case finished:
		return pick(stable, stageFinished), quiet
	case moved:
		return pick(long, stageMoved), quiet
	case !l.Found && l.Ready && l.Last != nil && l.quietAtEnd():
		return pick(long, stageGone), quiet
	case l.Answer.Present && !working && quiet >= w.site.Settle.DriftAfter:
		if w.driftReload {
			return stageDrift, quiet
		}
		w.driftReload = true
		return stageStuck, quiet
	case quiet >= w.reloadAfter():
		w.reload *= 2
		return stageStuck, quiet
	}
	return stageOpen, quiet
}

func pick(held bool, s stage) stage {
	if held {
		return s
	}
	return stageLikely
}

func (w *watch) reloadAfter() time.Duration {
	if w.reload == 0 {
		w.reload = w.site.Settle.ReloadAfter
	}
	return w.reload
}

// restart forgets the stability after a reload: the page has to show it anew.
func (w *watch) restart() { w.seen, w.looks = "", 0 }

// extra tells whether a finished turn has stayed as it is for the longer time that a turn without a valid receipt needs.
func (w *watch) extra(quiet time.Duration) bool {
	return quiet >= w.site.Settle.Stable+w.site.Settle.Extra
}

// wait is the time until the next look.
func (w *watch) wait(s stage, quiet time.Duration) time.Duration {
	t := w.site.Timings
	if s == stageLikely || s == stageFinished {
		if w.site.Settle.Looks > 1 {
			return min(t.Look, max(w.site.Settle.Stable/time.Duration(w.site.Settle.Looks-1), time.Millisecond))
		}
		return t.Look
	}
	return min(max(t.Look, quiet/20), t.LookMax)
}
