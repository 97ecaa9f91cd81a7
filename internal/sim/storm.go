package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"rollcall/internal/simnet"
)

// Storm is a script of random faults. What it does follows from the pool's seed.
type Storm struct {
	pool  *Pool
	rng   *rand.Rand // used by the script's goroutine only
	until []pendingHeal
}

// pendingHeal ends a fault.
type pendingHeal struct {
	at   time.Time
	what string // of one fault there is one at a time
	do   func()
}

// fault is one kind of trouble; it reports false if it can't be had just now.
type fault struct {
	name   string
	weight int
	do     func(s *Storm) bool
}

// faults in the order in which they are drawn.
func faults() []fault {
	return []fault{
		{"kill", 6, (*Storm).kill},
		{"restart", 3, (*Storm).restart},
		{"kill all", 1, (*Storm).killAll},
		{"drain", 2, (*Storm).drain},
		{"freeze", 4, (*Storm).freeze},
		{"cut from the bus", 4, (*Storm).cutBus},
		{"cut from clients", 3, (*Storm).cutClients},
		{"cut between front ends", 2, (*Storm).cutPeers},
		{"bus down", 2, (*Storm).busDown},
		{"no quorum", 2, (*Storm).noQuorum},
		{"acknowledgements lost", 3, (*Storm).loseAcks},
		{"bad network", 3, (*Storm).badNetwork},
		{"nothing", 2, func(*Storm) bool { return true }},
	}
}

// NewStorm makes a storm over a pool.
func NewStorm(p *Pool) *Storm {
	return &Storm{pool: p, rng: rand.New(rand.NewPCG(p.cfg.Seed, 0x5eed))}
}

// Run does so many steps; after each it checks what can be checked at any time. Then it
// heals everything.
func (s *Storm) Run(steps int) {
	all := faults()
	total := 0
	for _, f := range all {
		total += f.weight
	}
	for range steps {
		if s.pool.failed() {
			break // what comes after a broken promise says little
		}
		draw := s.rng.IntN(total)
		for _, f := range all {
			if draw -= f.weight; draw < 0 {
				if !f.do(s) {
					s.pool.note("(no %s now)", f.name)
				}
				break
			}
		}
		s.wait(s.between(50*time.Millisecond, 3*time.Second))
		s.pool.CheckStep()
	}
	s.heal()
}

// wait lets time pass and ends the faults that are due.
func (s *Storm) wait(d time.Duration) {
	end := time.Now().Add(d)
	for {
		first := -1
		for i, h := range s.until {
			if !h.at.After(end) && (first < 0 || h.at.Before(s.until[first].at)) {
				first = i
			}
		}
		if first < 0 {
			time.Sleep(time.Until(end))
			return
		}
		h := s.until[first]
		s.until = append(s.until[:first], s.until[first+1:]...)
		time.Sleep(time.Until(h.at))
		h.do()
	}
}

// heal ends all faults and starts whoever doesn't run.
func (s *Storm) heal() {
	s.pool.note("all faults end")
	for len(s.until) > 0 {
		h := s.until[0]
		s.until = s.until[1:]
		h.do()
	}
	for _, f := range s.pool.fes {
		if f.run == nil {
			f.start()
		}
	}
	time.Sleep(5 * time.Second) // the longest freeze
}

// later ends a fault after a while; false if it is there already.
func (s *Storm) later(what string, min, max time.Duration, do func()) bool {
	for _, h := range s.until {
		if h.what == what {
			return false
		}
	}
	s.until = append(s.until, pendingHeal{time.Now().Add(s.between(min, max)), what, do})
	return true
}

func (s *Storm) between(min, max time.Duration) time.Duration {
	return min + time.Duration(s.rng.Int64N(int64(max-min)))
}

// one of those who run; nil if nobody does.
func (s *Storm) one() *node {
	up := s.pool.up()
	if len(up) == 0 {
		return nil
	}
	return up[s.rng.IntN(len(up))]
}

func (s *Storm) kill() bool {
	f := s.one()
	if f == nil {
		return false
	}
	f.kill()
	s.startLater(f)
	return true
}

func (s *Storm) startLater(f *node) {
	s.later("start "+string(f.name), 300*time.Millisecond, 10*time.Second, func() {
		if f.run == nil {
			f.start()
		}
	})
}

