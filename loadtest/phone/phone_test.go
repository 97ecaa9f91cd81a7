package phone

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rollcall/loadtest/behaviour"
	"rollcall/loadtest/sipwire"
)

const s = time.Second

// bench drives one phone by hand.
type bench struct {
	t     *testing.T
	p     *Phone
	out   Out
	facts []Fact
	dials []string
	sent  []string
	ended int // connections that the phone closed
}

func newBench(t *testing.T, b *behaviour.Behaviour, targets ...string) *bench {
	t.Helper()
	if len(targets) == 0 {
		targets = []string{"a:1"}
	}
	if len(b.Retry) == 0 {
		b.Retry = []behaviour.Span{{Min: 3 * s, Max: 3 * s}}
	}
	cfg := &Config{Behaviour: b, Transport: "tcp", Domain: "d", Targets: targets, Expires: 100}
	return &bench{t: t, p: New(cfg, 0, "u", "pw", 0, 0)}
}

func (b *bench) do(ev Event, at time.Duration) {
	b.out.Reset()
	b.p.Handle(ev, at, &b.out)
	b.facts = append(b.facts, b.out.Facts...)
	for _, a := range b.out.Acts {
		switch a.Kind {
		case Dial:
			b.dials = append(b.dials, a.Target)
		case Send:
			b.sent = append(b.sent, string(a.Data))
		default:
			b.ended++
		}
	}
}

// until ticks the phone at each of its wakes up to the time at.
func (b *bench) until(at time.Duration) {
	for range 1000 {
		w := b.p.Wake()
		if w > at {
			return
		}
		b.do(Event{Kind: Tick}, w)
	}
	b.t.Fatal("the phone spins")
}

// answer answers the newest REGISTER.
func (b *bench) answer(at time.Duration, status int, fields ...string) {
	b.t.Helper()
	m, err := sipwire.Parse([]byte(b.sent[len(b.sent)-1]))
	if err != nil {
		b.t.Fatal(err)
	}
	if status == 200 {
		fields = append(fields, fmt.Sprintf("Contact: <%s>;expires=100", m.Contacts[0].URI))
	}
	a, err := sipwire.Parse(sipwire.AppendAnswer(nil, &m, status, "x", "t", fields...))
	if err != nil {
		b.t.Fatal(err)
	}
	b.do(Event{Kind: Message, Message: &a}, at)
}

func (b *bench) register(at time.Duration, fields ...string) {
	b.t.Helper()
	b.until(at)
	b.do(Event{Kind: Connected, Text: "10.0.0.1:5000"}, at)
	b.answer(at, 200, fields...)
	if !b.p.Bound() {
		b.t.Fatal("not registered")
	}
}

func profile(t *testing.T, name string) *behaviour.Behaviour {
	t.Helper()
	all, err := behaviour.Profiles()
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range all {
		if b.Name == name {
			return b
		}
	}
	t.Fatalf("no profile %s", name)
	return nil
}

// Each profile comes back from a closed connection when the real phone was seen to.
func TestProfilesComeBackAsMeasured(t *testing.T) {
	for _, c := range []struct {
		name, how string
		min, max  time.Duration // from the close, at 10 s, to the attempt; Expires is 100 s
	}{
		{"eager", "rst", 0, 200 * time.Millisecond},
		{"outbound", "fin", 30 * s, 60 * s},
		{"linphone", "fin", 20 * time.Millisecond, 50 * time.Millisecond},
		{"baresip", "rst", 86 * s, 86 * s}, // its refresh, 90 s after its 200 at 6 s
		{"pjsip", "fin", 0, 10 * s},
		{"pjsua", "rst", 50 * s, 70 * s},
		{"jssip", "fin", 2 * s, 2 * s},
		{"sipjs", "fin", 95 * s, 95 * s},
		{"sipjs-sm", "rst", 0, 10 * time.Millisecond},
		{"twinkle", "rst", 5 * time.Millisecond, 5 * time.Millisecond},
		{"twinkle", "fin", 0, 30 * s},
		{"sofia", "fin", s, s},
		{"jami", "rst", 91 * s, 91 * s},
	} {
		b := newBench(t, profile(t, c.name))
		b.until(0)
		b.do(Event{Kind: Connected, Text: "10.0.0.1:5000"}, 0)
		b.until(6 * s) // SessionManager lets the connection settle
		b.answer(6*s, 200)
		lost := 10 * s
		b.do(Event{Kind: Lost, Text: c.how}, lost)
		if got := b.p.Wake() - lost; got < c.min || got > c.max {
			t.Errorf("%s after %s: attempt after %v, want %v to %v", c.name, c.how, got, c.min, c.max)
		}
		if gap, open := b.p.OpenGap(); !open || gap.Lost != lost || gap.Cause != c.how {
			t.Errorf("%s: gap %+v %v", c.name, gap, open)
		}
	}
}

