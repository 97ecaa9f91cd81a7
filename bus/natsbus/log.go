package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"rollcall/bus"
)

// Bindings implements bus.Bus.
func (b *Bus) Bindings() bus.Log { return bindingsLog{b} }

type bindingsLog struct{ *Bus }

func (l bindingsLog) Append(ctx context.Context, r bus.Record, ttl time.Duration) (bus.Position, error) {
	msg, err := l.appending(r, ttl)
	if err != nil {
		return 0, err
	}
	seq, err := l.write(ctx, msg)
	return appended(r, seq, err)
}

func (l bindingsLog) AppendThen(r bus.Record, ttl time.Duration, then func(bus.Position, error)) {
	msg, err := l.appending(r, ttl)
	if err != nil {
		then(0, err)
		return
	}
	err = l.store.mux.sendThen(msg, func(answer *nats.Msg) {
		err := answerError(answer)
		if err != nil {
			then(appended(r, 0, storeError(err)))
			return
		}
		seq, err := parseAck(answer.Data)
		then(appended(r, seq, err))
	})
	if err != nil {
		then(appended(r, 0, storeError(err)))
	}
}

func (l bindingsLog) appending(r bus.Record, ttl time.Duration) (*nats.Msg, error) {
	if r.Group == "" || r.User == "" || ttl < 0 {
		return nil, fmt.Errorf("append for user %q of group %q with ttl %v: a record needs both names, and a ttl is not negative", r.User, r.Group, ttl)
	}
	msg := storeMsg(l.names.bindings(r.Group, r.User), r.Data, uint64(r.Position))
	if ttl > 0 {
		// Rounded up: a record may live longer than asked, never shorter.
		msg.Header[headerTTL] = []string{strconv.FormatInt(int64((ttl+time.Second-1)/time.Second), 10)}
	}
	return msg, nil
}

func appended(r bus.Record, seq uint64, err error) (bus.Position, error) {
	if err != nil {
		return 0, fmt.Errorf("append for %s: %w", r.User, err)
	}
	return bus.Position(seq), nil
}

func (l bindingsLog) Last(ctx context.Context, group, user string) (bus.Record, error) {
	m, err := l.last(ctx, l.names.log(), l.names.bindings(group, user))
	if err != nil {
		return bus.Record{}, fmt.Errorf("last record of %s: %w", user, err)
	}
	return bus.Record{Group: group, User: user, Position: bus.Position(m.Seq), Data: m.Data}, nil
}

func (l bindingsLog) Head(ctx context.Context, group string) (bus.Position, error) {
	m, err := l.last(ctx, l.names.log(), l.names.bindingsOf(group))
	if errors.Is(err, bus.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("head of group %s: %w", group, err)
	}
	return bus.Position(m.Seq), nil
}

// followPause is how much later than at once a copy may hear of a record. Under load a record then
// costs each copy, and the server for each copy, half of what it costs by itself.
const followPause = 5 * time.Millisecond

func (l bindingsLog) Follow(ctx context.Context, groups []string, after bus.Position, fn func(bus.Record)) error {
	if len(groups) == 0 {
		return nil
	}
	r := &reader{bus: l.Bus, stream: l.names.log(), pos: uint64(after), pause: followPause}
	for _, g := range groups {
		r.filters = append(r.filters, l.names.bindingsOf(g))
	}
	r.deliver = func(m *nats.Msg, seq uint64) {
		group, user, err := parseBindings(m.Subject)
		if err != nil { // not written by us
			l.log.Warn("bindings log has a foreign record", "err", err)
			return
		}
		fn(bus.Record{Group: group, User: user, Position: bus.Position(seq), Data: m.Data})
	}
	if err := r.start(ctx); err != nil {
		return fmt.Errorf("follow %d groups: %w", len(groups), err)
	}
	return nil
}
