// Package engine runs many simulated softphones in one process: a few shards, each
// one goroutine that owns its phones, their timers (one heap) and their measurements,
// and one reader goroutine for each connection.
package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"rollcall/loadtest/link"
	"rollcall/loadtest/measure"
	"rollcall/loadtest/phone"
)

// Options of an Engine.
type Options struct {
	Phones []*phone.Phone // with their indices First, First+1, …
	First  int
	// Transport, and the local address of a phone by its index ("" for any).
	Transport string
	Source    func(index int) string
	Dialer    link.Dialer
	Start     time.Time     // of the run: the zero of all times
	Width     time.Duration // step of the curve over time
	Shards    int
	Dials     int           // connections being made at once, in all
	DialWait  time.Duration // bound of one
}

// Engine runs phones. Use New, Run, and then the other methods while Run runs.
type Engine struct {
	o       Options
	shards  []*shard
	readers sync.WaitGroup // readers and dials
	ctx     context.Context
	done    chan struct{} // closed when all shards have ended
}

// New makes an engine; nothing runs yet.
func New(o Options) (*Engine, error) {
	if o.Dialer == nil || len(o.Phones) == 0 {
		return nil, fmt.Errorf("the load generator needs phones and a dialer")
	}
	if o.Shards <= 0 {
		o.Shards = 1
	}
	if o.Dials <= 0 {
		o.Dials = 256
	}
	if o.DialWait <= 0 {
		o.DialWait = 10 * time.Second
	}
	if o.Width <= 0 {
		o.Width = 100 * time.Millisecond
	}
	if o.Source == nil {
		o.Source = func(int) string { return "" }
	}
	e := &Engine{o: o, done: make(chan struct{})}
	for i := range o.Shards {
		e.shards = append(e.shards, newShard(e, i))
	}
	return e, nil
}

// Run runs the phones until ctx ends, and returns when all its goroutines have ended.
func (e *Engine) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	e.ctx = ctx
	var loops sync.WaitGroup
	for _, s := range e.shards {
		loops.Go(s.run)
	}
	loops.Wait()
	close(e.done)
	cancel()
	e.readers.Wait()
}

func (e *Engine) now() time.Duration { return time.Since(e.o.Start) }

// each runs fn in every shard and waits; it returns early when the engine has ended.
func (e *Engine) each(fn func(*shard)) {
	var wg sync.WaitGroup
	for _, s := range e.shards {
		wg.Go(func() {
			did := make(chan struct{})
			select {
			case s.commands <- func() { fn(s); close(did) }:
				select {
				case <-did:
				case <-e.done:
				}
			case <-e.done:
			}
		})
	}
	wg.Wait()
}

// Live is the state of an engine at a moment.
type Live struct {
	States     [phone.States]int `json:"states"`
	Bound      int               `json:"bound"`
	Gaps       int               `json:"gaps_open"`
	OK         int               `json:"ok"`
	Failed     int               `json:"failed"`
	Lost       int               `json:"lost"`
	P99        float64           `json:"register_p99_ms"` // of the present phase; the worst shard's
	LagP99     float64           `json:"lag_p99_ms"`
	Untried    int               `json:"untried"`     // have not ended their first attempt
	GapsClosed int               `json:"gaps_closed"` // clients that came back
}

// Add merges o into l.
func (l *Live) Add(o Live) {
	for i, n := range o.States {
		l.States[i] += n
	}
	l.Bound += o.Bound
	l.Gaps += o.Gaps
	l.OK += o.OK
	l.Failed += o.Failed
	l.Lost += o.Lost
	l.Untried += o.Untried
	l.GapsClosed += o.GapsClosed
	l.P99, l.LagP99 = max(l.P99, o.P99), max(l.LagP99, o.LagP99)
}

// Live asks all shards.
func (e *Engine) Live() Live {
	parts := make([]Live, len(e.shards))
	e.each(func(s *shard) { parts[s.number] = s.live() })
	var l Live
	for _, p := range parts {
		l.Add(p)
	}
	return l
}

// Begin starts a new phase of the measurement.
func (e *Engine) Begin(name string, at time.Duration) {
	e.each(func(s *shard) { s.rec.Begin(name, at) })
}

// Cut cuts the connections of the first part of the phones, a share from 0 to 1 that is
// drawn by the index, so that all addresses are hit alike.
func (e *Engine) Cut(share float64) {
	e.each(func(s *shard) {
		for i, p := range s.phones {
			if hashShare(p.index) < share {
				s.handle(i, phone.Event{Kind: phone.Cut}, e.now())
			}
		}
	})
}

// Mark tells phones that their server was taken away at the time at. nil means all.
func (e *Engine) Mark(affected map[int]bool, at time.Duration) {
	e.each(func(s *shard) {
		for i, p := range s.phones {
			if affected == nil || affected[p.index] {
				s.handle(i, phone.Event{Kind: phone.Mark, Time: at}, e.now())
			}
		}
	})
}

// Renew makes all registered phones refresh, one after the other at the given rate per second from the time at.
func (e *Engine) Renew(at time.Duration, rate float64) {
	e.each(func(s *shard) {
		for i, p := range s.phones {
			when := at + time.Duration(float64(p.index)/rate*float64(time.Second))
			s.handle(i, phone.Event{Kind: phone.Renew, Time: when}, e.now())
		}
	})
}

// Freeze takes the measurements. What happens afterwards is not measured.
func (e *Engine) Freeze() measure.Data {
	parts := make([]measure.Data, len(e.shards))
	e.each(func(s *shard) { parts[s.number] = s.freeze() })
	var d measure.Data
	for i := range parts {
		d.Merge(&parts[i])
	}
	return d
}

// Quit ends all phones: in order (those that do unregister), so many a second, or at once when rate is 0.
func (e *Engine) Quit(rate float64) {
	from := e.now()
	e.each(func(s *shard) {
		for i, p := range s.phones {
			ev := phone.Event{Kind: phone.Abandon}
			if rate > 0 {
				ev = phone.Event{Kind: phone.Quit, Time: from + time.Duration(float64(p.index-e.o.First)/rate*float64(time.Second))}
			}
			s.handle(i, ev, e.now())
		}
	})
}

// hashShare spreads indices evenly over 0 to 1 (the golden ratio sequence).
func hashShare(i int) float64 {
	f := float64(i) * 0.6180339887498949
	return f - float64(int(f))
}
