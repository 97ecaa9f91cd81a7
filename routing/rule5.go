package routing

import "slices"

// rule5BalanceFailures spreads the secondaries of each Front End's primaries so
// that after its loss the primaries are as even as rule 6 lets them be. First by
// exchanging secondary and tertiary, which costs nothing, then by moving copies.
// It reports whether it changed anything.
func (l *layout) rule5BalanceFailures() bool {
	changed := false
	if l.copies < 3 {
		return l.relocateSecondaries()
	}
	for x := range l.fes {
		for l.flipGain(x) || l.flipPath(x) {
			changed = true
		}
	}
	return l.relocateSecondaries() || changed
}

// flipGain exchanges secondary and tertiary in every group of x where that alone is better.
func (l *layout) flipGain(x int) bool {
	changed := false
	for _, g := range l.owned[x] {
		if l.shiftCost(x, l.sec[g], l.ter[g]) < 0 {
			l.flip(g, stepFailure)
			changed = true
		}
	}
	return changed
}

// flipPath exchanges secondary and tertiary in several groups of x at once: the
// first takes a load from one Front End, each next one passes it on, the last
// leaves it where it is at least two less.
func (l *layout) flipPath(x int) bool {
	load := make([]int, len(l.fes))
	for j := range l.fes {
		load[j] = l.loadAfter(x, j)
	}
	edges := l.flipEdges(l.owned[x], nil)
	path := shortestPath(edges, load, make([]bool, len(l.fes)))
	for _, h := range path {
		l.flip(h.group, stepFailure)
	}
	return len(path) > 0
}

// flipEdges lists, for each Front End, the flips of these groups that take a
// secondary away from it: one for each other Front End. allowed may be nil.
func (l *layout) flipEdges(groups []int, allowed func(g int) bool) [][]hop {
	edges := make([][]hop, len(l.fes))
	for _, g := range groups {
		j, k := l.sec[g], l.ter[g]
		if allowed != nil && !allowed(g) {
			continue
		}
		if !slices.ContainsFunc(edges[j], func(h hop) bool { return h.to == k }) {
			edges[j] = append(edges[j], hop{g, j, k})
		}
	}
	return edges
}

// shortestPath finds a chain of hops from a Front End to one whose load is at
// least two less. The most loaded is tried first; those that are stuck, and those
// from which nothing better can be reached, are not.
func shortestPath(edges [][]hop, load []int, stuck []bool) []hop {
	came := make([]hop, len(load))
	stuck = slices.Clone(stuck)
	least := slices.Min(load)
	for {
		j := fullest(load, stuck)
		if j == none || load[j] < least+2 {
			return nil
		}
		stuck[j] = true
		queue := []int{j}
		for i := 0; i < len(queue); i++ {
			for _, h := range edges[queue[i]] {
				if stuck[h.to] {
					continue
				}
				stuck[h.to] = true
				came[h.to] = h
				if load[h.to] <= load[j]-2 {
					return trace(came, j, h.to)
				}
				queue = append(queue, h.to)
			}
		}
	}
}

// relocateSecondaries gives x's secondaries to Front Ends that would have at
// least two primaries less after its loss and hold no copy of the group yet.
func (l *layout) relocateSecondaries() bool {
	changed := false
	if l.copies < 2 {
		return false
	}
	for x := range l.fes {
		for l.relocateSecondary(x) {
			changed = true
		}
	}
	return changed
}

// relocateSecondary looks once through x's groups for each Front End that is short of load, the least loaded first.
func (l *layout) relocateSecondary(x int) bool {
	changed := false
	load := make([]int, len(l.fes))
	for j := range l.fes {
		load[j] = l.loadAfter(x, j)
	}
	for _, k := range ascending(load) {
		if k == x {
			continue
		}
		for _, g := range l.owned[x] {
			j := l.sec[g]
			if l.loadAfter(x, j) >= l.loadAfter(x, k)+2 && !l.holds(g, k) && l.moveSecondary(g, k) {
				changed = true
			}
		}
	}
	return changed
}

