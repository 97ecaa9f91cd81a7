package routing

import "slices"

// rule6EvenCopies moves copies from Front Ends with many to those with few until
// no exchange, direct or over others, makes the counts more even. It reports
// whether it changed anything.
func (l *layout) rule6EvenCopies() bool {
	changed := false
	stuck := make([]bool, len(l.fes)) // from here nobody with two copies less can be reached
	for {
		j := fullest(l.held, stuck)
		if j == none || l.held[j] < slices.Min(l.held)+2 {
			return changed
		}
		if l.moveCopy(j) || l.moveCopiesAlong(l.copyPath(j, stuck)) {
			changed = true
		} else {
			stuck[j] = true
		}
	}
}

// fullest returns the index of the greatest count that is not excluded, the first of equals.
func fullest(counts []int, excluded []bool) int {
	best := none
	for j, c := range counts {
		if !excluded[j] && (best == none || c > counts[best]) {
			best = j
		}
	}
	return best
}

// moveCopy moves one copy from j to the emptiest Front End that can take one and
// has at least two less. Of the groups it takes the one that costs the fewest
// new copies, then the one that is best for failure balance.
func (l *layout) moveCopy(j int) bool {
	for _, k := range ascending(l.held) {
		if l.held[k] > l.held[j]-2 {
			return false
		}
		best := none
		var bestKey [2]int
		for _, g := range l.at[j] {
			if !l.mayReplace(g, j, k) {
				continue
			}
			sec, _ := l.replaced(g, j, k)
			key := [2]int{l.newCopies(g, j, k), l.shiftCost(l.prim[g], l.sec[g], sec)}
			if best == none || slices.Compare(key[:], bestKey[:]) < 0 {
				best, bestKey = g, key
			}
		}
		if best != none {
			l.replace(best, j, k, stepCopies)
			return true
		}
	}
	return false
}

// newCopies is how many more copies must be built when k takes j's place in g: -1, 0 or 1.
func (l *layout) newCopies(g, j, k int) (n int) {
	if l.new(g, k) {
		n++
	}
	if l.new(g, j) {
		n--
	}
	return n
}

// ascending returns the indexes of counts, the smallest count first.
func ascending(counts []int) []int {
	order := make([]int, len(counts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return counts[a] - counts[b] })
	return order
}

// hop moves the copy of one group from one Front End to another.
type hop struct{ group, from, to int }

// copyPath returns a shortest chain of hops from j to a Front End with at least
// two copies less, or nil, and then marks all that it reached as stuck: what
// can be reached from there is no emptier.
func (l *layout) copyPath(j int, stuck []bool) []hop {
	came := make([]hop, len(l.fes))
	seen := slices.Clone(stuck)
	seen[j] = true
	queue := []int{j}
	for i := 0; i < len(queue); i++ {
		from := queue[i]
		for to := range l.fes {
			if seen[to] {
				continue
			}
			g := l.movable(from, to)
			if g == none {
				continue
			}
			seen[to] = true
			came[to] = hop{g, from, to}
			if l.held[to] <= l.held[j]-2 {
				return trace(came, j, to)
			}
			queue = append(queue, to)
		}
	}
	copy(stuck, seen)
	return nil
}

// movable returns the first group whose copy can go from j to k, or none.
func (l *layout) movable(j, k int) int {
	for _, g := range l.at[j] {
		if l.mayReplace(g, j, k) {
			return g
		}
	}
	return none
}

func trace(came []hop, from, to int) (path []hop) {
	for to != from {
		path = append(path, came[to])
		to = came[to].from
	}
	slices.Reverse(path)
	return path
}

// moveCopiesAlong moves one copy along each hop, all or nothing: two hops of one
// group can get into each other's way.
func (l *layout) moveCopiesAlong(path []hop) bool {
	type copies struct{ sec, ter int }
	before := make([]copies, len(path))
	for i, h := range path {
		before[i] = copies{l.sec[h.group], l.ter[h.group]}
		if l.sec[h.group] != h.from && l.ter[h.group] != h.from || !l.mayReplace(h.group, h.from, h.to) {
			for i--; i >= 0; i-- {
				l.set(path[i].group, before[i].sec, before[i].ter, 0)
			}
			return false
		}
		l.replace(h.group, h.from, h.to, stepCopies)
	}
	return len(path) > 0
}
