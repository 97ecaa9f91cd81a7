package phone

import (
	"time"

	"rollcall/loadtest/behaviour"
)

// attempt begins a registration attempt, or goes on with one at the next address.
func (p *Phone) attempt(refresh bool, now time.Duration, out *Out) {
	if p.quit || p.cycle.open {
		return
	}
	p.cycle = cycle{open: true, began: now, firstSent: Never}
	p.timer[tAttempt], p.timer[tRefresh] = Never, Never
	out.fact(Fact{Kind: FactAttempt, Re: p.ever})
	p.gap.tried(now)
	if refresh && p.cfg.Behaviour.RefreshAt == "first" && (p.target != 0 || p.detour != "") {
		p.target, p.detour = 0, ""
		p.dial(out)
		return
	}
	if !p.linked || p.moved {
		p.dial(out)
		return
	}
	p.register(now, out)
}

func (p *Phone) dial(out *Out) {
	p.state = Connecting
	p.cycle.dialing, p.moved = true, false
	address := p.detour
	if address == "" {
		address = p.cfg.Targets[p.target]
	}
	out.dial(address)
}

func (p *Phone) connected(local string, now time.Duration, out *Out) {
	if !p.cycle.dialing {
		out.close(false) // nobody waits for it any more
		return
	}
	p.cycle.dialing = false
	p.linked, p.local = true, local
	out.fact(Fact{Kind: FactConnected, Dur: now - p.cycle.began})
	p.armKeepAlive(now)
	if s := p.cfg.Behaviour.Settle; s != nil {
		p.timer[tSend] = now + s.Pick(p.random())
		return
	}
	p.register(now, out)
}

func (p *Phone) connectFailed(word string, now time.Duration, out *Out) {
	if !p.cycle.dialing {
		return
	}
	p.cycle.dialing = false
	out.fact(Fact{Kind: FactConnectFailed, Word: word})
	if p.cfg.Behaviour.RefusedNext && p.nextAddress(out) {
		return
	}
	if p.linked { // a refresh tried another address first; the old connection still serves
		p.register(now, out)
		return
	}
	p.fail(0, word, -1, now, out)
}

// nextAddress goes on at the next address within the same attempt; false when all were tried.
func (p *Phone) nextAddress(out *Out) bool {
	if p.cycle.refused >= len(p.cfg.Targets)-1 {
		return false
	}
	p.cycle.refused++
	p.target, p.detour = (p.target+1)%len(p.cfg.Targets), ""
	p.dial(out)
	return true
}

// fail ends an attempt without success, and sets the next one up as the behaviour has it.
func (p *Phone) fail(status int, word string, retryAfter int, now time.Duration, out *Out) {
	if p.tx.open {
		p.forget(false)
	}
	p.cycle.open, p.cycle.dialing = false, false
	p.timer[tSend] = Never
	p.fails++
	out.fact(Fact{Kind: FactFailed, Code: status, Word: word})
	if p.quit {
		p.off(out)
		return
	}
	b := p.cfg.Behaviour
	r := b.React(status, word)
	switch {
	case r.Kind == behaviour.ReactNever, b.GiveUpAfter > 0 && p.fails >= b.GiveUpAfter:
		p.state = Parked
		p.timer[tAttempt], p.timer[tRefresh] = Never, Never
		out.fact(Fact{Kind: FactParked})
		return
	case r.Kind == behaviour.ReactNext && p.fails < len(p.cfg.Targets):
		p.move((p.target+1)%len(p.cfg.Targets), out)
		p.wait(0, now)
		return
	}
	wait := p.retryWait()
	if r.Kind == behaviour.ReactAfter {
		wait = r.Wait.Pick(p.random())
	}
	if b.RetryAfter && retryAfter >= 0 {
		wait = time.Duration(retryAfter) * time.Second
	}
	switch b.After {
	case "next":
		p.move((p.target+1)%len(p.cfg.Targets), out)
	case "first":
		p.move(0, out)
	}
	p.wait(wait, now)
}

func (p *Phone) retryWait() time.Duration {
	list := p.cfg.Behaviour.Retry
	return list[min(max(p.fails, 1), len(list))-1].Pick(p.random())
}

// wait sets the next attempt up. It is never in the same instant for ever: a wait of
// nothing after the second failure in a row is stretched, so that no phone can spin.
func (p *Phone) wait(d, now time.Duration) {
	if p.fails > len(p.cfg.Targets)+1 {
		d = max(d, 10*time.Millisecond)
	}
	p.state = Waiting
	p.timer[tAttempt], p.timer[tRefresh] = now+d, Never
}

