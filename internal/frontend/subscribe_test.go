package frontend

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"
)

// Three users' subscriptions, over UDP and TCP, go on when their primary dies: every version
// follows the one before it, in the same dialogs, and the contacts keep their names.
func TestSubscriptionsOutliveTheirPrimary(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2", "fe3")
	p.await("three Front Ends up", formed(3))
	names, _, primary := p.usersOf(3)
	var alive []routing.FrontEnd
	for _, fe := range []routing.FrontEnd{"fe1", "fe2", "fe3"} {
		if fe != primary {
			alive = append(alive, fe)
		}
	}
	watchers, phones := make([]*watcherPhone, 3), make([]*phone, 3)
	ids := make([]string, 3)
	for i, name := range names {
		fe, transport := alive[i%2], []string{"udp", "tcp", "tcp"}[i]
		w := p.watcher(name, name, transport, p.address(fe, transport))
		w.subscribe("600")
		w.next("full init").state(t, "active;expires=")
		phones[i] = p.phone(name, "udp", p.address(fe, "udp"))
		ok(t, "register", phones[i].register("<sip:"+name+"@192.0.2.7>", "Expires: 300\r\n"))
		n := w.next("partial active registered")
		ids[i] = n.doc.Registration.Contacts[0].ID
		watchers[i] = w
	}
	p.kill(primary)
	p.await("promotion", func(pl routing.Placement) bool {
		for _, c := range pl.Groups {
			if c.Primary == primary {
				return false
			}
		}
		return true
	})
	for i, w := range watchers {
		n := w.next("full active registered") // the promoted primary makes sure that nothing is missing
		ok(t, "refresh", phones[i].register("<sip:"+names[i]+"@192.0.2.7>", "Expires: 300\r\n"))
		m := w.next("partial active refreshed")
		for _, c := range append(n.doc.Registration.Contacts, m.doc.Registration.Contacts...) {
			if c.ID != ids[i] {
				t.Errorf("the contact %s became %s", ids[i], c.ID)
			}
		}
		w.subscribe("600") // within the dialog, which the promoted primary knows
		w.next("full active refreshed")
		ok(t, "un-register", phones[i].register("<sip:"+names[i]+"@192.0.2.7>", "Expires: 0\r\n"))
		w.next("partial terminated unregistered")
		w.subscribe("0")
		w.next("full init").state(t, "terminated;reason=timeout")
	}
}

// The primary stored a change and died before its NOTIFY left: the promoted one tells everything under the next number.
func TestNotifyLostWithThePrimary(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2", "fe3")
	before := p.await("three up", formed(3))
	alice := p.provision("alice")
	c := before.Groups[alice.Group]
	w := p.watcher("alice", "alice", "udp", p.address(c.Tertiary, "udp"))
	w.status.Store(0) // the first NOTIFY stays unanswered, and the second one must wait for it
	w.subscribe("600")
	w.next("full init")
	ok(t, "register", p.phone("alice", "udp", p.address(c.Tertiary, "udp")).register("<sip:alice@192.0.2.7>", "Expires: 300\r\n"))
	p.awaitStored(alice, "the second NOTIFY is numbered", func(s registrar.Set) bool {
		return len(s.Subscriptions) == 1 && s.Subscriptions[0].Notified == 2 && len(s.Bindings) == 1
	})
	p.kill(c.Primary)
	w.status.Store(200)
	n := w.after("full active registered")
	if n.doc.Version != 2 {
		t.Errorf("version %d: 1 was given to what never left", n.doc.Version)
	}
}

// What a watcher may ask, and what he is answered: at the primary and elsewhere, over UDP and TCP.
func TestSubscribeAnswers(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) {
		c.Watchers = []registrar.AOR{"sip:admin@example.test"}
		c.Subscriptions = registrar.DefaultSubscribePolicy()
		c.Subscriptions.PerUser = 100
		c.Auth.NC = registrar.NCOff // so many challenges in one second are more than a user's memory of nonces
	}, "fe1", "fe2")
	p.provision("alice")
	p.provision("bob")
	p.provision("admin")
	p.await("two up", formed(2))
	for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		for _, transport := range []string{"udp", "tcp"} {
			for _, c := range []struct {
				name, me, whom string
				expires        string
				extra          string
				answer, header string
			}{
				{"himself", "alice", "alice", "600", "", "200", "Expires: 600"},
				{"somebody else", "bob", "alice", "600", "", "403", ""},
				{"somebody else, for an appointed watcher", "admin", "alice", "600", "", "200", "Expires: 600"},
				{"nobody", "alice", "nobody", "600", "", "403", ""},
				{"without Expires", "alice", "alice", "-", "", "200", "Expires: 3761"},
				{"too brief", "alice", "alice", "30", "", "423", "Min-Expires: 60"},
				{"another package", "alice", "alice", "600", "Event: presence", "489", "Allow-Events: reg"},
				{"no package", "alice", "alice", "600", "Event: -", "489", "Allow-Events: reg"},
				{"malformed Event", "alice", "alice", "600", "Event: ;id=1", "400", ""},
				{"other documents only", "alice", "alice", "600", "Accept: text/plain", "406", "Accept: application/reginfo+xml"},
				{"no Accept", "alice", "alice", "600", "Accept: -", "200", ""},
				{"no Contact", "alice", "alice", "600", "Contact: -", "400", ""},
				{"a dialog that is not", "alice", "alice", "600", "To: <sip:alice@example.test>;tag=none", "481", ""},
				{"an unknown extension", "alice", "alice", "600", "Require: eventlist", "420", "Unsupported: eventlist"},
				{"another domain", "alice", "alice", "600", "To: <sip:alice@elsewhere.test>", "404", ""},
			} {
				w := p.watcher(c.me, c.whom, transport, p.address(fe, transport))
				var extra []string
				if c.extra != "" {
					extra = []string{c.extra}
				}
				m := w.ask(c.expires, extra...)
				name, value, _ := strings.Cut(c.header, ": ")
				if !strings.HasPrefix(m.first, "SIP/2.0 "+c.answer+" ") || c.header != "" && m.header.Get(name) != value {
					t.Errorf("%s at %s over %s: %s %v", c.name, fe, transport, m.first, m.header)
				}
				w.conn.Close()
			}
		}
	}
}

