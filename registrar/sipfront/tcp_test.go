package sipfront

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/registrar"
)

// Row 16. A request cut in two at every byte is answered once, and so is one that comes byte by byte.
func TestRequestCutAtEveryByte(t *testing.T) {
	a := newAnswerer(nil)
	s := open(t, a, nil)
	text := register("alice", 1, "Content-Length: 0 => Content-Length: 5") + "hello"
	r := &reader{c: dial(t, s, "tcp")}
	for i := 1; i < len(text); i++ {
		write(t, r.c, text[:i])
		if i%8 == 0 {
			time.Sleep(time.Millisecond) // some of the cuts arrive as two segments; frame_test has all of them for certain
		}
		write(t, r.c, text[i:])
		wantStatus(t, r.next(t), 200)
	}
	for i := range len(text) {
		write(t, r.c, text[i:i+1])
	}
	wantStatus(t, r.next(t), 200)
	for _, q := range a.requests() {
		if string(q.Body) != "hello" {
			t.Fatalf("body %q", q.Body)
		}
	}
	if n := len(a.requests()); n != len(text) {
		t.Errorf("%d requests of %d", n, len(text))
	}
}

// Row 16. Several requests and a piece of the next in one segment: the whole ones are answered, the rest is kept.
func TestRequestsInOneSegment(t *testing.T) {
	s := open(t, newAnswerer(nil), nil)
	r := &reader{c: dial(t, s, "tcp")}
	last := register("carol", 1)
	write(t, r.c, register("alice", 1)+register("bob", 1)+"\r\n\r\n"+last[:100])
	got := map[string]int{}
	for range 3 {
		m := r.next(t)
		got[field(m, "Call-ID")]++
		if m == "\r\n" {
			got["pong"]++
		}
	}
	if got["call-alice@192.0.2.10"] != 1 || got["call-bob@192.0.2.10"] != 1 || got["pong"] != 1 {
		t.Fatalf("%v", got)
	}
	write(t, r.c, last[100:])
	if m := r.next(t); field(m, "Call-ID") != "call-carol@192.0.2.10" {
		t.Fatalf("%q", m)
	}
}

// Row 19. CRLF CRLF gets a CRLF, wherever it stands and however it is split; a lone CRLF gets nothing.
func TestPings(t *testing.T) {
	s := open(t, newAnswerer(nil), nil)
	r := &reader{c: dial(t, s, "tcp")}
	for _, pieces := range [][]string{{"\r\n\r\n"}, {"\r\n", "\r\n"}, {"\r", "\n\r", "\n"}, {"\r", "\n", "\r", "\n"}} {
		for _, p := range pieces {
			write(t, r.c, p)
			time.Sleep(time.Millisecond)
		}
		if got := r.next(t); got != "\r\n" {
			t.Fatalf("%q: %q", pieces, got)
		}
	}
	write(t, r.c, "\r\n"+register("alice", 1)+"\r\n")
	wantStatus(t, r.next(t), 200)
	write(t, r.c, register("alice", 2))
	wantStatus(t, r.next(t), 200)
}

// Rows 17 and 18, and their kind. A stream that can't be followed is answered if that is possible, and closed.
func TestBrokenStreams(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       int // 0: closed without an answer
	}{
		{"18 no Content-Length", register("alice", 1, "Content-Length: 0 => "), 400},
		{"18 Content-Length abc", register("alice", 1, "Content-Length: 0 => Content-Length: abc"), 400},
		{"18 Content-Length -1", register("alice", 1, "Content-Length: 0 => Content-Length: -1"), 400},
		{"18 Content-Length empty", register("alice", 1, "Content-Length: 0 => Content-Length:"), 400},
		{"18 two Content-Length", register("alice", 1, "Content-Length: 0 => Content-Length: 0\r\nl: 5"), 400},
		{"17 Content-Length 2^32-1", register("alice", 1, "Content-Length: 0 => Content-Length: 4294967295"), 400},
		{"17 Content-Length 1 MiB", register("alice", 1, "Content-Length: 0 => Content-Length: 1048576"), 413},
		{"17 header without end", register("alice", 1, "Expires: 300\r\n => X: "+strings.Repeat("x", 20000)), 413},
		{"17 header of many lines", register("alice", 1, "Expires: 300 => "+strings.Repeat("X: y\r\n", 4000)+"X: y"), 413},
		{"17 one line without end", "REGISTER " + strings.Repeat("x", 20000), 0},
		{"HTTP", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 0},
		{"no Via", register("alice", 1, "Via: => X-Via:"), 0},
		{"broken Via", register("alice", 1, "Via: SIP/2.0/UDP => Via: SIP/2.0"), 0},
		{"CR alone", "\rx", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAnswerer(nil)
			s := open(t, a, nil)
			r := &reader{c: dial(t, s, "tcp")}
			// It may be closed before all is written.
			go func() { _, _ = r.c.Write([]byte(c.text)) }()
			got := r.next(t)
			if c.code != 0 {
				wantStatus(t, got, c.code)
				got = r.next(t)
			}
			if got != "" {
				t.Fatalf("not closed: %q", got)
			}
			_ = r.c.Close()
			<-a.closings
			if len(a.requests()) != 0 {
				t.Error("the Handler saw it")
			}
		})
	}
}

