package routing

import "slices"

// fewestCopies undoes copies that need not be built: where a group gave up a
// living copy and got a new one, it takes the living one back if a ring of other
// moves, none of which builds more, leaves evenness and failure balance as they
// are. It reports whether it changed anything.
func (l *layout) fewestCopies() bool {
	changed := false
	for (l.deep() || l.lookedBack < lookBacks) && l.giveBack() {
		l.lookedBack++
		changed = true
	}
	return changed
}

// lookBacks bounds how often one plan of a large pool looks for copies to give
// back: the first times find nearly all of them.
const lookBacks = 8

// giveBack looks once through the groups, with the free hops as they are at the start.
func (l *layout) giveBack() bool {
	moved := l.movedGroups()
	if len(moved) == 0 {
		return false
	}
	free := l.neutralHops(moved, func(g, j, k int) bool { return l.new(g, j) == l.new(g, k) })
	changed := false
	for _, g := range moved {
		for _, k := range l.had[g] {
			for _, j := range [...]int{l.sec[g], l.ter[g]} {
				if k == none || j == none || !l.new(g, j) || !l.neutral(g, j, k) {
					continue
				}
				back := pathBetween(free, k, j)
				if back != nil && l.inTurn(back) && l.apply(append([]hop{{g, j, k}}, back...)) {
					changed = true
					break
				}
			}
		}
	}
	return changed
}

// movedGroups lists the groups that have a copy to build and gave up a living one, or could build it elsewhere.
func (l *layout) movedGroups() (groups []int) {
	gaveUp := false
	for g, had := range l.had {
		if l.sec[g] == none {
			continue
		}
		lost := slices.ContainsFunc(had[:], func(j int) bool { return j != none && !l.holds(g, j) })
		builds := l.new(g, l.sec[g]) || l.ter[g] != none && l.new(g, l.ter[g])
		gaveUp = gaveUp || lost && builds
		if lost || builds {
			groups = append(groups, g)
		}
	}
	if !gaveUp {
		return nil
	}
	return groups
}

// neutral reports whether k can take j's place in g, in the same role, without a cost to failure balance.
func (l *layout) neutral(g, j, k int) bool {
	return l.mayReplace(g, j, k) && (j == l.ter[g] || l.shiftCost(l.prim[g], j, k) == 0)
}

// neutralHops lists the moves of these groups' copies, from each Front End, that
// are neutral and allowed, one for each pair of Front Ends. One without a group passes the turn to somebody who has
// one copy more: the two change places in the count.
func (l *layout) neutralHops(groups []int, allowed func(g, j, k int) bool) [][]hop {
	n := len(l.fes)
	hops, seen := make([][]hop, n), make([]bool, n*n)
	for j := range n {
		for k := range n {
			if l.held[k] == l.held[j]+1 {
				hops[j] = append(hops[j], hop{none, j, k})
				seen[j*n+k] = true
			}
		}
	}
	for _, g := range groups {
		for _, j := range [...]int{l.sec[g], l.ter[g]} {
			for k := 0; j != none && k < n; k++ {
				if !seen[j*n+k] && allowed(g, j, k) && l.neutral(g, j, k) {
					hops[j] = append(hops[j], hop{g, j, k})
					seen[j*n+k] = true
				}
			}
		}
	}
	return hops
}

// inTurn reports whether the hops without a group still hold.
func (l *layout) inTurn(path []hop) bool {
	return !slices.ContainsFunc(path, func(h hop) bool {
		return h.group == none && l.held[h.to] != l.held[h.from]+1
	})
}

// pathBetween returns a shortest chain of hops, or nil.
func pathBetween(hops [][]hop, from, to int) []hop {
	came := make([]hop, len(hops))
	seen := make([]bool, len(hops))
	seen[from] = true
	queue := []int{from}
	for i := 0; i < len(queue); i++ {
		for _, h := range hops[queue[i]] {
			if seen[h.to] {
				continue
			}
			seen[h.to] = true
			came[h.to] = h
			if h.to == to {
				return trace(came, from, to)
			}
			queue = append(queue, h.to)
		}
	}
	return nil
}

// apply makes all hops, in the same roles, or none of them: each must be neutral when its turn comes.
func (l *layout) apply(ring []hop) bool {
	type copies struct{ g, sec, ter int }
	var before []copies
	for _, h := range ring {
		g := h.group
		if g == none {
			continue
		}
		if l.sec[g] != h.from && l.ter[g] != h.from || !l.neutral(g, h.from, h.to) {
			for _, c := range slices.Backward(before) {
				l.set(c.g, c.sec, c.ter, 0)
			}
			return false
		}
		before = append(before, copies{g, l.sec[g], l.ter[g]})
		if l.sec[g] == h.from {
			l.set(g, h.to, l.ter[g], stepCopies)
		} else {
			l.set(g, l.sec[g], h.to, stepCopies)
		}
	}
	return true
}
