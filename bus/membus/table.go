package membus

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"

	"rollcall/bus"
)

// table is the stored part of a bus.Table; guarded by Bus.mu.
type table struct {
	entries *series
	last    uint64
}

func newTable() *table { return &table{entries: newSeries()} }

// write stores w if its expectation holds.
func (t *table) write(w bus.Write, now time.Time) (bus.Revision, error) {
	var stands uint64
	old := t.entries.get(w.Key, now)
	if old != nil {
		stands = old.pos
	}
	// Like in NATS, a deleted entry may be created anew or over its mark.
	fits := uint64(w.Expect) == stands || w.Expect == 0 && old != nil && old.value == nil
	if !fits {
		return 0, fmt.Errorf("%q stands at revision %d, not %d: %w", w.Key, stands, w.Expect, bus.ErrConflict)
	}
	t.last++
	it := &item{key: w.Key, pos: t.last, storedAt: now}
	if w.Value != nil {
		it.value = append([]byte{}, w.Value...) // empty isn't nil
	}
	t.entries.put(it, now)
	return bus.Revision(t.last), nil
}

// Pool implements bus.Bus.
func (c *Conn) Pool() bus.Table { return tableConn{c, c.bus.pool} }

// Users implements bus.Bus.
func (c *Conn) Users() bus.Table { return tableConn{c, c.bus.users} }

type tableConn struct {
	*Conn
	table *table
}

func (t tableConn) Get(ctx context.Context, key string) (bus.Entry, error) {
	var e bus.Entry
	err := t.exchange(ctx, func() error {
		it := t.table.entries.get(key, time.Now())
		if it == nil || it.value == nil {
			return bus.ErrNotFound
		}
		e = it.entry()
		return nil
	})
	if err != nil {
		return bus.Entry{}, fmt.Errorf("get %q: %w", key, err)
	}
	return e, nil
}

func (t tableConn) Put(ctx context.Context, w bus.Write) (bus.Revision, error) {
	var r bus.Revision
	err := t.exchange(ctx, func() (err error) {
		r, err = t.store(w)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("put %q: %w", w.Key, err)
	}
	return r, nil
}

// store writes at the store and tells the watchers; with bus.mu held.
func (t tableConn) store(w bus.Write) (bus.Revision, error) {
	if err := checkKey(w.Key); err != nil {
		return 0, err
	}
	r, err := t.table.write(w, time.Now())
	if err != nil {
		return 0, err
	}
	t.bus.wakeReadersLocked(t.table, "", w.Key)
	if t.bus.losesAck(t.name, w.Key) {
		return 0, fmt.Errorf("acknowledgement lost: %w", bus.ErrUnavailable)
	}
	return r, nil
}

// PutAll implements bus.Table: it sends batches of batchMax.
func (t tableConn) PutAll(ctx context.Context, writes iter.Seq[bus.Write], done func(bus.Write, bus.Revision, error)) error {
	batch := make([]bus.Write, 0, batchMax)
	for w := range writes {
		if ctx.Err() != nil {
			break
		}
		if batch = append(batch, w); len(batch) == batchMax {
			t.putBatch(ctx, batch, done)
			batch = batch[:0]
		}
	}
	t.putBatch(ctx, batch, done)
	return ctx.Err()
}

func (t tableConn) putBatch(ctx context.Context, batch []bus.Write, done func(bus.Write, bus.Revision, error)) {
	if len(batch) == 0 {
		return
	}
	revisions, errs := make([]bus.Revision, len(batch)), make([]error, len(batch))
	err := t.exchange(ctx, func() error {
		for i, w := range batch {
			revisions[i], errs[i] = t.store(w)
		}
		return nil
	})
	for i, w := range batch {
		if err != nil {
			revisions[i], errs[i] = 0, err
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("put %q: %w", w.Key, errs[i])
		}
		done(w, revisions[i], errs[i])
	}
}

func (t tableConn) List(ctx context.Context, prefix string) ([]bus.Entry, error) {
	var list []bus.Entry
	err := t.exchange(ctx, func() error {
		for _, it := range t.table.entries.order {
			if !it.replaced && it.value != nil && strings.HasPrefix(it.key, prefix) {
				list = append(list, it.entry())
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %q: %w", prefix, err)
	}
	return list, nil
}

func (t tableConn) Watch(ctx context.Context, prefix string, changed func(bus.Entry), caughtUp func()) error {
	r := &reader{
		conn: t.Conn, ctx: ctx, notify: make(chan struct{}, 1), source: t.table, caughtUp: caughtUp,
		matches: func(_, key string) bool { return strings.HasPrefix(key, prefix) },
		deliver: func(it *item) { changed(it.entry()) },
	}
	r.read = func(pos uint64, now time.Time) []*item {
		return t.table.entries.after(nil, pos, batchMax, now, func(it *item) bool { return strings.HasPrefix(it.key, prefix) })
	}
	if err := t.exchange(ctx, func() error { r.target = t.table.last; return nil }); err != nil {
		return fmt.Errorf("watch %q: %w", prefix, err)
	}
	return t.start(r, r.run)
}

func (it *item) entry() bus.Entry {
	return bus.Entry{Key: it.key, Value: it.value, Revision: bus.Revision(it.pos)}
}

// wakeReadersLocked tells who reads this key or group of source that there is something new.
func (b *Bus) wakeReadersLocked(source any, group, key string) {
	for _, c := range b.conns {
		for _, s := range c.subs {
			if r, ok := s.(*reader); ok && r.source == source && r.matches(group, key) {
				r.wake()
			}
		}
	}
}

func checkKey(key string) error {
	if len(key) == 0 || len(key) > 512 || !utf8.ValidString(key) {
		return fmt.Errorf("a key is 1 to 512 bytes of UTF-8, this one is %d bytes", len(key))
	}
	return nil
}

func clone(data []byte) []byte { return bytes.Clone(data) }
