package frontend

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/routing"
)

// remove removes a user as `rollcall user rm` does.
func (p *realPool) remove(aor registrar.AOR) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
	defer cancel()
	if err := directory.New(routing.GroupNames(6), p.bus.Users()).Remove(ctx, aor); err != nil {
		p.t.Fatal(err)
	}
}

// bindings counts those of a user at his primary.
func (p *realPool) bindings(g routing.Group) int {
	p.t.Helper()
	primary := p.placement().Groups[g].Primary
	if primary == "" {
		return -1
	}
	c, ok := p.status(primary).Groups[g]
	if !ok || !c.Ready {
		return -1
	}
	return c.Bindings
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// A removed user's bindings go everywhere, with an event each; his connections close,
// another user's stay.
func TestRemovedUserIsRejected(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2")
	ivan, judy := p.provision("ivan"), p.provision("judy")
	p.await("two up", formed(2))
	var mu sync.Mutex
	rejected := map[string]bool{}
	if err := p.bus.Events(t.Context(), func(kind string, data []byte) {
		var e control.Event
		if json.Unmarshal(data, &e) == nil && e.Change == string(registrar.Rejected) && e.AOR == ivan.AOR {
			mu.Lock()
			rejected[e.Contact] = true
			mu.Unlock()
		}
	}); err != nil {
		t.Fatal(err)
	}
	var phones []*phone
	for i, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		for _, transport := range []string{"tcp", "udp"} {
			ph := p.phone("ivan", transport, p.address(fe, transport))
			ok(t, "register", ph.register(fmt.Sprintf("<sip:ivan@192.0.2.%d;transport=%s>", i, transport), "Expires: 300\r\n"))
			phones = append(phones, ph)
		}
	}
	shared := p.phone("judy", "tcp", p.address("fe1", "tcp"))
	ok(t, "the other", shared.register("<sip:judy@192.0.2.9>", "Expires: 300\r\n"))
	shared.user = "ivan"
	ok(t, "over the other's", shared.register("<sip:ivan@192.0.2.9>", "Expires: 300\r\n"))
	shared.user = "judy"

	begin := time.Now()
	p.remove(ivan.AOR)
	eventually(t, "five events", func() bool { mu.Lock(); defer mu.Unlock(); return len(rejected) == 5 })
	t.Logf("all rejected after %v", time.Since(begin))
	for _, ph := range phones {
		if ph.conn.LocalAddr().Network() == "tcp" && !ph.closes(10*time.Second) {
			t.Error("his connection stays open")
		}
	}
	want := 0
	if judy.Group == ivan.Group {
		want = 1
	}
	eventually(t, "no binding of his", func() bool { return p.bindings(ivan.Group) == want })
	if r := p.phone("ivan", "udp", p.address("fe2", "udp")).register("<sip:ivan@192.0.2.1>"); !strings.HasPrefix(r, "SIP/2.0 401 ") {
		t.Error(r)
	}
	ok(t, "the other still", shared.register(""), "<sip:judy@192.0.2.9>")
}

// Who was removed while no Front End was there loses his bindings when one serves them again.
func TestRemovedWhileNobodyHeard(t *testing.T) {
	p := newRealPool(t, "fe1")
	kate := p.provision("kate")
	p.await("one up", formed(1))
	ok(t, "register", p.phone("kate", "udp", p.address("fe1", "udp")).register("<sip:kate@192.0.2.1>", "Expires: 300\r\n"))
	p.kill("fe1")
	p.remove(kate.AOR)
	p.start("fe1", "again", 1)
	p.await("it is back", func(pl routing.Placement) bool { return pl.Members["fe1"].Boot == "again" && formed(1)(pl) })
	eventually(t, "rejected", func() bool { return p.bindings(kate.Group) == 0 })
}

// An account that is made again at once is another one: what it registers stays.
func TestRemovedAndProvisionedAgain(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2")
	u := p.provision("leo")
	p.await("two up", formed(2))
	for i := range 5 {
		old := fmt.Sprintf("<sip:leo@192.0.2.1;old=%d>", i)
		ph := p.phone("leo", "udp", p.address("fe1", "udp"))
		ok(t, "register", ph.register(old, "Expires: 300\r\n"))
		p.remove(u.AOR)
		u = p.provision("leo")
		next := fmt.Sprintf("<sip:leo@192.0.2.1;new=%d>", i)
		registered := ""
		eventually(t, "the new account is known", func() bool {
			registered = p.phone("leo", "udp", p.address("fe2", "udp")).register(next, "Expires: 300\r\n")
			return strings.HasPrefix(registered, "SIP/2.0 200 ")
		})
		eventually(t, "the old binding is gone", func() bool {
			r := p.phone("leo", "udp", p.address("fe2", "udp")).register("")
			return strings.HasPrefix(r, "SIP/2.0 200 ") && !strings.Contains(r, old)
		})
		ok(t, "query", p.phone("leo", "udp", p.address("fe2", "udp")).register(""), next)
	}
}
