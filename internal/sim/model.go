package sim

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"rollcall/registrar"
)

// model knows what the pool has acknowledged to the phones, and what may have
// happened because no answer came. It judges every record against that.
type model struct {
	fail func(format string, args ...any)
	now  func(registrar.AOR) (registrar.Set, bool) // what the log has of a user

	mu  sync.Mutex // guards the following
	of  map[registrar.AOR]map[string]*history
	ack int // acknowledgements so far
}

// history of one binding: a user's Contact, which belongs to one phone.
type history struct {
	phone  string
	callID string
	known  bool   // something was acknowledged; then:
	cseq   uint32 // of the newest that was
	gone   bool   // that was a de-registration
	until  time.Time
	flow   flow   // the connection that the binding lives on; nil over UDP
	open   []sent // newer ones without a final answer: they may have been stored or not
}

// flow is a connection as the network sees it. When it closes, the pool may remove the
// binding that lives on it (the connection's own end of it may not know yet).
type flow interface{ Broken() bool }

type sent struct {
	cseq   uint32
	remove bool
}

func newModel(fail func(string, ...any)) *model {
	return &model{fail: fail, of: map[registrar.AOR]map[string]*history{}}
}

// of a phone's own binding.
func (m *model) historyLocked(ph *Phone) *history {
	contacts := m.of[ph.user.aor]
	if contacts == nil {
		contacts = map[string]*history{}
		m.of[ph.user.aor] = contacts
	}
	h := contacts[ph.contact]
	if h == nil {
		h = &history{phone: ph.name, callID: ph.callID}
		contacts[ph.contact] = h
	}
	return h
}

// sent: a phone is about to send this.
func (m *model) sent(ph *Phone, cseq uint32, expires int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.historyLocked(ph)
	h.open = append(h.open, sent{cseq, expires == 0})
}

// refused: the pool said no to it.
func (m *model) refused(ph *Phone, cseq uint32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.historyLocked(ph)
	h.open = slices.DeleteFunc(h.open, func(s sent) bool { return s.cseq == cseq })
}

// registered: the pool said 200; the binding lives until then at least.
func (m *model) registered(ph *Phone, cseq uint32, until time.Time) {
	flow, _ := ph.conn.(flow)
	m.acknowledged(ph, cseq, false, until, flow)
}

// removed: the pool said 200 to a de-registration.
func (m *model) removed(ph *Phone, cseq uint32) { m.acknowledged(ph, cseq, true, time.Time{}, nil) }

func (m *model) acknowledged(ph *Phone, cseq uint32, gone bool, until time.Time, f flow) {
	m.mu.Lock()
	h := m.historyLocked(ph)
	h.known, h.cseq, h.gone, h.until, h.flow = true, cseq, gone, until, f
	h.open = slices.DeleteFunc(h.open, func(s sent) bool { return s.cseq <= cseq })
	m.ack++
	m.mu.Unlock()

	// Guarantee 1: it was stored before it was said.
	set, _ := m.now(ph.user.aor)
	m.check("the log when the 200 arrived", ph.user.aor, set)
}

func (m *model) acknowledgements() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ack
}

// check judges what somebody has of a user: nothing acknowledged may be missing,
// nothing that was removed may be there, and nothing that nobody sent.
func (m *model) check(who string, aor registrar.AOR, set registrar.Set) {
	for _, what := range m.judge(aor, set, time.Now()) {
		m.fail("%s has of %s: %s", who, aor, what)
	}
}

func (m *model) judge(aor registrar.AOR, set registrar.Set, now time.Time) (wrong []string) {
	there := map[string]registrar.Binding{}
	for _, b := range set.Bindings {
		there[b.URI] = b
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for contact, h := range m.of[aor] {
		b, ok := there[contact]
		delete(there, contact)
		what := ""
		if ok {
			what = h.judgePresent(b)
		} else {
			what = h.judgeAbsent(now)
		}
		if what != "" {
			wrong = append(wrong, what)
		}
	}
	for contact := range there {
		wrong = append(wrong, fmt.Sprintf("a binding %s that nobody registered", contact))
	}
	return wrong
}

func (h *history) judgePresent(b registrar.Binding) string {
	switch {
	case b.CallID != h.callID:
		return fmt.Sprintf("%s with Call-ID %q instead of %q", h.phone, b.CallID, h.callID)
	case h.known && b.CSeq == h.cseq && h.gone:
		return fmt.Sprintf("%s at CSeq %d, which was its acknowledged de-registration", h.phone, b.CSeq)
	case h.known && b.CSeq == h.cseq:
		return ""
	case h.known && b.CSeq < h.cseq && h.gone:
		return fmt.Sprintf("%s at CSeq %d, and it was removed with CSeq %d", h.phone, b.CSeq, h.cseq)
	case h.known && b.CSeq < h.cseq:
		return fmt.Sprintf("%s at CSeq %d, and CSeq %d was acknowledged", h.phone, b.CSeq, h.cseq)
	}
	for _, s := range h.open {
		if s.cseq == b.CSeq && !s.remove {
			return ""
		}
	}
	return fmt.Sprintf("%s at CSeq %d, which is no registration that may have been stored", h.phone, b.CSeq)
}

func (h *history) judgeAbsent(now time.Time) string {
	if !h.known || h.gone || !now.Before(h.until) {
		return ""
	}
	for _, s := range h.open {
		if s.remove {
			return ""
		}
	}
	if h.flow != nil && h.flow.Broken() {
		return ""
	}
	return fmt.Sprintf("no binding of %s, acknowledged with CSeq %d and good for %v more", h.phone, h.cseq, h.until.Sub(now))
}
