package frontend

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/registrar"
	"rollcall/routing"
)

// closes waits until the other side closes the phone's connection.
func (c *phone) closes(within time.Duration) bool {
	c.t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	var b [4096]byte
	for {
		_, err := c.conn.Read(b[:])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return false
		}
		if err != nil {
			return true
		}
	}
}

const deviceOne = `;+sip.instance="<urn:uuid:00000000-0000-0000-0000-000000000001>";reg-id=1`

func outboundContact(ph *phone) string {
	return fmt.Sprintf("<sip:%s@%s;transport=tcp>", ph.user, ph.conn.LocalAddr()) + deviceOne
}

// A device that registers over a new connection leaves none behind, wherever both
// are; the new one and its binding stay.
func TestReplacedConnectionIsClosed(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2")
	p.provision("dave")
	p.await("two up", formed(2))
	last := p.phone("dave", "tcp", p.address("fe1", "tcp"))
	ok(t, "first", last.register(outboundContact(last), "Expires: 300\r\n"))
	for i, fe := range []routing.FrontEnd{"fe1", "fe2", "fe2", "fe1"} {
		next := p.phone("dave", "tcp", p.address(fe, "tcp"))
		ok(t, "again at "+string(fe), next.register(outboundContact(next), "Expires: 300\r\n"))
		if !last.closes(10 * time.Second) {
			t.Fatalf("%d: the old connection stays open", i)
		}
		ok(t, "afterwards", next.register(""), next.conn.LocalAddr().String())
		last = next
	}
	if last.closes(3 * idleLinger) {
		t.Error("the connection that is in use was closed")
	}
}

// A client that unregisters gets its 200 and keeps its connection.
func TestUnregisteredConnectionStays(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2")
	p.provision("erin")
	p.await("two up", formed(2))
	for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		ph := p.phone("erin", "tcp", p.address(fe, "tcp"))
		ok(t, "register", ph.register(outboundContact(ph), "Expires: 300\r\n"))
		ok(t, "unregister", ph.register(outboundContact(ph), "Expires: 0\r\n"))
		if ph.closes(3 * idleLinger) {
			t.Error("closed")
		}
		ok(t, "register again", ph.register(outboundContact(ph), "Expires: 300\r\n"))
		ok(t, "unregister all", ph.register("*", "Expires: 0\r\n"))
	}
}

func shortLived(c *Config) {
	c.Policy.MinExpires, c.Policy.Grace = time.Second, time.Second
}

// The connection of an expired binding is closed when no other binding lives on it, of whatever user.
func TestExpiredConnectionIsClosed(t *testing.T) {
	p := newTweakedPool(t, shortLived, "fe1", "fe2")
	p.provision("frank")
	p.provision("grace")
	p.await("two up", formed(2))
	for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		alone := p.phone("frank", "tcp", p.address(fe, "tcp"))
		ok(t, "alone", alone.register("<sip:frank@192.0.2.1>", "Expires: 1\r\n"))
		shared := p.phone("frank", "tcp", p.address(fe, "tcp"))
		ok(t, "shared", shared.register("<sip:frank@192.0.2.2>", "Expires: 1\r\n"))
		shared.user = "grace"
		ok(t, "the other", shared.register("<sip:grace@192.0.2.2>", "Expires: 300\r\n"))
		if !alone.closes(20 * time.Second) {
			t.Fatalf("%s: the connection of an expired binding stays open", fe)
		}
		ok(t, "the other, later", shared.register(""), "<sip:grace@192.0.2.2>")
	}
}

// A device that changes connections as fast as it can is never turned away, and what it
// registered last is there in the end.
func TestClosingNeverHitsTheNewBinding(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) { c.Auth.NC = registrar.NCOff }, "fe1", "fe2") // more nonces in a second than are remembered
	p.provision("heidi")
	p.await("two up", formed(2))
	fes := []routing.FrontEnd{"fe1", "fe2"}
	var last *phone
	for i := range 40 {
		if i%3 != 2 || last.closes(time.Microsecond) { // sometimes over the same again
			last = p.phone("heidi", "tcp", p.address(fes[i%2], "tcp"))
		}
		ok(t, fmt.Sprint("change ", i), last.register(outboundContact(last), "Expires: 300\r\n"))
	}
	if last.closes(3 * idleLinger) {
		t.Fatal("the newest connection was closed")
	}
	if r := last.register(""); strings.Count(r, "\r\nContact:") != 1 || !strings.Contains(r, last.conn.LocalAddr().String()) {
		t.Error(r)
	}
}

