package recovery

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

// errNotArmed is wrapped when the server no longer wants an operation, or did not answer.
var errNotArmed = errors.New("the server did not let the operation begin")

const (
	// beatEvery is the time between two heartbeats, beatLimit the longest one.
	beatEvery = 5 * time.Second
	beatLimit = 3 * time.Second
)

// NewBeat makes heartbeats through a client that the server has answered before they return.
func NewBeat(c client.Client) func(context.Context, activities.OperationProgress) error {
	return func(ctx context.Context, progress activities.OperationProgress) error {
		return beat.Record(ctx, c, progress)
	}
}

// pulse heartbeats one operation. Its calls never overlap, and from arming on every one of them carries it.
type pulse struct {
	beat  func(context.Context, activities.OperationProgress) error
	mu    sync.Mutex
	now   activities.OperationProgress
	doubt error // a heartbeat before arming that failed: the server may record it late
	quit  chan struct{}
	ended sync.WaitGroup
}

// startPulse makes the first heartbeat; an operation that the server does not want any more is not begun. Later ones that fail
// do not end it: before arming they keep it from arming, and after it the service must not be left half switched.
func startPulse(ctx context.Context, beat func(context.Context, activities.OperationProgress) error) (*pulse, error) {
	p := &pulse{beat: beat, quit: make(chan struct{})}
	ctx = context.WithoutCancel(ctx) // the operation may go on when the activity may not
	if err := p.send(ctx); err != nil {
		return nil, err
	}
	p.ended.Go(func() {
		tick := time.NewTicker(beatEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.mu.Lock()
				if err := p.send(ctx); err != nil {
					p.doubt = err
				}
				p.mu.Unlock()
			case <-p.quit:
				return
			}
		}
	})
	return p, nil
}

func (p *pulse) send(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatLimit)
	defer cancel()
	return p.beat(ctx, p.now)
}

// at names the step that the next heartbeats report.
func (p *pulse) at(step string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Step = step
}

// arm asks the server to record the generation. Only nil permits to touch the service.
func (p *pulse) arm(ctx context.Context, generation int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.doubt != nil {
		return fmt.Errorf("%w: an earlier heartbeat failed: %w", errNotArmed, p.doubt)
	}
	p.now.Armed = generation
	if err := p.send(ctx); err != nil {
		return fmt.Errorf("%w: %w", errNotArmed, err)
	}
	return nil
}

func (p *pulse) stop() {
	close(p.quit)
	p.ended.Wait()
}
