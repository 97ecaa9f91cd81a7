// Package routing decides which Front Ends hold which copies of which routing
// groups, and when a Front End counts as down. It is pure: standard library
// only, no clock, no I/O, no logging; the same input gives the same output on
// every Front End, which is why the pool needs no leader.
//
// The planner (planner.go) starts from the copies that are still alive, replaces
// dead primaries, fills what is missing where the need is greatest, and then
// improves the result step by step, along shortest chains of exchanges, until no
// step is left that lowers, in this order: the unevenness of all copies, the
// unevenness of primaries after the loss of each Front End (both as sums of
// squares), the copies to build, the unevenness of secondaries. Every step lowers
// this cost, so it ends. A finished placement has no such step, so planning again
// changes nothing. It is a descent, not a proof: exhaustive_test.go holds it
// against the best of all possible plans.
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
