package frontend

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/bus"
	"rollcall/routing"
)

// membership watches the other Front Ends, and when what it sees differs from the
// placement it computes the next one and tries to store it. All Front Ends do the
// same; the first compare-and-swap wins. One goroutine, run, owns the state; the
// decisions are those of the routing package.
type membership struct {
	cfg    Config
	boot   string
	bus    bus.Bus
	net    Net
	logger *slog.Logger
	view   func() *view
	health func(routing.FrontEnd) string // address of a health port, "" if not known
	events *events
	fence  func() // this Front End was cut off: let the clients go

	input   chan func(now time.Time) // what happened, for run; see post
	isFence atomic.Bool
	own     atomic.Value // routing.State of this Front End
	epoch   atomic.Uint64

	// Owned by run.
	peers     map[routing.FrontEnd]*peer
	started   time.Time // since when this Front End could have formed the pool
	lastTick  time.Time
	lastPulse time.Time
	busLost   time.Time     // zero: connected
	lag       time.Duration // how late ticks lately came; see patience
	due       time.Time     // when to try the compare-and-swap; zero: nothing to do
	acting    bool
	settled   settled
	ping      func(*peer) // set by run
	twin      string      // boot id of another process that goes by this Front End's name
	probes    sync.WaitGroup
}

// settled is what was last found to need no new placement.
type settled struct {
	epoch   routing.Epoch
	members map[routing.FrontEnd]routing.Member
}

// peer is another Front End and what is known of it.
type peer struct {
	routing.Evidence
	verdict   routing.Verdict
	suspected time.Time // first of an unbroken run of doubts; zero: none
	pinging   int       // pings under way
	asking    bool      // a health probe is under way
	hasBus    bool      // said its health port, newest answer
}

// pulse is what a Front End tells the others ten times a second.
type pulse struct {
	Boot  string        `json:"boot"`
	State routing.State `json:"state"`
	Zone  string        `json:"zone,omitempty"`
	Epoch routing.Epoch `json:"epoch"`
}

const (
	membershipQueue = 1024 // inputs that wait for run; more make pulses wait in the bus's own queue
	pingsAtOnce     = 16   // per peer
	pingAll         = 8    // up to this many peers everybody pings everybody
	pingNext        = 3    // in a larger pool a Front End pings the next ones by name
	rankApart       = 3 * time.Millisecond
	storeTimeout    = 2 * time.Second
	lagPatience     = 5 // times the lag that silence may last longer
	mostPatience    = 10 * time.Second
)

// post hands run something that happened. It is dropped if run has ended.
func (m *membership) post(ctx context.Context, what func(now time.Time)) {
	select {
	case m.input <- what:
	case <-ctx.Done():
	}
}

func (m *membership) fenced() bool { return m.isFence.Load() }

func (m *membership) state() routing.State { return m.own.Load().(routing.State) }

// placementChanged, accuse and setState may be called from anywhere and never block.
func (m *membership) placementChanged() { m.nudge(func(time.Time) {}) }

// accuse says that nobody answered for a Front End: it is pinged right now.
func (m *membership) accuse(fe routing.FrontEnd) {
	m.nudge(func(now time.Time) {
		if p := m.peers[fe]; p != nil {
			m.pingNow(p)
		}
	})
}

func (m *membership) setState(s routing.State) {
	m.own.Store(s)
	m.nudge(func(time.Time) { m.lastPulse = time.Time{} }) // tell the others at once
}

func (m *membership) nudge(what func(time.Time)) {
	select {
	case m.input <- what:
	default: // the queue is full, so run is about to look at everything anyway
	}
}

// run until ctx ends; waits for its probes.
func (m *membership) run(ctx context.Context) error {
	defer m.probes.Wait()
	m.lastTick = time.Now()
	if err := m.bus.Pulses(ctx, func(fe string, data []byte) { m.heard(ctx, routing.FrontEnd(fe), data) }); err != nil {
		return err
	}
	ping := m.pinger(ctx)
	tick := time.NewTicker(m.cfg.Rules.PingEvery)
	defer tick.Stop()
	due := time.NewTimer(time.Hour)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case what := <-m.input:
			what(time.Now())
		case <-due.C:
		case <-tick.C:
			m.tick(ping)
		}
		if err := m.yieldToTwin(); err != nil {
			return err
		}
		m.consider(ctx, time.Now())
		if !m.due.IsZero() && !m.acting {
			due.Reset(max(0, time.Until(m.due)))
		}
	}
}

