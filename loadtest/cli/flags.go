package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"rollcall/loadtest/scenario"
)

// flags of `rollcall storm`. Only those given change the scenario.
type flags struct {
	out   string
	quiet bool

	pool      bool
	frontends int
	own       bool
	poolArgs  []string
	targets   []string
	spread    string
	transport string
	ca        string
	name      string
	insecure  bool
	wsPath    string
	sources   []string

	users      string
	domain     string
	userFormat string
	password   string
	expires    time.Duration
	timeout    time.Duration
	mix        []string

	rate       float64
	shape      string
	wait       time.Duration
	duration   time.Duration
	until      string
	unregister bool
	workers    int
	maxLag     time.Duration
	seed       uint64
	failIf     []string
	events     []scenario.Event
}

func (f *flags) register(s *pflag.FlagSet) {
	s.SortFlags = false
	s.BoolVar(&f.pool, "pool", false, "start a throw-away pool and stop it at the end")
	s.IntVar(&f.frontends, "frontends", 3, "Front Ends of the throw-away pool")
	s.BoolVar(&f.own, "own-addresses", false, "clients go to the Front Ends' own addresses in turn, not to the pool address")
	s.StringArrayVar(&f.poolArgs, "pool-arg", nil, "further argument of `rollcall up`, as --pool-arg=--groups=120 (repeatable)")
	s.StringSliceVar(&f.targets, "target", nil, "any registrar: HOST:PORT,… or a domain (DNS SRV, A, AAAA)")
	s.StringVar(&f.spread, "spread", "even", "clients over the targets: even, or first (all begin at the first one)")
	s.StringVar(&f.transport, "transport", "tcp", "udp, tcp, tls, ws, wss")
	s.StringVar(&f.ca, "ca", "", "PEM file of the authority that signed the registrar's certificate")
	s.StringVar(&f.name, "tls-name", "", "name to expect in the certificate (default: the target's host)")
	s.BoolVar(&f.insecure, "insecure", false, "do not check the certificate")
	s.StringVar(&f.wsPath, "ws-path", "/", "path of the WebSocket request")
	s.StringSliceVar(&f.sources, "source", nil, "own addresses, used in turn (default on loopback: one of 127.0.0.0/8 for each 10,000 clients)")

	s.StringVar(&f.users, "users", "1000", "number of clients, or a CSV file user,password with one line for each")
	s.StringVar(&f.domain, "domain", "example.test", "domain of the users")
	s.StringVar(&f.userFormat, "user-format", "", "user names by number, as u%d")
	s.StringVar(&f.password, "password", "", "of all users; %d is the number")
	s.DurationVar(&f.expires, "expires", 10*time.Minute, "expiry asked for")
	s.DurationVar(&f.timeout, "timeout", 32*time.Second, "wait for an answer (timer F)")
	s.StringSliceVar(&f.mix, "mix", nil, "behaviours with weights, as linphone=3,baresip=1 (default eager; `rollcall storm behaviours` lists them)")

	s.Float64Var(&f.rate, "rate", 1000, "clients a second in the ramp")
	s.StringVar(&f.shape, "ramp", "even", "shape of the ramp: even, burst, rising")
	s.DurationVar(&f.wait, "ramp-wait", 30*time.Second, "how long the last clients of the ramp may take")
	s.DurationVar(&f.duration, "duration", 15*time.Second, "length of the run, from the end of the ramp")
	s.StringVar(&f.until, "until", "", "end earlier, once this holds after the last event, as 'back >= 30%'; names: registered, gaps_open, back")
	for _, v := range []struct{ verb, what string }{
		{"kill", "SIGKILL a Front End, as fe2@5s; or all@5s"},
		{"stop", "SIGTERM it"},
		{"pause", "SIGSTOP it, as fe2@5s, or for a time, as fe2@5s+3s"},
		{"resume", "SIGCONT it"},
		{"restart", "SIGTERM it; the pool starts it again"},
		{"drain", "drain it by SIGTERM: its groups move away, then it ends; UDP clients count no gap"},
		{"exec", "any command line, as 'systemctl stop kamailio'@5s"},
		{"cut", "cut a share of the connections at the client's side, as 50%@5s"},
	} {
		s.Var(&eventFlag{v.verb, &f.events}, v.verb, v.what+" (repeatable)")
	}
	s.BoolVar(&f.unregister, "unregister", false, "un-register at the end, those phones that do")
	s.StringVar(&f.out, "out", "", "directory for report.html, report.json and gaps.csv")
	s.StringArrayVar(&f.failIf, "fail-if", nil, "exit with 3 if this holds; names as in report.json, as 'gap.p99 > 2s', generator.tainted (repeatable)")
	s.IntVar(&f.workers, "workers", 0, "worker processes (default: none up to 10,000 clients, then one for each 10,000)")
	s.DurationVar(&f.maxLag, "max-lag", 20*time.Millisecond, "own lag (p99) beyond which the report calls its figures tainted")
	s.Uint64Var(&f.seed, "seed", 1, "of all that is drawn")
	s.BoolVar(&f.quiet, "quiet", false, "no progress")
}

