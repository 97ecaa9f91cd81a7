package sipfront

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/registrar"

	"github.com/pion/stun/v3"
)

// Row 38. Without rport the answer goes to the Via's port; with it, to where the request came from.
func TestAnswerPort(t *testing.T) {
	s := open(t, newAnswerer(nil), nil)
	listening, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	_ = listening.SetDeadline(time.Now().Add(patience))
	sending := dial(t, s, "udp")
	write(t, sending, register("alice", 1, "192.0.2.10:5060;branch => "+listening.LocalAddr().String()+";branch", ";rport => ;x"))
	buf := make([]byte, 4096)
	n, from, err := listening.ReadFrom(buf)
	if err != nil {
		t.Fatal(err)
	}
	wantStatus(t, string(buf[:n]), 200)
	if from.String() != address(t, s, "udp") {
		t.Errorf("answered from %s", from)
	}
	write(t, sending, register("alice", 2, "192.0.2.10:5060;branch => "+listening.LocalAddr().String()+";branch"))
	r := &reader{c: sending}
	got := r.next(t)
	wantStatus(t, got, 200)
	if via := field(got, "Via"); !strings.Contains(via, ";rport="+port(sending.LocalAddr())) {
		t.Errorf("Via %s", via)
	}
}

func port(a net.Addr) string {
	_, p, _ := net.SplitHostPort(a.String())
	return p
}

// Row 22. A retransmission gets the same answer, To-tag and all, and while the first is being answered it is dropped.
func TestRetransmission(t *testing.T) {
	hold := make(chan struct{})
	a := newAnswerer(func(_ context.Context, in *Inbound) []byte {
		<-hold
		return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
	})
	s := open(t, a, nil)
	r := &reader{c: dial(t, s, "udp")}
	for range 3 {
		write(t, r.c, register("alice", 1))
	}
	// What comes in order behind the retransmissions shows that they have been read.
	write(t, r.c, register("bob", 1, "REGISTER sip => OPTIONS sip", "1 REGISTER => 1 OPTIONS"))
	wantStatus(t, r.next(t), 200)
	if n := s.Stats().Drops[DropRetransmission.String()]; n != 2 {
		t.Errorf("%d dropped", n)
	}
	close(hold)
	first := r.next(t)
	wantStatus(t, first, 200)
	if !strings.Contains(field(first, "To"), ";tag=") {
		t.Errorf("no tag: %q", first)
	}
	write(t, r.c, register("alice", 1))
	if again := r.next(t); again != first {
		t.Errorf("not the same again:\n%q\n%q", first, again)
	}
	if n := len(a.requests()); n != 2 {
		t.Errorf("%d at the Handler", n)
	}
}

// A REGISTER over UDP that is held gets one 100 after 3.5 s, and a retransmission then gets it again (RFC 4320 §4.1).
func TestTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet()
		a := newAnswerer(func(_ context.Context, in *Inbound) []byte {
			time.Sleep(20 * time.Second)
			return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
		})
		s := open(t, a, func(c *Config) { c.Net, c.Listen = n, n.listen() })
		from := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.9.9.9:5060"))
		start := time.Now()
		n.packets.in <- packet{register("alice", 1), from}
		got := <-n.packets.out
		wantStatus(t, got.data, 100)
		if d := time.Since(start); d < 3500*time.Millisecond || d > 4*time.Second {
			t.Errorf("100 after %v", d)
		}
		if strings.Contains(field(got.data, "To"), "tag=") || got.addr.String() != from.String() {
			t.Errorf("to %s: %q", got.addr, got.data)
		}
		n.packets.in <- packet{register("alice", 1), from}
		wantStatus(t, (<-n.packets.out).data, 100)
		wantStatus(t, (<-n.packets.out).data, 200)
		if d := time.Since(start); d != 20*time.Second {
			t.Errorf("200 after %v", d)
		}
		synctest.Wait()
		if st := s.Stats(); st.Trying != 1 || st.InFlight != 0 || len(a.requests()) != 1 {
			t.Errorf("%+v", st)
		}
	})
}

