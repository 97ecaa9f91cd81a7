package directory

import (
	"container/heap"
	"sync"

	"rollcall/registrar"
	"rollcall/routing"
)

// balance counts the users of each group and knows the emptiest one. A group
// that is being given to a new user counts at once, so that users provisioned
// at the same time spread. All methods may be called from any goroutine.
type balance struct {
	mu       sync.Mutex
	queue    groupHeap
	where    map[routing.Group]*groupCount
	reserved map[registrar.AOR]*reservation
	others   map[routing.Group]int // users in groups that are not the pool's any more
}

// groupCount is one group in the heap.
type groupCount struct {
	group  routing.Group
	stored int // users in the table
	coming int // users on their way into it
	at     int // index in the heap
}

// reservation is a user on his way into the table.
type reservation struct {
	group   *groupCount
	holders int  // calls of reserve without their release
	arrived bool // he is in the table, and counts there
}

// newBalance starts with empty groups. Groups given twice count once.
func newBalance(groups []routing.Group) *balance {
	b := &balance{
		where:    make(map[routing.Group]*groupCount, len(groups)),
		reserved: map[registrar.AOR]*reservation{},
		others:   map[routing.Group]int{},
	}
	for _, g := range groups {
		if b.where[g] == nil {
			c := &groupCount{group: g, at: len(b.queue)}
			b.where[g] = c
			b.queue = append(b.queue, c)
		}
	}
	heap.Init(&b.queue)
	return b
}

// reserve picks the emptiest group for a user, ties by id, and counts him in it
// until he arrives or release is called. It reports false when there are no groups.
func (b *balance) reserve(a registrar.AOR) (routing.Group, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return "", false
	}
	r := b.reserved[a]
	if r == nil {
		r = &reservation{group: b.queue[0]}
		b.reserved[a] = r
		r.group.coming++
		heap.Fix(&b.queue, r.group.at)
	}
	r.holders++
	return r.group.group, true
}

// release undoes one reserve: the user is in the table now, or won't be.
func (b *balance) release(a registrar.AOR) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.reserved[a]
	if r == nil {
		return
	}
	if r.holders--; r.holders > 0 {
		return
	}
	delete(b.reserved, a)
	if !r.arrived {
		r.group.coming--
		heap.Fix(&b.queue, r.group.at)
	}
}

// arrive counts a user who is in the table now.
func (b *balance) arrive(a registrar.AOR, g routing.Group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r := b.reserved[a]; r != nil && !r.arrived {
		r.arrived = true
		r.group.coming--
		heap.Fix(&b.queue, r.group.at)
	}
	b.addLocked(g, 1)
}

// leave discounts a user who was in the table.
func (b *balance) leave(g routing.Group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addLocked(g, -1)
}

func (b *balance) addLocked(g routing.Group, delta int) {
	if c := b.where[g]; c != nil {
		c.stored += delta
		heap.Fix(&b.queue, c.at)
		return
	}
	if b.others[g] += delta; b.others[g] <= 0 {
		delete(b.others, g)
	}
}

// counts returns the users stored per group; the pool's groups are all there.
func (b *balance) counts() map[routing.Group]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[routing.Group]int, len(b.where)+len(b.others))
	for g, c := range b.where {
		all[g] = c.stored
	}
	for g, n := range b.others {
		all[g] = n
	}
	return all
}

// name returns the one copy of a group's name that all users share, to save memory.
func (b *balance) name(g routing.Group) routing.Group {
	if c := b.where[g]; c != nil { // where never changes after newBalance
		return c.group
	}
	return g
}

// groupHeap is a heap of groups by users, then id.
type groupHeap []*groupCount

func (h groupHeap) Len() int { return len(h) }
func (h groupHeap) Less(i, j int) bool {
	a, b := h[i].stored+h[i].coming, h[j].stored+h[j].coming
	return a < b || a == b && h[i].group < h[j].group
}
func (h groupHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push and Pop are what container/heap asks for; the set of groups never changes.
func (h *groupHeap) Push(x any) { *h = append(*h, x.(*groupCount)) }
func (h *groupHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}
