package sim

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Two Front Ends write the same user at the same time, again and again: both phones get
// their answers, and neither binding is lost.
func TestTwoFrontEndsWriteOneUser(t *testing.T) {
	inBubble(t, Config{Users: 1, Groups: 1}, func(t *testing.T, p *Pool) {
		for i := range 4 {
			p.Phone(p.users[0], "udp", 60, p.fes[i%3].sip())
		}
		var all sync.WaitGroup
		for _, ph := range p.phones {
			all.Go(func() {
				for range 50 {
					if err := ph.Register(); err != nil {
						t.Errorf("%s: %v", ph.name, err)
					}
				}
				if err := ph.Unregister(); err != nil {
					t.Errorf("%s: %v", ph.name, err)
				}
			})
		}
		all.Wait()
		p.CheckAll(time.Second)
	})
}

// A deposed primary that doesn't know it yet and the new one write the same user: one
// order, nothing acknowledged is lost. The placement reaches the old primary three seconds late.
func TestOldAndNewPrimaryWriteOneUser(t *testing.T) {
	inBubble(t, Config{Users: 6, Groups: 3}, func(t *testing.T, p *Pool) {
		old := p.primaryOf(p.users[0].group)
		for _, u := range p.users {
			for _, f := range p.fes {
				p.Phone(u, "udp", 60, f.sip())
			}
		}
		p.registerAll()
		old.freeze(3 * time.Second)
		var all sync.WaitGroup
		for _, ph := range p.phones {
			all.Go(func() {
				for range 20 {
					_ = ph.Register() // the frozen one may not answer
				}
			})
		}
		all.Wait()
		p.CheckAll(10 * time.Second)
		p.registerAll()
	})
}

// A frozen Front End (SIGSTOP) is replaced; when it goes on after three seconds it does no harm and joins again.
func TestFrozenFrontEndGoesOn(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, p *Pool) {
		for i, u := range p.users {
			p.Phone(u, []string{"udp", "tcp"}[i%2], 60, p.addresses()...).Go()
		}
		p.Recover(10 * time.Second)
		victim := p.primaryOf(p.users[0].group)
		victim.freeze(3 * time.Second)
		time.Sleep(2500 * time.Millisecond)
		if c := p.observer.current().Groups[p.users[0].group]; c.Primary == victim.name {
			t.Errorf("%s still has %s after it stood still for 2.5 s", victim.name, p.users[0].group)
		}
		time.Sleep(time.Second)
		p.CheckAll(10 * time.Second)
		p.Recover(time.Minute)
		p.CheckAll(time.Second)
	})
}

// A Front End that loses the bus, and only it, fences itself: it sends its clients away
// and they are served elsewhere. It rejoins by itself.
func TestCutFromTheBus(t *testing.T) {
	inBubble(t, Config{}, func(t *testing.T, p *Pool) {
		victim := p.primaryOf(p.users[0].group)
		for i, u := range p.users {
			p.Phone(u, []string{"udp", "tcp"}[i%2], 60, victim.sip(), p.fes[0].sip(), p.fes[1].sip(), p.fes[2].sip()).Go()
		}
		p.Recover(10 * time.Second)
		cut := time.Now()
		victim.cutBus()
		p.eventually(10*time.Second, func() string {
			for _, u := range p.users {
				if c := p.observer.current().Groups[u.group]; c.Has(victim.name) {
					return fmt.Sprintf("%s still has a copy of %s", victim.name, u.group)
				}
			}
			return ""
		})
		for _, ph := range p.phones {
			if ph.transport == "tcp" && !p.eventually(20*time.Second, func() string {
				if ph.Last().After(cut) {
					return ""
				}
				return ph.name + " was not sent away, or not served elsewhere"
			}) {
				break
			}
		}
		p.Recover(90 * time.Second)
		p.CheckLog()
		victim.healBus()
		p.CheckAll(15 * time.Second)
		p.Recover(time.Minute)
	})
}

