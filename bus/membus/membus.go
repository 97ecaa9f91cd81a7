// Package membus is the pool's bus within one process, for tests and the
// simulator. It keeps what NATS keeps, loses what NATS loses, and can be told to
// fail: one connection, the quorum, or the whole bus.
//
// It runs inside a testing/synctest bubble: nothing waits while it holds a lock,
// time is the plain time package, and every goroutine belongs to a Conn and ends
// with it. Byte slices that it hands out are shared: don't write to them.
package membus

import (
	"sync"
	"time"
)

// Store is the name of the bus itself, as one end of a latency.
const Store = "bus"

// Options of a Bus. The zero value is a bus without delays and faults. The
// functions are called from any goroutine and must not block.
type Options struct {
	// Latency is how long what one sends takes to reach the other. Both are names of
	// connections, or Store. For a run that repeats, it must not draw random numbers.
	Latency func(from, to string) time.Duration
	// StoreTimeout ends an operation on a table or the log while there is no quorum,
	// if its context doesn't end before; 5 s if 0.
	StoreTimeout time.Duration
	// LoseAck reports whether the acknowledgement of this write is lost: it is stored, and
	// the writer gets ErrUnavailable. Key is the user of an append or the key of an entry.
	LoseAck func(conn, key string) bool
}

// Bus is the server: what is stored, and who is connected.
type Bus struct {
	opts Options

	mu         sync.Mutex
	stopped    bool
	quorumBack chan struct{} // nil while there is a quorum; closed when it is back
	pool       *table
	users      *table
	log        *log
	conns      []*Conn // in the order they came, so that a run repeats
}

// New returns a running bus with nothing stored.
func New(opts Options) *Bus {
	if opts.StoreTimeout <= 0 {
		opts.StoreTimeout = 5 * time.Second
	}
	return &Bus{
		opts:  opts,
		pool:  newTable(),
		users: newTable(),
		log:   newLog(),
	}
}

// Connect returns a new connection of the process of that name. Several may have
// the same name, as when a process is started again.
func (b *Bus) Connect(name string) *Conn {
	c := &Conn{
		bus:  b,
		name: name,
		gone: make(chan struct{}),
		down: make(chan struct{}),
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns = append(b.conns, c)
	c.relinkLocked()
	return c
}

// Stop takes the whole bus away: every connection is lost. What is stored stays.
func (b *Bus) Stop() { b.setStopped(true) }

// Start brings the bus back, and with it every connection that isn't cut.
func (b *Bus) Start() { b.setStopped(false) }

func (b *Bus) setStopped(stopped bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = stopped
	for _, c := range b.conns {
		c.relinkLocked()
	}
}

// SetQuorum says whether the bus can store and read what is stored. Without a
// quorum, connections stay and messages pass.
func (b *Bus) SetQuorum(has bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case has && b.quorumBack != nil:
		close(b.quorumBack)
		b.quorumBack = nil
	case !has && b.quorumBack == nil:
		b.quorumBack = make(chan struct{})
	}
}

func (b *Bus) latency(from, to string) time.Duration {
	if b.opts.Latency == nil {
		return 0
	}
	return max(0, b.opts.Latency(from, to))
}

func (b *Bus) losesAck(conn, key string) bool {
	return b.opts.LoseAck != nil && b.opts.LoseAck(conn, key)
}
