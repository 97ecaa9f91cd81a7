package sipfront

import (
	"bytes"
	"strings"

	"rollcall/registrar"
)

// message is one SIP message, its header fields sorted but their values still text.
type message struct {
	startLine
	vias   []string // values of the Via fields in order; each may be a comma list
	via    via      // the topmost
	from   once
	to     once
	callID once
	cseq   once
	length once // Content-Length
	maxFwd once
	ua     once
	expire once
	event  once

	contacts, paths, supported, require, authorization []string
	accept, recordRoutes                               []string // of a SUBSCRIBE

	toAddr registrar.Address // To taken apart, unless toErr
	toErr  error
	toTag  tagState
	body   []byte
	origin registrar.Flow // Remote is where the answer's received and rport come from
}

// once is a header field that may stand only once.
type once struct {
	value string
	n     int
}

func (o *once) add(v string) {
	if o.n == 0 {
		o.value = v
	}
	o.n++
}

// tagState says whether an answer may add a tag to To.
type tagState int

const (
	tagUnknown tagState = iota // To could not be read: it is given back as it came
	tagAbsent
	tagPresent
)

// headEnd is the length of start line, header fields and empty line, -1 when the empty line isn't there.
func headEnd(raw []byte, from int) int {
	if i := bytes.Index(raw[from:], []byte("\r\n\r\n")); i >= 0 {
		return from + i + 4
	}
	return -1
}

// split sorts the start line and header fields of head, which ends in an empty
// line or is cut short. It fails when there is nothing that could be answered;
// everything less is left in fault.
func split(head []byte) (*message, error) {
	text := string(head) // of which all values are parts
	first, section, ok := strings.Cut(text, "\n")
	if !ok {
		return nil, errNotSIP
	}
	first, crlf := strings.CutSuffix(first, "\r")
	line, err := readStartLine(first)
	if err != nil {
		return nil, err
	}
	m := &message{startLine: line}
	if !crlf {
		m.wrong("line does not end in CRLF")
	}
	if n := len(section); n >= 2 && section[n-2:] == "\r\n" && (n == 2 || section[n-3] == '\n') {
		section = section[:n-2]
	} else {
		m.wrong("no empty line after the header")
	}
	m.wrong(readFields(section, m.sort))
	if len(m.vias) == 0 {
		return nil, errNotSIP
	}
	if m.via, err = parseVia(m.vias[0]); err != nil {
		return nil, err
	}
	m.readTo()
	return m, nil
}

// readTo finds out whether To has a tag, which every answer depends on.
func (m *message) readTo() {
	if m.to.n == 0 {
		return
	}
	if m.toAddr, m.toErr = registrar.ParseAddress(m.to.value); m.toErr != nil {
		return
	}
	m.toTag = tagAbsent
	if _, has := m.toAddr.Param("tag"); has {
		m.toTag = tagPresent
	}
}

// wrong notes the first fault.
func (m *message) wrong(fault string) {
	if m.fault == "" {
		m.fault = fault
	}
}

// sort files one header field; compact forms are the same fields (RFC 3261 §7.3.3).
func (m *message) sort(name, value string) {
	var lower [20]byte
	if len(name) > len(lower) {
		return
	}
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	switch string(lower[:len(name)]) {
	case "via", "v":
		m.vias = append(m.vias, value)
	case "from", "f":
		m.from.add(value)
	case "to", "t":
		m.to.add(value)
	case "call-id", "i":
		m.callID.add(value)
	case "cseq":
		m.cseq.add(value)
	case "content-length", "l":
		m.length.add(value)
	case "max-forwards":
		m.maxFwd.add(value)
	case "user-agent":
		m.ua.add(value)
	case "expires":
		m.expire.add(value)
	case "contact", "m":
		m.contacts = append(m.contacts, value)
	case "path":
		m.paths = append(m.paths, value)
	case "supported", "k":
		m.supported = append(m.supported, value)
	case "require":
		m.require = append(m.require, value)
	case "authorization":
		m.authorization = append(m.authorization, value)
	case "event", "o":
		m.event.add(value)
	case "accept":
		m.accept = append(m.accept, value)
	case "record-route":
		m.recordRoutes = append(m.recordRoutes, value)
	}
}

// contentLength reads Content-Length: -1 when it is absent; not ok when it is
// not one number (RFC 3261 §20.14).
func (m *message) contentLength() (n int, ok bool) {
	if m.length.n == 0 {
		return -1, true
	}
	if m.length.n > 1 {
		return 0, false
	}
	return decimal(m.length.value, 1<<31-1)
}

// decimal reads 1*DIGIT up to most.
func decimal(s string, most int) (int, bool) {
	s = strings.TrimRight(s, " \t")
	if s == "" || len(s) > 32 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		if n = n*10 + int(d); n > most {
			return 0, false
		}
	}
	return n, true
}
