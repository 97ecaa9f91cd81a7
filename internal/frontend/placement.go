package frontend

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"rollcall/bus"
	"rollcall/internal/control"
	"rollcall/routing"
)

// poolChanged takes an entry of the pool table over: a placement, a member, or
// why the newest placement was made. It is called from the watch's one goroutine.
func (f *FrontEnd) poolChanged(e bus.Entry) {
	switch {
	case e.Key == control.PlacementKey:
		f.placementChanged(e)
	case e.Key == control.SettingsKey:
		f.settingsChanged(e)
	case e.Key == control.ChangeKey:
		f.changeExplained(e)
	case strings.HasPrefix(e.Key, control.MemberPrefix):
		f.memberChanged(e)
	}
}

// settingsChanged takes the pool's keys over. The other settings hold from the next start.
func (f *FrontEnd) settingsChanged(e bus.Entry) {
	var s control.Settings
	if e.Value == nil || json.Unmarshal(e.Value, &s) != nil || len(s.Key) == 0 {
		f.log.Error("the pool's settings in the bus cannot be read; the keys stay as they are")
		return
	}
	f.auth.Keys.Set(s.Key, s.PreviousKeys...)
	if g := f.cfg.Policy.GRUU; g != nil {
		g.SetKeys(s.Key, s.PreviousKeys...)
	}
}

func (f *FrontEnd) placementChanged(e bus.Entry) {
	old := f.view.Load()
	epoch := routing.Epoch(e.Revision)
	if e.Value == nil || epoch <= old.epoch() {
		return
	}
	p, err := routing.Decode(e.Value)
	if err != nil {
		f.log.Error("the placement in the bus cannot be read; the last good one stays", "epoch", epoch, "err", err)
		return
	}
	p.Epoch = epoch
	seen := time.Now()
	next := &view{placement: p}

	changed := changedGroups(old, next)
	var held []routing.Group
	for g, c := range p.Groups {
		if c.Has(f.cfg.Name) {
			held = append(held, g)
		}
	}
	copies := f.held().with(held)
	for g, c := range copies {
		if p.Groups[g].Primary != f.cfg.Name {
			c.ready.Store(false)
		}
	}
	f.copies.Store(&copies)
	f.view.Store(next)

	f.follower.changed()
	f.promoter.changed()
	f.gates.changed(changed...)
	f.members.placementChanged()
	f.events.placementSeen(old, next, changed, seen)
}

// changedGroups returns the groups whose copies differ, in order.
func changedGroups(old, next *view) (changed []routing.Group) {
	for g, c := range next.placement.Groups {
		if old.copies(g) != c {
			changed = append(changed, g)
		}
	}
	slices.Sort(changed)
	return changed
}

func (f *FrontEnd) memberChanged(e bus.Entry) {
	name := routing.FrontEnd(strings.TrimPrefix(e.Key, control.MemberPrefix))
	if e.Value == nil {
		f.addresses.Delete(name)
		return
	}
	var m control.MemberInfo
	if err := json.Unmarshal(e.Value, &m); err != nil {
		f.log.Error("a member's entry in the bus cannot be read", "member", name, "err", err)
		return
	}
	f.addresses.Store(name, m)
	f.members.placementChanged()
}

// address returns what is known of a Front End's addresses.
func (f *FrontEnd) address(name routing.FrontEnd) (control.MemberInfo, bool) {
	m, ok := f.addresses.Load(name)
	if !ok {
		return control.MemberInfo{}, false
	}
	return m.(control.MemberInfo), true
}

// changeExplained remembers why copies are where they are, for explain.
func (f *FrontEnd) changeExplained(e bus.Entry) {
	var c control.Change
	if e.Value == nil || json.Unmarshal(e.Value, &c) != nil {
		return // only explain misses it
	}
	for _, m := range c.Moves {
		f.why.Store(m.Group, control.Why{Epoch: c.Epoch, Primary: m.To.Primary, Words: m.Why})
	}
}

// held returns the copies that this Front End holds.
func (f *FrontEnd) held() copySet {
	if s := f.copies.Load(); s != nil {
		return *s
	}
	return nil
}

// pendingPrimaries returns the copies that this Front End is primary of and that do not serve yet.
func (f *FrontEnd) pendingPrimaries() (pending []*hotCopy) {
	v := f.view.Load()
	for g, c := range f.held() {
		if v.copies(g).Primary == f.cfg.Name && !c.ready.Load() {
			pending = append(pending, c)
		}
	}
	slices.SortFunc(pending, func(a, b *hotCopy) int { return strings.Compare(string(a.group), string(b.group)) })
	return pending
}

func (f *FrontEnd) isPrimary(g routing.Group) bool {
	return f.view.Load().copies(g).Primary == f.cfg.Name
}

// groupReady lets a promoted copy serve.
func (f *FrontEnd) groupReady(g routing.Group) {
	c := f.held()[g]
	if c == nil || !f.isPrimary(g) {
		return
	}
	c.ready.Store(true)
	if !f.isPrimary(g) { // given away in this instant
		c.ready.Store(false)
		return
	}
	f.gates.changed(g)
	f.tellAll(c)
	f.leavers.look()
	if len(f.pendingPrimaries()) == 0 {
		f.events.allReady(f.view.Load().epoch(), time.Now())
	}
}
