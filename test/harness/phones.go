package harness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"
)

// Phones are many UDP phones in this process, one per user, sharing a few sockets. Each
// remembers what the pool has acknowledged to it: that is what a test compares with.
type Phones struct {
	phones  []*Phone
	sockets []*socket
}

// Phone is one user's phone. Its methods must not be called at the same time.
type Phone struct {
	User    User
	CallID  string
	Contact string
	Acked   Acked
	Sent    uint32 // CSeq of the newest REGISTER sent
	Unsure  bool   // a REGISTER after Acked had no answer: whether it was stored is not known

	socket    *socket
	challenge *challenge
}

// Acked is the newest registration that was answered with 200.
type Acked struct {
	CSeq    uint32 // 0: none
	At      time.Time
	Expires int // seconds granted; 0: the removal was acknowledged
}

// NewPhones makes one phone for each user. tag keeps the Call-IDs of several sets of phones apart.
func NewPhones(tag string, users []User) (*Phones, error) {
	p := &Phones{}
	for range min(16, max(1, len(users)/50)) {
		s, err := openSocket()
		if err != nil {
			p.Close()
			return nil, err
		}
		p.sockets = append(p.sockets, s)
	}
	for i, u := range users {
		s := p.sockets[i%len(p.sockets)]
		p.phones = append(p.phones, &Phone{
			User: u, socket: s,
			CallID:  fmt.Sprintf("%s-%s-%08x", tag, u.Name, rand.Uint32()),
			Contact: fmt.Sprintf("sip:%s@%s", u.Name, s.addr()),
		})
	}
	return p, nil
}

// Close closes the sockets.
func (p *Phones) Close() {
	for _, s := range p.sockets {
		s.close()
	}
}

// All are the phones in the order of their users.
func (p *Phones) All() []*Phone { return p.phones }

// Each calls fn for every phone, so many at a time, and returns the errors of those that failed, at most ten of them
// in words and all of them counted.
func (p *Phones) Each(parallel int, fn func(*Phone) error) error {
	next := make(chan *Phone)
	var mu sync.Mutex
	var failed int
	var errs []error
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for phone := range next {
				if err := fn(phone); err != nil {
					mu.Lock()
					failed++
					if len(errs) < 10 {
						errs = append(errs, fmt.Errorf("%s: %w", phone.User.Name, err))
					}
					mu.Unlock()
				}
			}
		})
	}
	for _, phone := range p.phones {
		next <- phone
	}
	close(next)
	workers.Wait()
	if failed == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d phones failed, the first: %w", failed, len(p.phones), errors.Join(errs...))
}

// Register sends one REGISTER (and answers its challenge), and notes what a 200 acknowledges.
// A final answer other than 200 is returned without an error.
func (p *Phone) Register(ctx context.Context, target string, expires int) (Answer, error) {
	a, cseq, err := p.exchange(ctx, target, p.Contact, expires, 0)
	p.Unsure = p.Unsure || err != nil
	if err != nil || a.Status != 200 {
		return a, err
	}
	p.Unsure = false
	granted, listed := p.expiry(a)
	if !listed && expires > 0 {
		return a, fmt.Errorf("the 200 does not list the contact that it acknowledges: %q", a.Headers["contact"])
	}
	p.Acked = Acked{CSeq: cseq, At: time.Now(), Expires: granted}
	return a, nil
}

// MustRegister is Register where only a 200 will do.
func (p *Phone) MustRegister(ctx context.Context, target string, expires int) error {
	a, err := p.Register(ctx, target, expires)
	if err == nil && a.Status != 200 {
		err = fmt.Errorf("REGISTER was answered %d %s", a.Status, a.Reason)
	}
	return err
}

// Unregister removes the binding (RFC 3261 §10.2.2). Only a 200 will do.
func (p *Phone) Unregister(ctx context.Context, target string) error {
	return p.MustRegister(ctx, target, 0)
}

// Twin is a second phone with the same user, Call-ID and Contact, whose CSeq goes on from here. Both may be used at the same time.
func (p *Phone) Twin() *Phone {
	twin := *p
	if p.challenge != nil {
		c := *p.challenge
		twin.challenge = &c
	}
	return &twin
}

// Query asks for the current bindings with a REGISTER that has no Contact (RFC 3261 §10.2.3).
func (p *Phone) Query(ctx context.Context, target string) (Answer, error) {
	a, _, err := p.exchange(ctx, target, "", 0, 0)
	if err == nil && a.Status != 200 {
		err = fmt.Errorf("query was answered %d %s", a.Status, a.Reason)
	}
	return a, err
}

