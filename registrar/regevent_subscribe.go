package registrar

import (
	"slices"
	"time"
)

// Subscribe is what a SUBSCRIBE says beyond a Request.
type Subscribe struct {
	Event        string // package; "" when there is no Event header field
	EventID      string
	Accept       []string // media types without parameters, lower case; nil: no Accept
	From, To     string   // as received
	FromTag      string
	ToTag        string   // "" outside a dialog
	Tag          string   // the To-tag of our answer
	RecordRoutes []string // in order
}

// SubscribePolicy is what the operator decides about subscriptions.
type SubscribePolicy struct {
	MinExpires, MaxExpires, DefaultExpires time.Duration
	Grace                                  time.Duration // as Policy's
	PerUser                                int           // subscriptions to one user
}

// DefaultSubscribePolicy grants by default what RFC 3680 §4.4 says.
func DefaultSubscribePolicy() SubscribePolicy {
	return SubscribePolicy{
		MinExpires: time.Minute, MaxExpires: 2 * time.Hour, DefaultExpires: 3761 * time.Second,
		Grace: 10 * time.Second, PerUser: 8,
	}
}

// The package and the only type of its documents.
const (
	EventReg    = "reg"
	ReginfoType = "application/reginfo+xml"
)

// maxSubscription bounds what is stored for one subscription, in bytes.
const maxSubscription = 2 << 10

// CheckSubscribe judges a SUBSCRIBE by itself: nil, or the refusal it deserves.
func CheckSubscribe(req *Request, sub *Subscribe) *Reply {
	switch {
	case sub.Event != EventReg:
		return &Reply{Status: 489, Reason: "Bad Event", Headers: []Header{{"Allow-Events", EventReg}}}
	case len(req.Require) > 0:
		return refuse(420, Header{"Unsupported", join(req.Require)})
	case req.Star || len(req.Contacts) != 1:
		return &Reply{Status: 400, Reason: "SUBSCRIBE needs one Contact"}
	case sub.FromTag == "":
		return &Reply{Status: 400, Reason: "Missing From tag"}
	case sub.Accept != nil && !slices.ContainsFunc(sub.Accept, acceptsReginfo):
		return &Reply{Status: 406, Reason: "Not Acceptable", Headers: []Header{{"Accept", ReginfoType}}}
	}
	return nil
}

func acceptsReginfo(t string) bool {
	return t == ReginfoType || t == "application/*" || t == "*/*"
}

// DecideSubscribe is RFC 6665 §4.2.1 for the package of RFC 3680; CheckSubscribe and the
// Authenticator come before it. s is the subscription as it stands afterwards: what is stored, or of a
// fetch (Expires: 0 outside a dialog) the one that ends with its only NOTIFY. Refused, it has no Tag.
func DecideSubscribe(cur Set, req *Request, sub *Subscribe, now time.Time, p SubscribePolicy) (d Decision, s Subscription) {
	now = now.UTC().Truncate(time.Millisecond)
	granted, refusal := p.grant(req.Expires)
	if refusal != nil {
		return Decision{Next: cur, Reply: *refusal}, s
	}
	i := slices.IndexFunc(cur.Subscriptions, func(s Subscription) bool { return sub.meant(&s, req) && s.live(now, p.Grace) })
	switch {
	case i >= 0 && cur.Subscriptions[i].repeated(req):
		s = cur.Subscriptions[i]
		return Decision{Next: cur, Reply: acceptSubscribe(&s, sub, seconds(s.Expires.Sub(now)))}, s
	case i < 0 && sub.ToTag != "":
		return Decision{Next: cur, Reply: Reply{Status: 481, Reason: "Subscription Does Not Exist"}}, s
	case i >= 0 && req.CSeq <= cur.Subscriptions[i].CSeq && sub.ToTag == "":
		// The same request by another way (RFC 3261 §8.2.2.2).
		return Decision{Next: cur, Reply: Reply{Status: 482, Reason: "Loop Detected"}}, s
	case i >= 0 && req.CSeq <= cur.Subscriptions[i].CSeq: // RFC 3261 §12.2.2
		return Decision{Next: cur, Reply: *refuse(500)}, s
	case i >= 0 && sub.ToTag != "":
		s = cur.Subscriptions[i]
	default: // with i >= 0 a watcher that never had our answer begins again
		s = Subscription{
			Tag: sub.Tag, CallID: req.CallID, Local: sub.To + ";tag=" + sub.Tag, Remote: sub.From, RemoteTag: sub.FromTag,
			EventID: sub.EventID, Routes: sub.RecordRoutes,
		}
	}
	s.Target, s.Flow, s.CSeq, s.Branch = req.Contacts[0].URI, req.Flow, req.CSeq, req.Branch
	s.Expires = now.Add(time.Duration(granted) * time.Second)
	d = Decision{Next: cur.dropExpired(now, p.Grace), Write: true, Reply: acceptSubscribe(&s, sub, granted)}
	d.Next.Nonces = useNonce(cur.Nonces, req.Nonce, now)
	if i >= 0 && sub.ToTag == "" {
		old := cur.Subscriptions[i].Tag
		d.Next, d.End = d.Next.DropSubscriptions(func(o Subscription) bool { return o.Tag == old }), NoNotice
	}
	if granted == 0 {
		d.Next = d.Next.DropSubscriptions(func(o Subscription) bool { return o.Tag == s.Tag })
		d.Write = i >= 0
		s.Notified++ // of a fetch; what was subscribed is numbered as Owed does
		return d, s
	}
	if refusal := p.put(&d.Next, &s); refusal != nil {
		return Decision{Next: cur, Reply: *refusal}, Subscription{}
	}
	d.Full = []string{s.Tag}
	return d, s
}

