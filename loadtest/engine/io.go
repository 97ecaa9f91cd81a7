package engine

import (
	"context"
	"errors"
	"syscall"
	"time"

	"rollcall/loadtest/link"
	"rollcall/loadtest/phone"
	"rollcall/loadtest/sipwire"
)

// dial is a connection to be made.
type dial struct {
	slot   int
	number uint32
	target string
}

// dial starts a connection, or queues it when as many as allowed are being made.
func (s *shard) dial(i int, target string) {
	p := &s.phones[i]
	p.dial++
	p.dialing = true
	s.queue = append(s.queue, dial{i, p.dial, target})
	s.nextDial()
}

func (s *shard) nextDial() {
	for s.dials < max(s.e.o.Dials/s.e.o.Shards, 1) && len(s.queue) > 0 {
		d := s.queue[0]
		s.queue = s.queue[1:]
		if d.number != s.phones[d.slot].dial {
			continue // a newer one took its place
		}
		s.dials++
		source := s.e.o.Source(s.phones[d.slot].index)
		s.e.readers.Go(func() { s.connect(d, source) })
	}
	if len(s.queue) == 0 {
		s.queue = nil
	}
}

func (s *shard) connect(d dial, source string) {
	ctx, cancel := context.WithTimeout(s.e.ctx, s.e.o.DialWait)
	defer cancel()
	c, err := s.e.o.Dialer.Dial(ctx, s.e.o.Transport, source, d.target)
	a := arrival{slot: d.slot, gen: d.number, conn: c, at: s.e.now()}
	if err != nil {
		a.ev = phone.Event{Kind: phone.ConnectFailed, Text: link.Why(err)}
		a.conn = nil
	} else {
		a.ev = phone.Event{Kind: phone.Connected, Text: c.LocalAddr().String()}
	}
	if !s.post(a) && err == nil {
		_ = c.Close()
	}
}

// post hands an arrival to the shard; false when the engine has ended.
func (s *shard) post(a arrival) bool {
	select {
	case s.inbox <- a:
		return true
	case <-s.e.ctx.Done():
		return false
	}
}

// read brings what a connection brings to the shard, and at last its end.
func (s *shard) read(slot int, gen uint32, c link.Conn) {
	deliver := func(p link.Piece) bool {
		a := arrival{slot: slot, gen: gen, at: s.e.now()}
		switch {
		case p.Err != nil:
			a.ev.Kind = phone.Malformed
		case p.Kind == sipwire.Ping:
			a.ev.Kind = phone.Ping
		case p.Kind == sipwire.Pong:
			a.ev.Kind = phone.Pong
		default:
			m := p.Message
			a.ev = phone.Event{Kind: phone.Message, Message: &m}
		}
		return s.post(a)
	}
	for {
		err := link.Read(c, deliver)
		if err == nil {
			return
		}
		ev := phone.Event{Kind: phone.Lost, Text: lossOf(s.e.o.Transport, err, false)}
		if !s.post(arrival{slot: slot, gen: gen, at: s.e.now(), ev: ev}) || ev.Text != "icmp" {
			return
		}
	}
}

// lossOf names the end of a connection by its error.
func lossOf(transport string, err error, writing bool) string {
	if transport == "udp" && errors.Is(err, syscall.ECONNREFUSED) {
		return "icmp"
	}
	why := link.Why(err)
	switch {
	case why == "timeout" && writing:
		return "stalled"
	case why == "rst", why == "timeout":
		return "rst"
	}
	return "fin"
}

// drained reports whether all phones have ended.
func (e *Engine) drained() bool { l := e.Live(); return l.States[phone.Off] == len(e.o.Phones) }

// Drain waits until all phones have ended after Quit, at most for so long.
func (e *Engine) Drain(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !e.drained() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
