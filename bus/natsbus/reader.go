package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	readAhead      = 4000 // messages a consumer may send at once
	heartbeat      = time.Second
	consumerIdle   = 30 * time.Second // the server forgets an abandoned consumer after that
	pullExpires    = 20 * time.Second
	reopenMax      = time.Second
	consumerGoodby = time.Second
)

// reader is a watch or a follow: a consumer that lives in the server's memory, made
// anew from the position reached whenever it, its server, or the connection is lost.
// All our streams keep one message per subject, so "what stands after a position" is
// what the stream has after it.
//
// It pulls: each pull waits for a message, takes all that are there by then, and ends. With
// a pause between pulls messages come in bunches, which costs both sides a fraction of
// waking up for each.
type reader struct {
	bus      *Bus
	stream   string
	filters  []string
	pos      uint64        // of the newest message delivered
	pause    time.Duration // between two pulls, so how much later than at once a message may come
	deliver  func(m *nats.Msg, seq uint64)
	caughtUp func() // called once; may be nil

	consumer string
	inbox    *nats.Subscription
	messages chan *nats.Msg
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
		r.stop()
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
	// A pull brings readAhead messages at most, and few words about itself.
	r.messages = make(chan *nats.Msg, readAhead+64)
	r.inbox, err = r.bus.store.nc.ChanSubscribe(nats.NewInbox(), r.messages)
	return err
}

// stop ends the subscription; that fails only when the connection is closed, and then it has ended.
func (r *reader) stop() { _ = r.inbox.Unsubscribe() }

func (r *reader) run(ctx context.Context) {
	for {
		err := r.read(ctx)
		r.stop()
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

var (
	errGap    = errors.New("a message is missing")
	errSilent = errors.New("the consumer is silent")
)

// read pulls and delivers until ctx ends or the consumer fails.
func (r *reader) read(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.session, cancel)()
	if r.behind == 0 {
		r.reportCaughtUp()
	}
	pull := &nats.Msg{
		Subject: "$JS.API.CONSUMER.MSG.NEXT." + r.stream + "." + r.consumer, Reply: r.inbox.Subject,
		Data: fmt.Appendf(nil, `{"batch":%d,"expires":%d,"no_wait":true,"idle_heartbeat":%d}`, readAhead, pullExpires, heartbeat),
	}
	timer := time.NewTimer(r.pause)
	defer timer.Stop()
	for expect := uint64(1); ; {
		if err := r.bus.store.nc.PublishMsg(pull); err != nil {
			return err
		}
		got, err := r.takePull(ctx, timer, expect)
		if err != nil {
			return err
		}
		expect += got
		if r.pause == 0 || got == readAhead { // more is there already
			continue
		}
		timer.Reset(r.pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// takePull delivers what one pull brings, and returns how many messages those were.
func (r *reader) takePull(ctx context.Context, silence *time.Timer, expect uint64) (got uint64, err error) {
	silence.Reset(3 * heartbeat)
	for got < readAhead {
		select {
		case m := <-r.messages:
			if ctx.Err() != nil {
				return got, ctx.Err()
			}
			if len(m.Data) == 0 && m.Header != nil && m.Header.Get("Status") != "" {
				ended, err := pullEnded(m.Header)
				if ended || err != nil {
					return got, err
				}
				silence.Reset(3 * heartbeat)
				continue
			}
			if err := r.take(m, expect+got); err != nil {
				return got, err
			}
			got++
		case <-silence.C:
			return got, errSilent
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
	return got, nil
}

// take delivers one message if it is the consumer's next one.
func (r *reader) take(m *nats.Msg, expect uint64) error {
	d, err := parseDelivery(m.Reply)
	if err != nil {
		return err
	}
	if d.consumer != expect {
		return fmt.Errorf("%w: got %d, not %d", errGap, d.consumer, expect)
	}
	r.pos = d.stream
	r.deliver(m, d.stream)
	// What is replaced while we read is not delivered at its old place, but at the end.
	if expect >= r.behind || d.pending == 0 {
		r.reportCaughtUp()
	}
	return nil
}

// pullEnded reads what the server says of a pull.
func pullEnded(status nats.Header) (ended bool, err error) {
	switch code := status.Get("Status"); code {
	case "100": // it waits still
		return false, nil
	case "404", "408": // all that was there is delivered; nothing came in time
		return true, nil
	default:
		return true, fmt.Errorf("the consumer says %s %s", code, status.Get("Description"))
	}
}

// delivery is what a consumer says of a message in its reply subject.
type delivery struct {
	stream, consumer uint64 // sequences
	pending          uint64 // messages behind it
}

// parseDelivery reads $JS.ACK.(stream).(consumer).(times).(stream seq).(consumer seq).(time).(pending),
// or the longer form with domain and account behind $JS.ACK, which may have one more token at its end.
func parseDelivery(reply string) (d delivery, err error) {
	rest, ok := strings.CutPrefix(reply, "$JS.ACK.")
	skip := 3
	if n := strings.Count(rest, "."); n != 6 {
		ok, skip = ok && n >= 8, 5
	}
	for range skip {
		_, rest, _ = strings.Cut(rest, ".")
	}
	for _, n := range [...]*uint64{&d.stream, &d.consumer, nil, &d.pending} {
		var token string
		token, rest, _ = strings.Cut(rest, ".")
		if n == nil || !ok {
			continue
		}
		if *n, err = strconv.ParseUint(token, 10, 64); err != nil {
			ok = false
		}
	}
	if !ok {
		return delivery{}, fmt.Errorf("%q is not the reply subject of a stored message", reply)
	}
	return d, nil
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
