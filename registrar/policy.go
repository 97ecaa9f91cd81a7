package registrar

import (
	"regexp"
	"time"
)

// Policy is what the operator decides about registrations. The zero value of
// every field but the first five is the default.
type Policy struct {
	MinExpires     time.Duration
	MaxExpires     time.Duration
	DefaultExpires time.Duration
	Grace          time.Duration // a binding is kept this long past its expiry
	MaxContacts    int           // per AOR; 0 = no limit

	// Domains that the pool serves, lower case; Aliases are further hosts by which a
	// Request-URI may name it. Empty: the caller has checked the domain.
	Domains, Aliases []string

	// Grants lowers what is granted to some clients; the first rule that fits counts.
	Grants []Grant
	// WhenFull says what happens to a contact beyond MaxContacts. A refresh is never refused.
	WhenFull WhenFull
	// MaxRecord bounds what is stored for one user, in bytes; 0 means DefaultMaxRecord.
	MaxRecord int
	// OrderStatus answers a CSeq that is not higher (RFC 3261 §10.3 step 7); 0 means 500.
	OrderStatus int
	// AllowEqualCSeq lets the same Call-ID and CSeq with a new branch pass as a refresh:
	// some phones never count.
	AllowEqualCSeq bool
	// RefuseThirdParty refuses a From that is not the To.
	RefuseThirdParty bool
	// RequirePathSupport refuses a Path that the client has not said to understand (421);
	// otherwise it is accepted (RFC 3327 §5.3 leaves the choice).
	RequirePathSupport bool
	// ShowReceived tells in the 200 where a contact that names another address really is.
	ShowReceived bool
	// GRUU makes GRUUs for clients that ask for them (RFC 5627); nil: it is not supported.
	GRUU *GRUU
	// FlowTimer is told to RFC 5626 clients: how often they must show that they live. 0: not told.
	FlowTimer time.Duration
}

// WhenFull is a policy for a contact beyond the limit.
type WhenFull string

// The policies: refuse with 403, refuse with 503, or give up the contacts not refreshed for longest.
const (
	RefuseForbidden   WhenFull = ""
	RefuseUnavailable WhenFull = "503"
	ReplaceOldest     WhenFull = "replace"
)

// Grant lowers the expiry granted over some transport to some clients.
type Grant struct {
	Transport string         // udp, tcp, ...; "" is any
	UserAgent *regexp.Regexp // nil is any
	Max       time.Duration
}

func (g Grant) fits(req *Request) bool {
	return (g.Transport == "" || g.Transport == req.Flow.Transport) &&
		(g.UserAgent == nil || g.UserAgent.MatchString(req.UserAgent))
}

// DefaultMaxRecord is far above what ten contacts need and far below what a bus takes.
const DefaultMaxRecord = 16 << 10

// RemovalMemory is how long a removal is remembered: as long as a retransmission
// may still arrive (RFC 3261 §17.1.2.2, timer F).
const RemovalMemory = 32 * time.Second

// Bounds on what is remembered per user beside the bindings; the oldest goes first.
const (
	maxRemoved = 8
	maxNonces  = 10 // as many as contacts by default: devices that come back together keep their nonces
)

// DefaultPolicy is what a pool uses that was told nothing.
func DefaultPolicy() Policy {
	return Policy{
		MinExpires:     time.Minute,
		MaxExpires:     2 * time.Hour,
		DefaultExpires: time.Hour,
		Grace:          10 * time.Second,
		MaxContacts:    10,
	}
}
