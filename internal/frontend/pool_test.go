package frontend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/bus/natsbus"
	"rollcall/internal/control"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"
)

// realPool is Front Ends of this process on a real bus and real sockets.
type realPool struct {
	t      *testing.T
	server *natsbus.Server
	bus    bus.Bus // of the test itself
	stop   map[routing.FrontEnd]func()
	tweak  func(*Config) // of Front Ends started from now on; nil: nothing
}

// once is a bus that may be closed twice: by the test that kills its Front End, and at the end.
type once struct {
	bus.Bus
	close func() error
}

func (o once) Close() error { return o.close() }

func newRealPool(t *testing.T, names ...routing.FrontEnd) *realPool {
	t.Helper()
	return newTweakedPool(t, nil, names...)
}

func newTweakedPool(t *testing.T, tweak func(*Config), names ...routing.FrontEnd) *realPool {
	t.Helper()
	s, err := natsbus.StartServer(natsbus.ServerOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Shutdown)
	p := &realPool{t: t, server: s, stop: map[routing.FrontEnd]func(){}, tweak: tweak}
	p.bus = p.connect("test")
	for i, n := range names {
		p.start(n, fmt.Sprintf("boot-%d", i), len(names))
	}
	return p
}

func (p *realPool) connect(name string) bus.Bus {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	b, err := natsbus.Open(ctx, natsbus.Options{URLs: []string{p.server.ClientURL()}, Name: name})
	if err != nil {
		p.t.Fatal(err)
	}
	o := once{b, sync.OnceValue(b.Close)}
	p.t.Cleanup(func() { o.Close() })
	return o
}

func (p *realPool) start(name routing.FrontEnd, boot string, expect int) {
	p.t.Helper()
	b := p.connect(string(name))
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("ROLLCALL_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	cfg := Config{
		Name: name, Boot: boot, Domains: []string{"example.test"}, Authenticate: true,
		Auth:   registrar.Authenticator{Realm: "example.test", Key: []byte("0123456789abcdef")},
		Policy: registrar.DefaultPolicy(), Health: "127.0.0.1:0", Groups: 6, Expect: expect,
		Listen: []sipfront.Listen{{Transport: "udp", Addr: "127.0.0.1:0"}, {Transport: "tcp", Addr: "127.0.0.1:0"}},
	}
	if p.tweak != nil {
		p.tweak(&cfg)
	}
	f, err := New(cfg, Deps{Bus: b, Log: log})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	stop := func() {
		b.Close() // nobody there, from now on
		cancel()
		if err := <-done; err != nil {
			p.t.Errorf("%s: %v", name, err)
		}
	}
	p.stop[name] = stop
	p.t.Cleanup(func() {
		if p.stop[name] != nil {
			p.kill(name)
		}
	})
}

func (p *realPool) kill(name routing.FrontEnd) {
	p.stop[name]()
	p.stop[name] = nil
}

func (p *realPool) placement() routing.Placement {
	e, err := p.bus.Pool().Get(p.t.Context(), control.PlacementKey)
	if errors.Is(err, bus.ErrNotFound) {
		return routing.Placement{}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	pl, err := routing.Decode(e.Value)
	if err != nil {
		p.t.Fatal(err)
	}
	pl.Epoch = routing.Epoch(e.Revision)
	return pl
}

// await polls until the placement satisfies ok.
func (p *realPool) await(what string, ok func(routing.Placement) bool) routing.Placement {
	p.t.Helper()
	for deadline := time.Now().Add(15 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if pl := p.placement(); ok(pl) {
			return pl
		} else if time.Now().After(deadline) {
			p.t.Fatalf("never: %s\n%s", what, pl.Describe())
		}
	}
}

func (p *realPool) status(fe routing.FrontEnd) (s control.FrontEndStatus) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Second)
	defer cancel()
	data, err := p.bus.Request(ctx, string(fe), control.VerbStatus, nil)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func (p *realPool) address(fe routing.FrontEnd, transport string) string {
	p.t.Helper()
	for _, a := range p.status(fe).SIP {
		if t, addr, _ := strings.Cut(a, ":"); t == transport {
			return addr
		}
	}
	p.t.Fatalf("%s has no address for %s", fe, transport)
	return ""
}

