package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"rollcall/bus"
)

// inFlightMax bounds the requests and writes of one connection that wait for their
// answer; what is above fails with ErrUnavailable.
const inFlightMax = 1 << 15

// errNoResponders: nobody subscribes to the subject. The message was certainly not taken.
var errNoResponders = errors.New("no responders")

// mux sends messages that are answered, over one subscription. Unlike nats.go's own
// requests, what waits for an answer fails as soon as the connection is lost.
type mux struct {
	nc      *nats.Conn
	prefix  string
	answers chan *nats.Msg
	stop    chan struct{}
	stopped chan struct{}

	mu      sync.Mutex
	last    uint64
	waiting map[string]*call
}

// call is one message that waits for its answer, which is nil when the connection was lost.
type call struct {
	token  string
	answer chan *nats.Msg // of size 1, for one who waits; or
	then   func(*nats.Msg)
	since  time.Time // of a call with then, which counts as lost after storeTimeout
}

func (c *call) finish(msg *nats.Msg) {
	if c.then != nil {
		c.then(msg)
		return
	}
	c.answer <- msg
}

func newMux(nc *nats.Conn) (*mux, error) {
	m := &mux{
		nc:     nc,
		prefix: nats.NewInbox() + ".",
		// Larger than what can be in flight, so that no answer is dropped.
		answers: make(chan *nats.Msg, 2*inFlightMax),
		stop:    make(chan struct{}),
		stopped: make(chan struct{}),
		waiting: make(map[string]*call),
	}
	if _, err := nc.ChanSubscribe(m.prefix+"*", m.answers); err != nil {
		return nil, fmt.Errorf("subscribe to answers: %w", err)
	}
	go m.run()
	return m, nil
}

func (m *mux) run() {
	defer close(m.stopped)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case msg := <-m.answers:
			if c := m.take(msg.Subject[len(m.prefix):]); c != nil {
				c.finish(msg)
			}
		case now := <-tick.C:
			m.fail(func(c *call) bool { return c.then != nil && now.Sub(c.since) > storeTimeout })
		case <-m.stop:
			return
		}
	}
}

func (m *mux) take(token string) *call {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.waiting[token]
	delete(m.waiting, token)
	return c
}

// failAll ends all that waits: the answers of a lost connection don't come.
func (m *mux) failAll() { m.fail(func(*call) bool { return true }) }

func (m *mux) fail(which func(*call) bool) {
	var lost []*call
	m.mu.Lock()
	for token, c := range m.waiting {
		if which(c) {
			lost = append(lost, c)
			delete(m.waiting, token)
		}
	}
	m.mu.Unlock()
	for _, c := range lost {
		c.finish(nil)
	}
}

func (m *mux) close() {
	close(m.stop)
	<-m.stopped
	m.failAll()
}

// send sends msg, whose Reply it sets. Without a connection it fails at once.
func (m *mux) send(msg *nats.Msg) (*call, error) {
	c := &call{answer: make(chan *nats.Msg, 1)}
	return c, m.sendFor(c, msg)
}

// sendThen is send for one who does not wait. then is called, unless sendThen fails, and must not block.
func (m *mux) sendThen(msg *nats.Msg, then func(*nats.Msg)) error {
	return m.sendFor(&call{then: then, since: time.Now()}, msg)
}

func (m *mux) sendFor(c *call, msg *nats.Msg) error {
	m.mu.Lock()
	if len(m.waiting) >= inFlightMax {
		m.mu.Unlock()
		return fmt.Errorf("%d messages wait for their answer already: %w", inFlightMax, bus.ErrUnavailable)
	}
	m.last++
	c.token = strconv.FormatUint(m.last, 36)
	m.waiting[c.token] = c
	m.mu.Unlock()

	msg.Reply = m.prefix + c.token
	if err := m.nc.PublishMsg(msg); err != nil {
		if m.take(c.token) != nil {
			return unsent(err)
		}
		// The connection was lost meanwhile, and c has been told.
	}
	return nil
}

// wait returns the answer, or errNoResponders, ErrUnavailable, ctx.Err().
func (m *mux) wait(ctx context.Context, c *call) (*nats.Msg, error) {
	select {
	case msg := <-c.answer:
		return msg, answerError(msg)
	case <-ctx.Done():
		m.take(c.token)
		return nil, ctx.Err()
	}
}

func answerError(msg *nats.Msg) error {
	switch {
	case msg == nil:
		return fmt.Errorf("connection lost while waiting for the answer: %w", bus.ErrUnavailable)
	case len(msg.Data) == 0 && msg.Header.Get("Status") == "503":
		return errNoResponders
	}
	return nil
}

func (m *mux) ask(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c, err := m.send(msg)
	if err != nil {
		return nil, err
	}
	return m.wait(ctx, c)
}
