package measure

import (
	"strconv"
	"time"

	"rollcall/loadtest/phone"
)

// MaxGaps bounds the gaps kept one by one in a recorder; those beyond are counted as dropped.
const MaxGaps = 1 << 20

// Phase is what was counted in one phase of a run.
type Phase struct {
	Name string        `json:"name"`
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`

	Attempts    int            `json:"attempts"`    // registration attempts begun, first ones
	ReAttempts  int            `json:"re_attempts"` // of clients that were registered before
	OK          int            `json:"ok"`
	ReOK        int            `json:"re_ok"`
	Failed      map[string]int `json:"failed"` // by status code or word
	ConnectFail map[string]int `json:"connect_failed"`
	Responses   map[string]int `json:"responses"` // by code
	Odd         map[string]int `json:"odd"`       // late, duplicate, stray, malformed, not-listed
	Lost        map[string]int `json:"lost"`      // connections, by how
	Requests    map[string]int `json:"requests"`  // answered, by method
	Sent        int            `json:"sent"`      // REGISTERs
	Resent      int            `json:"resent"`    // retransmissions
	Parked      int            `json:"parked"`
	Removed     int            `json:"removed"`

	Register   Hist `json:"register"`
	ReRegister Hist `json:"re_register"`
	Connect    Hist `json:"connect"`

	Lag Hist `json:"lag"` // of the generator itself

	First Window `json:"first"` // first registrations: first attempt to last success
	Re    Window `json:"re"`
}

// Window is a span of time that grows with what happens in it. The zero value is empty.
type Window struct {
	Begun bool          `json:"begun"`
	From  time.Duration `json:"from_ns"`
	To    time.Duration `json:"to_ns"`
}

func (w *Window) begin(at time.Duration) {
	if !w.Begun || at < w.From {
		w.From = at
	}
	w.Begun = true
}

// Merge makes w cover o.
func (w *Window) Merge(o Window) {
	if o.Begun {
		w.begin(o.From)
		w.To = max(w.To, o.To)
	}
}

// Rate of n in the window, per second.
func (w Window) Rate(n int) float64 {
	if d := w.To - w.From; n > 0 && d > 0 {
		return float64(n) / d.Seconds()
	}
	return 0
}

// Bucket is one step of the curve over time.
type Bucket struct {
	Bound    int `json:"b,omitempty"` // change of the number of registered clients
	Attempts int `json:"a,omitempty"`
	OK       int `json:"o,omitempty"`
	Failed   int `json:"f,omitempty"`
	Lost     int `json:"l,omitempty"`
}

// Data is all that a recorder measured.
type Data struct {
	Width       time.Duration `json:"width_ns"`
	Phases      []*Phase      `json:"phases"`
	Series      []Bucket      `json:"series"`
	Gaps        []phone.Gap   `json:"gaps"` // those not ended have Back = phone.Never
	GapsDropped int           `json:"gaps_dropped"`
}

// maxBuckets bounds the curve; later facts count in the last step.
const maxBuckets = 100_000

// Recorder takes facts in. It is not safe for concurrent use.
type Recorder struct {
	Data
	Bound    int // registered now
	GapsOpen int
}

// NewRecorder starts in the phase of the given name; width is the step of the curve.
func NewRecorder(phase string, width time.Duration) *Recorder {
	r := &Recorder{Data: Data{Width: width}}
	r.Begin(phase, 0)
	return r
}

// Begin starts a new phase.
func (r *Recorder) Begin(name string, at time.Duration) {
	if n := len(r.Phases); n > 0 {
		r.Phases[n-1].To = at
	}
	r.Phases = append(r.Phases, newPhase(name, at))
}

func newPhase(name string, at time.Duration) *Phase {
	return &Phase{Name: name, From: at, Failed: map[string]int{}, ConnectFail: map[string]int{}, Responses: map[string]int{},
		Odd: map[string]int{}, Lost: map[string]int{}, Requests: map[string]int{}}
}

func (r *Recorder) bucket(at time.Duration) *Bucket {
	i := min(int(max(at, 0)/r.Width), maxBuckets-1)
	for len(r.Series) <= i {
		r.Series = append(r.Series, Bucket{})
	}
	return &r.Series[i]
}

// Lag takes the generator's own delay in.
func (r *Recorder) Lag(d time.Duration) { r.Phases[len(r.Phases)-1].Lag.Record(d) }

// Fact takes one fact in, of the time at.
func (r *Recorder) Fact(f *phone.Fact, at time.Duration) {
	p := r.Phases[len(r.Phases)-1]
	switch f.Kind {
	case phone.FactAttempt:
		r.bucket(at).Attempts++
		if f.Re {
			p.ReAttempts++
			p.Re.begin(at)
		} else {
			p.Attempts++
			p.First.begin(at)
		}
	case phone.FactSent:
		p.Sent++
		if f.Re {
			p.Resent++
		}
	case phone.FactResponse:
		p.Responses[strconv.Itoa(f.Code)]++
	case phone.FactOdd:
		p.Odd[f.Word]++
	case phone.FactOK:
		r.ok(p, f, at)
	case phone.FactFailed:
		r.bucket(at).Failed++
		p.Failed[failure(f)]++
	case phone.FactConnected:
		p.Connect.Record(f.Dur)
	case phone.FactConnectFailed:
		p.ConnectFail[f.Word]++
	case phone.FactLost:
		r.bucket(at).Lost++
		p.Lost[f.Word]++
	case phone.FactBound:
		r.Bound++
		r.bucket(at).Bound++
	case phone.FactUnbound:
		r.Bound--
		r.bucket(at).Bound--
	case phone.FactGapOpen:
		r.GapsOpen++
	case phone.FactGapClosed:
		r.GapsOpen--
		r.AddGap(f.Gap)
	case phone.FactParked:
		p.Parked++
	case phone.FactRequest:
		p.Requests[method(f.Word)]++
	case phone.FactUnregistered:
		p.Removed++
	}
}

func (r *Recorder) ok(p *Phase, f *phone.Fact, at time.Duration) {
	r.bucket(at).OK++
	if f.Re {
		p.ReOK++
		p.ReRegister.Record(f.Dur)
		p.Re.To = max(p.Re.To, at)
		p.Re.begin(at - f.Dur)
		return
	}
	p.OK++
	p.Register.Record(f.Dur)
	p.First.To = max(p.First.To, at)
	p.First.begin(at - f.Dur)
}

// failure names a failed attempt.
func failure(f *phone.Fact) string {
	switch {
	case f.Code == 0:
		return f.Word
	case f.Word != "":
		return strconv.Itoa(f.Code) + " " + f.Word
	}
	return strconv.Itoa(f.Code)
}

// method keeps the map of methods small, whatever a server sends.
func method(m string) string {
	switch m {
	case "OPTIONS", "NOTIFY", "MESSAGE", "INVITE", "ACK", "BYE", "CANCEL", "REGISTER", "SUBSCRIBE", "PUBLISH", "INFO":
		return m
	}
	return "other"
}

// AddGap keeps one gap.
func (r *Recorder) AddGap(g phone.Gap) {
	if len(r.Gaps) >= MaxGaps {
		r.GapsDropped++
		return
	}
	r.Gaps = append(r.Gaps, g)
}
