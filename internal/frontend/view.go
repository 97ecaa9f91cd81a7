package frontend

import (
	"context"
	"sync"

	"rollcall/routing"
)

// view is the placement that this Front End acts on. It is immutable and swapped
// whole; a request reads it once and decides by it.
type view struct {
	placement routing.Placement // Epoch is the entry's revision
}

func (v *view) copies(g routing.Group) routing.Copies {
	if v == nil {
		return routing.Copies{}
	}
	return v.placement.Groups[g]
}

func (v *view) epoch() routing.Epoch {
	if v == nil {
		return 0
	}
	return v.placement.Epoch
}

// gates let requests wait for a change of their routing group: another
// placement, or a primary that became ready. A waiter takes the gate first and
// looks at the view afterwards, so that no change is missed between the two.
type gates struct {
	mu   sync.Mutex
	open map[routing.Group]gate // guarded by mu
}

type gate struct {
	ctx  context.Context
	open context.CancelFunc
}

func newGates() *gates { return &gates{open: map[routing.Group]gate{}} }

// next returns a context that ends at the group's next change.
func (g *gates) next(group routing.Group) context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	w, ok := g.open[group]
	if !ok {
		w.ctx, w.open = context.WithCancel(context.Background())
		g.open[group] = w
	}
	return w.ctx
}

// changed lets everybody go on who waits for one of these groups.
func (g *gates) changed(groups ...routing.Group) {
	var opened []context.CancelFunc
	g.mu.Lock()
	for _, group := range groups {
		if w, ok := g.open[group]; ok {
			opened = append(opened, w.open)
			delete(g.open, group)
		}
	}
	g.mu.Unlock()
	for _, open := range opened {
		open()
	}
}

// all lets everybody go on.
func (g *gates) all() {
	g.mu.Lock()
	groups := make([]routing.Group, 0, len(g.open))
	for group := range g.open {
		groups = append(groups, group)
	}
	g.mu.Unlock()
	g.changed(groups...)
}