// moveSecondary makes k the secondary of g without making the copies less even:
// one of g's two copies goes to k, and if k isn't emptier, somebody gives another copy in exchange.
func (l *layout) moveSecondary(g, k int) bool {
	sec, ter := l.sec[g], l.ter[g]
	for _, from := range [...]int{sec, ter} { // who gives up its copy of g
		if from == none || !l.mayReplace(g, from, k) {
			continue
		}
		third := ter // the tertiary afterwards
		if from == ter {
			third = sec
		}
		if l.held[from] > l.held[k] {
			l.set(g, k, third, stepFailure)
			return true
		}
		if h := l.exchangeFor(g, from, k); h.group != none {
			l.set(g, k, third, stepFailure)
			if l.sec[h.group] == h.from {
				l.set(h.group, from, l.ter[h.group], stepFailure)
			} else {
				l.set(h.group, l.sec[h.group], from, stepFailure)
			}
			return true
		}
		if l.moveSecondaryRound(g, from, k, third) {
			return true
		}
	}
	return false
}

// deep reports whether the pool is small enough (groups times Front Ends) to look
// also for exchanges of secondaries and for longer rings. In a larger one an
// exchange with a tertiary is nearly always at hand, and the search costs too much.
func (l *layout) deep() bool { return len(l.groups)*len(l.fes) <= 2_500 }

// moveSecondaryRound makes k the secondary of g in exchange for a chain of
// neutral moves from k back to from.
func (l *layout) moveSecondaryRound(g, from, k, third int) bool {
	if !l.deep() {
		return false
	}
	all := make([]int, len(l.groups))
	for h := range all {
		all[h] = h
	}
	others := func(h, _, _ int) bool { return h != g }
	path := pathBetween(l.neutralHops(all, others), k, from)
	if path == nil || !l.inTurn(path) {
		return false
	}
	sec, ter := l.sec[g], l.ter[g]
	l.set(g, k, third, stepFailure)
	if !l.apply(path) {
		l.set(g, sec, ter, 0)
		return false
	}
	return true
}

// exchangeFor returns a copy that can go to from when from's copy of g goes to
// k: one of k, or of somebody who has more copies than k. It keeps its role, and
// doesn't cost what the move of g gains; the move of a tertiary costs nothing.
func (l *layout) exchangeFor(g, from, k int) hop {
	x := l.prim[g]
	gain := l.shiftCost(x, l.sec[g], k)
	for m := range l.fes {
		if m != k && (m == from || l.held[m] <= l.held[k]) || !l.affordable(x, m, from, gain) {
			continue
		}
		for _, h := range l.at[m] {
			if h == g || !l.mayReplace(h, m, from) {
				continue
			}
			if l.ter[h] == m {
				return hop{h, m, from}
			}
			if y := l.prim[h]; l.deep() && y != x && gain+l.shiftCost(y, m, from) < 0 {
				return hop{h, m, from}
			}
		}
	}
	return hop{group: none}
}

// affordable reports whether m has any copy that exchangeFor could take. It
// spares the look at each of its groups: mostly there is none.
func (l *layout) affordable(x, m, from, gain int) bool {
	if l.held[m] > l.primaries[m]+l.secondaries[m] {
		return true // it has tertiaries
	}
	if !l.deep() {
		return false
	}
	limit := l.primaries[m] - l.primaries[from] - 1 - gain
	for y, heirs := range l.heirs {
		if y != x && heirs[from]-heirs[m] < limit && heirs[m] > 0 {
			return true
		}
	}
	return false
}

// evenSecondaries exchanges secondaries and tertiaries where failure balance
// doesn't mind, so that the Front Ends have secondaries evenly. It reports
// whether it changed anything.
func (l *layout) evenSecondaries() bool {
	if l.copies < 3 {
		return false
	}
	changed := false
	neutral := func(g int) bool { return l.shiftCost(l.prim[g], l.sec[g], l.ter[g]) <= 0 }
	all := make([]int, len(l.groups))
	for g := range all {
		all[g] = g
		if neutral(g) && l.secondaries[l.sec[g]] >= l.secondaries[l.ter[g]]+2 {
			l.flip(g, stepSecondaries)
			changed = true
		}
	}
	stuck := make([]bool, len(l.fes))
	for {
		path := shortestPath(l.flipEdges(all, neutral), l.secondaries, stuck)
		if path == nil {
			return changed
		}
		if l.flipAll(path, neutral) {
			changed = true
		} else {
			stuck[path[0].from] = true
		}
	}
}

// flipAll flips the groups of a path, all or nothing: two flips of one primary's
// groups, each allowed alone, may not be together.
func (l *layout) flipAll(path []hop, allowed func(g int) bool) bool {
	for i, h := range path {
		if !allowed(h.group) {
			for _, h := range path[:i] {
				l.flip(h.group, 0)
			}
			return false
		}
		l.flip(h.group, stepSecondaries)
	}
	return true
}