// A subscription ends when its watcher wants it, when its time is over, and when he is not there any more.
func TestSubscriptionsEnd(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) {
		c.Policy.Grace = 100 * time.Millisecond
		c.Subscriptions = registrar.DefaultSubscribePolicy()
		c.Subscriptions.MinExpires = time.Second
	}, "fe1", "fe2")
	alice := p.provision("alice")
	p.await("two up", formed(2))
	primary := p.placement().Groups[alice.Group].Primary
	other := map[routing.FrontEnd]routing.FrontEnd{"fe1": "fe2", "fe2": "fe1"}[primary]
	change := p.phone("alice", "udp", p.address(primary, "udp"))
	for _, fe := range []routing.FrontEnd{primary, other} {
		t.Run("unsubscribed at "+string(fe), func(t *testing.T) {
			w := p.watcher("alice", "alice", "tcp", p.address(fe, "tcp"))
			w.subscribe("600")
			w.after("full init")
			w.subscribe("0")
			w.after("full init").state(t, "terminated;reason=timeout")
			p.awaitStored(alice, "unsubscribed", unwatched)
		})
		t.Run("fetched at "+string(fe), func(t *testing.T) {
			w := p.watcher("alice", "alice", "udp", p.address(fe, "udp"))
			w.subscribe("0")
			w.next("full init").state(t, "terminated;reason=timeout")
			p.awaitStored(alice, "nothing is stored", unwatched)
		})
		t.Run("expired at "+string(fe), func(t *testing.T) {
			w := p.watcher("alice", "alice", "udp", p.address(fe, "udp"))
			w.subscribe("1")
			w.next("full init")
			w.next("full init").state(t, "terminated;reason=timeout")
			p.awaitStored(alice, "expired", unwatched)
		})
		t.Run("481 at "+string(fe), func(t *testing.T) {
			w := p.watcher("alice", "alice", "udp", p.address(fe, "udp"))
			w.status.Store(481)
			w.subscribe("600")
			w.next("full init")
			p.awaitStored(alice, "481 ends it", unwatched)
			if m := w.ask("600"); !strings.HasPrefix(m.first, "SIP/2.0 481") {
				t.Errorf("a refresh of what is gone: %s", m.first)
			}
		})
		t.Run("connection closed at "+string(fe), func(t *testing.T) {
			w := p.watcher("alice", "alice", "tcp", p.address(fe, "tcp"))
			w.subscribe("600")
			w.next("full init")
			w.conn.Close()
			p.awaitStored(alice, "the flow is gone", unwatched)
		})
	}
	ok(t, "register", change.register("<sip:alice@192.0.2.7>", "Expires: 300\r\n"))
}

// The same SUBSCRIBE twice, as when the 200 was lost, has the same answer and makes no second subscription.
func TestRepeatedSubscribe(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2")
	alice := p.provision("alice")
	p.await("two up", formed(2))
	for i, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		w := p.watcher("alice", "alice", "udp", p.address(fe, "udp"))
		first := w.send("600", "")
		nonce := nonceIn.FindStringSubmatch(first.header.Get("Www-Authenticate"))[1]
		ha1, _ := registrar.HA1("MD5", "alice", "example.test", "secret")
		ha2, _ := registrar.HA1("MD5", "SUBSCRIBE", "sip", "alice@example.test")
		response, _ := registrar.HA1("MD5", ha1, nonce, "00000001:x:auth:"+ha2)
		w.cseq++
		text := w.text("600", fmt.Sprintf("Authorization: Digest username=\"alice\", realm=\"example.test\", nonce=%q, uri=\"sip:alice@example.test\", "+
			"response=%q, algorithm=MD5, qop=auth, nc=00000001, cnonce=\"x\"\r\n", nonce, response))
		a, b := w.exchange(text), w.exchange(text)
		if !strings.HasPrefix(a.first, "SIP/2.0 200") || a.first != b.first || a.header.Get("To") != b.header.Get("To") {
			t.Errorf("%s %s, then %s %s", a.first, a.header.Get("To"), b.first, b.header.Get("To"))
		}
		if n := len(p.stored(alice).Subscriptions); n != i+1 {
			t.Errorf("%d subscriptions", n)
		}
	}
}

