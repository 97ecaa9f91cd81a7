package routing

import (
	"fmt"
	"time"
)

// Rules are the times of failure detection.
type Rules struct {
	PulseEvery     time.Duration // between the pulses of one Front End
	PingEvery      time.Duration // between pings of a Front End that is suspected
	PingTimeout    time.Duration // of a ping or a health probe
	ReconnectGrace time.Duration // for a process that lives and lost the bus
	DownAfter      time.Duration // of silence
	FenceAfter     time.Duration // without the bus
	FormTimeout    time.Duration // that the first Front Ends wait for the others before the pool forms
}

// DefaultRules returns the times that suit one machine or one network.
func DefaultRules() Rules {
	return Rules{
		PulseEvery:     100 * time.Millisecond,
		PingEvery:      20 * time.Millisecond,
		PingTimeout:    250 * time.Millisecond,
		ReconnectGrace: time.Second,
		DownAfter:      time.Second,
		FenceAfter:     time.Second,
		FormTimeout:    10 * time.Second,
	}
}

// missedPulses make a Front End suspected; aloneFactor times DownAfter is how
// long one that hears fewer than half of the others takes itself for the cause.
const (
	missedPulses = 3
	aloneFactor  = 3
)

// Outcome of asking a Front End for a sign of life.
type Outcome int

const (
	NotTried    Outcome = iota
	Answered            // it lives
	NobodyThere         // ping: the bus works and no process serves the name
	Refused             // health port: the host answers and no process listens
	NoAnswer            // nothing came in time
)

func (o Outcome) String() string {
	names := [...]string{"not tried", "answered", "nobody there", "refused", "no answer"}
	if o < 0 || int(o) >= len(names) {
		return fmt.Sprintf("Outcome(%d)", int(o))
	}
	return names[o]
}

// Probe is the newest outcome of one way of asking, and when it was known.
type Probe struct {
	At      time.Time
	Outcome Outcome
}

// Pulse is the newest pulse heard of a Front End: what it says of itself.
type Pulse struct {
	At    time.Time
	Boot  string
	State State
}

// Evidence is all that one Front End knows of another.
type Evidence struct {
	Member Member // as the placement has it; zero State and Boot if not in it
	// MemberSeen is when this Front End learned Member as it is now. An older pulse doesn't
	// speak against it: others may have seen the death that follows it. Zero: every pulse counts.
	MemberSeen time.Time

	Pulse        Pulse
	Ping, Health Probe
	NobodySince  time.Time // first of an unbroken run of pings that found nobody there; zero otherwise
	FirstSeen    time.Time // when this Front End began to watch: nothing counts as silence before it
}

// Self is what a Front End knows of its own standing.
type Self struct {
	Others, Heard int       // the other Front Ends that should be there, and those of them lately heard
	BusLost       time.Time // since when the bus is out of reach; zero: it is connected
	PeerHasBus    bool      // some other Front End's health port says that it has the bus
	PeersReached  int       // the other Front Ends whose health port answers
}

// Verdict is what a Front End counts as now.
type Verdict struct {
	State State
	Boot  string
	Why   string // for people

	Suspect     bool      // something is wrong and the evidence isn't complete
	ProbeHealth bool      // ask its health port now
	Again       time.Time // judge again no later than this; zero: on new evidence
}

// Judge is the table of evidence: what a Front End counts as, by what this one
// knows of it. Positive evidence of death acts at once; silence takes time, and
// counts less when this Front End hears nearly nobody.
func Judge(r Rules, e Evidence, s Self, now time.Time) Verdict {
	v := asBefore(e)
	switch {
	case !s.BusLost.IsZero():
		v.Suspect, v.Why = true, "this front end has no bus: it doesn't judge others"
		return v
	case v.State == Down:
		return v
	case e.nobodyThere():
		return judgeNobody(r, e, v, now)
	case now.Sub(e.lastOnBus()) < missedPulses*r.PulseEvery:
		v.Again = e.lastOnBus().Add(missedPulses * r.PulseEvery)
		return v
	}
	return judgeSilence(r, e, s, v, now)
}

// asBefore is what it counts as as long as nothing is wrong: what its newest
// pulse says, or the placement if that is newer.
func asBefore(e Evidence) Verdict {
	if e.Pulse.At.IsZero() || !e.MemberSeen.IsZero() && !e.Pulse.At.After(e.MemberSeen) {
		v := Verdict{State: e.Member.State, Boot: e.Member.Boot, Why: "as in the placement"}
		switch v.State {
		case Down:
			v.Why = "down in the placement, and no sign of life since"
		case "":
			v.State, v.Why = Down, "nothing was ever heard of it"
		}
		return v
	}
	v := Verdict{State: e.Pulse.State, Boot: e.Pulse.Boot}
	switch {
	case e.Member.Boot != "" && e.Member.Boot != v.Boot:
		v.Why = "it restarted: its pulses come under a new boot id"
	case v.State == Draining:
		v.Why = "its pulse says that it is being stopped"
	default:
		v.Why = fmt.Sprintf("its pulse says %s", v.State)
	}
	return v
}

// lastOnBus is the last sign of life that came over the bus.
func (e Evidence) lastOnBus() time.Time {
	last := e.FirstSeen
	if e.Pulse.At.After(last) {
		last = e.Pulse.At
	}
	if e.Ping.Outcome == Answered && e.Ping.At.After(last) {
		last = e.Ping.At
	}
	return last
}

