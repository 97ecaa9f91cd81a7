package engine

import (
	"container/heap"
	"time"

	"rollcall/loadtest/link"
	"rollcall/loadtest/measure"
	"rollcall/loadtest/phone"
)

// writeWait bounds a write to a stream: one that takes longer counts as a lost connection.
const writeWait = time.Second

// slot is a phone and its connection, owned by the shard's goroutine.
type slot struct {
	*phone.Phone
	index   int
	conn    link.Conn
	gen     uint32 // number of the connection; what older ones bring is ignored
	dial    uint32 // number of the newest dial
	dialing bool
	wake    time.Duration
	place   int // in the heap
}

// arrival is what a reader or a dial brings to the shard.
type arrival struct {
	slot int
	gen  uint32 // of the connection, or the number of the dial
	ev   phone.Event
	conn link.Conn // of a dial that succeeded
	at   time.Duration
}

// shard owns a part of the phones.
type shard struct {
	e        *Engine
	number   int
	phones   []slot
	heap     []int // slots by wake; see heap.Interface below
	inbox    chan arrival
	commands chan func()
	rec      *measure.Recorder
	out      phone.Out
	pending  []arrival // losses noticed while sending, handled next
	queue    []dial    // waiting for a free place to dial
	dials    int
	states   [phone.States]int
	ok       int
	failed   int
	lost     int
	back     int
	untried  int
}

func newShard(e *Engine, number int) *shard {
	// The inbox is bounded: when the shard is behind, readers wait, and so does the
	// registrar, by TCP's flow control. The time of arrival was taken before.
	s := &shard{e: e, number: number, inbox: make(chan arrival, 1024), commands: make(chan func()), rec: measure.NewRecorder("ramp", e.o.Width)}
	for i := number; i < len(e.o.Phones); i += e.o.Shards {
		p := e.o.Phones[i]
		s.phones = append(s.phones, slot{Phone: p, index: e.o.First + i, wake: p.Wake(), place: len(s.heap)})
		s.heap = append(s.heap, len(s.phones)-1)
		s.states[p.State()]++
	}
	s.untried = len(s.phones)
	heap.Init(s)
	return s
}

// run is the shard's loop.
func (s *shard) run() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		s.due()
		wait := time.Hour
		if len(s.heap) > 0 {
			if at := s.phones[s.heap[0]].wake; at != phone.Never {
				wait = max(at-s.e.now(), 0)
			}
		}
		timer.Reset(wait)
		select {
		case <-s.e.ctx.Done():
			s.closeAll()
			return
		case fn := <-s.commands:
			fn()
		case a := <-s.inbox:
			s.arrive(a)
			for range 255 { // as many as are there, but the timers have their turn
				select {
				case a := <-s.inbox:
					s.arrive(a)
					continue
				default:
				}
				break
			}
		case <-timer.C:
		}
	}
}

// due fires the timers that have come, up to a bound, so that arrivals have their turn.
func (s *shard) due() {
	for range 256 {
		if len(s.heap) == 0 {
			return
		}
		i, now := s.heap[0], s.e.now()
		at := s.phones[i].wake
		if at > now {
			return
		}
		s.rec.Lag(now - at)
		s.handle(i, phone.Event{Kind: phone.Tick}, now)
	}
}

func (s *shard) arrive(a arrival) {
	p := &s.phones[a.slot]
	s.rec.Lag(s.e.now() - a.at)
	switch a.ev.Kind {
	case phone.Connected, phone.ConnectFailed:
		s.dialed(a)
		return
	case phone.Lost:
		if a.gen != p.gen || p.conn == nil {
			return
		}
		if a.ev.Text != "icmp" {
			_ = p.conn.Close()
			p.conn = nil
		}
	default:
		if a.gen != p.gen {
			return
		}
	}
	s.handle(a.slot, a.ev, a.at)
}

// dialed takes the end of a dial in.
func (s *shard) dialed(a arrival) {
	s.dials--
	s.nextDial()
	p := &s.phones[a.slot]
	if a.gen != p.dial || !p.dialing {
		if a.conn != nil {
			_ = a.conn.Close()
		}
		return
	}
	p.dialing = false
	if a.conn != nil {
		if p.conn != nil {
			_ = p.conn.Close()
		}
		p.conn = a.conn
		p.gen++
		slot, gen := a.slot, p.gen
		s.e.readers.Go(func() { s.read(slot, gen, a.conn) })
	}
	s.handle(a.slot, a.ev, a.at)
}

