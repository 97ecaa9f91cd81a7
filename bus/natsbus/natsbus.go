// Package natsbus is the pool's bus on NATS and JetStream. It carries; it decides nothing.
//
// Tables are key-value buckets, the bindings log is one stream with one subject per
// user. What is stored is read back from the stream's leader. Beside the connection for
// all of this there is a second one for signs of life, so that a pulse or a ping
// doesn't queue behind a burst of bindings.
//
// The package also runs an embedded server (StartServer).
package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"rollcall/bus"
)

// DefaultNamespace is the prefix of a pool's streams, buckets and subjects.
const DefaultNamespace = "rollcall"

// VerbLive is the verb whose requests travel on the connection for signs of life.
const VerbLive = "ping"

// storeTimeout ends an operation on a table or the log whose context has no deadline.
const storeTimeout = 5 * time.Second

// Options say which bus to reach, and as whom.
type Options struct {
	URLs      []string
	Name      string // of the connection, for people who look at the server
	Namespace string // pools with different ones share a server; DefaultNamespace if empty
	Replicas  int    // of each stream: 1 (also if 0), 3 or 5

	CredsFile string
	User      string
	Password  string
	Token     string
	TLS       TLS

	Log *slog.Logger // nil: silent
}

// TLS names PEM files. With all empty, TLS is used if a URL or the server asks for it.
type TLS struct {
	CAFile   string
	CertFile string
	KeyFile  string
}

// Bus is one process's connection to the pool's bus; it implements bus.Bus.
type Bus struct {
	opts  Options
	log   *slog.Logger
	store *link // tables, log, requests, events
	live  *link // pulses and pings
	js    jetstream.JetStream
	names names

	listeners listeners

	life       context.Context // ends with Close
	end        context.CancelFunc
	goroutines sync.WaitGroup // of watches, follows and subscriptions

	mu     sync.Mutex
	closed bool
}

var _ bus.Bus = (*Bus)(nil)

// Open connects to the bus and makes the pool's streams if they are missing. It waits
// for the bus until ctx ends. Any number of processes may do so at once.
func Open(ctx context.Context, opts Options) (*Bus, error) {
	if err := opts.complete(); err != nil {
		return nil, err
	}
	b := &Bus{opts: opts, log: opts.Log, names: names{opts.Namespace}}
	b.life, b.end = context.WithCancel(context.Background())
	if err := b.open(ctx); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bus) open(ctx context.Context) (err error) {
	if b.store, err = connect(ctx, b.opts, "", b.log); err != nil {
		return err
	}
	// The log tells of the loss of the bus once, not once per connection.
	if b.live, err = connect(ctx, b.opts, " life", slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if b.js, err = jetstream.New(b.store.nc, jetstream.WithDefaultTimeout(storeTimeout)); err != nil {
		return err
	}
	return b.ensureStreams(ctx)
}

func (o *Options) complete() error {
	if len(o.URLs) == 0 {
		return errors.New("no address of a bus given: at least one NATS URL is needed")
	}
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(o.Namespace) {
		return fmt.Errorf("namespace %q of the bus: use 1 to 64 letters, digits, - and _", o.Namespace)
	}
	if o.Replicas == 0 {
		o.Replicas = 1
	}
	if o.Replicas < 1 || o.Replicas > 5 {
		return fmt.Errorf("%d replicas on the bus: 1, 3 or 5 are possible", o.Replicas)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Connected implements bus.Bus.
func (b *Bus) Connected() bool { return b.store.connected() && b.live.connected() }

// Close implements bus.Bus. Don't call it from a callback: it waits for them.
func (b *Bus) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end()
	b.goroutines.Wait()
	for _, l := range []*link{b.store, b.live} {
		if l != nil {
			l.close()
		}
	}
	return nil
}

// start runs fn in a goroutine that Close waits for, with a context that ends with ctx or Close.
func (b *Bus) start(ctx context.Context, fn func(ctx context.Context)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fmt.Errorf("bus is closed: %w", bus.ErrUnavailable)
	}
	b.goroutines.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(b.life, cancel)()
		fn(ctx)
	})
	return nil
}

// bounded returns ctx with a deadline.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, storeTimeout)
}
