package routing

import (
	"fmt"
	"maps"
	"strings"
)

// plan turns the finished layout into a Plan, with the reason of each move.
func (l *layout) plan(cur Placement, known map[FrontEnd]Member) Plan {
	p := Plan{Next: Placement{
		Epoch:   cur.Epoch,
		Groups:  make(map[Group]Copies, len(l.groups)),
		Members: known,
	}}
	name := func(j int) FrontEnd {
		if j == none {
			return ""
		}
		return l.fes[j]
	}
	for g, group := range l.groups {
		from := cur.Groups[group]
		to := Copies{name(l.prim[g]), name(l.sec[g]), name(l.ter[g])}
		p.Next.Groups[group] = to
		if from != to {
			why := whyMoved(cur, known, from, to, l.touched[g])
			p.Moves = append(p.Moves, Move{Group: group, From: from, To: to, Why: why})
		}
	}
	p.unchanged = len(p.Moves) == 0 && maps.Equal(cur.Members, known)
	return p
}

// whyMoved says in words what happened to one group.
func whyMoved(cur Placement, known map[FrontEnd]Member, from, to Copies, touched step) string {
	fate := func(fe FrontEnd) string { return fateOf(cur.Members[fe], known, fe) }
	parts := []string{}
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }

	switch {
	case from == Copies{}:
		return fmt.Sprintf("first placement: on %s", strings.Join(names(to.List()), ", "))
	case to == Copies{}:
		return "no front end is up to hold it"
	case from.Primary == to.Primary && fate(from.Primary) != "":
		say("%s, and so is every other copy: %s starts afresh", fate(from.Primary), to.Primary)
	case touched&stepRebalance != 0 && from.Primary != to.Primary:
		say("rebalance: %s becomes primary after %s", newPrimary(from, to), from.Primary)
	case from.Primary != to.Primary && !from.Has(to.Primary):
		say("%s, and no living copy is left: %s has the fewest primaries", fate(from.Primary), to.Primary)
	case from.Primary != to.Primary && from.Tertiary == to.Primary:
		say("%s and %s: tertiary %s promoted", fate(from.Primary), fate(from.Secondary), to.Primary)
	case from.Primary != to.Primary:
		say("%s: secondary %s promoted", fate(from.Primary), to.Primary)
	}
	reason := ""
	for _, fe := range from.List()[1:] {
		if f := fate(fe); f != "" && fe != from.Primary && !(from.Tertiary == to.Primary && fe == from.Secondary) {
			reason = join(reason, f)
		}
	}
	if len(parts) == 0 && reason == "" {
		reason = reasonOf(touched)
	}
	switch c := changes(from, to, fate); {
	case reason != "" && c != "":
		say("%s: %s", reason, c)
	case reason != "" || c != "":
		say("%s", reason+c)
	}
	return strings.Join(parts, "; ")
}

// join puts two phrases side by side.
func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + ", " + b
}

func newPrimary(from, to Copies) string {
	if role := from.Role(to.Primary); role != RoleNone {
		return fmt.Sprintf("%s %s", role, to.Primary)
	}
	return string(to.Primary)
}

// fateOf says what became of a member's copies: "" when they live.
func fateOf(before Member, known map[FrontEnd]Member, fe FrontEnd) string {
	now, ok := known[fe]
	switch {
	case !ok:
		return fmt.Sprintf("%s is no member any more", fe)
	case now.State != Up:
		return fmt.Sprintf("%s is %s", fe, now.State)
	case now.Boot != before.Boot:
		return fmt.Sprintf("%s restarted", fe)
	}
	return ""
}

// reasonOf names the rule that moved copies of a group, the weightiest first.
func reasonOf(touched step) string {
	switch {
	case touched&stepZones != 0:
		return "zones"
	case touched&stepCopies != 0:
		return "balance"
	case touched&stepFailure != 0:
		return "failure balance"
	case touched&stepSecondaries != 0:
		return "even secondaries"
	case touched&stepFill != 0:
		return "one more copy"
	}
	return ""
}

// changes tells what is new in the secondary and tertiary places. fate is "" of a live copy.
func changes(from, to Copies, fate func(FrontEnd) string) string {
	var gone []FrontEnd // live copies that are given up
	for _, fe := range from.List() {
		if !to.Has(fe) && fate(fe) == "" {
			gone = append(gone, fe)
		}
	}
	var list []string
	for _, fe := range to.List()[1:] {
		switch was, is := from.Role(fe), to.Role(fe); {
		case was == RoleNone && len(gone) > 0:
			list = append(list, fmt.Sprintf("new %s on %s instead of %s", is, fe, gone[0]))
			gone = gone[1:]
		case was == RoleNone:
			list = append(list, fmt.Sprintf("new %s on %s", is, fe))
		case was != is:
			list = append(list, fmt.Sprintf("%s now %s", fe, is))
		}
	}
	for _, fe := range gone {
		list = append(list, fmt.Sprintf("none on %s any more", fe))
	}
	if len(list) == 0 && len(to.List()) < len(from.List()) {
		return "one copy less"
	}
	return strings.Join(list, ", ")
}

func names(fes []FrontEnd) []string {
	list := make([]string, len(fes))
	for i, fe := range fes {
		list[i] = string(fe)
	}
	return list
}
