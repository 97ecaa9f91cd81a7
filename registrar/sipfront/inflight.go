package sipfront

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// requestKey tells a retransmission over UDP from a new request (RFC 3261 §17.2.3).
// Call-ID and CSeq are in it for clients that use one branch for everything.
type requestKey struct {
	from                 netip.AddrPort
	branch, callID, cseq string
}

// waiting is a REGISTER over UDP that the Handler has not answered yet.
type waiting struct {
	since  time.Time
	trying []byte // the 100 sent for it, nil before
	socket *packetSocket
	msg    *message
}

// inflight bounds what waits for the Handler, and knows the datagrams among it.
type inflight struct {
	n   atomic.Int64 // of all transports
	max int64

	mu  sync.Mutex // guards udp, and trying of its values
	udp map[requestKey]*waiting
}

// enter takes one of the places; it reports whether there was one.
func (f *inflight) enter() bool {
	if f.n.Add(1) > f.max {
		f.n.Add(-1)
		return false
	}
	return true
}

func (f *inflight) leave() { f.n.Add(-1) }

// seen reports whether the request is waiting already, and the 100 it has been given.
func (f *inflight) seen(k requestKey) (trying []byte, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w, ok := f.udp[k]
	if ok {
		trying = w.trying
	}
	return trying, ok
}

func (f *inflight) add(k requestKey, w *waiting) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.udp[k] = w
}

func (f *inflight) remove(k requestKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.udp, k)
}

// overdue marks those that wait since before then and have no 100 yet, and
// returns them with the 100 that render makes.
func (f *inflight) overdue(then time.Time, render func(*message) []byte) []waiting {
	f.mu.Lock()
	defer f.mu.Unlock()
	var due []waiting
	for _, w := range f.udp {
		if w.trying == nil && !w.since.After(then) {
			w.trying = render(w.msg)
			due = append(due, *w)
		}
	}
	return due
}
