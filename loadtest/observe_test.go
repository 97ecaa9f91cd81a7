package loadtest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/routing"
)

// A UDP client belongs to a Front End when its group has its primary there, or its REGISTER came in there.
func TestClientsOfAFrontEnd(t *testing.T) {
	o := newObserver(true)
	for i, h := range []home{{"fe1", "g1"}, {"fe2", "g1"}, {"fe1", "g2"}} {
		o.pool(control.Event{Type: control.EventRegistration, AOR: registrar.AOR(fmt.Sprint(i)), Group: h.group, Flow: &registrar.Flow{FrontEnd: h.fe}})
	}
	one, two := routing.FrontEnd("fe1"), routing.FrontEnd("fe2")
	st := &control.Status{Groups: []control.Group{{ID: "g1", Primary: &one}, {ID: "g2", Primary: &two}, {ID: "g3"}}}
	aor := func(i int) registrar.AOR { return registrar.AOR(fmt.Sprint(i)) }
	if hit, known := o.clientsOf([]string{"fe2"}, st, aor, 4); !slices.Equal(hit, []int{1, 2}) || known != 3 {
		t.Errorf("of fe2: %v, %d known", hit, known)
	}
	if hit, _ := o.clientsOf([]string{"fe1", "fe2"}, st, aor, 4); len(hit) != 3 {
		t.Errorf("of both: %v", hit)
	}
}

// The pool's events stand on the run's time axis; those of before the run do not.
func TestPoolEventsAreMerged(t *testing.T) {
	o := newObserver(false)
	start := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) string { return start.Add(d).Format(control.TimeFormat) }
	o.pool(control.Event{Type: control.EventFrontEnd, FrontEnd: "fe1", Subject: "fe2", State: "up", Time: at(time.Second)}) // the run has not begun
	o.begin(start)
	o.did(2*time.Second, "kill fe2", "")
	o.pool(control.Event{Type: control.EventPlacement, FrontEnd: "fe1", Phase: "decided", Epoch: 7, Cause: "fe2 is down", Time: at(2100 * time.Millisecond),
		Timeline: control.Timeline{LastSign: start.Add(1900 * time.Millisecond)}, Moves: []control.Move{{From: routing.Copies{Primary: "fe2"}, To: routing.Copies{Primary: "fe1"}}}})
	o.pool(control.Event{Type: control.EventFrontEnd, FrontEnd: "fe1", Subject: "fe2", State: "down", Time: at(-time.Second)})
	events, dropped := o.sorted()
	var got []string
	for _, e := range events {
		got = append(got, fmt.Sprintf("%.1f %s %s", e.At, e.Source, e.What))
	}
	want := []string{"1.9 fe1 placement last sign of it", "2.0 storm kill fe2", "2.1 fe1 placement decided, epoch 7"}
	if !slices.Equal(got, want) || dropped != 0 || events[2].Detail != "fe2 is down; 1 groups, 1 promoted" {
		t.Errorf("%q %+v", got, events)
	}
}