// Above MaxInFlight there is a 503 with a Retry-After of its own for each client, never 0; and places come free again.
func TestAdmission(t *testing.T) {
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			hold := make(chan struct{})
			a := newAnswerer(func(_ context.Context, in *Inbound) []byte {
				<-hold
				return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
			})
			s := open(t, a, func(c *Config) { c.MaxInFlight = 2 })
			r := &reader{c: dial(t, s, transport)}
			write(t, r.c, register("alice", 1))
			write(t, r.c, register("bob", 1))
			waits := map[string]bool{}
			for i := range 50 {
				write(t, r.c, register(fmt.Sprint("user", i), 1))
				got := r.next(t)
				wantStatus(t, got, 503)
				waits[field(got, "Retry-After")] = true
				if !strings.Contains(field(got, "To"), ";tag=") {
					t.Fatalf("no tag: %q", got)
				}
			}
			if len(waits) < 10 || waits["0"] || waits[""] {
				t.Errorf("Retry-After: %v", waits)
			}
			if st := s.Stats(); st.Refused != 50 || st.InFlight != 2 {
				t.Errorf("%+v", st)
			}
			close(hold)
			wantStatus(t, r.next(t), 200)
			wantStatus(t, r.next(t), 200)
			for s.Stats().InFlight > 0 { // the place is free a moment after the answer
				time.Sleep(time.Millisecond)
			}
			write(t, r.c, register("carol", 1))
			wantStatus(t, r.next(t), 200)
		})
	}
}

// OPTIONS tells what is understood; an ACK, a stray response, keep-alives and rubbish get nothing.
func TestWhatIsNoRegister(t *testing.T) {
	s := open(t, newAnswerer(nil), nil)
	r := &reader{c: dial(t, s, "udp")}
	for _, d := range []string{
		"\r\n", "\r\n\r\n", "\x00", "jaK\x00", "\x00\x01", strings.Repeat("x", 60000),
		register("alice", 1, "REGISTER sip => ACK sip", "1 REGISTER => 1 ACK"),
		register("alice", 1, "REGISTER sip:example.test SIP/2.0 => SIP/2.0 200 OK"),
		register("alice", 1, "Via: => No-Via:"),
	} {
		write(t, r.c, d)
	}
	write(t, r.c, register("alice", 1, "REGISTER sip => OPTIONS sip", "1 REGISTER => 1 OPTIONS"))
	got := r.next(t)
	wantStatus(t, got, 200)
	for _, name := range []string{"Allow", "Accept", "Supported"} {
		if field(got, name) == "" {
			t.Errorf("no %s in %q", name, got)
		}
	}
	st := s.Stats()
	if st.Pings != 3 || st.Drops["ack"] != 1 || st.Drops["response"] != 1 || st.Drops["not_sip"] != 4 {
		t.Errorf("%+v", st)
	}
}

// A STUN Binding request on the SIP port tells the client its address (RFC 5626 §3.5.2).
func TestSTUN(t *testing.T) {
	s := open(t, newAnswerer(nil), nil)
	c := dial(t, s, "udp")
	request := stun.MustBuild(stun.TransactionID, stun.BindingRequest, stun.Fingerprint)
	write(t, c, string(request.Raw))
	buf := make([]byte, 1000)
	n, err := c.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	answer := &stun.Message{Raw: buf[:n]}
	var mapped stun.XORMappedAddress
	if err := answer.Decode(); err != nil || answer.Type != stun.BindingSuccess || answer.TransactionID != request.TransactionID {
		t.Fatal(err, answer)
	}
	if err := mapped.GetFrom(answer); err != nil || mapped.String() != c.LocalAddr().String() {
		t.Errorf("%v, %v", mapped, err)
	}
}

