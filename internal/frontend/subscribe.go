package frontend

import (
	"context"
	"errors"
	"slices"
	"time"

	"rollcall/registrar"
	"rollcall/registrar/sipfront"
)

// Subscribe answers one SUBSCRIBE to a user's registrations (RFC 3680). It goes the ways
// of a REGISTER: served here, handed to the primary, or held until there is one.
func (f *FrontEnd) Subscribe(ctx context.Context, in *sipfront.Inbound) []byte {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.HoldMax)
	defer cancel()
	req := &in.Request
	if refusal := registrar.CheckSubscribe(req, in.Subscribe); refusal != nil {
		return in.Render(*refusal)
	}
	f.adopt(req)
	if in.Subscribe.ToTag != "" {
		req.Domain = req.AOR.Domain() // within a dialog the Request-URI is our Contact
	}
	if reply, ok := f.checkDomains(req); !ok {
		return in.Render(reply)
	}
	user, ok := f.users.Lookup(req.AOR)
	if !ok {
		return in.Render(f.stranger(req))
	}
	a := f.answer(ctx, in, user, false)
	f.boundOver(in.Flow(), req.AOR, a)
	return a.response
}

// serveSubscribe decides a SUBSCRIBE as primary and stores the outcome before it answers. The
// NOTIFY follows by itself. False: the group moved meanwhile.
func (f *FrontEnd) serveSubscribe(ctx context.Context, in *sipfront.Inbound, own *hotCopy) (answered, bool) {
	req := &in.Request
	endTurn, ok := f.turns.take(ctx, req.AOR)
	if !ok {
		return answered{response: in.Render(f.unavailable())}, true
	}
	defer endTurn()
	var sub registrar.Subscription
	d, err := f.change(ctx, own, req.AOR, func(cur registrar.Set, now time.Time) (d registrar.Decision) {
		sub = registrar.Subscription{}
		if !f.isIn(req.AOR, own.group) { // removed meanwhile: see dismissOne, which awaits the turn
			return registrar.Decision{Reply: f.stranger(req)}
		}
		if reply, ok := f.authenticate(cur, req, now); !ok {
			return registrar.Decision{Reply: reply}
		}
		d, sub = registrar.DecideSubscribe(cur, req, in.Subscribe, now, f.cfg.Subscriptions)
		return d
	})
	switch {
	case errors.Is(err, errMoved):
		return answered{}, false
	case err != nil:
		if ctx.Err() == nil {
			f.log.Error("a subscription could not be stored", "aor", req.AOR, "err", err)
		}
		return answered{response: in.Render(f.unavailable())}, true
	}
	a := answered{response: in.Render(d.Reply)}
	if _, stored := d.Next.FindSubscription(sub.Tag); stored {
		_, a.at = own.get(req.AOR)
		a.until = sub.Expires.Unix()
	} else if d.Reply.Status == 200 && !d.Write { // a fetch: its one NOTIFY is all there is
		f.notices.put(own, req.AOR, []registrar.Notice{
			{Subscription: sub, Bindings: d.Next.Bindings, Full: true, Ended: registrar.EndTimeout},
		})
	}
	return a, true
}

// authenticator is who says whether a request may be made: for registrations, or for watching them.
func (f *FrontEnd) authenticator(req *registrar.Request) *registrar.Authenticator {
	if req.Method == "SUBSCRIBE" {
		return f.watchAuth
	}
	return f.auth
}

// mayWatch: everyone himself, and the configured watchers everyone (RFC 3680 §6).
func (f *FrontEnd) mayWatch(user, _ registrar.AOR) bool {
	return slices.Contains(f.cfg.Watchers, user)
}

// watchedOver: somebody is subscribed over this connection.
func watchedOver(subscriptions []registrar.Subscription, flow registrar.Flow) bool {
	return slices.ContainsFunc(subscriptions, func(s registrar.Subscription) bool {
		return s.Flow.ID == flow.ID && s.Flow.FrontEnd == flow.FrontEnd && s.Flow.Boot == flow.Boot && s.Flow.Stream()
	})
}
