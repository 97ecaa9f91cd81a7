package frontend

import (
	"context"
	"log/slog"
	"time"

	"rollcall/bus"
	"rollcall/routing"
)

// follower keeps the hot copies current: it follows the log for the groups that
// this Front End holds. Groups that come together are read by one follow; when
// there are too many follows, one replaces them all.
type follower struct {
	log    bus.Log
	copies func() copySet
	logger *slog.Logger
	wake   chan struct{} // one slot: copies changed
	follow []*follow     // owned by run
}

const (
	mostFollows   = 8
	followRetry   = 100 * time.Millisecond
	followTimeout = 5 * time.Second
)

// follow is one reading of the log.
type follow struct {
	groups map[routing.Group]bool
	stop   context.CancelFunc
}

func (f *follower) changed() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// run until ctx ends. The bus's own goroutines do the reading; they end with ctx.
func (f *follower) run(ctx context.Context) error {
	for {
		if !f.adjust(ctx) {
			select {
			case <-ctx.Done():
			case <-time.After(followRetry):
			}
			f.changed()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-f.wake:
		}
	}
}

// adjust starts and stops follows so that every held group is read by one. It
// reports false if the bus did not let it.
func (f *follower) adjust(ctx context.Context) bool {
	held := f.copies()
	kept := f.follow[:0]
	followed := map[routing.Group]bool{}
	for _, r := range f.follow {
		for g := range r.groups {
			if held[g] == nil {
				delete(r.groups, g)
			} else {
				followed[g] = true
			}
		}
		if len(r.groups) == 0 {
			r.stop()
			continue
		}
		kept = append(kept, r)
	}
	f.follow = kept

	var missing []routing.Group
	for g := range held {
		if !followed[g] {
			missing = append(missing, g)
		}
	}
	if len(missing) == 0 {
		return true
	}
	if len(f.follow) < mostFollows {
		return f.start(ctx, missing)
	}
	old := f.follow
	all := make([]routing.Group, 0, len(held))
	for g := range held {
		all = append(all, g)
	}
	if !f.start(ctx, all) {
		return false
	}
	for _, r := range old {
		r.stop()
	}
	f.follow = f.follow[len(old):]
	return true
}

func (f *follower) start(ctx context.Context, groups []routing.Group) bool {
	names := make([]string, len(groups))
	r := &follow{groups: make(map[routing.Group]bool, len(groups))}
	for i, g := range groups {
		names[i] = string(g)
		r.groups[g] = true
	}
	fctx, stop := context.WithCancel(ctx)
	r.stop = stop
	if err := f.log.Follow(fctx, names, 0, f.take); err != nil {
		stop()
		if ctx.Err() == nil {
			f.logger.Warn("cannot follow the bindings log yet", "groups", len(groups), "err", err)
		}
		return false
	}
	f.follow = append(f.follow, r)
	return true
}

// take is called by the bus for each record.
func (f *follower) take(r bus.Record) {
	c := f.copies()[routing.Group(r.Group)]
	if c == nil {
		return // a group that was given away
	}
	if err := c.apply(r, time.Now()); err != nil {
		f.logger.Error("a stored record cannot be read; the user's next REGISTER replaces it",
			"aor", r.User, "group", r.Group, "position", r.Position, "err", err)
	}
}
