package control

import (
	"encoding/json"
	"time"

	"rollcall/registrar"
	"rollcall/routing"
)

// The types of events, which are also their kinds on the bus.
const (
	EventPlacement    = "placement"
	EventFrontEnd     = "frontend"
	EventRegistration = "registration"
	EventFlow         = "flow"
)

// TimeFormat of every event: RFC 3339 in UTC with microseconds.
const TimeFormat = "2006-01-02T15:04:05.000000Z07:00"

// Event is one line of `rollcall watch --json`. Fields that do not apply are absent.
type Event struct {
	Type     string           `json:"type"`
	Time     string           `json:"time"`     // TimeFormat, by the clock of FrontEnd
	FrontEnd routing.FrontEnd `json:"frontend"` // that says it
	Epoch    routing.Epoch    `json:"epoch,omitempty"`

	// Placement: "decided" (by the Front End whose compare-and-swap won), "seen" (this
	// Front End acts on it), "ready" (this Front End serves all groups it is now primary of).
	Phase    string   `json:"phase,omitempty"`
	Cause    string   `json:"cause,omitempty"` // in words: "fe2 is down: nobody there, health port refuses"
	Moves    []Move   `json:"moves,omitempty"`
	Timeline Timeline `json:"timeline,omitzero"`

	// FrontEnd: a change of its state as FrontEnd sees it. Registration, Flow: see below.
	Subject routing.FrontEnd `json:"subject,omitempty"`
	State   routing.State    `json:"state,omitempty"`

	// Registration: Change is created, refreshed, shortened, expired, unregistered, deactivated, probation, rejected.
	// Flow: Change is opened, closed.
	Change  string          `json:"change,omitempty"`
	AOR     registrar.AOR   `json:"aor,omitempty"`
	Group   routing.Group   `json:"group,omitempty"`
	Contact string          `json:"contact,omitempty"`
	Expires int             `json:"expires_s,omitempty"`
	Flow    *registrar.Flow `json:"flow,omitempty"`
	Reason  string          `json:"reason,omitempty"`
}

// Move is one group's change in a placement event.
type Move struct {
	Group routing.Group  `json:"group"`
	From  routing.Copies `json:"from"`
	To    routing.Copies `json:"to"`
	Why   string         `json:"why,omitempty"`
}

// Timeline of a placement change, each by the clock of the Front End that saw it. Zero where it
// does not apply. Times are written in TimeFormat.
type Timeline struct {
	LastSign  time.Time `json:"last_sign,omitzero"` // last pulse or answer of the Front End that is gone
	Suspected time.Time `json:"suspected,omitzero"`
	Decided   time.Time `json:"decided,omitzero"`
	Stored    time.Time `json:"stored,omitzero"`
	Seen      time.Time `json:"seen,omitzero"`
	Ready     time.Time `json:"ready,omitzero"`
}

// MarshalJSON writes all times alike, whatever their zone and precision.
func (t Timeline) MarshalJSON() ([]byte, error) {
	text := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.UTC().Format(TimeFormat)
	}
	return json.Marshal(struct {
		LastSign  string `json:"last_sign,omitempty"`
		Suspected string `json:"suspected,omitempty"`
		Decided   string `json:"decided,omitempty"`
		Stored    string `json:"stored,omitempty"`
		Seen      string `json:"seen,omitempty"`
		Ready     string `json:"ready,omitempty"`
	}{text(t.LastSign), text(t.Suspected), text(t.Decided), text(t.Stored), text(t.Seen), text(t.Ready)})
}
