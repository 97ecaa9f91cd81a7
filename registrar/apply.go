package registrar

import "time"

// slot is what a request does to one binding.
type slot struct {
	state   slotState
	evicted bool // removed to make room
	contact int  // put: index of the contact
}

type slotState uint8

const (
	kept    slotState = iota // no part in this request
	put                      // added or refreshed by a contact
	removed                  // removed on request, or evicted
)

// allContacts in a Removal stands for every contact of the user.
const allContacts = "*"

// applyContacts: §10.3 steps 6 and 7. Each contact finds its binding, the order of
// the requests is checked against that binding, and the change is noted in slots.
func (w *work) applyContacts() *Reply {
	w.slots = make([]slot, len(w.live), len(w.live)+len(w.req.Contacts))
	if w.req.Star {
		return w.removeAll()
	}
	for i := range w.req.Contacts {
		var refusal *Reply
		if w.granted[i] == 0 {
			refusal = w.remove(i)
		} else {
			refusal = w.put(i)
		}
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

func (w *work) removeAll() *Reply {
	for i := range w.live {
		if !w.inOrder(&w.live[i]) {
			return w.outOfOrder()
		}
		w.slots[i].state = removed
		w.rememberOld(&w.live[i])
	}
	w.rememberRequest(allContacts)
	return nil
}

// put adds a binding for contact i, or refreshes the one it has.
func (w *work) put(i int) *Reply {
	c := &w.req.Contacts[i]
	if w.superseded(c.URI) {
		return w.outOfOrder()
	}
	n := w.find(c)
	if n < 0 {
		w.slots = append(w.slots, slot{state: put, contact: i})
		return nil
	}
	if n < len(w.live) {
		if !w.inOrder(&w.live[n]) {
			return w.outOfOrder()
		}
		if w.slots[n].state != put {
			w.rememberOld(&w.live[n])
		}
	}
	w.slots[n] = slot{state: put, contact: i}
	return nil
}

// remove removes every binding that contact i names. A binding to which another
// contact of this request has just moved stays: one device replacing its contact
// names the old one with expires=0 beside the new one.
func (w *work) remove(i int) *Reply {
	c := &w.req.Contacts[i]
	for n := range w.slots {
		if !w.occupies(n, c) {
			continue
		}
		if n < len(w.live) && !w.inOrder(&w.live[n]) {
			return w.outOfOrder()
		}
		s := &w.slots[n]
		if s.state == put && !equalURI(w.req.Contacts[s.contact].URI, c.URI) {
			continue
		}
		if s.state == kept {
			w.rememberOld(&w.live[n])
		}
		s.state = removed
	}
	w.rememberRequest(c.URI)
	return nil
}

// find returns the slot that a contact belongs to, or -1. Where several fit, the
// one with the same bytes is meant.
func (w *work) find(c *Contact) int {
	first := -1
	for n := range w.slots {
		if !w.occupies(n, c) {
			continue
		}
		if w.uri(n) == c.URI {
			return n
		}
		if first < 0 {
			first = n
		}
	}
	return first
}

func (w *work) uri(n int) string {
	if n < len(w.live) {
		return w.live[n].URI
	}
	return w.req.Contacts[w.slots[n].contact].URI
}

// occupies: the slot is this contact's, by the binding it had before the request
// or by the contact that the request has put there.
func (w *work) occupies(n int, c *Contact) bool {
	if n < len(w.live) && w.live[n].Contact.same(c) {
		return true
	}
	s := &w.slots[n]
	return (s.state == put || n >= len(w.live)) && w.req.Contacts[s.contact].same(c)
}

// same: both have an instance and a reg-id: those decide (RFC 5626 §6); else the URIs (§10.3, §19.1.4).
func (c *Contact) same(d *Contact) bool {
	if c.hasFlowKey() && d.hasFlowKey() {
		return c.RegID == d.RegID && c.Instance == d.Instance
	}
	return equalURI(c.URI, d.URI)
}

func (c *Contact) hasFlowKey() bool { return c.Instance != "" && c.RegID != 0 }

// inOrder: another Call-ID, or a higher CSeq (§10.3 step 7).
func (w *work) inOrder(b *Binding) bool {
	return b.CallID != w.req.CallID || w.higher(b.CSeq)
}

func (w *work) higher(than uint32) bool {
	return w.req.CSeq > than || (w.req.CSeq == than && w.policy.AllowEqualCSeq)
}

// superseded: a newer request has removed or replaced this contact already, and this one is late.
func (w *work) superseded(uri string) bool {
	for i := range w.cur.Removed {
		r := &w.cur.Removed[i]
		if r.CallID == w.req.CallID && !w.higher(r.CSeq) && r.Until.After(w.now) &&
			(r.URI == allContacts || equalURI(r.URI, uri)) {
			return true
		}
	}
	return false
}

func (w *work) outOfOrder() *Reply {
	if s := w.policy.OrderStatus; s != 0 {
		return refuse(s)
	}
	return refuse(500)
}

// rememberOld: the requests that made this binding under another Call-ID may still
// have late copies, which no CSeq of this request's Call-ID would show to be old.
func (w *work) rememberOld(b *Binding) {
	if b.CallID != w.req.CallID {
		w.removed = append(w.removed, Removal{
			URI: b.URI, CallID: b.CallID, CSeq: b.CSeq, Until: w.now.Add(RemovalMemory),
		})
	}
}

// rememberRequest: this request removed the contact, whether it was there or is still under way.
func (w *work) rememberRequest(uri string) {
	r := w.req
	w.removed = append(w.removed, Removal{
		URI: uri, CallID: r.CallID, CSeq: r.CSeq, Branch: r.Branch, Until: w.now.Add(RemovalMemory),
	})
}

// result is the new set and what happened to each binding, expired ones first.
func (w *work) result() (Set, []Change) {
	next := make([]Binding, 0, len(w.slots))
	changes := make([]Change, 0, 1)
	if len(w.live) < len(w.cur.Bindings) {
		for i := range w.cur.Bindings {
			if b := &w.cur.Bindings[i]; !b.live(w.now, w.policy.Grace) {
				changes = append(changes, Change{Expired, *b})
			}
		}
	}
	for n := range w.slots {
		s := &w.slots[n]
		old := n < len(w.live)
		switch {
		case s.state == kept:
			next = append(next, w.live[n])
		case s.state == put:
			b, kind := w.binding(s.contact), Created
			if old {
				b.Created, kind = w.live[n].Created, Refreshed
				if b.Expires.Before(w.live[n].Expires) {
					kind = Shortened
				}
			} else {
				b.Created = firstFree(next, b.Created)
			}
			next = append(next, b)
			changes = append(changes, Change{kind, b})
		case s.evicted:
			changes = append(changes, Change{Rejected, w.live[n]})
		case old:
			changes = append(changes, Change{Unregistered, w.live[n]})
		}
	}
	if len(next) == 0 {
		next = nil
	}
	if w.usesGRUU() || w.hasGenerations() {
		w.generate(next, changes)
	}
	return Set{Bindings: next}, changes
}

// firstFree is the first millisecond from t on in which no binding was created: that
// time is a contact's name (see contactID).
func firstFree(bindings []Binding, t time.Time) time.Time {
	for i := 0; i < len(bindings); i++ {
		if bindings[i].Created.Equal(t) {
			t, i = t.Add(time.Millisecond), -1
		}
	}
	return t
}

// binding makes the binding of contact i.
func (w *work) binding(i int) Binding {
	r := w.req
	b := Binding{
		Contact: r.Contacts[i], CallID: r.CallID, CSeq: r.CSeq, Branch: r.Branch,
		Path: r.Path, UserAgent: r.UserAgent, Flow: r.Flow,
		Created: w.now, Refreshed: w.now, Expires: w.now.Add(time.Duration(w.granted[i]) * time.Second),
	}
	b.Contact.Expires = ExpiresIn{} // what was asked for is no part of the binding
	return b
}
