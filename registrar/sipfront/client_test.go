package sipfront

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rollcall/registrar"
)

// answerTo makes the response of a client to a request of ours.
func answerTo(request, code string) string {
	return "SIP/2.0 " + code + "\r\nVia: " + field(request, "Via") + "\r\nFrom: " + field(request, "From") +
		"\r\nTo: " + field(request, "To") + ";tag=1\r\nCall-ID: " + field(request, "Call-ID") + "\r\nCSeq: " +
		field(request, "CSeq") + "\r\nContent-Length: 0\r\n\r\n"
}

type sent struct {
	status int
	err    error
	after  time.Duration
}

func sendAsync(s *Server, ctx context.Context, f registrar.Flow) chan sent {
	done := make(chan sent, 1)
	start := time.Now()
	go func() {
		status, err := s.SendTo(ctx, f, "OPTIONS", "sip:alice@192.0.2.10:5060", []registrar.Header{{Name: "To", Value: "<sip:alice@example.test>"}}, nil)
		done <- sent{status, err, time.Since(start)}
	}()
	return done
}

// Over UDP the request is repeated at T1, 2·T1, 4·T1 and then every T2, every T2 after a
// provisional answer, and given up after 64·T1 (RFC 3261 §17.1.2.2).
func TestSendOverUDP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet()
		s := open(t, newAnswerer(nil), func(c *Config) { c.Net, c.Listen = n, n.listen() })
		client := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.9.9.9:5060"))
		f := registrar.Flow{FrontEnd: "fe1", Boot: "boot1", Transport: "udp", Local: "10.0.0.1:5060", Remote: "10.9.9.9:5060"}
		if _, err := s.Send(t.Context(), f, "OPTIONS", nil, nil); !errors.Is(err, ErrFlowGone) {
			t.Errorf("a flow without registration: %v", err)
		}
		s.Keep(f, time.Now().Add(time.Hour))

		start := time.Now()
		done := sendAsync(s, t.Context(), f)
		var at []time.Duration
		var first string
		for range 11 {
			p := <-n.packets.out
			if first == "" {
				first = p.data
			}
			if p.data != first || p.addr.String() != client.String() {
				t.Fatalf("to %s: %q", p.addr, p.data)
			}
			at = append(at, time.Since(start))
		}
		if got := <-done; !errors.Is(got.err, ErrNoAnswer) || got.after != 32*time.Second {
			t.Errorf("%+v", got)
		}
		for i, want := range []float64{0, .5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5} {
			if at[i].Seconds() != want {
				t.Errorf("sent at %v", at)
				break
			}
		}
		if !strings.HasPrefix(first, "OPTIONS sip:alice@192.0.2.10:5060 SIP/2.0\r\nVia: SIP/2.0/UDP 10.0.0.1:5060;branch=z9hG4bK") {
			t.Errorf("%q", first)
		}
		if _, err := split([]byte(first)); err != nil {
			t.Errorf("not readable: %v", err)
		}

		done = sendAsync(s, t.Context(), f)
		request := (<-n.packets.out).data
		n.packets.in <- packet{answerTo(request, "100 Trying"), client}
		synctest.Wait()
		start = time.Now()
		<-n.packets.out // timer E as it was set before
		<-n.packets.out
		if d := time.Since(start); d != 4500*time.Millisecond {
			t.Errorf("after a provisional answer repeated at %v", d)
		}
		stranger := net.UDPAddrFromAddrPort(netip.MustParseAddrPort("10.6.6.6:5060"))
		n.packets.in <- packet{answerTo(request, "403 Forged"), stranger}
		n.packets.in <- packet{answerTo(request, "200 OK"), client}
		if got := <-done; got.status != 200 || got.err != nil {
			t.Errorf("%+v", got)
		}
		n.packets.in <- packet{answerTo(request, "200 OK"), client} // late and alone
		synctest.Wait()
		if st := s.Stats(); st.Drops["response"] != 2 {
			t.Errorf("%+v", st)
		}

		s.Keep(f, time.Time{})
		if s.Flows() != 0 || s.HasFlow(f) {
			t.Error("still kept")
		}
	})
}

