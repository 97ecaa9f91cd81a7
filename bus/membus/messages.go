package membus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rollcall/bus"
)

// queueMax bounds each queue of messages. When it is full, the newest is lost.
const queueMax = 4096

// topic is what a message is about: a pulse, an event, or a request to one Front End.
type topic struct{ kind, frontEnd, verb string }

func pulses() topic                        { return topic{kind: "pulse"} }
func events() topic                        { return topic{kind: "event"} }
func requests(frontEnd, verb string) topic { return topic{"request", frontEnd, verb} }

// message is on its way to one mailbox until due.
type message struct {
	due  time.Time
	name string // of a pulse's Front End, or an event's kind
	data []byte
	// reply takes the answer to a request; nil for others.
	reply chan<- answer
	from  *Conn
}

// answer is on its way to who asked until due.
type answer struct {
	due  time.Time
	data []byte
}

// mailbox receives messages; all but the constant fields are guarded by bus.mu.
type mailbox struct {
	conn   *Conn
	ctx    context.Context
	topic  topic
	notify chan struct{} // of size 1
	fn     func(message)

	queue []message            // by due
	last  map[string]time.Time // due of the newest message of each sender, to keep its order
}

func (m *mailbox) wake() {
	select {
	case m.notify <- struct{}{}:
	default:
	}
}

func (m *mailbox) lostLocked() { m.queue = nil }

func (m *mailbox) run() {
	for {
		msg, ok, wait := m.next()
		if ok {
			m.fn(msg)
		} else if !idle(m.ctx, m.conn.gone, m.notify, wait) {
			return
		}
		if m.ctx.Err() != nil {
			return
		}
	}
}

// next takes the first message that has arrived, or says how long to wait for it (0: until woken).
func (m *mailbox) next() (msg message, ok bool, wait time.Duration) {
	m.conn.bus.mu.Lock()
	defer m.conn.bus.mu.Unlock()
	if len(m.queue) == 0 {
		return message{}, false, 0
	}
	if early := time.Until(m.queue[0].due); early > 0 {
		return message{}, false, early
	}
	msg = m.queue[0]
	m.queue = slices.Delete(m.queue, 0, 1)
	return msg, true, 0
}

func (m *mailbox) addLocked(msg message) {
	if len(m.queue) >= queueMax {
		return
	}
	if last := m.last[msg.from.name]; msg.due.Before(last) {
		msg.due = last
	}
	m.last[msg.from.name] = msg.due
	at := len(m.queue)
	for at > 0 && msg.due.Before(m.queue[at-1].due) {
		at--
	}
	m.queue = slices.Insert(m.queue, at, msg)
	m.wake()
}

// send puts msg into every mailbox of this topic and returns how many there are.
func (c *Conn) send(to topic, msg message) (int, error) {
	b := c.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if !c.connectedLocked() {
		return 0, c.unreachable()
	}
	msg.from, msg.data = c, clone(msg.data)
	now, n := time.Now(), 0
	for _, other := range b.conns {
		if !other.connectedLocked() {
			continue
		}
		for _, s := range other.subs {
			if m, ok := s.(*mailbox); ok && m.topic == to && m.ctx.Err() == nil {
				msg.due = now.Add(b.latency(c.name, other.name))
				m.addLocked(msg)
				n++
			}
		}
	}
	return n, nil
}

func (c *Conn) receive(ctx context.Context, t topic, fn func(message)) error {
	m := &mailbox{conn: c, ctx: ctx, topic: t, notify: make(chan struct{}, 1), fn: fn, last: make(map[string]time.Time)}
	return c.start(m, m.run)
}

// Pulse implements bus.Messages.
func (c *Conn) Pulse(frontEnd string, data []byte) error {
	_, err := c.send(pulses(), message{name: frontEnd, data: data})
	return err
}

// Pulses implements bus.Messages.
func (c *Conn) Pulses(ctx context.Context, fn func(frontEnd string, data []byte)) error {
	return c.receive(ctx, pulses(), func(m message) { fn(m.name, m.data) })
}

// Emit implements bus.Messages.
func (c *Conn) Emit(kind string, data []byte) error {
	_, err := c.send(events(), message{name: kind, data: data})
	return err
}

// Events implements bus.Messages.
func (c *Conn) Events(ctx context.Context, fn func(kind string, data []byte), kinds ...string) error {
	return c.receive(ctx, events(), func(m message) {
		if len(kinds) == 0 || slices.Contains(kinds, m.name) {
			fn(m.name, m.data)
		}
	})
}

// Heard implements bus.Messages. Who listens in vain costs nothing here.
func (c *Conn) Heard(string) bool { return true }

// Request implements bus.Messages.
func (c *Conn) Request(ctx context.Context, frontEnd, verb string, data []byte) ([]byte, error) {
	down, err := c.link()
	if err != nil {
		return nil, fmt.Errorf("ask %s to %s: %w", frontEnd, verb, err)
	}
	reply := make(chan answer, 1)
	n, err := c.send(requests(frontEnd, verb), message{data: data, reply: reply})
	if err != nil {
		return nil, fmt.Errorf("ask %s to %s: %w", frontEnd, verb, err)
	}
	if n == 0 {
		roundTrip := c.bus.latency(c.name, Store) + c.bus.latency(Store, c.name)
		if err := c.await(ctx, down, roundTrip); err != nil {
			return nil, fmt.Errorf("ask %s to %s: %w", frontEnd, verb, err)
		}
		return nil, fmt.Errorf("ask %s to %s: %w", frontEnd, verb, bus.ErrNobodyThere)
	}
	select {
	case a := <-reply:
		if err := c.await(ctx, down, time.Until(a.due)); err != nil {
			return nil, fmt.Errorf("ask %s to %s: %w", frontEnd, verb, err)
		}
		return a.data, nil
	case <-down:
		return nil, fmt.Errorf("ask %s to %s: %w", frontEnd, verb, c.unreachable())
	case <-ctx.Done():
		return nil, fmt.Errorf("ask %s to %s: %w", frontEnd, verb, ctx.Err())
	}
}

// await is travel for messages: the end of ctx is no failure of the bus.
func (c *Conn) await(ctx context.Context, down <-chan struct{}, d time.Duration) error {
	err := c.travel(ctx, down, d)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// Serve implements bus.Messages.
func (c *Conn) Serve(ctx context.Context, frontEnd, verb string, fn func(bus.Request)) error {
	return c.receive(ctx, requests(frontEnd, verb), func(m message) {
		fn(bus.Request{Data: m.data, Respond: func(data []byte) error { return c.respond(m, data) }})
	})
}

// errAnswered: only the first answer counts.
var errAnswered = errors.New("request is answered already")

func (c *Conn) respond(m message, data []byte) error {
	if !c.Connected() {
		return fmt.Errorf("respond: %w", c.unreachable())
	}
	a := answer{due: time.Now().Add(c.bus.latency(c.name, m.from.name)), data: clone(data)}
	select {
	case m.reply <- a:
		return nil
	default:
		return errAnswered
	}
}
