package registrar

import (
	"errors"
	"fmt"
	"strings"
)

// Address is a name-addr or addr-spec with its header parameters, as in To, From
// and Contact (RFC 3261 §20). URI is not checked here: see ParseURI.
type Address struct {
	Display string // unquoted
	URI     string // without angle brackets
	Params  []Param
}

var errLineBreak = errors.New("line break in a header field value")

// Param returns the value of a header parameter and whether it is there.
func (a Address) Param(name string) (value string, ok bool) {
	p, ok := find(a.Params, name)
	return p.Value, ok
}

// ParseAddress reads one address. Blanks around ";" and "=" are legal (SWS).
func ParseAddress(s string) (Address, error) {
	s, ok := unfold(s)
	if !ok {
		return Address{}, errLineBreak
	}
	a, rest, err := parseNameAddr(trim(s))
	if err == nil {
		a.Params, err = parseHeaderParams(rest)
	}
	if err != nil {
		return Address{}, fmt.Errorf("address %s: %w", quote(s), err)
	}
	return a, nil
}

// parseNameAddr reads up to the header parameters.
func parseNameAddr(s string) (a Address, rest string, err error) {
	rest = s
	switch {
	case strings.HasPrefix(s, `"`):
		if a.Display, rest, err = parseQuoted(s); err != nil {
			return a, "", err
		}
		rest = trim(rest)
		if !strings.HasPrefix(rest, "<") {
			return a, "", errors.New("no <URI> after the display name")
		}
	case strings.IndexByte(s, '<') > 0 && isDisplay(s[:strings.IndexByte(s, '<')]):
		lt := strings.IndexByte(s, '<')
		a.Display, rest = trim(s[:lt]), s[lt:]
	}
	if strings.HasPrefix(rest, "<") {
		gt := strings.IndexByte(rest, '>')
		if gt < 0 {
			return a, "", errors.New("< without >")
		}
		a.URI, rest = rest[1:gt], rest[gt+1:]
	} else {
		// An addr-spec's semicolon begins the header's parameters, never the URI's (§20.10).
		end := strings.IndexByte(rest, ';')
		if end < 0 {
			end = len(rest)
		}
		a.URI, rest = trim(rest[:end]), rest[end:]
		if strings.ContainsAny(a.URI, ",?") {
			return a, "", errors.New("a URI with comma or question mark needs angle brackets")
		}
	}
	if a.URI == "" || strings.ContainsAny(a.URI, "<>\" \t") {
		return a, "", errors.New("malformed URI")
	}
	return a, rest, nil
}

// isDisplay: tokens with blanks between them.
func isDisplay(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isToken(s[i]) && !isSpace(s[i]) {
			return false
		}
	}
	return true
}

// parseHeaderParams reads *( SEMI generic-param ) to the end.
func parseHeaderParams(s string) ([]Param, error) {
	var ps []Param
	for s = trim(s); s != ""; s = trim(s) {
		if s[0] != ';' {
			return nil, errors.New("unexpected text before a parameter")
		}
		p, rest, err := parseHeaderParam(trim(s[1:]))
		if err != nil {
			return nil, err
		}
		if _, twice := find(ps, p.Name); twice {
			return nil, fmt.Errorf("parameter %s appears twice", quote(p.Name))
		}
		if len(ps) == maxParams {
			return nil, errors.New("too many parameters")
		}
		ps, s = append(ps, p), rest
	}
	return ps, nil
}

// parseHeaderParam reads token [ EQUAL ( token / host / quoted-string ) ].
func parseHeaderParam(s string) (p Param, rest string, err error) {
	n := span(s, classToken)
	if n == 0 {
		return p, "", errors.New("parameter without a name")
	}
	p.Name, rest = s[:n], trim(s[n:])
	if !strings.HasPrefix(rest, "=") {
		p.Bare = true
		return p, rest, nil
	}
	rest = trim(rest[1:])
	if strings.HasPrefix(rest, `"`) {
		p.Quoted = true
		p.Value, rest, err = parseQuoted(rest)
		return p, rest, err
	}
	n = span(rest, classHost)
	if n == 0 {
		return p, "", fmt.Errorf("parameter %s without a value", quote(p.Name))
	}
	p.Value, rest = rest[:n], rest[n:]
	return p, rest, nil
}

// span is the number of leading bytes of s that are in the class.
func span(s string, c class) int {
	n := 0
	for n < len(s) && classes[s[n]]&c != 0 {
		n++
	}
	return n
}

// parseQuoted reads the quoted-string that s begins with.
func parseQuoted(s string) (value, rest string, err error) {
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[1:i], s[i+1:], nil
		case c == '\\':
			return parseQuotedEscapes(s, i)
		case c < ' ' && c != '\t', c == 0x7f:
			return "", "", errors.New("control character in a quoted string")
		}
	}
	return "", "", errors.New("quoted string without end")
}

// parseQuotedEscapes goes on at s[i], the first backslash of the string.
func parseQuotedEscapes(s string, i int) (value, rest string, err error) {
	b := []byte(s[1:i])
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return string(b), s[i+1:], nil
		case c == '\\':
			if i++; i == len(s) || s[i] < ' ' || s[i] >= 0x7f {
				return "", "", errors.New("malformed escape in a quoted string")
			}
			b = append(b, s[i])
		case c < ' ' && c != '\t', c == 0x7f:
			return "", "", errors.New("control character in a quoted string")
		default:
			b = append(b, c)
		}
	}
	return "", "", errors.New("quoted string without end")
}

// quoted writes a quoted-string.
func quoted(s string) string { return `"` + quotedText(s) + `"` }

// quotedText is what stands between the quotes.
func quotedText(s string) string {
	if !strings.ContainsAny(s, `"\`) {
		return s
	}
	return strings.NewReplacer(`"`, `\"`, `\`, `\\`).Replace(s)
}

// SplitList splits a header field value at its commas, but not at those within
// quotes or angle brackets.
func SplitList(s string) ([]string, error) {
	s, ok := unfold(s)
	if !ok {
		return nil, errLineBreak
	}
	var list []string
	start, angle := 0, false
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || (s[i] == ',' && !angle):
			item := trim(s[start:i])
			if item == "" {
				return nil, errors.New("empty element in a list")
			}
			list, start = append(list, item), i+1
		case s[i] == '"' && !angle:
			_, rest, err := parseQuoted(s[i:])
			if err != nil {
				return nil, err
			}
			i = len(s) - len(rest) - 1
		case s[i] == '<':
			angle = true
		case s[i] == '>':
			angle = false
		}
	}
	if angle {
		return nil, errors.New("< without >")
	}
	return list, nil
}