// A kept flow counts until its time, and the table is bounded.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newFakeNet()
		s := open(t, newAnswerer(nil), func(c *Config) { c.Net, c.Listen, c.MaxKept = n, n.listen(), 2 })
		f := func(remote string) registrar.Flow {
			return registrar.Flow{FrontEnd: "fe1", Boot: "boot1", Transport: "udp", Local: "10.0.0.1:5060", Remote: remote}
		}
		for _, remote := range []string{"10.0.0.2:1", "10.0.0.2:2", "10.0.0.2:3"} {
			s.Keep(f(remote), time.Now().Add(time.Minute))
		}
		if s.Flows() != 2 || s.HasFlow(f("10.0.0.2:3")) || s.Stats().Drops["kept"] != 1 {
			t.Errorf("%d flows", s.Flows())
		}
		s.Keep(f("10.0.0.2:1"), time.Now().Add(time.Hour)) // a full table still takes what it has
		time.Sleep(time.Minute)
		s.Keep(f("10.0.0.2:3"), time.Now().Add(time.Minute))
		if s.Flows() != 2 || s.HasFlow(f("10.0.0.2:2")) || !s.HasFlow(f("10.0.0.2:3")) {
			t.Errorf("%d flows", s.Flows())
		}
		elsewhere := f("10.0.0.2:1")
		elsewhere.Boot = "boot0"
		if s.HasFlow(elsewhere) {
			t.Error("a flow of an earlier boot counts")
		}
	})
}

// Over a connection the request goes once and on that connection only; its end ends the wait.
func TestSendOverTCP(t *testing.T) {
	a := newAnswerer(nil)
	s := open(t, a, nil)
	alice, bob := &reader{c: dial(t, s, "tcp")}, &reader{c: dial(t, s, "tcp")}
	for user, r := range map[string]*reader{"alice": alice, "bob": bob} {
		write(t, r.c, register(user, 1))
		wantStatus(t, r.next(t), 200)
	}
	flows := map[registrar.AOR]registrar.Flow{}
	for _, q := range a.requests() {
		flows[q.AOR] = q.Flow
	}
	f := flows["sip:alice@example.test"]
	done := sendAsync(s, t.Context(), f)
	request := alice.next(t)
	write(t, bob.c, answerTo(request, "200 Forged"))
	write(t, alice.c, answerTo(request, "100 Trying")+answerTo(request, "486 Busy Here"))
	if got := <-done; got.err != nil || (got.status != 486) {
		t.Errorf("%+v", got)
	}

	done = sendAsync(s, t.Context(), f)
	alice.next(t)
	_ = alice.c.Close()
	if got := <-done; !errors.Is(got.err, ErrFlowGone) {
		t.Errorf("%+v", got)
	}
	if got := <-sendAsync(s, t.Context(), f); !errors.Is(got.err, ErrFlowGone) {
		t.Errorf("%+v", got)
	}
	f.Boot = "boot0"
	if got := <-sendAsync(s, t.Context(), f); !errors.Is(got.err, ErrNotHere) {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done = sendAsync(s, ctx, flows["sip:bob@example.test"])
	bob.next(t)
	cancel()
	if got := <-done; !errors.Is(got.err, context.Canceled) {
		t.Errorf("%+v", got)
	}
}

// No more than MaxSends wait at once.
func TestMaxSends(t *testing.T) {
	a := newAnswerer(nil)
	s := open(t, a, func(c *Config) { c.MaxSends = 1 })
	r := &reader{c: dial(t, s, "tcp")}
	write(t, r.c, register("alice", 1))
	wantStatus(t, r.next(t), 200)
	f := a.requests()[0].Flow
	first := sendAsync(s, t.Context(), f)
	request := r.next(t)
	if got := <-sendAsync(s, t.Context(), f); !errors.Is(got.err, ErrBusy) {
		t.Errorf("%+v", got)
	}
	write(t, r.c, answerTo(request, "200 OK"))
	if got := <-first; got.status != 200 {
		t.Errorf("%+v", got)
	}
}
