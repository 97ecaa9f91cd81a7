// Package routing decides which Front Ends hold which copies of which routing
// groups, and when a Front End counts as down. It is pure: standard library
// only, no clock, no I/O, no logging; the same input gives the same output on
// every Front End, which is why the pool needs no leader.
package routing

// FrontEnd is the name of a Front End, unique in its pool and kept over restarts: "fe1".
type FrontEnd string

// Group is the id of a routing group: "g07".
type Group string

// Epoch numbers the placements of a pool. It only grows.
type Epoch uint64

// Copies says where the copies of one group are. An absent copy is "".
// There is no secondary without a primary and no tertiary without a secondary.
type Copies struct {
	Primary   FrontEnd `json:"primary,omitempty"`
	Secondary FrontEnd `json:"secondary,omitempty"`
	Tertiary  FrontEnd `json:"tertiary,omitempty"`
}

// State of a Front End as the pool sees it.
type State string

const (
	// Joining: it runs and is loading what it needs; it holds no copies.
	Joining State = "joining"
	// Up: it can hold copies.
	Up State = "up"
	// Draining: it is being stopped as planned; it serves until its copies are elsewhere.
	Draining State = "draining"
	// Down: it is gone, or counts as gone.
	Down State = "down"
)

// Member is a Front End that is or once was part of the pool.
type Member struct {
	Name  FrontEnd
	Zone  string // failure domain; "" when not configured
	Boot  string // id of the process's start; a new one means that it restarted
	State State
}

// Placement says which Front Ends hold which copies, and which members it was
// made for. Treat it as immutable: Clone before changing.
type Placement struct {
	Epoch   Epoch
	Groups  map[Group]Copies
	Members map[FrontEnd]Member
}