// Repeat sends a REGISTER with a CSeq that was used before and a new branch. A registrar that has the
// acknowledged binding must refuse it (RFC 3261 §10.3 step 7); one that lost it, or has
// an older one, accepts it.
func (p *Phone) Repeat(ctx context.Context, target string, cseq uint32) (Answer, error) {
	a, _, err := p.exchange(ctx, target, p.Contact, 600, cseq)
	return a, err
}

// Kept checks over the wire that what was acknowledged is there: see Listed and Remembered.
func (p *Phone) Kept(ctx context.Context, target string) error {
	if err := p.Listed(ctx, target); err != nil {
		return err
	}
	return p.Remembered(ctx, target)
}

// Listed checks that the acknowledged binding is listed, with the seconds that it must still have; or that
// it is not listed, if its removal was acknowledged.
func (p *Phone) Listed(ctx context.Context, target string) error {
	if p.Acked.CSeq == 0 {
		return nil // nothing was promised
	}
	a, err := p.Query(ctx, target)
	if err != nil {
		return err
	}
	left, listed := p.expiry(a)
	if p.Unsure && listed != (p.Acked.Expires > 0) {
		return nil // the one without an answer may have been a removal, or a registration
	}
	if p.Acked.Expires == 0 {
		if listed {
			return fmt.Errorf("removed binding came back (200 to its removal at %s): the pool lists %q",
				p.Acked.At.Format(time.TimeOnly), a.Headers["contact"])
		}
		return nil
	}
	if !listed {
		return fmt.Errorf("acknowledged binding lost (CSeq %d, 200 at %s): the pool lists %q",
			p.Acked.CSeq, p.Acked.At.Format(time.TimeOnly), a.Headers["contact"])
	}
	// The moment of storage lies before the moment at which the 200 arrived here.
	if due := p.Acked.Expires - int(time.Since(p.Acked.At)/time.Second) - 3; left < due {
		return fmt.Errorf("binding has %d s left and was promised %d s: an older registration came back", left, due)
	}
	return nil
}

// Remembered checks that the pool's binding has at least the acknowledged CSeq: it must refuse that one.
func (p *Phone) Remembered(ctx context.Context, target string) error {
	if p.Acked.CSeq == 0 || p.Acked.Expires == 0 || p.Unsure {
		return nil
	}
	a, err := p.Repeat(ctx, target, p.Acked.CSeq)
	if err == nil && a.Status < 300 {
		err = fmt.Errorf("acknowledged CSeq %d was accepted once more: the pool forgot it", p.Acked.CSeq)
	}
	return err
}

// exchange sends a REGISTER, answers one challenge, and returns the final answer and its CSeq.
// cseq 0 means the next one.
func (p *Phone) exchange(ctx context.Context, target, contact string, expires int, cseq uint32) (Answer, uint32, error) {
	to, err := net.ResolveUDPAddr("udp", target)
	if err != nil {
		return Answer{}, 0, err
	}
	for round := 0; ; round++ {
		n := cseq
		if n == 0 {
			p.Sent++
			n = p.Sent
		}
		branch := fmt.Sprintf("z9hG4bK-%08x%08x", rand.Uint32(), rand.Uint32())
		a, err := p.socket.request(ctx, to, branch, p.message(branch, contact, expires, n))
		if err != nil {
			return a, n, fmt.Errorf("REGISTER to %s: %w", target, err)
		}
		if a.Status != 401 || round == 2 {
			return a, n, nil
		}
		if p.challenge, err = parseChallenge(a); err != nil {
			return a, n, err
		}
	}
}

func (p *Phone) message(branch, contact string, expires int, cseq uint32) []byte {
	var b strings.Builder
	aor := "sip:" + p.User.Name + "@" + Domain
	uri := "sip:" + Domain
	fmt.Fprintf(&b, "REGISTER %s SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=%s;rport\r\nMax-Forwards: 70\r\n", uri, p.socket.addr(), branch)
	fmt.Fprintf(&b, "From: <%s>;tag=%s\r\nTo: <%s>\r\nCall-ID: %s\r\nCSeq: %d REGISTER\r\n", aor, p.User.Name, aor, p.CallID, cseq)
	if contact != "" {
		fmt.Fprintf(&b, "Contact: <%s>\r\nExpires: %d\r\n", contact, expires)
	}
	if p.challenge != nil {
		fmt.Fprintf(&b, "Authorization: %s\r\n", p.challenge.answer(p.User, "REGISTER", uri))
	}
	b.WriteString("User-Agent: rollcall-test\r\nContent-Length: 0\r\n\r\n")
	return []byte(b.String())
}

// expiry finds the phone's own contact in a 200.
func (p *Phone) expiry(a Answer) (seconds int, listed bool) {
	for _, c := range a.Contacts() {
		if c.URI == p.Contact {
			return c.Expires, true
		}
	}
	return 0, false
}