func (s *Storm) restart() bool {
	f := s.one()
	if f == nil {
		return false
	}
	f.restart()
	return true
}

func (s *Storm) killAll() bool {
	for _, f := range s.pool.up() {
		f.kill()
		s.startLater(f)
	}
	return true
}

func (s *Storm) drain() bool {
	f := s.one()
	if f == nil {
		return false
	}
	f.drain()
	s.startLater(f)
	return true
}

func (s *Storm) freeze() bool {
	f := s.one()
	if f == nil {
		return false
	}
	f.freeze(s.between(300*time.Millisecond, 4*time.Second))
	return true
}

func (s *Storm) cutBus() bool {
	f := s.one()
	if f == nil || !s.later("bus of "+string(f.name), 200*time.Millisecond, 8*time.Second, f.healBus) {
		return false
	}
	f.cutBus()
	return true
}

func (s *Storm) cutClients() bool {
	f := s.one()
	if f == nil || !s.later("clients of "+string(f.name), 200*time.Millisecond, 8*time.Second, f.healClients) {
		return false
	}
	f.cutClients()
	return true
}

func (s *Storm) cutPeers() bool {
	i, k := s.rng.IntN(len(s.pool.fes)), s.rng.IntN(len(s.pool.fes))
	a, b := string(s.pool.fes[i].name), string(s.pool.fes[k].name)
	if i == k || !s.later("peers "+a+b, 200*time.Millisecond, 8*time.Second, func() { s.pool.net.Mend(a, b) }) {
		return false
	}
	s.pool.note("%s and %s are cut from each other", a, b)
	s.pool.net.Cut(a, b)
	return true
}

func (s *Storm) busDown() bool {
	if !s.later("bus", 50*time.Millisecond, 6*time.Second, func() { s.pool.note("the bus is back"); s.pool.bus.Start() }) {
		return false
	}
	s.pool.note("the bus is down")
	s.pool.bus.Stop()
	return true
}

func (s *Storm) noQuorum() bool {
	if !s.later("quorum", 50*time.Millisecond, 7*time.Second, func() { s.pool.note("a quorum again"); s.pool.bus.SetQuorum(true) }) {
		return false
	}
	s.pool.note("no quorum")
	s.pool.bus.SetQuorum(false)
	return true
}

func (s *Storm) loseAcks() bool {
	if !s.later("acks", time.Second, 6*time.Second, func() { s.pool.note("acknowledgements arrive"); s.pool.links.setLose(0) }) {
		return false
	}
	s.pool.note("acknowledgements get lost")
	s.pool.links.setLose(0.3)
	return true
}

func (s *Storm) badNetwork() bool {
	good := s.pool.cfg.Clients
	bad := simnet.Link{Delay: good.Delay, Jitter: 30 * time.Millisecond, Loss: 0.2, Duplicate: 0.05, Reorder: 0.1}
	set := func(l simnet.Link) {
		s.pool.net.SetLink(phones, frontEnds, l)
		s.pool.net.SetLink(frontEnds, phones, l)
	}
	if !s.later("network", time.Second, 6*time.Second, func() { s.pool.note("a good network"); set(good) }) {
		return false
	}
	s.pool.note("a bad network")
	set(bad)
	return true
}

// stormConfig draws a pool from a seed.
func stormConfig(seed uint64) Config {
	rng := rand.New(rand.NewPCG(seed, 0xc0f))
	return Config{Seed: seed, FrontEnds: 2 + rng.IntN(4), Groups: 2 + rng.IntN(8), Users: 6 + rng.IntN(10)}
}

// stormPhones gives every user one to three phones, of all kinds.
func (p *Pool) stormPhones() {
	rng := rand.New(rand.NewPCG(p.cfg.Seed, 0xf0e))
	for _, u := range p.users {
		for range 1 + rng.IntN(3) {
			servers := p.addresses()
			rng.Shuffle(len(servers), func(i, k int) { servers[i], servers[k] = servers[k], servers[i] })
			if rng.IntN(3) == 0 {
				servers = servers[:1]
				servers[0] = poolAddress
			}
			ph := p.Phone(u, []string{"udp", "tcp"}[rng.IntN(2)], 10+rng.IntN(50), servers...)
			ph.fickle = rng.IntN(3) == 0
			ph.Go()
		}
	}
	p.note("%s", fmt.Sprintf("%d phones of %d users", len(p.phones), len(p.users)))
}
