package sipfront

import (
	"hash/fnv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"rollcall/registrar"
)

// overload is the answer of admission. Each client gets its own Retry-After, so
// that they don't all return at once; never 0, which some answer with a flood.
func (s *Server) overload(m *message) registrar.Reply {
	h := fnv.New32a()
	_, _ = io.WriteString(h, m.origin.Remote+m.callID.value+m.cseq.value)
	most := max(1, uint32(s.cfg.RetryAfterMax/time.Second))
	return registrar.Reply{
		Status: 503, Reason: "Service Unavailable: too much at once",
		Headers: []registrar.Header{{Name: "Retry-After", Value: strconv.Itoa(int(1 + h.Sum32()%most))}},
	}
}

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
		{Name: "Accept", Value: "application/sdp"},
		{Name: "Supported", Value: strings.Join(s.cfg.Supported, ", ")},
	}}
}
