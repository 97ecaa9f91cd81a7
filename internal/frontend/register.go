package frontend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"rollcall/bus"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
	"rollcall/routing"
)

// Register answers one REGISTER: find the user and his group, and serve it, hand
// it to the primary, or hold it until there is one.
func (f *FrontEnd) Register(ctx context.Context, in *sipfront.Inbound) []byte {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.HoldMax)
	defer cancel()
	f.flows.enter(in.Flow())
	defer f.flows.leave(in.Flow())
	req := &in.Request
	f.adopt(req)
	if reply, ok := f.checkDomains(req); !ok {
		return in.Render(reply)
	}
	user, ok := f.user(ctx, req)
	if !ok {
		return in.Render(f.stranger(req))
	}
	a := f.answer(ctx, in, user, false)
	f.boundOver(in.Flow(), req.AOR, a)
	return a.response
}

// answered is how a REGISTER was answered.
type answered struct {
	response []byte
	until    int64        // Unix seconds of the end of the binding that the request made; 0: none
	at       bus.Position // of the record with that binding, or a later one
}

// answer directs a REGISTER until somebody answered it. A relayed one is never relayed again.
func (f *FrontEnd) answer(ctx context.Context, in *sipfront.Inbound, user directory.User, relayed bool) answered {
	req := &in.Request
	for {
		gate := f.gates.next(user.Group)
		if f.members.fenced() {
			return answered{response: in.Render(f.unavailable())}
		}
		c := f.view.Load().copies(user.Group)
		own := f.held()[user.Group]
		switch f.cfg.Directing.direct(c, f.cfg.Name, own != nil && own.ready.Load(), req) {
		case serve:
			if a, ok := f.serve(ctx, in, user, own); ok {
				return a
			}
		case redirect:
			if reply, ok := f.redirectTo(req, c); ok {
				return answered{response: in.Render(reply)}
			}
			fallthrough
		case relay:
			if relayed {
				return answered{} // the other Front End looks again
			}
			if a, ok := f.relay(ctx, in, user, c.Primary, gate); ok {
				return a
			}
		}
		if !f.await(ctx, gate) {
			return answered{response: in.Render(f.unavailable())}
		}
	}
}

