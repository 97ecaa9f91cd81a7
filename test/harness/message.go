package harness

import (
	"errors"
	"strconv"
	"strings"
)

// Answer is a SIP response as a test needs it.
type Answer struct {
	Status  int
	Reason  string
	Headers map[string][]string // by lower-case long name
}

// compactNames of the header fields that a registrar may send (RFC 3261 §7.3.3).
var compactNames = map[string]string{"v": "via", "f": "from", "t": "to", "i": "call-id", "m": "contact", "l": "content-length", "k": "supported"}

func parseAnswer(datagram []byte) (Answer, error) {
	head, _, _ := strings.Cut(string(datagram), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	first := strings.SplitN(lines[0], " ", 3)
	if len(first) < 2 || first[0] != "SIP/2.0" {
		return Answer{}, errors.New("not a SIP response")
	}
	status, err := strconv.Atoi(first[1])
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Status: status, Headers: map[string][]string{}}
	if len(first) == 3 {
		a.Reason = first[2]
	}
	for _, line := range lines[1:] {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		name = strings.ToLower(strings.TrimSpace(name))
		if long, ok := compactNames[name]; ok {
			name = long
		}
		a.Headers[name] = append(a.Headers[name], strings.TrimSpace(value))
	}
	return a, nil
}

// Header is the first value of a header field, "" if there is none.
func (a Answer) Header(name string) string {
	if v := a.Headers[strings.ToLower(name)]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (a Answer) branch() string {
	_, after, ok := strings.Cut(a.Header("via"), "branch=")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(after, ";, \t"); i >= 0 {
		after = after[:i]
	}
	return after
}

// Listed is one Contact of a 200 to a REGISTER.
type Listed struct {
	URI     string
	Expires int // seconds; -1 when not said
}

// Contacts are the bindings that a 200 lists.
func (a Answer) Contacts() []Listed {
	var all []Listed
	for _, field := range a.Headers["contact"] {
		for _, c := range splitList(field) {
			uri, params := c, ""
			if i := strings.IndexByte(c, '<'); i >= 0 {
				if j := strings.IndexByte(c[i:], '>'); j >= 0 {
					uri, params = c[i+1:i+j], c[i+j+1:]
				}
			}
			l := Listed{URI: uri, Expires: -1}
			for _, p := range strings.Split(params, ";") {
				name, value, _ := strings.Cut(p, "=")
				if strings.EqualFold(strings.TrimSpace(name), "expires") {
					if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
						l.Expires = n
					}
				}
			}
			all = append(all, l)
		}
	}
	return all
}

// splitList splits at commas outside quotes and angle brackets.
func splitList(s string) []string {
	var parts []string
	start, quoted, angle := 0, false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '<':
			angle = true
		case c == '>':
			angle = false
		case c == ',' && !angle:
			parts = append(parts, strings.TrimSpace(s[start:i]))
			start = i + 1
		}
	}
	return append(parts, strings.TrimSpace(s[start:]))
}
