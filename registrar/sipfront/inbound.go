package sipfront

import (
	"rollcall/registrar"
)

// Inbound is one valid REGISTER or SUBSCRIBE.
type Inbound struct {
	Raw       []byte // the complete request as received; valid until the Handler returns
	Request   registrar.Request
	Subscribe *registrar.Subscribe // of a SUBSCRIBE; nil: it is a REGISTER

	msg     *message
	version string
}

// Flow is how the request came.
func (in *Inbound) Flow() registrar.Flow { return in.Request.Flow }

// Render is the complete response: reply, with all that the transport adds.
// A retransmission renders to the same bytes if the reply is the same.
func (in *Inbound) Render(reply registrar.Reply) []byte {
	return in.msg.render(reply, in.version)
}

// Parse reads a request for the Handler that another Front End received over flow and passed on.
// raw is the complete request. With an error comes the response to give, nil when none can be.
func Parse(raw []byte, flow registrar.Flow) (*Inbound, []byte, error) {
	return parse(raw, flow, "Rollcall")
}

// Parse is the function Parse, with this server's version in the answer.
func (s *Server) Parse(raw []byte, flow registrar.Flow) (*Inbound, []byte, error) {
	return parse(raw, flow, s.cfg.Version)
}
