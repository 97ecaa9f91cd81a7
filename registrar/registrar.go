// Package registrar decides what a REGISTER does (RFC 3261 §10.3): the canonical
// form of an AOR, the bindings of a user, their order, limits and expiry, digest
// authentication and nonces. It is pure: no I/O, no clock (now is an argument),
// no SIP stack. The adapter that speaks SIP is registrar/sipfront.
package registrar

import "time"

// Request is a REGISTER as the decision needs it: already valid SIP.
type Request struct {
	RequestURI    string // as received; the digest covers it
	Domain        string // host of the Request-URI, lower case
	AOR           AOR    // of To
	From          AOR    // of From: differs from AOR in a third-party registration
	CallID        string
	CSeq          uint32
	Branch        string // of the top Via: equal in a retransmission (RFC 3261 §17.2.3)
	Contacts      []Contact
	Star          bool      // Contact: *
	Expires       ExpiresIn // header field
	Vias          int       // number of Via values; more than one: a proxy stands between
	Path          []string  // in order, as received
	Supported     []string  // option tags, lower case
	Require       []string  // option tags, lower case
	Authorization []string  // values of the header fields
	UserAgent     string
	Body          []byte
	Flow          Flow
	Method        string   // what the digest covers; "" is REGISTER
	Nonce         NonceUse // from AuthenticateWith: Decide remembers it
}

// ExpiresIn is an expiry asked for, as a header field or as a Contact parameter.
type ExpiresIn struct {
	Given   bool
	Valid   bool   // a malformed value counts as the default (RFC 3261 §20.10, §10.2.1.1)
	Seconds uint32 // when Valid
}

// Contact is one address in a REGISTER.
type Contact struct {
	URI      string // as received, without angle brackets
	Expires  ExpiresIn
	Q        int    // thousandths, 0 to 1000; -1 when absent
	Instance string // +sip.instance without quotes and angle brackets; "" when absent
	RegID    uint32 // reg-id; 0 when absent
	Params   string // all other parameters as received: ";a=b;c"
	Display  string // display name, unquoted; "" when absent
}

// Binding is one registered address of a user.
type Binding struct {
	Contact
	CallID    string
	CSeq      uint32
	Branch    string
	Path      []string
	UserAgent string
	Flow      Flow
	Created   time.Time // first registered; kept over refreshes; no two of a set are the same
	Refreshed time.Time // newest REGISTER that the store acknowledged
	Expires   time.Time
	// Generation of the temporary GRUUs of this instance; 0: it has none. See GRUU.
	Generation uint64
}

// Set is all that is stored for one user.
type Set struct {
	Bindings []Binding // in the order they were created
	// Removed remembers de-registrations for as long as a late or repeated REGISTER may still arrive.
	Removed []Removal
	// Nonces remembers how far the user's nonces are used up (see Authenticator.NC).
	Nonces []NonceUse
	// Subscriptions are those of the user's watchers.
	Subscriptions []Subscription
}

// Removal is a binding that was removed on request, or that lost its Call-ID to a newer one.
type Removal struct {
	URI    string
	CallID string
	CSeq   uint32
	Branch string
	Until  time.Time
}

// Reply is the answer to a request, still without what the transport adds.
type Reply struct {
	Status  int
	Reason  string
	Headers []Header // in order
}

// Header is one header field of a Reply.
type Header struct{ Name, Value string }

// ChangeKind says what happened to a binding (RFC 3680 §5.1 names them so).
type ChangeKind string

// The kinds of changes.
const (
	Created      ChangeKind = "created"
	Refreshed    ChangeKind = "refreshed"
	Shortened    ChangeKind = "shortened"
	Expired      ChangeKind = "expired"
	Unregistered ChangeKind = "unregistered"
	Deactivated  ChangeKind = "deactivated"
	Probation    ChangeKind = "probation"
	Rejected     ChangeKind = "rejected"
)

// Change is what a decision does to one binding; events and reg-event are made of it.
type Change struct {
	Kind    ChangeKind
	Binding Binding // after the change; for a removal, as it was
}

// Decision is the outcome of Decide: store Next if Write, then give Reply.
// Reply must not be given before Next is stored.
type Decision struct {
	Next    Set
	Write   bool
	Changes []Change
	Reply   Reply
	Full    []string // tags of the subscriptions that are owed the whole state
	End     string   // why those end that Next leaves out: see Notice.Ended; "" is EndTimeout
}
