package frontend

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"rollcall/bus/natsbus"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
)

// BenchmarkRefresh measures a REGISTER over UDP at the primary, from the socket to
// the acknowledged record and back, with the bus and 32 clients in the same process.
func BenchmarkRefresh(b *testing.B) {
	s, err := natsbus.StartServer(natsbus.ServerOptions{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Shutdown()
	bus, err := natsbus.Open(b.Context(), natsbus.Options{URLs: []string{s.ClientURL()}, Name: "fe1"})
	if err != nil {
		b.Fatal(err)
	}
	defer bus.Close()
	f, err := New(Config{
		Name: "fe1", Boot: "b", Domains: []string{"example.test"}, Policy: registrar.DefaultPolicy(),
		Health: "127.0.0.1:0", Groups: 1, Expect: 1, Listen: []sipfront.Listen{{Transport: "udp", Addr: "127.0.0.1:0"}},
	}, Deps{Bus: bus, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	defer func() { stop(); <-done }()
	for !f.open.Load() || len(f.pendingPrimaries()) > 0 || len(f.held()) == 0 {
		time.Sleep(time.Millisecond)
	}
	address := f.sip.Addresses()[0][len("udp:"):]

	const clients = 32
	run := func(n int) {
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				conn, err := net.Dial("udp", address)
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				buf := make([]byte, 2048)
				_ = conn.SetDeadline(time.Now().Add(5 * time.Minute))
				for i := range n / clients {
					msg := fmt.Sprintf("REGISTER sip:example.test SIP/2.0\r\nVia: SIP/2.0/UDP %s;rport;branch=z9hG4bK%d-%d-%d\r\nMax-Forwards: 70\r\n"+
						"From: <sip:u%d@example.test>;tag=f\r\nTo: <sip:u%d@example.test>\r\nCall-ID: %d-%d-%d\r\nCSeq: %d REGISTER\r\n"+
						"Contact: <sip:u%d@192.0.2.1:5060>\r\nExpires: 600\r\nUser-Agent: bench\r\nContent-Length: 0\r\n\r\n", conn.LocalAddr(), n, c, i, c, c, c, n, b.N, i+1, c)
					if _, err := conn.Write([]byte(msg)); err != nil {
						b.Error(err)
						return
					}
					if k, err := conn.Read(buf); err != nil || string(buf[8:11]) != "200" {
						b.Errorf("client %d: %v %s", c, err, buf[:k])
						return
					}
				}
			})
		}
		wg.Wait()
	}
	run(clients)
	b.ResetTimer()
	run(max(b.N, clients))
}
