package registrar

import (
	"io"
	"slices"
	"strings"
	"time"
)

// Authenticator checks digests (RFC 3261 §22, RFC 7616, RFC 8760). It keeps nothing
// of its challenges: every Front End with the same Key accepts what another one asked for.
type Authenticator struct {
	Realm      string   // "" means the domain of the AOR
	Key        []byte   // the pool's secret; at least 16 bytes
	Algorithms []string // to challenge with, in this order; empty means MD5 alone
	QOP        []string // auth, auth-int; empty means auth
	// NonceLife is how long a nonce counts after it was issued; 0 means DefaultNonceLife.
	NonceLife time.Duration
	NC        NCPolicy
	// AllowNoQOP accepts a digest without qop, from clients of before RFC 2617 (§3.2.2.1 there).
	AllowNoQOP bool
	Opaque     string // sent when not empty; what comes back is not looked at
	Domain     string // sent when not empty
	// MayRegister says who may register for whom; nil: everyone for himself.
	MayRegister func(user, aor AOR) bool
	Rand        io.Reader // nil means crypto/rand
}

// NCPolicy says what happens to a nonce count that is not higher than one seen
// before (a retransmission apart, which is always answered again).
type NCPolicy string

// The policies. SIP.js sends nc=00000001 for ever: "stale" gives it a fresh nonce each
// time, which costs a round trip and stops replays; "strict" takes it for a failure,
// which such clients report as a wrong password; "off" does not look at it.
const (
	NCStale  NCPolicy = "stale" // also ""
	NCStrict NCPolicy = "strict"
	NCOff    NCPolicy = "off"
)

// DefaultNonceLife lets a client that refreshes at 90 % of the longest expiry by
// default keep its nonce for one more round.
const DefaultNonceLife = 2 * time.Hour

// maxCredentials bounds how many digests one request can make us compute.
const maxCredentials = 4

// Authenticate is AuthenticateWith without memory of nonce counts.
func (a *Authenticator) Authenticate(req *Request, find func(AOR) (ha1 map[string]string, ok bool), now time.Time) (user AOR, reply Reply, ok bool) {
	user, _, reply, ok = a.AuthenticateWith(Set{}, req, find, now)
	return user, reply, ok
}

// AuthenticateWith checks the request's credentials against the HA1s of the user
// that they name (see HA1Key). ok: go on, with use as req.Nonce so that Decide
// remembers it; otherwise reply is the complete 401, 403 or 400. An unknown user
// gets what a wrong password gets. cur is the set that Decide will be given: after a conflict, do both again.
func (a *Authenticator) AuthenticateWith(cur Set, req *Request, find func(AOR) (ha1 map[string]string, ok bool), now time.Time) (user AOR, use NonceUse, reply Reply, ok bool) {
	realm := a.realm(req)
	stale, tried := false, 0
	for _, value := range req.Authorization {
		c, other, err := parseCredentials(value)
		if err != nil {
			return "", use, *refuse(400), false
		}
		if other || c.realm != realm {
			continue // meant for somebody else
		}
		if !c.complete() {
			return "", use, *refuse(400), false
		}
		if tried++; tried > maxCredentials {
			break
		}
		n, user, proven := a.prove(&c, req, realm, find)
		if !proven {
			continue
		}
		if !now.Before(n.issued.Add(a.nonceLife())) {
			stale = true
			continue
		}
		use, fresh := a.count(&c, n, cur, req, now)
		if !fresh {
			stale = a.NC != NCStrict
			continue
		}
		if !a.mayRegister(user, req.AOR) {
			return user, NonceUse{}, *refuse(403), false
		}
		return user, use, Reply{}, true
	}
	return "", NonceUse{}, a.challenge(realm, stale, now), false
}

