package frontend

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/routing"
)

// This is the half of membership that acts: from what is seen to the next placement in the bus.

// someUnknown reports whether a member that should be up has neither pulsed nor been
// found dead since this process started, or last pulsed as another process than the one
// in the placement, before that was known: it is too early to judge the pool.
func (m *membership) someUnknown() bool {
	for _, p := range m.peers {
		if p.verdict.State == routing.Down {
			continue
		}
		if p.Pulse.At.IsZero() || p.Pulse.Boot != p.Member.Boot && p.Member.Boot != "" && !p.Pulse.At.After(p.MemberSeen) {
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
