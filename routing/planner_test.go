package routing

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// pool returns n members that are up: fe001 …, in one zone.
func pool(n int) []Member {
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{Name: FrontEnd(fmt.Sprintf("fe%03d", i+1)), Boot: "boot1", State: Up}
	}
	return members
}

func planned(t testing.TB, cur Placement, members []Member) Plan {
	t.Helper()
	plan := PlanFor(cur, members)
	if err := plan.Next.Check(); err != nil {
		t.Fatalf("%v\n%s", err, plan.Next.Describe())
	}
	return plan
}

// TestWorkedExample: four Front Ends and three groups, whichever one fails.
func TestWorkedExample(t *testing.T) {
	formed := planned(t, NewPlacement(GroupNames(3)), pool(4)).Next
	if b := formed.Balance(); b.Primaries != (Spread{0, 1}) || b.Copies != (Spread{2, 3}) {
		t.Fatalf("formation: %+v\n%s", b, formed.Describe())
	}
	for i, m := range pool(4) {
		t.Run(string(m.Name), func(t *testing.T) {
			members := pool(4)
			members[i].State = Down
			failed := planned(t, formed, members).Next
			one := Spread{1, 1}
			if b := failed.Balance(); b.Primaries != one || b.Secondaries != one || b.Tertiaries != one {
				t.Errorf("after the failure each survivor should hold one copy of each role:\n%s", failed.Describe())
			}
			members[i].State, members[i].Boot = Up, "boot2"
			back := planned(t, failed, members).Next
			for g, c := range back.Groups {
				if c.Primary != failed.Groups[g].Primary || c.Secondary != m.Name {
					t.Errorf("%s is %v after the return, and was %v", g, c, failed.Groups[g])
				}
			}
			if p, s, u := back.GroupsOf(m.Name); len(p) != 0 || len(s) != 3 || len(u) != 0 {
				t.Errorf("the returned one should hold three secondaries:\n%s", back.Describe())
			}
			if b := back.Balance(); b.Copies != (Spread{2, 3}) {
				t.Errorf("copies should stand 3/2/2/2:\n%s", back.Describe())
			}
		})
	}
}

// TestPromotionKeepsToRule3: the secondary, else the tertiary, else whoever has the fewest primaries.
func TestPromotionKeepsToRule3(t *testing.T) {
	cur := planned(t, NewPlacement(GroupNames(12)), pool(6)).Next
	g := Group("g01")
	c := cur.Groups[g]
	for dead, want := range map[string]FrontEnd{
		"primary":           c.Secondary,
		"primary secondary": c.Tertiary,
		"primary tertiary":  c.Secondary,
		"secondary":         c.Primary,
	} {
		members := pool(6)
		for i, m := range members {
			if role := c.Role(m.Name); role != RoleNone && slices.Contains(strings.Fields(dead), role.String()) {
				members[i].State = Down
			}
		}
		if got := planned(t, cur, members).Next.Groups[g]; got.Primary != want {
			t.Errorf("%v without its %s becomes %v, want primary %s", c, dead, got, want)
		}
	}
	members := pool(6)
	for i, m := range members {
		if c.Has(m.Name) {
			members[i].Boot = "boot2" // all copies of g01 are gone, though everybody is up
		}
	}
	plan := planned(t, cur, members)
	if before := aliveCounts(cur, members)[plan.Next.Groups[g].Primary]; before > 4 {
		t.Errorf("g01 got its primary on one that had %d", before)
	}
}

// aliveCounts is how many primaries each Up member has after promotion alone, by a slow obvious model.
func aliveCounts(cur Placement, members []Member) map[FrontEnd]int {
	n := map[FrontEnd]int{}
	for g := range cur.Groups {
		if live := liveCopies(cur, members, g); len(live) > 0 {
			n[live[0]]++
		}
	}
	return n
}

func liveCopies(cur Placement, members []Member, g Group) (live []FrontEnd) {
	for _, fe := range cur.Groups[g].List() {
		for _, m := range members {
			if m.Name == fe && m.State == Up && m.Boot == cur.Members[fe].Boot {
				live = append(live, fe)
			}
		}
	}
	return live
}

// drawChange changes one member as the life of a pool does.
func drawChange(t *rapid.T, members []Member, boots *int) {
	i := rapid.IntRange(0, len(members)-1).Draw(t, "member")
	m := &members[i]
	switch rapid.SampledFrom([]string{"fail", "return", "restart", "drain", "join"}).Draw(t, "event") {
	case "fail":
		m.State = Down
	case "return", "restart":
		*boots++
		m.State, m.Boot = Up, fmt.Sprintf("boot%d", *boots)
	case "drain":
		m.State = Draining
	case "join":
		m.State = Joining
	}
}

// TestLargePool: where the deep search goes on and off, the same must hold.
func TestLargePool(t *testing.T) {
	for _, zones := range []int{1, 3} {
		r := rand.New(rand.NewPCG(uint64(zones), 3))
		members := pool(12)
		for i := range members {
			members[i].Zone = fmt.Sprintf("z%d", i%zones)
		}
		cur := NewPlacement(GroupNames(250))
		for step := range 4 {
			next := planned(t, cur, members).Next
			if again := PlanFor(next, members); !again.Empty() {
				t.Fatalf("%d zones, step %d: planning again makes %d moves", zones, step, len(again.Moves))
			}
			b := next.Balance()
			if zones == 1 && b.Copies.Gap() > 1 || b.SharedZone != 0 {
				t.Errorf("%d zones, step %d: %+v", zones, step, b)
			}
			for g := range cur.Groups {
				if live := liveCopies(cur, members, g); len(live) > 0 && next.Groups[g].Primary != live[0] {
					t.Fatalf("%d zones, step %d: %s: %v becomes %v", zones, step, g, cur.Groups[g], next.Groups[g])
				}
			}
			cur = next
			for range 1 + r.IntN(4) {
				if m := &members[r.IntN(len(members))]; r.IntN(2) == 0 {
					m.State = Down
				} else {
					m.State, m.Boot = Up, fmt.Sprintf("boot%d", step+2)
				}
			}
		}
	}
}

