package registrar

import (
	"errors"
	"strings"
	"time"
)

// The schemes by which an Authenticator can ask who somebody is.
const (
	SchemeDigest = "Digest"
	SchemeBearer = "Bearer"
)

// Bearer checks access tokens in place of passwords (RFC 8898).
type Bearer struct {
	// Check returns the user that a token speaks for. It may be called from any
	// goroutine. An error is for the log only: the client hears invalid_token, or
	// insufficient_scope if it is ErrScope.
	Check  func(token string, now time.Time) (AOR, error)
	Server string // https URI of the authorization server, told in challenges
	Scope  string // told in challenges when not empty
}

// ErrScope: the token is good, but not for registering.
var ErrScope = errors.New("the token's scope does not include registering")

// NewAOR makes the AOR of a user, not escaped, and a domain.
func NewAOR(user, domain string) (AOR, error) {
	if user == "" {
		return "", errors.New("address-of-record without a user")
	}
	if strings.ContainsAny(domain, ";?@") {
		return "", errors.New("malformed domain of an address-of-record")
	}
	return ParseAOR(string(aorOf(user, domain)))
}

// maxToken is more than any token that fits a SIP message.
const maxToken = 8 << 10

// parseBearer reads the value of an Authorization header field of the Bearer scheme: one b64token.
func parseBearer(s string) (token string, is bool, err error) {
	s, ok := unfold(s)
	s = trim(s)
	n := span(s, classToken)
	if !ok || !strings.EqualFold(s[:n], SchemeBearer) {
		return "", false, nil
	}
	token = trim(s[n:])
	if token == "" || len(token) > maxToken || len(s) == n || !isSpace(s[n]) {
		return "", true, errCredentials
	}
	body := strings.TrimRight(token, "=")
	for i := 0; i < len(body); i++ {
		if c := body[i]; !isAlnum(c) && strings.IndexByte("-._~+/", c) < 0 {
			return "", true, errCredentials
		}
	}
	return token, true, nil
}

// challenge is the value of WWW-Authenticate (RFC 8898 §4). fault is the error parameter, "" for none.
func (b *Bearer) challenge(realm, fault string) string {
	v := SchemeBearer + " realm=" + quoted(realm)
	if b.Scope != "" {
		v += ", scope=" + quoted(b.Scope)
	}
	if b.Server != "" {
		v += ", authz_server=" + quoted(b.Server)
	}
	if fault != "" {
		v += ", error=" + quoted(fault)
	}
	return v
}

// fault names an error of Check in a challenge (RFC 6750 §3.1).
func bearerFault(err error) string {
	if errors.Is(err, ErrScope) {
		return "insufficient_scope"
	}
	return "invalid_token"
}
