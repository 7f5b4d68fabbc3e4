package browser

import (
	"context"
	"errors"
	"strings"
	"time"

	"steward/activities"
	"steward/config/sites"
)

// Probe asks whether this browser could send on this site now. Level page sends nothing. Level message sends the profile's
// one fixed line in a throwaway conversation, once per id, where the profile allows it. (Provider recovery probes.)
func (b *Browser) Probe(ctx context.Context, in activities.ProbeInput) (activities.ProbeResult, error) {
	r := activities.ProbeResult{Level: in.Level, Worker: b.opts.Worker}
	defer func() {
		b.log.Info("probe", "id", in.ID, "level", in.Level, "passed", r.Passed, "class", r.Class, "detail", r.Detail)
	}()
	err := b.probe(ctx, in, &r)
	r.At = now()
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	var v *verdict
	switch {
	case err == nil:
		r.Passed = true
	case errors.As(err, &v):
		r.Class, r.Detail = v.result.Class, v.result.Detail
		if v.result.Outcome == activities.SendMissing {
			r.Class = "missing"
		}
		if v.result.Outcome == activities.SendDrift {
			r.Class, r.Drifted = "drift", strings.Split(v.result.Class, ", ")
		}
	default:
		r.Class, r.Detail = "unreadable", err.Error()
		if errors.Is(err, errNoBrowser) || errors.Is(err, errAmbiguous) {
			r.Class = unreadable(err)
		}
	}
	r.Detail = cut(r.Detail)
	return r, nil
}

// probe returns nil when every look of the level succeeded.
func (b *Browser) probe(ctx context.Context, in activities.ProbeInput, r *activities.ProbeResult) error {
	if err := authorized(ctx, in.RunID); err != nil {
		return err
	}
	site, err := b.site(in.Conversation.Site)
	if err != nil {
		return err
	}
	r.SiteDigest = site.Digest()
	if in.Level == activities.ProbeMessage {
		return b.probeMessage(ctx, site, in.ID)
	}
	stop := b.keepAlive(ctx)
	defer stop()
	p := place{site: site, key: "probe:" + site.Name, url: site.StartURL()}
	if in.Conversation.URL != "" || in.Conversation.NewKey != "" {
		if p, err = b.place(in.Conversation); err != nil {
			return err
		}
	}
	if p.unbound() {
		p.key = "probe:" + site.Name // the tab of a new conversation may be the only way to it
	}
	lease, err := b.pool.lease(ctx, p.key, true)
	if err != nil {
		return err
	}
	defer lease.release()
	a, err := b.revisit(ctx, p, lookQuery{})
	if err != nil {
		return err
	}
	err = b.inspect(site, p, a)
	var v *verdict
	if errors.As(err, &v) && v.result.Outcome == activities.SendDrift {
		v.result.Detail = pictured(v.result.Detail, b.snapshot(a.tab, in.ID))
	}
	return err
}

// inspect is the verdict over a page that was loaded for a probe. The class of a drift names the rules that match nothing.
func (b *Browser) inspect(site *sites.Site, p place, a arrival) error {
	if a.missing {
		return &verdict{activities.SendResult{Outcome: activities.SendMissing, Detail: "the page shows " + a.look.URL}}
	}
	if err := b.obstacle(site, a); err != nil {
		return err
	}
	if next := b.rest.until(0, time.Now()); next.After(time.Now()) {
		return deferred(activities.DeferCooldown, "cooldown", "the browser rests until "+next.Format(time.RFC3339), next)
	}
	drifted, err := a.tab.drifted(site, !p.unbound() && a.look.Items > 0)
	if err != nil {
		return err
	}
	if len(drifted) == 0 && !a.ready {
		return drift("page", "the page shows neither composer nor a known state")
	}
	if len(drifted) > 0 {
		names := strings.Join(drifted, ", ")
		return drift(names, "no longer recognised: "+names)
	}
	if !p.unbound() && a.look.Draft != "" && digestOf(a.look.Draft) != b.tabs.noted(p.key) {
		return deferred(activities.DeferForeignDraft, "foreign_draft", "the composer holds a text", time.Time{})
	}
	return nil
}

// drifted names the rules of the profile that match nothing on a page that can be used.
func (t *tab) drifted(site *sites.Site, conversation bool) ([]string, error) {
	var names []string
	err := t.evaluate(lookLimit, rulesScript, argument{Rules: site.Page, Query: map[string]bool{"conversation": conversation}}, &names)
	return names, err
}

// probeMessage sends the profile's fixed line in a conversation of its own, as a send with its own effect id: ledger, arming
// and gate hold for it too.
func (b *Browser) probeMessage(ctx context.Context, site *sites.Site, id string) error {
	if !site.MessageProbe.Allowed {
		return deferred("not_allowed", "not_allowed", "the site's profile does not allow probes that send a message", time.Time{})
	}
	sum := digestOf("probe\n" + site.Name + "\n" + id)
	fx := "fx_" + sum[:16]
	prompt := strings.TrimSpace(site.MessageProbe.Text) + "\n" + marker(fx)
	r, err := b.Send(ctx, activities.SendInput{
		TaskID: "probe", EffectID: fx, Generation: 1, Kind: kindProbe, Prompt: prompt, PromptDigest: digestOf(prompt),
		Conversation: activities.Conversation{Site: site.Name, NewKey: "probe-" + sum[:16]},
	})
	if err == nil && r.Outcome == activities.SendCommitted {
		b.tabs.disown(boundKey(site, r.ConversationID))
	}
	if err != nil || r.Outcome == activities.SendCommitted {
		return err
	}
	if r.Class == "" {
		r.Class = string(r.Outcome)
	}
	return &verdict{r}
}
