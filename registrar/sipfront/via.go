package sipfront

import (
	"errors"
	"net/netip"
	"strings"
)

// via is the topmost Via (RFC 3261 §20.42): who asked, and where the answer goes.
type via struct {
	host   string // of sent-by; an IPv6 reference without its brackets
	port   int    // of sent-by; 0 when absent
	branch string
	maddr  string
	rport  bool // the client wants the answer where it sent from (RFC 3581)
	params int  // offset of the first ";" in the value
	end    int  // offset behind this via-parm: of a comma, or the end
}

var errVia = errors.New("the topmost Via can't be read")

// parseVia reads the first via-parm of a field's value.
func parseVia(s string) (via, error) {
	var v via
	i := 0
	for n := range 3 { // protocol "/" version "/" transport
		start := skipBlank(s, i)
		if i = skipToken(s, start); i == start {
			return v, errVia
		}
		if n < 2 {
			if i = skipBlank(s, i); i >= len(s) || s[i] != '/' {
				return v, errVia
			}
			i++
		}
	}
	start := skipBlank(s, i)
	if start == i {
		return v, errVia
	}
	var ok bool
	if i, ok = v.sentBy(s, start); !ok {
		return v, errVia
	}
	v.params, v.end = i, i
	for {
		p, next, ok := nextParam(s, v.end)
		if !ok {
			return v, errVia
		}
		if next == v.end {
			break
		}
		v.end = next
		switch {
		case strings.EqualFold(p.name, "branch"):
			v.branch = p.value
		case strings.EqualFold(p.name, "maddr"):
			v.maddr = strings.Trim(p.value, "[]")
		case strings.EqualFold(p.name, "rport"):
			v.rport = true
		}
	}
	return v, nil
}

// sentBy reads host [COLON port] and returns the offset behind it and its blanks.
func (v *via) sentBy(s string, i int) (int, bool) {
	if i < len(s) && s[i] == '[' {
		end := strings.IndexByte(s[i:], ']')
		if end < 0 {
			return i, false
		}
		addr, err := netip.ParseAddr(s[i+1 : i+end])
		if err != nil || !addr.Is6() {
			return i, false
		}
		v.host = s[i+1 : i+end]
		i += end + 1
	} else {
		start := i
		for i < len(s) && isHostByte(s[i]) {
			i++
		}
		if i == start {
			return i, false
		}
		v.host = s[start:i]
	}
	i = skipBlank(s, i)
	if i < len(s) && s[i] == ':' {
		start := skipBlank(s, i+1)
		for i = start; i < len(s) && s[i]-'0' <= 9; i++ {
		}
		port, ok := decimal(s[start:i], 65535)
		if !ok || port == 0 {
			return i, false
		}
		v.port = port
		i = skipBlank(s, i)
	}
	return i, i == len(s) || s[i] == ';' || s[i] == ','
}

// param is one ";name=value" of a Via.
type param struct {
	name, value string
	text        string // with its semicolon, as it stands
}

// nextParam reads the parameter at offset i, which is a semicolon, a comma or the
// end. next is i when there is none.
func nextParam(s string, i int) (p param, next int, ok bool) {
	if i >= len(s) || s[i] == ',' {
		return p, i, true
	}
	if s[i] != ';' {
		return p, i, false
	}
	start := i
	name := skipBlank(s, i+1)
	i = skipToken(s, name)
	if p.name = s[name:i]; p.name == "" {
		return p, i, false
	}
	i = skipBlank(s, i)
	if i < len(s) && s[i] == '=' {
		value := skipBlank(s, i+1)
		if i, ok = skipValue(s, value); !ok {
			return p, i, false
		}
		p.value = s[value:i]
		i = skipBlank(s, i)
	}
	p.text = s[start:i]
	return p, i, i == len(s) || s[i] == ';' || s[i] == ','
}

// skipValue passes a token, a host (with the brackets and colons of IPv6) or a quoted string.
func skipValue(s string, i int) (int, bool) {
	if i < len(s) && s[i] == '"' {
		for i++; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				return i + 1, true
			}
		}
		return i, false
	}
	for i < len(s) && (isTokenByte(s[i]) || s[i] == '[' || s[i] == ']' || s[i] == ':') {
		i++
	}
	return i, true
}

func skipBlank(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

func skipToken(s string, i int) int {
	for i < len(s) && isTokenByte(s[i]) {
		i++
	}
	return i
}

// isHostByte also takes "_", which names in the field have.
func isHostByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_'
}

// answerTo is where the answer to a datagram from source goes (RFC 3261 §18.2.2,
// RFC 3581 §4). Names are never resolved: a maddr that is a name counts as absent.
func (v *via) answerTo(source netip.AddrPort) netip.AddrPort {
	if v.rport {
		return source
	}
	port := uint16(5060)
	if v.port > 0 {
		port = uint16(v.port)
	}
	if v.maddr != "" {
		if addr, err := netip.ParseAddr(v.maddr); err == nil {
			return netip.AddrPortFrom(addr, port)
		}
	}
	return netip.AddrPortFrom(source.Addr(), port)
}

// appendAnswered writes the via-parm of value as an answer carries it: with
// received when the client is not where it says (§18.2.1), and rport if asked for.
func (v *via) appendAnswered(b []byte, value, remote string) []byte {
	b = append(b, strings.TrimRight(value[:v.params], " \t")...)
	for i := v.params; ; {
		p, next, ok := nextParam(value, i)
		if !ok || next == i {
			break
		}
		i = next
		if !strings.EqualFold(p.name, "received") && !strings.EqualFold(p.name, "rport") {
			b = append(b, strings.TrimRight(p.text, " \t")...)
		}
	}
	colon := strings.LastIndexByte(remote, ':')
	if colon < 0 { // a flow without an address: nothing to say about it
		return append(b, value[v.end:]...)
	}
	host, port := remote[:colon], remote[colon+1:]
	if v.rport || !sameHost(v.host, host) {
		b = append(append(b, ";received="...), host...)
	}
	if v.rport {
		b = append(append(b, ";rport="...), port...)
	}
	return append(b, value[v.end:]...)
}

// sameHost compares a sent-by host with an address, bracketed if it is IPv6.
func sameHost(sentBy, remote string) bool {
	if sentBy == strings.Trim(remote, "[]") {
		return true
	}
	a, errA := netip.ParseAddr(sentBy)
	b, errB := netip.ParseAddr(strings.Trim(remote, "[]"))
	return errA == nil && errB == nil && a == b
}
