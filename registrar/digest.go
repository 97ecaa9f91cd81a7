package registrar

import (
	"crypto/subtle"
	"errors"
	"strconv"
	"strings"
)

// credentials is one Authorization header field of the Digest scheme (RFC 7616 §3.4).
type credentials struct {
	username, realm, nonce, uri string
	response, cnonce, nc, qop   string
	algorithm                   string // as sent
	rawURI, rawCnonce           string // with the backslashes of the quoted string, as some clients hash them
	hasUsername, hasNonce       bool
	hasURI, hasResponse, hasQOP bool
	hasCnonce, hasNC            bool
}

var errCredentials = errors.New("malformed credentials")

// parseCredentials reads one header field value. other says that it is of another scheme.
func parseCredentials(s string) (c credentials, other bool, err error) {
	s, ok := unfold(s)
	s = trim(s)
	n := span(s, classToken)
	if !ok || n == 0 {
		return c, false, errCredentials
	}
	if !strings.EqualFold(s[:n], "Digest") {
		return c, true, nil
	}
	if s = s[n:]; s == "" || !isSpace(s[0]) {
		return c, false, errCredentials
	}
	for count := 0; ; count++ {
		for s = trim(s); strings.HasPrefix(s, ","); s = trim(s[1:]) { // empty elements are legal
		}
		if s == "" {
			break
		}
		if count == maxParams {
			return c, false, errCredentials
		}
		if s, err = c.parseParam(s); err != nil {
			return c, false, err
		}
	}
	return c, false, nil
}

// parseParam reads one name=value and returns what follows.
func (c *credentials) parseParam(s string) (rest string, err error) {
	n := span(s, classToken)
	name, rest := s[:n], trim(s[n:])
	if n == 0 || !strings.HasPrefix(rest, "=") {
		return "", errCredentials
	}
	rest = trim(rest[1:])
	var value, raw string
	if strings.HasPrefix(rest, `"`) {
		before := rest
		if value, rest, err = parseQuoted(rest); err != nil {
			return "", errCredentials
		}
		raw = before[1 : len(before)-len(rest)-1]
	} else {
		end := strings.IndexAny(rest, ", \t\"")
		if end < 0 {
			end = len(rest)
		}
		value, rest = rest[:end], rest[end:]
		if raw = value; value == "" {
			return "", errCredentials
		}
	}
	if rest = trim(rest); rest != "" && rest[0] != ',' {
		return "", errCredentials
	}
	if !c.set(name, value, raw) {
		return "", errCredentials
	}
	return rest, nil
}

// set stores a parameter; false when it comes twice.
func (c *credentials) set(name, value, raw string) bool {
	once := func(has *bool, field *string) bool {
		if *has {
			return false
		}
		*has, *field = true, value
		return true
	}
	switch lower(name) {
	case "username":
		return once(&c.hasUsername, &c.username)
	case "nonce":
		return once(&c.hasNonce, &c.nonce)
	case "uri":
		c.rawURI = raw
		return once(&c.hasURI, &c.uri)
	case "response":
		return once(&c.hasResponse, &c.response)
	case "cnonce":
		c.rawCnonce = raw
		return once(&c.hasCnonce, &c.cnonce)
	case "nc":
		return once(&c.hasNC, &c.nc)
	case "qop":
		return once(&c.hasQOP, &c.qop)
	case "realm":
		twice := c.realm != ""
		c.realm = value
		return !twice
	case "algorithm":
		twice := c.algorithm != ""
		c.algorithm = value
		return !twice
	}
	return true // opaque and others need no check: the nonce carries its own proof
}

// complete: all that a digest needs is there (RFC 7616 §3.4.6: else 400).
func (c *credentials) complete() bool {
	if !c.hasUsername || !c.hasNonce || !c.hasURI || !c.hasResponse {
		return false
	}
	if !c.hasQOP {
		return true
	}
	_, ok := c.count()
	return ok && c.hasCnonce
}

// count is the nonce count: exactly eight hexadecimal digits.
func (c *credentials) count() (uint32, bool) {
	if len(c.nc) != 8 {
		return 0, false
	}
	n, err := strconv.ParseUint(c.nc, 16, 32)
	return uint32(n), err == nil && c.nc[0] != '+' && c.nc[0] != '-'
}

// proves compares the response with what the HA1 gives, in constant time.
func (c *credentials) proves(ha1, method string, body []byte) bool {
	if c.matches(ha1, method, c.uri, c.cnonce, body) {
		return true
	}
	if c.rawURI == c.uri && c.rawCnonce == c.cnonce {
		return false
	}
	return c.matches(ha1, method, c.rawURI, c.rawCnonce, body)
}

func (c *credentials) matches(ha1, method, uri, cnonce string, body []byte) bool {
	name, sess := baseAlgorithm(c.algorithm)
	var space [512]byte // spares an allocation for what is usual
	var hashes [3 * 64]byte
	buf := space[:0]

	h1 := append(hashes[0:0:64], lower(ha1)...)
	if sess {
		buf = appendParts(buf, string(h1), c.nonce, cnonce)
		h1 = hashHex(hashes[0:0:64], name, buf)
	}
	buf = appendParts(buf[:0], method, uri)
	if strings.EqualFold(c.qop, "auth-int") {
		buf = append(buf, ':')
		buf = hashHex(buf, name, body)
	}
	h2 := hashHex(hashes[64:64:128], name, buf)

	buf = append(append(buf[:0], h1...), ':')
	buf = append(append(buf, c.nonce...), ':')
	if c.hasQOP {
		buf = append(appendParts(buf, c.nc, cnonce, c.qop), ':')
	}
	buf = append(buf, h2...)
	want := hashHex(hashes[128:128:192], name, buf)
	return subtle.ConstantTimeCompare(want, []byte(lower(c.response))) == 1
}

func appendParts(dst []byte, parts ...string) []byte {
	for i, p := range parts {
		if i > 0 {
			dst = append(dst, ':')
		}
		dst = append(dst, p...)
	}
	return dst
}
