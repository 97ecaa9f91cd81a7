package registrar

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// The model is RFC 3261 §10.3 said again, slowly: it knows contacts by the number
// of the address that they spell, not by their URIs, keeps everything in maps and
// lists of its own, and searches the whole history instead of stored removals.

// spellings of each address; within a line they are equal by §19.1.4, between lines never.
var spellings = [][]string{
	{"sip:a@h.test", "sip:%61@H.test;x=1", "SIP:a@h.test;x=1;y=2"},
	{"sip:a@h.test:5060", "sip:a@H.TEST:5060;lr"},
	{"sip:b@[::1];transport=tcp", "sip:b@[0:0::1];Transport=TCP"},
	{"sips:a@h.test"},
}

type modelContact struct {
	address, spelling int
	key               int // 0: no instance and reg-id
	expires           int // -1: none, -2: malformed
}

type modelRequest struct {
	call, cseq, branch int
	star               bool
	expires            int // as in modelContact
	contacts           []modelContact
}

type modelBinding struct {
	modelContact
	call, cseq, branch int
	created, refreshed time.Time
	until              time.Time
}

// modelPast is a reason to think that a REGISTER is late.
type modelPast struct {
	address    int // -1: all
	call, cseq int
	at         time.Time
}

type modelDone struct {
	call, cseq, branch int
	at                 time.Time
}

type model struct {
	bindings []modelBinding
	past     []modelPast
	done     []modelDone // removals that were applied
	policy   Policy
}

func (m *model) expiry(r modelRequest, c modelContact) int {
	e := c.expires
	if e == -1 {
		e = r.expires
	}
	if e < 0 {
		return int(m.policy.DefaultExpires / time.Second)
	}
	return e
}

func equalContacts(a, b modelContact) bool {
	if a.key != 0 && b.key != 0 {
		return a.key == b.key
	}
	return a.address == b.address
}

// late reports whether cseq is not above another of the same Call-ID.
func (m *model) late(cseq, than int) bool {
	return cseq < than || (cseq == than && !m.policy.AllowEqualCSeq)
}

// apply returns the status and whether anything was to be written.
func (m *model) apply(r modelRequest, now time.Time) (status int, write bool) {
	live := m.alive(now)
	if r.star && (len(r.contacts) > 0 || r.expires != 0) {
		return 400, false
	}
	if status := m.outbound(r); status != 0 {
		return status, false
	}
	if !r.star && len(r.contacts) == 0 {
		return 200, false
	}
	if m.again(r, live, now) {
		return 200, false
	}
	for _, c := range r.contacts {
		if e := m.expiry(r, c); e > 0 && e < 3600 && e < int(m.policy.MinExpires/time.Second) {
			return 423, false
		}
	}
	after, past, ok := m.change(r, live, now)
	if !ok {
		return 500, false
	}
	after, ok = m.limit(live, after)
	if !ok {
		return 403, false
	}
	m.bindings = after
	m.past = append(m.past, past...)
	removes := r.star
	for _, c := range r.contacts {
		removes = removes || m.expiry(r, c) == 0
	}
	if removes {
		m.done = append(m.done, modelDone{r.call, r.cseq, r.branch, now})
	}
	return 200, true
}

func (m *model) alive(now time.Time) (live []modelBinding) {
	for _, b := range m.bindings {
		if now.Before(b.until.Add(m.policy.Grace)) {
			live = append(live, b)
		}
	}
	return live
}

func (m *model) outbound(r modelRequest) int {
	keyed, lasting := 0, 0
	for _, c := range r.contacts {
		if c.key != 0 {
			keyed++
		}
		if m.expiry(r, c) > 0 {
			lasting++
		}
	}
	if keyed > 0 && lasting > 1 {
		return 400
	}
	return 0
}

func (m *model) again(r modelRequest, live []modelBinding, now time.Time) bool {
	for _, b := range live {
		if b.call == r.call && b.cseq == r.cseq && b.branch == r.branch {
			return true
		}
	}
	for _, d := range m.done {
		if d.call == r.call && d.cseq == r.cseq && d.branch == r.branch && now.Sub(d.at) < RemovalMemory {
			return true
		}
	}
	return false
}

// entry is a binding on its way through one request.
type entry struct {
	before *modelBinding // nil: new
	now    *modelBinding // nil: removed
	by     int           // contact that put it, -1: none
}

func (e entry) is(c modelContact) bool {
	if e.before != nil && equalContacts(e.before.modelContact, c) {
		return true
	}
	return e.before == nil && equalContacts(e.now.modelContact, c) ||
		e.by >= 0 && e.now != nil && equalContacts(e.now.modelContact, c)
}

