package routing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// cost of a placement as the rules weigh it, the weightiest first: copies and
// failures uneven (sums of squares), copies to build.
type cost [3]int

func costOf(cur, next Placement, members []Member) (c cost) {
	var up []FrontEnd
	for _, m := range members {
		if m.State == Up {
			up = append(up, m.Name)
		}
	}
	primaries, held, heirs := map[FrontEnd]int{}, map[FrontEnd]int{}, map[[2]FrontEnd]int{}
	for g, copies := range next.Groups {
		primaries[copies.Primary]++
		heirs[[2]FrontEnd{copies.Primary, copies.Secondary}]++
		live := liveCopies(cur, members, g)
		for _, fe := range copies.List() {
			held[fe]++
			if !slices.Contains(live, fe) {
				c[2]++
			}
		}
	}
	for _, x := range up {
		c[0] += held[x] * held[x]
		for _, j := range up {
			if n := primaries[j] + heirs[[2]FrontEnd{x, j}]; j != x {
				c[1] += n * n
			}
		}
	}
	return c
}

// cheapest tries every way to place secondaries and tertiaries under the primaries of next.
func cheapest(cur, next Placement, members []Member) cost {
	next = next.Clone()
	groups := next.SortedGroups()
	best := costOf(cur, next, members)
	var try func(i int)
	try = func(i int) {
		if i == len(groups) {
			if c := costOf(cur, next, members); slices.Compare(c[:], best[:]) < 0 {
				best = c
			}
			return
		}
		c := next.Groups[groups[i]]
		for _, sec := range members {
			for _, ter := range members {
				c.Secondary, c.Tertiary = sec.Name, ter.Name
				if sec.State == Up && ter.State == Up && c.check() == nil {
					next.Groups[groups[i]] = c
					try(i + 1)
				}
			}
		}
	}
	try(0)
	return best
}

// TestAgainstExhaustiveSearch compares small plans with the best of all
// possible ones: evenness of copies and failure balance are as good, and the
// copies to build are at most a few more.
func TestAgainstExhaustiveSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := pool(rapid.IntRange(4, 5).Draw(t, "front ends"))
		groups := 4
		if len(members) == 5 {
			groups = 3
		}
		cur := PlanFor(NewPlacement(GroupNames(groups)), members).Next
		boots := 1
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			drawChange(t, members, &boots)
			plan := PlanFor(cur, members)
			if up := len(aliveMembers(members)); up >= 4 {
				got, best := costOf(cur, plan.Next, members), cheapest(cur, plan.Next, members)
				if got[0] != best[0] || got[1] != best[1] || got[2] > best[2] {
					t.Fatalf("cost %v, possible %v\n%s\n%s", got, best, cur.Describe(), plan.Next.Describe())
				}
			}
			cur = plan.Next
		}
	})
}

func aliveMembers(members []Member) (up []Member) {
	for _, m := range members {
		if m.State == Up {
			up = append(up, m)
		}
	}
	return up
}