// await waits for the gate, a while at most, since a gate says nothing of a bus
// that came back; it reports false when the request has been held long enough.
func (f *FrontEnd) await(ctx, gate context.Context) bool {
	t := time.NewTimer(holdAgain)
	defer t.Stop()
	select {
	case <-gate.Done():
		return true
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// holdAgain is how often a held request looks again without having been told to.
const holdAgain = 250 * time.Millisecond

// adopt turns an AOR at one of the pool's own addresses ("sip:alice@127.0.0.1")
// into the user's AOR: a phone that knows no domain is configured that way.
func (f *FrontEnd) adopt(req *registrar.Request) {
	if f.aliases[req.Domain] {
		req.Domain = f.cfg.Domains[0]
	}
	if f.aliases[req.AOR.Domain()] {
		req.AOR = registrar.AOR("sip:" + req.AOR.User() + "@" + f.cfg.Domains[0])
	}
	if f.aliases[req.From.Domain()] {
		req.From = registrar.AOR("sip:" + req.From.User() + "@" + f.cfg.Domains[0])
	}
}

// checkDomains answers 404 for domains that are not served (RFC 3261 §10.3 steps 1 and 5).
func (f *FrontEnd) checkDomains(req *registrar.Request) (registrar.Reply, bool) {
	if !f.domains[req.Domain] || !f.domains[req.AOR.Domain()] {
		return registrar.Reply{Status: 404, Reason: "Domain Not Served Here"}, false
	}
	return registrar.Reply{}, true
}

// user finds the user of a REGISTER. Without authentication a new user is provisioned at his first.
func (f *FrontEnd) user(ctx context.Context, req *registrar.Request) (directory.User, bool) {
	u, ok := f.users.Lookup(req.AOR)
	if ok || f.cfg.Authenticate {
		return u, ok
	}
	if req.AOR.User() == "" || f.users.Len() >= f.cfg.MaxUsers {
		return directory.User{}, false
	}
	u, err := f.users.Provision(ctx, directory.User{AOR: req.AOR})
	if err != nil && !errors.Is(err, directory.ErrExists) {
		f.log.Warn("a user could not be provisioned", "aor", req.AOR, "err", err)
		return directory.User{}, false
	}
	return u, true
}

// stranger answers a REGISTER of nobody. With authentication it looks like a wrong password.
func (f *FrontEnd) stranger(req *registrar.Request) registrar.Reply {
	if !f.cfg.Authenticate {
		return registrar.Reply{Status: 404, Reason: "Not Found"}
	}
	if _, reply, ok := f.authenticator(req).Authenticate(req, f.ha1, time.Now()); !ok {
		return reply
	}
	// He is somebody, but the AOR is not his.
	return registrar.Reply{Status: 403, Reason: "Forbidden"}
}

func (f *FrontEnd) ha1(a registrar.AOR) (map[string]string, bool) {
	u, ok := f.users.Lookup(a)
	return u.HA1, ok
}

// unavailable is the refusal of last resort. Retry-After is spread, so that those
// who were refused together do not come back together.
func (f *FrontEnd) unavailable() registrar.Reply {
	return registrar.Reply{Status: 503, Reason: "Service Unavailable", Headers: []registrar.Header{
		{Name: "Retry-After", Value: strconv.Itoa(2 + rand.IntN(9))},
	}}
}

// redirectTo names the primary's and the secondary's own addresses for the client's
// transport; false if the primary has none.
func (f *FrontEnd) redirectTo(req *registrar.Request, c routing.Copies) (registrar.Reply, bool) {
	var addresses []string
	for _, fe := range []routing.FrontEnd{c.Primary, c.Secondary} {
		if a := f.sipAddress(fe, req.Flow.Transport); a != "" {
			addresses = append(addresses, a)
		} else if fe == c.Primary {
			return registrar.Reply{}, false
		}
	}
	return redirection(req.Flow.Transport, addresses...), true
}

// sipAddress returns a Front End's own host:port for a transport, "" if it has none.
func (f *FrontEnd) sipAddress(fe routing.FrontEnd, transport string) string {
	m, ok := f.address(fe)
	if !ok {
		return ""
	}
	for _, s := range m.SIP {
		if t, a, ok := strings.Cut(s, ":"); ok && t == transport {
			return a
		}
	}
	return ""
}

// serve decides a REGISTER as primary, stores the outcome and answers. The answer
// is given only after the bus has acknowledged the record. False: the group moved meanwhile.
func (f *FrontEnd) serve(ctx context.Context, in *sipfront.Inbound, user directory.User, own *hotCopy) (answered, bool) {
	if in.Subscribe != nil {
		return f.serveSubscribe(ctx, in, own)
	}
	req := &in.Request
	if f.turns.taken(req.AOR) { // who doesn't know the password is not to stand in the user's way
		if reply, ok := f.authenticate(f.current(own, req.AOR), req, time.Now()); !ok {
			return answered{response: in.Render(reply)}, true
		}
	}
	endTurn, ok := f.turns.take(ctx, req.AOR)
	if !ok {
		return answered{response: in.Render(f.unavailable())}, true
	}
	defer endTurn()
	select {
	case f.serving <- struct{}{}:
		defer func() { <-f.serving }()
	case <-ctx.Done():
		return answered{response: in.Render(f.unavailable())}, true
	}
	d, err := f.change(ctx, own, req.AOR, f.deciding(req, user))
	return f.served(ctx, in, own, d, err)
}

// deciding is the decision on a REGISTER of a user.
func (f *FrontEnd) deciding(req *registrar.Request, user directory.User) func(registrar.Set, time.Time) registrar.Decision {
	policy := f.cfg.Policy
	if user.MaxContacts > 0 {
		policy.MaxContacts = user.MaxContacts
	}
	return func(cur registrar.Set, now time.Time) registrar.Decision {
		if !f.isIn(req.AOR, user.Group) { // removed meanwhile: see dismissOne, which awaits the turn
			return registrar.Decision{Reply: f.stranger(req)}
		}
		if reply, ok := f.authenticate(cur, req, now); !ok {
			return registrar.Decision{Reply: reply}
		}
		return registrar.Decide(cur, req, now, policy)
	}
}

// served is the answer to a REGISTER that was decided and stored, or could not be. False: the group moved meanwhile.
func (f *FrontEnd) served(ctx context.Context, in *sipfront.Inbound, own *hotCopy, d registrar.Decision, err error) (answered, bool) {
	req := &in.Request
	if errors.Is(err, errMoved) {
		return answered{}, false
	}
	if err != nil {
		if ctx.Err() == nil {
			f.log.Error("a registration could not be stored", "aor", req.AOR, "err", err)
		}
		return answered{response: in.Render(f.unavailable())}, true
	}
	_, at := own.get(req.AOR)
	return answered{response: in.Render(f.withServiceRoute(d.Reply, req)), until: boundUntil(d), at: at}, true
}

// authenticate checks the digest against the current set, which remembers the nonce counts.
func (f *FrontEnd) authenticate(cur registrar.Set, req *registrar.Request, now time.Time) (registrar.Reply, bool) {
	if !f.cfg.Authenticate {
		return registrar.Reply{}, true
	}
	_, use, reply, ok := f.authenticator(req).AuthenticateWith(cur, req, f.ha1, now)
	req.Nonce = use
	return reply, ok
}

// servedAtOnce bounds the REGISTERs that are being decided and stored. The others wait
// asleep, so that however many come, what keeps this Front End alive gets to run. The
// bus acknowledges in about a millisecond: this is some 100,000 a second.
const servedAtOnce = 256

// current is a user's set as this copy has it now.
func (f *FrontEnd) current(own *hotCopy, user registrar.AOR) registrar.Set {
	data, _ := own.get(user)
	cur, err := f.decode(user, data)
	if err != nil {
		return registrar.Set{}
	}
	return cur
}

// boundUntil returns the latest expiry of the bindings that a decision made or refreshed.
func boundUntil(d registrar.Decision) (until int64) {
	for _, c := range d.Changes {
		switch c.Kind {
		case registrar.Created, registrar.Refreshed, registrar.Shortened:
			until = max(until, c.Binding.Expires.Unix())
		}
	}
	return until
}

// withServiceRoute names this Front End as the way for the client's other requests (RFC 3608).
func (f *FrontEnd) withServiceRoute(r registrar.Reply, req *registrar.Request) registrar.Reply {
	if !f.cfg.ServiceRoute || r.Status != 200 {
		return r
	}
	if a := f.sipAddress(f.cfg.Name, req.Flow.Transport); a != "" {
		r.Headers = append(r.Headers, registrar.Header{Name: "Service-Route",
			Value: fmt.Sprintf("<sip:%s;transport=%s;lr>", a, req.Flow.Transport)})
	}
	return r
}

// errMoved: this Front End does not serve the group any more.
var errMoved = errors.New("the routing group moved")

// storeRetry paces the tries while the bus is away. The request's own deadline bounds them.
const storeRetry = 50 * time.Millisecond

// change decides on a user's current set and stores the outcome with
// compare-and-swap, deciding again whenever somebody else wrote. The caller has the user's turn.
func (f *FrontEnd) change(ctx context.Context, own *hotCopy, user registrar.AOR,
	decide func(registrar.Set, time.Time) registrar.Decision) (registrar.Decision, error) {
	for {
		p, err := f.propose(own, user, decide)
		if err != nil || !p.Write {
			return p.Decision, err
		}
		at, err := f.bus.Bindings().Append(ctx, p.record, p.ttl)
		if done, err := f.settle(ctx, own, p, at, err); done || err != nil {
			return p.Decision, err
		}
	}
}

// proposal is a decision that is to be stored.
type proposal struct {
	registrar.Decision
	cur    registrar.Set // on which it was decided
	owed   []registrar.Notice
	record bus.Record
	ttl    time.Duration
}

// propose decides on a user's current set. The caller has the user's turn.
func (f *FrontEnd) propose(own *hotCopy, user registrar.AOR, decide func(registrar.Set, time.Time) registrar.Decision) (proposal, error) {
	now := time.Now()
	data, position := own.get(user)
	cur, err := f.decode(user, data)
	if err != nil {
		return proposal{}, err
	}
	d := decide(cur, now)
	if !d.Write {
		return proposal{Decision: d}, nil
	}
	owed := d.Owed(cur, func(s registrar.Subscription) bool { return f.notices.waiting(user, s) }) // numbers them in d
	next, err := registrar.EncodeSet(d.Next)
	if err != nil {
		return proposal{}, fmt.Errorf("encode the bindings: %w", err)
	}
	return proposal{
		Decision: d, cur: cur, owed: owed,
		record: bus.Record{Group: string(own.group), User: string(user), Position: position, Data: next},
		ttl:    recordTTL(d.Next, now, f.cfg.Policy.Grace),
	}, nil
}

// settle takes a proposal over that was stored at a position, or finds out what became of it.
// False: it was not stored, and the copy is up to date for another one.
func (f *FrontEnd) settle(ctx context.Context, own *hotCopy, p proposal, at bus.Position, err error) (bool, error) {
	r := p.record
	if err == nil {
		r.Position = at
	} else if stored, err := f.reread(ctx, own, r, err); err != nil || !stored {
		return false, err
	} else {
		_, r.Position = own.get(registrar.AOR(r.User))
	}
	f.notices.put(own, registrar.AOR(r.User), p.owed)
	return true, f.stored(own, r, p.cur, p.Decision)
}

func (f *FrontEnd) stored(own *hotCopy, r bus.Record, cur registrar.Set, d registrar.Decision) error {
	f.events.registered(own.group, registrar.AOR(r.User), d.Changes)
	err := own.apply(r, time.Now())
	f.release(registrar.AOR(r.User), cur, d, r.Position)
	return err
}

// decode returns a user's set; a record that cannot be read counts as none, since
// the user must be able to register again.
func (f *FrontEnd) decode(user registrar.AOR, data []byte) (registrar.Set, error) {
	if data == nil {
		return registrar.Set{}, nil
	}
	s, err := registrar.DecodeSet(data)
	if err != nil {
		f.log.Error("a stored record cannot be read and is replaced", "aor", user, "err", err)
		return registrar.Set{}, nil
	}
	return s, nil
}

// reread brings the copy up to date after a write that conflicted or whose outcome
// is unknown. It reports true if the log holds our very record after all.
func (f *FrontEnd) reread(ctx context.Context, own *hotCopy, ours bus.Record, cause error) (bool, error) {
	for {
		if !errors.Is(cause, bus.ErrConflict) {
			pause(ctx, storeRetry)
		}
		if ctx.Err() != nil {
			return false, fmt.Errorf("store the bindings: %w", cause)
		}
		if f.members.fenced() || !own.ready.Load() {
			return false, errMoved
		}
		last, err := f.bus.Bindings().Last(ctx, ours.Group, ours.User)
		switch {
		case err == nil:
			return string(last.Data) == string(ours.Data) && !errors.Is(cause, bus.ErrConflict), own.apply(last, time.Now())
		case errors.Is(err, bus.ErrNotFound):
			own.forget(registrar.AOR(ours.User), ours.Position)
			return false, nil
		default:
			cause = err
		}
	}
}
