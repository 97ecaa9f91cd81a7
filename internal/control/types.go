// Package control is what a pool tells people and programs about itself: the
// shapes of status, explain and events (one definition for the Front End that
// answers, the command line that prints and the load tester that merges them),
// and the questions asked over the bus to fill them.
package control

import (
	"time"

	"rollcall/registrar"
	"rollcall/routing"
)

// The verbs that a Front End serves on the bus (see bus.Messages.Serve).
const (
	VerbPing     = "ping"     // answered at once by the process itself; evidence of life
	VerbRegister = "register" // a relayed REGISTER
	// VerbFlowClosed tells the primary that a user's connection closed at another Front End.
	VerbFlowClosed = "flowclosed"
	// VerbFlowReleased tells the Front End of a connection that a user has no binding on it any more.
	VerbFlowReleased = "flowreleased"
	// VerbNotify hands a NOTIFY to the Front End that has the watcher's flow.
	VerbNotify = "notify"
	// VerbAnswer hands on the answer to a NOTIFY that another Front End read at a shared address.
	VerbAnswer  = "answer"
	VerbStatus  = "status"  // answers a FrontEndStatus
	VerbExplain = "explain" // asks an AOR, answers an Explanation
)

// Status is the answer of `rollcall status --json`.
type Status struct {
	Epoch     routing.Epoch `json:"epoch"`
	FrontEnds []FrontEnd    `json:"frontends"` // by name; members that are down stay listed
	Groups    []Group       `json:"groups"`    // by id
}

// FrontEnd is one line of Status.
type FrontEnd struct {
	Name        routing.FrontEnd `json:"name"`
	State       routing.State    `json:"state"`
	Pid         int              `json:"pid"`  // 0 when it is down: that number may be another process's by now
	Boot        string           `json:"boot"` // of its newest process
	SIP         []string         `json:"sip"`  // "udp:127.0.0.1:5071"
	Primaries   int              `json:"primaries"`
	Secondaries int              `json:"secondaries"`
	Tertiaries  int              `json:"tertiaries"`
	Bindings    int              `json:"bindings"` // in the groups it is primary of
	Flows       int              `json:"flows"`    // open connections, and UDP flows with a registration
	// Silent: it did not answer; its bindings and flows are not known, and 0 here.
	Silent bool `json:"silent,omitempty"`
}

// Group is one routing group in Status. Absent copies are null in JSON.
type Group struct {
	ID        routing.Group     `json:"id"`
	Primary   *routing.FrontEnd `json:"primary"`
	Secondary *routing.FrontEnd `json:"secondary"`
	Tertiary  *routing.FrontEnd `json:"tertiary"`
	Users     int               `json:"users"`
	Bindings  int               `json:"bindings"`
	// Uncounted: no primary answered; users and bindings are not known, and 0 here.
	Uncounted bool `json:"uncounted,omitempty"`
}

// GroupCount is what a Front End knows of one group it holds a copy of.
type GroupCount struct {
	Bindings int  `json:"bindings"`
	Users    int  `json:"users"`
	Ready    bool `json:"ready"` // the copy has read the log to its head and serves (primaries only)
}

// FrontEndStatus is one Front End's own account of itself, the answer to VerbStatus.
type FrontEndStatus struct {
	Name   routing.FrontEnd             `json:"name"`
	State  routing.State                `json:"state"`
	Pid    int                          `json:"pid"`
	Boot   string                       `json:"boot"`
	SIP    []string                     `json:"sip"`
	Health string                       `json:"health"` // host:port of its health port
	Zone   string                       `json:"zone,omitempty"`
	Epoch  routing.Epoch                `json:"epoch"` // of the placement it acts on
	Flows  int                          `json:"flows"`
	Groups map[routing.Group]GroupCount `json:"groups"` // of the groups it is primary of
}

// MemberInfo is what a Front End leaves in the pool table under MemberKey, so that it can be named when it is down.
type MemberInfo struct {
	Name    routing.FrontEnd `json:"name"`
	Pid     int              `json:"pid"`
	Boot    string           `json:"boot"`
	Zone    string           `json:"zone,omitempty"`
	SIP     []string         `json:"sip"`
	Health  string           `json:"health"`
	Started time.Time        `json:"started"`
}

// Keys of the pool table.
const (
	PlacementKey = "placement"
	SettingsKey  = "settings"
	MemberPrefix = "member/"
)

// MemberKey is the pool table's key of one Front End's MemberInfo.
func MemberKey(fe routing.FrontEnd) string { return MemberPrefix + string(fe) }

// Explanation is the answer of `rollcall explain USER --json`.
type Explanation struct {
	AOR       registrar.AOR     `json:"aor"`
	Group     routing.Group     `json:"group"`
	Epoch     routing.Epoch     `json:"epoch"`
	Primary   *routing.FrontEnd `json:"primary"`
	Secondary *routing.FrontEnd `json:"secondary"`
	Tertiary  *routing.FrontEnd `json:"tertiary"`
	Why       string            `json:"why"` // why the primary is where it is, in words
	Bindings  []Binding         `json:"bindings"`
}

// Binding is one binding in an Explanation.
type Binding struct {
	Contact   string         `json:"contact"`
	ExpiresIn int            `json:"expires_in_s"`
	CallID    string         `json:"call_id"`
	CSeq      uint32         `json:"cseq"`
	UserAgent string         `json:"user_agent,omitempty"`
	Path      []string       `json:"path,omitempty"`
	Flow      registrar.Flow `json:"flow"`
	// Lost: the flow has gone with its Front End's process, and the client can't be reached by it.
	Lost bool `json:"lost,omitempty"`
}
