//go:build linux

package sipfront

import (
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"rollcall/registrar"

	"golang.org/x/sys/unix"
)

func BenchmarkSplit(b *testing.B) {
	raw := []byte(register("alice", 1))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := split(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	raw := []byte(register("alice", 1))
	f := flow("udp")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(raw, f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRender(b *testing.B) {
	in, _, err := Parse([]byte(register("alice", 1)), flow("udp"))
	if err != nil {
		b.Fatal(err)
	}
	reply := registrar.Reply{Status: 200, Reason: "OK", Headers: []registrar.Header{
		{Name: "Contact", Value: "<sip:alice@192.0.2.10:5060>;expires=300"}, {Name: "Date", Value: "Mon, 01 Jan 2001 00:00:00 GMT"},
	}}
	b.ReportAllocs()
	for b.Loop() {
		in.Render(reply)
	}
}

// BenchmarkUDP is one REGISTER and its 200 through the whole server, the client's share included.
func BenchmarkUDP(b *testing.B) {
	s := open(b, newBare(), nil)
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address(b, s, "udp"))))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	raw := []byte(register("alice", 1))
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(raw); err != nil {
			b.Fatal(err)
		}
		if _, err := c.Read(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkUDPLoad is the same from many clients at once; with both ends on one machine, CPU µs are the figure to compare.
func BenchmarkUDPLoad(b *testing.B) {
	s := open(b, newBare(), nil)
	b.SetParallelism(16)
	b.ReportAllocs()
	before := cpu(b)
	b.RunParallel(func(pb *testing.PB) {
		c := dial(b, s, "udp")
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		raw := []byte(register("alice", 1))
		buf := make([]byte, 4096)
		for pb.Next() {
			if _, err := c.Write(raw); err != nil {
				b.Error(err)
				return
			}
			if _, err := c.Read(buf); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64((cpu(b)-before).Nanoseconds())/float64(b.N), "cpu-ns/op")
}

// cpu is the processor time of this process so far.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkIdleConns tells the memory of a connection that has registered and waits.
func BenchmarkIdleConns(b *testing.B) {
	const conns = 2000
	for b.Loop() {
		s := open(b, newBare(), nil)
		list := make([]net.Conn, conns)
		for i := range list {
			list[i] = dial(b, s, "tcp")
		}
		raw := []byte(register("alice", 1))
		buf := make([]byte, 4096)
		for _, c := range list {
			if _, err := c.Write(raw); err != nil {
				b.Fatal(err)
			}
			if _, err := c.Read(buf); err != nil {
				b.Fatal(err)
			}
		}
		with := memory()
		_ = s.Close()
		without := memory()
		b.ReportMetric(float64(with-without)/conns, "B/conn")
		for _, c := range list {
			_ = c.Close()
		}
	}
}

// memory is the heap and the stacks in use.
func memory() int64 {
	for range 3 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}
