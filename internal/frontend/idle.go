package frontend

import (
	"context"
	"slices"
	"time"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sync/errgroup"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/routing"
)

// A connection is closed when the last binding on it expired, went with its user, or was
// replaced by one on another connection. Not when it was un-registered: the client is
// there and may go on using it (RFC 5626 §4.2.1 leaves closing to it). Nor when a
// proxy stands between: the connection is the proxy's. The Front End that
// has the connection does it, a moment later, and only if nothing came over it meanwhile.

// released tells the Front End of a connection that a user has no binding on it any more.
type released struct {
	User  registrar.AOR  `cbor:"1,keyasint"`
	Flow  registrar.Flow `cbor:"2,keyasint"`
	At    bus.Position   `cbor:"3,keyasint"` // of the record that says so
	Close bool           `cbor:"4,keyasint,omitempty"`
}

// idleFlow is a connection to be closed unless something comes over it.
type idleFlow struct {
	id uint64
	at time.Time
}

const (
	idleQueue  = 8192 // beyond it connections stay open until the client closes them
	idleLinger = 200 * time.Millisecond
	tellAtOnce = 64
	tellWithin = 5 * time.Second
)

// release finds the connections that a stored decision left without a binding of the user.
func (f *FrontEnd) release(user registrar.AOR, cur registrar.Set, d registrar.Decision, at bus.Position) {
	for i := range cur.Bindings {
		b := &cur.Bindings[i]
		if !b.Flow.Stream() || livesOn(d.Next.Bindings, b.Flow) || livesOn(cur.Bindings[:i], b.Flow) ||
			watchedOver(d.Next.Subscriptions, b.Flow) {
			continue
		}
		r := released{User: user, Flow: b.Flow, At: at, Close: len(b.Path) == 0 && mayClose(d.Changes, b.Flow)}
		if routing.FrontEnd(b.Flow.FrontEnd) == f.cfg.Name {
			f.released(r)
			continue
		}
		m := f.view.Load().placement.Members[routing.FrontEnd(b.Flow.FrontEnd)]
		if m.State == routing.Down || m.Boot != b.Flow.Boot {
			continue // its connections are gone
		}
		select {
		case f.flows.tell <- r:
		default:
		}
	}
}

func livesOn(bindings []registrar.Binding, flow registrar.Flow) bool {
	for i := range bindings {
		if sameConnection(bindings[i].Flow, flow) {
			return true
		}
	}
	return false
}

func sameConnection(a, b registrar.Flow) bool {
	return a.ID == b.ID && a.FrontEnd == b.FrontEnd && a.Boot == b.Boot && a.Stream() && b.Stream()
}

// mayClose: no binding on the flow went by the client's own request, or because the connection is lost.
func mayClose(changes []registrar.Change, flow registrar.Flow) bool {
	for i := range changes {
		c := &changes[i]
		if !sameConnection(c.Binding.Flow, flow) {
			continue
		}
		switch c.Kind {
		case registrar.Unregistered, registrar.Deactivated, registrar.Probation:
			return false
		case registrar.Rejected:
			if makesRoom(changes) { // its client would come back at once and drive out the next one, for ever
				return false
			}
		}
	}
	return true
}

// makesRoom: a binding was given up for a new one, and its user is as welcome as before.
func makesRoom(changes []registrar.Change) bool {
	return slices.ContainsFunc(changes, func(c registrar.Change) bool { return c.Kind == registrar.Created })
}

// tellReleased tells other Front Ends until ctx ends. What is lost leaves a connection open, no more.
func (f *FrontEnd) tellReleased(ctx context.Context) error {
	g := errgroup.Group{}
	g.SetLimit(tellAtOnce)
	defer g.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case r := <-f.flows.tell:
			data, err := cbor.Marshal(r)
			if err != nil {
				continue
			}
			g.Go(func() error {
				ctx, cancel := context.WithTimeout(ctx, tellWithin)
				defer cancel()
				_, _ = f.bus.Request(ctx, r.Flow.FrontEnd, control.VerbFlowReleased, data)
				return nil
			})
		}
	}
}

// releasedElsewhere takes another Front End's word for it. It does not block.
func (f *FrontEnd) releasedElsewhere(b bus.Request) {
	var r released
	if err := cbor.Unmarshal(b.Data, &r); err != nil {
		f.log.Error("a released connection was told in words that cannot be read", "err", err)
		return
	}
	f.released(r)
	_ = b.Respond([]byte{1}) // nobody waits for long
}

// released notes that a user has no binding on a connection of this Front End any more.
func (f *FrontEnd) released(r released) {
	if r.Flow.FrontEnd != string(f.cfg.Name) || r.Flow.Boot != f.cfg.Boot {
		return
	}
	if !f.flows.release(r) {
		return
	}
	select {
	case f.flows.idle <- idleFlow{r.Flow.ID, time.Now()}:
	default:
	}
}

// release reports whether the connection is idle by that.
func (f *flows) release(r released) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.byID[r.Flow.ID]
	if u == nil {
		return false // closed
	}
	u.set(flowUser{user: r.User, at: r.At, gone: true})
	u.idle = r.Close && u.busy == 0 && !u.live()
	f.tidyLocked(r.Flow.ID, u)
	return u.idle
}

// takeIdle reports whether the connection is idle still, and if not, forgets that it was.
func (f *flows) takeIdle(id uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.byID[id]
	if u == nil || !u.idle || u.busy > 0 || u.live() {
		return false
	}
	delete(f.byID, id)
	return true
}

// closeIdle closes connections that stayed idle, until ctx ends. With a reset: some
// clients notice nothing else (Twinkle takes up to 30 s for a FIN).
func (f *FrontEnd) closeIdle(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case i := <-f.flows.idle:
			if wait := time.Until(i.at.Add(idleLinger)); wait > 0 {
				pause(ctx, wait) // all wait equally long, so the order is that of their ends
			}
			if f.flows.takeIdle(i.id) {
				f.sip.CloseFlow(i.id, true)
			}
		}
	}
}
