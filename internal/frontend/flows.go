package frontend

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fxamacker/cbor/v2"
	"golang.org/x/sync/errgroup"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/registrar"
)

// flows remembers who registered over which of this Front End's connections.
// When one closes, the bindings that live on it go: the client can be reached
// that way no more (RFC 5626 §4.2 treats the flow as the binding's life). And
// when the last binding of one ends, it is closed: see idle.go.
type flows struct {
	mu   sync.Mutex
	byID map[uint64]*flowUse // by number of the connection; guarded by mu

	closed  chan closedFlow // for reap
	pending atomic.Int64    // closed and not yet dealt with
	idle    chan idleFlow   // for closeIdle
	tell    chan released   // for tellReleased
}

// flowUse is what one connection is used for.
type flowUse struct {
	users []flowUser
	busy  int  // REGISTERs under way over it
	idle  bool // its last binding ended, and nothing came over it since
}

// flowUser is a user who has a binding on a connection by the record at that
// position, or, gone, had one until then.
type flowUser struct {
	user registrar.AOR
	at   bus.Position
	gone bool
}

func (u *flowUse) live() bool {
	for i := range u.users {
		if !u.users[i].gone {
			return true
		}
	}
	return false
}

// set takes over what a record says of a user, unless a newer one was heard of.
func (u *flowUse) set(next flowUser) {
	for i := range u.users {
		if u.users[i].user == next.user {
			if u.users[i].at <= next.at {
				u.users[i] = next
			}
			return
		}
	}
	u.users = append(u.users, next)
}

// closedFlow is a user whose connection closed.
type closedFlow struct {
	user registrar.AOR
	flow registrar.Flow
	at   time.Time
}

const (
	closedQueue  = 32768 // more than the connections of a process; beyond it bindings stay until they expire
	dropsAtOnce  = 64
	dropDeadline = 20 * time.Second
)

func newFlows() *flows {
	return &flows{byID: map[uint64]*flowUse{}, closed: make(chan closedFlow, closedQueue),
		idle: make(chan idleFlow, idleQueue), tell: make(chan released, idleQueue)}
}

func (f *flows) useLocked(id uint64) *flowUse {
	u := f.byID[id]
	if u == nil {
		u = &flowUse{}
		f.byID[id] = u
	}
	return u
}

// tidyLocked forgets what no REGISTER under way can need any more.
func (f *flows) tidyLocked(id uint64, u *flowUse) {
	if u.busy > 0 {
		return
	}
	u.users = slices.DeleteFunc(u.users, func(x flowUser) bool { return x.gone })
	if len(u.users) == 0 && !u.idle {
		delete(f.byID, id)
	}
}

// enter notes that a REGISTER came over a connection: it isn't idle. leave is for when it was answered.
func (f *flows) enter(flow registrar.Flow) {
	if !flow.Stream() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.useLocked(flow.ID)
	u.busy++
	u.idle = false
}

func (f *flows) leave(flow registrar.Flow) {
	if !flow.Stream() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.byID[flow.ID]; u != nil && u.busy > 0 {
		u.busy--
		f.tidyLocked(flow.ID, u)
	}
}

// note remembers that a user has a binding on a connection, by the record at that position.
func (f *flows) note(flow registrar.Flow, user registrar.AOR, at bus.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.useLocked(flow.ID).set(flowUser{user: user, at: at})
}

// close hands the users of a connection that closed to reap.
func (f *flows) close(flow registrar.Flow, at time.Time) {
	f.mu.Lock()
	var users []flowUser
	if u := f.byID[flow.ID]; u != nil {
		users = u.users
	}
	delete(f.byID, flow.ID)
	f.mu.Unlock()
	for _, u := range users {
		if u.gone {
			continue
		}
		f.pending.Add(1)
		select {
		case f.closed <- closedFlow{u.user, flow, at}:
		default:
			f.pending.Add(-1)
		}
	}
}

