package frontend

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rollcall/bus"
	"rollcall/internal/control"
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
	fence  func(why string) // this Front End was cut off: let the clients go

	input   chan func(now time.Time) // what happened, for run; see post
	isFence atomic.Bool
	own     atomic.Value // routing.State of this Front End
	epoch   atomic.Uint64

	// Owned by run.
	peers     map[routing.FrontEnd]*peer
	started   time.Time // since when this Front End could have formed the pool
	lastTick  time.Time
	lastPulse time.Time
	busLost   time.Time // zero: connected
	due       time.Time // when to try the compare-and-swap; zero: nothing to do
	acting    bool
	settled   settled
	ping      func(*peer) // set by run
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
		m.consider(ctx, time.Now())
		if !m.due.IsZero() && !m.acting {
			due.Reset(max(0, time.Until(m.due)))
		}
	}
}

// tick pulses, pings, and looks whether the bus is there.
func (m *membership) tick(ping func(*peer)) {
	now := time.Now()
	if now.Sub(m.lastTick) > m.cfg.Rules.DownAfter/2 {
		// This process was stopped for a while: the others' silence was its own.
		m.logger.Warn("this process stood still; what it missed counts for nothing", "for", now.Sub(m.lastTick).Round(time.Millisecond))
		m.listenAnew(now)
	}
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
	if fe == m.cfg.Name {
		return
	}
	var p pulse
	if err := json.Unmarshal(data, &p); err != nil {
		return // counts as silence
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
	p.verdict = routing.Judge(m.cfg.Rules, p.Evidence, self, now)
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
		m.fence(why)
		return
	}
	m.logger.Info("no longer fenced: the bus is back")
}

// someUnknown reports whether a member that should be up has neither given a sign
// nor been found dead since this process started: it is too early to judge the pool.
func (m *membership) someUnknown() bool {
	for _, p := range m.peers {
		if p.verdict.State != routing.Down && p.Pulse.At.IsZero() && p.Ping.Outcome != routing.Answered {
			return true
		}
	}
	return false
}

