package sipwire

import (
	"errors"
	"strconv"
	"strings"
)

// Message is what a softphone needs of a message. Strings share one copy of the
// bytes read: clone what outlives the handling of the message.
type Message struct {
	Status int    // of a response; 0 for a request
	Method string // of a request
	URI    string // of a request

	Vias       []string // in order, one a field value
	Branch     string   // of the top Via
	From, To   string
	CallID     string
	CSeq       uint32
	CSeqMethod string

	Contacts   []Contact
	Expires    int // seconds; -1 when absent
	MinExpires int
	RetryAfter int
	FlowTimer  int
	Outbound   bool     // Require: outbound in a response (RFC 5626 §6)
	Challenges []string // values of WWW-Authenticate and Proxy-Authenticate

	// Authorization of a request: the first one.
	Authorization string
}

// Contact of a message.
type Contact struct {
	URI     string
	Expires int // seconds; -1 when absent
	Params  string
}

// ErrMalformed: not a SIP message, or one without what every message must have (RFC 3261 §8.1.1).
var ErrMalformed = errors.New("malformed message")

// Parse reads one message.
func Parse(b []byte) (Message, error) {
	m := Message{Expires: -1, MinExpires: -1, RetryAfter: -1, FlowTimer: -1}
	s := string(b)
	first, rest, ok := strings.Cut(s, "\r\n")
	if !ok || !m.startLine(first) {
		return m, ErrMalformed
	}
	for rest != "" {
		var line string
		line, rest = nextField(rest)
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return m, ErrMalformed
		}
		if !m.field(strings.ToLower(strings.TrimRight(name, " \t")), strings.TrimSpace(value)) {
			return m, ErrMalformed
		}
	}
	if len(m.Vias) == 0 || m.From == "" || m.To == "" || m.CallID == "" || m.CSeqMethod == "" {
		return m, ErrMalformed
	}
	m.Branch = param(m.Vias[0], "branch")
	return m, nil
}

// nextField cuts one header field off, unfolding continuation lines (RFC 3261 §7.3.1).
func nextField(s string) (field, rest string) {
	field, rest, _ = strings.Cut(s, "\r\n")
	for rest != "" && (rest[0] == ' ' || rest[0] == '\t') && field != "" {
		var more string
		more, rest, _ = strings.Cut(rest, "\r\n")
		field += " " + strings.TrimSpace(more)
	}
	return field, rest
}

func (m *Message) startLine(s string) bool {
	if code, ok := strings.CutPrefix(s, "SIP/2.0 "); ok {
		if len(code) < 3 || (len(code) > 3 && code[3] != ' ') {
			return false
		}
		n, err := strconv.Atoi(code[:3])
		m.Status = n
		return err == nil && n >= 100 && n <= 699
	}
	method, tail, ok := strings.Cut(s, " ")
	uri, version, ok2 := strings.Cut(tail, " ")
	m.Method, m.URI = method, uri
	return ok && ok2 && method != "" && version == "SIP/2.0"
}

// field takes one header field in; false means that its value cannot be read.
func (m *Message) field(name, value string) bool {
	switch name {
	case "via", "v":
		m.Vias = append(m.Vias, value)
	case "from", "f":
		m.From = value
	case "to", "t":
		m.To = value
	case "call-id", "i":
		m.CallID = value
	case "cseq":
		num, method, ok := strings.Cut(value, " ")
		n, err := strconv.ParseUint(num, 10, 32)
		if !ok || err != nil {
			return false
		}
		m.CSeq, m.CSeqMethod = uint32(n), strings.TrimSpace(method)
	case "contact", "m":
		m.contacts(value)
	case "expires":
		m.Expires = seconds(value)
	case "min-expires":
		m.MinExpires = seconds(value)
	case "retry-after":
		m.RetryAfter = seconds(value)
	case "flow-timer":
		m.FlowTimer = seconds(value)
	case "require":
		m.Outbound = m.Outbound || strings.Contains(strings.ToLower(value), "outbound")
	case "www-authenticate", "proxy-authenticate":
		m.Challenges = append(m.Challenges, value)
	case "authorization":
		if m.Authorization == "" {
			m.Authorization = value
		}
	}
	return true
}

// seconds reads a leading number, as in "5 (busy);duration=10"; -1 when there is none.
func seconds(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	v, err := strconv.Atoi(s[:n])
	if err != nil {
		return -1
	}
	return v
}

// contacts reads a Contact field, which may hold several, separated by commas.
func (m *Message) contacts(s string) {
	for s != "" {
		var one string
		one, s = cutComma(s)
		one = strings.TrimSpace(one)
		if one == "" {
			continue
		}
		c := Contact{Expires: -1}
		if i := strings.IndexByte(one, '<'); i >= 0 {
			if j := strings.IndexByte(one[i:], '>'); j > 0 {
				c.URI, c.Params = one[i+1:i+j], one[i+j+1:]
			}
		} else {
			c.URI, c.Params, _ = strings.Cut(one, ";")
			c.Params = ";" + c.Params
		}
		if e := param(c.Params, "expires"); e != "" {
			c.Expires = seconds(e)
		}
		m.Contacts = append(m.Contacts, c)
	}
}

// cutComma cuts at the first comma outside quotes and angle brackets.
func cutComma(s string) (head, tail string) {
	quoted, bracket := false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<':
			bracket = true
		case c == '>':
			bracket = false
		case c == ',' && !bracket:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// param finds ;name=value after the first semicolon outside quotes; names are compared without case.
func param(s, name string) string {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			quoted = !quoted
		case ';':
			if quoted {
				continue
			}
			rest := strings.TrimLeft(s[i+1:], " \t")
			key, value, ok := strings.Cut(rest, "=")
			if !ok || !strings.EqualFold(strings.TrimSpace(key), name) {
				continue
			}
			value = strings.TrimLeft(value, " \t")
			if end := strings.IndexAny(value, "; \t,"); end >= 0 {
				value = value[:end]
			}
			return value
		}
	}
	return ""
}
