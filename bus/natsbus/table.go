package natsbus

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"rollcall/bus"
)

// putsInFlight bounds PutAll.
const putsInFlight = 512

// Pool implements bus.Bus.
func (b *Bus) Pool() bus.Table { return table{b, b.names.poolBucket()} }

// Users implements bus.Bus.
func (b *Bus) Users() bus.Table { return table{b, b.names.usersBucket()} }

type table struct {
	*Bus
	bucket string
}

func (t table) subject(key string) string { return bucketSubject(t.bucket, encodeKey(key)) }

func (t table) Get(ctx context.Context, key string) (bus.Entry, error) {
	e, err := t.newest(ctx, key)
	if err == nil && e.Value == nil {
		err = bus.ErrNotFound
	}
	if err != nil {
		return bus.Entry{}, fmt.Errorf("get %q: %w", key, err)
	}
	return e, nil
}

// newest returns the entry or the mark that it was deleted.
func (t table) newest(ctx context.Context, key string) (bus.Entry, error) {
	m, err := t.last(ctx, bucketStream(t.bucket), t.subject(key))
	if err != nil {
		return bus.Entry{}, err
	}
	header, err := nats.DecodeHeadersMsg(m.Header)
	if err != nil && len(m.Header) > 0 {
		return bus.Entry{}, fmt.Errorf("header of the entry: %w", err)
	}
	return entry(key, header, m.Data, m.Seq), nil
}

func entry(key string, header nats.Header, data []byte, seq uint64) bus.Entry {
	e := bus.Entry{Key: key, Revision: bus.Revision(seq)}
	if header.Get(headerKVOp) == "" {
		e.Value = append([]byte{}, data...) // empty isn't nil
	}
	return e
}

func (t table) Put(ctx context.Context, w bus.Write) (bus.Revision, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	c, err := t.sendPut(w)
	var r bus.Revision
	if err == nil {
		r, err = t.putDone(ctx, w, c)
	}
	if err != nil {
		return 0, fmt.Errorf("put %q: %w", w.Key, err)
	}
	return r, nil
}

func (t table) putMsg(w bus.Write) *nats.Msg {
	msg := storeMsg(t.subject(w.Key), w.Value, uint64(w.Expect))
	if w.Value == nil {
		msg.Header[headerKVOp] = []string{"DEL"}
	}
	return msg
}

func (t table) sendPut(w bus.Write) (*call, error) {
	if len(w.Key) == 0 || len(w.Key) > 512 || !utf8.ValidString(w.Key) {
		return nil, fmt.Errorf("a key is 1 to 512 bytes of UTF-8, this one is %d bytes", len(w.Key))
	}
	c, err := t.store.mux.send(t.putMsg(w))
	return c, storeError(err)
}

// putDone waits for the outcome. Where an entry was deleted its mark stands, and "if it
// does not exist" means "over the mark".
func (t table) putDone(ctx context.Context, w bus.Write, c *call) (bus.Revision, error) {
	seq, err := t.acked(ctx, c)
	if w.Expect == 0 && errors.Is(err, bus.ErrConflict) {
		e, lastErr := t.newest(ctx, w.Key)
		if lastErr == nil && e.Value == nil {
			w.Expect = e.Revision
			seq, err = t.write(ctx, t.putMsg(w))
		}
	}
	return bus.Revision(seq), err
}

// PutAll implements bus.Table. The writes go out from one goroutine, and their outcomes
// are awaited in the same order by another.
func (t table) PutAll(ctx context.Context, writes iter.Seq[bus.Write], done func(bus.Write, bus.Revision, error)) error {
	type sent struct {
		w   bus.Write
		c   *call
		err error
	}
	inFlight := make(chan sent, putsInFlight)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for s := range inFlight {
			var r bus.Revision
			if s.err == nil {
				one, cancel := context.WithTimeout(ctx, storeTimeout)
				r, s.err = t.putDone(one, s.w, s.c)
				cancel()
			}
			if s.err != nil {
				s.err = fmt.Errorf("put %q: %w", s.w.Key, s.err)
			}
			done(s.w, r, s.err)
		}
	}()
	for w := range writes {
		if ctx.Err() != nil {
			break
		}
		c, err := t.sendPut(w)
		inFlight <- sent{w, c, err}
	}
	close(inFlight)
	<-finished
	return ctx.Err()
}

func (t table) List(ctx context.Context, prefix string) ([]bus.Entry, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var list []bus.Entry
	whole := make(chan []bus.Entry, 1)
	err := t.Watch(ctx, prefix, func(e bus.Entry) {
		if e.Value != nil {
			list = append(list, e)
		}
	}, func() { whole <- list })
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	select {
	case list := <-whole:
		return list, nil
	case <-t.life.Done():
		return nil, fmt.Errorf("list %q: bus is closed: %w", prefix, bus.ErrUnavailable)
	case <-ctx.Done():
		return nil, fmt.Errorf("list %q: %w", prefix, storeError(ctx.Err()))
	}
}

func (t table) Watch(ctx context.Context, prefix string, changed func(bus.Entry), caughtUp func()) error {
	caught := false
	r := &reader{
		bus: t.Bus, stream: bucketStream(t.bucket),
		filters:  []string{bucketSubject(t.bucket, prefixFilter(prefix))},
		caughtUp: func() { caught = true; caughtUp() },
	}
	r.deliver = func(m *nats.Msg, seq uint64) {
		key, err := decodeKey(m.Subject[len(bucketSubject(t.bucket, "")):])
		if err != nil { // not written by us
			t.log.Warn("table has a foreign entry", "bucket", t.bucket, "err", err)
			return
		}
		if !strings.HasPrefix(key, prefix) {
			return
		}
		e := entry(key, m.Header, m.Data, seq)
		// What was deleted before the watch began was never there for it.
		if e.Value == nil && !caught && !r.reopened {
			return
		}
		changed(e)
	}
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("watch %q: %w", prefix, err)
	}
	return nil
}
