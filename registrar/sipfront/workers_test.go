package sipfront

import (
	"sync"
	"testing"
)

// deep uses some KB of stack, as decoding, deciding and encoding a binding set does.
//
//go:noinline
func deep(n int) byte {
	var frame [512]byte
	frame[n&511] = byte(n)
	if n == 0 {
		return frame[0]
	}
	return deep(n-1) + frame[n&511]
}

// BenchmarkWorkers compares the pool of warm goroutines with a fresh one for each job.
func BenchmarkWorkers(b *testing.B) {
	w := newWorkers()
	defer w.close()
	for name, run := range map[string]func(func()){
		"pool":  w.run,
		"fresh": func(job func()) { go job() },
	} {
		b.Run(name, func(b *testing.B) {
			var wg sync.WaitGroup
			inFlight := make(chan struct{}, 32)
			for b.Loop() {
				inFlight <- struct{}{}
				wg.Add(1)
				run(func() {
					deep(12)
					<-inFlight
					wg.Done()
				})
			}
			wg.Wait()
		})
	}
}

// Every job runs, however many there are at once, and close waits for the last.
func TestWorkers(t *testing.T) {
	w := newWorkers()
	var mu sync.Mutex
	ran := 0
	start := make(chan struct{})
	for range 10 * maxIdle {
		w.run(func() {
			<-start
			mu.Lock()
			ran++
			mu.Unlock()
		})
	}
	close(start)
	for range 1000 {
		w.run(func() { mu.Lock(); ran++; mu.Unlock() })
	}
	w.close()
	if ran != 10*maxIdle+1000 {
		t.Errorf("%d ran", ran)
	}
}
