package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"rollcall/bus"
	"rollcall/routing"
)

// answerWithin bounds how long a Front End may take to answer a question. One that is
// gone is noticed at once; only a frozen or overloaded one uses the time up.
const answerWithin = time.Second

// asksAtOnce bounds the questions under way.
const asksAtOnce = 64

// ReadStatus asks the pool how it is. groups are the pool's routing groups; those of
// the placement are listed too. A member that does not answer is not an error: it is
// down, or, when it is there and silent, in the state that the others saw last.
func ReadStatus(ctx context.Context, b bus.Bus, groups []routing.Group) (Status, error) {
	placement, err := ReadPlacement(ctx, b.Pool())
	if err != nil {
		return Status{}, err
	}
	members, err := readMembers(ctx, b.Pool())
	if err != nil {
		return Status{}, err
	}
	for fe := range placement.Members {
		if _, ok := members[fe]; !ok {
			members[fe] = MemberInfo{Name: fe}
		}
	}
	answers := askAll(ctx, b, slices.Collect(maps.Keys(members)))
	if err := ctx.Err(); err != nil {
		return Status{}, fmt.Errorf("read status: %w", err)
	}
	return compose(placement, groups, members, answers), nil
}

// ReadPlacement returns the placement with its epoch; before the first one is made, an
// empty one with epoch 0.
func ReadPlacement(ctx context.Context, pool bus.Table) (routing.Placement, error) {
	e, err := pool.Get(ctx, PlacementKey)
	if errors.Is(err, bus.ErrNotFound) {
		return routing.NewPlacement(nil), nil
	}
	if err != nil {
		return routing.Placement{}, fmt.Errorf("read the placement: %w", err)
	}
	p, err := routing.Decode(e.Value)
	if err != nil {
		return routing.Placement{}, fmt.Errorf("read the placement: %w", err)
	}
	p.Epoch = routing.Epoch(e.Revision)
	return p, nil
}

func readMembers(ctx context.Context, pool bus.Table) (map[routing.FrontEnd]MemberInfo, error) {
	entries, err := pool.List(ctx, MemberPrefix)
	if err != nil {
		return nil, fmt.Errorf("read the members: %w", err)
	}
	members := make(map[routing.FrontEnd]MemberInfo, len(entries))
	for _, e := range entries {
		var m MemberInfo
		if err := json.Unmarshal(e.Value, &m); err != nil {
			m = MemberInfo{} // listed by its key, which is all that is certain
		}
		m.Name = routing.FrontEnd(strings.TrimPrefix(e.Key, MemberPrefix))
		members[m.Name] = m
	}
	return members, nil
}

// answer is what became of the question to one member.
type answer struct {
	status *FrontEndStatus // nil: no answer
	gone   bool            // surely: nobody serves that name
}

// askAll asks every member at once and waits for all of them.
func askAll(ctx context.Context, b bus.Bus, members []routing.FrontEnd) map[routing.FrontEnd]answer {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var mu sync.Mutex
	answers := make(map[routing.FrontEnd]answer, len(members))
	slots := make(chan struct{}, asksAtOnce)
	var all sync.WaitGroup
	for _, fe := range members {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			a := ask(ctx, b, fe)
			mu.Lock()
			answers[fe] = a
			mu.Unlock()
		})
	}
	all.Wait()
	return answers
}

func ask(ctx context.Context, b bus.Bus, fe routing.FrontEnd) answer {
	data, err := b.Request(ctx, string(fe), VerbStatus, nil)
	if err != nil {
		return answer{gone: errors.Is(err, bus.ErrNobodyThere)}
	}
	var s FrontEndStatus
	if json.Unmarshal(data, &s) != nil {
		return answer{}
	}
	return answer{status: &s}
}

// compose puts together what was read and answered. It is pure.
func compose(p routing.Placement, groups []routing.Group, members map[routing.FrontEnd]MemberInfo, answers map[routing.FrontEnd]answer) Status {
	s := Status{Epoch: p.Epoch, FrontEnds: []FrontEnd{}, Groups: []Group{}}
	for _, fe := range slices.Sorted(maps.Keys(members)) {
		s.FrontEnds = append(s.FrontEnds, composeFrontEnd(p, members[fe], answers[fe]))
	}
	ids := map[routing.Group]bool{}
	for _, g := range groups {
		ids[g] = true
	}
	for g := range p.Groups {
		ids[g] = true
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		c := p.Groups[id]
		g := Group{ID: id, Primary: absent(c.Primary), Secondary: absent(c.Secondary), Tertiary: absent(c.Tertiary)}
		if n, ok := counted(answers[c.Primary], id); ok {
			g.Users, g.Bindings = n.Users, n.Bindings
		} else {
			g.Uncounted = true
		}
		s.Groups = append(s.Groups, g)
	}
	return s
}

// counted returns what the primary of a group has counted in it. One that has only just been
// told of the group does not list it yet.
func counted(primary answer, id routing.Group) (GroupCount, bool) {
	if primary.status == nil {
		return GroupCount{}, false
	}
	n, ok := primary.status.Groups[id]
	return n, ok
}

func composeFrontEnd(p routing.Placement, m MemberInfo, a answer) FrontEnd {
	fe := FrontEnd{Name: m.Name, State: routing.Down, Pid: m.Pid, Boot: m.Boot, SIP: m.SIP}
	if known, ok := p.Members[m.Name]; ok && a.status == nil && !a.gone {
		fe.State = known.State
	}
	if a.status != nil {
		fe.State, fe.Pid, fe.Boot, fe.SIP, fe.Flows = a.status.State, a.status.Pid, a.status.Boot, a.status.SIP, a.status.Flows
		for _, g := range a.status.Groups {
			fe.Bindings += g.Bindings
		}
	}
	fe.Silent = a.status == nil
	if fe.Silent && fe.State == routing.Down {
		fe.Pid = 0
	}
	if fe.SIP == nil {
		fe.SIP = []string{}
	}
	for _, c := range p.Groups {
		switch c.Role(m.Name) {
		case routing.RolePrimary:
			fe.Primaries++
		case routing.RoleSecondary:
			fe.Secondaries++
		case routing.RoleTertiary:
			fe.Tertiaries++
		}
	}
	return fe
}

// absent makes a missing copy null in JSON.
func absent(fe routing.FrontEnd) *routing.FrontEnd {
	if fe == "" {
		return nil
	}
	return &fe
}
