package routing

import (
	"cmp"
	"slices"
)

// Plan is a change of placement. Next keeps the epoch of what it was planned
// from: the store gives the new one.
type Plan struct {
	Next  Placement
	Moves []Move // by group; the groups whose copies or roles change

	unchanged bool
}

// Move is the change of one group, and why, for people.
type Move struct {
	Group    Group
	From, To Copies
	Why      string
}

// Empty reports whether nothing changes, members included.
func (p Plan) Empty() bool { return p.unchanged }

// PlanFor computes the placement that follows from cur when the members are as
// given: all that are known, in any order. Only Up members get copies. A member
// with another Boot than in cur restarted: its copies are gone, and it may get new ones.
//
// This is rules 1 to 8, one function each; where they conflict, the order is:
// live primaries stay (2), promotion (3), zones (7), copies even (6), primaries
// even after any failure (5), fewest moves, secondaries even.
func PlanFor(cur Placement, members []Member) Plan {
	known := byName(members)
	l := newLayout(cur, known)
	l.rule3PromoteSurvivors()
	if len(l.fes) > 0 {
		l.rule4And8PlacePrimaries()
		l.count()
		l.settle()
	}
	return l.plan(cur, known)
}

// NeedsForming reports whether rule 8 applies: no copy of any group is on a
// member that is alive, so that primaries are placed freely and the pool should
// first wait until it is ReadyToForm.
func NeedsForming(cur Placement, members []Member) bool {
	l := newLayout(cur, byName(members))
	return !slices.ContainsFunc(l.had, func(had [3]int) bool { return had[0] != none })
}

// byName indexes the members; of two with the same name the choice doesn't depend on their order.
func byName(members []Member) map[FrontEnd]Member {
	known := make(map[FrontEnd]Member, len(members))
	for _, m := range members {
		if old, twice := known[m.Name]; !twice || compareMembers(old, m) < 0 {
			known[m.Name] = m
		}
	}
	return known
}

func compareMembers(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.State, b.State), cmp.Compare(a.Zone, b.Zone))
}

// settle places all copies but the primaries.
func (l *layout) settle() {
	l.rule7SpreadZones()
	l.rule1FillCopies()
	for changed := true; changed; {
		changed = l.rule6EvenCopies()
		changed = l.rule5BalanceFailures() || changed
		changed = l.fewestCopies() || changed
		changed = l.evenSecondaries() || changed
	}
}

// Rules 2 and 3: a live primary stays; a dead one is replaced by its secondary,
// or its tertiary if that is dead too. So the live copies move up, in their order.
func (l *layout) rule3PromoteSurvivors() {
	n := len(l.groups)
	l.prim, l.sec, l.ter = make([]int, n), make([]int, n), make([]int, n)
	for g, live := range l.had {
		l.prim[g], l.sec[g], l.ter[g] = live[0], live[1], live[2]
	}
}

// Rules 4 and 8: a group without a living copy gets its primary on the Front End
// with the fewest. At formation and after the whole pool was down these are all
// groups, and primaries come out even within one.
func (l *layout) rule4And8PlacePrimaries() {
	primaries, held := make([]int, len(l.fes)), make([]int, len(l.fes))
	for _, live := range l.had {
		if live[0] != none {
			primaries[live[0]]++
		}
		for _, j := range live {
			if j != none {
				held[j]++
			}
		}
	}
	for g := range l.groups {
		if l.prim[g] != none {
			continue
		}
		best := 0
		for j := range l.fes {
			if cmp.Or(cmp.Compare(primaries[j], primaries[best]), cmp.Compare(held[j], held[best])) < 0 {
				best = j
			}
		}
		l.prim[g] = best
		primaries[best]++
		held[best]++
	}
}