// A missing pong ends the connection; one that comes does not.
func TestMissingPong(t *testing.T) {
	for _, pong := range []bool{true, false} {
		b := newBench(t, &behaviour.Behaviour{KeepAliveStream: &behaviour.Span{Min: 10 * s, Max: 10 * s}, PongTimeout: s, RST: &behaviour.Span{}})
		b.register(0)
		b.until(10 * s)
		if b.sent[len(b.sent)-1] != "\r\n\r\n" {
			t.Fatalf("sent %q", b.sent)
		}
		if pong {
			b.do(Event{Kind: Pong}, 10*s)
		}
		b.until(12 * s)
		gap, open := b.p.OpenGap()
		if open == pong || open && (gap.Cause != "pong" || gap.Lost != 11*s) {
			t.Errorf("pong %v: gap %+v %v", pong, gap, open)
		}
	}
}

// Flow-Timer sets the keep-alive to 80 to 100 % of it, for those that heed it.
func TestFlowTimer(t *testing.T) {
	b := newBench(t, &behaviour.Behaviour{FlowTimer: true})
	b.register(0, "Require: outbound", "Flow-Timer: 20")
	if w := b.p.Wake(); w < 16*s || w > 20*s {
		t.Errorf("keep-alive at %v, want 16 s to 20 s", w)
	}
}

// A refused refresh goes to the next address over a new connection, while the old one still stands.
func TestRefusedRefreshMovesToTheNextAddress(t *testing.T) {
	b := newBench(t, &behaviour.Behaviour{After: "next"}, "a:1", "b:2")
	b.register(0)
	b.until(90 * s) // 90 % of 100 s
	b.answer(90*s, 503)
	b.until(93 * s)
	if got := strings.Join(b.dials, " "); got != "a:1 b:2" || !b.p.Bound() {
		t.Errorf("dialled %s, registered %v", got, b.p.Bound())
	}
	b.do(Event{Kind: Connected, Text: "10.0.0.1:5001"}, 93*s)
	b.answer(93*s, 200)
	if _, open := b.p.OpenGap(); open || b.p.State() != Registered {
		t.Errorf("a gap though it never lost its registration, or %v", b.p.State())
	}
}

// A binding that lapses opens a gap at the moment it lapses, however late the phone wakes.
func TestLapsedBinding(t *testing.T) {
	b := newBench(t, &behaviour.Behaviour{On: map[string]behaviour.Reaction{"403": {Kind: behaviour.ReactNever}}})
	b.register(0)
	b.until(90 * s)
	b.answer(90*s, 403)
	if b.p.State() != Parked || !b.p.Bound() {
		t.Errorf("%v %v", b.p.State(), b.p.Bound())
	}
	b.do(Event{Kind: Tick}, 107*s)
	if gap, open := b.p.OpenGap(); !open || gap.Lost != 100*s || gap.Cause != "expired" || b.p.Bound() {
		t.Errorf("%+v %v", gap, open)
	}
}

func TestGiveUpAfter(t *testing.T) {
	b := newBench(t, &behaviour.Behaviour{GiveUpAfter: 2})
	for i := range 2 {
		b.until(time.Duration(i) * 3 * s)
		b.do(Event{Kind: ConnectFailed, Text: "refused"}, time.Duration(i)*3*s)
	}
	if b.p.State() != Parked || b.p.Wake() != Never || len(b.dials) != 2 {
		t.Errorf("%v, wakes at %v, %d dials", b.p.State(), b.p.Wake(), len(b.dials))
	}
}

// SIP.js repeats nc=1 with the nonce it has; others that keep a nonce count.
func TestNonceCounts(t *testing.T) {
	for nonce, want := range map[string]string{"same-nc": "00000001 00000001", "reuse": "00000001 00000002", "fresh": "00000001 -"} {
		b := newBench(t, &behaviour.Behaviour{Nonce: nonce})
		b.until(0)
		b.do(Event{Kind: Connected, Text: "10.0.0.1:5000"}, 0)
		b.answer(0, 401, `WWW-Authenticate: Digest realm="r", nonce="n", qop="auth"`)
		b.answer(0, 200)
		b.until(90 * s)
		var got []string
		for _, m := range b.sent[1:] {
			_, nc, ok := strings.Cut(m, "nc=")
			if !ok {
				nc = "-       "
			}
			got = append(got, strings.TrimSpace(nc[:8]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: nc %v, want %s", nonce, got, want)
		}
	}
}

// A stale nonce is answered at once with the new one, and is no failure.
func TestStaleNonce(t *testing.T) {
	b := newBench(t, &behaviour.Behaviour{Nonce: "reuse"})
	b.until(0)
	b.do(Event{Kind: Connected, Text: "10.0.0.1:5000"}, 0)
	for _, n := range []string{"n1", "n2"} {
		b.answer(0, 401, `WWW-Authenticate: Digest realm="r", nonce="`+n+`", qop="auth", stale=true`)
	}
	b.answer(0, 200)
	if !b.p.Bound() || !strings.Contains(b.sent[2], `nonce="n2"`) {
		t.Errorf("registered %v, sent %q", b.p.Bound(), b.sent)
	}
}

func TestHostPort(t *testing.T) {
	for in, want := range map[string]string{
		"sip:a@h:1;transport=tcp": "h:1", "sip:h": "h:5060", "sips:h": "h:5061", "sip:[::1]:7": "[::1]:7", "sip:[::1]": "[::1]:5060",
		"tel:1": "", "sip:": "", "sip:h:x": "", "SIP:h:1?a=b": "h:1",
	} {
		if got := hostPort(in); got != want {
			t.Errorf("hostPort(%q) = %q, want %q", in, got, want)
		}
	}
}
