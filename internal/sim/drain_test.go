package sim

import (
	"os"
	"sync"
	"testing"
	"time"
)

// A planned stop: the groups are promoted first, then the clients are let go. No REGISTER is refused,
// and nobody waits for a retransmission of more than a second.
func TestDrain(t *testing.T) {
	inBubble(t, Config{Users: 60}, func(t *testing.T, p *Pool) {
		p.somePhones(300)
		p.registerAll()
		victim := p.fes[0]
		stop := make(chan struct{})
		var all sync.WaitGroup
		for _, ph := range p.phones {
			all.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(100 * time.Millisecond):
					}
					start := time.Now()
					err := ph.Register()
					if _, isRefused := err.(refused); isRefused || err != nil && ph.transport == "udp" || time.Since(start) > 1200*time.Millisecond {
						t.Errorf("%s: %v after %v", ph.name, err, time.Since(start))
					}
				}
			})
		}
		time.Sleep(time.Second)
		victim.drain()
		time.Sleep(time.Second)
		close(stop)
		all.Wait()
		p.CheckAll(time.Second)
		for fe, m := range p.observer.current().Members {
			if fe == victim.name && m.State == "up" {
				t.Errorf("%s is still %s", fe, m.State)
			}
		}
		victim.start()
		p.CheckAll(15 * time.Second)
		p.registerAll()
	})
}

// Thousands of clients register while one more Front End joins: no copy, the new one's
// included, drops a binding that lives.
func TestJoinUnderLoad(t *testing.T) {
	clients := 2_000
	if os.Getenv("ROLLCALL_LONG") != "" {
		clients = 10_000
	}
	inBubble(t, Config{FrontEnds: 3, Groups: 30, Users: clients, Expect: 3}, func(t *testing.T, p *Pool) {
		for _, u := range p.users {
			p.Phone(u, "udp", 300, poolAddress)
		}
		p.registerMany(200)
		p.addFrontEnd(3).start()
		p.registerMany(200)
		p.CheckAll(15 * time.Second)
	})
}

// registerMany registers every phone, so many at a time.
func (p *Pool) registerMany(atOnce int) {
	p.t.Helper()
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			time.Sleep(time.Duration(i) * 37 * time.Microsecond)
			for k := i; k < len(p.phones); k += atOnce {
				if err := p.phones[k].Register(); err != nil {
					p.fail("%s: %v", p.phones[k].name, err)
				}
			}
		})
	}
	all.Wait()
}
