// Package report makes what was measured into figures for people and machines: JSON,
// CSV, a self-contained HTML page, a comparison of two runs, and the conditions that
// make a run fail.
package report

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"rollcall/loadtest/measure"
	"rollcall/loadtest/phone"
	"rollcall/loadtest/scenario"
)

// Report is report.json.
type Report struct {
	Format    int                `json:"format"` // of this file; 1
	Tool      Tool               `json:"tool"`
	Machine   Machine            `json:"machine"`
	Scenario  *scenario.Scenario `json:"scenario"`
	Arguments []string           `json:"arguments,omitempty"`
	Targets   []string           `json:"targets"`
	Started   time.Time          `json:"started"`
	RampEnd   float64            `json:"ramp_end_s"` // events given in seconds count from here
	Length    float64            `json:"length_s"`

	Clients       int `json:"clients"`
	Registered    int `json:"registered_end"`
	RegisteredMax int `json:"registered_max"`

	Gap          measure.Stats `json:"gap_ms"`           // from the loss to the 200 OK
	FirstAttempt measure.Stats `json:"first_attempt_ms"` // from the loss to the client's first attempt: its own patience
	Recovery     measure.Stats `json:"recovery_ms"`      // from there to the 200 OK: what the registrar adds
	Gaps         Gaps          `json:"gaps"`
	Register     measure.Stats `json:"register_ms"`   // first registrations: first REGISTER to 200, challenges included
	ReRegister   measure.Stats `json:"reregister_ms"` // refreshes and returns
	Connect      measure.Stats `json:"connect_ms"`

	RegistrationRate   float64 `json:"registration_rate_per_s"`
	ReregistrationRate float64 `json:"reregistration_rate_per_s"`

	Attempts      Attempts       `json:"attempts"`
	Failures      map[string]int `json:"failures"`
	ConnectFailed map[string]int `json:"connect_failures"`
	Responses     map[string]int `json:"responses"`
	Odd           map[string]int `json:"odd_answers"`
	Lost          map[string]int `json:"lost_connections"`
	Requests      map[string]int `json:"requests_answered"`

	Generator Generator `json:"generator"`
	Phases    []Phase   `json:"phases"`
	Events    []Event   `json:"events"`
	Series    Series    `json:"series"`
	Notes     []string  `json:"notes,omitempty"` // what a reader must know to read the figures rightly
	Errors    []string  `json:"errors,omitempty"`
	FailIf    []Verdict `json:"fail_if,omitempty"`

	rows []phone.Gap
}

// Tool that made the report.
type Tool struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
}

// Machine that ran it.
type Machine struct {
	Host   string `json:"host"`
	System string `json:"system"`
	CPU    string `json:"cpu"`
	CPUs   int    `json:"cpus"`
	Memory int64  `json:"memory_bytes"`
}

// Gaps counts the gaps by how they ended.
type Gaps struct {
	Started    int            `json:"started"`
	Closed     int            `json:"closed"`
	Open       int            `json:"open"`       // tried to return and did not
	Unobserved int            `json:"unobserved"` // did not try to return before the end
	ByCause    map[string]int `json:"by_cause"`
}

// Attempts counts registration attempts, and the REGISTERs they took.
type Attempts struct {
	First       int `json:"first"`
	FirstOK     int `json:"first_ok"`
	Again       int `json:"again"`
	AgainOK     int `json:"again_ok"`
	Registers   int `json:"registers"`
	Retransmits int `json:"retransmissions"`
	GaveUp      int `json:"gave_up"`
	Removed     int `json:"unregistered"`
}

// Generator says whether the load generator could be the limit.
type Generator struct {
	LagP50   float64 `json:"lag_ms_p50"`
	LagP99   float64 `json:"lag_ms_p99"`
	LagMax   float64 `json:"lag_ms_max"`
	CPUShare float64 `json:"cpu_share"` // of all CPUs of the machine, over the whole run
	Workers  int     `json:"workers"`
	Tainted  bool    `json:"tainted"`
	Rule     string  `json:"rule"`
	Why      string  `json:"why,omitempty"`
}

