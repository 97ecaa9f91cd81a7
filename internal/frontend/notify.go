package frontend

import (
	"sync"
	"time"

	"rollcall/registrar"
	"rollcall/registrar/sipfront"
)

// notices is what watchers of this Front End's users are owed and have not been told yet.
//
// The numbers of NOTIFYs are stored with the user's set, by the same compare-and-swap as the
// change they tell of, so that whoever is promoted goes on counting. What is here is only
// what is between the store and the watcher; when it is lost with the process, the promoted
// primary tells every watcher the whole state under the next number.
//
// A watcher has one NOTIFY under way at most. What happens meanwhile gathers in one more.
type notices struct {
	mu    sync.Mutex
	boxes map[watcher]*outbox // guarded by mu, and so is ready
	ready []watcher           // boxes to be emptied
	wake  chan struct{}       // one slot

	carrying chan struct{}        // bounds the NOTIFYs that other Front Ends send by our flows
	strays   chan sipfront.Astray // to be passed on
}

// watcher names a subscription: whose registrations, and our tag.
type watcher struct {
	user registrar.AOR
	tag  string
}

// outbox is of one watcher who is owed something, or is just being told.
type outbox struct {
	own      *hotCopy
	next     *registrar.Notice // has not left yet
	full     bool              // one that left may not have arrived: the next must tell everything
	state    boxState
	again    time.Time // resting: until then
	failures int       // in a row
}

type boxState uint8

const (
	boxNew boxState = iota
	boxReady
	boxBusy    // somebody is at it
	boxResting // the watcher did not answer
)

const (
	notifiesAtOnce = 1024 // under way; the others wait
	carriedAtOnce  = 1024 // likewise, for other Front Ends
)

func newNotices() *notices {
	return &notices{boxes: map[watcher]*outbox{}, wake: make(chan struct{}, 1),
		carrying: make(chan struct{}, carriedAtOnce), strays: make(chan sipfront.Astray, strayQueue)}
}

// waiting reports whether a subscription's newest NOTIFY has not left yet. The caller has the user's turn.
func (n *notices) waiting(user registrar.AOR, sub registrar.Subscription) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.boxes[watcher{user, sub.Tag}]
	return b != nil && b.next != nil && b.next.Subscription.Notified == sub.Notified
}

// put takes over what a stored change owes. The caller has the user's turn.
func (n *notices) put(own *hotCopy, user registrar.AOR, owed []registrar.Notice) {
	if len(owed) == 0 {
		return
	}
	n.mu.Lock()
	for _, next := range owed {
		b := n.boxLocked(own, watcher{user, next.Subscription.Tag})
		asked := next.Full // a SUBSCRIBE shows that the watcher is there
		next.Full = next.Full || b.full
		if b.next != nil {
			// Somebody else has counted meanwhile: what he told is not known here.
			next.Full = next.Full || b.next.Subscription.Notified != next.Subscription.Notified
			next = b.next.Merge(next)
		}
		b.next = &next
		if b.state == boxNew || b.state == boxResting && asked {
			n.readyLocked(watcher{user, next.Subscription.Tag}, b)
		}
	}
	n.mu.Unlock()
	n.rouse()
}

// owe notes that watchers must be told everything, without a change: a promoted copy does not know what they heard.
func (n *notices) owe(own *hotCopy, watchers []watcher) {
	n.mu.Lock()
	for _, w := range watchers {
		b := n.boxLocked(own, w)
		b.full = true
		if b.state == boxNew {
			n.readyLocked(w, b)
		}
	}
	n.mu.Unlock()
	n.rouse()
}

func (n *notices) boxLocked(own *hotCopy, w watcher) *outbox {
	b := n.boxes[w]
	if b == nil {
		b = &outbox{}
		n.boxes[w] = b
	}
	b.own = own
	return b
}

func (n *notices) readyLocked(w watcher, b *outbox) {
	b.state = boxReady
	n.ready = append(n.ready, w)
}

func (n *notices) rouse() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// rested makes those ready who have rested long enough.
func (n *notices) rested(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for w, b := range n.boxes {
		if b.state == boxResting && !b.again.After(now) {
			n.readyLocked(w, b)
		}
	}
}

// take returns the watchers to be told now; their boxes are busy from here on.
func (n *notices) take() []watcher {
	n.mu.Lock()
	defer n.mu.Unlock()
	ready := n.ready
	n.ready = nil
	for _, w := range ready {
		n.boxes[w].state = boxBusy
	}
	return ready
}

// look returns the copy that a busy box is of, and whether a NOTIFY has to be made for it first.
func (n *notices) look(w watcher) (own *hotCopy, make bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.boxes[w]
	return b.own, b.full && b.next == nil
}

// claim takes the NOTIFY of a busy box: it leaves now. Without one the box is done with.
// The caller has the user's turn, so that no change can still count on this one.
func (n *notices) claim(w watcher) (registrar.Notice, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.boxes[w]
	if b.next == nil {
		delete(n.boxes, w)
		return registrar.Notice{}, false
	}
	next := *b.next
	b.next, b.full = nil, false
	return next, true
}

// arrived notes that a busy box's watcher took his NOTIFY.
func (n *notices) arrived(w watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.boxes[w].failures = 0
}

// rest leaves a busy box alone for a while: what left may not have arrived.
func (n *notices) rest(w watcher, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.boxes[w]
	b.full, b.state, b.again = true, boxResting, until
}

// failed counts a NOTIFY without an answer and returns how many in a row those are.
func (n *notices) failed(w watcher) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.boxes[w]
	b.failures++
	return b.failures
}

// forget drops a busy box with all that is in it.
func (n *notices) forget(w watcher) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.boxes, w)
}
