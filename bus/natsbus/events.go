package natsbus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// unheardFor is how long it counts that nobody listened. A new listener waits so long before
	// he says that he listens, and listenMargin for the servers to tell each other of him.
	unheardFor   = 200 * time.Millisecond
	listenMargin = 50 * time.Millisecond
	// kindsMax bounds the kinds of which that is noted; any other counts as heard.
	kindsMax = 64
)

// listeners is what is known of who listens to events. The server tells: it answers a message with
// a reply subject when nobody has subscribed to it.
type listeners struct {
	mu    sync.Mutex
	kinds map[string]*listening
}

type listening struct {
	asked   time.Time
	unheard time.Time // nobody listened then
}

// ask reports whether it is time to ask the server about this kind.
func (l *listeners) ask(kind string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.kinds[kind]
	if k == nil {
		if len(l.kinds) >= kindsMax {
			return false
		}
		if l.kinds == nil {
			l.kinds = map[string]*listening{}
		}
		k = &listening{}
		l.kinds[kind] = k
	}
	if now.Sub(k.asked) < unheardFor {
		return false
	}
	k.asked = now
	return true
}

func (l *listeners) nobody(kind string, when time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds[kind].unheard = when
}

// Heard implements bus.Messages.
func (b *Bus) Heard(kind string) bool {
	b.listeners.mu.Lock()
	defer b.listeners.mu.Unlock()
	k := b.listeners.kinds[kind]
	return k == nil || time.Since(k.unheard) >= unheardFor
}

// Emit implements bus.Messages.
func (b *Bus) Emit(kind string, data []byte) error {
	now := time.Now()
	if !b.listeners.ask(kind, now) {
		return b.publish(b.store, b.names.event(kind), data)
	}
	return b.store.mux.sendThen(&nats.Msg{Subject: b.names.event(kind), Data: data}, func(answer *nats.Msg) {
		if errors.Is(answerError(answer), errNoResponders) {
			b.listeners.nobody(kind, now)
		}
	})
}

// Events implements bus.Messages.
func (b *Bus) Events(ctx context.Context, fn func(kind string, data []byte), kinds ...string) error {
	var subjects []string
	for _, kind := range kinds {
		subjects = append(subjects, b.names.event(kind))
	}
	if len(kinds) == 0 {
		subjects = []string{b.names.namespace + ".event.*"}
	}
	if err := b.receive(ctx, b.store, named(fn), subjects...); err != nil {
		return err
	}
	select {
	case <-time.After(unheardFor + listenMargin):
	case <-ctx.Done():
	}
	return nil
}