// A fault behind the Handler is a 500 for that request and nothing for the others.
func TestPanicIsContained(t *testing.T) {
	for _, transport := range []string{"udp", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			s := open(t, newAnswerer(func(_ context.Context, in *Inbound) []byte {
				if in.Request.CSeq == 1 {
					panic("a fault")
				}
				return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
			}), nil)
			r := &reader{c: dial(t, s, transport)}
			write(t, r.c, register("alice", 1))
			wantStatus(t, r.next(t), 500)
			write(t, r.c, register("alice", 2))
			wantStatus(t, r.next(t), 200)
			if st := s.Stats(); st.Drops["panic"] != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A taken port is one line that names it, and nothing stays bound; a shared address is bound twice.
func TestOpenErrors(t *testing.T) {
	first := open(t, newAnswerer(nil), nil)
	for _, transport := range []string{"udp", "tcp"} {
		s := New(Config{Listen: []Listen{
			{Transport: transport, Addr: "127.0.0.1:0"}, {Transport: transport, Addr: address(t, first, transport)},
		}}, newAnswerer(nil))
		err := s.Open(context.Background())
		if err == nil || !strings.Contains(err.Error(), transport+":"+address(t, first, transport)) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	one := open(t, newAnswerer(nil), func(c *Config) {
		c.Listen = []Listen{{Transport: "udp", Addr: "127.0.0.1:0", Shared: true}, {Transport: "udp", Addr: "127.0.0.1:0"}}
	})
	if list := one.Addresses(); len(list) != 2 {
		t.Fatalf("%v", list)
	}
	pool := strings.TrimPrefix(one.Addresses()[1], "udp:")
	open(t, newAnswerer(nil), func(c *Config) { c.Listen = []Listen{{Transport: "udp", Addr: pool, Shared: true}} })
}

// Close waits for the Handler, whose ctx it ends, and leaves no goroutine: a bubble with one left over fails.
func TestCloseWaitsForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet()
		var left sync.WaitGroup
		a := newAnswerer(func(ctx context.Context, _ *Inbound) []byte {
			defer left.Done()
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		})
		s := New(Config{Net: n, Listen: n.listen()}, a)
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		left.Add(2)
		c := n.dial()
		write(t, c, register("alice", 1))
		n.packets.in <- packet{register("bob", 1), net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.9.9.9:5060"))}
		synctest.Wait()
		start := time.Now()
		_ = s.Close()
		if d := time.Since(start); d != time.Second {
			t.Errorf("closed after %v", d)
		}
		left.Wait()
		if len(a.closings) != 1 {
			t.Errorf("%d flows closed", len(a.closings))
		}
		_ = c.Close()
	})
}

// A datagram beyond the bounds gets a 413, and costs no more than a bounded one.
func TestHugeDatagram(t *testing.T) {
	a := newAnswerer(nil)
	s := open(t, a, nil)
	r := &reader{c: dial(t, s, "udp")}
	for _, d := range []string{
		register("alice", 1, "Expires: 300 => "+strings.Repeat("X: y\r\n", 8000)+"X: y"),
		register("alice", 1, "Content-Length: 0 => Content-Length: 40000") + strings.Repeat("x", 40000),
	} {
		write(t, r.c, d)
		wantStatus(t, r.next(t), 413)
	}
	write(t, r.c, register("alice", 1, "Content-Length: 0 => Content-Length: 15000")+strings.Repeat("x", 15000))
	wantStatus(t, r.next(t), 200)
	if q := a.requests(); len(q) != 1 || len(q[0].Body) != 15000 {
		t.Errorf("%d requests", len(q))
	}
}

// Row 13. Over IPv6, all that is written carries brackets.
func TestIPv6(t *testing.T) {
	a := newAnswerer(nil)
	s := open(t, a, func(c *Config) {
		c.Listen = []Listen{{Transport: "udp", Addr: "[::1]:0"}, {Transport: "tcp", Addr: "[::1]:0"}}
	})
	for i, transport := range []string{"udp", "tcp"} {
		r := &reader{c: dial(t, s, transport)}
		write(t, r.c, register("alice", i+1))
		got := r.next(t)
		wantStatus(t, got, 200)
		if via := field(got, "Via"); !strings.HasSuffix(via, ";received=[::1];rport="+port(r.c.LocalAddr())) {
			t.Errorf("Via %s", via)
		}
		f := a.requests()[i].Flow
		if f.Remote != r.c.LocalAddr().String() || f.Local != address(t, s, transport) {
			t.Errorf("%+v", f)
		}
		s.Keep(f, time.Now().Add(time.Hour))
		done := sendAsync(s, t.Context(), f)
		request := r.next(t)
		if via := field(request, "Via"); !strings.HasPrefix(via, "SIP/2.0/"+strings.ToUpper(transport)+" [::1]:") {
			t.Errorf("our Via %s", via)
		}
		write(t, r.c, answerTo(request, "200 OK"))
		if x := <-done; x.status != 200 {
			t.Errorf("%+v", x)
		}
	}
}
