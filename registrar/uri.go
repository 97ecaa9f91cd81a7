package registrar

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// ErrScheme: well formed as far as that can be told, but neither sip, sips nor tel.
// In a Request-URI it deserves 416 (RFC 3261 §8.2.2.1).
var ErrScheme = errors.New("unsupported URI scheme")

// maxParams bounds the parameters of one URI or header field value.
const maxParams = 64

// URI is a SIP, SIPS or tel URI taken apart (RFC 3261 §19.1.1, RFC 3966).
type URI struct {
	Scheme      string // sip, sips or tel
	User        string // escapes as received; the number of a tel URI; "" when absent
	Password    string // escapes as received
	HasPassword bool   // an empty password is not the same as none
	Host        string // lower case; an IPv6 reference keeps its brackets
	Port        int    // 0 when absent
	Params      []Param
	Headers     []Param
}

// Param is one parameter of a URI or of a header field value.
type Param struct {
	Name   string // as received; names compare without regard to case
	Value  string // of a quoted string, what stands between the quotes, unescaped
	Quoted bool
	Bare   bool // there was no "="
}

// ParseURI takes a URI apart, strictly by the grammar of RFC 3261 §25.1. Two
// liberties: "_" in host names, and a host's last label may begin with a digit.
func ParseURI(s string) (URI, error) {
	colon := strings.IndexByte(s, ':')
	if colon <= 0 {
		return URI{}, fmt.Errorf("URI %s has no scheme", quote(s))
	}
	u, rest := URI{Scheme: lower(s[:colon])}, s[colon+1:]
	var err error
	switch u.Scheme {
	case "sip", "sips":
		err = u.parseSIP(rest)
	case "tel":
		err = u.parseTel(rest)
	default:
		if !isScheme(u.Scheme) {
			return URI{}, fmt.Errorf("URI %s has a malformed scheme", quote(s))
		}
		err = ErrScheme
	}
	if err != nil {
		return URI{}, fmt.Errorf("URI %s: %w", quote(s), err)
	}
	return u, nil
}

// quote makes hostile input fit for an error of one line.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "..."
	}
	return strconv.Quote(s)
}

func isScheme(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isAlnum(c) && c != '+' && c != '-' && c != '.' {
			return false
		}
	}
	return s != "" && !isDigit(s[0])
}

func (u *URI) parseSIP(s string) error {
	// "@" is legal unescaped only before the host, while the user may hold ";" and "?".
	if at := strings.IndexByte(s, '@'); at >= 0 {
		if err := u.parseUserInfo(s[:at]); err != nil {
			return err
		}
		s = s[at+1:]
	}
	end := strings.IndexAny(s, ";?")
	if end < 0 {
		end = len(s)
	}
	if err := u.parseHostPort(s[:end]); err != nil {
		return err
	}
	s = s[end:]
	if q := strings.IndexByte(s, '?'); q >= 0 {
		if err := u.parseHeaders(s[q+1:]); err != nil {
			return err
		}
		s = s[:q]
	}
	return u.parseParams(s)
}

func (u *URI) parseUserInfo(s string) error {
	u.User, u.Password, u.HasPassword = strings.Cut(s, ":")
	switch {
	case u.User == "":
		return errors.New("nothing before the @")
	case !allIn(u.User, classUser, true):
		return errors.New("illegal character in the user part")
	case !allIn(u.Password, classPassword, true):
		return errors.New("illegal character in the password")
	}
	return nil
}

func (u *URI) parseHostPort(s string) error {
	host, port, hasPort := s, "", false
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return errors.New("IPv6 reference without closing bracket")
		}
		host = s[:end+1]
		if rest := s[end+1:]; rest != "" {
			if rest[0] != ':' {
				return errors.New("illegal character after the IPv6 reference")
			}
			port, hasPort = rest[1:], true
		}
	} else {
		host, port, hasPort = strings.Cut(s, ":")
	}
	if !isHost(host) {
		return errors.New("malformed host")
	}
	u.Host = lower(host)
	if !hasPort {
		return nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || !allDigits(port) {
		return errors.New("port is not a number from 1 to 65535")
	}
	u.Port = int(n)
	return nil
}