// members returns everybody as judged now, this Front End included.
func (m *membership) members() []routing.Member {
	list := []routing.Member{{Name: m.cfg.Name, Zone: m.cfg.Zone, Boot: m.boot, State: m.state()}}
	for fe, p := range m.peers {
		if p.verdict.State == "" {
			continue // not judged yet
		}
		was, member := m.view().placement.Members[fe]
		if !member && p.verdict.State != routing.Up {
			continue // never was a member, and is none yet
		}
		is := routing.Member{Name: fe, Zone: p.Member.Zone, Boot: p.verdict.Boot, State: p.verdict.State}
		if is.State == routing.Joining && was.State == routing.Up && is.Boot == was.Boot {
			is.State = routing.Up // somebody heard a newer pulse than we did
		}
		list = append(list, is)
	}
	slices.SortFunc(list, func(a, b routing.Member) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return list
}

// considerPlacement computes the placement that follows from what is seen, and when it
// differs tries to store it, when this Front End's turn by rank has come.
func (m *membership) considerPlacement(ctx context.Context, now time.Time) {
	due := m.due
	m.due = time.Time{} // unless it turns out below that there still is something to wait for
	if m.acting || m.fenced() || m.view() == nil || m.state() == routing.Joining {
		return
	}
	if m.someUnknown() {
		return
	}
	members := m.members()
	cur := m.view().placement
	if cur.Groups == nil {
		cur = routing.NewPlacement(routing.GroupNames(m.cfg.Groups))
	}
	if m.isSettled(cur.Epoch, members) || !m.mayPlace(cur, members, now) {
		return
	}
	plan := routing.PlanFor(cur, members)
	if plan.Empty() {
		m.settled = settled{epoch: cur.Epoch, members: byName(members)}
		return
	}
	if due.IsZero() {
		due = now.Add(time.Duration(m.rank(members)) * rankApart)
	}
	if now.Before(due) {
		m.due = due
		return
	}
	m.acting = true
	change := m.explain(cur, plan, members, now)
	m.probes.Go(func() { m.store(ctx, cur, plan, change) })
}

func (m *membership) isSettled(e routing.Epoch, members []routing.Member) bool {
	return m.settled.members != nil && m.settled.epoch == e && maps.Equal(m.settled.members, byName(members))
}

func byName(members []routing.Member) map[routing.FrontEnd]routing.Member {
	by := make(map[routing.FrontEnd]routing.Member, len(members))
	for _, mem := range members {
		by[mem.Name] = mem
	}
	return by
}

// mayPlace holds the first placement, and the one after the whole pool was down,
// back until enough Front Ends are there.
func (m *membership) mayPlace(cur routing.Placement, members []routing.Member, now time.Time) bool {
	up := 0
	for _, mem := range members {
		if mem.State == routing.Up {
			up++
		}
	}
	if up == 0 {
		return false
	}
	if !routing.NeedsForming(cur, members) {
		m.started = time.Time{}
		return true
	}
	if m.started.IsZero() {
		m.started = now
	}
	return routing.ReadyToForm(m.cfg.Rules, up, m.cfg.Expect, m.started, now)
}

// rank is this Front End's place among those who are up: they try one after the
// other, so that most of the time only the first one writes.
func (m *membership) rank(members []routing.Member) (rank int) {
	for _, mem := range members {
		if mem.Name == m.cfg.Name {
			return rank
		}
		if mem.State == routing.Up {
			rank++
		}
	}
	return rank
}

// explain says in words why a placement is made.
func (m *membership) explain(cur routing.Placement, plan routing.Plan, members []routing.Member, now time.Time) control.Change {
	c := control.Change{By: m.cfg.Name, AllMoves: len(plan.Moves)}
	c.Timeline.Decided = now
	for _, mem := range members {
		was, known := cur.Members[mem.Name]
		if known && was == mem {
			continue
		}
		c.Cause = join(c.Cause, m.cause(was, mem, known))
		if p := m.peers[mem.Name]; p != nil && mem.State == routing.Down {
			c.Timeline.LastSign = later(p.Pulse.At, p.lastAnswer())
			c.Timeline.Suspected = p.suspected
		}
	}
	for _, move := range plan.Moves[:min(len(plan.Moves), control.MostMoves)] {
		c.Moves = append(c.Moves, control.Move(move))
	}
	return c
}

func (m *membership) cause(was, is routing.Member, known bool) string {
	switch p := m.peers[is.Name]; {
	case is.State == routing.Down && p != nil:
		return string(is.Name) + " is down: " + p.verdict.Why
	case is.State == routing.Draining:
		return string(is.Name) + " is draining"
	case !known:
		return string(is.Name) + " joined"
	case was.Boot != is.Boot:
		return string(is.Name) + " restarted"
	case was.State == routing.Down:
		return string(is.Name) + " returned"
	default:
		return string(is.Name) + " is " + string(is.State)
	}
}

func (p *peer) lastAnswer() time.Time {
	if p.Ping.Outcome == routing.Answered {
		return p.Ping.At
	}
	return time.Time{}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// store tries the compare-and-swap. Whoever loses it sees the winner's placement through the watch.
func (m *membership) store(ctx context.Context, cur routing.Placement, plan routing.Plan, change control.Change) {
	sctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	data, err := routing.Encode(plan.Next)
	var rev bus.Revision
	if err == nil {
		rev, err = m.bus.Pool().Put(sctx, bus.Write{Key: control.PlacementKey, Value: data, Expect: bus.Revision(cur.Epoch)})
	}
	switch {
	case err == nil:
		change.Epoch = routing.Epoch(rev)
		change.Timeline.Stored = time.Now()
		m.logger.Info("placed", "epoch", change.Epoch, "cause", change.Cause, "moves", change.AllMoves)
		m.events.decided(change)
		m.storeChange(sctx, change)
		// Wait for one's own write to be seen, so that it is not planned a second time.
		for m.view().epoch() < change.Epoch && sctx.Err() == nil {
			pause(sctx, time.Millisecond)
		}
	case errors.Is(err, bus.ErrConflict):
		pause(sctx, 5*time.Millisecond) // for the watch to bring it
	case ctx.Err() == nil:
		m.logger.Warn("the new placement could not be stored; trying again", "err", err)
		pause(ctx, 100*time.Millisecond)
	}
	m.post(ctx, func(time.Time) { m.acting = false })
}

// storeChange leaves the reasons for explain. Losing them costs nothing else.
func (m *membership) storeChange(ctx context.Context, c control.Change) {
	data, err := json.Marshal(c)
	if err != nil {
		return
	}
	for range 3 {
		e, err := m.bus.Pool().Get(ctx, control.ChangeKey)
		if err != nil && !errors.Is(err, bus.ErrNotFound) {
			return
		}
		if _, err = m.bus.Pool().Put(ctx, bus.Write{Key: control.ChangeKey, Value: data, Expect: e.Revision}); err == nil {
			return
		}
	}
}
