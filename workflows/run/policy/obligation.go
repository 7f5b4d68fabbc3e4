package policy

import (
	"strconv"
	"time"

	"steward/workflows/machine/kernel"
)

// Kinds of obligations: what a state can owe the world next.
const (
	OweAdmit     = "admit"
	OweSend      = "send"
	OweInterrupt = "interrupt"
	OweObserve   = "observe"
	OweRelease   = "release"
	OweReconcile = "reconcile"
	OweValidate  = "validate"
	OweProgress  = "progress"
	OweProbe     = "probe"
	OweSucceed   = "succeed"
	oweTimer     = "timer"
	oweMessage   = "message"
	oweFinish    = "finish"
)

func owe(class kernel.Class, kind, key, summary string) kernel.Obligation {
	return kernel.Obligation{Class: class, Kind: kind, Key: kind + ":" + key, Summary: summary}
}

// numbered is an id with the numbers of what is owed for it.
func numbered(id string, numbers ...int) string {
	key := make([]byte, 0, 64)
	key = append(key, id...)
	for _, n := range numbers {
		key = strconv.AppendInt(append(key, ':'), int64(n), 10)
	}
	return string(key)
}

func until(at time.Time, key, summary string) kernel.Obligation {
	o := owe(kernel.Timer, oweTimer, key+":"+strconv.FormatInt(at.UnixMilli(), 36), summary)
	o.At = at
	return o
}

func message(what string) kernel.Obligation { return owe(kernel.Idle, oweMessage, what, what) }

// Obligation is the one thing that the state owes next, derived from the state alone: a restart takes up the same debt.
// Source: "Turn authority", Cross-cutting closure.
func (Policy) Obligation(s State) kernel.Obligation {
	switch {
	case !s.valid() || s.Terminal():
		return owe(kernel.Finish, oweFinish, string(s.Status), "finish")
	case s.Status == "":
		return owe(kernel.ReadOnly, OweAdmit, "start", "resolve the start and read what this workflow id left behind")
	case s.Stop != nil:
		return s.oweStopping()
	case s.Effect.State == EffectUnknown:
		return s.oweReconcile()
	case s.moves():
		return s.oweSucceed()
	case s.Blocker != nil:
		return s.oweBlocked()
	}
	switch s.Status {
	case Dispatching:
		return s.oweSend()
	case Dispatched, Claimed:
		return s.oweObserve()
	case PendingRelease:
		return s.oweRelease()
	case WaitingForUser:
		if s.Proposal != nil {
			return message("approve or decline")
		}
		return message("resume, answering " + s.Completion.ID)
	}
	return message("an occurrence")
}

func (s *State) oweStopping() kernel.Obligation {
	switch {
	case s.Effect.State == EffectDispatching:
		return message("the outcome of the send under way")
	case s.Effect.State == EffectUnknown:
		return s.oweReconcile()
	case s.handing():
		return s.oweSucceed()
	}
	return owe(kernel.Effect, OweInterrupt, s.InterruptID(), "press the page's Stop once")
}

func (s *State) oweReconcile() kernel.Obligation {
	key := numbered(s.Effect.ID, s.Effect.Generation, s.Effect.Look)
	if !s.Effect.NotBefore.IsZero() {
		return until(s.Effect.NotBefore, "reconcile:"+key, "until the next look for "+s.Effect.ID)
	}
	return owe(kernel.ReadOnly, OweReconcile, key, "look for the marker of "+s.Effect.ID)
}

func (s *State) oweSend() kernel.Obligation {
	key := numbered(s.Effect.ID, s.Effect.Generation)
	switch {
	case s.Effect.State == EffectDispatching && s.Paused != nil:
		return message("the outcome of the send under way")
	case s.Effect.State == EffectDispatching:
		return owe(kernel.Effect, OweSend, key, s.sendSummary())
	case s.Paused != nil:
		return message("resume")
	case !s.Effect.NotBefore.IsZero():
		return until(s.sendDue(), "send:"+key, "until the next attempt of "+s.Effect.ID)
	}
	return owe(kernel.Effect, OweSend, key, s.sendSummary())
}

func (s *State) sendSummary() string {
	return "send " + string(s.Effect.Kind) + " " + s.Effect.ID + ", generation " + strconv.Itoa(s.Effect.Generation)
}

func (s *State) oweObserve() kernel.Obligation {
	key := numbered(s.Effect.ID, s.Turn.Look)
	if s.unbound() {
		return owe(kernel.ReadOnly, OweObserve, key, "follow "+s.Effect.ID+" to the address of its conversation")
	}
	return owe(kernel.ReadOnly, OweObserve, key, "follow the turn of "+s.Effect.ID)
}

// oweRelease is what a committed turn still needs: the validation of its proposal, or the sight of its end.
func (s *State) oweRelease() kernel.Obligation {
	if p := s.Proposal; p != nil {
		return s.oweValidate(p)
	}
	return owe(kernel.ReadOnly, OweRelease, numbered(s.Effect.ID, s.Turn.Look), "see the turn of "+s.Effect.ID+" settle")
}

func (s *State) oweValidate(p *Proposal) kernel.Obligation {
	key := numbered(p.Completion, p.Runs)
	if !p.NotBefore.IsZero() {
		return until(p.NotBefore, "validate:"+key, "until the checks run again")
	}
	return owe(kernel.ReadOnly, OweValidate, key, "run the checks of the completion contract")
}

var probeSummaries = map[BlockerClass]string{
	BlockedFailures:     "probe whether this browser can send",
	BlockedUserAction:   "confirm that the page no longer asks for its user",
	BlockedDrift:        "look whether the page is recognised again",
	BlockedMissing:      "look whether the conversation is there again",
	BlockedForeignDraft: "look whether the composer is free again",
}

// oweBlocked is what a blocker may owe by itself; everything else waits for a message.
func (s *State) oweBlocked() kernel.Obligation {
	b := s.Blocker
	waits := func(kind string, class kernel.Class, summary string) kernel.Obligation {
		key := numbered(b.ID, b.Probes)
		if !b.NotBefore.IsZero() {
			return until(b.NotBefore, kind+":"+key, "until the next look at "+string(b.Class))
		}
		return owe(class, kind, key, summary)
	}
	switch {
	case b.Class == BlockedValidation:
		return waits(OweValidate, kernel.ReadOnly, "run the checks of the completion contract")
	case b.Class == BlockedRepeatedState && len(s.Goal.Progress) > 0:
		return waits(OweProgress, kernel.ReadOnly, "read the progress probes")
	case s.probes() && s.Paused != nil:
		return message("resume")
	case s.probes():
		return waits(OweProbe, kernel.Effect, probeSummaries[b.Class])
	case b.Class == BlockedRounds, b.Class == BlockedOwned:
		return message("stop")
	case b.Class == BlockedRecovery:
		return message("recover")
	}
	return message("resume, answering " + b.ID + " (" + string(b.Class) + ")")
}