// Of one connection, the requests for one AOR reach the Handler one after the
// other; one that is held doesn't hold up those of other users.
func TestOrderWithinAConnection(t *testing.T) {
	hold := make(chan struct{})
	a := newAnswerer(func(_ context.Context, in *Inbound) []byte {
		if in.Request.AOR == "sip:alice@example.test" && in.Request.CSeq == 1 {
			<-hold
		}
		return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
	})
	s := open(t, a, nil)
	r := &reader{c: dial(t, s, "tcp")}
	write(t, r.c, register("alice", 1)+register("alice", 2)+register("alice", 3)+register("bob", 1))
	if got := r.next(t); field(got, "Call-ID") != "call-bob@192.0.2.10" {
		t.Fatalf("bob is not answered first: %q", got)
	}
	close(hold)
	for _, want := range []string{"1 REGISTER", "2 REGISTER", "3 REGISTER"} {
		if got := field(r.next(t), "CSeq"); got != want {
			t.Fatalf("answer to %q, want %q", got, want)
		}
	}
}

// A flow is told of when it opens, and when it closes from either side; requests in flight learn it by ctx.
func TestFlowsOpenAndClose(t *testing.T) {
	entered := make(chan struct{}, 1)
	a := newAnswerer(func(ctx context.Context, in *Inbound) []byte {
		entered <- struct{}{}
		<-ctx.Done()
		return nil
	})
	s := open(t, a, nil)
	c := dial(t, s, "tcp")
	write(t, c, register("alice", 1))
	<-entered
	f := a.requests()[0].Flow
	if f.ID == 0 || f.Transport != "tcp" || f.Local != address(t, s, "tcp") || f.Remote != c.LocalAddr().String() || f.FrontEnd != "fe1" || f.Boot != "boot1" {
		t.Errorf("flow %+v", f)
	}
	if !s.HasFlow(f) || s.Flows() != 1 {
		t.Error("the flow is not known")
	}
	_ = c.Close()
	if got := <-a.closings; got != f {
		t.Errorf("closed %+v", got)
	}
	if s.HasFlow(f) || s.CloseFlow(f.ID, true) {
		t.Error("the flow is still known")
	}
}

// CloseFlow with a reset is seen as such by the client; CloseFlows closes them all.
func TestCloseFlow(t *testing.T) {
	a := newAnswerer(nil)
	s := open(t, a, nil)
	var clients []net.Conn
	for i := range 3 {
		r := &reader{c: dial(t, s, "tcp")}
		write(t, r.c, register("alice", i+1))
		wantStatus(t, r.next(t), 200)
		clients = append(clients, r.c)
	}
	if !s.CloseFlow(a.requests()[0].Flow.ID, true) {
		t.Fatal("not open")
	}
	if _, err := clients[0].Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("want a reset, got %v", err)
	}
	s.CloseFlows(time.Millisecond, false)
	for _, c := range clients[1:] {
		if _, err := c.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("want an end, got %v", err)
		}
	}
	for range clients {
		<-a.closings
	}
	if s.Flows() != 0 {
		t.Errorf("%d flows left", s.Flows())
	}
}

// Above MaxConns the newest connection is refused, and the old ones are served.
func TestMaxConns(t *testing.T) {
	s := open(t, newAnswerer(nil), func(c *Config) { c.MaxConns = 1 })
	r := &reader{c: dial(t, s, "tcp")}
	write(t, r.c, register("alice", 1))
	wantStatus(t, r.next(t), 200)
	if second, err := net.Dial("tcp", address(t, s, "tcp")); err == nil { // else reset before Dial saw it open
		_ = second.SetDeadline(time.Now().Add(patience))
		if _, err := second.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("the second one is not refused: %v", err)
		}
		_ = second.Close()
	}
	write(t, r.c, register("alice", 2))
	wantStatus(t, r.next(t), 200)
	if n := s.Stats().Drops[DropConn.String()]; n != 1 {
		t.Errorf("%d refused", n)
	}
}

