package membus

import (
	"context"
	"time"
)

// batchMax bounds what a reader takes out of the store at a time.
const batchMax = 128

// reader is a watch or a follow: a place in the order of what is stored. It has no queue,
// so it can neither overflow nor miss: a slow reader gets only the newest of several
// changes, and after a lost connection it goes on from where it was.
type reader struct {
	conn   *Conn
	ctx    context.Context
	notify chan struct{} // of size 1
	source any           // the *table or *log it reads

	// read returns the next items behind pos, in order; called with bus.mu held.
	read    func(pos uint64, now time.Time) []*item
	matches func(group, key string) bool
	deliver func(*item)

	pos    uint64 // of the newest item delivered
	target uint64 // caughtUp is due when all up to here is delivered
	// caughtUp is called once, and set to nil.
	caughtUp func()
}

func (r *reader) wake() {
	select {
	case r.notify <- struct{}{}:
	default:
	}
}

func (r *reader) lostLocked() {}

// run delivers until the context, the connection's life, or both end.
func (r *reader) run() {
	for {
		batch, wait, drained := r.next()
		for _, it := range batch {
			if r.ctx.Err() != nil || !r.conn.Connected() {
				break
			}
			r.catchUp(it.pos - 1)
			r.pos = it.pos
			// What was deleted before the watch began was never there for it.
			if it.value != nil || it.pos > r.target {
				r.deliver(it)
			}
		}
		if drained {
			r.catchUp(r.target)
		}
		if len(batch) == 0 && !idle(r.ctx, r.conn.gone, r.notify, wait) {
			return
		}
		if r.ctx.Err() != nil {
			return
		}
	}
}

// next returns the items that have arrived, or how long to wait for the first (0: until
// woken), and whether all that is stored was delivered.
func (r *reader) next() (arrived []*item, wait time.Duration, drained bool) {
	b := r.conn.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if !r.conn.connectedLocked() {
		return nil, 0, false
	}
	now := time.Now()
	batch := r.read(r.pos, now)
	latency := b.latency(Store, r.conn.name)
	for i, it := range batch {
		if early := it.storedAt.Add(latency).Sub(now); early > 0 {
			return batch[:i], early, false
		}
	}
	return batch, 0, len(batch) == 0
}

func (r *reader) catchUp(delivered uint64) {
	if r.caughtUp != nil && delivered >= r.target {
		r.caughtUp()
		r.caughtUp = nil
	}
}

// idle waits for a notice, or for wait if it isn't 0. It returns false when it is over.
func idle(ctx context.Context, gone, notify <-chan struct{}, wait time.Duration) bool {
	var due <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-gone:
		return false
	case <-notify:
	case <-due:
	}
	return true
}
