package sim

import (
	"fmt"
	"testing"
	"time"

	"rollcall/routing"
)

// somePhones adds a phone for every user, at the pool address and in turn over UDP and TCP.
func (p *Pool) somePhones(expires int) {
	for i, u := range p.users {
		p.Phone(u, []string{"udp", "tcp"}[i%2], expires, poolAddress)
	}
}

// registerAll registers every phone; all must succeed.
func (p *Pool) registerAll() {
	p.t.Helper()
	for _, ph := range p.phones {
		if err := ph.Register(); err != nil {
			p.t.Fatalf("%s: %v", ph.name, err)
		}
	}
}

// primaryOf returns the Front End that serves a group.
func (p *Pool) primaryOf(g routing.Group) *node {
	return p.node(p.observer.current().Groups[g].Primary)
}

// The primary of a user is killed: his secondary is promoted, knows his binding, and
// answers his next REGISTER at once. Nothing acknowledged is lost.
func TestKillThePrimary(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, p *Pool) {
		p.somePhones(120)
		p.registerAll()
		before := p.observer.current()
		victim := p.primaryOf(p.users[0].group)
		start := time.Now()
		victim.kill()
		p.Settle(time.Second)
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("from the kill to all groups ready: %v", took)
		}
		for g, c := range p.observer.current().Groups {
			if was := before.Groups[g]; was.Primary == victim.name && c.Primary != was.Secondary {
				t.Errorf("%s: %s is primary, and %s was secondary", g, c.Primary, was.Secondary)
			}
		}
		for _, ph := range p.phones {
			others := 0
			got, err := ph.Query()
			for _, other := range p.phones {
				if other.user == ph.user {
					others++
				}
			}
			if err != nil && ph.transport == "tcp" { // its connection may have been to the killed one
				got, err = ph.Query()
			}
			if err != nil || len(got) != others {
				t.Errorf("%s is told of %d of %d bindings, %v", ph.name, len(got), others, err)
			}
		}
		p.registerAll()
		p.CheckAll(time.Second)

		victim.start()
		p.Settle(5 * time.Second)
		p.registerAll()
		p.CheckAll(time.Second)
	})
}

// A REGISTER that arrives while its group has no primary waits for the promotion; it is not refused.
func TestRegisterDuringPromotionIsHeld(t *testing.T) {
	inBubble(t, Config{Users: 30}, func(t *testing.T, p *Pool) {
		for _, u := range p.users {
			p.Phone(u, "udp", 120, poolAddress)
		}
		p.registerAll()
		p.fes[1].kill()
		done := make(chan string, len(p.phones))
		start := time.Now()
		for _, ph := range p.phones {
			go func() {
				if err := ph.Register(); err != nil {
					done <- fmt.Sprintf("%s: %v", ph.name, err)
					return
				}
				done <- ""
			}()
		}
		for range p.phones {
			if what := <-done; what != "" {
				t.Error(what)
			}
		}
		// One retransmission at most: what was on its way to the killed one.
		if took := time.Since(start); took > time.Second {
			t.Errorf("all registered after %v", took)
		}
		p.CheckAll(time.Second)
	})
}

// All Front Ends are killed at once and started again: every binding is there, with the
// Call-ID and CSeq that were acknowledged, before any phone has said anything.
func TestKillAllAndRestart(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, p *Pool) {
		p.somePhones(120)
		p.registerAll()
		for _, f := range p.fes {
			f.kill()
		}
		time.Sleep(5 * time.Second)
		for _, f := range p.fes {
			f.start()
		}
		p.CheckAll(15 * time.Second)
		for _, ph := range p.phones {
			ph.hangUp()
			if got, err := ph.Query(); err != nil || got[ph.contact] == 0 {
				t.Errorf("%s: %v, %v", ph.name, got, err)
			}
		}
		p.registerAll()
		p.CheckAll(time.Second)
	})
}

// Of the whole pool any single Front End is left, with the bus: it serves every user.
func TestAnySingleFrontEndServesAll(t *testing.T) {
	for left := range 4 {
		t.Run(fmt.Sprintf("fe%d", left+1), func(t *testing.T) {
			inBubble(t, Config{FrontEnds: 4, Groups: 7, Users: 14}, func(t *testing.T, p *Pool) {
				p.somePhones(300)
				p.registerAll()
				for i, f := range p.fes {
					if i != left {
						f.kill()
					}
				}
				p.CheckAll(5 * time.Second)
				for _, ph := range p.phones {
					ph.hangUp()
				}
				p.registerAll()
				p.CheckAll(time.Second)
			})
		})
	}
}

// Of four Front Ends with three groups, the one that holds a primary fails: each survivor
// has exactly one primary, one secondary and one tertiary. It returns: no primary moves, and it gets the three secondaries.
func TestWorkedExample(t *testing.T) {
	inBubble(t, Config{FrontEnds: 4, Groups: 3, Users: 9}, func(t *testing.T, p *Pool) {
		p.somePhones(600)
		p.registerAll()
		victim := p.primaryOf("g01")
		victim.kill()
		p.CheckAll(5 * time.Second)
		after := p.observer.current()
		for _, f := range p.up() {
			if got := shape(after, f); got != "1/1/1" {
				t.Errorf("%s is left with %s", f.name, got)
			}
		}
		victim.start()
		p.CheckAll(15 * time.Second)
		back := p.observer.current()
		for g, c := range back.Groups {
			if c.Primary != after.Groups[g].Primary {
				t.Errorf("the primary of %s moved from %s to %s", g, after.Groups[g].Primary, c.Primary)
			}
		}
		if got := shape(back, victim); got != "0/3/0" {
			t.Errorf("the returned %s has %s", victim.name, got)
		}
		for _, f := range p.up() {
			if one, two, three := back.GroupsOf(f.name); f != victim && len(one)+len(two)+len(three) != 2 {
				t.Errorf("%s has %s", f.name, shape(back, f))
			}
		}
		for _, ph := range p.phones {
			ph.hangUp()
		}
		p.registerAll()
	})
}

func shape(p routing.Placement, f *node) string {
	one, two, three := p.GroupsOf(f.name)
	return counts(len(one), len(two), len(three))
}
