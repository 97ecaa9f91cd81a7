package routing

import "fmt"

// Check verifies what must hold of every placement, balance aside: only members
// that are Up hold copies, one of a group each at most, and every group has
// min(3, Up members) copies with no gap in their order. How even it is, see Balance.
func (p Placement) Check() error {
	up := 0
	for fe, m := range p.Members {
		if fe != m.Name || fe == "" {
			return fmt.Errorf("placement: member %q is entered as %q", m.Name, fe)
		}
		if m.State == Up {
			up++
		}
	}
	for _, g := range p.SortedGroups() {
		c := p.Groups[g]
		if err := c.check(); err != nil {
			return fmt.Errorf("placement: group %s: %w", g, err)
		}
		for _, fe := range c.List() {
			if m := p.Members[fe]; m.State != Up {
				return fmt.Errorf("placement: group %s has a copy on %s, which is not up", g, fe)
			}
		}
		if n := len(c.List()); n != min(3, up) {
			return fmt.Errorf("placement: group %s has %d copies, and with %d front ends up it should have %d", g, n, up, min(3, up))
		}
	}
	return nil
}

// check verifies the form of the copies of one group: no gap, nobody twice.
func (c Copies) check() error {
	switch {
	case c.Primary == "" && c.Secondary != "", c.Secondary == "" && c.Tertiary != "":
		return fmt.Errorf("its copies (%s) have a gap", c)
	case c.Primary != "" && (c.Primary == c.Secondary || c.Primary == c.Tertiary),
		c.Secondary != "" && c.Secondary == c.Tertiary:
		return fmt.Errorf("its copies (%s) are not on different front ends", c)
	}
	return nil
}

// Spread is the least and the most of something over the Up members.
type Spread struct{ Min, Max int }

// Gap is how far it is from even.
func (s Spread) Gap() int { return s.Max - s.Min }

// Balance is how far a placement reaches the aims that rules 4 to 7 state "as far
// as possible": live primaries and zones can stand in the way.
type Balance struct {
	Primaries, Secondaries, Tertiaries, Copies Spread

	// AfterLoss is how primaries would be spread after the loss of each Up member.
	AfterLoss map[FrontEnd]Spread
	// SharedZone counts the groups with fewer zones than they could have.
	SharedZone int
}

// Balance measures p.
func (p Placement) Balance() Balance {
	n := map[FrontEnd]*[4]int{}
	zones := map[string]bool{}
	for fe, m := range p.Members {
		if m.State == Up {
			n[fe] = new([4]int)
			zones[m.Zone] = true
		}
	}
	heirs := map[[2]FrontEnd]int{}
	b := Balance{AfterLoss: make(map[FrontEnd]Spread, len(n))}
	for _, c := range p.Groups {
		in := map[string]bool{}
		for i, fe := range c.List() {
			if counts := n[fe]; counts != nil {
				counts[i]++
				counts[3]++
			}
			in[p.Members[fe].Zone] = true
		}
		heirs[[2]FrontEnd{c.Primary, c.Secondary}]++
		if len(in) < min(3, len(n), len(zones)) {
			b.SharedZone++
		}
	}
	spread := func(of func(fe FrontEnd) int, without FrontEnd) (s Spread) {
		first := true
		for fe := range n {
			if fe == without {
				continue
			}
			v := of(fe)
			if first {
				s = Spread{v, v}
			}
			s, first = Spread{min(s.Min, v), max(s.Max, v)}, false
		}
		return s
	}
	role := func(i int) Spread { return spread(func(fe FrontEnd) int { return n[fe][i] }, "") }
	b.Primaries, b.Secondaries, b.Tertiaries, b.Copies = role(0), role(1), role(2), role(3)
	for x := range n {
		b.AfterLoss[x] = spread(func(fe FrontEnd) int { return n[fe][0] + heirs[[2]FrontEnd{x, fe}] }, x)
	}
	return b
}
