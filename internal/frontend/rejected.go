package frontend

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"rollcall/bus"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/routing"
)

// A user who is removed loses his bindings at once: the primary of his group takes them
// away with the reason "rejected" (RFC 3680 §5.1), and his connections close. The
// watch of the users table tells it. Who was removed while nobody could hear of
// it is found by a scan, after each promotion and every scanEvery.

// leaver is a user who was removed.
type leaver struct {
	user  registrar.AOR
	group routing.Group
	at    time.Time // what he registered until then goes; an account of the same name made later is another
}

// dismissals is the work of taking leavers' bindings away.
type dismissals struct {
	queue chan leaver
	scan  chan struct{} // one slot: look for users who are gone
}

const (
	leaverQueue   = 4096 // beyond it the scan finds them
	scanEvery     = 30 * time.Second
	dismissAtOnce = 64
	dismissWithin = 5 * time.Second
)

func newDismissals() *dismissals {
	return &dismissals{queue: make(chan leaver, leaverQueue), scan: make(chan struct{}, 1)}
}

// removed is told by the users table, after Lookup has stopped finding the user.
func (d *dismissals) removed(u directory.User) {
	select {
	case d.queue <- leaver{u.AOR, u.Group, time.Now()}:
	default:
		d.look()
	}
}

// look asks for a scan soon.
func (d *dismissals) look() {
	select {
	case d.scan <- struct{}{}:
	default:
	}
}

// dismiss does it until ctx ends.
func (f *FrontEnd) dismiss(ctx context.Context) error {
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	g := errgroup.Group{}
	g.SetLimit(dismissAtOnce)
	defer g.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-f.leavers.queue:
			g.Go(func() error { f.dismissOne(ctx, l); return nil })
		case <-f.leavers.scan:
			f.scanForGone(ctx, &g)
		case <-tick.C:
			f.scanForGone(ctx, &g)
		}
	}
}

// dismissOne takes a leaver's bindings and watchers away if this Front End is his primary.
func (f *FrontEnd) dismissOne(ctx context.Context, l leaver) {
	own := f.held()[l.group]
	if own == nil || !own.ready.Load() {
		return // the primary's own watch tells it, or its scan when it is promoted
	}
	ctx, cancel := context.WithTimeout(ctx, dismissWithin)
	defer cancel()
	endTurn, ok := f.turns.take(ctx, l.user)
	if !ok {
		return
	}
	defer endTurn()
	_, err := f.change(ctx, own, l.user, func(cur registrar.Set, now time.Time) registrar.Decision {
		next, changes := cur.Drop(func(b registrar.Binding) bool { return !b.Refreshed.After(l.at) }, registrar.Rejected, now)
		next = next.DropSubscriptions(func(registrar.Subscription) bool { return !f.isIn(l.user, l.group) })
		ended := len(next.Subscriptions) < len(cur.Subscriptions)
		return registrar.Decision{Next: next, Changes: changes, Write: len(changes) > 0 || ended, End: registrar.EndNoResource}
	})
	if err != nil && ctx.Err() == nil && !errors.Is(err, errMoved) {
		f.log.Warn("the bindings of a removed user could not be taken away yet", "aor", l.user, "err", err)
	}
}

// scanForGone looks for bindings of users who are provisioned no more, or in another
// group. This Front End's own table may lag behind, so the bus is asked before anything is done.
func (f *FrontEnd) scanForGone(ctx context.Context, g *errgroup.Group) {
	if f.members.fenced() {
		return
	}
	for _, c := range f.held() {
		if !c.ready.Load() {
			continue
		}
		for _, user := range c.without(f.isIn, sweepPerGroup) {
			g.Go(func() error {
				at := time.Now()
				if f.isGone(ctx, user, c.group) {
					f.dismissOne(ctx, leaver{user, c.group, at})
				}
				return nil
			})
		}
	}
}

// isIn reports whether a user is provisioned in a group, as far as this Front End knows.
func (f *FrontEnd) isIn(user registrar.AOR, g routing.Group) bool {
	u, ok := f.users.Lookup(user)
	return ok && u.Group == g
}

// isGone asks the bus. An entry that cannot be read is no removal.
func (f *FrontEnd) isGone(ctx context.Context, user registrar.AOR, g routing.Group) bool {
	ctx, cancel := context.WithTimeout(ctx, dismissWithin)
	defer cancel()
	e, err := f.bus.Users().Get(ctx, string(user))
	if err != nil {
		return errors.Is(err, bus.ErrNotFound)
	}
	u, err := directory.Decode(user, e.Value)
	return err == nil && u.Group != g
}