// meant: the request is of this subscription's dialog, or is the one that began it.
func (sub *Subscribe) meant(s *Subscription, req *Request) bool {
	return s.CallID == req.CallID && s.RemoteTag == sub.FromTag && s.EventID == sub.EventID &&
		(sub.ToTag == s.Tag || sub.ToTag == "")
}

// repeated: a retransmission, which must have the same answer.
func (s *Subscription) repeated(req *Request) bool {
	return s.CSeq == req.CSeq && s.Branch == req.Branch && s.CallID == req.CallID && req.Branch != ""
}

func (s Set) repeatsSubscribe(req *Request) bool {
	return slices.ContainsFunc(s.Subscriptions, func(sub Subscription) bool { return sub.repeated(req) })
}

// grant: RFC 6665 §4.2.1.1. Too brief is refused below an hour only.
func (p SubscribePolicy) grant(e ExpiresIn) (int64, *Reply) {
	asked := seconds(p.DefaultExpires)
	if e.Given && e.Valid {
		asked = int64(e.Seconds)
	}
	if least := seconds(p.MinExpires); asked > 0 && asked < least && asked < 3600 {
		return 0, refuse(423, Header{"Min-Expires", itoa(least)})
	}
	return min(asked, max(1, seconds(p.MaxExpires))), nil
}

// put stores s in its place, or as the newest. One that its own client has left behind gives way.
func (p SubscribePolicy) put(set *Set, s *Subscription) *Reply {
	if s.size() > maxSubscription {
		return refuse(403)
	}
	list := slices.Clone(set.Subscriptions)
	if i := slices.IndexFunc(list, func(o Subscription) bool { return o.Tag == s.Tag }); i >= 0 {
		list[i] = *s
		set.Subscriptions = list
		return nil
	}
	if p.PerUser > 0 && len(list) >= p.PerUser {
		old := slices.IndexFunc(list, func(o Subscription) bool { return o.Target == s.Target })
		if old < 0 {
			return &Reply{Status: 403, Reason: "Too Many Subscriptions"}
		}
		list = slices.Delete(list, old, old+1)
	}
	set.Subscriptions = append(list, *s)
	return nil
}

func (s *Subscription) size() int {
	n := 64 + len(s.Tag) + len(s.CallID) + len(s.Local) + len(s.Remote) + len(s.RemoteTag) + len(s.EventID) + len(s.Target) +
		len(s.Branch) + len(s.Flow.FrontEnd) + len(s.Flow.Boot) + len(s.Flow.Transport) + len(s.Flow.Local) + len(s.Flow.Remote)
	for _, r := range s.Routes {
		n += 4 + len(r)
	}
	return n
}

// acceptSubscribe is the 200: Expires must, and Contact and Record-Route make the dialog.
func acceptSubscribe(s *Subscription, sub *Subscribe, granted int64) Reply {
	headers := make([]Header, 0, len(sub.RecordRoutes)+3)
	for _, r := range sub.RecordRoutes {
		headers = append(headers, Header{"Record-Route", r})
	}
	return Reply{Status: 200, Reason: reason(200), Headers: append(headers,
		Header{"Contact", s.contact()},
		Header{"Expires", itoa(max(0, granted))},
		Header{"Allow-Events", EventReg},
	)}
}

// contact is our side of the dialog: where the watcher has sent to, since that reached us.
func (s *Subscription) contact() string {
	c := "<sip:" + s.Flow.Local
	switch s.Flow.Transport {
	case "":
	case "wss":
		c += ";transport=ws" // RFC 7118 §5.2 knows no other
	default:
		c += ";transport=" + s.Flow.Transport
	}
	return c + ">"
}
