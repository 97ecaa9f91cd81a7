package routing

import "slices"

// Rebalance is rule 9, a person's decision: the fewest moves of primaries that
// make them even within one, to Front Ends that hold a copy of the group where
// possible. The former primary becomes the secondary. Everything else follows as in PlanFor.
func Rebalance(cur Placement, members []Member) Plan {
	known := byName(members)
	l := newLayout(cur, known)
	l.rule3PromoteSurvivors()
	if len(l.fes) > 0 {
		l.rule4And8PlacePrimaries()
		l.rule9EvenPrimaries()
		l.count()
		l.settle()
	}
	return l.plan(cur, known)
}

// rule9EvenPrimaries takes primaries from Front Ends that have too many, first
// to the secondary, then to the tertiary, then to whom has the fewest.
func (l *layout) rule9EvenPrimaries() {
	surplus := l.surplus()
	take := func(g, k int) {
		j := l.prim[g]
		surplus[j]--
		surplus[k]++
		if k == l.ter[g] || k != l.sec[g] && l.sec[g] != none {
			l.ter[g] = l.sec[g]
		}
		l.prim[g], l.sec[g] = k, j
		l.touched[g] |= stepRebalance
		if l.copies < 3 {
			l.ter[g] = none
		}
	}
	for _, copyOf := range [...]func(g int) int{
		func(g int) int { return l.sec[g] },
		func(g int) int { return l.ter[g] },
		func(g int) int { return neediest(surplus, func(k int) bool { return !l.holds(g, k) }) },
	} {
		for g := range l.groups {
			if k := copyOf(g); surplus[l.prim[g]] > 0 && k != none && surplus[k] < 0 {
				take(g, k)
			}
		}
	}
}

// surplus is how many primaries each Front End has more than its even share.
// Where shares differ by one, the greater ones go to those that have the most.
func (l *layout) surplus() []int {
	n := len(l.fes)
	surplus := make([]int, n)
	for _, j := range l.prim {
		surplus[j]++
	}
	share, rest := len(l.groups)/n, len(l.groups)%n
	order := ascending(surplus)
	slices.Reverse(order)
	for i, j := range order {
		surplus[j] -= share
		if i < rest {
			surplus[j]--
		}
	}
	return surplus
}

// neediest returns the allowed index with the least surplus, or none.
func neediest(surplus []int, allowed func(k int) bool) int {
	best := none
	for k, s := range surplus {
		if allowed(k) && (best == none || s < surplus[best]) {
			best = k
		}
	}
	return best
}
