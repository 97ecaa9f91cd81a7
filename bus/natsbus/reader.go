package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	readAhead      = 4000 // messages a consumer may send ahead
	heartbeat      = time.Second
	consumerIdle   = 30 * time.Second // the server forgets an abandoned consumer after that
	reopenMax      = time.Second
	consumerGoodby = time.Second
)

// reader is a watch or a follow: a consumer that lives in the server's memory, made
// anew from the position reached whenever it, its server, or the connection is lost.
// All our streams keep one message per subject, so "what stands after a position" is
// what the stream has after it.
type reader struct {
	bus      *Bus
	stream   string
	filters  []string
	pos      uint64 // of the newest message delivered
	deliver  func(m jetstream.Msg, seq uint64)
	caughtUp func() // called once; may be nil

	consumer string
	messages jetstream.MessagesContext
	session  context.Context // of the connection that the consumer was made on
	behind   uint64          // messages to deliver until caughtUp
	reopened bool            // this isn't the first consumer
}

// start sets the reader up and lets it run until ctx ends.
func (r *reader) start(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return storeError(err)
	}
	err := r.bus.start(ctx, r.run)
	if err != nil {
		r.messages.Stop()
	}
	return err
}

func (r *reader) open(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	r.session = r.bus.store.thisSession()
	cfg := jetstream.ConsumerConfig{
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       r.pos + 1,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: consumerIdle,
		Replicas:          1,
		MemoryStorage:     true,
	}
	if len(r.filters) == 1 {
		cfg.FilterSubject = r.filters[0]
	} else {
		cfg.FilterSubjects = r.filters
	}
	consumer, err := r.bus.js.CreateConsumer(ctx, r.stream, cfg)
	if err != nil {
		return err
	}
	r.consumer = consumer.CachedInfo().Name
	r.behind = consumer.CachedInfo().NumPending
	r.messages, err = consumer.Messages(jetstream.PullMaxMessages(readAhead), jetstream.PullHeartbeat(heartbeat))
	return err
}

func (r *reader) run(ctx context.Context) {
	for {
		err := r.read(ctx)
		r.messages.Stop()
		if ctx.Err() != nil {
			r.forget()
			return
		}
		r.bus.log.Debug("bus reader starts again", "stream", r.stream, "after", r.pos, "reason", err)
		r.reopened = true
		if !r.reopen(ctx) {
			return
		}
	}
}

var errGap = errors.New("a message is missing")

// read delivers until ctx ends or the consumer fails.
func (r *reader) read(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.session, cancel)()
	if r.behind == 0 {
		r.reportCaughtUp()
	}
	for expect := uint64(1); ; expect++ {
		m, err := r.messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != expect {
			return fmt.Errorf("%w: got %d, not %d", errGap, meta.Sequence.Consumer, expect)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r.pos = meta.Sequence.Stream
		r.deliver(m, r.pos)
		// What is replaced while we read is not delivered at its old place, but at the end.
		if expect >= r.behind || meta.NumPending == 0 {
			r.reportCaughtUp()
		}
	}
}

func (r *reader) reportCaughtUp() {
	if r.caughtUp != nil {
		r.caughtUp()
		r.caughtUp = nil
	}
}

// reopen makes a new consumer, trying until ctx ends.
func (r *reader) reopen(ctx context.Context) bool {
	for wait := redialMin; ; wait = min(2*wait, reopenMax) {
		if r.tryOpen(ctx) == nil {
			return true
		}
		again := r.bus.store.thisSession()
		if again != r.session {
			continue // the connection is back: now
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-again.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// tryOpen gives up soon: while the stream has no leader, nobody answers.
func (r *reader) tryOpen(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reopenMax)
	defer cancel()
	return r.open(ctx)
}

// forget spares the server an abandoned consumer; if it fails, consumerIdle does it.
func (r *reader) forget() {
	if !r.bus.store.connected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), consumerGoodby)
	defer cancel()
	_ = r.bus.js.DeleteConsumer(ctx, r.stream, r.consumer)
}
