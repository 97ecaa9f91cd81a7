package frontend

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"rollcall/bus"
	"rollcall/routing"
)

// promoter makes this Front End serve the groups it is primary of: a copy must
// have read the log to its head before it may answer, so that no acknowledged
// binding is missed (RFC 3261 §10.3 asks for atomic decisions on the current set).
type promoter struct {
	log     bus.Log
	pending func() []*hotCopy         // copies that this Front End is primary of and that are not ready
	primary func(routing.Group) bool  // still primary?
	ready   func(group routing.Group) // the copy serves from now on
	logger  *slog.Logger
	wake    chan struct{} // one slot: the placement changed

	mu   sync.Mutex
	busy map[routing.Group]bool // guarded by mu
	wg   sync.WaitGroup
}

const (
	promotionsAtOnce = 16
	headRetry        = 50 * time.Millisecond
	headAgain        = 500 * time.Millisecond // the head's record may vanish by its ttl while we wait for it
)

func (p *promoter) changed() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run until ctx ends; waits for its promotions.
func (p *promoter) run(ctx context.Context) error {
	defer p.wg.Wait()
	slots := make(chan struct{}, promotionsAtOnce)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		}
		for _, c := range p.pending() {
			if !p.begin(c.group) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			p.wg.Go(func() {
				defer func() { <-slots; p.end(c.group) }()
				p.promote(ctx, c)
			})
		}
	}
}

func (p *promoter) begin(g routing.Group) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[g] {
		return false
	}
	p.busy[g] = true
	return true
}

func (p *promoter) end(g routing.Group) {
	p.mu.Lock()
	delete(p.busy, g)
	p.mu.Unlock()
	p.changed() // the placement may have changed meanwhile
}

// promote reads one copy to the head of the log and lets it serve.
func (p *promoter) promote(ctx context.Context, c *hotCopy) {
	for ctx.Err() == nil && p.primary(c.group) {
		head, err := p.head(ctx, c.group)
		if err != nil {
			pause(ctx, headRetry)
			continue
		}
		select {
		case <-c.reach(head):
			p.ready(c.group)
			return
		case <-time.After(headAgain):
		case <-ctx.Done():
		}
	}
}

func (p *promoter) head(ctx context.Context, g routing.Group) (bus.Position, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	return p.log.Head(ctx, string(g))
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
