package sipfront

import (
	"errors"
	"strings"

	"rollcall/registrar"
)

// allow is what the server understands, in a 405, a 501 and the answer to OPTIONS.
const allow = "REGISTER, SUBSCRIBE, OPTIONS"

// refusal is an answer given for a message's form. It is an error for Parse's callers.
type refusal struct {
	status int
	reason string
}

func (r *refusal) Error() string { return r.reason }

func (r *refusal) reply() registrar.Reply {
	reply := registrar.Reply{Status: r.status, Reason: r.reason}
	if r.status == 405 || r.status == 501 {
		reply.Headers = []registrar.Header{{Name: "Allow", Value: allow}}
	}
	return reply
}

func bad(reason string) *refusal { return &refusal{400, reason} }

// maxReason keeps a reason phrase to what fits on a line of somebody's log.
const maxReason = 120

func badFor(field string, err error) *refusal {
	reason := field + ": " + err.Error()
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "")
	}
	return bad(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, reason))
}

// parts are what checking a request found in it.
type parts struct {
	uri      registrar.URI
	to, from registrar.Address
	cseq     uint32
}

// check is what every request must pass before its method counts (RFC 3261
// §8.1.1, §8.2): nil, or the answer it deserves.
func (m *message) check() (parts, *refusal) {
	p := parts{to: m.toAddr}
	if major, minor, ok := version(m.version); !ok {
		return p, bad("Malformed SIP version")
	} else if major != "2" || minor != "0" {
		return p, &refusal{505, "Version Not Supported: this is SIP/2.0"}
	}
	if m.fault != "" {
		return p, bad("Bad Request: " + m.fault)
	}
	for _, f := range [...]struct {
		name string
		n    int
	}{{"To", m.to.n}, {"From", m.from.n}, {"Call-ID", m.callID.n}, {"CSeq", m.cseq.n}} {
		switch {
		case f.n == 0:
			return p, bad("Missing " + f.name)
		case f.n > 1:
			return p, bad("More than one " + f.name)
		}
	}
	if m.callID.value == "" || strings.ContainsAny(m.callID.value, " \t,;") {
		return p, bad("Malformed Call-ID")
	}
	number, method, ok := cutCSeq(m.cseq.value)
	if !ok {
		return p, bad("Malformed CSeq, or not below 2**31")
	}
	p.cseq = number
	if !known(m.method) { // §8.2.1: before the rest is looked at
		return p, &refusal{501, "Not Implemented"}
	}
	if method != m.method {
		return p, bad("CSeq method is not the request's")
	}
	if m.maxFwd.n > 1 {
		return p, bad("More than one Max-Forwards")
	}
	if _, ok := decimal(m.maxFwd.value, 255); m.maxFwd.n == 1 && !ok {
		return p, bad("Malformed Max-Forwards")
	}
	return p, m.checkAddresses(&p)
}

// checkAddresses judges To, From and the Request-URI (RFC 3261 §8.2.2.1).
func (m *message) checkAddresses(p *parts) *refusal {
	if m.toErr != nil {
		return badFor("To", m.toErr)
	}
	var err error
	if p.from, err = registrar.ParseAddress(m.from.value); err != nil {
		return badFor("From", err)
	}
	p.uri, err = registrar.ParseURI(m.uri)
	switch {
	case errors.Is(err, registrar.ErrScheme) || err == nil && p.uri.Scheme == "tel":
		return &refusal{416, "Unsupported URI Scheme"}
	case err != nil:
		return badFor("Request-URI", err)
	case len(p.uri.Headers) > 0:
		return bad("Request-URI has headers") // §19.1.1, table 1
	}
	return nil
}

// handled reports whether a method is the Handler's.
func handled(method string) bool { return method == "REGISTER" || method == "SUBSCRIBE" }

// known reports whether a method is one of the registered ones; only those of allow are served.
func known(method string) bool {
	switch method {
	case "REGISTER", "OPTIONS", "INVITE", "ACK", "CANCEL", "BYE", "SUBSCRIBE", "NOTIFY", "REFER", "INFO", "MESSAGE",
		"PRACK", "UPDATE", "PUBLISH":
		return true
	}
	return false
}

// version takes "SIP/2.0" apart; its letters have no case (§7.1).
func version(s string) (major, minor string, ok bool) {
	if len(s) < 4 || !strings.EqualFold(s[:4], "SIP/") {
		return "", "", false
	}
	major, minor, ok = strings.Cut(s[4:], ".")
	return major, minor, ok && digits(major) && digits(minor)
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i]-'0' > 9 {
			return false
		}
	}
	return s != ""
}