// prove: the nonce is ours and the response shows that the client knows the password.
func (a *Authenticator) prove(c *credentials, req *Request, realm string, find func(AOR) (map[string]string, bool)) (nonce, AOR, bool) {
	name, ok := a.accepts(c)
	if !ok {
		return nonce{}, "", false
	}
	n, ours := a.readNonce(c.nonce, realm)
	if !ours {
		return nonce{}, "", false
	}
	user, withDomain := userOf(c.username, req.AOR)
	ha1s, known := find(user)
	ha1 := ha1s[HA1Key(name, withDomain)]
	known = known && len(ha1) == hexSize(name)
	if !known { // do the same work, so that time does not tell who exists
		ha1 = strings.Repeat("0", hexSize(name))
	}
	method := req.Method
	if method == "" {
		method = "REGISTER"
	}
	// The digest's uri may differ from the Request-URI: proxies rewrite that one (RFC 3261 §22.4).
	return n, user, c.proves(ha1, method, req.Body) && known
}

// accepts: algorithm and qop are among those that we ask for.
func (a *Authenticator) accepts(c *credentials) (name string, ok bool) {
	name, sess := baseAlgorithm(c.algorithm)
	ok = slices.ContainsFunc(a.algorithms(), func(s string) bool {
		n, s2 := baseAlgorithm(s)
		return n == name && s2 == sess
	})
	if !ok || name == "" || len(c.response) != hexSize(name) {
		return "", false
	}
	if !c.hasQOP {
		return name, a.AllowNoQOP
	}
	return name, slices.ContainsFunc(a.qop(), func(q string) bool { return strings.EqualFold(q, c.qop) })
}

// userOf is the user that a username names: with his domain, or in the domain of the AOR.
func userOf(username string, aor AOR) (user AOR, withDomain bool) {
	at := strings.LastIndexByte(username, '@')
	if at < 0 {
		return aorOf(username, aor.Domain()), false
	}
	return aorOf(username[:at], username[at+1:]), true
}

// count compares the nonce count with what the user's set remembers. Without qop there is none, and a nonce is good for one request.
func (a *Authenticator) count(c *credentials, n nonce, cur Set, req *Request, now time.Time) (use NonceUse, fresh bool) {
	if a.NC == NCOff {
		return NonceUse{}, true
	}
	nc := uint32(1)
	if c.hasQOP {
		nc, _ = c.count()
	}
	use = NonceUse{ID: n.id, NC: nc, Until: n.issued.Add(a.nonceLife())}
	if !usedUp(cur.Nonces, use) {
		return use, true
	}
	w := work{cur: cur, req: req, now: now, live: cur.Bindings}
	return use, w.isRetransmission()
}

// challenge is the complete 401, with one WWW-Authenticate for each algorithm.
func (a *Authenticator) challenge(realm string, stale bool, now time.Time) Reply {
	n, err := a.newNonce(realm, now)
	if err != nil {
		return *refuse(500)
	}
	var headers []Header
	for _, algorithm := range a.algorithms() {
		v := "Digest realm=" + quoted(realm) + `, nonce="` + n + `"`
		if a.Domain != "" {
			v += ", domain=" + quoted(a.Domain)
		}
		if a.Opaque != "" {
			v += ", opaque=" + quoted(a.Opaque)
		}
		v += ", algorithm=" + algorithm + ", qop=" + quoted(strings.Join(a.qop(), ","))
		if stale {
			v += ", stale=true"
		}
		headers = append(headers, Header{"WWW-Authenticate", v})
	}
	return *refuse(401, headers...)
}

func (a *Authenticator) realm(req *Request) string {
	if a.Realm != "" {
		return a.Realm
	}
	return req.AOR.Domain()
}

func (a *Authenticator) nonceLife() time.Duration {
	if a.NonceLife > 0 {
		return a.NonceLife
	}
	return DefaultNonceLife
}

func (a *Authenticator) algorithms() []string {
	if len(a.Algorithms) == 0 {
		return defaultAlgorithms[:]
	}
	return a.Algorithms
}

func (a *Authenticator) qop() []string {
	if len(a.QOP) == 0 {
		return defaultQOP[:]
	}
	return a.QOP
}

func (a *Authenticator) mayRegister(user, aor AOR) bool {
	if user == aor {
		return true
	}
	return a.MayRegister != nil && a.MayRegister(user, aor)
}

// Never written to.
var (
	defaultAlgorithms = [1]string{MD5}
	defaultQOP        = [1]string{"auth"}
)
