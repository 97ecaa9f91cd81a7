package phone

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rollcall/loadtest/digest"
	"rollcall/loadtest/sipwire"
)

const t2 = 4 * time.Second // RFC 3261 §17.1.2.1

func (p *Phone) t1() time.Duration {
	if p.cfg.T1 > 0 {
		return p.cfg.T1
	}
	return 500 * time.Millisecond
}

func (p *Phone) timeout() time.Duration {
	if p.cfg.Timeout > 0 {
		return p.cfg.Timeout
	}
	return 32 * time.Second
}

// register sends a new REGISTER over the connection.
func (p *Phone) register(now time.Duration, out *Out) {
	p.state = Registering
	p.cseq++
	p.tx = transaction{open: true, remove: p.tx.remove && p.quit, lastSent: now}
	if p.challenge != nil && (p.cycle.challenge > 0 || p.reuses()) {
		p.tx.authed, p.tx.cached = true, p.cycle.challenge == 0
		p.nc++
		p.tx.nc = p.nc
		if p.cfg.Behaviour.Nonce == "same-nc" {
			p.tx.nc = 1
		}
	}
	if p.cycle.firstSent == Never {
		p.cycle.firstSent = now
	}
	p.timer[tTimeout] = now + p.timeout()
	if p.quit {
		p.timer[tTimeout] = now + min(p.timeout(), 2*time.Second)
	}
	if p.cfg.Transport == "udp" {
		p.tx.interval = p.t1()
		p.timer[tRetransmit] = now + p.tx.interval
	}
	p.write(out)
	out.fact(Fact{Kind: FactSent})
}

func (p *Phone) reuses() bool { n := p.cfg.Behaviour.Nonce; return n == "reuse" || n == "same-nc" }

// retransmit sends the same bytes again (RFC 3261 §17.1.2.2): all of a REGISTER follows
// from its CSeq and the challenge, so that nothing is kept.
func (p *Phone) retransmit(now time.Duration, out *Out) {
	if !p.tx.open {
		return
	}
	p.tx.lastSent = now
	p.tx.interval = min(2*p.tx.interval, t2)
	p.timer[tRetransmit] = now + p.tx.interval
	p.write(out)
	out.fact(Fact{Kind: FactSent, Re: true})
}

func (p *Phone) timedOut(now time.Duration, out *Out) {
	if !p.tx.open {
		return
	}
	first := p.cycle.firstSent
	p.forget(false)
	if p.bound {
		p.openGap("no-answer", first, out)
		p.gap.tried(first)
	}
	if p.cfg.Transport != "udp" && p.linked && !p.quit {
		out.close(true) // a connection over which nobody answers is no connection
		p.unlink()
		p.unbind(out)
	}
	p.fail(0, "timeout", -1, now, out)
}

// forget closes the transaction and keeps its fate.
func (p *Phone) forget(answered bool) {
	p.tx.open = false
	p.timer[tRetransmit], p.timer[tTimeout] = Never, Never
	copy(p.fates[1:], p.fates[:len(p.fates)-1])
	p.fates[0] = fate{cseq: p.cseq, answered: answered}
}

// branch of a REGISTER: it names the phone and the CSeq, so that any answer can be told.
func (p *Phone) branch(cseq uint32) string {
	return fmt.Sprintf("z9hG4bKst%x.%x.%x", p.index, cseq, uint32(p.cfg.Seed))
}

func (p *Phone) callID() string { return fmt.Sprintf("storm-%x-%x", p.cfg.Seed, p.index) }

func (p *Phone) uri() string { return "sip:" + p.cfg.Domain }

func (p *Phone) contact() string {
	host := p.local
	if h := p.cfg.Behaviour.ContactHost; h != "" {
		host = h
	}
	if p.cfg.Transport == "udp" {
		return "sip:" + p.user + "@" + host
	}
	transport := p.cfg.Transport
	if transport == "wss" {
		transport = "ws" // RFC 7118 §5.1: there is no transport=wss
	}
	return "sip:" + p.user + "@" + host + ";transport=" + transport
}

// instance is a UUID made of the seed and the number of the phone: kept over restarts of a run.
func (p *Phone) instance() string {
	a, b := mix(p.cfg.Seed+uint64(p.index)), mix(p.cfg.Seed^uint64(p.index)<<32)
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(a), uint16(a>>32), uint16(a>>48)&0xfff, uint16(b>>48)&0xfff, b&0xffffffffffff)
}

// write puts the present REGISTER into out.
func (p *Phone) write(out *Out) {
	b := p.cfg.Behaviour
	r := sipwire.Register{
		URI: p.uri(), Transport: strings.ToUpper(p.cfg.Transport), SentBy: p.local, Branch: p.branch(p.cseq),
		AOR: "sip:" + p.user + "@" + p.cfg.Domain, FromTag: strconv.FormatUint(uint64(p.index)+1, 36), CallID: p.callID(), CSeq: p.cseq,
		Contact: p.contact(), Expires: p.expires, Supported: b.Supported, UserAgent: b.UserAgent,
		ContactExpiry: b.ExpiryIn == "contact" || b.ExpiryIn == "both", HeaderExpiry: b.ExpiryIn != "contact",
	}
	if b.Instance {
		r.ContactParams = `;+sip.instance="<urn:uuid:` + p.instance() + `>"`
	}
	if b.RegID > 0 && p.cfg.Transport != "udp" {
		r.ContactParams += ";reg-id=" + strconv.Itoa(b.RegID)
	}
	if p.tx.remove {
		r.Expires = 0
	}
	if p.tx.authed {
		r.Authorization = []string{"Authorization: " + digest.Authorization(p.challenge, &digest.Request{
			Username: p.user, Password: p.password, Method: "REGISTER", URI: r.URI, NC: p.tx.nc,
			CNonce: strconv.FormatUint(mix(uint64(p.index)<<32|uint64(p.cseq)), 36),
		})}
	}
	start := len(out.buf)
	out.buf = sipwire.AppendRegister(out.buf, &r)
	out.send(out.buf[start:])
}
