package sim

import (
	"flag"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag  = flag.Uint64("seed", 0, "run scenarios with this seed only")
	stormFlag = flag.Int("storms", 0, "how many seeds of the random storm to run; 0: a few")
)

// inBubble runs a scenario in virtual time with a started pool.
func inBubble(t *testing.T, cfg Config, do func(t *testing.T, p *Pool)) {
	t.Helper()
	if cfg.Seed == 0 {
		cfg.Seed = max(1, *seedFlag)
	}
	synctest.Test(t, func(t *testing.T) {
		p := New(t, cfg)
		p.Start()
		do(t, p)
	})
}

// A phone registers, refreshes and de-registers over UDP and TCP at any address of the
// pool, whichever Front End is primary, and every copy has it.
func TestRegisterThroughAnyFrontEnd(t *testing.T) {
	inBubble(t, Config{Groups: 3, Users: 3}, func(t *testing.T, p *Pool) {
		for _, u := range p.users {
			for _, transport := range []string{"udp", "tcp"} {
				for _, at := range p.addresses() {
					ph := p.Phone(u, transport, 60, at)
					start := time.Now()
					for range 2 {
						if err := ph.Register(); err != nil {
							t.Fatalf("%s over %s at %s: %v", u.aor, transport, at, err)
						}
					}
					if took := time.Since(start); took > 100*time.Millisecond {
						t.Errorf("%s over %s at %s took %v", u.aor, transport, at, took)
					}
				}
			}
		}
		p.CheckAll(time.Second)
		for _, ph := range p.phones {
			got, err := ph.Query()
			if err != nil || len(got) != 8 {
				t.Errorf("%s is told of %d of 8 bindings, %v", ph.name, len(got), err)
			}
		}
		for _, ph := range p.phones {
			if err := ph.Unregister(); err != nil {
				t.Errorf("%s de-registers: %v", ph.name, err)
			}
		}
		p.CheckAll(time.Second)
	})
}
