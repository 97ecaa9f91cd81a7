package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"rollcall/bus"
	"rollcall/bus/natsbus"
)

// The server runs in the benchmark's process, so CPU per operation is of both sides,
// unless ROLLCALL_BENCH_NATS names another one (then it is the client's alone).

func benchURL(b *testing.B) string {
	if url := os.Getenv("ROLLCALL_BENCH_NATS"); url != "" {
		return url
	}
	server := startServer(b, natsbus.ServerOptions{Dir: b.TempDir()})
	b.Cleanup(server.Shutdown)
	return server.ClientURL()
}

func benchBus(b *testing.B) *natsbus.Bus {
	url := benchURL(b)
	c := open(b, natsbus.Options{URLs: []string{url}, Namespace: fmt.Sprint("bench", time.Now().UnixNano())})
	b.Cleanup(func() { c.Close() })
	return c
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func reportCPU(b *testing.B, start time.Duration, n int) {
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(n)/1000, "cpu-µs/op")
}

// Appends of 256 callers, each for its own users, with compare-and-swap and a ttl.
func BenchmarkAppend(b *testing.B) {
	l := benchBus(b).Bindings()
	data := make([]byte, 250)
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	cpu := cpuTime()
	for w := range 256 {
		wg.Go(func() {
			const users = 20
			var at [users]bus.Position
			for i := 0; next.Add(1) <= int64(b.N); i++ {
				u := i % users
				p, err := l.Append(ctx, bus.Record{Group: fmt.Sprint("g", w%60), User: fmt.Sprintf("u%d-%d@example.test", w, u), Position: at[u], Data: data}, time.Hour)
				if err != nil {
					b.Error(err)
					return
				}
				at[u] = p
			}
		})
	}
	wg.Wait()
	reportCPU(b, cpu, b.N)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
}

// One append at a time: its latency.
func BenchmarkAppendAlone(b *testing.B) {
	l := benchBus(b).Bindings()
	var at bus.Position
	for b.Loop() {
		p, err := l.Append(b.Context(), bus.Record{Group: "g", User: "alice", Position: at, Data: make([]byte, 250)}, time.Hour)
		if err != nil {
			b.Fatal(err)
		}
		at = p
	}
}

// A new copy reads 100,000 records of 30 groups.
func BenchmarkFollow100k(b *testing.B) {
	const users = 100_000
	c := benchBus(b)
	var groups []string
	for g := range 30 {
		groups = append(groups, fmt.Sprint("g", g))
	}
	var wg sync.WaitGroup
	for w := range 200 {
		wg.Go(func() {
			for i := w; i < users; i += 200 {
				if _, err := c.Bindings().Append(b.Context(), bus.Record{Group: groups[i%30], User: fmt.Sprint("u", i), Data: make([]byte, 250)}, time.Hour); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	cpu := cpuTime()
	defer func() { reportCPU(b, cpu, b.N*users) }()
	for b.Loop() {
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan struct{})
		n := 0
		if err := c.Bindings().Follow(ctx, groups, 0, func(bus.Record) {
			if n++; n == users {
				close(done)
			}
		}); err != nil {
			b.Fatal(err)
		}
		<-done
		cancel()
	}
}

func BenchmarkPutAll100k(b *testing.B) {
	c := benchBus(b)
	for round := 0; b.Loop(); round++ {
		err := c.Users().PutAll(b.Context(), func(yield func(bus.Write) bool) {
			for i := range 100_000 {
				if !yield(bus.Write{Key: fmt.Sprintf("u%d-%d@example.test", round, i), Value: make([]byte, 200)}) {
					return
				}
			}
		}, func(_ bus.Write, _ bus.Revision, err error) {
			if err != nil {
				b.Error(err)
			}
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	c := benchBus(b)
	if err := c.Serve(b.Context(), "fe1", "register", func(r bus.Request) { r.Respond(r.Data) }); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.Request(b.Context(), "fe1", "register", make([]byte, 500)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNobodyThere(b *testing.B) {
	c := benchBus(b)
	for b.Loop() {
		if _, err := c.Request(b.Context(), "fe9", "ping", nil); !errors.Is(err, bus.ErrNobodyThere) {
			b.Fatal(err)
		}
	}
}

func BenchmarkHead(b *testing.B) {
	c := benchBus(b)
	if _, err := c.Bindings().Append(b.Context(), bus.Record{Group: "g", User: "alice", Data: make([]byte, 250)}, 0); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := c.Bindings().Head(b.Context(), "g"); err != nil {
			b.Fatal(err)
		}
	}
}

// The latency of a ping while 256 callers append as fast as they can.
func BenchmarkPingUnderLoad(b *testing.B) {
	for _, verb := range []string{natsbus.VerbLive, "register"} {
		b.Run(verb, func(b *testing.B) {
			c := benchBus(b)
			if err := c.Serve(b.Context(), "fe1", verb, func(r bus.Request) { r.Respond(nil) }); err != nil {
				b.Fatal(err)
			}
			ctx, cancel := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			for w := range 256 {
				wg.Go(func() {
					var at bus.Position
					for ctx.Err() == nil {
						if p, err := c.Bindings().Append(ctx, bus.Record{Group: "g", User: fmt.Sprint(w), Position: at, Data: make([]byte, 250)}, 0); err == nil {
							at = p
						}
					}
				})
			}
			for b.Loop() {
				if _, err := c.Request(b.Context(), "fe1", verb, nil); err != nil {
					b.Fatal(err)
				}
			}
			cancel()
			wg.Wait()
		})
	}
}
