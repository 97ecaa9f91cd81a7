package simnet

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var pool = netip.MustParseAddrPort("10.0.0.100:5060")

func ip(last int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(last)}) }

func bind(t *testing.T, h *Host, addr string, shared bool) *packetSocket {
	t.Helper()
	c, err := h.ListenPacket(t.Context(), addr, shared)
	if err != nil {
		t.Fatal(err)
	}
	return c.(*packetSocket)
}

// drain reads what has arrived and arrives within d.
func drain(s *packetSocket, d time.Duration) (got []string) {
	s.SetReadDeadline(time.Now().Add(d))
	b := make([]byte, 2048)
	for {
		n, _, err := s.ReadFrom(b)
		if err != nil {
			return got
		}
		got = append(got, string(b[:n]))
	}
}

func TestDatagramTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{Default: Link{Delay: 5 * time.Millisecond}})
		a := bind(t, n.Host("a", "", ip(1)), ":0", false)
		b := bind(t, n.Host("b", "", ip(2)), ":5060", false)
		start := time.Now()
		if _, err := a.WriteTo([]byte("hello"), b.LocalAddr()); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 10)
		size, from, err := b.ReadFrom(buf)
		if err != nil || string(buf[:size]) != "hello" || from.String() != a.LocalAddr().String() {
			t.Fatalf("%q from %v, %v", buf[:size], from, err)
		}
		if d := time.Since(start); d < 5*time.Millisecond || d > 6*time.Millisecond {
			t.Errorf("took %v", d)
		}
	})
}

// A run repeats to the nanosecond, whatever the order in which senders run; another seed runs differently.
func TestDatagramsRepeat(t *testing.T) {
	run := func(seed uint64) (trace string) {
		synctest.Test(t, func(t *testing.T) {
			n := New(Options{Seed: seed, Default: Link{Delay: time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.2, Duplicate: 0.1, Reorder: 0.2}})
			b := bind(t, n.Host("b", "", ip(250)), ":5060", false)
			for i := range 20 {
				s := bind(t, n.Host(fmt.Sprint(i), "", ip(i)), ":5060", false)
				for k := range 10 {
					go func() {
						time.Sleep(time.Duration(k) * time.Second)
						s.WriteTo(fmt.Appendf(nil, "%d/%d", i, k), b.LocalAddr())
					}()
				}
			}
			start := time.Now()
			var buf [100]byte
			b.SetReadDeadline(start.Add(time.Minute))
			for {
				size, _, err := b.ReadFrom(buf[:])
				if err != nil {
					break
				}
				trace += fmt.Sprintf("%v %s\n", time.Since(start), buf[:size])
			}
		})
		return trace
	}
	one := run(1)
	if two := run(1); one != two {
		t.Errorf("two runs with one seed differ:\n%s\n%s", one, two)
	}
	if run(2) == one {
		t.Error("two seeds make the same run")
	}
	if lines := strings.Count(one, "\n"); lines < 150 || lines > 210 {
		t.Errorf("%d of 200 datagrams arrived, with a loss of 20 %% and 10 %% twice", lines)
	}
}

func TestDatagramsOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{Default: Link{Reorder: 0.3}})
		a, b := bind(t, n.Host("a", "", ip(1)), ":0", false), bind(t, n.Host("b", "", ip(2)), ":5060", false)
		for i := range 100 {
			a.WriteTo(fmt.Appendf(nil, "%03d", i), b.LocalAddr())
			time.Sleep(time.Millisecond)
		}
		got := drain(b, time.Second)
		late := 0
		for i := 1; i < len(got); i++ {
			if got[i] < got[i-1] {
				late++
			}
		}
		if len(got) != 100 || late < 5 {
			t.Errorf("%d arrived, %d behind a later one", len(got), late)
		}
	})
}

