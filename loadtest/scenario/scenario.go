// Package scenario is what a storm does, as data: read from YAML or made of flags,
// checked, and with every default filled in, so that the report can say what was run.
package scenario

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"rollcall/loadtest/behaviour"
)

// Scenario of a run. Fields without a value have the default that Complete gives.
type Scenario struct {
	Name  string `yaml:"name" json:"name"`
	About string `yaml:"about" json:"about,omitempty"`
	Seed  uint64 `yaml:"seed" json:"seed"` // of all that is drawn

	Pool    *Pool    `yaml:"pool" json:"pool,omitempty"`       // a throw-away pool of our own …
	Targets []string `yaml:"targets" json:"targets,omitempty"` // … or any registrar: host:port, or a domain (DNS SRV, A, AAAA)
	Spread  string   `yaml:"spread" json:"spread"`             // over the targets: even (default), or first: all begin at the first

	Transport  string                 `yaml:"transport" json:"transport"` // udp, tcp, tls, ws, wss
	TLS        TLS                    `yaml:"tls" json:"tls,omitzero"`
	WSPath     string                 `yaml:"ws_path" json:"ws_path,omitempty"`
	Sources    []string               `yaml:"sources" json:"sources,omitempty"` // own addresses, used in turn
	Clients    int                    `yaml:"clients" json:"clients"`
	Domain     string                 `yaml:"domain" json:"domain"`
	Users      string                 `yaml:"users" json:"users,omitempty"`             // CSV file "user,password"
	UserFormat string                 `yaml:"user_format" json:"user_format,omitempty"` // instead of a file: "u%d"
	Password   string                 `yaml:"password" json:"-"`                        // of all, with user_format; "%d" is the number
	Expires    Duration               `yaml:"expires" json:"expires"`                   // asked for
	T1         Duration               `yaml:"t1" json:"t1,omitempty"`                   // RFC 3261 §17.1.2.1
	Timeout    Duration               `yaml:"timeout" json:"timeout,omitempty"`         // for an answer; timer F
	Behaviours []*behaviour.Behaviour `yaml:"behaviours" json:"behaviours,omitempty"`   // own ones, beside the profiles
	Mix        map[string]int         `yaml:"mix" json:"mix"`                           // behaviour: weight

	Ramp       Ramp     `yaml:"ramp" json:"ramp"`
	Duration   Duration `yaml:"duration" json:"duration"`               // from the end of the ramp
	RenewRate  float64  `yaml:"renew_rate" json:"renew_rate,omitempty"` // after the ramp all clients refresh once, so many a second
	Until      string   `yaml:"until" json:"until,omitempty"`           // ends earlier, once this holds a second or more after the last event: "back >= 100%"
	Events     []Event  `yaml:"events" json:"events,omitempty"`
	Unregister bool     `yaml:"unregister" json:"unregister,omitempty"` // at the end, those phones that do

	Workers int      `yaml:"workers" json:"workers"` // processes; 0: this one, and more from 10,000 clients on
	MaxLag  Duration `yaml:"max_lag" json:"max_lag"` // beyond it the generator taints the figures
	FailIf  []string `yaml:"fail_if" json:"fail_if,omitempty"`
}

// Pool is a throw-away pool.
type Pool struct {
	FrontEnds int      `yaml:"frontends" json:"frontends"`
	Own       bool     `yaml:"own_addresses" json:"own_addresses"` // clients go to the Front Ends' own addresses, in turn
	Args      []string `yaml:"args" json:"args,omitempty"`         // further arguments of `rollcall up`
}

// TLS of the client's side.
type TLS struct {
	CA       string `yaml:"ca" json:"ca,omitempty"` // PEM file; the system's when empty
	Name     string `yaml:"name" json:"name,omitempty"`
	Insecure bool   `yaml:"insecure" json:"insecure,omitempty"` // does not check the certificate
}

// Ramp is how the clients come for the first time.
type Ramp struct {
	Rate  float64  `yaml:"rate" json:"rate"`   // clients a second, on average
	Shape string   `yaml:"shape" json:"shape"` // even (default), burst (all of a second at once), rising
	Wait  Duration `yaml:"wait" json:"wait"`   // how long the last ones may take
}

// Start of client i of n.
func (r Ramp) Start(i, n int) time.Duration {
	at := float64(i) / r.Rate
	switch r.Shape {
	case "burst":
		at = math.Floor(at)
	case "rising":
		at = float64(n) / r.Rate * math.Sqrt(float64(i)/float64(n))
	}
	return time.Duration(at * float64(time.Second))
}

// Duration is a time.Duration that is written "1m30s".
type Duration time.Duration

