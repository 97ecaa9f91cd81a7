package natsbus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"rollcall/bus"
)

const (
	// queueMax bounds the messages that wait for one receiver; the newest are lost.
	queueMax = 4096
	// subscribeWait bounds the wait for the server to know of a new subscription.
	subscribeWait = 2 * time.Second
)

// receive calls fn for each message of the subjects, from one goroutine of its own, until
// ctx ends. nats.go subscribes again whenever the connection is restored.
func (b *Bus) receive(ctx context.Context, l *link, fn func(*nats.Msg), subjects ...string) error {
	queue := make(chan *nats.Msg, queueMax)
	var subs []*nats.Subscription
	// Unsubscribe fails only when the connection is closed, and then there is nothing to undo.
	unsubscribe := func() {
		for _, sub := range subs {
			_ = sub.Unsubscribe()
		}
	}
	for _, subject := range subjects {
		sub, err := l.nc.ChanSubscribe(subject, queue)
		if err != nil {
			unsubscribe()
			return fmt.Errorf("subscribe to %s: %w", subject, unsent(err))
		}
		subs = append(subs, sub)
	}
	if l.connected() {
		wait, cancel := context.WithTimeout(ctx, subscribeWait)
		_ = l.nc.FlushWithContext(wait) // lost meanwhile: then it is told when restored
		cancel()
	}
	err := b.start(ctx, func(ctx context.Context) {
		defer unsubscribe()
		for {
			select {
			case <-ctx.Done():
				return
			case m := <-queue:
				if ctx.Err() != nil {
					return
				}
				fn(m)
			}
		}
	})
	if err != nil {
		unsubscribe()
	}
	return err
}

// Pulse implements bus.Messages.
func (b *Bus) Pulse(frontEnd string, data []byte) error {
	return b.publish(b.live, b.names.pulse(frontEnd), data)
}

// Pulses implements bus.Messages.
func (b *Bus) Pulses(ctx context.Context, fn func(frontEnd string, data []byte)) error {
	return b.receive(ctx, b.live, named(fn), b.names.namespace+".pulse.*")
}

// named passes on the name that a subject ends with, and drops what isn't ours.
func named(fn func(name string, data []byte)) func(*nats.Msg) {
	return func(m *nats.Msg) {
		if name, err := lastToken(m.Subject); err == nil {
			fn(name, m.Data)
		}
	}
}

func (b *Bus) publish(l *link, subject string, data []byte) error {
	if err := l.nc.Publish(subject, data); err != nil {
		return fmt.Errorf("publish to %s: %w", subject, unsent(err))
	}
	return nil
}

// linkFor returns the connection that requests for this verb travel on.
func (b *Bus) linkFor(verb string) *link {
	if verb == VerbLive {
		return b.live
	}
	return b.store
}

// Request implements bus.Messages.
func (b *Bus) Request(ctx context.Context, frontEnd, verb string, data []byte) ([]byte, error) {
	msg := &nats.Msg{Subject: b.names.request(frontEnd, verb), Data: data}
	answer, err := b.linkFor(verb).mux.ask(ctx, msg)
	if errors.Is(err, errNoResponders) {
		err = bus.ErrNobodyThere
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s to %s: %w", frontEnd, verb, err)
	}
	return answer.Data, nil
}

// Serve implements bus.Messages.
func (b *Bus) Serve(ctx context.Context, frontEnd, verb string, fn func(bus.Request)) error {
	return b.receive(ctx, b.linkFor(verb), func(m *nats.Msg) {
		fn(bus.Request{Data: m.Data, Respond: func(data []byte) error {
			if err := m.Respond(data); err != nil {
				return fmt.Errorf("respond: %w", unsent(err))
			}
			return nil
		}})
	}, b.names.request(frontEnd, verb))
}