// boundOver notes what a REGISTER did to its flow, when it made or refreshed a binding.
func (f *FrontEnd) boundOver(flow registrar.Flow, user registrar.AOR, a answered) {
	if a.until == 0 {
		return
	}
	f.sip.Keep(flow, time.Unix(a.until, 0))
	if !flow.Stream() {
		return
	}
	f.flows.note(flow, user, a.at)
	if !f.sip.HasFlow(flow) { // it closed while its REGISTER was under way
		f.flows.close(flow, time.Now())
	}
}

// reap removes the bindings of closed connections until ctx ends.
func (f *FrontEnd) reap(ctx context.Context) error {
	g := errgroup.Group{}
	g.SetLimit(dropsAtOnce)
	defer g.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case c := <-f.flows.closed:
			if wait := time.Until(c.at.Add(f.cfg.FlowGrace)); wait > 0 {
				pause(ctx, wait) // all wait equally long, so the order is that of their ends
			}
			g.Go(func() error {
				defer f.flows.pending.Add(-1)
				f.dropFlow(ctx, c.user, c.flow) // what cannot be done in time stays until it expires
				return nil
			})
		}
	}
}

// dropFlow removes a user's bindings on a flow, wherever his primary is. False: it could not be done in time.
func (f *FrontEnd) dropFlow(ctx context.Context, user registrar.AOR, flow registrar.Flow) bool {
	ctx, cancel := context.WithTimeout(ctx, dropDeadline)
	defer cancel()
	u, ok := f.users.Lookup(user)
	if !ok {
		return true // removed meanwhile, with all he had
	}
	for {
		gate := f.gates.next(u.Group)
		switch primary := f.view.Load().copies(u.Group).Primary; primary {
		case "":
		case f.cfg.Name:
			if f.dropOwn(ctx, user, flow) {
				return true
			}
		default:
			data, err := cbor.Marshal(droppedFlow{User: user, Flow: flow})
			if err != nil {
				return false
			}
			if answer, err := f.bus.Request(ctx, string(primary), control.VerbFlowClosed, data); err == nil && len(answer) > 0 {
				return true
			}
		}
		if !f.await(ctx, gate) {
			return false
		}
	}
}

// dropOwn does it here. False: this Front End does not serve the group now.
func (f *FrontEnd) dropOwn(ctx context.Context, user registrar.AOR, flow registrar.Flow) bool {
	u, ok := f.users.Lookup(user)
	own := f.held()[u.Group]
	if !ok || own == nil || !own.ready.Load() {
		return false
	}
	endTurn, ok := f.turns.take(ctx, user)
	if !ok {
		return false
	}
	defer endTurn()
	_, err := f.change(ctx, own, user, func(cur registrar.Set, now time.Time) registrar.Decision {
		// By the connection, not the contact: what a reconnected client registered since is another flow.
		next, changes := cur.Drop(func(b registrar.Binding) bool {
			return b.Flow.FrontEnd == flow.FrontEnd && b.Flow.Boot == flow.Boot && b.Flow.ID == flow.ID && b.Flow.Stream()
		}, registrar.Deactivated, now)
		watched := watchedOver(cur.Subscriptions, flow)
		next = next.DropSubscriptions(func(s registrar.Subscription) bool { return sameConnection(s.Flow, flow) })
		return registrar.Decision{Next: next, Changes: changes, Write: len(changes) > 0 || watched, End: registrar.NoNotice}
	})
	return err == nil
}

// droppedFlow tells a primary that a user's connection closed elsewhere.
type droppedFlow struct {
	User registrar.AOR  `cbor:"1,keyasint"`
	Flow registrar.Flow `cbor:"2,keyasint"`
}

// flowClosedElsewhere answers another Front End's droppedFlow: with a byte when it is done, empty when it is not ours to do.
func (f *FrontEnd) flowClosedElsewhere(ctx context.Context, r bus.Request) {
	var d droppedFlow
	if err := cbor.Unmarshal(r.Data, &d); err != nil {
		f.log.Error("a closed flow was told in words that cannot be read", "err", err)
		return
	}
	f.atWork(r, func() []byte {
		ctx, cancel := context.WithTimeout(ctx, dropDeadline/4)
		defer cancel()
		if f.dropOwn(ctx, d.User, d.Flow) {
			return []byte{1}
		}
		return nil
	}, nil)
}
