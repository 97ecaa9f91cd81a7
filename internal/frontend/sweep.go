package frontend

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"rollcall/registrar"
)

const (
	sweepEvery    = time.Second
	sweepAtOnce   = 64   // removals under way
	sweepPerGroup = 4096 // removals per group and sweep; the rest waits for the next one
)

// sweep removes expired bindings from the log for the groups that this Front End
// is primary of, until ctx ends. A removal is a compare-and-swap on the user's
// record, so it can never undo a refresh.
func (f *FrontEnd) sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if f.members.fenced() {
			continue
		}
		g := errgroup.Group{}
		g.SetLimit(sweepAtOnce)
		for _, c := range f.held() {
			due := c.due(time.Now(), f.cfg.Policy.Grace, sweepPerGroup)
			if !c.ready.Load() {
				continue
			}
			for _, user := range due {
				g.Go(func() error { return f.expire(ctx, c, user) })
			}
		}
		_ = g.Wait() // what failed is due again
	}
}

// expire removes one user's expired bindings and subscriptions.
func (f *FrontEnd) expire(ctx context.Context, c *hotCopy, user registrar.AOR) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	endTurn, ok := f.turns.take(ctx, user)
	if !ok {
		return ctx.Err()
	}
	defer endTurn()
	_, err := f.change(ctx, c, user, func(cur registrar.Set, now time.Time) registrar.Decision {
		next, changes := cur.Expire(now, f.cfg.Policy.Grace)
		ended := len(next.Subscriptions) < len(cur.Subscriptions)
		return registrar.Decision{Next: next, Changes: changes, Write: len(changes) > 0 || ended}
	})
	return err
}