func (p *realPool) provision(user string) directory.User {
	p.t.Helper()
	return p.provisionIn("example.test", user, "secret")
}

// provisionIn makes a user of a domain that is its own realm.
func (p *realPool) provisionIn(domain, user, password string) directory.User {
	p.t.Helper()
	ha1, err := registrar.HA1("MD5", user, domain, password)
	if err != nil {
		p.t.Fatal(err)
	}
	users := directory.New(routing.GroupNames(6), p.bus.Users())
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	if err := users.Follow(ctx); err != nil {
		p.t.Fatal(err)
	}
	u, err := users.Provision(p.t.Context(), directory.User{AOR: registrar.AOR("sip:" + user + "@" + domain), HA1: map[string]string{"MD5": ha1}})
	if err != nil {
		p.t.Fatal(err)
	}
	return u
}

// phone is a client on one socket.
type phone struct {
	t      *testing.T
	conn   net.Conn
	user   string
	callID string
	cseq   int
}

func (p *realPool) phone(user, transport, address string) *phone {
	p.t.Helper()
	c, err := net.Dial(transport, address)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return &phone{t: p.t, conn: c, user: user, callID: fmt.Sprintf("%s-%s-%d", user, c.LocalAddr(), time.Now().UnixNano())} // a port may come again
}

var nonceIn = regexp.MustCompile(`nonce="([^"]+)"`)

// register sends a REGISTER, answers a challenge, and returns the final response.
func (c *phone) register(contact string, extra ...string) string {
	c.t.Helper()
	r := c.send(contact, "", extra...)
	if strings.HasPrefix(r, "SIP/2.0 401") {
		nonce := nonceIn.FindStringSubmatch(r)[1]
		ha1, _ := registrar.HA1("MD5", c.user, "example.test", "secret")
		ha2, _ := registrar.HA1("MD5", "REGISTER", "sip", "example.test") // MD5(REGISTER:sip:example.test)
		response, _ := registrar.HA1("MD5", ha1, nonce, "00000001:x:auth:"+ha2)
		r = c.send(contact, fmt.Sprintf("Authorization: Digest username=%q, realm=\"example.test\", nonce=%q, uri=\"sip:example.test\", "+
			"response=%q, algorithm=MD5, qop=auth, nc=00000001, cnonce=\"x\"\r\n", c.user, nonce, response), extra...)
	}
	return r
}

func (c *phone) send(contact, auth string, extra ...string) string {
	c.t.Helper()
	c.cseq++
	transport := strings.ToUpper(c.conn.LocalAddr().Network())
	if contact != "" {
		contact = "Contact: " + contact + "\r\n"
	}
	msg := fmt.Sprintf("REGISTER sip:example.test SIP/2.0\r\nVia: SIP/2.0/%s %s;rport;branch=z9hG4bK%s-%d\r\nMax-Forwards: 70\r\n"+
		"From: <sip:%s@example.test>;tag=f\r\nTo: <sip:%s@example.test>\r\nCall-ID: %s\r\nCSeq: %d REGISTER\r\n%s%s%sContent-Length: 0\r\n\r\n",
		transport, c.conn.LocalAddr(), c.callID, c.cseq, c.user, c.user, c.callID, c.cseq, contact, auth, strings.Join(extra, ""))
	if _, err := c.conn.Write([]byte(msg)); err != nil {
		c.t.Fatal(err)
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, 65536)
	for {
		n, err := c.conn.Read(buf)
		if err != nil {
			c.t.Fatalf("no answer to %s: %v", strings.SplitN(msg, "\r\n", 2)[0], err)
		}
		if r := string(buf[:n]); !strings.HasPrefix(r, "SIP/2.0 100") {
			return r
		}
	}
}

func ok(t *testing.T, what, response string, contains ...string) {
	t.Helper()
	if !strings.HasPrefix(response, "SIP/2.0 200 ") {
		t.Fatalf("%s: %s", what, response)
	}
	for _, s := range contains {
		if !strings.Contains(response, s) {
			t.Errorf("%s: no %q in\n%s", what, s, response)
		}
	}
}