// The bus is stopped and started under load: what was acknowledged is there, nobody is
// dropped for it, and all goes on by itself.
func TestBusRestartUnderLoad(t *testing.T) {
	inBubble(t, Config{Users: 60}, func(t *testing.T, p *Pool) {
		for i, u := range p.users {
			p.Phone(u, []string{"udp", "tcp"}[i%2], 20, p.addresses()...).Go()
		}
		p.Recover(10 * time.Second)
		for _, down := range []time.Duration{100 * time.Millisecond, 2 * time.Second, 8 * time.Second} {
			p.note("the bus stops for %v", down)
			p.bus.Stop()
			acks := p.model.acknowledgements()
			time.Sleep(20 * time.Millisecond) // answers that were on their way
			late := p.model.acknowledgements()
			time.Sleep(down - 20*time.Millisecond)
			if n := p.model.acknowledgements(); n != late {
				t.Errorf("%d acknowledgements without a bus (%d in the first instant)", n-late, late-acks)
			}
			p.bus.Start()
			p.CheckAll(15 * time.Second)
			p.Recover(time.Minute)
			p.CheckAll(time.Second)
		}
	})
}

// While the bus has no quorum nothing is acknowledged; REGISTERs are held, or refused
// after the hold's end; connections stay; and when the quorum is back all resumes by itself.
func TestNoQuorum(t *testing.T) {
	inBubble(t, Config{Users: 40}, func(t *testing.T, p *Pool) {
		for i, u := range p.users {
			p.Phone(u, []string{"udp", "tcp"}[i%2], 20, p.addresses()...).Go()
		}
		p.Recover(10 * time.Second)
		epoch := p.observer.current().Epoch
		for _, without := range []time.Duration{5 * time.Second, 45 * time.Second} {
			p.note("no quorum for %v", without)
			p.bus.SetQuorum(false)
			records := p.observer.recordCount()
			time.Sleep(20 * time.Millisecond) // answers that were on their way
			acks := p.model.acknowledgements()
			time.Sleep(without - 20*time.Millisecond)
			if n := p.model.acknowledgements() - acks; n != 0 {
				t.Errorf("%d acknowledgements without a quorum", n)
			}
			if n := p.observer.recordCount() - records; n != 0 {
				t.Errorf("%d records without a quorum", n)
			}
			p.bus.SetQuorum(true)
			p.CheckAll(15 * time.Second)
			p.Recover(time.Minute)
			p.CheckAll(time.Second)
		}
		if now := p.observer.current().Epoch; now != epoch {
			t.Errorf("the loss of the quorum changed the placement: epoch %d, then %d", epoch, now)
		}
	})
}

// The bus loses acknowledgements: the writer finds out what became of its write, and
// answers right.
func TestLostAcknowledgements(t *testing.T) {
	inBubble(t, Config{Users: 10}, func(t *testing.T, p *Pool) {
		p.somePhones(60)
		p.links.setLose(0.4)
		for range 20 {
			p.registerAll()
			time.Sleep(time.Second)
		}
		for _, ph := range p.phones[:5] {
			if err := ph.Unregister(); err != nil {
				t.Errorf("%s: %v", ph.name, err)
			}
		}
		p.CheckAll(time.Second)
	})
}

// A refresh in the very instant in which the binding expires: either it counts and the
// binding stays, or it comes too late and makes a new one. The sweep never undoes it.
func TestRefreshInTheInstantOfExpiry(t *testing.T) {
	inBubble(t, Config{FrontEnds: 1, Users: 1, Groups: 1}, func(t *testing.T, p *Pool) {
		ph := p.Phone(p.users[0], "udp", 10, poolAddress)
		grace := p.cfg.Policy.Grace
		for i := range 60 {
			if err := ph.Register(); err != nil {
				t.Fatal(err)
			}
			// Around the instant in which the sweep removes it, which comes once a second.
			time.Sleep(10*time.Second + grace + time.Duration(i-20)*30*time.Millisecond)
		}
		if err := ph.Register(); err != nil {
			t.Fatal(err)
		}
		p.CheckAll(time.Second)
		// Without a refresh it goes, everywhere.
		time.Sleep(10*time.Second + grace + 3*time.Second)
		synctest.Wait()
		if set, _ := p.observer.set(ph.user.aor); len(set.Bindings) != 0 {
			t.Errorf("the log still has %v", set.Bindings)
		}
		p.CheckAll(time.Second)
	})
}