// A client that says nothing, or half a message, is closed in time; one that has registered may be silent for ever.
func TestSilentClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet()
		s := open(t, newAnswerer(nil), func(c *Config) { c.Net, c.Listen = n, n.listen() })
		gone := func(c net.Conn, after time.Duration) {
			t.Helper()
			start := time.Now()
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				t.Fatal(err)
			}
			if d := time.Since(start); d != after {
				t.Errorf("closed after %v, want %v", d, after)
			}
		}
		gone(n.dial(), 30*time.Second)

		half := n.dial()
		write(t, half, "REGISTER")
		gone(half, 10*time.Second)

		slow := n.dial()
		go func() {
			for range 100 { // a byte each second doesn't prolong it
				if _, err := slow.Write([]byte("R")); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		gone(slow, 10*time.Second)

		r := &reader{c: n.dial()}
		write(t, r.c, register("alice", 1))
		wantStatus(t, r.next(t), 200)
		time.Sleep(24 * time.Hour)
		write(t, r.c, register("alice", 2))
		wantStatus(t, r.next(t), 200)
		write(t, r.c, "REG") // but not in the middle of its next message
		gone(r.c, 10*time.Second)
		if s.Flows() != 0 {
			t.Errorf("%d flows", s.Flows())
		}
	})
}

// A client that takes no answers is closed after WriteTimeout, and holds up nobody else.
func TestClientThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet()
		a := newAnswerer(nil)
		open(t, a, func(c *Config) { c.Net, c.Listen = n, n.listen() })
		deaf := n.dial()
		start := time.Now()
		write(t, deaf, register("alice", 1))
		r := &reader{c: n.dial()}
		write(t, r.c, register("bob", 1))
		wantStatus(t, r.next(t), 200)
		<-a.closings
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("closed after %v", d)
		}
		_ = deaf.Close()
		_ = r.c.Close()
	})
}

// A connection with MaxConnInFlight requests at the Handler isn't read before one is done.
func TestConnInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet()
		hold := make(chan struct{})
		a := newAnswerer(func(_ context.Context, in *Inbound) []byte {
			<-hold
			return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
		})
		open(t, a, func(c *Config) { c.Net, c.Listen, c.MaxConnInFlight = n, n.listen(), 2 })
		r := &reader{c: n.dial()}
		go func() {
			for _, user := range []string{"a", "b", "c", "d"} {
				_, _ = r.c.Write([]byte(register(user, 1)))
			}
		}()
		synctest.Wait()
		if len(a.requests()) != 2 {
			t.Errorf("%d at the Handler", len(a.requests()))
		}
		close(hold)
		for range 4 {
			wantStatus(t, r.next(t), 200)
		}
		_ = r.c.Close()
	})
}

// Half a message that lies unread because of MaxConnInFlight isn't held against the client.
func TestHalfMessageBehindAHeldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet()
		a := newAnswerer(func(_ context.Context, in *Inbound) []byte {
			time.Sleep(20 * time.Second)
			return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
		})
		open(t, a, func(c *Config) { c.Net, c.Listen, c.MaxConnInFlight = n, n.listen(), 1 })
		r := &reader{c: n.dial()}
		second := register("bob", 1)
		write(t, r.c, register("alice", 1)+second[:50])
		go func() { _, _ = r.c.Write([]byte(second[50:])) }()
		wantStatus(t, r.next(t), 200)
		wantStatus(t, r.next(t), 200)
		_ = r.c.Close()
	})
}

// Close leaves no goroutine behind with real sockets either.
func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	a := newAnswerer(nil)
	s := open(t, a, nil)
	for i := range 20 {
		r := &reader{c: dial(t, s, "tcp")}
		write(t, r.c, register("alice", i))
		wantStatus(t, r.next(t), 200)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if len(a.opened) != 20 || len(a.closed) != 20 || s.Flows() != 0 {
		t.Errorf("%d flows opened, %d closed", len(a.opened), len(a.closed))
	}
	// A goroutine that Close has waited for may still be on its way out.
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("goroutines left:\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}
