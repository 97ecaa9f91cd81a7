package frontend

import (
	"context"

	"rollcall/bus"
	"rollcall/internal/directory"
	"rollcall/registrar"
	"rollcall/registrar/sipfront"
)

// RegisterPromptly answers a REGISTER without a goroutine of its own, which would cost about as
// much as all the rest: it decides on the goroutine that read the request, sends the record off,
// and answers when the bus has acknowledged it. It takes the usual case only. False: this Front End
// is not the ready primary, or something would have to be waited for; Register is to answer.
func (f *FrontEnd) RegisterPromptly(ctx context.Context, in *sipfront.Inbound, answer func(response []byte)) bool {
	user, own, ok := f.servedHere(in)
	if !ok {
		return false
	}
	endTurn, ok := f.tryTurn(in.Request.AOR)
	if !ok {
		return false
	}
	handedOn := false
	defer func() { // after a panic too
		if !handedOn {
			endTurn()
		}
	}()
	finish := func(a answered) {
		f.boundOver(in.Flow(), in.Request.AOR, a)
		answer(a.response)
	}
	p, err := f.propose(own, in.Request.AOR, f.deciding(&in.Request, user))
	if err != nil || !p.Write {
		a, _ := f.served(ctx, in, own, p.Decision, err)
		finish(a)
		return true
	}
	handedOn = true
	f.work.Add(1)
	f.bus.Bindings().AppendThen(p.record, p.ttl, func(at bus.Position, err error) {
		if err != nil { // somebody else wrote, or the outcome is unknown: it takes longer
			go func() {
				defer f.work.Done()
				finish(f.persist(ctx, in, user, own, p, err, endTurn))
			}()
			return
		}
		defer f.work.Done()
		_, err = f.settle(ctx, own, p, at, nil)
		a, _ := f.served(ctx, in, own, p.Decision, err)
		endTurn()
		finish(a)
	})
	return true
}

// servedHere reports whether a REGISTER is one that RegisterPromptly takes.
func (f *FrontEnd) servedHere(in *sipfront.Inbound) (user directory.User, own *hotCopy, ok bool) {
	req := &in.Request
	f.adopt(req)
	if _, ok := f.checkDomains(req); !ok || in.Flow().Stream() || f.auth.Bearer != nil || f.members.fenced() {
		return user, nil, false
	}
	if user, ok = f.users.Lookup(req.AOR); !ok {
		return user, nil, false
	}
	own = f.held()[user.Group]
	c := f.view.Load().copies(user.Group)
	ready := own != nil && own.ready.Load()
	return user, own, f.cfg.Directing.direct(c, f.cfg.Name, ready, req) == serve
}

// tryTurn takes the user's turn, and a place among those served at once, if both are free.
func (f *FrontEnd) tryTurn(user registrar.AOR) (end func(), ok bool) {
	select {
	case f.serving <- struct{}{}:
	default:
		return nil, false
	}
	endTurn, ok := f.turns.try(user)
	if !ok {
		<-f.serving
		return nil, false
	}
	return func() { endTurn(); <-f.serving }, true
}

// persist goes on where a record could not simply be stored, and returns the answer in the end.
func (f *FrontEnd) persist(ctx context.Context, in *sipfront.Inbound, user directory.User, own *hotCopy,
	p proposal, cause error, endTurn func()) answered {
	ctx, cancel := context.WithTimeout(ctx, f.cfg.HoldMax)
	defer cancel()
	done, err := f.settle(ctx, own, p, 0, cause)
	if err == nil && !done {
		p.Decision, err = f.change(ctx, own, in.Request.AOR, f.deciding(&in.Request, user))
	}
	a, here := f.served(ctx, in, own, p.Decision, err)
	endTurn()
	if !here { // the group moved meanwhile
		a = f.answer(ctx, in, user, false)
	}
	return a
}
