package routing

import (
	"maps"
	"slices"
)

// none is the index of an absent copy.
const none = -1

// A step of the planner that touched a group; the reasons of a move are told from it.
type step uint8

const (
	stepZones step = 1 << iota
	stepFill
	stepCopies
	stepFailure
	stepSecondaries
	stepRebalance
)

// layout is a placement in numbers, while it is being planned: groups and Up
// members by their index in sorted order, with the counts that the rules compare.
type layout struct {
	groups []Group
	fes    []FrontEnd
	zone   []int // of each Front End

	prim, sec, ter []int    // of each group
	had            [][3]int // of each group: the live copies it had at first
	touched        []step   // of each group

	copies    int // that each group should have
	bestZones int // that each group's copies can be spread over

	lookedBack int // how often fewestCopies went through all groups

	primaries   []int   // of each Front End
	held        []int   // copies of each Front End
	secondaries []int   // of each Front End
	heirs       [][]int // heirs[x][j]: of x's primaries, how many have their secondary on j
	owned       [][]int // of each Front End: the groups it is primary of, in order
	at          [][]int // of each Front End: the groups it holds another copy of, in order
}

// newLayout notes, in order, the copies of cur on members that are alive: Up, and
// not restarted since. Nothing is placed yet.
func newLayout(cur Placement, members map[FrontEnd]Member) *layout {
	l := &layout{groups: cur.SortedGroups()}
	zones := map[string]int{}
	index := map[FrontEnd]int{}
	for _, fe := range slices.Sorted(maps.Keys(members)) {
		m := members[fe]
		if m.State != Up {
			continue
		}
		z, ok := zones[m.Zone]
		if !ok {
			z = len(zones)
			zones[m.Zone] = z
		}
		index[fe] = len(l.fes)
		l.fes = append(l.fes, fe)
		l.zone = append(l.zone, z)
	}
	l.copies = min(3, len(l.fes))
	l.bestZones = min(l.copies, len(zones))

	l.had, l.touched = make([][3]int, len(l.groups)), make([]step, len(l.groups))
	for g, name := range l.groups {
		live := [3]int{none, none, none}
		i := 0
		for _, fe := range cur.Groups[name].List() {
			j, up := index[fe]
			if up && alive(cur.Members[fe], members[fe]) && !slices.Contains(live[:], j) {
				live[i] = j
				i++
			}
		}
		l.had[g] = live
	}
	return l
}

// alive reports whether the copies that a member held when it was as before are still there.
func alive(before, now Member) bool { return now.State == Up && now.Boot == before.Boot }

// count fills in the counts and lists, once all primaries are placed.
func (l *layout) count() {
	n := len(l.fes)
	l.primaries, l.held, l.secondaries = make([]int, n), make([]int, n), make([]int, n)
	l.heirs, l.owned, l.at = make([][]int, n), make([][]int, n), make([][]int, n)
	for j := range n {
		l.heirs[j] = make([]int, n)
	}
	for g, x := range l.prim {
		sec, ter := l.sec[g], l.ter[g]
		l.sec[g], l.ter[g] = none, none
		l.primaries[x]++
		l.held[x]++
		l.owned[x] = append(l.owned[x], g)
		l.set(g, sec, ter, 0)
	}
}

// set gives a group its secondary and tertiary and keeps the counts.
func (l *layout) set(g, sec, ter int, why step) {
	x, oldSec, oldTer := l.prim[g], l.sec[g], l.ter[g]
	for _, j := range [...]int{oldSec, oldTer} {
		if j != none && j != sec && j != ter {
			l.held[j]--
			at, _ := slices.BinarySearch(l.at[j], g)
			l.at[j] = slices.Delete(l.at[j], at, at+1)
		}
	}
	for _, j := range [...]int{sec, ter} {
		if j != none && j != oldSec && j != oldTer {
			l.held[j]++
			at, _ := slices.BinarySearch(l.at[j], g)
			l.at[j] = slices.Insert(l.at[j], at, g)
		}
	}
	if oldSec != none {
		l.secondaries[oldSec]--
		l.heirs[x][oldSec]--
	}
	if sec != none {
		l.secondaries[sec]++
		l.heirs[x][sec]++
	}
	l.sec[g], l.ter[g] = sec, ter
	l.touched[g] |= why
}

// loadAfter is how many primaries j has after the loss of x.
func (l *layout) loadAfter(x, j int) int { return l.primaries[j] + l.heirs[x][j] }

// shiftCost is by how much the failure unevenness grows when one of x's
// secondaries goes from j to k, as half the change of the sum of squares. Less than 0 is better.
func (l *layout) shiftCost(x, j, k int) int {
	if j == k {
		return 0
	}
	return l.loadAfter(x, k) - l.loadAfter(x, j) + 1
}

func (l *layout) holds(g, j int) bool { return l.prim[g] == j || l.sec[g] == j || l.ter[g] == j }

// new reports whether j would have to build its copy of g.
func (l *layout) new(g, j int) bool { return !slices.Contains(l.had[g][:], j) }

// flip exchanges secondary and tertiary.
func (l *layout) flip(g int, why step) { l.set(g, l.ter[g], l.sec[g], why) }

// replace puts k in the place of j and orders the two copies as failure balance likes it, else as they were.
func (l *layout) replace(g, j, k int, why step) {
	sec, ter := l.replaced(g, j, k)
	l.set(g, sec, ter, why)
}

func (l *layout) replaced(g, j, k int) (sec, ter int) {
	x, old := l.prim[g], l.sec[g]
	sec, ter = k, l.ter[g]
	if j == l.ter[g] {
		sec, ter = l.sec[g], k
	}
	if l.shiftCost(x, old, ter) < l.shiftCost(x, old, sec) {
		return ter, sec
	}
	return sec, ter
}
