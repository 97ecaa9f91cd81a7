package control

import "rollcall/routing"

// ChangeKey is the pool table's key of the newest Change.
const ChangeKey = "change"

// MostMoves bounds the moves that a Change lists.
const MostMoves = 500

// Change says why a placement was made. The Front End that made it stores it
// beside the placement, after it; it explains and decides nothing.
type Change struct {
	Epoch    routing.Epoch    `json:"epoch"`
	By       routing.FrontEnd `json:"by"`
	Cause    string           `json:"cause"`
	Moves    []Move           `json:"moves"` // at most MostMoves
	AllMoves int              `json:"all_moves"`
	Timeline Timeline         `json:"timeline"`
}

// Why is what a Front End remembers of the newest move of one group.
type Why struct {
	Epoch   routing.Epoch
	Primary routing.FrontEnd
	Words   string
}
