package sipfront

import (
	"strconv"

	"rollcall/registrar"
)

// render is the complete response to m (RFC 3261 §8.2.6).
func (m *message) render(reply registrar.Reply, version string) []byte {
	size := 256 + len(m.from.value) + len(m.to.value) + len(m.callID.value) + len(m.cseq.value)
	for _, v := range m.vias {
		size += len(v) + 8
	}
	for _, h := range reply.Headers {
		size += len(h.Name) + len(h.Value) + 4
	}
	b := make([]byte, 0, size)
	b = append(b, "SIP/2.0 "...)
	b = strconv.AppendInt(b, int64(reply.Status), 10)
	b = append(b, ' ')
	b = appendText(b, reply.Reason)
	b = append(b, "\r\nVia: "...)
	b = m.via.appendAnswered(b, m.vias[0], m.origin.Remote)
	b = append(b, "\r\n"...)
	for _, v := range m.vias[1:] {
		b = appendField(b, "Via", v)
	}
	b = appendOnce(b, "From", m.from)
	if m.to.n > 0 {
		b = append(append(b, "To: "...), m.to.value...)
		if reply.Status > 100 && m.toTag == tagAbsent {
			b = appendTag(append(b, ";tag="...), m)
		}
		b = append(b, "\r\n"...)
	}
	b = appendOnce(b, "Call-ID", m.callID)
	b = appendOnce(b, "CSeq", m.cseq)
	for _, h := range reply.Headers {
		b = appendField(b, h.Name, h.Value)
	}
	b = appendField(b, "Server", version)
	return append(b, "Content-Length: 0\r\n\r\n"...)
}

func appendOnce(b []byte, name string, o once) []byte {
	if o.n == 0 {
		return b
	}
	return appendField(b, name, o.value)
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	return append(appendText(b, value), "\r\n"...)
}

// appendText writes a value, its line breaks as blanks: no text, wherever it
// comes from, can end a header field.
func appendText(b []byte, s string) []byte {
	start := len(b)
	b = append(b, s...)
	for i := start; i < len(b); i++ {
		if b[i] == '\r' || b[i] == '\n' {
			b[i] = ' '
		}
	}
	return b
}

// appendTag writes a To-tag that is the same for every copy of a request, at
// whichever Front End it is answered (RFC 3261 §8.2.7).
func appendTag(b []byte, m *message) []byte {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	h := uint64(offset)
	for _, s := range [...]string{m.callID.value, m.from.value, m.cseq.value, m.via.branch} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
		h = (h ^ 0xff) * prime
	}
	return strconv.AppendUint(b, h, 36)
}
