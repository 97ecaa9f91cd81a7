package sipfront

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"rollcall/registrar"
)

// answerer is a Handler that notes what it saw and answers 200, or what its do says.
type answerer struct {
	do func(ctx context.Context, in *Inbound) []byte

	mu             sync.Mutex
	seen           []registrar.Request
	opened, closed []registrar.Flow
	closings       chan registrar.Flow
}

func newAnswerer(do func(ctx context.Context, in *Inbound) []byte) *answerer {
	return &answerer{do: do, closings: make(chan registrar.Flow, 4096)}
}

func (a *answerer) Register(ctx context.Context, in *Inbound) []byte {
	a.mu.Lock()
	a.seen = append(a.seen, in.Request)
	a.mu.Unlock()
	if a.do != nil {
		return a.do(ctx, in)
	}
	return in.Render(registrar.Reply{Status: 200, Reason: "OK"})
}

func (a *answerer) Subscribe(ctx context.Context, in *Inbound) []byte { return a.Register(ctx, in) }

func (a *answerer) FlowOpened(f registrar.Flow) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.opened = append(a.opened, f)
}

func (a *answerer) FlowClosed(f registrar.Flow) {
	a.mu.Lock()
	a.closed = append(a.closed, f)
	a.mu.Unlock()
	select {
	case a.closings <- f:
	default:
	}
}

func (a *answerer) requests() []registrar.Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]registrar.Request(nil), a.seen...)
}

// open serves UDP and TCP on loopback until the test ends.
func open(t testing.TB, h Handler, change func(*Config)) *Server {
	t.Helper()
	cfg := Config{
		FrontEnd: "fe1", Boot: "boot1", Version: "Rollcall/test",
		Listen: []Listen{{Transport: "udp", Addr: "127.0.0.1:0"}, {Transport: "tcp", Addr: "127.0.0.1:0"}},
	}
	if change != nil {
		change(&cfg)
	}
	s := New(cfg, h)
	if err := s.Open(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// address is the server's first one of a transport.
func address(t testing.TB, s *Server, transport string) string {
	t.Helper()
	for _, a := range s.Addresses() {
		if addr, ok := strings.CutPrefix(a, transport+":"); ok {
			return addr
		}
	}
	t.Fatalf("no %s address in %v", transport, s.Addresses())
	return ""
}

// patience is a deadline, not a measure: it only bounds a test that fails.
const patience = 10 * time.Second

func dial(t testing.TB, s *Server, transport string) net.Conn {
	t.Helper()
	c, err := net.Dial(transport, address(t, s, transport))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return c
}

func write(t testing.TB, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

// reader reads whole responses without a body, or pongs, off a connection.
type reader struct {
	c   net.Conn
	buf []byte
}

// next is one response ("" at the end of the stream), or "\r\n" for a pong.
func (r *reader) next(t testing.TB) string {
	t.Helper()
	for {
		s := string(r.buf)
		if strings.HasPrefix(s, "\r\n") {
			r.buf = r.buf[2:]
			return "\r\n"
		}
		if i := strings.Index(s, "\r\n\r\n"); i >= 0 {
			r.buf = r.buf[i+4:]
			return s[:i+4]
		}
		chunk := make([]byte, 65536)
		n, err := r.c.Read(chunk)
		r.buf = append(r.buf, chunk[:n]...)
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Fatalf("no answer; have %q", r.buf)
			}
			return ""
		}
	}
}

// status is the code of a response, 0 for none.
func status(response string) int { return statusOf([]byte(response)) }

// wantStatus checks the code, and that the response is a whole one.
func wantStatus(t testing.TB, response string, code int) {
	t.Helper()
	if status(response) != code {
		t.Fatalf("want %d, got %q", code, response)
	}
	if !strings.HasSuffix(response, "\r\n\r\n") || field(response, "Via") == "" {
		t.Fatalf("not a whole response: %q", response)
	}
}

// field is the value of a response's first header field of that name.
func field(message, name string) string {
	for _, line := range strings.Split(message, "\r\n") {
		if v, ok := strings.CutPrefix(line, name+": "); ok {
			return v
		}
	}
	return ""
}

// register is a REGISTER as phones send it. Each edit is "old => new"; an empty new takes the line out.
func register(user string, cseq int, edits ...string) string {
	s := strings.ReplaceAll(fmt.Sprintf(`REGISTER sip:example.test SIP/2.0
Via: SIP/2.0/UDP 192.0.2.10:5060;branch=z9hG4bK-%[1]s-%[2]d;rport
Max-Forwards: 70
From: "Alice" <sip:%[1]s@example.test>;tag=4711
To: <sip:%[1]s@example.test>
Call-ID: call-%[1]s@192.0.2.10
CSeq: %[2]d REGISTER
Contact: <sip:%[1]s@192.0.2.10:5060;transport=udp>;+sip.instance="<urn:uuid:00000000-0000-1000-8000-000a95a0e128>"
Expires: 300
Supported: path, outbound
User-Agent: Test/1.0
Content-Length: 0

`, user, cseq), "\n", "\r\n")
	for _, e := range edits {
		from, to, ok := strings.Cut(e, " => ")
		if !ok || !strings.Contains(s, from) {
			panic("edit does not apply: " + e)
		}
		if to == "" {
			from += "\r\n"
		}
		s = strings.Replace(s, from, to, 1)
	}
	return s
}

// flow is one for messages that come from no socket.
func flow(transport string) registrar.Flow {
	return registrar.Flow{FrontEnd: "fe1", Boot: "boot1", Transport: transport, Local: "127.0.0.1:5071", Remote: "198.51.100.7:40000"}
}
