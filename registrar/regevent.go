package registrar

import (
	"slices"
	"time"
)

// Subscription is a watcher's subscription to the registrations of the user in whose set
// it stands (RFC 3680): the dialog as the notifier sees it (RFC 6665), and how far it has come.
type Subscription struct {
	Tag       string   // ours; it names the subscription within the set
	CallID    string   //
	Local     string   // From of a NOTIFY: To of the SUBSCRIBE, with Tag
	Remote    string   // To of a NOTIFY: From of the SUBSCRIBE
	RemoteTag string   //
	EventID   string   // id of the Event header field
	Target    string   // URI of the watcher's Contact
	Routes    []string // route set, in order
	Flow      Flow     // by which the newest SUBSCRIBE came
	CSeq      uint32   // of the newest SUBSCRIBE, and so is Branch
	Branch    string
	// Notified is how many NOTIFYs were made, the one to be sent next included: its CSeq.
	// The version of its document is one less (the first is 0).
	Notified uint32
	Expires  time.Time
}

func (s *Subscription) live(now time.Time, grace time.Duration) bool {
	return s.Expires.Add(grace).After(now)
}

// FindSubscription returns the subscription that one of our tags names.
func (s Set) FindSubscription(tag string) (Subscription, bool) {
	for _, sub := range s.Subscriptions {
		if sub.Tag == tag {
			return sub, true
		}
	}
	return Subscription{}, false
}

// DropSubscriptions leaves out those that match. s itself stays as it is.
func (s Set) DropSubscriptions(match func(Subscription) bool) Set {
	if slices.ContainsFunc(s.Subscriptions, match) {
		s.Subscriptions = slices.DeleteFunc(slices.Clone(s.Subscriptions), match)
	}
	return s
}

// dropExpired leaves out the subscriptions whose time is over.
func (s Set) dropExpired(now time.Time, grace time.Duration) Set {
	if len(s.Subscriptions) == 0 {
		return s
	}
	return s.DropSubscriptions(func(sub Subscription) bool { return !sub.live(now, grace) })
}

// Renotify owes the watcher with this tag the whole state, whatever he was told before.
func Renotify(cur Set, tag string) Decision {
	_, known := cur.FindSubscription(tag)
	return Decision{Next: cur, Write: known, Full: []string{tag}}
}

// NoNotice as a Decision's End: the watchers of what ends cannot be told.
const NoNotice = "-"

// Notice is one NOTIFY that is owed to a watcher.
type Notice struct {
	Subscription Subscription // its Notified is this NOTIFY's number
	Bindings     []Binding    // the user's, as stored
	Full         bool         // tells all of Bindings; otherwise Changes
	Changes      []Change     // in order; one for each contact
	Ended        string       // why the subscription ended (RFC 6665 §4.1.3); "" when it goes on
}

// maxNoticeChanges in one document; beyond it the whole state is shorter.
const maxNoticeChanges = 16

// Owed says which NOTIFYs a decision on cur owes, and gives each its number, which is
// stored with the set: each change of the bindings is worth one NOTIFY to each watcher.
// waiting tells that the newest one made for a subscription has not left yet: it will tell
// this change, too. To be called once, before d.Next is stored.
func (d *Decision) Owed(cur Set, waiting func(Subscription) bool) []Notice {
	if len(cur.Subscriptions) == 0 && len(d.Next.Subscriptions) == 0 {
		return nil
	}
	var owed []Notice
	for _, sub := range cur.Subscriptions {
		if _, goesOn := d.Next.FindSubscription(sub.Tag); !goesOn && d.End != NoNotice {
			n := d.notice(sub, waiting, len(d.Changes) == 0)
			if n.Ended = d.End; n.Ended == "" {
				n.Ended = EndTimeout
			}
			owed = append(owed, n)
		}
	}
	d.Next.Subscriptions = slices.Clone(d.Next.Subscriptions)
	for i := range d.Next.Subscriptions {
		sub := &d.Next.Subscriptions[i]
		full := slices.Contains(d.Full, sub.Tag)
		if !full && len(d.Changes) == 0 {
			continue
		}
		n := d.notice(*sub, waiting, full)
		sub.Notified = n.Subscription.Notified
		owed = append(owed, n)
	}
	return owed
}

// notice makes and numbers one NOTIFY.
func (d *Decision) notice(sub Subscription, waiting func(Subscription) bool, full bool) Notice {
	if sub.Notified == 0 || !waiting(sub) {
		sub.Notified++
	}
	n := Notice{Subscription: sub, Bindings: d.Next.Bindings, Full: full}
	if !full {
		n.Changes = mergeChanges(nil, d.Changes)
		n.Full = len(n.Changes) > maxNoticeChanges
	}
	return n
}

// The reasons for which a subscription ends here.
const (
	EndTimeout    = "timeout"    // its time is over, or it was given up by its watcher
	EndNoResource = "noresource" // there is no such user any more
)

// Merge makes one NOTIFY of two to the same watcher, of which the older one has not left.
func (n Notice) Merge(newer Notice) Notice {
	newer.Full = newer.Full || n.Full
	if newer.Full {
		newer.Changes = nil
		return newer
	}
	newer.Changes = mergeChanges(n.Changes, newer.Changes)
	newer.Full = len(newer.Changes) > maxNoticeChanges
	return newer
}

// mergeChanges keeps what happened last to each contact. Who has heard of none of it
// must still be told that a contact is new.
func mergeChanges(older, newer []Change) []Change {
	merged := slices.Clone(older)
	for _, c := range newer {
		i := slices.IndexFunc(merged, func(o Change) bool { return contactID(&o.Binding) == contactID(&c.Binding) })
		if i < 0 {
			merged = append(merged, c)
			continue
		}
		if merged[i].Kind == Created && (c.Kind == Refreshed || c.Kind == Shortened) {
			c.Kind = Created
		}
		merged[i] = c
	}
	return merged
}
