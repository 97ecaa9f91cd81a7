package sipwire

import "strconv"

// Register is a REGISTER to be written. All strings are written as they are.
type Register struct {
	URI           string // Request-URI, as "sip:example.test"
	Transport     string // UDP, TCP, TLS, WS, WSS: as in Via
	SentBy        string // host:port
	Branch        string
	AOR           string // "sip:alice@example.test"
	FromTag       string
	CallID        string
	CSeq          uint32
	Contact       string // URI without brackets
	ContactParams string // ";a=b", after the brackets
	ContactExpiry bool   // the expiry goes into the Contact
	HeaderExpiry  bool   // the expiry goes into an Expires header field
	Expires       int
	Supported     string
	UserAgent     string
	Authorization []string // whole fields, name and value
}

// AppendRegister writes r to the end of b.
func AppendRegister(b []byte, r *Register) []byte {
	b = append(b, "REGISTER "...)
	b = append(b, r.URI...)
	b = append(b, " SIP/2.0\r\nVia: SIP/2.0/"...)
	b = append(b, r.Transport...)
	b = append(b, ' ')
	b = append(b, r.SentBy...)
	b = append(b, ";rport;branch="...)
	b = append(b, r.Branch...)
	b = append(b, "\r\nMax-Forwards: 70\r\nFrom: <"...)
	b = append(b, r.AOR...)
	b = append(b, ">;tag="...)
	b = append(b, r.FromTag...)
	b = append(b, "\r\nTo: <"...)
	b = append(b, r.AOR...)
	b = append(b, ">\r\nCall-ID: "...)
	b = append(b, r.CallID...)
	b = append(b, "\r\nCSeq: "...)
	b = strconv.AppendUint(b, uint64(r.CSeq), 10)
	b = append(b, " REGISTER\r\nContact: <"...)
	b = append(b, r.Contact...)
	b = append(b, '>')
	b = append(b, r.ContactParams...)
	if r.ContactExpiry {
		b = append(b, ";expires="...)
		b = strconv.AppendInt(b, int64(r.Expires), 10)
	}
	if r.HeaderExpiry {
		b = append(b, "\r\nExpires: "...)
		b = strconv.AppendInt(b, int64(r.Expires), 10)
	}
	b = field(b, "Supported", r.Supported)
	b = field(b, "User-Agent", r.UserAgent)
	for _, a := range r.Authorization {
		b = append(b, "\r\n"...)
		b = append(b, a...)
	}
	return append(b, "\r\nContent-Length: 0\r\n\r\n"...)
}

func field(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, "\r\n"...)
	b = append(b, name...)
	b = append(b, ": "...)
	return append(b, value...)
}

// AppendAnswer writes a response to the request m: status, reason, a tag for To
// when it has none, and further whole header fields.
func AppendAnswer(b []byte, m *Message, status int, reason, tag string, fields ...string) []byte {
	b = append(b, "SIP/2.0 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, reason...)
	for _, v := range m.Vias {
		b = field(b, "Via", v)
	}
	b = field(b, "From", m.From)
	to := m.To
	if param(to, "tag") == "" && tag != "" {
		to += ";tag=" + tag
	}
	b = field(b, "To", to)
	b = field(b, "Call-ID", m.CallID)
	b = append(b, "\r\nCSeq: "...)
	b = strconv.AppendUint(b, uint64(m.CSeq), 10)
	b = append(b, ' ')
	b = append(b, m.CSeqMethod...)
	for _, f := range fields {
		b = append(b, "\r\n"...)
		b = append(b, f...)
	}
	return append(b, "\r\nContent-Length: 0\r\n\r\n"...)
}
