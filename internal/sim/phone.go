package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"rollcall/internal/simnet"
)

// Phone is a softphone of one user. Either Run drives it, or the test calls
// Register, Unregister and Query, from one goroutine at a time.
type Phone struct {
	pool      *Pool
	user      user
	name      string
	transport string // udp, tcp
	expires   int    // asked for
	servers   []netip.AddrPort
	at        int // which of them it uses
	host      *simnet.Host
	socket    net.PacketConn // of UDP
	conn      net.Conn       // of TCP; nil when there is none
	pending   string         // bytes of conn that are not a message yet
	via       string         // its own address, as it believes
	contact   string
	callID    string
	cseq      uint32
	auth      digest
	fickle    bool // Go de-registers now and then

	wake chan struct{} // of size 1: Run should register now

	mu   sync.Mutex // guards the following
	last time.Time  // of the newest 200 to a registration
	rest time.Duration
}

// registerTries bounds the requests of one registration: a challenge, a stale nonce, and one more.
const registerTries = 3

// Phone adds a phone of a user. Servers are tried in order, the next one after a failure.
func (p *Pool) Phone(u user, transport string, expires int, servers ...netip.AddrPort) *Phone {
	p.t.Helper()
	i := len(p.phones)
	ip := netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
	ph := &Phone{pool: p, user: u, name: fmt.Sprintf("phone%d", i), transport: transport, expires: expires, servers: servers,
		host: p.net.Host(fmt.Sprintf("phone%d", i), phones, ip), callID: fmt.Sprintf("call-%d@%s", i, ip), wake: make(chan struct{}, 1)}
	ph.via = netip.AddrPortFrom(ip, sipPort).String()
	ph.contact = fmt.Sprintf("sip:%s@%s:5060;transport=%s", u.aor.User(), ip, transport)
	if transport == "udp" {
		s, err := ph.host.ListenPacket(p.ctx, fmt.Sprintf(":%d", sipPort), false)
		if err != nil {
			p.t.Fatal(err)
		}
		ph.socket = s
	}
	p.phones = append(p.phones, ph)
	return ph
}

func (ph *Phone) server() netip.AddrPort { return ph.servers[ph.at%len(ph.servers)] }

// Register registers for what the phone asks for, Unregister removes its binding, and Query asks
// for the bindings of the user. A nil error means that the pool has acknowledged it.
func (ph *Phone) Register() error { return ph.change(ph.expires) }

// Unregister: see Register.
func (ph *Phone) Unregister() error { return ph.change(0) }

func (ph *Phone) change(expires int) error {
	first := time.Now()
	r, cseq, err := ph.ask(ph.contact, expires)
	if err != nil {
		return err
	}
	switch granted, listed := r.contacts[ph.contact]; {
	case expires > 0 && !listed:
		ph.pool.fail("%s: a 200 without its Contact %s", ph.name, ph.contact)
	case expires > 0:
		ph.pool.model.registered(ph, cseq, first.Add(time.Duration(granted)*time.Second))
		ph.mu.Lock()
		ph.last = time.Now()
		ph.rest = time.Duration(granted) * time.Second
		ph.mu.Unlock()
	default:
		if listed {
			ph.pool.fail("%s: a 200 to a de-registration that still lists %s", ph.name, ph.contact)
		}
		ph.pool.model.removed(ph, cseq)
	}
	return nil
}

// Query asks for the user's bindings: seconds left, by Contact.
func (ph *Phone) Query() (map[string]int, error) {
	r, _, err := ph.ask("", 0)
	return r.contacts, err
}

// refused is a final answer that is no success.
type refused struct {
	status     int
	retryAfter time.Duration
}

func (r refused) Error() string { return fmt.Sprintf("refused with %d", r.status) }