// nobodyThere: the bus itself says that no process serves the name. A pulse
// since then is newer evidence.
func (e Evidence) nobodyThere() bool {
	return e.Ping.Outcome == NobodyThere && !e.NobodySince.IsZero() && !e.Pulse.At.After(e.Ping.At)
}

// judgeNobody: with the health port refusing as well the process is gone. Else it
// may have lost the bus for a moment and gets a grace. How many others this
// Front End hears doesn't matter here: the bus answered, so it isn't cut off.
func judgeNobody(r Rules, e Evidence, v Verdict, now time.Time) Verdict {
	asked := e.Health.Outcome != NotTried && !e.Health.At.Before(e.NobodySince)
	until := e.NobodySince.Add(r.ReconnectGrace)
	switch {
	case asked && e.Health.Outcome == Refused:
		v.State, v.Why = Down, "the process is gone: nobody serves its name on the bus and its health port refuses"
		return v
	case !now.Before(until):
		v.State = Down
		v.Why = fmt.Sprintf("nobody has served its name on the bus for %v (health port: %v)", r.ReconnectGrace, e.Health.Outcome)
		return v
	case asked && e.Health.Outcome == Answered:
		v.Why = "it lost the bus: nobody serves its name there, and its health port answers"
	default:
		v.Why = "nobody serves its name on the bus"
	}
	v.Suspect = true
	v.probe(r, e, asked, now)
	v.again(until)
	return v
}

// judgeSilence: no pulse and no answer anywhere. A ping that times out on a bus
// that works means that its subscription stands and its process or host doesn't
// react. But a Front End that was itself frozen sees the same, of everybody.
// So silence convicts only after its health port was asked too, a way that
// doesn't lead over the bus. And one that hears fewer than half of several
// others first takes itself for the cause: it waits three times as long, and
// then only a health port that gave no sign either convicts (two lost hosts of
// three look like that, and the last one left must serve). In a pool of two
// "fewer than half" says nothing: there the bus and the health port decide.
func judgeSilence(r Rules, e Evidence, s Self, v Verdict, now time.Time) Verdict {
	last := e.lastOnBus()
	wait := r.DownAfter
	me := s.Others >= 2 && s.Heard*2 < s.Others
	if me {
		wait = aloneFactor * r.DownAfter
	}
	asked := e.Health.Outcome != NotTried && e.Health.At.After(last)
	if asked && e.Health.Outcome == Answered {
		wait += r.ReconnectGrace // it lives, and lost the bus without the bus noticing
	}
	until := last.Add(wait)
	pinged := e.Ping.Outcome == NoAnswer && e.Ping.At.After(last)
	v.Suspect = true
	v.Why = fmt.Sprintf("no pulse and no answer for %v", now.Sub(last).Round(time.Millisecond))
	if me {
		v.Why += fmt.Sprintf(", but only %d of %d others are heard: it may be this front end", s.Heard, s.Others)
	}

	switch sign := asked && e.Health.Outcome == Answered; {
	case now.Before(until):
		v.again(until)
	case me && (sign || !asked):
		// Keeps waiting: alone with its suspicion.
	case pinged && asked, !now.Before(until.Add(r.PingTimeout)):
		v.State, v.Suspect = Down, false
		v.Why = fmt.Sprintf("no pulse and no answer for %v (ping: %v, health port: %v)",
			now.Sub(last).Round(time.Millisecond), e.Ping.Outcome, e.Health.Outcome)
		return v
	default: // the last probes get their time
		v.again(until.Add(r.PingTimeout))
	}
	v.probe(r, e, asked, now)
	return v
}

// probe asks for a health probe if there is none for this suspicion, or it is older than a pulse.
func (v *Verdict) probe(r Rules, e Evidence, asked bool, now time.Time) {
	if !asked || now.Sub(e.Health.At) >= r.PulseEvery {
		v.ProbeHealth = true
		v.again(now.Add(r.PulseEvery))
		return
	}
	v.again(e.Health.At.Add(r.PulseEvery))
}

// again moves the time to judge again forward, never back.
func (v *Verdict) again(at time.Time) {
	if v.Again.IsZero() || at.Before(v.Again) {
		v.Again = at
	}
}

// Fence reports whether a Front End that lost the bus should refuse its clients
// and let them go, so that they find one that serves. It holds on while that
// would help nobody: alone in the pool, or when all whom it reaches lost the bus
// too, since then nobody serves and all resume together.
func Fence(r Rules, s Self, now time.Time) (fence bool, why string) {
	switch {
	case s.BusLost.IsZero():
		return false, "the bus is connected"
	case now.Sub(s.BusLost) < r.FenceAfter:
		return false, fmt.Sprintf("the bus is out of reach for less than %v", r.FenceAfter)
	case s.Others == 0:
		return false, "the bus is out of reach, and there is no other front end: hold on"
	case s.PeerHasBus:
		return true, "the bus is out of reach, and another front end has it"
	case s.PeersReached == 0:
		return true, "the bus and all other front ends are out of reach"
	}
	return false, "every front end within reach lost the bus: hold on"
}

// ReadyToForm is rule 8's wait: up Front Ends of the expected ones are up, the first since the given time.
func ReadyToForm(r Rules, up, expect int, since, now time.Time) bool {
	return up > 0 && (up >= expect || now.Sub(since) >= r.FormTimeout)
}