// yieldToTwin ends this Front End if another process has its name and the better claim:
// it is the one in the placement, or, when neither is, has the lower boot id.
func (m *membership) yieldToTwin() error {
	if m.twin == "" {
		return nil
	}
	twin := m.twin
	m.twin = ""
	placed := m.view().placement.Members[m.cfg.Name].Boot
	if placed == m.boot || placed != twin && m.boot < twin {
		m.logger.Error("another process goes by this Front End's name; it should stop", "its_boot", twin)
		return nil
	}
	return errTwin(m.cfg.Name, twin)
}

func errTwin(name routing.FrontEnd, boot string) error {
	return fmt.Errorf("a Front End named %s runs already in this pool (boot %s): stop it, or give this one another --name", name, boot)
}

// tick pulses, pings, and looks whether the bus is there.
func (m *membership) tick(ping func(*peer)) {
	now := time.Now()
	if now.Sub(m.lastTick) > m.cfg.Rules.DownAfter/2 {
		// This process was stopped for a while: the others' silence was its own.
		m.logger.Warn("this process stood still; what it missed counts for nothing", "for", now.Sub(m.lastTick).Round(time.Millisecond))
		m.listenAnew(now)
	}
	m.lag = max(now.Sub(m.lastTick)-m.cfg.Rules.PingEvery, m.lag-m.lag/256) // halves in some 180 ticks, 3.5 s
	m.lastTick = now
	switch {
	case m.bus.Connected():
		if !m.busLost.IsZero() {
			m.listenAnew(now) // nobody could be heard meanwhile
		}
		m.busLost = time.Time{}
	case m.busLost.IsZero():
		m.busLost = now
	}
	if now.Sub(m.lastPulse) >= m.cfg.Rules.PulseEvery {
		m.lastPulse = now
		m.pulse()
	}
	for _, p := range m.neighbours() {
		ping(p)
	}
}

// patience is the rules, with more time for others the later this Front End itself gets to
// run: on a machine that has too much to do, silence is no sign of death.
func (m *membership) patience() routing.Rules {
	r := m.cfg.Rules
	more := min(lagPatience*m.lag, mostPatience)
	r.DownAfter += more
	r.ReconnectGrace += more
	return r
}

// listenAnew lets silence up to now count for nothing.
func (m *membership) listenAnew(now time.Time) {
	for _, p := range m.peers {
		p.FirstSeen = now
		p.NobodySince = time.Time{}
	}
}

func (m *membership) pulse() {
	data, err := json.Marshal(pulse{Boot: m.boot, State: m.state(), Zone: m.cfg.Zone, Epoch: m.view().epoch()})
	if err == nil {
		_ = m.bus.Pulse(string(m.cfg.Name), data) // silence is what tells the others
	}
}

// heard is called by the bus for each pulse.
func (m *membership) heard(ctx context.Context, fe routing.FrontEnd, data []byte) {
	var p pulse
	if err := json.Unmarshal(data, &p); err != nil {
		return // counts as silence
	}
	if fe == m.cfg.Name {
		if p.Boot != m.boot {
			m.post(ctx, func(time.Time) { m.twin = p.Boot })
		}
		return
	}
	m.post(ctx, func(now time.Time) {
		q := m.peer(fe, now)
		if q.Member.State == routing.Down && q.Member.Boot == p.Boot && now.Sub(q.MemberSeen) < m.cfg.Rules.PulseEvery/2 {
			return // sent before it died, and late
		}
		q.Pulse = routing.Pulse{At: now, Boot: p.Boot, State: p.State}
		if p.Zone != "" {
			q.Member.Zone = p.Zone
		}
	})
}