// Who is driven out by a limit keeps its connection: it would come back and drive out the next.
func TestDrivenOutKeepsItsConnection(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) { c.Policy.MaxContacts, c.Policy.WhenFull = 1, registrar.ReplaceOldest }, "fe1")
	p.provision("pat")
	p.await("one up", formed(1))
	old, next := p.phone("pat", "tcp", p.address("fe1", "tcp")), p.phone("pat", "tcp", p.address("fe1", "tcp"))
	ok(t, "the first", old.register("<sip:pat@192.0.2.1>", "Expires: 300\r\n"))
	ok(t, "the second", next.register("<sip:pat@192.0.2.2>", "Expires: 300\r\n"))
	if old.closes(3 * idleLinger) {
		t.Error("closed")
	}
	ok(t, "the first, back", old.register("<sip:pat@192.0.2.1>", "Expires: 300\r\n"), "192.0.2.1")
}

// The rules of one connection, without a network.
func TestFlowUse(t *testing.T) {
	flow := registrar.Flow{FrontEnd: "fe1", Boot: "b", Transport: "tcp", ID: 7}
	gone := func(user registrar.AOR, at int, closing bool) released {
		return released{User: user, Flow: flow, At: bus.Position(at), Close: closing}
	}
	for name, c := range map[string]struct {
		run  func(*flows)
		idle bool // in the end
	}{
		"nobody was there":      {func(f *flows) { f.release(gone("a", 1, true)) }, false},
		"the only one is gone":  {func(f *flows) { f.note(flow, "a", 1); f.release(gone("a", 2, true)) }, true},
		"by un-REGISTER":        {func(f *flows) { f.note(flow, "a", 1); f.release(gone("a", 2, false)) }, false},
		"one of two":            {func(f *flows) { f.note(flow, "a", 1); f.note(flow, "b", 2); f.release(gone("a", 3, true)) }, false},
		"he came back":          {func(f *flows) { f.note(flow, "a", 5); f.release(gone("a", 2, true)) }, false},
		"closed by the client":  {func(f *flows) { f.note(flow, "a", 1); f.close(flow, time.Time{}); f.release(gone("a", 2, true)) }, false},
		"a REGISTER came after": {func(f *flows) { f.note(flow, "a", 1); f.release(gone("a", 2, true)); f.enter(flow); f.leave(flow) }, false},
		"a REGISTER under way": {func(f *flows) {
			f.note(flow, "a", 1)
			f.enter(flow)
			f.release(gone("a", 2, true))
			f.leave(flow)
		}, false},
		"the release overtakes the answer": {func(f *flows) {
			f.note(flow, "b", 1)
			f.enter(flow)
			f.release(gone("a", 3, true))
			f.note(flow, "a", 2) // he has none any more
			f.leave(flow)
			f.release(gone("b", 4, true))
		}, true},
	} {
		f := newFlows()
		c.run(f)
		if got := f.takeIdle(flow.ID); got != c.idle {
			t.Errorf("%s: idle %v", name, got)
		}
		f.close(flow, time.Time{})
		if len(f.byID) > 0 {
			t.Errorf("%s: something is left: %+v", name, f.byID[flow.ID])
		}
	}
}

// What is of no use is forgotten, so that the table is no larger than the connections.
func TestFlowUseIsForgotten(t *testing.T) {
	f, flow := newFlows(), registrar.Flow{Transport: "tcp", ID: 7}
	f.enter(flow)
	f.leave(flow)
	f.enter(registrar.Flow{Transport: "udp"})
	f.note(flow, "a", 1)
	f.release(released{User: "a", Flow: flow, At: 2})
	if len(f.byID) > 0 {
		t.Errorf("%+v", f.byID)
	}
	f.enter(flow)
	f.close(flow, time.Now()) // while its REGISTER is under way
	f.leave(flow)
	if len(f.byID) > 0 {
		t.Errorf("%+v", f.byID)
	}
}
