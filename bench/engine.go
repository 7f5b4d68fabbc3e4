package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"steward/activities/browser"
	"steward/bench/target"
	"steward/workflows"
)

// pair is a rig with both workflows on the same server: Steward's and the baseline's, each with a site of its own.
type pair struct {
	*rig
	site, bareSite *target.Site
	paused         int
}

// newPair serves everything in this process. Prepare comes before the workers.
func (b *bench) newPair(ctx context.Context, name string, prepare ...func(*rig) error) (*pair, error) {
	r, err := b.newRig(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &pair{rig: r, site: target.NewSite(), bareSite: target.NewSite()}
	for _, f := range prepare {
		err = errors.Join(err, f(r))
	}
	if err == nil {
		err = r.decide(ctx)
	}
	if err == nil {
		err = p.serveSites(ctx)
	}
	if err == nil {
		err = r.serve(ctx, func(ctx context.Context, started func() error) error { return serveBare(ctx, r.client, started) })
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return p, nil
}

// serveSites serves the activities of both.
func (p *pair) serveSites(ctx context.Context) error {
	if err := p.browse(ctx, simulated, &target.Browser{Site: p.site, Armer: browser.NewArmer(p.client)}); err != nil {
		return err
	}
	return p.serve(ctx, func(ctx context.Context, started func() error) error {
		return serveBareActivities(ctx, p.client, p.bareSite, started)
	})
}

// turns runs one conversation of so many turns and returns when its site has received them all.
func (p *pair) turns(ctx context.Context, bare bool, n int) (string, []target.Message, error) {
	conversation, site, begin := target.Conversation(n), p.site, func(c string) (client.WorkflowRun, error) { return p.start(ctx, c) }
	if bare {
		site, begin = p.bareSite, func(c string) (client.WorkflowRun, error) { return p.startBare(ctx, c, n) }
	}
	if _, err := begin(conversation); err != nil {
		return "", nil, err
	}
	var messages []target.Message
	err := poll(ctx, 3*time.Minute, fmt.Sprintf("conversation %s has %d messages", conversation, n), func() (bool, error) {
		var err error
		messages, err = site.Sent(ctx, conversation)
		return len(messages) >= n, err
	})
	return conversation, messages, err
}

func (b *bench) engine(ctx context.Context) error {
	p, err := b.newPair(ctx, "engine")
	if err != nil {
		return err
	}
	defer p.close()
	var own, bare []float64
	var last string
	for range pick(b, 6, 20) {
		conversation, messages, err := p.turns(ctx, false, 30)
		if err != nil {
			return err
		}
		_, base, err := p.turns(ctx, true, 30)
		if err != nil {
			return err
		}
		last, own, bare = conversation, append(own, intervals(messages)...), append(bare, intervals(base)...)
	}
	row := Row{What: "engine cost of a turn", Unit: "ms", Samples: len(own), Figure: figure(own)}.
		against("a workflow of two activities a turn that only heartbeat, on queues with the same options and time-outs", figure(bare))
	b.add(row.bar("≤ 1.25x", row.Ratio, 1.25, "prompts, receipts and search attributes are payloads that the bare turn does not have, "+
		"and every commit of the server writes them"))
	if err := b.events(ctx, p, last); err != nil {
		return err
	}
	return b.together(ctx, p)
}

// events counts the history events from one send to the next.
func (b *bench) events(ctx context.Context, p *pair, conversation string) error {
	iterator := p.client.GetWorkflowHistory(ctx, runID(conversation), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var counts []float64
	for since := math.NaN(); iterator.HasNext(); since++ {
		e, err := iterator.Next()
		if err != nil {
			return err
		}
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() != workflows.ActivitySend {
			continue
		}
		if !math.IsNaN(since) {
			counts = append(counts, since)
		}
		since = 0
	}
	row := Row{What: "history events of a turn", Samples: len(counts), Figure: figure(counts)}.
		against("the bare turn, by its shape", Figure{Median: 12, P95: 12})
	b.add(row.bar("≤ 13", row.P95, 13, "a turn publishes more than one change"))
	return nil
}

// together measures many runs at once: what one server can do.
func (b *bench) together(ctx context.Context, p *pair) error {
	runs, turns := pick(b, 20, 50), pick(b, 8, 20)
	rate := func(bare bool) (float64, error) {
		began := time.Now()
		var group sync.WaitGroup
		failed := make(chan error, runs)
		for range runs {
			group.Go(func() {
				if _, _, err := p.turns(ctx, bare, turns); err != nil {
					failed <- err
				}
			})
		}
		group.Wait()
		close(failed)
		return float64(runs*turns) / time.Since(began).Seconds(), <-failed
	}
	var own, bare []float64
	for i := range pick(b, 2, 4) { // in turns: what a side leaves to do runs into the other's time
		for _, isBare := range []bool{i%2 == 1, i%2 == 0} {
			r, err := rate(isBare)
			if err != nil {
				return err
			}
			if isBare {
				bare = append(bare, r)
			} else {
				own = append(own, r)
			}
		}
	}
	b.add(Row{
		What: fmt.Sprintf("turns a second, %d runs at once", runs), Unit: "/s", Samples: len(own), Figure: figure(own),
		Note: "starts with their admission are part of it, which the bare workflows do not have.",
	}.against("the bare workflows", figure(bare)))
	return nil
}

func (b *bench) growth(ctx context.Context) error {
	p, err := b.newPair(ctx, "growth")
	if err != nil {
		return err
	}
	defer p.close()
	if _, _, err := p.turns(ctx, false, 5); err != nil { // warm-up
		return err
	}
	before, err := diskUse(p.dataDir)
	if err != nil {
		return err
	}
	n := pick(b, 300, 999)
	_, messages, err := p.turns(ctx, false, n)
	if err != nil {
		return err
	}
	after, err := diskUse(p.dataDir)
	if err != nil {
		return err
	}
	at := func(turn int) []float64 {
		first, last := max(1, turn-8), min(len(messages)-1, turn+8)
		return intervals(messages[first-1 : last])
	}
	base := figure(at(10))
	for _, turn := range []int{100, pick(b, 290, 990)} {
		row := Row{What: fmt.Sprintf("a turn around turn %d of one run", turn), Unit: "ms", Samples: len(at(turn)), Figure: figure(at(turn))}.
			against("around turn 10 of the same run", base)
		b.add(row.bar("≤ 1.5x", row.Ratio, 1.5, "the history of one run in the chain is longest just before it continues as new"))
	}
	if b.postgres != nil { // its files are its own
		return nil
	}
	b.add(Row{
		What: "disk of 1,000 turns", Unit: "MB", Figure: Figure{Median: (after - before) / float64(n) * 1000},
		Note: "database with its write-ahead log; a closed run's history is copied to the archive beside it, and leaves the database after the retention.",
	})
	return nil
}

// diskUse is the size of everything below a folder, in MB.
func diskUse(dir string) (mb float64, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			mb += float64(info.Size()) / (1 << 20)
		}
		return err
	})
	return mb, err
}
