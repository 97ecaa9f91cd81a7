package sipfront

import (
	"encoding/hex"
	"net/netip"
	"strings"

	"rollcall/registrar"
)

// Astray is a response to a request that another Front End sent from a UDP address shared
// with this one: the system chooses who reads a client's datagrams, and chooses anew when a Front End comes or goes.
type Astray struct {
	FrontEnd string // that sent the request
	Branch   string
	Method   string
	Status   int
	Flow     registrar.Flow // how the response came
}

// A branch of ours names us between the magic cookie and a dash, in hexadecimal.
const magicCookie = "z9hG4bK"

func (s *Server) newBranch(unique string) string {
	return magicCookie + hex.EncodeToString([]byte(s.cfg.FrontEnd)) + "-" + unique
}

// senderOf reads whose branch it is.
func senderOf(branch string) (frontEnd string, ok bool) {
	name, _, ok := strings.Cut(strings.TrimPrefix(branch, magicCookie), "-")
	b, err := hex.DecodeString(name)
	return string(b), ok && err == nil && len(b) > 0
}

// astray hands a response to nothing of ours on, if it is another's. It reports whether it did.
func (s *Server) astray(p peer, m *message, method string) bool {
	if p.conn != nil || s.cfg.Astray == nil {
		return false
	}
	frontEnd, ok := senderOf(m.via.branch)
	if !ok || frontEnd == s.cfg.FrontEnd {
		return false
	}
	s.cfg.Astray(Astray{FrontEnd: frontEnd, Branch: m.via.branch, Method: method, Status: m.status, Flow: m.origin})
	return true
}

// Answered takes a response that went astray to another Front End. It must have come
// from where the request went, to the address that it went from.
func (s *Server) Answered(a Astray) {
	x := s.sends.get(a.Branch)
	remote, err := netip.ParseAddrPort(a.Flow.Remote)
	if x == nil || err != nil || x.method != a.Method || x.peer.socket == nil ||
		x.peer.source != remote || x.peer.socket.local != a.Flow.Local {
		s.count.drop(DropResponse)
		return
	}
	x.answered(a.Status)
}