// move changes the address of the next attempt. A phone that goes elsewhere leaves its
// connection when the new one is there, as the engine replaces it.
func (p *Phone) move(target int, out *Out) {
	if target == p.target && p.detour == "" {
		return
	}
	p.target, p.detour, p.moved = target, "", true
	if p.linked && !p.bound {
		out.close(false)
		p.unlink()
	}
}

// lost takes the end of the connection in.
func (p *Phone) lost(cause string, now time.Duration, out *Out) {
	if !p.linked {
		return
	}
	if p.cfg.Transport == "udp" && cause == "icmp" {
		p.unreachable(now, out)
		return
	}
	p.unlink()
	out.fact(Fact{Kind: FactLost, Word: cause})
	if p.quit {
		p.off(out)
		return
	}
	wasBound := p.bound
	if p.bound {
		p.unbind(out)
		p.openGap(cause, now, out)
	}
	if p.cycle.dialing {
		return // it is connecting elsewhere already
	}
	inFlight := p.cycle.open
	if inFlight && !wasBound {
		p.fail(0, "closed", -1, now, out)
		return
	}
	if inFlight {
		p.forget(false)
		p.cycle.open = false
		p.timer[tSend] = Never
		out.fact(Fact{Kind: FactFailed, Word: "closed"})
	}
	if wasBound {
		p.react(cause, inFlight, now)
	}
}

// react is what a registered phone does when its connection is gone: come back as
// its behaviour has it, or not notice before its next refresh.
func (p *Phone) react(cause string, inFlight bool, now time.Duration) {
	span := p.cfg.Behaviour.RST
	if cause == "fin" {
		span = p.cfg.Behaviour.FIN
	}
	switch {
	case span != nil:
		p.wait(span.Pick(p.random()), now)
	case inFlight, p.timer[tRefresh] == Never && p.timer[tAttempt] == Never && p.state != Parked:
		p.wait(p.retryWait(), now)
	default:
		if p.state != Parked {
			p.state = Waiting
		}
	}
}

// unreachable is a port unreachable of a UDP socket: most phones ignore it.
func (p *Phone) unreachable(now time.Duration, out *Out) {
	out.fact(Fact{Kind: FactLost, Word: "icmp"})
	if !p.cycle.open || !p.tx.open || p.cfg.Behaviour.ICMP != "next" {
		return
	}
	p.forget(false)
	if p.nextAddress(out) {
		return
	}
	p.fail(0, "refused", -1, now, out)
}

func (p *Phone) unlink() {
	p.linked = false
	p.timer[tKeep], p.timer[tPong] = Never, Never
}

// armKeepAlive sets the next keep-alive up.
func (p *Phone) armKeepAlive(now time.Duration) {
	span := p.cfg.Behaviour.KeepAliveStream
	if p.cfg.Transport == "udp" {
		span = p.cfg.Behaviour.KeepAliveUDP
	}
	if span != nil {
		p.timer[tKeep] = now + span.Pick(p.random())
	}
}

func (p *Phone) keepAlive(now time.Duration, out *Out) {
	if !p.linked {
		return
	}
	udp := p.cfg.Transport == "udp"
	ping := "\r\n\r\n"
	if udp && p.cfg.Behaviour.KeepAliveCRLF {
		ping = "\r\n"
	}
	out.send([]byte(ping))
	p.armKeepAlive(now)
	if d := p.cfg.Behaviour.PongTimeout; d > 0 && !udp && p.timer[tPong] == Never {
		p.timer[tPong] = now + d
	}
}

// end unregisters, if that is the phone's way, and ends it.
func (p *Phone) end(now time.Duration, out *Out) {
	p.quit = true
	p.timer[tAttempt], p.timer[tRefresh], p.timer[tSend], p.timer[tKeep] = Never, Never, Never, Never
	if !p.linked || !p.bound || !p.cfg.Behaviour.Unregister {
		p.off(out)
		return
	}
	if p.tx.open {
		p.forget(false)
	}
	p.cycle = cycle{open: true, began: now, firstSent: Never}
	p.tx.remove = true
	p.register(now, out)
}

func (p *Phone) off(out *Out) {
	if p.linked {
		out.close(false)
		p.unlink()
	}
	if p.bound {
		p.unbind(out)
	}
	p.state = Off
	for i := range p.timer {
		p.timer[i] = Never
	}
}

func (p *Phone) unbind(out *Out) {
	if p.bound {
		p.bound = false
		p.timer[tExpire] = Never
		out.fact(Fact{Kind: FactUnbound})
	}
}