// D returns it as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// UnmarshalText reads "1m30s".
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil || v < 0 {
		return fmt.Errorf(`%q is no time: write "500ms", "15s", "1m30s"`, b)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes it as it is read.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Read reads a scenario from YAML. Unknown fields are errors; errors name the line.
func Read(r io.Reader) (*Scenario, error) {
	s := &Scenario{}
	err := yaml.NewDecoder(r, yaml.Strict()).Decode(s)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New(strings.TrimSpace(yaml.FormatError(err, false, true)))
	}
	return s, nil
}

// Load reads a scenario from a file.
func Load(path string) (*Scenario, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Name == "" {
		s.Name = strings.TrimSuffix(path[strings.LastIndexByte(path, '/')+1:], ".yaml")
	}
	return s, nil
}

// PerWorker is how many clients a process holds: half of a common limit of 20,000 files.
const PerWorker = 10_000

// Complete fills the defaults in and says what is wrong.
func (s *Scenario) Complete() error {
	setDefault(&s.Name, "storm")
	setDefault(&s.Seed, 1)
	setDefault(&s.Transport, "tcp")
	setDefault(&s.Spread, "even")
	setDefault(&s.Clients, 1000)
	setDefault(&s.Domain, "example.test")
	setDefault(&s.Expires, Duration(10*time.Minute))
	setDefault(&s.Ramp.Rate, 1000)
	setDefault(&s.Ramp.Shape, "even")
	setDefault(&s.Ramp.Wait, Duration(30*time.Second))
	setDefault(&s.Duration, Duration(15*time.Second))
	setDefault(&s.MaxLag, Duration(20*time.Millisecond))
	if len(s.Mix) == 0 {
		s.Mix = map[string]int{"eager": 1}
	}
	if s.Workers == 0 && s.Clients > PerWorker {
		s.Workers = (s.Clients + PerWorker - 1) / PerWorker
	}
	if s.Pool != nil {
		setDefault(&s.Pool.FrontEnds, 3)
	}
	if s.Until != "" {
		if _, err := ParseCondition(s.Until); err != nil {
			return fmt.Errorf("until: %w", err)
		}
	}
	for i := range s.Events {
		if err := s.Events[i].complete(s); err != nil {
			return fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	return s.check()
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func (s *Scenario) check() error {
	switch {
	case s.Pool == nil && len(s.Targets) == 0:
		return errors.New("nothing to storm: give --pool, or --target HOST:PORT")
	case s.Pool != nil && len(s.Targets) > 0:
		return errors.New("--pool and --target exclude one another")
	case !slices.Contains([]string{"udp", "tcp", "tls", "ws", "wss"}, s.Transport):
		return fmt.Errorf("transport %q is none of udp, tcp, tls, ws, wss", s.Transport)
	case !slices.Contains([]string{"even", "first"}, s.Spread):
		return fmt.Errorf("spread %q is none of even, first", s.Spread)
	case !slices.Contains([]string{"even", "burst", "rising"}, s.Ramp.Shape):
		return fmt.Errorf("ramp shape %q is none of even, burst, rising", s.Ramp.Shape)
	case s.Clients < 1 || s.Clients > 1_000_000:
		return fmt.Errorf("%d clients: from 1 to 1,000,000", s.Clients)
	case s.RenewRate < 0:
		return errors.New("renew_rate is below 0")
	case s.Ramp.Rate <= 0:
		return errors.New("the ramp needs a rate above 0")
	case s.Expires.D() < time.Second:
		return errors.New("expires is below 1 s")
	case s.Workers < 0 || s.Workers > 100:
		return fmt.Errorf("%d workers: from 0 to 100", s.Workers)
	case s.Users != "" && s.UserFormat != "":
		return errors.New("users and user_format exclude one another")
	}
	_, err := s.Choose()
	return err
}

// Choose returns the behaviour of each client by its index, as the mix has it.
func (s *Scenario) Choose() (func(i int) *behaviour.Behaviour, error) {
	known, err := behaviour.Profiles()
	if err != nil {
		return nil, err
	}
	for _, b := range s.Behaviours {
		if err := b.Check(); err != nil {
			return nil, err
		}
	}
	known = append(slices.Clone(s.Behaviours), known...)
	var cycle []*behaviour.Behaviour
	names := make([]string, 0, len(s.Mix))
	for name := range s.Mix {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		i := slices.IndexFunc(known, func(b *behaviour.Behaviour) bool { return b.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no behaviour %q: `rollcall storm behaviours` lists them", name)
		}
		if w := s.Mix[name]; w < 1 || w > 1000 {
			return nil, fmt.Errorf("mix: weight %d of %s is not from 1 to 1000", w, name)
		}
		for range s.Mix[name] {
			cycle = append(cycle, known[i])
		}
	}
	// Interleaved by a stride without a common divisor, so that every stretch of clients has the mix.
	stride := len(cycle)*5/8 | 1
	for gcd(stride, len(cycle)) != 1 {
		stride += 2
	}
	return func(i int) *behaviour.Behaviour { return cycle[i%len(cycle)*stride%len(cycle)] }, nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
