// Package digest is the client's side of SIP digest authentication (RFC 7616,
// RFC 8760): it reads challenges, chooses one, and answers it, with its nonce
// kept and counted from request to request. It is pure.
package digest

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// Challenge of a registrar.
type Challenge struct {
	Realm, Nonce, Opaque string
	Algorithm            string // MD5, SHA-256, SHA-512-256; upper case
	QOP                  bool   // qop=auth is offered
	Stale                bool
}

// ErrNoChallenge: none of the challenges can be answered.
var ErrNoChallenge = errors.New("no challenge with a known algorithm (MD5, SHA-256, SHA-512-256)")

// Choose reads the challenges in their order, and takes the first one that can be
// answered (RFC 8760 §2.4). The strings of the Challenge are its own.
func Choose(values []string) (Challenge, error) {
	for _, v := range values {
		c, ok := parse(v)
		if ok && newHash(c.Algorithm) != nil {
			return c, nil
		}
	}
	return Challenge{}, ErrNoChallenge
}

func parse(v string) (Challenge, bool) {
	scheme, rest, ok := strings.Cut(strings.TrimSpace(v), " ")
	if !ok || !strings.EqualFold(scheme, "Digest") {
		return Challenge{}, false
	}
	c := Challenge{Algorithm: "MD5"}
	qop := ""
	for rest != "" {
		var key, value string
		key, value, rest = nextParam(rest)
		switch strings.ToLower(key) {
		case "realm":
			c.Realm = strings.Clone(value)
		case "nonce":
			c.Nonce = strings.Clone(value)
		case "opaque":
			c.Opaque = strings.Clone(value)
		case "algorithm":
			c.Algorithm = strings.ToUpper(value)
		case "stale":
			c.Stale = strings.EqualFold(value, "true")
		case "qop":
			qop = value
		}
	}
	for q := range strings.SplitSeq(qop, ",") {
		c.QOP = c.QOP || strings.EqualFold(strings.TrimSpace(q), "auth")
	}
	// qop=auth-int alone cannot be answered.
	return c, c.Nonce != "" && (qop == "" || c.QOP)
}

// nextParam reads key=value or key="value" off the head of a comma-separated list.
func nextParam(s string) (key, value, rest string) {
	s = strings.TrimLeft(s, " \t,")
	key, s, _ = strings.Cut(s, "=")
	key = strings.TrimSpace(key)
	s = strings.TrimLeft(s, " \t")
	if !strings.HasPrefix(s, `"`) {
		value, rest, _ = strings.Cut(s, ",")
		return key, strings.TrimSpace(value), rest
	}
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return key, unquote(s[1:i]), s[i+1:]
		}
	}
	return key, s[1:], ""
}

// unquote undoes the escapes of a quoted string.
func unquote(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func newHash(algorithm string) hash.Hash {
	switch algorithm {
	case "MD5":
		return md5.New()
	case "SHA-256":
		return sha256.New()
	case "SHA-512-256":
		return sha512.New512_256()
	}
	return nil
}

func sum(algorithm string, parts ...string) string {
	h := newHash(algorithm)
	for i, p := range parts {
		if i > 0 {
			_, _ = h.Write([]byte{':'})
		}
		_, _ = h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Request is what a response covers.
type Request struct {
	Username, Password string
	Method, URI        string
	NC                 uint32 // from 1 for a new nonce
	CNonce             string
}

// Response computes the digest of r under c (RFC 7616 §3.4.1).
func Response(c *Challenge, r *Request) string {
	ha1 := sum(c.Algorithm, r.Username, c.Realm, r.Password)
	ha2 := sum(c.Algorithm, r.Method, r.URI)
	if !c.QOP {
		return sum(c.Algorithm, ha1, c.Nonce, ha2)
	}
	return sum(c.Algorithm, ha1, c.Nonce, fmt.Sprintf("%08x", r.NC), r.CNonce, "auth", ha2)
}

// Authorization is the value of an Authorization header field that answers c.
func Authorization(c *Challenge, r *Request) string {
	var b strings.Builder
	b.Grow(320)
	fmt.Fprintf(&b, `Digest username="%s", realm="%s", nonce="%s", uri="%s", response="%s", algorithm=%s`,
		quote(r.Username), quote(c.Realm), quote(c.Nonce), r.URI, Response(c, r), c.Algorithm)
	if c.Opaque != "" {
		fmt.Fprintf(&b, `, opaque="%s"`, quote(c.Opaque))
	}
	if c.QOP {
		fmt.Fprintf(&b, `, cnonce="%s", qop=auth, nc=%08x`, r.CNonce, r.NC)
	}
	return b.String()
}

// quote escapes for the inside of a quoted string (RFC 3261 §25.1).
func quote(s string) string {
	if !strings.ContainsAny(s, "\\\"") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`)
}

// Params reads the parameters of a Digest header field value; names in lower case.
func Params(v string) map[string]string {
	_, rest, _ := strings.Cut(strings.TrimSpace(v), " ")
	out := map[string]string{}
	for rest != "" && len(out) < 32 {
		var key, value string
		key, value, rest = nextParam(rest)
		out[strings.ToLower(key)] = value
	}
	return out
}