// Of those who share an address one gets all of a sender's datagrams; when its process is gone another one does.
func TestSharedAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{})
		var fes []*Host
		var sockets []*packetSocket
		for i := range 3 {
			fes = append(fes, n.Host(fmt.Sprint("fe", i), "fe", ip(i)))
			sockets = append(sockets, bind(t, fes[i], pool.String(), true))
		}
		if _, err := n.Host("x", "", ip(9)).ListenPacket(t.Context(), pool.String(), false); err == nil {
			t.Error("an address that others share was bound for one alone")
		}
		phone := n.Host("phone", "", ip(50))
		var senders []*packetSocket
		for range 60 {
			senders = append(senders, bind(t, phone, ":0", false))
		}
		send := func() {
			for i, s := range senders {
				s.WriteTo(fmt.Appendf(nil, "%d", i), net.UDPAddrFromAddrPort(pool))
			}
		}
		send()
		first := drain(sockets[0], time.Second)
		send()
		again := drain(sockets[0], time.Second)
		if len(first) < 5 || len(first) > 40 || fmt.Sprint(count(first)) != fmt.Sprint(count(again)) {
			t.Errorf("first socket got %d, then %d of 60", len(first), len(again))
		}
		drain(sockets[1], 0)
		drain(sockets[2], 0)
		fes[0].Kill()
		send()
		synctest.Wait()
		if got := len(drain(sockets[1], time.Second)) + len(drain(sockets[2], time.Second)); got < 60 {
			t.Errorf("the two left got %d of 60", got)
		}
		if _, _, err := sockets[0].ReadFrom(nil); err == nil {
			t.Error("a killed process can read")
		}
	})
}

func count(of []string) map[string]int {
	m := map[string]int{}
	for _, s := range of {
		m[s]++
	}
	return m
}

func TestCutOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{})
		a, b := bind(t, n.Host("a", "phones", ip(1)), ":0", false), bind(t, n.Host("b", "fe", ip(2)), ":5060", false)
		n.SetLink("phones", "b", Link{Cut: true})
		a.WriteTo([]byte("1"), b.LocalAddr())
		b.WriteTo([]byte("2"), a.LocalAddr())
		if got := drain(b, time.Second); got != nil {
			t.Errorf("through a cut link: %v", got)
		}
		if got := drain(a, time.Second); len(got) != 1 {
			t.Errorf("the other way: %v", got)
		}
		n.SetLink("a", Any, Link{}) // the host counts before the zone
		a.WriteTo([]byte("3"), b.LocalAddr())
		if got := drain(b, time.Second); len(got) != 1 {
			t.Errorf("by the host's own link: %v", got)
		}
		n.ResetLink("a", Any)
		n.Mend("phones", "b")
		a.WriteTo([]byte("4"), b.LocalAddr())
		if got := drain(b, time.Second); len(got) != 1 {
			t.Errorf("after mending: %v", got)
		}
	})
}

// What reaches a frozen process waits for it, up to the socket's queue; what it sends leaves when it goes on.
func TestFreezePackets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{QueueMax: 10})
		a, b := bind(t, n.Host("a", "", ip(1)), ":0", false), bind(t, n.Host("b", "", ip(2)), ":5060", false)
		n.Freeze("b", 3*time.Second)
		for range 20 {
			a.WriteTo([]byte("x"), b.LocalAddr())
		}
		b.WriteTo([]byte("y"), a.LocalAddr())
		if got := append(drain(b, 2900*time.Millisecond), drain(a, 0)...); len(got) != 0 {
			t.Errorf("a frozen host took and sent %v", got)
		}
		time.Sleep(200 * time.Millisecond)
		if got := drain(b, time.Second); len(got) != 10 {
			t.Errorf("%d of the 10 that the queue holds", len(got))
		}
		if got := drain(a, time.Second); len(got) != 1 {
			t.Errorf("what it sent: %v", got)
		}
	})
}

func TestReadDeadlineMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(Options{})
		s := bind(t, n.Host("a", "", ip(1)), ":0", false)
		start := time.Now()
		s.SetReadDeadline(start.Add(time.Hour))
		time.AfterFunc(time.Second, func() { s.SetReadDeadline(start.Add(2 * time.Second)) })
		_, _, err := s.ReadFrom(make([]byte, 1))
		if ne, ok := err.(net.Error); !ok || !ne.Timeout() || time.Since(start) != 2*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		s.SetReadDeadline(time.Time{})
		time.AfterFunc(time.Second, func() { s.Close() })
		if _, _, err := s.ReadFrom(make([]byte, 1)); err == nil || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
