package registrar

import (
	"slices"
	"time"
)

// maxRequestContacts bounds the work that one REGISTER can make.
const maxRequestContacts = 64

// Decide is RFC 3261 §10.3 from step 5 on, and steps 1 and 2 as far as the policy
// names domains; step 3 and the half of step 4 that needs a user are Authenticator's.
// It never changes cur, and it is all or nothing: a request that fails changes nothing.
func Decide(cur Set, req *Request, now time.Time, p Policy) Decision {
	w := work{cur: cur, req: req, now: now.UTC().Truncate(time.Millisecond), policy: &p}
	checks := [...]func(*work) *Reply{
		(*work).checkDomain,     // step 1, step 5
		(*work).checkExtensions, // step 2
		(*work).checkThirdParty, // step 4
		(*work).checkPath,       // RFC 3327 §5.3
		(*work).checkContacts,   // step 6
		(*work).checkGRUU,       // RFC 5627 §5.1
		(*work).checkOutbound,   // RFC 5626 §6
	}
	for _, check := range checks {
		if refusal := check(&w); refusal != nil {
			return Decision{Next: cur, Reply: *refusal}
		}
	}
	w.live = cur.Live(w.now, p.Grace)
	if w.isQuery() || w.isRetransmission() {
		return Decision{Next: cur, Reply: w.accept(w.live)}
	}
	return w.update()
}

// work is one decision under way.
type work struct {
	cur    Set
	req    *Request
	now    time.Time
	policy *Policy

	live    []Binding // of cur, not expired
	granted []int64   // per contact of the request: seconds, 0 removes
	slots   []slot    // one per live binding, then one per new one
	removed []Removal // to be remembered, oldest first
}

// update applies the request to the live bindings, or to none of them.
func (w *work) update() Decision {
	for _, step := range [...]func(*work) *Reply{
		(*work).grantExpiries, // step 7, expiry
		(*work).applyContacts, // step 6 and 7, order and change
		(*work).checkLimits,
	} {
		if refusal := step(w); refusal != nil {
			return Decision{Next: w.cur, Reply: *refusal}
		}
	}
	next, changes := w.next()
	if len(changes) == 0 && len(w.removed) == 0 {
		return Decision{Next: w.cur, Reply: w.accept(w.live)}
	}
	for !w.fits(&next) {
		if w.policy.WhenFull != ReplaceOldest || !w.evictOldest() {
			return Decision{Next: w.cur, Reply: *w.full()}
		}
		next, changes = w.next()
	}
	return Decision{Next: next, Write: true, Changes: changes, Reply: w.accept(next.Bindings)}
}

// next is the set after the request and what changed.
func (w *work) next() (Set, []Change) {
	next, changes := w.result()
	next.Removed = newest(append(recentRemovals(w.cur.Removed, w.now), w.removed...), maxRemoved)
	next.Nonces = useNonce(w.cur.Nonces, w.req.Nonce, w.now)
	next.Subscriptions = w.cur.Subscriptions
	return next, changes
}

// checkDomain: §10.3 step 1 (a Request-URI for another domain is not ours to forward)
// and step 5 (the address-of-record must be valid in our domains).
func (w *work) checkDomain() *Reply {
	if w.req.AOR.User() == "" {
		return refuse(404)
	}
	p := w.policy
	if len(p.Domains) == 0 {
		return nil
	}
	ours := slices.Contains(p.Domains, w.req.Domain) || slices.Contains(p.Aliases, w.req.Domain)
	if !ours || !slices.Contains(p.Domains, w.req.AOR.Domain()) {
		return refuse(404)
	}
	return nil
}

// checkExtensions: §10.3 step 2, §8.2.2.3.
func (w *work) checkExtensions() *Reply {
	var unknown []string
	for _, tag := range w.req.Require {
		if tag != "path" && tag != "outbound" && (tag != "gruu" || w.policy.GRUU == nil) {
			unknown = append(unknown, tag)
		}
	}
	if unknown == nil {
		return nil
	}
	return refuse(420, Header{"Unsupported", join(unknown)})
}

// checkThirdParty: §10.3 step 4, as far as it does not need the authenticated user.
func (w *work) checkThirdParty() *Reply {
	if w.policy.RefuseThirdParty && w.req.From != w.req.AOR {
		return refuse(403)
	}
	return nil
}

// checkPath: a client that does not know of Path may be refused by policy (RFC 3327 §5.3).
func (w *work) checkPath() *Reply {
	if w.policy.RequirePathSupport && len(w.req.Path) > 0 && !w.supports("path") {
		return refuse(421, Header{"Require", "path"})
	}
	return nil
}

// checkContacts: §10.3 step 6: "*" stands alone and with Expires: 0.
func (w *work) checkContacts() *Reply {
	r := w.req
	if r.Star && (len(r.Contacts) > 0 || !r.Expires.Valid || r.Expires.Seconds != 0) {
		return refuse(400)
	}
	if len(r.Contacts) > maxRequestContacts {
		return refuse(403)
	}
	return nil
}

func (w *work) isQuery() bool { return !w.req.Star && len(w.req.Contacts) == 0 }

// isRetransmission: the request was applied already, as a whole, so any trace of it proves it.
func (w *work) isRetransmission() bool {
	r := w.req
	if r.Branch == "" {
		return false
	}
	for i := range w.live {
		if b := &w.live[i]; b.CSeq == r.CSeq && b.Branch == r.Branch && b.CallID == r.CallID {
			return true
		}
	}
	for i := range w.cur.Removed {
		if m := &w.cur.Removed[i]; m.CSeq == r.CSeq && m.Branch == r.Branch && m.CallID == r.CallID && m.Until.After(w.now) {
			return true
		}
	}
	return false
}

func (w *work) supports(tag string) bool {
	return slices.Contains(w.req.Supported, tag) || slices.Contains(w.req.Require, tag)
}

// grantExpiries: §10.3 step 7, first half. Too brief fails the request, with 423.
func (w *work) grantExpiries() *Reply {
	if w.req.Star {
		return nil
	}
	w.granted = make([]int64, len(w.req.Contacts))
	most := w.policy.mostFor(w.req)
	least := seconds(w.policy.MinExpires)
	for i := range w.req.Contacts {
		asked := w.asked(&w.req.Contacts[i])
		if asked > 0 && asked < 3600 && asked < least {
			return refuse(423, Header{"Min-Expires", itoa(least)})
		}
		w.granted[i] = asked
		if asked > most {
			w.granted[i] = most
		}
	}
	return nil
}

// asked is the Contact's own expiry, else the header field's, else the default;
// a malformed one counts as the default (§10.2.1.1, §20.10).
func (w *work) asked(c *Contact) int64 {
	e := c.Expires
	if !e.Given {
		e = w.req.Expires
	}
	if !e.Valid {
		return max(1, seconds(w.policy.DefaultExpires))
	}
	return int64(e.Seconds)
}

// mostFor is the longest expiry granted to this client, at least a second.
func (p *Policy) mostFor(req *Request) int64 {
	most := p.MaxExpires
	for _, g := range p.Grants {
		if g.fits(req) {
			most = min(most, g.Max)
			break
		}
	}
	return max(1, seconds(most))
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