// TestAnyLife: after any sequence of failures, returns, restarts and drains, in
// any zones, every rule holds.
func TestAnyLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := pool(rapid.IntRange(1, 8).Draw(t, "front ends"))
		zones := rapid.IntRange(1, 4).Draw(t, "zones")
		for i := range members {
			members[i].Zone = fmt.Sprintf("z%d", rapid.IntRange(1, zones).Draw(t, "zone"))
		}
		cur := NewPlacement(GroupNames(rapid.IntRange(0, 40).Draw(t, "groups")))
		boots := 1
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			plan := PlanFor(cur, members)
			checkPlan(t, cur, members, plan)
			cur = plan.Next
			for range rapid.IntRange(1, 3).Draw(t, "events at once") {
				drawChange(t, members, &boots)
			}
		}
		plan := Rebalance(cur, members)
		checkRebalance(t, cur, members, plan)
	})
}

func checkPlan(t *rapid.T, cur Placement, members []Member, plan Plan) {
	next := plan.Next
	if err := next.Check(); err != nil {
		t.Fatalf("%v\n%s", err, next.Describe())
	}
	b := next.Balance()
	if b.SharedZone != 0 {
		t.Fatalf("%d groups with fewer zones than possible\n%s", b.SharedZone, next.Describe())
	}
	checkPrimaries(t, cur, members, next)
	if oneZone(members) {
		checkEven(t, next)
	}

	if again := PlanFor(next, members); !again.Empty() {
		t.Fatalf("planning again moves %v", again.Moves)
	}
	shuffled := rapid.Permutation(members).Draw(t, "order")
	if other := PlanFor(cur.Clone(), shuffled); !other.Next.Equal(next) || !slices.Equal(other.Moves, plan.Moves) {
		t.Fatalf("another order of members gives another plan")
	}
	for _, m := range plan.Moves {
		if m.Why == "" || strings.HasSuffix(m.Why, ": ") {
			t.Fatalf("no reason for %+v: %q", m, m.Why)
		}
	}
	data, err := Encode(next)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := Decode(data); err != nil || !back.Equal(next) {
		t.Fatalf("decoded otherwise (%v): %s", err, data)
	}
}

// checkPrimaries: rules 2 and 3 by the first survivor, 4 and 8 for the rest.
func checkPrimaries(t *rapid.T, cur Placement, members []Member, next Placement) {
	before := aliveCounts(cur, members)
	for g := range cur.Groups {
		if live := liveCopies(cur, members, g); len(live) > 0 && next.Groups[g].Primary != live[0] {
			t.Fatalf("%s: %v becomes %v, and %s should be its primary", g, cur.Groups[g], next.Groups[g], live[0])
		}
	}
	if p := next.Balance().Primaries; len(before) == 0 && p.Gap() > 1 {
		t.Fatalf("formed with %+v primaries", p)
	}
}

// checkEven: rule 6. A Front End can stand out only by its primaries, which don't move.
func checkEven(t *rapid.T, next Placement) {
	least := next.Balance().Copies.Min
	for fe, m := range next.Members {
		p, s, u := next.GroupsOf(fe)
		if m.State == Up && len(s)+len(u) > 0 && len(p)+len(s)+len(u) > least+1 {
			t.Fatalf("%s has %d copies, another has %d\n%s", fe, len(p)+len(s)+len(u), least, next.Describe())
		}
	}
}

func oneZone(members []Member) bool {
	return !slices.ContainsFunc(members, func(m Member) bool { return m.Zone != members[0].Zone })
}

// checkRebalance: primaries even within one, by the fewest moves of primaries.
func checkRebalance(t *rapid.T, cur Placement, members []Member, plan Plan) {
	if err := plan.Next.Check(); err != nil {
		t.Fatal(err)
	}
	if p := plan.Next.Balance().Primaries; p.Gap() > 1 {
		t.Fatalf("rebalanced to %+v primaries", p)
	}
	promoted := PlanFor(cur, members).Next
	var counts []int
	for fe, m := range promoted.Members {
		if p, _, _ := promoted.GroupsOf(fe); m.State == Up {
			counts = append(counts, len(p))
		}
	}
	fewest := 0
	slices.SortFunc(counts, func(a, b int) int { return b - a })
	for i, n := range counts {
		share := len(cur.Groups) / len(counts)
		if i < len(cur.Groups)%len(counts) {
			share++
		}
		fewest += max(0, n-share)
	}
	moved := 0
	for g, c := range plan.Next.Groups {
		if c.Primary != promoted.Groups[g].Primary {
			moved++
		}
	}
	if moved != fewest {
		t.Fatalf("%d primaries moved, %d would do", moved, fewest)
	}
	if again := Rebalance(plan.Next, members); !again.Empty() {
		t.Fatalf("rebalancing again moves %v", again.Moves)
	}
}
