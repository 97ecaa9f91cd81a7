package frontend

import (
	"regexp"
	"strings"

	"rollcall/registrar"
	"rollcall/routing"
)

// direction is what a Front End does with a REGISTER of a group.
type direction int

const (
	hold     direction = iota // nobody can serve it now: wait for a change
	serve                     // this Front End is the primary
	relay                     // hand it to the primary and its answer back
	redirect                  // 302 to the primary
)

// Directing is how REGISTERs that reach another Front End than the primary are directed.
type Directing struct {
	// Redirect answers 302 where it is safe; otherwise, and without it, REGISTERs are relayed.
	Redirect bool
	// Agents are the User-Agents known to follow a 302 on REGISTER. All others are relayed.
	Agents []*regexp.Regexp
}

// directed is the URI parameter that marks a client which a redirect sent here.
// It is served or relayed, never redirected again: some clients follow without a limit.
const directed = "rollcall-directed"

// direct decides where a REGISTER goes, by the copies of its group.
func (d Directing) direct(c routing.Copies, me routing.FrontEnd, ready bool, req *registrar.Request) direction {
	switch {
	case c.Primary == "":
		return hold
	case c.Primary == me && ready:
		return serve
	case c.Primary == me:
		return hold
	case d.follows(req):
		return redirect
	default:
		return relay
	}
}

// follows reports whether a 302 to this REGISTER is safe: only a client that is
// known to follow, only before it was challenged (Linphone crashes when an
// authenticated REGISTER is redirected), never twice.
func (d Directing) follows(req *registrar.Request) bool {
	if !d.Redirect || len(req.Authorization) > 0 || strings.Contains(strings.ToLower(req.RequestURI), directed) {
		return false
	}
	for _, a := range d.Agents {
		if a.MatchString(req.UserAgent) {
			return true
		}
	}
	return false
}

// redirection is the 302 of design: one Contact first, the primary; then the secondary, by q.
func redirection(transport string, addresses ...string) registrar.Reply {
	r := registrar.Reply{Status: 302, Reason: "Moved Temporarily"}
	for i, a := range addresses {
		q := []string{"1.0", "0.5", "0.3"}[min(i, 2)]
		r.Headers = append(r.Headers, registrar.Header{
			Name:  "Contact",
			Value: "<sip:" + a + ";transport=" + transport + ";" + directed + ">;q=" + q,
		})
	}
	return r
}