// A watcher who does not answer delays no REGISTER, and what happened meanwhile comes in one NOTIFY.
func TestSilentWatcher(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) { c.Auth.NC = registrar.NCOff }, "fe1", "fe2")
	alice := p.provision("alice")
	p.await("two up", formed(2))
	primary := p.placement().Groups[alice.Group].Primary
	other := map[routing.FrontEnd]routing.FrontEnd{"fe1": "fe2", "fe2": "fe1"}[primary]
	for _, fe := range []routing.FrontEnd{primary, other} {
		w := p.watcher("alice", "alice", "udp", p.address(fe, "udp"))
		w.status.Store(0)
		w.subscribe("600")
		first := w.next("full init")
		ph := p.phone("alice", "udp", p.address(fe, "udp"))
		began := time.Now()
		for range 20 {
			ok(t, "register", ph.register("<sip:alice@192.0.2.7>", "Expires: 300\r\n"))
		}
		if took := time.Since(began); took > 10*time.Second { // a client transaction waits 32 s
			t.Errorf("20 REGISTERs took %v", took)
		}
		w.status.Store(200)
		w.next("partial active registered").state(t, "active;expires=")
		if first.doc.Version != 0 || w.version != 1 {
			t.Errorf("version %d", w.version)
		}
		ok(t, "un-register", ph.register("<sip:alice@192.0.2.7>", "Expires: 0\r\n"))
		w.next("partial terminated unregistered")
		w.subscribe("0")
		w.next("full init")
	}
}

// A watcher behind a UDP address that several Front Ends share is told by those that are left.
func TestSharedAddressOutlivesItsFrontEnd(t *testing.T) {
	shared := freePort(t)
	p := newTweakedPool(t, func(c *Config) {
		c.Listen = append(c.Listen, sipfront.Listen{Transport: "udp", Addr: shared, Shared: true})
	}, "fe1", "fe2", "fe3")
	alice := p.provision("alice")
	p.await("three up", formed(3))
	w := p.watcher("alice", "alice", "udp", shared)
	w.subscribe("600")
	w.next("full init")
	took := routing.FrontEnd(p.stored(alice).Subscriptions[0].Flow.FrontEnd)
	p.kill(took)
	after := p.await("it is down", func(pl routing.Placement) bool {
		return pl.Members[took].State == routing.Down && pl.Groups[alice.Group].Primary != took && pl.Groups[alice.Group].Primary != ""
	})
	ok(t, "register", p.phone("alice", "udp", p.address(after.Groups[alice.Group].Primary, "udp")).register("<sip:alice@192.0.2.7>", "Expires: 300\r\n"))
	for {
		n := <-w.notifies
		if len(n.doc.Registration.Contacts) == 1 {
			break
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.LocalAddr().String()
}

// The watchers of a user who is removed hear that his contacts were rejected and that there is nothing more to watch.
func TestRemovedUserIsWatchedNoMore(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) { c.Watchers = []registrar.AOR{"sip:admin@example.test"} }, "fe1", "fe2")
	alice := p.provision("alice")
	p.provision("admin")
	p.await("two up", formed(2))
	w := p.watcher("admin", "alice", "tcp", p.address("fe1", "tcp"))
	w.subscribe("600")
	w.next("full init")
	ok(t, "register", p.phone("alice", "udp", p.address("fe2", "udp")).register("<sip:alice@192.0.2.7>", "Expires: 300\r\n"))
	w.next("partial active registered")
	e, err := p.bus.Users().Get(t.Context(), string(alice.AOR))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.bus.Users().Put(t.Context(), bus.Write{Key: e.Key, Expect: e.Revision}); err != nil {
		t.Fatal(err)
	}
	w.next("partial terminated rejected").state(t, "terminated;reason=noresource")
	p.awaitStored(alice, "nobody watches", unwatched)
}

// A watcher who fails is told everything after a rest, under the next number. When he fails again and again, his subscription ends.
func TestFailingWatcher(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) { c.NotifyRest = 50 * time.Millisecond }, "fe1", "fe2")
	alice := p.provision("alice")
	p.await("two up", formed(2))
	for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		w := p.watcher("alice", "alice", "tcp", p.address(fe, "tcp"))
		w.failing.Store(mostFailures - 1)
		w.subscribe("600")
		for range mostFailures {
			w.next("full init")
		}
		p.awaitStored(alice, "three NOTIFYs", func(s registrar.Set) bool { return len(s.Subscriptions) == 1 && s.Subscriptions[0].Notified == 3 })
		w.status.Store(503)
		w.subscribe("600")
		for range mostFailures {
			w.next("full init")
		}
		p.awaitStored(alice, "given up", unwatched)
	}
}