// eventFlag collects events in the order in which they are given.
type eventFlag struct {
	verb string
	to   *[]scenario.Event
}

func (e *eventFlag) String() string { return "" }
func (e *eventFlag) Type() string   { return "WHAT@TIME" }
func (e *eventFlag) Set(s string) error {
	ev, err := scenario.ParseEvent(e.verb, s)
	if err == nil {
		*e.to = append(*e.to, ev)
	}
	return err
}

// apply lays the flags given over the scenario.
func (f *flags) apply(s *pflag.FlagSet, sc *scenario.Scenario) error {
	if f.pool || s.Changed("frontends") || s.Changed("own-addresses") || s.Changed("pool-arg") {
		if sc.Pool == nil && !f.pool {
			return fmt.Errorf("--frontends, --own-addresses and --pool-arg go with --pool")
		}
		if sc.Pool == nil {
			sc.Pool, sc.Targets = &scenario.Pool{}, nil
		}
		set(s, "frontends", &sc.Pool.FrontEnds, f.frontends)
		set(s, "own-addresses", &sc.Pool.Own, f.own)
		set(s, "pool-arg", &sc.Pool.Args, f.poolArgs)
	}
	if len(f.targets) > 0 {
		if f.pool {
			return fmt.Errorf("--pool and --target exclude one another")
		}
		sc.Pool, sc.Targets = nil, f.targets
	}
	if s.Changed("users") {
		if n, err := strconv.Atoi(f.users); err == nil {
			sc.Clients, sc.Users = n, ""
		} else {
			n, err := countUsers(f.users)
			if err != nil {
				return fmt.Errorf("--users: %w", err)
			}
			sc.Users, sc.Clients = f.users, n
		}
	}
	set(s, "spread", &sc.Spread, f.spread)
	set(s, "transport", &sc.Transport, f.transport)
	set(s, "ca", &sc.TLS.CA, f.ca)
	set(s, "tls-name", &sc.TLS.Name, f.name)
	set(s, "insecure", &sc.TLS.Insecure, f.insecure)
	set(s, "ws-path", &sc.WSPath, f.wsPath)
	set(s, "source", &sc.Sources, f.sources)
	set(s, "domain", &sc.Domain, f.domain)
	set(s, "user-format", &sc.UserFormat, f.userFormat)
	set(s, "password", &sc.Password, f.password)
	set(s, "expires", &sc.Expires, scenario.Duration(f.expires))
	set(s, "timeout", &sc.Timeout, scenario.Duration(f.timeout))
	set(s, "rate", &sc.Ramp.Rate, f.rate)
	set(s, "ramp", &sc.Ramp.Shape, f.shape)
	set(s, "ramp-wait", &sc.Ramp.Wait, scenario.Duration(f.wait))
	set(s, "duration", &sc.Duration, scenario.Duration(f.duration))
	set(s, "until", &sc.Until, f.until)
	set(s, "unregister", &sc.Unregister, f.unregister)
	set(s, "workers", &sc.Workers, f.workers)
	set(s, "max-lag", &sc.MaxLag, scenario.Duration(f.maxLag))
	set(s, "seed", &sc.Seed, f.seed)
	sc.FailIf = append(sc.FailIf, f.failIf...)
	sc.Events = append(sc.Events, f.events...)
	return f.applyMix(s, sc)
}

func (f *flags) applyMix(s *pflag.FlagSet, sc *scenario.Scenario) error {
	if !s.Changed("mix") {
		return nil
	}
	sc.Mix = map[string]int{}
	for _, m := range f.mix {
		name, weight, given := strings.Cut(m, "=")
		n := 1
		if given {
			var err error
			if n, err = strconv.Atoi(weight); err != nil {
				return fmt.Errorf("--mix %s: write NAME=WEIGHT", m)
			}
		}
		sc.Mix[strings.TrimSpace(name)] = n
	}
	return nil
}

func set[T any](s *pflag.FlagSet, name string, to *T, v T) {
	if s.Changed(name) {
		*to = v
	}
}