// Phase is one part of the run.
type Phase struct {
	Name       string         `json:"name"`
	From       float64        `json:"from_s"`
	To         float64        `json:"to_s"`
	Gap        measure.Stats  `json:"gap_ms"` // of the gaps that began in it
	Register   measure.Stats  `json:"register_ms"`
	ReRegister measure.Stats  `json:"reregister_ms"`
	Rate       float64        `json:"registration_rate_per_s"`
	ReRate     float64        `json:"reregistration_rate_per_s"`
	Failures   map[string]int `json:"failures"`
	Responses  map[string]int `json:"responses"`
	Lost       map[string]int `json:"lost_connections"`
	LagP99     float64        `json:"lag_ms_p99"`
	Tainted    bool           `json:"tainted"` // by the generator's lag in this phase
}

// Event on the run's time axis.
type Event struct {
	At     float64 `json:"at_s"`
	Source string  `json:"source"` // storm, or the pool's Front End that says it
	What   string  `json:"what"`
	Detail string  `json:"detail,omitempty"`
}

// Series are the curves, one value a step.
type Series struct {
	Step       float64 `json:"step_s"`
	Registered []int   `json:"registered"`
	Attempts   []int   `json:"attempts"`
	OK         []int   `json:"ok"`
	Failed     []int   `json:"failed"`
	Lost       []int   `json:"lost"`
}

// Input of Build.
type Input struct {
	Data      measure.Data
	Scenario  *scenario.Scenario
	CPU       time.Duration // of the generator's processes
	CPUs      int
	Workers   int
	RampEnd   time.Duration
	Length    time.Duration
	Bound     int // registered at the end
	Events    []Event
	Targets   []string
	Arguments []string
	Started   time.Time
	Notes     []string
	Errors    []string
}

// maxCPUShare is the share of the machine beyond which the generator taints the figures.
const maxCPUShare = 0.8

// Build makes the report of a run.
func Build(in *Input) *Report {
	d, t := &in.Data, in.Data.Total()
	r := &Report{
		Format: 1, Tool: tool(), Machine: machine(), Scenario: in.Scenario, Arguments: in.Arguments, Targets: in.Targets,
		Started: in.Started.UTC(), RampEnd: in.RampEnd.Seconds(), Length: in.Length.Seconds(),
		Clients: in.Scenario.Clients, Registered: in.Bound,
		Register: t.Register.Stats(), ReRegister: t.ReRegister.Stats(), Connect: t.Connect.Stats(),
		RegistrationRate: t.First.Rate(t.OK), ReregistrationRate: t.Re.Rate(t.ReOK),
		Attempts: Attempts{First: t.Attempts, FirstOK: t.OK, Again: t.ReAttempts, AgainOK: t.ReOK, Registers: t.Sent,
			Retransmits: t.Resent, GaveUp: t.Parked, Removed: t.Removed},
		Failures: t.Failed, ConnectFailed: t.ConnectFail, Responses: t.Responses, Odd: t.Odd, Lost: t.Lost, Requests: t.Requests,
		Events: in.Events, Notes: in.Notes, Errors: in.Errors, rows: d.Gaps,
	}
	r.gaps(d.Gaps)
	r.phases(d)
	r.series(d, in.Length)
	r.generator(in)
	r.notes(d)
	return r
}

func (r *Report) gaps(rows []phone.Gap) {
	var gap, first, recovery []time.Duration
	r.Gaps = Gaps{Started: len(rows), ByCause: map[string]int{}}
	for _, g := range rows {
		r.Gaps.ByCause[g.Cause]++
		switch {
		case g.Back != phone.Never:
			r.Gaps.Closed++
			gap = append(gap, g.Back-g.Lost)
			first = append(first, g.First-g.Lost)
			recovery = append(recovery, g.Back-g.First)
		case g.First != phone.Never:
			r.Gaps.Open++
		default:
			r.Gaps.Unobserved++
		}
	}
	r.Gap, r.FirstAttempt, r.Recovery = measure.Exact(gap), measure.Exact(first), measure.Exact(recovery)
}

