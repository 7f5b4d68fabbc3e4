package browser

import (
	"context"
	"time"

	"steward/activities"
)

// Interrupt presses the page's Stop once, for the turn of one effect that is being written now. It is fenced like a send
// and never repeated; what it cannot prove it only reports.
func (b *Browser) Interrupt(ctx context.Context, in activities.InterruptInput) (activities.InterruptResult, error) {
	r := activities.InterruptResult{Worker: b.opts.Worker}
	detail, err := b.interrupt(ctx, in, &r)
	if err != nil {
		detail = err.Error()
	}
	r.Detail = cut(detail)
	b.log.Info("interrupt", "id", in.ID, "effect", in.EffectID, "pressed", r.Pressed, "stopped", r.Stopped, "detail", r.Detail)
	return r, nil
}

func (b *Browser) interrupt(ctx context.Context, in activities.InterruptInput, r *activities.InterruptResult) (string, error) {
	if err := authorized(ctx, in.RunID); err != nil {
		return "", err
	}
	p, err := b.place(in.Conversation)
	if err != nil {
		return "", err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	pulse, err := startPulse(context.WithoutCancel(ctx), b.opts.Arm, beatEvery(ctx), stop)
	if err != nil {
		return "", err
	}
	defer pulse.stop()
	lease, err := b.pool.lease(ctx, p.key, true)
	if err != nil {
		return "", err
	}
	defer lease.release()
	q := lookQuery{Marker: marker(in.EffectID)}
	a, err := b.arrive(ctx, p, q)
	if err != nil {
		return "", err
	}
	switch l := a.look; {
	case !a.ready || l.Marker == nil:
		return "the turn is not shown; nothing was pressed", nil
	case l.Later > 0:
		return "another message follows the turn; nothing was pressed", nil
	case !l.Stop:
		return "the page shows no answer being written; nothing was pressed", nil
	}
	gate, err := a.tab.closeGate(p.site, controlStop, "")
	if err != nil {
		return "", err
	}
	defer gate.dispose()
	if err := b.opts.Fence(); err != nil {
		return "", err
	}
	if err := b.ledger.append(attempt{Effect: in.ID, Generation: 1, At: now()}); err != nil {
		return "", err
	}
	deadline := time.Now().Add(armWindow)
	if err := pulse.arm(context.WithoutCancel(ctx), 1); err != nil {
		return "", err
	}
	if proven, _, why := gate.press(b.tabs, deadline); proven {
		return why, nil
	}
	r.Pressed = true
	for until := time.Now().Add(p.site.Timings.Commit); time.Now().Before(until); {
		l, err := a.tab.look(p.site, q)
		if err == nil && !l.generating() && l.Found {
			r.Stopped = true
			return "", nil
		}
		if err := sleep(ctx, pace); err != nil {
			return "", err
		}
	}
	return "the page still shows the answer as being written", nil
}
