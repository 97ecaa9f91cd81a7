package loadtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"rollcall/internal/control"
	"rollcall/loadtest/report"
	"rollcall/registrar"
	"rollcall/routing"
)

// maxEvents bounds the events kept for the report.
const maxEvents = 10_000

// observer keeps what happens around the clients: what the storm does, and what the pool says of itself.
type observer struct {
	flows bool // keep where each user is, for clients that cannot see their server go

	mu      sync.Mutex
	start   time.Time // of the run; zero before it, when events do not count yet
	events  []report.Event
	dropped int
	homes   map[registrar.AOR]home
}

// home of a user: the Front End that his REGISTER came in at, and his group.
type home struct {
	fe    string
	group routing.Group
}

func newObserver(flows bool) *observer {
	return &observer{flows: flows, homes: map[registrar.AOR]home{}}
}

// begin sets the start of the run, from which on events count.
func (o *observer) begin(start time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.start = start
}

// since is the run's time of t; before the start of the run it is negative.
func (o *observer) since(t time.Time) float64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.start.IsZero() {
		return -1
	}
	return t.Sub(o.start).Seconds()
}

func (o *observer) add(e report.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.events) >= maxEvents {
		o.dropped++
		return
	}
	o.events = append(o.events, e)
}

// did notes what the storm did at the time at.
func (o *observer) did(at time.Duration, what, detail string) {
	o.add(report.Event{At: at.Seconds(), Source: "storm", What: what, Detail: detail})
}

// sorted events, and how many were dropped.
func (o *observer) sorted() ([]report.Event, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := slices.Clone(o.events)
	slices.SortStableFunc(out, func(a, b report.Event) int {
		switch {
		case a.At < b.At:
			return -1
		case a.At > b.At:
			return 1
		}
		return 0
	})
	return out, o.dropped
}

// pool takes one event of the pool in.
func (o *observer) pool(e control.Event) {
	switch e.Type {
	case control.EventRegistration:
		if o.flows && e.Flow != nil {
			o.mu.Lock()
			o.homes[e.AOR] = home{e.Flow.FrontEnd, e.Group}
			o.mu.Unlock()
		}
	case control.EventFrontEnd:
		if at, ok := o.at(e.Time); ok {
			o.add(report.Event{At: at, Source: string(e.FrontEnd), What: fmt.Sprintf("%s %s", e.Subject, e.State), Detail: e.Reason})
		}
	case control.EventPlacement:
		o.placement(e)
	}
}

// placement notes a placement change, and with the decision also what led to it.
func (o *observer) placement(e control.Event) {
	at, ok := o.at(e.Time)
	if !ok {
		return
	}
	detail := e.Cause
	if e.Phase == "decided" {
		detail = strings.TrimSpace(fmt.Sprintf("%s; %d groups, %d promoted", e.Cause, len(e.Moves), promoted(e.Moves)))
		for _, t := range []struct {
			what string
			at   time.Time
		}{{"last sign of it", e.Timeline.LastSign}, {"suspected", e.Timeline.Suspected}, {"stored", e.Timeline.Stored}} {
			if s := o.since(t.at); !t.at.IsZero() && s >= 0 {
				o.add(report.Event{At: s, Source: string(e.FrontEnd), What: "placement " + t.what, Detail: fmt.Sprintf("epoch %d", e.Epoch)})
			}
		}
	}
	o.add(report.Event{At: at, Source: string(e.FrontEnd), What: fmt.Sprintf("placement %s, epoch %d", e.Phase, e.Epoch), Detail: detail})
}

func promoted(moves []control.Move) int {
	n := 0
	for _, m := range moves {
		if m.From.Primary != m.To.Primary {
			n++
		}
	}
	return n
}

// at is the run's time of an event's; events of before the run do not count.
func (o *observer) at(s string) (float64, bool) {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, false
	}
	at := o.since(t)
	return at, at >= 0
}

// clientsOf are the clients whose REGISTERs came in at one of these Front Ends or whose group has its primary
// there, and how many clients' places are known at all.
func (o *observer) clientsOf(fes []string, st *control.Status, aor func(i int) registrar.AOR, clients int) (hit []int, known int) {
	primary := map[routing.Group]string{}
	for _, g := range st.Groups {
		if g.Primary != nil {
			primary[g.ID] = string(*g.Primary)
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range clients {
		h, ok := o.homes[aor(i)]
		if !ok {
			continue
		}
		known++
		if slices.Contains(fes, h.fe) || slices.Contains(fes, primary[h.group]) {
			hit = append(hit, i)
		}
	}
	return hit, known
}
