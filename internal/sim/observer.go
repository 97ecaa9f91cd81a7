package sim

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"rollcall/bus"
	"rollcall/bus/membus"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/routing"
)

// observer follows everything that the pool stores, without delay, and judges it as it comes.
type observer struct {
	pool *Pool
	conn *membus.Conn
	stop context.CancelFunc

	mu        sync.Mutex // guards the following
	placement routing.Placement
	sets      map[registrar.AOR]registrar.Set
	position  bus.Position
	records   int
	seen      map[routing.FrontEnd]routing.Epoch // the newest placement that each one acted on
	claims    map[claim]routing.FrontEnd         // who said that it serves a group, by epoch
}

type claim struct {
	epoch routing.Epoch
	group routing.Group
}

func newObserver(p *Pool) *observer {
	o := &observer{pool: p, conn: p.bus.Connect(admin), sets: map[registrar.AOR]registrar.Set{},
		seen: map[routing.FrontEnd]routing.Epoch{}, claims: map[claim]routing.FrontEnd{}}
	p.model.now = o.set
	ctx, stop := context.WithCancel(context.Background())
	o.stop = stop
	groups := make([]string, 0, p.cfg.Groups)
	for _, g := range routing.GroupNames(p.cfg.Groups) {
		groups = append(groups, string(g))
	}
	for what, err := range map[string]error{
		"watch the pool":  o.conn.Pool().Watch(ctx, control.PlacementKey, o.placed, func() {}),
		"follow the log":  o.conn.Bindings().Follow(ctx, groups, 0, o.stored),
		"hear the events": o.conn.Events(ctx, o.happened),
	} {
		if err != nil {
			p.t.Fatalf("%s: %v", what, err)
		}
	}
	return o
}

func (o *observer) close() {
	o.stop()
	o.conn.Close()
}

func (o *observer) set(aor registrar.AOR) (registrar.Set, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, ok := o.sets[aor]
	return s, ok
}

func (o *observer) current() routing.Placement {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.placement
}

func (o *observer) recordCount() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.records
}

// stored judges a record as it is stored.
func (o *observer) stored(r bus.Record) {
	aor := registrar.AOR(r.User)
	set, err := registrar.DecodeSet(r.Data)
	if err != nil {
		o.pool.fail("the record of %s at %d cannot be read: %v", aor, r.Position, err)
		return
	}
	o.mu.Lock()
	if r.Position <= o.position {
		o.mu.Unlock()
		return // again, after the bus was lost
	}
	o.position, o.sets[aor] = r.Position, set
	o.records++
	o.mu.Unlock()
	o.pool.model.check("a new record", aor, set)
}

// placed judges a placement: its epoch grows, its form holds, and no live primary
// moved because somebody else failed or returned (rule 2 of routing).
func (o *observer) placed(e bus.Entry) {
	if e.Key != control.PlacementKey || e.Value == nil {
		return
	}
	next, err := routing.Decode(e.Value)
	if err != nil {
		o.pool.fail("the placement at revision %d cannot be read: %v", e.Revision, err)
		return
	}
	next.Epoch = routing.Epoch(e.Revision)
	o.mu.Lock()
	last := o.placement
	if next.Epoch > last.Epoch {
		o.placement = next
	}
	o.mu.Unlock()
	if next.Epoch <= last.Epoch {
		return
	}
	o.pool.note("placement %d: %s", next.Epoch, describe(next))
	if err := next.Check(); err != nil {
		o.pool.fail("epoch %d: %v", next.Epoch, err)
	}
	for g, c := range last.Groups {
		was, is := last.Members[c.Primary], next.Members[c.Primary]
		if c.Primary != "" && was.State == routing.Up && is.State == routing.Up && was.Boot == is.Boot && next.Groups[g].Primary != c.Primary {
			o.pool.fail("epoch %d: the primary of %s moved from %s, which lives, to %s", next.Epoch, g, c.Primary, next.Groups[g].Primary)
		}
	}
}

// describe is a placement in one line.
func describe(p routing.Placement) (line string) {
	for _, fe := range p.SortedMembers() {
		one, two, three := p.GroupsOf(fe)
		line += " " + string(fe) + "(" + p.Members[fe].Boot + ")=" + string(p.Members[fe].State)
		if len(one)+len(two)+len(three) > 0 {
			line += " " + counts(len(one), len(two), len(three))
		}
	}
	return line
}

// happened judges what the Front Ends say of themselves: the epoch that one acts on never falls.
func (o *observer) happened(kind string, data []byte) {
	if kind != control.EventPlacement {
		return
	}
	var e control.Event
	if err := json.Unmarshal(data, &e); err != nil {
		o.pool.fail("an event cannot be read: %v", err)
		return
	}
	if e.Phase != "seen" {
		return
	}
	o.mu.Lock()
	last := o.seen[e.FrontEnd]
	o.seen[e.FrontEnd] = e.Epoch
	o.mu.Unlock()
	if e.Epoch < last {
		o.pool.fail("%s acted on epoch %d after %d", e.FrontEnd, e.Epoch, last)
	}
}

// claimed judges one Front End's status: in one epoch a group is served by one.
func (o *observer) claimed(s control.FrontEndStatus) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for g, n := range s.Groups {
		if !n.Ready {
			continue
		}
		c := claim{s.Epoch, g}
		if other, ok := o.claims[c]; ok && other != s.Name {
			o.pool.fail("%s and %s both serve %s in epoch %d", other, s.Name, g, s.Epoch)
		}
		o.claims[c] = s.Name
	}
}

// status asks a Front End for its status.
func (o *observer) status(fe routing.FrontEnd) (control.FrontEndStatus, error) {
	var s control.FrontEndStatus
	err := o.ask(fe, control.VerbStatus, nil, &s)
	if err == nil {
		o.claimed(s)
	}
	return s, err
}

// askTimeout is virtual: nobody needs it who can be reached.
const askTimeout = 100 * time.Millisecond

func (o *observer) ask(fe routing.FrontEnd, verb string, data []byte, into any) error {
	ctx, cancel := context.WithTimeout(o.pool.ctx, askTimeout)
	defer cancel()
	answer, err := o.conn.Request(ctx, string(fe), verb, data)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, into)
}