func formed(n int) func(routing.Placement) bool {
	return func(p routing.Placement) bool {
		up := 0
		for _, m := range p.Members {
			if m.State == routing.Up {
				up++
			}
		}
		return up == n && p.Check() == nil
	}
}

// A user registers through every Front End, over UDP and TCP; the primary dies, the
// secondary is promoted and knows every binding; the dead one returns without a primary.
func TestPoolOverARealBus(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2", "fe3")
	alice := p.provision("alice")
	before := p.await("three Front Ends up", formed(3))
	var contacts []string
	for _, fe := range []routing.FrontEnd{"fe1", "fe2", "fe3"} {
		for _, transport := range []string{"udp", "tcp"} {
			ph := p.phone("alice", transport, p.address(fe, transport))
			contact := fmt.Sprintf("<sip:alice@192.0.2.1:%d;transport=%s>", 5000+len(contacts), transport)
			contacts = append(contacts, contact)
			ok(t, transport+" through "+string(fe), ph.register(contact, "Expires: 300\r\n"), contacts...)
		}
	}
	primary := before.Groups[alice.Group].Primary
	t.Logf("%s is at %+v of\n%s", alice.Group, before.Groups[alice.Group], before.Describe())
	secondary := before.Groups[alice.Group].Secondary
	p.kill(primary)
	after := p.await("promotion", func(pl routing.Placement) bool { return pl.Groups[alice.Group].Primary == secondary })
	if after.Epoch <= before.Epoch {
		t.Errorf("the epoch went from %d to %d", before.Epoch, after.Epoch)
	}
	for fe := range after.Members {
		if fe != primary {
			ph := p.phone("alice", "udp", p.address(fe, "udp"))
			ok(t, "query through "+string(fe), ph.register(""), contacts...)
		}
	}
	p.start(primary, "boot-again", 3)
	back := p.await("the return", formed(3))
	prim, _, _ := back.GroupsOf(primary)
	if len(prim) != 0 {
		t.Errorf("%s came back and took primaries %v", primary, prim)
	}
	ok(t, "query through the returned", p.phone("alice", "udp", p.address(primary, "udp")).register(""), contacts...)
}

// All Front Ends are stopped and started: what was acknowledged is there.
func TestWholePoolRestarts(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2")
	p.provision("bob")
	p.await("two up", formed(2))
	ok(t, "register", p.phone("bob", "udp", p.address("fe1", "udp")).register("<sip:bob@192.0.2.7>", "Expires: 300\r\n"))
	p.kill("fe1")
	p.kill("fe2")
	p.start("fe1", "again-1", 2)
	p.start("fe2", "again-2", 2)
	p.await("both with their new boots", func(pl routing.Placement) bool {
		return pl.Members["fe1"].Boot == "again-1" && pl.Members["fe2"].Boot == "again-2" && formed(2)(pl)
	})
	ok(t, "query", p.phone("bob", "udp", p.address("fe2", "udp")).register(""), "<sip:bob@192.0.2.7>")
}

// A binding lives as long as its connection, wherever that ends and wherever the primary is.
func TestClosedConnectionTakesItsBinding(t *testing.T) {
	p := newRealPool(t, "fe1", "fe2")
	p.provision("carol")
	p.await("two up", formed(2))
	watch := p.phone("carol", "udp", p.address("fe1", "udp"))
	for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		contact := "<sip:carol@192.0.2.9;fe=" + string(fe) + ">"
		ph := p.phone("carol", "tcp", p.address(fe, "tcp"))
		ok(t, "over "+string(fe), ph.register(contact, "Expires: 300\r\n"), contact)
		again := p.phone("carol", "tcp", p.address(fe, "tcp"))
		ph.conn.Close()
		ok(t, "reconnected", again.register("<sip:carol@192.0.2.9;again="+string(fe)+">", "Expires: 300\r\n"))
		deadline := time.Now().Add(5 * time.Second)
		for {
			r := watch.register("")
			ok(t, "query", r, "again="+string(fe))
			if !strings.Contains(r, contact) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("the binding outlived its connection at %s:\n%s", fe, r)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}
