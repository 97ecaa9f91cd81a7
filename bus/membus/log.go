package membus

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"rollcall/bus"
)

// log is the stored part of the bus.Log; guarded by Bus.mu.
type log struct {
	groups map[string]*series
	last   uint64
}

func newLog() *log { return &log{groups: make(map[string]*series)} }

func (l *log) group(name string) *series {
	s := l.groups[name]
	if s == nil {
		s = newSeries()
		l.groups[name] = s
	}
	return s
}

func (l *log) append(r bus.Record, ttl time.Duration, now time.Time) (bus.Position, error) {
	users := l.group(r.Group)
	var stands uint64
	if old := users.get(r.User, now); old != nil {
		stands = old.pos
	}
	if uint64(r.Position) != stands {
		return 0, fmt.Errorf("newest record is at %d, not %d: %w", stands, r.Position, bus.ErrConflict)
	}
	l.last++
	it := &item{group: r.Group, key: r.User, pos: l.last, value: append([]byte{}, r.Data...), storedAt: now}
	if ttl > 0 {
		it.expires = now.Add(wholeSeconds(ttl))
	}
	users.put(it, now)
	return bus.Position(l.last), nil
}

// wholeSeconds rounds up: a record may live longer than asked, never shorter.
func wholeSeconds(ttl time.Duration) time.Duration {
	return (ttl + time.Second - 1).Truncate(time.Second)
}

// Bindings implements bus.Bus.
func (c *Conn) Bindings() bus.Log { return logConn{c} }

type logConn struct{ *Conn }

func (l logConn) Append(ctx context.Context, r bus.Record, ttl time.Duration) (bus.Position, error) {
	if r.Group == "" || r.User == "" || ttl < 0 {
		return 0, fmt.Errorf("append for user %q of group %q with ttl %v: a record needs both names, and a ttl is not negative", r.User, r.Group, ttl)
	}
	var pos bus.Position
	err := l.exchange(ctx, func() (err error) {
		if pos, err = l.bus.log.append(r, ttl, time.Now()); err != nil {
			return err
		}
		l.bus.wakeReadersLocked(l.bus.log, r.Group, r.User)
		if l.bus.losesAck(l.name, r.User) {
			return fmt.Errorf("acknowledgement lost: %w", bus.ErrUnavailable)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("append for %s: %w", r.User, err)
	}
	return pos, nil
}

func (l logConn) AppendThen(r bus.Record, ttl time.Duration, then func(bus.Position, error)) {
	l.bus.mu.Lock()
	ended := l.ended
	if !ended {
		l.goroutines.Go(func() { then(l.Append(context.Background(), r, ttl)) })
	}
	l.bus.mu.Unlock()
	if ended {
		then(0, fmt.Errorf("append for %s: %w", r.User, l.unreachable()))
	}
}

func (l logConn) Last(ctx context.Context, group, user string) (bus.Record, error) {
	var r bus.Record
	err := l.exchange(ctx, func() error {
		s := l.bus.log.groups[group]
		if s == nil {
			return bus.ErrNotFound
		}
		it := s.get(user, time.Now())
		if it == nil {
			return bus.ErrNotFound
		}
		r = it.record()
		return nil
	})
	if err != nil {
		return bus.Record{}, fmt.Errorf("last record of %s: %w", user, err)
	}
	return r, nil
}

func (l logConn) Head(ctx context.Context, group string) (bus.Position, error) {
	var pos uint64
	err := l.exchange(ctx, func() error {
		if s := l.bus.log.groups[group]; s != nil {
			pos = s.head(time.Now())
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("head of group %s: %w", group, err)
	}
	return bus.Position(pos), nil
}

func (l logConn) Follow(ctx context.Context, groups []string, after bus.Position, fn func(bus.Record)) error {
	followed := make(map[string]bool, len(groups))
	for _, g := range groups {
		followed[g] = true
	}
	r := &reader{
		conn: l.Conn, ctx: ctx, notify: make(chan struct{}, 1), source: l.bus.log, pos: uint64(after),
		matches: func(group, _ string) bool { return followed[group] },
		deliver: func(it *item) { fn(it.record()) },
	}
	names := slices.Sorted(maps.Keys(followed))
	r.read = func(pos uint64, now time.Time) []*item { return l.bus.log.after(names, pos, now) }
	if err := l.exchange(ctx, func() error { return nil }); err != nil {
		return fmt.Errorf("follow %d groups: %w", len(names), err)
	}
	return l.start(r, r.run)
}

// after returns the next batchMax standing records of the groups behind pos, in order.
func (l *log) after(groups []string, pos uint64, now time.Time) []*item {
	var batch []*item
	for _, g := range groups {
		if s := l.groups[g]; s != nil {
			batch = s.after(batch, pos, batchMax, now, nil)
		}
	}
	slices.SortFunc(batch, func(a, b *item) int { return cmp.Compare(a.pos, b.pos) })
	return batch[:min(len(batch), batchMax)]
}

func (it *item) record() bus.Record {
	return bus.Record{Group: it.group, User: it.key, Position: bus.Position(it.pos), Data: it.value}
}
