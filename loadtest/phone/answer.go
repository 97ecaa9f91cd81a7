package phone

import (
	"strconv"
	"strings"
	"time"

	"rollcall/loadtest/digest"
	"rollcall/loadtest/sipwire"
)

// Limits within one attempt, against a registrar that never lets it end.
const (
	maxChallenges = 3
	maxRaised     = 2
	maxRedirects  = 3
)

// response tells first what kind of answer it is, and acts only on the one waited for.
func (p *Phone) response(m *sipwire.Message, now time.Duration, out *Out) {
	out.fact(Fact{Kind: FactResponse, Code: m.Status})
	if odd := p.odd(m); odd != "" {
		out.fact(Fact{Kind: FactOdd, Word: odd})
		return
	}
	if m.Status < 200 {
		if p.cfg.Transport == "udp" {
			p.tx.interval = t2 // RFC 3261 §17.1.2.2: Proceeding
			p.timer[tRetransmit] = now + t2
		}
		return
	}
	p.forget(true)
	if p.tx.remove {
		p.removed(m, now, out)
		return
	}
	switch {
	case m.Status < 300:
		p.accepted(m, now, out)
	case m.Status == 401 || m.Status == 407:
		p.challenged(m, now, out)
	case m.Status == 423 && m.MinExpires > p.expires && p.cycle.raised < maxRaised:
		p.cycle.raised++
		p.expires = m.MinExpires
		p.register(now, out)
	case m.Status < 400 && p.follows(m):
		p.cycle.redirects++
		p.detour = hostPort(m.Contacts[0].URI)
		p.dial(out)
	default:
		p.fail(m.Status, "", m.RetryAfter, now, out)
	}
}

// odd says why an answer is not the one waited for; "" if it is.
func (p *Phone) odd(m *sipwire.Message) string {
	if m.CSeqMethod != "REGISTER" || m.CallID != p.callID() || m.Branch != p.branch(m.CSeq) {
		return "stray"
	}
	if p.tx.open && m.CSeq == p.cseq {
		return ""
	}
	for _, f := range p.fates {
		switch {
		case f.cseq != m.CSeq || f.cseq == 0:
		case f.answered && m.Status >= 200:
			return "duplicate"
		default:
			return "late"
		}
	}
	if m.CSeq > 0 && m.CSeq <= p.cseq {
		return "late"
	}
	return "stray"
}

func (p *Phone) accepted(m *sipwire.Message, now time.Duration, out *Out) {
	granted, listed := p.granted(m)
	if !listed {
		out.fact(Fact{Kind: FactOdd, Word: "not-listed"})
		p.fail(0, "not-listed", -1, now, out)
		return
	}
	out.fact(Fact{Kind: FactOK, Dur: now - p.cycle.firstSent, Re: p.ever})
	if !p.bound {
		p.bound = true
		out.fact(Fact{Kind: FactBound})
	}
	p.cycle.open = false
	p.fails, p.ever, p.state = 0, true, Registered
	p.timer[tExpire] = now + granted
	p.timer[tRefresh] = now + p.cfg.Behaviour.RefreshIn(granted, p.random())
	if p.cfg.Behaviour.FlowTimer && m.FlowTimer > 0 && p.cfg.Transport != "udp" {
		d := time.Duration(m.FlowTimer) * time.Second
		p.timer[tKeep] = now + d*4/5 + time.Duration(p.random()*float64(d/5)) // RFC 5626 §4.4.1: 80 to 100 %
	}
	p.closeGap(now, out)
}

// granted finds the phone's own contact in a 200 and its time. A registrar that lists a
// single contact may have rewritten it; it counts as the phone's own.
func (p *Phone) granted(m *sipwire.Message) (time.Duration, bool) {
	mine := p.contact()
	for _, c := range m.Contacts {
		if c.URI != mine && len(m.Contacts) > 1 && !sameUser(c.URI, mine) {
			continue
		}
		e := c.Expires
		if e < 0 {
			e = m.Expires
		}
		if e < 0 {
			e = p.expires
		}
		return time.Duration(e) * time.Second, e > 0
	}
	return 0, false
}

// sameUser compares user@host:port without case and parameters.
func sameUser(a, b string) bool {
	a, _, _ = strings.Cut(a, ";")
	b, _, _ = strings.Cut(b, ";")
	return strings.EqualFold(a, b)
}

func (p *Phone) challenged(m *sipwire.Message, now time.Duration, out *Out) {
	c, err := digest.Choose(m.Challenges)
	if err != nil {
		p.fail(m.Status, "algorithm", -1, now, out)
		return
	}
	// An answer to the challenge just given, refused with a challenge that is not stale: wrong credentials.
	refused := p.tx.authed && !p.tx.cached && !c.Stale
	if refused || p.cycle.challenge >= maxChallenges {
		p.challenge = nil
		p.fail(m.Status, "credentials", -1, now, out)
		return
	}
	p.challenge, p.nc = &c, 0
	p.cycle.challenge++
	p.register(now, out)
}

func (p *Phone) follows(m *sipwire.Message) bool {
	policy := p.cfg.Behaviour.Follow3xx
	if len(m.Contacts) == 0 || hostPort(m.Contacts[0].URI) == "" || p.cycle.redirects >= maxRedirects {
		return false
	}
	return policy == "always" || policy == "initial" && !p.tx.authed
}

// hostPort of a SIP URI; the default port is filled in.
func hostPort(uri string) string {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || !strings.EqualFold(scheme, "sip") && !strings.EqualFold(scheme, "sips") {
		return ""
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 {
		rest = rest[i+1:]
	}
	rest, _, _ = strings.Cut(rest, ";")
	rest, _, _ = strings.Cut(rest, "?")
	if rest == "" {
		return ""
	}
	if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, ']') {
		if _, err := strconv.ParseUint(rest[i+1:], 10, 16); err != nil {
			return ""
		}
		return rest
	}
	if strings.EqualFold(scheme, "sips") {
		return rest + ":5061"
	}
	return rest + ":5060"
}

// removed takes the answer to an un-REGISTER in.
func (p *Phone) removed(m *sipwire.Message, now time.Duration, out *Out) {
	if c, err := digest.Choose(m.Challenges); err == nil && p.cycle.challenge < maxChallenges {
		p.challenge, p.nc = &c, 0
		p.cycle.challenge++
		p.register(now, out)
		return
	}
	if m.Status < 300 {
		out.fact(Fact{Kind: FactUnregistered})
	} else {
		out.fact(Fact{Kind: FactFailed, Code: m.Status, Word: "unregister"})
	}
	p.off(out)
}

// request answers a request from the registrar (softphones answer OPTIONS and NOTIFY and do nothing).
func (p *Phone) request(m *sipwire.Message, out *Out) {
	out.fact(Fact{Kind: FactRequest, Word: m.Method})
	status, reason := 405, "Method Not Allowed"
	switch m.Method {
	case "ACK":
		return
	case "OPTIONS", "NOTIFY", "MESSAGE":
		status, reason = 200, "OK"
	case "INVITE":
		status, reason = 486, "Busy Here"
	case "CANCEL", "BYE":
		status, reason = 481, "Call/Transaction Does Not Exist"
	}
	start := len(out.buf)
	out.buf = sipwire.AppendAnswer(out.buf, m, status, reason, strconv.FormatUint(uint64(p.index)+1, 36), "Allow: OPTIONS, NOTIFY, MESSAGE")
	out.send(out.buf[start:])
}
