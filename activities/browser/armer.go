package browser

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"steward/activities"
	"steward/activities/beat"
)

// Armer makes one synchronous heartbeat of the running activity. It returns nil only when the server has recorded the
// progress and does not ask the activity to stop; ErrRefused when the server answered otherwise; any other error leaves
// open whether the server has recorded it.
type Armer interface {
	Beat(ctx context.Context, progress activities.SendProgress) error
}

// ErrRefused is wrapped by an Armer's error when the server no longer wants this attempt.
var ErrRefused = beat.ErrRefused

// NewArmer heartbeats through the workflow service of a client, past the SDK's own batching, so that each call is answered
// by the server before it returns. (Effects: at most one authorized attempt, fenced by the server.)
func NewArmer(c client.Client) Armer { return temporalArmer{c} }

type temporalArmer struct{ client client.Client }

func (a temporalArmer) Beat(ctx context.Context, progress activities.SendProgress) error {
	return beat.Record(ctx, a.client, progress)
}

// beatLimit bounds one heartbeat. The server gives up on a call with the caller, so that a call that got no answer is not
// recorded later than its bound.
const beatLimit = 3 * time.Second

// pulse heartbeats one send. Its calls never overlap, and after an accepted arming every one of them carries it: nothing
// can overwrite it.
type pulse struct {
	armer Armer
	mu    sync.Mutex
	armed int
	step  string
	doubt error // a heartbeat that the server may or may not have recorded
	quit  chan struct{}
	ended sync.WaitGroup
}

// startPulse makes the first heartbeat and goes on with one per interval until stop. lost is called once, when the server
// refuses one or does not answer.
func startPulse(ctx context.Context, armer Armer, interval time.Duration, lost func(error)) (*pulse, error) {
	p := &pulse{armer: armer, step: "open", quit: make(chan struct{})}
	if err := p.beat(ctx); err != nil {
		return nil, err
	}
	p.ended.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := p.beat(ctx); err != nil {
					lost(err)
					return
				}
			case <-p.quit:
				return
			}
		}
	})
	return p, nil
}

func (p *pulse) beat(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.send(ctx, activities.SendProgress{Step: p.step, Armed: p.armed})
}

func (p *pulse) send(ctx context.Context, progress activities.SendProgress) error {
	ctx, cancel := context.WithTimeout(ctx, beatLimit)
	defer cancel()
	err := p.armer.Beat(ctx, progress)
	if err != nil && !errors.Is(err, ErrRefused) {
		p.doubt = err
	}
	return err
}

// at names the step that the next heartbeats report.
func (p *pulse) at(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = step
}

// unsure is the error of a heartbeat whose fate is not known; after one, arming could be overwritten by it.
func (p *pulse) unsure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doubt
}

// arm asks the server to record the generation as armed. Only nil permits the irreversible step.
func (p *pulse) arm(ctx context.Context, generation int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doubt != nil {
		return fmt.Errorf("an earlier heartbeat got no answer: %w", p.doubt)
	}
	// From here on every heartbeat carries it, whether or not this call gets its answer.
	p.armed, p.step = generation, "armed"
	return p.send(ctx, activities.SendProgress{Step: p.step, Armed: p.armed})
}

func (p *pulse) stop() {
	close(p.quit)
	p.ended.Wait()
}