// isHost: host name, IPv4 address, or IPv6 reference in brackets.
func isHost(h string) bool {
	if strings.HasPrefix(h, "[") {
		a, ok := parseReference(h)
		return ok && a.Is6() && a.Zone() == ""
	}
	h = strings.TrimSuffix(h, ".")
	if h == "" || len(h) > 255 {
		return false
	}
	last := h[strings.LastIndexByte(h, '.')+1:]
	if allDigits(last) { // no top label is a number: it must be an IPv4 address
		a, err := netip.ParseAddr(h)
		return err == nil && a.Is4()
	}
	for label := range strings.SplitSeq(h, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// parseReference reads an IPv6 reference. The grammar of RFC 3261 put a colon too many
// before an embedded IPv4 address; it has to be tolerated (RFC 5118 §4.10).
func parseReference(h string) (netip.Addr, bool) {
	h = h[1 : len(h)-1]
	a, err := netip.ParseAddr(h)
	if err == nil {
		return a, true
	}
	before, v4, three := strings.Cut(h, ":::")
	if !three || strings.IndexByte(v4, '.') < 0 || strings.IndexByte(v4, ':') >= 0 {
		return a, false
	}
	a, err = netip.ParseAddr(before + "::" + v4)
	return a, err == nil
}

func isLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := 0; i < len(s); i++ {
		if !isAlnum(s[i]) && s[i] != '-' && s[i] != '_' {
			return false
		}
	}
	return true
}

// parseParams reads ";name=value;name" to its end.
func (u *URI) parseParams(s string) error {
	for s != "" {
		s = s[1:] // the ";"
		end := strings.IndexByte(s, ';')
		if end < 0 {
			end = len(s)
		}
		name, value, has := strings.Cut(s[:end], "=")
		s = s[end:]
		if name == "" || (has && value == "") || !allIn(name, classParam, true) || !allIn(value, classParam, true) {
			return errors.New("malformed parameter")
		}
		if _, twice := find(u.Params, name); twice {
			return fmt.Errorf("parameter %s appears twice", quote(name))
		}
		if len(u.Params) == maxParams {
			return errors.New("too many parameters")
		}
		u.Params = append(u.Params, Param{Name: name, Value: value, Bare: !has})
	}
	return nil
}

func (u *URI) parseHeaders(s string) error {
	for part := range strings.SplitSeq(s, "&") {
		name, value, has := strings.Cut(part, "=")
		if name == "" || !has || !allIn(name, classHeader, true) || !allIn(value, classHeader, true) {
			return errors.New("malformed header part")
		}
		if len(u.Headers) == maxParams {
			return errors.New("too many headers")
		}
		u.Headers = append(u.Headers, Param{Name: name, Value: value})
	}
	return nil
}

// parseTel reads the number and parameters of RFC 3966.
func (u *URI) parseTel(s string) error {
	end := strings.IndexByte(s, ';')
	if end < 0 {
		end = len(s)
	}
	u.User = s[:end]
	digits := 0
	for i := 0; i < len(u.User); i++ {
		switch c := u.User[i]; {
		case unhex(c) >= 0 || c == '*' || c == '#':
			digits++
		case c == '+' && i == 0, strings.IndexByte("-.()", c) >= 0:
		default:
			return errors.New("illegal character in the telephone number")
		}
	}
	if digits == 0 {
		return errors.New("telephone number without digits")
	}
	return u.parseParams(s[end:])
}

// Param returns the value of a parameter and whether it is there.
func (u URI) Param(name string) (value string, ok bool) {
	p, ok := find(u.Params, name)
	return p.Value, ok
}

// find looks a parameter up by its name, without regard to case.
func find(ps []Param, name string) (Param, bool) {
	for _, p := range ps {
		if strings.EqualFold(p.Name, name) {
			return p, true
		}
	}
	return Param{}, false
}
