package sipfront

import (
	"errors"
	"strings"
)

// errNotSIP: nothing here can be answered.
var errNotSIP = errors.New("not a SIP message")

// startLine is the first line of a message.
type startLine struct {
	method, uri, version string // of a request
	status               int    // of a response, else 0
	fault                string // what is wrong with it
}

// readStartLine reads a line without its CRLF. It fails when the line can be of no SIP message.
func readStartLine(s string) (startLine, error) {
	if len(s) > 4 && strings.EqualFold(s[:4], "SIP/") {
		return readStatusLine(s)
	}
	first, last := strings.IndexByte(s, ' '), strings.LastIndexByte(s, ' ')
	if first <= 0 || !isToken(s[:first]) {
		return startLine{}, errNotSIP
	}
	l := startLine{method: s[:first]}
	version := s[last+1:]
	if strings.TrimSpace(version) == "" { // blanks after the version
		version = strings.TrimSpace(s[strings.LastIndexByte(strings.TrimRight(s, " \t"), ' ')+1:])
		l.fault = "blank at the end of the request line"
	}
	if len(version) < 4 || !strings.EqualFold(version[:4], "SIP/") {
		return startLine{}, errNotSIP
	}
	l.version = version
	if last > first {
		l.uri = s[first+1 : last]
	}
	if l.fault == "" && (l.uri == "" || strings.ContainsAny(l.uri, " \t<>\"")) {
		l.fault = "request line is not METHOD SP URI SP SIP/2.0"
	}
	return l, nil
}

func readStatusLine(s string) (startLine, error) {
	const at = len("SIP/2.0 ")
	if !strings.EqualFold(s[:min(len(s), at)], "SIP/2.0 ") || (len(s) > at+3 && s[at+3] != ' ') {
		return startLine{}, errNotSIP
	}
	code := statusOf([]byte(s))
	if code == 0 {
		return startLine{}, errNotSIP
	}
	return startLine{status: code}, nil
}

// readFields reads a header section (every line with its CRLF, without the empty line) and
// calls field for each header field, a folded value as one line (RFC 3261 §7.3.1). Lines that are no
// header fields are passed over: the Via behind one is what it can be answered by. fault is the first of them.
func readFields(section string, field func(name, value string)) (fault string) {
	found := func(what string) {
		if fault == "" {
			fault = what
		}
	}
	var name, value string // of the field that a continuation would belong to
	tell := func() {
		if name != "" {
			field(name, value)
		}
		name = ""
	}
	for len(section) > 0 {
		line, rest, ended := strings.Cut(section, "\n")
		section = rest
		if n := len(line); !ended || n == 0 || line[n-1] != '\r' {
			found("line does not end in CRLF")
		} else {
			line = line[:n-1]
		}
		switch {
		case strings.IndexByte(line, '\r') >= 0:
			found("CR inside a line")
			tell()
		case line == "":
			found("empty line in the header")
		case line[0] == ' ' || line[0] == '\t':
			if name == "" {
				found("header starts with a blank")
				continue
			}
			value = strings.Trim(value+" "+strings.Trim(line, " \t"), " ")
		default:
			tell()
			before, after, ok := strings.Cut(line, ":")
			if before = strings.TrimRight(before, " \t"); !ok || !isToken(before) { // §25.1, HCOLON
				found("line is not a header field")
				continue
			}
			name, value = before, strings.Trim(after, " \t")
		}
	}
	tell()
	return fault
}

func isToken(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return len(s) > 0
}

// isTokenByte: RFC 3261 §25.1, token.
func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		strings.IndexByte("-.!%*_+`'~", c) >= 0
}
