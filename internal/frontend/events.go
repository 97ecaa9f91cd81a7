package frontend

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/routing"
)

// events tells the pool's watchers what happens here. Encoding and sending are
// off the hot path; when the queue is full the newest event is dropped and
// counted, since nothing that the pool does depends on one.
type events struct {
	me      routing.FrontEnd
	bus     bus.Messages
	logger  *slog.Logger
	view    func() *view
	queue   chan func() control.Event
	dropped atomic.Uint64

	mu    sync.Mutex
	moved map[routing.Epoch]time.Time // guarded by mu: epochs that this Front End has still to be ready for, and when it saw them
}

const eventQueue = 8192

func newEvents(me routing.FrontEnd, b bus.Messages, view func() *view, logger *slog.Logger) *events {
	return &events{me: me, bus: b, view: view, logger: logger,
		queue: make(chan func() control.Event, eventQueue), moved: map[routing.Epoch]time.Time{}}
}

// run until ctx ends.
func (e *events) run(ctx context.Context) error {
	var reported uint64
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case make := <-e.queue:
			ev := make()
			if data, err := json.Marshal(ev); err == nil {
				_ = e.bus.Emit(ev.Type, data) // not stored; who is cut off hears nothing
			}
		case <-tick.C:
			if n := e.dropped.Load(); n != reported {
				e.logger.Warn("events were dropped: more happened than could be told", "dropped", n-reported)
				reported = n
			}
		}
	}
}

func (e *events) tell(at time.Time, make func(*control.Event)) {
	epoch := e.view().epoch()
	select {
	case e.queue <- func() control.Event {
		ev := control.Event{Time: at.UTC().Format(control.TimeFormat), FrontEnd: e.me, Epoch: epoch}
		make(&ev)
		return ev
	}:
	default:
		e.dropped.Add(1)
	}
}

// registered tells what a stored decision did to a user's bindings.
func (e *events) registered(group routing.Group, user registrar.AOR, changes []registrar.Change) {
	if !e.bus.Heard(control.EventRegistration) {
		return
	}
	at := time.Now()
	for _, c := range changes {
		e.tell(at, func(ev *control.Event) {
			ev.Type, ev.Change, ev.AOR, ev.Group = control.EventRegistration, string(c.Kind), user, group
			ev.Contact, ev.Flow = c.Binding.Contact.URI, &c.Binding.Flow
			ev.Expires = max(0, int(c.Binding.Expires.Sub(at).Round(time.Second)/time.Second))
		})
	}
}

func (e *events) flow(change string, f registrar.Flow) {
	e.tell(time.Now(), func(ev *control.Event) {
		ev.Type, ev.Change, ev.Flow = control.EventFlow, change, &f
	})
}

// decided tells that this Front End's placement was stored.
func (e *events) decided(c control.Change) {
	e.tell(c.Timeline.Stored, func(ev *control.Event) {
		ev.Type, ev.Phase, ev.Epoch = control.EventPlacement, "decided", c.Epoch
		ev.Cause, ev.Moves, ev.Timeline = c.Cause, c.Moves, c.Timeline
	})
}

// placementSeen tells that this Front End acts on a new placement, and which Front Ends changed state by it.
func (e *events) placementSeen(old, next *view, changed []routing.Group, seen time.Time) {
	promoted := false
	var moves []control.Move
	for _, g := range changed {
		from, to := old.copies(g), next.copies(g)
		promoted = promoted || to.Primary == e.me && from.Primary != e.me
		if len(moves) < control.MostMoves {
			moves = append(moves, control.Move{Group: g, From: from, To: to})
		}
	}
	e.tell(seen, func(ev *control.Event) {
		ev.Type, ev.Phase, ev.Epoch, ev.Moves = control.EventPlacement, "seen", next.epoch(), moves
		ev.Timeline.Seen = seen
	})
	for fe, m := range next.placement.Members {
		if old != nil && old.placement.Members[fe].State == m.State && old.placement.Members[fe].Boot == m.Boot {
			continue
		}
		e.tell(seen, func(ev *control.Event) {
			ev.Type, ev.Epoch, ev.Subject, ev.State = control.EventFrontEnd, next.epoch(), fe, m.State
		})
	}
	if promoted {
		e.mu.Lock()
		e.moved[next.epoch()] = seen
		e.mu.Unlock()
	}
}

// allReady tells that this Front End serves all groups it is primary of.
func (e *events) allReady(epoch routing.Epoch, at time.Time) {
	e.mu.Lock()
	var due []routing.Epoch
	var seen time.Time
	for waiting, t := range e.moved {
		if waiting <= epoch {
			due, seen = append(due, waiting), later(seen, t)
			delete(e.moved, waiting)
		}
	}
	e.mu.Unlock()
	if len(due) == 0 {
		return
	}
	e.tell(at, func(ev *control.Event) {
		ev.Type, ev.Phase, ev.Epoch = control.EventPlacement, "ready", epoch
		ev.Timeline.Seen, ev.Timeline.Ready = seen, at
	})
}