func (m *model) change(r modelRequest, live []modelBinding, now time.Time) (after []modelBinding, past []modelPast, ok bool) {
	var entries []*entry
	for i := range live {
		entries = append(entries, &entry{before: &live[i], now: &live[i], by: -1})
	}
	forget := func(e *entry) {
		if e.by == -1 && e.now != nil && e.before.call != r.call {
			past = append(past, modelPast{e.before.address, e.before.call, e.before.cseq, now})
		}
	}
	if r.star {
		for _, e := range entries {
			if e.before.call == r.call && m.late(r.cseq, e.before.cseq) {
				return nil, nil, false
			}
			forget(e)
		}
		return nil, append(past, modelPast{-1, r.call, r.cseq, now}), true
	}
	for i, c := range r.contacts {
		removing := m.expiry(r, c) == 0
		if !removing && m.overtaken(r, c, now) {
			return nil, nil, false
		}
		var mine []*entry
		for _, e := range entries {
			if e.is(c) {
				mine = append(mine, e)
			}
		}
		if !removing && len(mine) > 1 {
			mine = mine[pick(mine, c) : pick(mine, c)+1]
		}
		for _, e := range mine {
			if e.before != nil && e.before.call == r.call && m.late(r.cseq, e.before.cseq) {
				return nil, nil, false
			}
			if removing {
				if e.by >= 0 && e.now != nil && r.contacts[e.by].address != c.address {
					continue
				}
				forget(e)
				e.now = nil
				if e.before == nil { // never was
					for n := range entries {
						if entries[n] == e {
							entries = append(entries[:n:n], entries[n+1:]...)
							break
						}
					}
				}
			} else {
				forget(e)
				e.now, e.by = m.make(r, c, e.before, now), i
			}
		}
		if removing {
			past = append(past, modelPast{c.address, r.call, r.cseq, now})
		} else if len(mine) == 0 {
			entries = append(entries, &entry{now: m.make(r, c, nil, now), by: i})
		}
	}
	for _, e := range entries {
		if e.now != nil {
			after = append(after, *e.now)
		}
	}
	return after, past, true
}

// pick prefers the entry that is spelt as the contact is.
func pick(mine []*entry, c modelContact) int {
	for i, e := range mine {
		spelt := e.before
		if spelt == nil {
			spelt = e.now
		}
		if spelt.address == c.address && spelt.spelling == c.spelling {
			return i
		}
	}
	return 0
}

func (m *model) make(r modelRequest, c modelContact, before *modelBinding, now time.Time) *modelBinding {
	granted := time.Duration(m.expiry(r, c)) * time.Second
	if granted > m.policy.MaxExpires {
		granted = m.policy.MaxExpires
	}
	b := &modelBinding{c, r.call, r.cseq, r.branch, now, now, now.Add(granted)}
	if before != nil {
		b.created = before.created
	}
	return b
}

func (m *model) overtaken(r modelRequest, c modelContact, now time.Time) bool {
	for _, p := range m.past {
		if p.call == r.call && m.late(r.cseq, p.cseq) && now.Sub(p.at) < RemovalMemory && (p.address == -1 || p.address == c.address) {
			return true
		}
	}
	return false
}

func (m *model) limit(live, after []modelBinding) ([]modelBinding, bool) {
	fresh := len(after) > 0
	if fresh {
		fresh = false
		for _, b := range after {
			fresh = fresh || !hadBefore(live, b)
		}
	}
	over := len(after) - m.policy.MaxContacts
	if !fresh || over <= 0 {
		return after, true
	}
	if m.policy.WhenFull != ReplaceOldest {
		return nil, false
	}
	var idle []int
	for i, b := range after {
		for _, l := range live {
			if l == b {
				idle = append(idle, i)
			}
		}
	}
	if len(idle) < over {
		return nil, false
	}
	sort.SliceStable(idle, func(i, j int) bool { return after[idle[i]].refreshed.Before(after[idle[j]].refreshed) })
	gone := map[int]bool{}
	for _, i := range idle[:over] {
		gone[i] = true
	}
	var left []modelBinding
	for i, b := range after {
		if !gone[i] {
			left = append(left, b)
		}
	}
	return left, true
}

// hadBefore: a binding keeps its time of creation over refreshes, and two are never created in one instant here
// but by one request, which makes them new both.
func hadBefore(live []modelBinding, b modelBinding) bool {
	for _, l := range live {
		if l.created.Equal(b.created) {
			return true
		}
	}
	return false
}

// describe writes bindings as the comparison sees them.
func (m *model) describe(now time.Time) string {
	var lines []string
	for _, b := range m.alive(now) {
		lines = append(lines, fmt.Sprintf("%s key %d call %d cseq %d branch %d created %d until %d", spellings[b.address][b.spelling],
			b.key, b.call, b.cseq, b.branch, b.created.Unix(), b.until.UnixMilli()))
	}
	return strings.Join(lines, "\n")
}
