// Package bus is what the Front Ends of a pool say to each other, as a small
// interface: tables of entries (settings, placement, members, users), the
// bindings log, pulses, requests to one Front End, and events.
//
// It decides nothing. There are two implementations, bus/natsbus (NATS and
// JetStream) and bus/membus (one process, for tests and the simulator), and one
// contract suite, bus/bustest, that both pass.
package bus

import (
	"context"
	"errors"
	"iter"
	"time"
)

// The errors that callers act on. Implementations wrap them with what was tried.
var (
	// ErrNotFound: there is no such entry or record.
	ErrNotFound = errors.New("not found")
	// ErrConflict: somebody else wrote since the revision or position given; read again and decide again.
	ErrConflict = errors.New("written by somebody else meanwhile")
	// ErrNobodyThere: the bus works, and no process serves this Front End's name.
	ErrNobodyThere = errors.New("nobody there")
	// ErrUnavailable: the bus is out of reach or has no quorum. Whether a write was stored is not known.
	ErrUnavailable = errors.New("bus unavailable")
)

// Revision of an entry; it only grows within a table. 0 means "no entry yet".
type Revision uint64

// Position of a record in the bindings log; it only grows. 0 is before the first record.
type Position uint64

// Bus is one process's connection to the pool's bus. All methods may be called
// from any goroutine. A lost connection is restored by the implementation for as
// long as the Bus is open; watches, follows and subscriptions survive it.
type Bus interface {
	// Pool is the table of what the pool itself must know: settings, placement, members.
	Pool() Table
	// Users is the table of provisioned users, keyed by AOR.
	Users() Table
	// Bindings is the log of binding sets.
	Bindings() Log
	Messages

	// Connected reports whether the bus can be reached just now. It says nothing of a quorum.
	Connected() bool
	// Close ends all watches, follows and subscriptions, and waits for their goroutines.
	Close() error
}

// Entry is one row of a Table. A deleted entry has a nil Value.
type Entry struct {
	Key      string // any UTF-8 string of 1 to 512 bytes; implementations encode it as they must
	Value    []byte
	Revision Revision
}

// Write is one row to store if its present revision is Expect (0: only if it does not exist).
type Write struct {
	Key    string
	Value  []byte // nil deletes
	Expect Revision
}

// Table is a set of entries with compare-and-swap and watch.
type Table interface {
	// Get returns an entry, or ErrNotFound.
	Get(ctx context.Context, key string) (Entry, error)
	// Put stores one write and returns its revision. Errors: ErrConflict, ErrUnavailable.
	Put(ctx context.Context, w Write) (Revision, error)
	// PutAll stores many writes, pipelined with a bounded number in flight, and
	// calls done for each one as its outcome is known, in any order, from one goroutine at a time.
	// It returns when all are done or ctx ends.
	PutAll(ctx context.Context, writes iter.Seq[Write], done func(w Write, r Revision, err error)) error
	// List returns all entries whose key starts with prefix, in no order.
	List(ctx context.Context, prefix string) ([]Entry, error)
	// Watch calls changed for every entry whose key starts with prefix as it stands, then
	// caughtUp once, then changed for each later change (only the newest of several is
	// certain), all in order from one goroutine, until ctx ends. It returns once the watch is
	// set up; it goes on by itself after the bus was lost. An entry may be delivered again;
	// the receiver compares revisions. The callbacks must not block on the bus.
	Watch(ctx context.Context, prefix string, changed func(Entry), caughtUp func()) error
}

// Record is the binding set of one user as it stands in the log.
type Record struct {
	Group    string // the user's routing group
	User     string // the user's AOR
	Position Position
	Data     []byte // encoded by the registrar package
}

// Log holds the newest record of each user. A record is acknowledged only when
// the bus has stored it (by a quorum, when there are several servers).
type Log interface {
	// Append stores r.Data for r.User if the newest record of the user is at r.Position
	// (0: there is none) and returns the new position. The record vanishes by itself after
	// ttl (whole seconds, at least 1 s; 0 = never). Errors: ErrConflict; ErrUnavailable, and
	// then the outcome is unknown until Last is read.
	Append(ctx context.Context, r Record, ttl time.Duration) (Position, error)
	// AppendThen is Append for one who does not wait: then is called once, with what Append would
	// have returned, from any goroutine and perhaps before AppendThen returns. It must not block.
	AppendThen(r Record, ttl time.Duration, then func(Position, error))
	// Last returns the newest record of one user, or ErrNotFound. It is read from the
	// store's leader: it sees every acknowledged append.
	Last(ctx context.Context, group, user string) (Record, error)
	// Head returns the position of the newest record of a group, 0 if it has none.
	// It is read from the store's leader, like Last.
	Head(ctx context.Context, group string) (Position, error)
	// Follow calls fn for the newest record of each user of these groups that stands
	// after the given position, then for each new one, in order of position, from one goroutine, until
	// ctx ends. It returns once the follow is set up. fn must not block on the bus.
	// A record that vanished by its ttl is not reported. A record may be delivered again after
	// the bus was lost; the receiver compares positions.
	Follow(ctx context.Context, groups []string, after Position, fn func(Record)) error
}

// Request is a request from another process, to be answered once.
type Request struct {
	Data []byte
	// Respond sends the answer. It may be called later and from any goroutine.
	Respond func(data []byte) error
}

// Messages are not stored: who is not there does not hear them.
type Messages interface {
	// Pulse tells all others that this Front End lives.
	Pulse(frontEnd string, data []byte) error
	// Pulses calls fn for each pulse, one's own included, from one goroutine, until ctx ends.
	Pulses(ctx context.Context, fn func(frontEnd string, data []byte)) error

	// Request asks the process that serves verb for this Front End and waits for its answer
	// until ctx ends. Errors: ErrNobodyThere (at once), ErrUnavailable, ctx.Err().
	Request(ctx context.Context, frontEnd, verb string, data []byte) ([]byte, error)
	// Serve answers the requests for verb to this Front End until ctx ends. fn is called
	// from one goroutine and must not block: long work answers through Respond later.
	Serve(ctx context.Context, frontEnd, verb string, fn func(Request)) error

	// Emit publishes an event: kind is its type (a word), data a JSON object.
	Emit(kind string, data []byte) error
	// Events calls fn for each event, or each of these kinds, from one goroutine until ctx ends. A
	// receiver that is too slow loses events (bounded queue, oldest kept); it never slows the pool.
	Events(ctx context.Context, fn func(kind string, data []byte), kinds ...string) error
	// Heard reports whether somebody may be listening to events of this kind: if not, none need be
	// made. It is true once Events has returned, anywhere.
	Heard(kind string) bool
}
