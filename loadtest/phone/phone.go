// Package phone is one simulated softphone as a pure state machine: what it does on
// an event at a time. It does no I/O and reads no clock; the engine gives it events
// and carries its actions out, and the facts it states are what is measured.
//
// Times are since the start of the run.
package phone

import (
	"math"
	"time"

	"rollcall/loadtest/behaviour"
	"rollcall/loadtest/digest"
	"rollcall/loadtest/sipwire"
)

// Config is what many phones have in common. It is not changed once phones use it.
type Config struct {
	Behaviour *behaviour.Behaviour
	Transport string // udp, tcp, tls, ws, wss
	Domain    string // of the AOR and the Request-URI
	Targets   []string
	Expires   int           // seconds asked for
	Seed      uint64        // of all that is drawn
	T1        time.Duration // RFC 3261 §17.1.2.1; 500 ms when 0
	Timeout   time.Duration // timer F; 32 s when 0
}

// State of a phone, for counting.
type State uint8

// The states.
const (
	Idle State = iota // its turn in the ramp has not come
	Connecting
	Registering
	Registered
	Waiting // for its next attempt
	Parked  // gave up
	Off     // ended
	States  // number of states
)

// String names the state.
func (s State) String() string {
	return [...]string{"idle", "connecting", "registering", "registered", "waiting", "parked", "off"}[s]
}

// Never is the time that does not come.
const Never = time.Duration(math.MaxInt64)

// The timers of a phone.
const (
	tAttempt    = iota // make an attempt
	tSend              // send the REGISTER over the new connection
	tRetransmit        // RFC 3261 timer E
	tTimeout           // RFC 3261 timer F
	tRefresh
	tExpire // the binding lapses
	tKeep   // keep-alive
	tPong   // pong overdue
	tQuit   // end in order
	timers
)

// fate of a past transaction, to tell late from duplicate answers.
type fate struct {
	cseq     uint32
	answered bool
}

// Phone is one simulated softphone. Use New. It is not safe for concurrent use.
type Phone struct {
	cfg      *Config
	user     string
	password string
	index    uint32
	rng      uint64

	state   State
	linked  bool // it has a connection (UDP: a socket)
	bound   bool // it has a live registration, as far as it can know
	ever    bool // it was registered once
	quit    bool
	expires int // asked for; grows by 423

	target int    // index of the address in use
	detour string // address learnt from a 3xx, instead of target
	moved  bool   // the next attempt goes to another address than the connection's
	local  string // host:port of its end of the connection

	cseq      uint32
	tx        transaction
	fates     [4]fate
	cycle     cycle
	fails     int // failures in a row
	challenge *digest.Challenge
	nc        uint32

	timer [timers]time.Duration
	gap   gap
}

// transaction is the REGISTER that waits for its answer.
type transaction struct {
	open     bool
	authed   bool
	cached   bool // with a nonce of an earlier attempt
	remove   bool // Expires: 0
	nc       uint32
	lastSent time.Duration
	interval time.Duration
}

// cycle is one registration attempt: connecting, REGISTER, its challenges, and its end.
type cycle struct {
	open      bool
	dialing   bool
	began     time.Duration
	firstSent time.Duration // Never until a REGISTER left
	challenge int           // challenges answered
	raised    int           // 423s followed
	redirects int
	refused   int // addresses that refused
}

// New makes a phone that makes its first attempt at start.
func New(cfg *Config, index int, user, password string, target int, start time.Duration) *Phone {
	p := &Phone{cfg: cfg, user: user, password: password, index: uint32(index), expires: cfg.Expires, target: target % len(cfg.Targets)}
	p.rng = mix(cfg.Seed ^ mix(uint64(index)+0x9e3779b97f4a7c15))
	for i := range p.timer {
		p.timer[i] = Never
	}
	p.timer[tAttempt] = start
	return p
}

// State tells what the phone is doing.
func (p *Phone) State() State { return p.state }