// handle gives one event to a phone and does what it wants, and then what came of that.
func (s *shard) handle(i int, ev phone.Event, now time.Duration) {
	s.one(i, ev, now)
	for len(s.pending) > 0 {
		a := s.pending[0]
		s.pending = s.pending[1:]
		p := &s.phones[a.slot]
		if a.gen != p.gen || p.conn == nil {
			continue
		}
		if a.ev.Text != "icmp" {
			p.conn.Reset()
			p.conn = nil
		}
		s.one(a.slot, a.ev, a.at)
	}
	s.pending = nil
}

func (s *shard) one(i int, ev phone.Event, now time.Duration) {
	p := &s.phones[i]
	before := p.State()
	s.out.Reset()
	p.Handle(ev, now, &s.out)
	for k := range s.out.Facts {
		f := &s.out.Facts[k]
		s.rec.Fact(f, now)
		s.tally(f)
	}
	for k := range s.out.Acts {
		s.act(i, &s.out.Acts[k], now)
	}
	if after := p.State(); after != before {
		s.states[before]--
		s.states[after]++
	}
	if w := p.Wake(); w != p.wake {
		p.wake = w
		heap.Fix(s, p.place)
	}
}

func (s *shard) tally(f *phone.Fact) {
	switch f.Kind {
	case phone.FactOK:
		s.ok++
		if !f.Re {
			s.untried--
		}
	case phone.FactFailed:
		s.failed++
	case phone.FactLost:
		s.lost++
	case phone.FactGapClosed:
		s.back++
	}
}

func (s *shard) act(i int, a *phone.Act, now time.Duration) {
	p := &s.phones[i]
	switch a.Kind {
	case phone.Dial:
		s.dial(i, a.Target)
	case phone.Send:
		if p.conn == nil {
			return
		}
		if !p.conn.Messages() {
			_ = p.conn.SetWriteDeadline(time.Now().Add(writeWait))
		}
		if _, err := p.conn.Write(a.Data); err != nil {
			s.pending = append(s.pending, arrival{slot: i, gen: p.gen, at: now, ev: phone.Event{Kind: phone.Lost, Text: lossOf(s.e.o.Transport, err, true)}})
		}
	case phone.Close, phone.Reset:
		if p.conn == nil {
			return
		}
		if a.Kind == phone.Reset {
			p.conn.Reset()
		} else {
			_ = p.conn.Close()
		}
		p.conn = nil
		p.gen++
	}
}

func (s *shard) closeAll() {
	for i := range s.phones {
		if c := s.phones[i].conn; c != nil {
			_ = c.Close()
		}
	}
}

func (s *shard) live() Live {
	phases := s.rec.Phases
	p := phases[len(phases)-1]
	l := Live{States: s.states, Bound: s.rec.Bound, Gaps: s.rec.GapsOpen, OK: s.ok, Failed: s.failed, Lost: s.lost, Untried: s.untried, GapsClosed: s.back}
	l.P99 = max(p.Register.Stats().P99, p.ReRegister.Stats().P99)
	l.LagP99 = p.Lag.Stats().P99
	return l
}

// freeze takes the measurements, with the gaps that are open, and starts empty ones.
func (s *shard) freeze() measure.Data {
	now := s.e.now()
	for i := range s.phones {
		if g, open := s.phones[i].OpenGap(); open {
			s.rec.AddGap(g)
		}
	}
	s.rec.Phases[len(s.rec.Phases)-1].To = now
	d := s.rec.Data
	bound := s.rec.Bound
	s.rec = measure.NewRecorder("end", s.e.o.Width)
	s.rec.Bound = bound
	return d
}

// Len, Less, Swap, Push and Pop make the shard a heap of its phones by wake.
func (s *shard) Len() int           { return len(s.heap) }
func (s *shard) Less(i, j int) bool { return s.phones[s.heap[i]].wake < s.phones[s.heap[j]].wake }
func (s *shard) Swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.phones[s.heap[i]].place, s.phones[s.heap[j]].place = i, j
}

// Push is never used: phones neither come nor go.
func (s *shard) Push(any) {}

// Pop is never used.
func (s *shard) Pop() any { return nil }