// Rule 1: every group has min(3, live) copies. A missing one goes where copies
// are short; among those, where the group's primary would leave the fewest primaries.
func (l *layout) rule1FillCopies() {
	floor, ceil := l.evenLevels()
	if l.copies >= 2 {
		for g := range l.groups {
			if l.sec[g] == none {
				l.set(g, l.roomiest(g, ceil, ceil), none, stepFill)
			}
		}
	}
	if l.copies < 3 {
		return
	}
	for g, x := range l.prim {
		if l.ter[g] != none {
			continue
		}
		k := l.roomiest(g, floor, ceil)
		if l.shiftCost(x, l.sec[g], k) < 0 {
			l.set(g, k, l.sec[g], stepFill)
		} else {
			l.set(g, l.sec[g], k, stepFill)
		}
	}
}

// evenLevels returns the fewest and the most copies of a Front End when all are
// even, apart from those whose primaries alone are more.
func (l *layout) evenLevels() (floor, ceil int) {
	total := len(l.groups) * l.copies
	filled := func(level int) (sum int) {
		for _, p := range l.primaries {
			sum += max(p, level)
		}
		return sum
	}
	low, high := 0, len(l.groups) // filled(low) <= total
	for low < high {
		if mid := (low + high + 1) / 2; filled(mid) <= total {
			low = mid
		} else {
			high = mid - 1
		}
	}
	if filled(low) < total {
		return low, low + 1
	}
	return low, low
}

// roomiest returns the Front End that should get a further copy of g.
func (l *layout) roomiest(g, floor, ceil int) int {
	x, best := l.prim[g], none
	var bestKey [6]int
	wantZone := l.zonesOf(x, l.sec[g], l.ter[g]) < l.bestZones
	for k := range l.fes {
		if l.holds(g, k) {
			continue
		}
		var key [6]int
		if wantZone && l.zonesOf(x, l.sec[g], k) == l.zonesOf(x, l.sec[g], none) {
			key[0] = 1
		}
		switch {
		case l.held[k] >= ceil:
			key[1] = 2
		case l.held[k] >= floor:
			key[1] = 1
		}
		key[2], key[3], key[4] = l.loadAfter(x, k), l.held[k], l.secondaries[k]
		key[5] = (k - x + len(l.fes)) % len(l.fes) // neighbours of different Front Ends differ
		if best == none || slices.Compare(key[:], bestKey[:]) < 0 {
			best, bestKey = k, key
		}
	}
	return best
}

// Rule 7: copies in different zones as far as possible. Copies that share a zone
// while another zone has none are taken away, the later first; rule 1 fills their places.
func (l *layout) rule7SpreadZones() {
	if l.bestZones < 2 {
		return
	}
	for g, x := range l.prim {
		sec, ter := l.sec[g], l.ter[g]
		missing := 0
		for _, j := range [...]int{sec, ter} {
			if j == none {
				missing++
			}
		}
		missing -= 3 - l.copies
		short := l.bestZones - l.zonesOf(x, sec, ter) - missing
		if short > 0 && ter != none && l.zonesOf(x, sec, none) == l.zonesOf(x, sec, ter) {
			ter = none
			short--
		}
		if short > 0 && sec != none && l.zonesOf(x, none, ter) == l.zonesOf(x, sec, ter) {
			sec, ter = ter, none
		}
		if sec != l.sec[g] || ter != l.ter[g] {
			l.set(g, sec, ter, stepZones)
		}
	}
}

// zonesOf counts the zones of up to three copies.
func (l *layout) zonesOf(x, sec, ter int) int {
	n := 1
	if sec != none && l.zone[sec] != l.zone[x] {
		n++
	}
	if ter != none && l.zone[ter] != l.zone[x] && (sec == none || l.zone[ter] != l.zone[sec]) {
		n++
	}
	return n
}

// mayReplace reports whether k can take j's place in g: it holds no copy of it, and no zone is lost.
func (l *layout) mayReplace(g, j, k int) bool {
	if l.holds(g, k) {
		return false
	}
	if l.bestZones < 2 || l.zone[j] == l.zone[k] {
		return true
	}
	other := l.sec[g]
	if other == j {
		other = l.ter[g]
	}
	return l.zonesOf(l.prim[g], other, k) >= l.zonesOf(l.prim[g], other, j)
}
