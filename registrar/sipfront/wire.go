package sipfront

import (
	"bytes"
	"errors"
	"strings"

	"github.com/emiago/sipgo/sip"
)

// Splitting a message into its start line and header fields is done by sipgo
// 1.7.3, with no header parsers of its own so that values arrive here as text.
// What it gets wrong, and is put right in this file:
//
//   - it upper-cases methods, so "register" becomes REGISTER (RFC 3261 §7.1: case-sensitive),
//     accepts any version that starts with "sip", and gives up on a Request-URI that
//     it can't read, so that neither 405, 505 nor 416 could be told apart or answered:
//     we read the start line and hand it a neutral one;
//   - it stops at the first bad line, so the Via behind it is lost and there is no 400:
//     lines that are no header fields are kept from it and remembered as a fault;
//   - it lets a bare LF into a value, and so into what we echo, takes any text before
//     the colon as a name, and a first line that starts with a blank as a header field.
const neutralStart = "X sip:x SIP/2.0\r\n"

// errNotSIP: nothing here can be answered.
var errNotSIP = errors.New("not a SIP message")

// startLine is the first line of a message.
type startLine struct {
	method, uri, version string // of a request
	status               int    // of a response, else 0
	fault                string // what is wrong with it
}

// readStartLine reads a line without its CRLF. It fails when the line can be of no SIP message.
func readStartLine(line []byte) (startLine, error) {
	if len(line) > 4 && strings.EqualFold(string(line[:4]), "SIP/") {
		return readStatusLine(string(line))
	}
	first, last := bytes.IndexByte(line, ' '), bytes.LastIndexByte(line, ' ')
	if first <= 0 || !isToken(line[:first]) {
		return startLine{}, errNotSIP
	}
	s := string(line)
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

// headerLines makes a header section (every line with its CRLF, without the empty line)
// fit for sipgo: only lines that are header fields, behind a neutral start line, before an empty one.
// fault is the first thing found wrong.
func headerLines(section []byte) (fit []byte, fault string) {
	fit = make([]byte, 0, len(neutralStart)+len(section)+2)
	fit = append(fit, neutralStart...)
	if fault = checkLines(section, nil); fault == "" {
		fit = append(fit, section...)
	} else {
		checkLines(section, func(line []byte) {
			fit = append(append(fit, line...), "\r\n"...)
		})
	}
	return append(fit, "\r\n"...), fault
}

// checkLines returns the first fault of a header section and calls keep for the lines that are good.
func checkLines(section []byte, keep func(line []byte)) string {
	fault := ""
	found := func(what string) {
		if fault == "" {
			fault = what
		}
	}
	keeping := false // the field that a continuation would belong to
	for len(section) > 0 {
		end := bytes.IndexByte(section, '\n')
		line, next := section, len(section)
		if end >= 0 {
			line, next = section[:end], end+1
		}
		section = section[next:]
		if n := len(line); end < 0 || n == 0 || line[n-1] != '\r' {
			found("line does not end in CRLF")
		} else {
			line = line[:n-1]
		}
		if bytes.IndexByte(line, '\r') >= 0 {
			found("CR inside a line")
			keeping = false
			continue
		}
		switch {
		case len(line) == 0:
			found("empty line in the header")
			continue
		case line[0] == ' ' || line[0] == '\t':
			if !keeping {
				found("header starts with a blank")
				continue
			}
		default:
			if keeping = isField(line); !keeping {
				found("line is not a header field")
				continue
			}
		}
		if keep != nil {
			keep(line)
		}
	}
	return fault
}

// isField reports whether a line is "name HCOLON value" (RFC 3261 §7.3.1, §25.1).
func isField(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	return colon > 0 && isToken(bytes.TrimRight(line[:colon], " \t"))
}

// splitFields has sipgo split what headerLines made.
func splitFields(fit []byte) ([]sip.Header, error) {
	msg, _, err := splitter.ParseHeaders(fit, false)
	if err != nil {
		return nil, err
	}
	req, ok := msg.(*sip.Request)
	if !ok {
		return nil, errNotSIP
	}
	return req.Headers(), nil
}

// splitter is the sipgo parser that leaves values alone. It only reads itself.
var splitter = sip.NewParser(sip.WithHeadersParsers(nil))

func isToken(s []byte) bool {
	for _, c := range s {
		if !isTokenByte(c) {
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
