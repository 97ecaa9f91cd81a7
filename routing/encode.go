package routing

import (
	"encoding/json"
	"errors"
	"fmt"
)

// wire is a placement as it stands in the bus: names once, copies as indexes
// into them, -1 for an absent one. The epoch is the entry's revision and not part of it.
type wire struct {
	Version   int          `json:"v"`
	Members   []wireMember `json:"members"`
	Groups    []Group      `json:"groups"`
	Primary   []int        `json:"primary"`
	Secondary []int        `json:"secondary"`
	Tertiary  []int        `json:"tertiary"`
}

type wireMember struct {
	Name  FrontEnd `json:"name"`
	Zone  string   `json:"zone,omitempty"`
	Boot  string   `json:"boot,omitempty"`
	State State    `json:"state"`
}

const wireVersion = 1

// Encode returns p as compact JSON, the same for the same placement. A placement
// with a copy on a Front End that is no member is refused.
func Encode(p Placement) ([]byte, error) {
	w := wire{Version: wireVersion, Members: []wireMember{}, Groups: p.SortedGroups()}
	index := map[FrontEnd]int{"": none}
	for i, fe := range p.SortedMembers() {
		m := p.Members[fe]
		w.Members = append(w.Members, wireMember(m))
		index[fe] = i
	}
	n := len(w.Groups)
	w.Primary, w.Secondary, w.Tertiary = make([]int, n), make([]int, n), make([]int, n)
	for g, group := range w.Groups {
		c := p.Groups[group]
		for i, at := range [...]*int{&w.Primary[g], &w.Secondary[g], &w.Tertiary[g]} {
			fe := [...]FrontEnd{c.Primary, c.Secondary, c.Tertiary}[i]
			j, ok := index[fe]
			if !ok {
				return nil, fmt.Errorf("encode placement: group %s has a copy on %q, which is no member", group, fe)
			}
			*at = j
		}
	}
	if _, err := w.placement(); err != nil {
		return nil, fmt.Errorf("encode placement: %w", err)
	}
	return json.Marshal(w)
}

// Decode reads what Encode wrote. It checks the form (names, indexes, no gap,
// nobody twice), not the rules: see Check. The epoch is 0.
func Decode(data []byte) (Placement, error) {
	var w wire
	if err := json.Unmarshal(data, &w); err != nil {
		return Placement{}, fmt.Errorf("decode placement: %w", err)
	}
	if w.Version != wireVersion {
		return Placement{}, fmt.Errorf("decode placement: version %d, and this program knows only %d", w.Version, wireVersion)
	}
	p, err := w.placement()
	if err != nil {
		return Placement{}, fmt.Errorf("decode placement: %w", err)
	}
	return p, nil
}

// placement checks the form and builds the placement.
func (w wire) placement() (Placement, error) {
	n := len(w.Groups)
	if len(w.Primary) != n || len(w.Secondary) != n || len(w.Tertiary) != n {
		return Placement{}, fmt.Errorf("%d groups with %d primaries, %d secondaries, %d tertiaries",
			n, len(w.Primary), len(w.Secondary), len(w.Tertiary))
	}
	p := NewPlacement(nil)
	for _, m := range w.Members {
		if m.Name == "" {
			return Placement{}, errors.New("a member has no name")
		}
		if _, twice := p.Members[m.Name]; twice {
			return Placement{}, fmt.Errorf("member %q is there twice", m.Name)
		}
		switch m.State {
		case Joining, Up, Draining, Down:
		default:
			return Placement{}, fmt.Errorf("member %q has the unknown state %q", m.Name, m.State)
		}
		p.Members[m.Name] = Member(m)
	}
	for g, group := range w.Groups {
		if group == "" {
			return Placement{}, errors.New("a group has no id")
		}
		if _, twice := p.Groups[group]; twice {
			return Placement{}, fmt.Errorf("group %q is there twice", group)
		}
		var names [3]FrontEnd
		for i, j := range [...]int{w.Primary[g], w.Secondary[g], w.Tertiary[g]} {
			if j < none || j >= len(w.Members) {
				return Placement{}, fmt.Errorf("group %q has a copy on member number %d of %d", group, j, len(w.Members))
			}
			if j != none {
				names[i] = w.Members[j].Name
			}
		}
		c := Copies{names[0], names[1], names[2]}
		if err := c.check(); err != nil {
			return Placement{}, fmt.Errorf("group %q: %w", group, err)
		}
		p.Groups[group] = c
	}
	return p, nil
}