// ask carries a request through its challenges to a 200.
func (ph *Phone) ask(contact string, expires int) (response, uint32, error) {
	for try := range registerTries {
		ph.cseq++
		cseq := ph.cseq
		req := request{transport: ph.transport, via: ph.via, branch: fmt.Sprintf("z9hG4bK-%s-%d", ph.name, cseq),
			user: ph.user.aor.User(), tag: ph.name, callID: ph.callID, cseq: cseq, contact: contact, expires: expires,
			auth: ph.auth.authorization(ph.user.aor.User())}
		if contact != "" {
			ph.pool.model.sent(ph, cseq, expires)
		}
		r, err := ph.transact(req)
		if err != nil {
			return response{}, cseq, err
		}
		if r.status == 200 {
			return r, cseq, nil
		}
		if r.status < 500 {
			ph.pool.model.refused(ph, cseq) // of a 5xx one cannot be sure
		}
		if r.status != 401 || try == registerTries-1 || !ph.auth.challenged(r.challenge, req.auth != "") {
			return r, cseq, refused{r.status, time.Duration(r.retryAfter) * time.Second}
		}
	}
	return response{}, 0, errors.New("never gets here")
}

// Go runs the phone by itself until the pool ends: it registers, refreshes, reconnects
// and tries again as a softphone does.
func (ph *Phone) Go() {
	ph.pool.wg.Go(func() {
		ph.pause(time.Duration(hash(ph.pool.cfg.Seed, ph.name) % uint64(time.Second)))
		for failures := 0; ph.pool.ctx.Err() == nil; {
			err := ph.Register()
			if err == nil {
				failures = 0
				ph.idle()
				if ph.fickle && hash(ph.pool.cfg.Seed, ph.name, "leave", fmt.Sprint(ph.cseq))%4 == 0 {
					_ = ph.Unregister() // without an answer it has de-registered, or not
					ph.pause(time.Duration(hash(ph.pool.cfg.Seed, ph.name, "away", fmt.Sprint(ph.cseq)) % uint64(5*time.Second)))
				}
				continue
			}
			failures++
			ph.pause(ph.retry(err, failures))
			ph.hangUp()
			ph.at++ // the next server (RFC 3263 §4.3)
		}
	})
}

// retry is how long a phone waits after a failure: what it was told, or a little, growing and spread.
func (ph *Phone) retry(err error, failures int) time.Duration {
	if r, ok := errors.AsType[refused](err); ok && r.retryAfter > 0 {
		return r.retryAfter
	}
	most := uint64(200*time.Millisecond) << min(failures, 5)
	return 50*time.Millisecond + time.Duration(hash(ph.pool.cfg.Seed, ph.name, fmt.Sprint(ph.cseq))%most)
}

// idle waits until the next refresh; a lost connection ends it.
func (ph *Phone) idle() {
	ph.mu.Lock()
	share := 50 + hash(ph.pool.cfg.Seed, ph.name, fmt.Sprint(ph.cseq))%45 // per cent of what was granted
	next := time.Now().Add(ph.rest * time.Duration(share) / 100)
	ph.mu.Unlock()
	if ph.conn == nil {
		ph.pause(time.Until(next))
		return
	}
	for time.Now().Before(next) && ph.pool.ctx.Err() == nil {
		_, err := ph.receive(time.Now().Add(min(time.Until(next), lookUp)))
		switch {
		case err == nil:
			// a request to the phone: not what this simulator looks at
		case !errors.Is(err, os.ErrDeadlineExceeded):
			ph.hangUp()
			return
		}
		select {
		case <-ph.wake:
			return
		default:
		}
	}
}

// lookUp is how often a phone that waits on its connection looks whether it was woken.
const lookUp = 500 * time.Millisecond

// pause waits for d, unless the phone is woken or the pool ends.
func (ph *Phone) pause(d time.Duration) {
	ctx, cancel := context.WithTimeout(ph.pool.ctx, d)
	defer cancel()
	select {
	case <-ctx.Done():
	case <-ph.wake:
	}
}

// Wake lets a phone that runs by itself refresh now.
func (ph *Phone) Wake() {
	select {
	case ph.wake <- struct{}{}:
	default:
	}
}

// Last is when the newest registration was acknowledged.
func (ph *Phone) Last() time.Time {
	ph.mu.Lock()
	defer ph.mu.Unlock()
	return ph.last
}
