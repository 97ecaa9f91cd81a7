package routing

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Role is what one Front End is for one group.
type Role int

// The roles, in the order in which copies take over.
const (
	RoleNone Role = iota
	RolePrimary
	RoleSecondary
	RoleTertiary
)

func (r Role) String() string {
	switch r {
	case RoleNone:
		return "none"
	case RolePrimary:
		return "primary"
	case RoleSecondary:
		return "secondary"
	case RoleTertiary:
		return "tertiary"
	}
	return "Role(" + strconv.Itoa(int(r)) + ")"
}

// NewPlacement returns a placement of groups that have no copies yet.
func NewPlacement(groups []Group) Placement {
	p := Placement{Groups: make(map[Group]Copies, len(groups)), Members: map[FrontEnd]Member{}}
	for _, g := range groups {
		p.Groups[g] = Copies{}
	}
	return p
}

// GroupNames returns n group ids, zero-padded so that they sort: g01 … g60.
func GroupNames(n int) []Group {
	width := max(2, len(strconv.Itoa(n)))
	names := make([]Group, 0, max(0, n))
	for i := 1; i <= n; i++ {
		names = append(names, Group(fmt.Sprintf("g%0*d", width, i)))
	}
	return names
}

// Clone returns a copy that shares nothing with p.
func (p Placement) Clone() Placement {
	p.Groups, p.Members = maps.Clone(p.Groups), maps.Clone(p.Members)
	return p
}

// SortedGroups returns the ids of all groups in order.
func (p Placement) SortedGroups() []Group {
	return slices.Sorted(maps.Keys(p.Groups))
}

// SortedMembers returns the names of all members in order.
func (p Placement) SortedMembers() []FrontEnd {
	return slices.Sorted(maps.Keys(p.Members))
}

// GroupsOf returns the groups that a Front End holds copies of, by role, each in order.
func (p Placement) GroupsOf(fe FrontEnd) (primaries, secondaries, tertiaries []Group) {
	for g, c := range p.Groups {
		switch c.Role(fe) {
		case RolePrimary:
			primaries = append(primaries, g)
		case RoleSecondary:
			secondaries = append(secondaries, g)
		case RoleTertiary:
			tertiaries = append(tertiaries, g)
		}
	}
	slices.Sort(primaries)
	slices.Sort(secondaries)
	slices.Sort(tertiaries)
	return primaries, secondaries, tertiaries
}

// Equal reports whether both have the same copies and members, whatever their epochs.
func (p Placement) Equal(q Placement) bool {
	return maps.Equal(p.Groups, q.Groups) && maps.Equal(p.Members, q.Members)
}

// Role returns what fe is for the group.
func (c Copies) Role(fe FrontEnd) Role {
	switch {
	case fe == "":
		return RoleNone
	case fe == c.Primary:
		return RolePrimary
	case fe == c.Secondary:
		return RoleSecondary
	case fe == c.Tertiary:
		return RoleTertiary
	}
	return RoleNone
}

// List returns the Front Ends that hold a copy: primary, secondary, tertiary.
func (c Copies) List() []FrontEnd {
	list := make([]FrontEnd, 0, 3)
	for _, fe := range [...]FrontEnd{c.Primary, c.Secondary, c.Tertiary} {
		if fe != "" {
			list = append(list, fe)
		}
	}
	return list
}

// Has reports whether fe holds a copy.
func (c Copies) Has(fe FrontEnd) bool { return c.Role(fe) != RoleNone }

func (c Copies) String() string {
	show := func(fe FrontEnd) string {
		if fe == "" {
			return "-"
		}
		return string(fe)
	}
	return show(c.Primary) + " " + show(c.Secondary) + " " + show(c.Tertiary)
}