// cutCSeq reads "number LWS method", the number below 2^31 (§8.1.1.5).
func cutCSeq(s string) (number uint32, method string, ok bool) {
	i := strings.IndexAny(s, " \t")
	if i <= 0 {
		return 0, "", false
	}
	n, ok := decimal(s[:i], 1<<31-1)
	return uint32(n), strings.TrimLeft(s[i:], " \t"), ok
}

// inbound makes the request that the Handler sees of a checked REGISTER or SUBSCRIBE.
func (m *message) inbound(p parts, raw []byte, version string) (*Inbound, *refusal) {
	r := registrar.Request{
		RequestURI:    m.uri,
		Domain:        p.uri.Host,
		CallID:        m.callID.value,
		CSeq:          p.cseq,
		Branch:        m.via.branch,
		Authorization: m.authorization,
		UserAgent:     m.ua.value,
		Body:          m.body,
		Flow:          m.origin,
	}
	var err error
	if r.AOR, err = registrar.ParseAOR(p.to.URI); err != nil {
		return nil, badFor("To", err)
	}
	r.From = r.AOR
	if p.from.URI != p.to.URI {
		if r.From, err = registrar.ParseAOR(p.from.URI); err != nil {
			return nil, badFor("From", err)
		}
	}
	if r.Contacts, r.Star, err = registrar.ParseContacts(m.contacts); err != nil {
		return nil, badFor("Contact", err)
	}
	if r.Path, err = paths(m.paths); err != nil {
		return nil, badFor("Path", err)
	}
	if r.Supported, err = optionTags(m.supported); err != nil {
		return nil, badFor("Supported", err)
	}
	if r.Require, err = optionTags(m.require); err != nil {
		return nil, badFor("Require", err)
	}
	if m.expire.n > 1 {
		return nil, bad("More than one Expires")
	}
	if m.expire.n == 1 {
		r.Expires = registrar.ParseExpires(m.expire.value)
	}
	in := &Inbound{Raw: raw, Request: r, msg: m, version: version}
	if m.method == "SUBSCRIBE" {
		var refused *refusal
		if in.Subscribe, refused = m.subscribe(p); refused != nil {
			return nil, refused
		}
		in.Request.Method = m.method
	}
	return in, nil
}

// paths reads Path fields into their elements, in order (RFC 3327 §4).
func paths(values []string) ([]string, error) {
	var all []string
	for _, v := range values {
		list, err := registrar.SplitList(v)
		if err != nil {
			return nil, err
		}
		for _, item := range list {
			a, err := registrar.ParseAddress(item)
			if err != nil {
				return nil, err
			}
			if _, err := registrar.ParseURI(a.URI); err != nil {
				return nil, err
			}
		}
		all = append(all, list...)
	}
	return all, nil
}

var errOptionTag = errors.New("not a list of option tags")

// optionTags reads Supported or Require. An empty value is legal in Supported (§20.37).
func optionTags(values []string) ([]string, error) {
	var tags []string
	for _, v := range values {
		for v != "" {
			var tag string
			tag, v, _ = strings.Cut(v, ",")
			if tag = strings.Trim(tag, " \t"); !isToken(tag) {
				return nil, errOptionTag
			}
			tags = append(tags, strings.ToLower(tag))
		}
	}
	return tags, nil
}

// parse reads one complete REGISTER or SUBSCRIBE; see Parse.
func parse(raw []byte, flow registrar.Flow, version string) (*Inbound, []byte, error) {
	end := headEnd(raw, 0)
	if end < 0 {
		end = len(raw)
	}
	m, err := split(raw[:end])
	if err != nil {
		return nil, nil, err
	}
	if m.status > 0 {
		return nil, nil, errNotSIP
	}
	m.origin = flow
	m.takeBody(raw[end:])
	p, refused := m.check()
	if refused == nil && !handled(m.method) {
		refused = &refusal{405, "Method Not Allowed"}
	}
	var in *Inbound
	if refused == nil {
		in, refused = m.inbound(p, raw, version)
	}
	if refused != nil {
		return nil, m.render(refused.reply(), version), refused
	}
	return in, nil, nil
}

// takeBody cuts the body out of what follows the header of a datagram: bytes
// beyond Content-Length don't count, too few are a fault (RFC 3261 §18.3).
func (m *message) takeBody(rest []byte) {
	n, ok := m.contentLength()
	switch {
	case !ok:
		m.wrong("malformed Content-Length")
	case n > len(rest):
		m.wrong("body is shorter than Content-Length")
	case n >= 0:
		m.body = rest[:n]
	default:
		m.body = rest
	}
	if len(m.body) == 0 {
		m.body = nil
	}
}
