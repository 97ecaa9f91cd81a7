package registrar

import (
	"io"
	"slices"
	"strings"
	"time"
)

// Authenticator checks digests (RFC 3261 §22, RFC 7616, RFC 8760) and bearer tokens (RFC 8898).
// It keeps nothing of its challenges: every Front End with the same Key accepts what another one asked for.
type Authenticator struct {
	Schemes    []string // to challenge with, in this order; empty means SchemeDigest alone
	Realm      string   // "" means the domain of the AOR
	Key        []byte   // the pool's secret; at least 16 bytes
	Keys       *Keys    // takes the place of Key where that can change
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
	Bearer      *Bearer   // of SchemeBearer
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
// that they name (see HA1Key), or by their token. ok: go on, with use as req.Nonce so that Decide
// remembers it; otherwise reply is the complete 401, 403 or 400. An unknown user
// gets what a wrong password gets. cur is the set that Decide will be given: after a conflict, do both again.
func (a *Authenticator) AuthenticateWith(cur Set, req *Request, find func(AOR) (ha1 map[string]string, ok bool), now time.Time) (user AOR, use NonceUse, reply Reply, ok bool) {
	l := login{a: a, cur: cur, req: req, find: find, now: now, realm: a.realm(req)}
	for _, value := range req.Authorization {
		user, use, refusal, ok := l.try(value)
		switch {
		case refusal != nil:
			return "", NonceUse{}, *refusal, false
		case ok && !a.mayRegister(user, req.AOR):
			return user, NonceUse{}, *refuse(403), false
		case ok:
			return user, use, Reply{}, true
		}
	}
	return "", NonceUse{}, a.challenge(&l), false
}

// login is one request on its way through its credentials.
type login struct {
	a     *Authenticator
	cur   Set
	req   *Request
	find  func(AOR) (map[string]string, bool)
	now   time.Time
	realm string

	tried int    // credentials that were checked
	stale bool   // a digest would have been right with a fresh nonce
	fault string // of a token
}

// try checks one Authorization. Neither ok nor refused: the next one may do.
func (l *login) try(value string) (user AOR, use NonceUse, refusal *Reply, ok bool) {
	if l.a.offers(SchemeBearer) {
		token, is, err := parseBearer(value)
		if err != nil {
			return "", use, refuse(400), false
		}
		if is {
			user, ok = l.tryToken(token)
			return user, use, nil, ok
		}
	}
	if !l.a.offers(SchemeDigest) {
		return "", use, nil, false
	}
	c, other, err := parseCredentials(value)
	if err != nil {
		return "", use, refuse(400), false
	}
	if other || c.realm != l.realm {
		return "", use, nil, false // meant for somebody else
	}
	if !c.complete() {
		return "", use, refuse(400), false
	}
	user, use, ok = l.tryDigest(&c)
	return user, use, nil, ok
}

func (l *login) tryToken(token string) (AOR, bool) {
	if l.tried++; l.tried > maxCredentials {
		return "", false
	}
	user, err := l.a.Bearer.Check(token, l.now)
	if err != nil {
		l.fault = bearerFault(err)
		return "", false
	}
	return user, true
}

func (l *login) tryDigest(c *credentials) (AOR, NonceUse, bool) {
	if l.tried++; l.tried > maxCredentials {
		return "", NonceUse{}, false
	}
	n, user, proven := l.a.prove(c, l.req, l.realm, l.find)
	if !proven {
		return "", NonceUse{}, false
	}
	if !l.now.Before(n.issued.Add(l.a.nonceLife())) {
		l.stale = true
		return "", NonceUse{}, false
	}
	use, fresh := l.a.count(c, n, l.cur, l.req, l.now)
	if !fresh {
		l.stale = l.a.NC != NCStrict
		return "", NonceUse{}, false
	}
	return user, use, true
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
	return use, w.isRetransmission() || cur.repeatsSubscribe(req)
}

// challenge is the complete 401, with one WWW-Authenticate for each scheme and algorithm.
func (a *Authenticator) challenge(l *login) Reply {
	headers := make([]Header, 0, 2)
	for _, scheme := range a.schemes() {
		if scheme == SchemeBearer && a.Bearer != nil {
			headers = append(headers, Header{"WWW-Authenticate", a.Bearer.challenge(l.realm, l.fault)})
			continue
		}
		if scheme != SchemeDigest {
			continue
		}
		n, err := a.newNonce(l.realm, l.now)
		if err != nil {
			return *refuse(500)
		}
		for _, algorithm := range a.algorithms() {
			headers = append(headers, Header{"WWW-Authenticate", a.digestChallenge(n, algorithm, l)})
		}
	}
	return *refuse(401, headers...)
}

func (a *Authenticator) digestChallenge(nonce, algorithm string, l *login) string {
	v := SchemeDigest + " realm=" + quoted(l.realm) + `, nonce="` + nonce + `"`
	if a.Domain != "" {
		v += ", domain=" + quoted(a.Domain)
	}
	if a.Opaque != "" {
		v += ", opaque=" + quoted(a.Opaque)
	}
	v += ", algorithm=" + algorithm + ", qop=" + quoted(strings.Join(a.qop(), ","))
	if l.stale {
		v += ", stale=true"
	}
	return v
}

func (a *Authenticator) schemes() []string {
	if len(a.Schemes) == 0 {
		return defaultSchemes[:]
	}
	return a.Schemes
}

// offers: a scheme that is not asked for is not accepted either.
func (a *Authenticator) offers(scheme string) bool {
	if scheme == SchemeBearer && a.Bearer == nil {
		return false
	}
	return slices.Contains(a.schemes(), scheme)
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
	defaultSchemes    = [1]string{SchemeDigest}
)
