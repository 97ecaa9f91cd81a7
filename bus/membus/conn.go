package membus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"rollcall/bus"
)

var _ bus.Bus = (*Conn)(nil)

// Conn is one process's connection; it implements bus.Bus. Its fields are guarded by bus.mu.
type Conn struct {
	bus  *Bus
	name string
	gone chan struct{} // closed by Close and Kill

	cut   bool
	ended bool          // gone is closed
	down  chan struct{} // closed while there is no connection
	subs  []subscription

	goroutines sync.WaitGroup // of the subscriptions
}

// subscription is a watch, a follow, or a receiver of messages.
type subscription interface {
	wake()       // something may have changed: look again
	lostLocked() // the connection is lost
}

// Cut breaks this connection until Heal. Messages on their way to it are lost;
// watches and follows stand still and catch up after Heal.
func (c *Conn) Cut() { c.setCut(true) }

// Heal mends what Cut broke.
func (c *Conn) Heal() { c.setCut(false) }

func (c *Conn) setCut(cut bool) {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	c.cut = cut
	c.relinkLocked()
}

// Kill is what happens to the connection of a killed process: its subscriptions vanish at
// once, nothing more reaches it, and whatever it still tries fails with ErrUnavailable.
// Messages that it has sent before still arrive. Kill doesn't wait; Close does.
func (c *Conn) Kill() {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	close(c.gone)
	c.relinkLocked()
	c.bus.conns = slices.DeleteFunc(c.bus.conns, func(other *Conn) bool { return other == c })
	c.subs = nil
}

// Close implements bus.Bus. Don't call it from a callback: it waits for them.
func (c *Conn) Close() error {
	c.Kill()
	c.goroutines.Wait()
	return nil
}

// Connected implements bus.Bus.
func (c *Conn) Connected() bool {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	return c.connectedLocked()
}

func (c *Conn) connectedLocked() bool { return !c.bus.stopped && !c.cut && !c.ended }

// relinkLocked brings down, and with it all that waits for it, in line with connectedLocked.
func (c *Conn) relinkLocked() {
	isDown := false
	select {
	case <-c.down:
		isDown = true
	default:
	}
	switch connected := c.connectedLocked(); {
	case connected && isDown:
		c.down = make(chan struct{})
		for _, s := range c.subs {
			s.wake()
		}
	case !connected && !isDown:
		close(c.down)
		for _, s := range c.subs {
			s.lostLocked()
		}
	}
}

// start registers a subscription and runs its goroutine until it returns.
func (c *Conn) start(s subscription, run func()) error {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	if c.ended {
		return fmt.Errorf("connection of %s is closed: %w", c.name, bus.ErrUnavailable)
	}
	c.subs = append(c.subs, s)
	c.goroutines.Go(func() {
		defer func() {
			c.bus.mu.Lock()
			defer c.bus.mu.Unlock()
			c.subs = slices.DeleteFunc(c.subs, func(other subscription) bool { return other == s })
		}()
		run()
	})
	return nil
}

// link returns the channel that closes when the present connection is lost.
func (c *Conn) link() (<-chan struct{}, error) {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	if !c.connectedLocked() {
		return nil, c.unreachable()
	}
	return c.down, nil
}

func (c *Conn) unreachable() error {
	return fmt.Errorf("%s has no connection: %w", c.name, bus.ErrUnavailable)
}

// exchange carries an operation to the store and its result back. apply runs at the
// store, with bus.mu held. When exchange fails with ErrUnavailable, apply may have run.
func (c *Conn) exchange(ctx context.Context, apply func() error) error {
	down, err := c.link()
	if err != nil {
		return err
	}
	if err := c.travel(ctx, down, c.bus.latency(c.name, Store)); err != nil {
		return err
	}
	if err := c.atStore(ctx, down, apply); err != nil {
		return err
	}
	return c.travel(ctx, down, c.bus.latency(Store, c.name))
}

// atStore runs apply as soon as there is a quorum, within the context and StoreTimeout.
func (c *Conn) atStore(ctx context.Context, down <-chan struct{}, apply func() error) error {
	var timeout <-chan time.Time
	for {
		back, err := c.tryStore(apply)
		if back == nil {
			return err
		}
		if timeout == nil {
			timer := time.NewTimer(c.bus.opts.StoreTimeout)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-back:
		case <-down:
			return c.unreachable()
		case <-timeout:
			return fmt.Errorf("no quorum for %v: %w", c.bus.opts.StoreTimeout, bus.ErrUnavailable)
		case <-ctx.Done():
			return fmt.Errorf("no quorum: %w (%w)", bus.ErrUnavailable, ctx.Err())
		}
	}
}

// tryStore runs apply, or returns the channel that tells when there is a quorum again.
func (c *Conn) tryStore(apply func() error) (back <-chan struct{}, err error) {
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	if !c.connectedLocked() {
		return nil, c.unreachable()
	}
	if c.bus.quorumBack != nil {
		return c.bus.quorumBack, nil
	}
	return nil, apply()
}

// travel waits for d, unless the connection is lost or ctx ends meanwhile.
func (c *Conn) travel(ctx context.Context, down <-chan struct{}, d time.Duration) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", bus.ErrUnavailable, ctx.Err())
	}
	if d <= 0 {
		select {
		case <-down:
			return c.unreachable()
		default:
			return nil
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-down:
		return c.unreachable()
	case <-ctx.Done():
		return fmt.Errorf("%w (%w)", bus.ErrUnavailable, ctx.Err())
	}
}
