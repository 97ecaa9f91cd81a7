package registrar

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reginfo is the document of RFC 3680 §5.
type reginfo struct {
	XMLName      xml.Name        `xml:"urn:ietf:params:xml:ns:reginfo reginfo"`
	Version      uint32          `xml:"version,attr"`
	State        string          `xml:"state,attr"` // full, partial
	Registration regRegistration `xml:"registration"`
}

type regRegistration struct {
	AOR      string       `xml:"aor,attr"`
	ID       string       `xml:"id,attr"`
	State    string       `xml:"state,attr"` // init, active, terminated
	Contacts []regContact `xml:"contact"`
}

type regContact struct {
	ID         string     `xml:"id,attr"`
	State      string     `xml:"state,attr"` // active, terminated
	Event      string     `xml:"event,attr"`
	Registered int64      `xml:"duration-registered,attr"` // s
	Expires    *int64     `xml:"expires,attr"`             // s; of an active contact
	RetryAfter *int64     `xml:"retry-after,attr"`         // s; of one on probation
	Q          string     `xml:"q,attr,omitempty"`
	CallID     string     `xml:"callid,attr"`
	CSeq       uint32     `xml:"cseq,attr"`
	URI        string     `xml:"uri"`
	Display    string     `xml:"display-name,omitempty"`
	Unknown    []regParam `xml:"unknown-param"`
}

type regParam struct {
	Name  string `xml:"name,attr"`
	Value string `xml:",chardata"`
}

// The only registration of a document has this id: contacts have others.
const registrationID = "r"

// Probation tells how long a contact shall stay away.
const probationRetry = 60

// Document is the body of the NOTIFY about the user's registrations as they were stored.
func (n Notice) Document(user AOR, now time.Time) ([]byte, error) {
	doc := reginfo{
		Version: n.Subscription.Notified - 1, State: "partial",
		Registration: regRegistration{AOR: string(user), ID: registrationID, State: "active"},
	}
	r := &doc.Registration
	if n.Full {
		doc.State = "full"
		if len(n.Bindings) == 0 {
			r.State = "init"
		}
		for i := range n.Bindings {
			b := &n.Bindings[i]
			kind := Refreshed
			if !b.Refreshed.After(b.Created) {
				kind = Created
			}
			r.Contacts = append(r.Contacts, contactElement(b, kind, now))
		}
	} else {
		if len(n.Bindings) == 0 {
			r.State = "terminated"
		}
		for i := range n.Changes {
			r.Contacts = append(r.Contacts, contactElement(&n.Changes[i].Binding, n.Changes[i].Kind, now))
		}
	}
	body, err := xml.MarshalIndent(doc, "", " ")
	if err != nil {
		return nil, fmt.Errorf("write the registrations of %s: %w", user, err)
	}
	return slices.Concat([]byte(xml.Header), body, []byte("\n")), nil
}

// contactID is a contact's name in all documents. No two bindings of a user were created
// in the same millisecond, and a refresh keeps that time.
func contactID(b *Binding) string { return "c" + strconv.FormatInt(b.Created.UnixMilli(), 36) }

func contactElement(b *Binding, kind ChangeKind, now time.Time) regContact {
	c := regContact{
		ID: contactID(b), State: "terminated", Event: string(kind), Registered: max(0, int64(now.Sub(b.Created)/time.Second)),
		CallID: b.CallID, CSeq: b.CSeq, URI: b.URI, Display: b.Display, Unknown: unknownParams(b),
	}
	if b.Q >= 0 {
		c.Q = string(appendQ(nil, b.Q))
	}
	switch kind {
	case Created:
		c.Event = "registered" // by a REGISTER; "created" is for what an operator makes (§4.7.2)
		fallthrough
	case Refreshed, Shortened:
		c.State = "active"
		left := max(0, seconds(b.Expires.Sub(now)))
		c.Expires = &left
	case Probation:
		retry := int64(probationRetry)
		c.RetryAfter = &retry
	}
	return c
}

// unknownParams are the parameters of the Contact that RFC 3261 does not define.
func unknownParams(b *Binding) []regParam {
	var list []regParam
	if b.Instance != "" {
		list = append(list, regParam{"+sip.instance", `"<` + quotedText(b.Instance) + `>"`})
	}
	if b.RegID != 0 {
		list = append(list, regParam{"reg-id", strconv.FormatUint(uint64(b.RegID), 10)})
	}
	params, err := parseHeaderParams(b.Params)
	if err != nil {
		return list // it was stored by a program that took more
	}
	for _, p := range params {
		v := p.Value
		if p.Quoted {
			v = quoted(v)
		}
		list = append(list, regParam{p.Name, v})
	}
	return list
}

// Request is the NOTIFY but for what the transport adds: its Request-URI, header fields
// and body (RFC 3261 §12.2.1.1, RFC 6665 §4.2.2).
func (n Notice) Request(user AOR, now time.Time) (uri string, headers []Header, body []byte, err error) {
	if body, err = n.Document(user, now); err != nil {
		return "", nil, nil, err
	}
	s := &n.Subscription
	uri, routes := s.Target, s.Routes
	if len(routes) > 0 && !loose(routes[0]) { // a proxy of before RFC 3261
		if a, err := ParseAddress(routes[0]); err == nil {
			uri, routes = a.URI, append(slices.Clone(routes[1:]), "<"+s.Target+">")
		}
	}
	for _, r := range routes {
		headers = append(headers, Header{"Route", r})
	}
	event := EventReg
	if s.EventID != "" {
		event += ";id=" + s.EventID
	}
	state := "active;expires=" + itoa(max(0, seconds(s.Expires.Sub(now))))
	if n.Ended != "" {
		state = "terminated;reason=" + n.Ended
	}
	return uri, append(headers,
		Header{"From", s.Local},
		Header{"To", s.Remote},
		Header{"Call-ID", s.CallID},
		Header{"CSeq", itoa(int64(s.Notified)) + " NOTIFY"},
		Header{"Contact", s.contact()},
		Header{"Event", event},
		Header{"Subscription-State", state},
		Header{"Content-Type", ReginfoType},
	), body, nil
}

// loose: the route's URI has lr (RFC 3261 §19.1.1).
func loose(route string) bool {
	a, err := ParseAddress(route)
	if err != nil {
		return true
	}
	u, err := ParseURI(a.URI)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(u.Params, func(p Param) bool { return strings.EqualFold(p.Name, "lr") })
}