func (r *Report) phases(d *measure.Data) {
	for _, p := range d.Phases {
		var gaps []time.Duration
		for _, g := range d.Gaps {
			if g.Back != phone.Never && g.Lost >= p.From && g.Lost < p.To {
				gaps = append(gaps, g.Back-g.Lost)
			}
		}
		r.Phases = append(r.Phases, Phase{Name: p.Name, From: p.From.Seconds(), To: p.To.Seconds(), Gap: measure.Exact(gaps),
			Register: p.Register.Stats(), ReRegister: p.ReRegister.Stats(), Rate: p.First.Rate(p.OK), ReRate: p.Re.Rate(p.ReOK),
			Failures: p.Failed, Responses: p.Responses, Lost: p.Lost, LagP99: p.Lag.Stats().P99, Tainted: p.Lag.Stats().P99 > r.limit()})
	}
}

func (r *Report) series(d *measure.Data, length time.Duration) {
	s := &r.Series
	s.Step = d.Width.Seconds()
	bound := 0
	n := max(len(d.Series), int(length/d.Width))
	for i := range n {
		var b measure.Bucket
		if i < len(d.Series) {
			b = d.Series[i]
		}
		bound += b.Bound
		r.RegisteredMax = max(r.RegisteredMax, bound)
		s.Registered = append(s.Registered, bound)
		s.Attempts = append(s.Attempts, b.Attempts)
		s.OK = append(s.OK, b.OK)
		s.Failed = append(s.Failed, b.Failed)
		s.Lost = append(s.Lost, b.Lost)
	}
}

func (r *Report) generator(in *Input) {
	lag := in.Data.Total().Lag.Stats()
	limit := r.limit()
	g := Generator{LagP50: lag.P50, LagP99: lag.P99, LagMax: lag.Max, Workers: in.Workers,
		Rule: fmt.Sprintf("tainted when lag_ms_p99 of any phase > %g (max_lag) or cpu_share > %g; lag is from the moment when a timer was due or "+
			"bytes were read to the moment when the client acted", limit, maxCPUShare)}
	if in.Length > 0 && in.CPUs > 0 {
		g.CPUShare = in.CPU.Seconds() / in.Length.Seconds() / float64(in.CPUs)
	}
	late := ""
	for _, p := range r.Phases {
		if p.Tainted {
			late += fmt.Sprintf(", %.0f ms in the phase %q", p.LagP99, p.Name)
		}
	}
	switch {
	case late != "":
		g.Tainted, g.Why = true, "its own lag (p99) was"+late[1:]+": figures of that phase may be that much too large"
	case g.CPUShare > maxCPUShare:
		g.Tainted, g.Why = true, fmt.Sprintf("it took %.0f %% of all CPUs: the registrar may have been short of them", 100*g.CPUShare)
	}
	r.Generator = g
}

// limit of the generator's lag, in ms.
func (r *Report) limit() float64 { return float64(r.Scenario.MaxLag.D()) / float64(time.Millisecond) }

func (r *Report) notes(d *measure.Data) {
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	note("A gap runs from the loss of a client's connection or registration, as the client sees it, to the 200 OK of a REGISTER sent after it.")
	if r.Scenario.Transport == "udp" {
		note("A UDP client cannot see its server go: its gap runs from the event that took the server away (cause \"server\") to the 200 OK of a " +
			"REGISTER sent after it. It holds the client's own wait for its next refresh (first_attempt_ms); recovery_ms is the registrar's part.")
	}
	if n := r.Gaps.Open + r.Gaps.Unobserved; n > 0 {
		note("%d gaps had not ended when the run did (%d clients were trying, %d had not begun to): the figures cover only those that ended.",
			n, r.Gaps.Open, r.Gaps.Unobserved)
	}
	if r.Gaps.Started == 0 {
		note("No client lost its registration or its connection: there is no gap to report.")
	}
	if d.GapsDropped > 0 {
		note("%d gaps beyond %d were counted but not kept.", d.GapsDropped, measure.MaxGaps)
	}
	if r.Generator.Tainted {
		note("The load generator was at its limit: %s.", r.Generator.Why)
	}
}

// Load reads a report.
func Load(path string) (*Report, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Report{}
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: not a report.json: %w", path, err)
	}
	if r.Format != 1 {
		return nil, fmt.Errorf("%s: report format %d is not known; this program reads 1", path, r.Format)
	}
	return r, nil
}