// Bound reports whether the phone has a live registration, as far as it can know.
func (p *Phone) Bound() bool { return p.bound }

// Local is the phone's end of its connection.
func (p *Phone) Local() string { return p.local }

// Wake is when the phone wants its next Tick.
func (p *Phone) Wake() time.Duration {
	at := Never
	for _, t := range p.timer {
		at = min(at, t)
	}
	return at
}

// EventKind is what happens to a phone.
type EventKind uint8

// The events.
const (
	Tick          EventKind = iota // the time of Wake has come
	Connected                      // Text: its own host:port
	ConnectFailed                  // Text: refused, timeout, other
	Message
	Malformed // what came is no SIP message
	Ping
	Pong
	Lost    // the connection ended. Text: fin, rst, icmp, stalled
	Cut     // the tester cut the connection
	Mark    // the server of this phone was taken away; a connectionless phone counts its gap from Time
	Renew   // refresh at Time, if registered
	Quit    // end in order, at Time
	Abandon // end at once
)

// Event at a phone.
type Event struct {
	Kind    EventKind
	Time    time.Duration // Mark: when the server was taken away; Renew, Quit: when to
	Text    string
	Message *sipwire.Message
}

// Handle takes one event in, at the time now, and puts actions and facts into out.
func (p *Phone) Handle(ev Event, now time.Duration, out *Out) {
	if p.state == Off {
		return
	}
	switch ev.Kind {
	case Tick:
		p.tick(now, out)
	case Connected:
		p.connected(ev.Text, now, out)
	case ConnectFailed:
		p.connectFailed(ev.Text, now, out)
	case Message:
		if ev.Message.Status == 0 {
			p.request(ev.Message, out)
		} else {
			p.response(ev.Message, now, out)
		}
	case Malformed:
		out.fact(Fact{Kind: FactOdd, Word: "malformed"})
	case Ping:
		out.send([]byte("\r\n"))
	case Pong:
		p.timer[tPong] = Never
	case Lost:
		p.lost(ev.Text, now, out)
	case Cut:
		if p.linked {
			out.close(true)
			p.lost("cut", now, out)
		}
	case Mark:
		if p.cfg.Transport == "udp" && p.bound {
			p.openGap("server", ev.Time, out)
		}
	case Renew:
		if p.bound && !p.cycle.open {
			p.timer[tRefresh] = ev.Time
		}
	case Quit:
		p.timer[tQuit] = max(ev.Time, now)
		p.tick(now, out)
	case Abandon:
		p.off(out)
	}
}

// tick fires the timers that are due, the earliest first. Each firing clears one
// timer; the bound keeps a wrong rule from spinning.
func (p *Phone) tick(now time.Duration, out *Out) {
	for range 4 * timers {
		first := 0
		for i, t := range p.timer {
			if t < p.timer[first] {
				first = i
			}
		}
		due := p.timer[first]
		if due > now || due == Never {
			return
		}
		p.timer[first] = Never
		p.fire(first, due, now, out)
	}
}

func (p *Phone) fire(timer int, due, now time.Duration, out *Out) {
	switch timer {
	case tAttempt, tRefresh:
		p.attempt(timer == tRefresh, now, out)
	case tSend:
		p.register(now, out)
	case tRetransmit:
		p.retransmit(now, out)
	case tTimeout:
		p.timedOut(now, out)
	case tExpire:
		p.unbind(out)
		p.openGap("expired", due, out)
	case tKeep:
		p.keepAlive(now, out)
	case tQuit:
		p.end(now, out)
	case tPong:
		out.close(true)
		p.lost("pong", now, out)
	}
}

// random draws a fraction from 0 to below 1.
func (p *Phone) random() float64 {
	p.rng += 0x9e3779b97f4a7c15
	return float64(mix(p.rng)>>11) / (1 << 53)
}

// mix is the finaliser of splitmix64: well spread, and no state to keep.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
