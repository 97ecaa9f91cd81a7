package sipfront

import (
	"slices"
	"strings"

	"rollcall/registrar"
)

// options tells what is understood here (RFC 3261 §11.2), or what of Require isn't (§8.2.2.3).
func (s *Server) options(m *message) registrar.Reply {
	required, err := optionTags(m.require)
	if err != nil {
		return badFor("Require", err).reply()
	}
	var unknown []string
	for _, tag := range required {
		if !slices.Contains(s.cfg.Supported, tag) {
			unknown = append(unknown, tag)
		}
	}
	if len(unknown) > 0 {
		return registrar.Reply{Status: 420, Reason: "Bad Extension", Headers: []registrar.Header{
			{Name: "Unsupported", Value: strings.Join(unknown, ", ")},
		}}
	}
	return registrar.Reply{Status: 200, Reason: "OK", Headers: []registrar.Header{
		{Name: "Allow", Value: allow},
		{Name: "Allow-Events", Value: registrar.EventReg},
		{Name: "Accept", Value: "application/sdp"},
		{Name: "Supported", Value: strings.Join(s.cfg.Supported, ", ")},
	}}
}
