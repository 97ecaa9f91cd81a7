package frontend

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/bus"
	"rollcall/registrar"
	"rollcall/routing"
)

// hotCopy is one routing group's bindings in memory, as the log has them. Sets
// stay encoded: most are never looked at before they are replaced, and one byte
// slice a user is all that the garbage collector has to follow.
type hotCopy struct {
	group routing.Group
	// ready: this Front End is primary and has read the log to its head.
	ready atomic.Bool

	mu       sync.Mutex
	users    map[registrar.AOR]stored // guarded by mu, and so is all below
	bindings int                      // sum of stored.n
	applied  bus.Position             // newest record seen, of any user
	waiting  []waiter
}

// stored is one user's set. A set without bindings stays until its record is gone from the log.
type stored struct {
	data        []byte
	position    bus.Position
	first, last int64 // earliest and latest expiry, Unix seconds; of an empty set, never and when it was seen
	n           int32 // bindings
	subscribed  bool  // somebody watches
}

type waiter struct {
	position bus.Position
	reached  chan struct{}
}

func newHotCopy(g routing.Group) *hotCopy {
	return &hotCopy{group: g, users: map[registrar.AOR]stored{}}
}

// apply takes a record over if it is newer than what the copy has of its user.
// A record that cannot be decoded is kept by position only, so that a primary can replace it.
func (c *hotCopy) apply(r bus.Record, now time.Time) error {
	n, first, last, err := registrar.PeekSet(r.Data)
	s := stored{data: r.Data, position: r.Position, n: int32(n), first: first.Unix(), last: last.Unix(),
		subscribed: registrar.HasSubscriptions(r.Data)}
	if err != nil || last.IsZero() {
		s.n, s.first, s.last = 0, math.MaxInt64, now.Unix()
	}
	user := registrar.AOR(r.User)

	c.mu.Lock()
	old, known := c.users[user]
	if !known || r.Position > old.position {
		c.users[user] = s
		c.bindings += int(s.n - old.n)
	}
	if r.Position > c.applied {
		c.applied = r.Position
	}
	reached := c.reachedLocked()
	c.mu.Unlock()

	for _, ch := range reached {
		close(ch)
	}
	return err
}

func (c *hotCopy) reachedLocked() (reached []chan struct{}) {
	if len(c.waiting) == 0 {
		return nil
	}
	rest := c.waiting[:0]
	for _, w := range c.waiting {
		if w.position <= c.applied {
			reached = append(reached, w.reached)
		} else {
			rest = append(rest, w)
		}
	}
	c.waiting = rest
	return reached
}

// reach returns a channel that closes when the copy has seen a record at this position or later.
func (c *hotCopy) reach(p bus.Position) <-chan struct{} {
	ch := make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.applied >= p {
		close(ch)
		return ch
	}
	c.waiting = append(c.waiting, waiter{p, ch})
	return ch
}

// get returns a user's encoded set and its position; nil and 0 when there is none.
func (c *hotCopy) get(user registrar.AOR) ([]byte, bus.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.users[user]
	return s.data, s.position
}

// forget removes a user whose record is gone from the log, unless a newer one came meanwhile.
func (c *hotCopy) forget(user registrar.AOR, at bus.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s, ok := c.users[user]; ok && s.position <= at {
		delete(c.users, user)
		c.bindings -= int(s.n)
	}
}

// counts returns the number of users with a record, and of bindings.
func (c *hotCopy) counts() (users, bindings int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.users), c.bindings
}

// subscribed returns the encoded sets of the users whom somebody watches.
func (c *hotCopy) subscribed() map[registrar.AOR][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	sets := map[registrar.AOR][]byte{}
	for user, s := range c.users {
		if s.subscribed {
			sets[user] = s.data
		}
	}
	return sets
}

// due returns up to limit users with a binding or subscription whose expiry is at or before now, and
// drops what the log itself has dropped by now (see recordTTL).
func (c *hotCopy) due(now time.Time, grace time.Duration, limit int) (users []registrar.AOR) {
	expired := now.Add(-grace).Unix()
	vanished := now.Add(-grace - recordMargin - time.Minute).Unix()
	c.mu.Lock()
	defer c.mu.Unlock()
	for user, s := range c.users {
		switch {
		case s.last <= vanished:
			delete(c.users, user)
			c.bindings -= int(s.n)
		case s.first <= expired && len(users) < limit:
			users = append(users, user)
		}
	}
	return users
}

// without returns up to limit users with bindings or watchers for whom isIn says no.
func (c *hotCopy) without(isIn func(registrar.AOR, routing.Group) bool, limit int) (users []registrar.AOR) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for user, s := range c.users {
		if (s.n > 0 || s.subscribed) && !isIn(user, c.group) {
			if users = append(users, user); len(users) == limit {
				break
			}
		}
	}
	return users
}

// recordMargin is how long a record outlives its last binding in the log.
const recordMargin = time.Minute

// recordTTL is how long the log keeps a set, in whole seconds: to the end of its
// last binding and its remembered removals, and recordMargin more, so that clocks may differ.
func recordTTL(s registrar.Set, now time.Time, grace time.Duration) time.Duration {
	end := s.Until(grace)
	if end.Before(now) {
		end = now
	}
	return (end.Sub(now) + recordMargin).Round(time.Second)
}

// copySet is the copies that this Front End holds. It is immutable and swapped whole.
type copySet map[routing.Group]*hotCopy

// with returns the set for these groups: copies already held are kept, others are new and empty.
func (s copySet) with(groups []routing.Group) copySet {
	next := make(copySet, len(groups))
	for _, g := range groups {
		if c, ok := s[g]; ok {
			next[g] = c
		} else {
			next[g] = newHotCopy(g)
		}
	}
	return next
}