func (m *membership) peer(fe routing.FrontEnd, now time.Time) *peer {
	p := m.peers[fe]
	if p == nil {
		p = &peer{}
		p.Member.Name = fe
		p.FirstSeen = now
		m.peers[fe] = p
	}
	return p
}

// neighbours returns whom this Front End pings: all in a small pool, the next ones by name in a large one.
func (m *membership) neighbours() []*peer {
	var up []routing.FrontEnd
	for fe, p := range m.peers {
		if p.verdict.State != routing.Down || m.view().placement.Members[fe].State != routing.Down {
			up = append(up, fe)
		}
	}
	slices.Sort(up)
	n := len(up)
	if n > pingAll {
		n = pingNext
	}
	after, _ := slices.BinarySearch(up, m.cfg.Name)
	next := make([]*peer, 0, n)
	for i := range n {
		next = append(next, m.peers[up[(after+i)%len(up)]])
	}
	return next
}

// consider judges everybody and acts on it.
func (m *membership) consider(ctx context.Context, now time.Time) {
	m.learnMembers(now)
	self := m.self(now)
	m.considerFence(ctx, self, now)
	for _, p := range m.peers {
		m.judge(ctx, p, self, now)
	}
	m.considerPlacement(ctx, now)
}

// learnMembers takes over what the placement says of the others.
func (m *membership) learnMembers(now time.Time) {
	v := m.view()
	if uint64(v.epoch()) == m.epoch.Load() {
		return
	}
	m.epoch.Store(uint64(v.epoch()))
	for fe, member := range v.placement.Members {
		if fe == m.cfg.Name {
			continue
		}
		p := m.peer(fe, now)
		if p.Member != member {
			p.MemberSeen = now
		}
		if p.Member.State == routing.Down && member.State == routing.Up {
			// Somebody has seen it live: that nobody answered for it before counts for nothing.
			p.FirstSeen, p.NobodySince, p.Ping = now, time.Time{}, routing.Probe{}
		}
		p.Member = member
	}
}

// self is what this Front End knows of its own place in the pool.
func (m *membership) self(now time.Time) routing.Self {
	s := routing.Self{BusLost: m.busLost}
	for _, p := range m.peers {
		if p.Member.State == routing.Down && now.Sub(p.Pulse.At) > m.cfg.Rules.DownAfter {
			continue
		}
		s.Others++
		if now.Sub(p.Pulse.At) <= m.cfg.Rules.DownAfter {
			s.Heard++
		}
		if p.Health.Outcome == routing.Answered && now.Sub(p.Health.At) <= m.cfg.Rules.FenceAfter {
			s.PeersReached++
			s.PeerHasBus = s.PeerHasBus || p.hasBus
		}
	}
	return s
}

func (m *membership) judge(ctx context.Context, p *peer, self routing.Self, now time.Time) {
	was := p.verdict
	p.verdict = routing.Judge(m.patience(), p.Evidence, self, now)
	lostBus := !m.busLost.IsZero() && now.Sub(m.busLost) > m.cfg.Rules.FenceAfter/2 &&
		now.Sub(p.Health.At) >= m.cfg.Rules.PulseEvery // else the answer to one probe would be the reason for the next
	if p.verdict.ProbeHealth || lostBus {
		m.askHealth(ctx, p)
	}
	if !p.verdict.Suspect && p.verdict.State != routing.Down {
		p.suspected = time.Time{}
	} else if p.suspected.IsZero() {
		p.suspected = now
	}
	if was.State != p.verdict.State && p.verdict.State == routing.Down && p.Member.State != routing.Down {
		m.logger.Warn("a Front End counts as down", "subject", p.Member.Name, "why", p.verdict.Why)
	}
}

// considerFence lets the clients go when this Front End alone is cut off, and takes them again after.
func (m *membership) considerFence(ctx context.Context, self routing.Self, now time.Time) {
	fence, why := routing.Fence(m.cfg.Rules, self, now)
	if fence == m.isFence.Load() {
		return
	}
	m.isFence.Store(fence)
	if fence {
		m.logger.Error("fenced: this Front End lost the bus and others did not; its clients are sent away", "why", why)
		m.fence()
		return
	}
	m.logger.Info("no longer fenced: the bus is back")
}
