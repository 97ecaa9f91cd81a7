package directory

import (
	"container/heap"
	"sync"

	"rollcall/routing"
)

// balance counts the users of each group and knows the emptiest one. A group
// that is being given to a new user counts at once, so that users provisioned
// at the same time spread. All methods may be called from any goroutine.
type balance struct {
	mu     sync.Mutex
	queue  groupHeap
	where  map[routing.Group]*groupCount
	stored map[routing.Group]int // groups that are not the pool's any more, with users left in them
}

// groupCount is one group in the heap.
type groupCount struct {
	group    routing.Group
	stored   int // users in the table
	reserved int // users on their way into the table
	at       int // index in the heap
}

// newBalance starts with empty groups. Groups given twice count once.
func newBalance(groups []routing.Group) *balance {
	b := &balance{where: make(map[routing.Group]*groupCount, len(groups)), stored: map[routing.Group]int{}}
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

// reserve picks the emptiest group, ties by id, and counts one user in it until
// release. It reports false when there are no groups.
func (b *balance) reserve() (routing.Group, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return "", false
	}
	c := b.queue[0]
	c.reserved++
	heap.Fix(&b.queue, c.at)
	return c.group, true
}

// release undoes one reserve: the user is in the table now, or never will be.
func (b *balance) release(g routing.Group) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.where[g]; c != nil && c.reserved > 0 {
		c.reserved--
		heap.Fix(&b.queue, c.at)
	}
}

// add changes the number of users stored in a group.
func (b *balance) add(g routing.Group, delta int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.where[g]; c != nil {
		c.stored += delta
		heap.Fix(&b.queue, c.at)
		return
	}
	if b.stored[g] += delta; b.stored[g] <= 0 {
		delete(b.stored, g)
	}
}

// counts returns the users stored per group; the pool's groups are all there.
func (b *balance) counts() map[routing.Group]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[routing.Group]int, len(b.where)+len(b.stored))
	for g, c := range b.where {
		all[g] = c.stored
	}
	for g, n := range b.stored {
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
	a, b := h[i].stored+h[i].reserved, h[j].stored+h[j].reserved
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
