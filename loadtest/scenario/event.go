package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Event is something done to the registrar or to the clients, once.
type Event struct {
	At    string   `yaml:"at" json:"at,omitempty"`       // "5s" after the ramp, or "ramp+2s" after its start
	When  string   `yaml:"when" json:"when,omitempty"`   // or a condition: "registered >= 99%", "gaps_open == 0"; from the end of the ramp on
	After Duration `yaml:"after" json:"after,omitempty"` // the condition held

	// Exactly one of these. FE is a name as in `rollcall status`, or all.
	Kill    string `yaml:"kill" json:"kill,omitempty"`       // SIGKILL
	Stop    string `yaml:"stop" json:"stop,omitempty"`       // SIGTERM
	Pause   string `yaml:"pause" json:"pause,omitempty"`     // SIGSTOP, for so long as For says
	Resume  string `yaml:"resume" json:"resume,omitempty"`   // SIGCONT
	Restart string `yaml:"restart" json:"restart,omitempty"` // SIGTERM, and the pool starts it again
	Drain   string `yaml:"drain" json:"drain,omitempty"`     // SIGTERM, which drains it; unlike stop, no UDP client counts a gap
	Exec    string `yaml:"exec" json:"exec,omitempty"`       // any command line, run by sh
	Cut     string `yaml:"cut" json:"cut,omitempty"`         // a share of the clients' connections: "50%"

	For Duration `yaml:"for" json:"for,omitempty"` // of a pause; 0: until a resume
	// Lossless: this event takes no server away, so that connectionless clients do not count a gap from it.
	Lossless bool `yaml:"lossless" json:"lossless,omitempty"`

	Verb  string    `yaml:"-" json:"-"`
	Arg   string    `yaml:"-" json:"-"`
	Ramp  bool      `yaml:"-" json:"-"` // At counts from the start of the ramp
	Time  Duration  `yaml:"-" json:"-"`
	Share float64   `yaml:"-" json:"-"`
	Cond  Condition `yaml:"-" json:"-"`
}

// String says what the event does: "kill fe2".
func (e Event) String() string { return strings.TrimSpace(e.Verb + " " + e.Arg) }

// TakesServer reports whether connectionless clients count a gap from it.
func (e Event) TakesServer() bool {
	switch e.Verb {
	case "kill", "stop", "pause", "restart", "exec":
		return !e.Lossless
	}
	return false
}

// ParseEvent reads the form of the flags: verb and "fe2@5s", "50%@ramp+2s", "systemctl stop x@5s", "fe2@5s+3s" (pause).
func ParseEvent(verb, s string) (Event, error) {
	i := strings.LastIndexByte(s, '@')
	if i <= 0 || i == len(s)-1 {
		return Event{}, fmt.Errorf("--%s %q: write WHAT@TIME, as in %q", verb, s, "fe2@5s")
	}
	arg, at := s[:i], s[i+1:]
	e := Event{At: at}
	if verb == "pause" {
		prefix := ""
		if rest, ok := strings.CutPrefix(at, "ramp+"); ok {
			prefix, at = "ramp+", rest
		}
		if when, length, ok := strings.Cut(at, "+"); ok {
			if err := e.For.UnmarshalText([]byte(length)); err != nil {
				return e, err
			}
			e.At = prefix + when
		}
	}
	field := map[string]*string{"kill": &e.Kill, "stop": &e.Stop, "pause": &e.Pause, "resume": &e.Resume,
		"restart": &e.Restart, "drain": &e.Drain, "exec": &e.Exec, "cut": &e.Cut}[verb]
	if field == nil {
		return e, fmt.Errorf("no event %q", verb)
	}
	*field = strings.Trim(arg, `'`)
	return e, e.parse()
}

// parse reads what stands in the fields.
func (e *Event) parse() error {
	found := 0
	for verb, arg := range map[string]string{"kill": e.Kill, "stop": e.Stop, "pause": e.Pause, "resume": e.Resume,
		"restart": e.Restart, "drain": e.Drain, "exec": e.Exec, "cut": e.Cut} {
		if arg != "" {
			e.Verb, e.Arg = verb, arg
			found++
		}
	}
	if found != 1 {
		return errors.New("needs exactly one of kill, stop, pause, resume, restart, drain, exec, cut")
	}
	if (e.At == "") == (e.When == "") {
		return fmt.Errorf("%s: needs one of at, when", e)
	}
	if e.Verb == "cut" {
		n, err := strconv.ParseFloat(strings.TrimSuffix(e.Arg, "%"), 64)
		if err != nil || !strings.HasSuffix(e.Arg, "%") || n <= 0 || n > 100 {
			return fmt.Errorf("cut %q: write a share as 50%%", e.Arg)
		}
		e.Share = n / 100
	}
	if e.When != "" {
		var err error
		e.Cond, err = ParseCondition(e.When)
		return err
	}
	at, ramp := strings.CutPrefix(e.At, "ramp+")
	e.Ramp = ramp
	return e.Time.UnmarshalText([]byte(at))
}

func (e *Event) complete(s *Scenario) error {
	if err := e.parse(); err != nil {
		return err
	}
	if s.Pool == nil && e.Verb != "exec" && e.Verb != "cut" {
		return fmt.Errorf("%s: only a pool of ours (--pool) has Front Ends to %s; with --target use exec", e, e.Verb)
	}
	if !e.Ramp && e.Cond == (Condition{}) && e.Time.D() > s.Duration.D() {
		return fmt.Errorf("%s at %v is after the end (duration %v)", e, e.Time.D(), s.Duration.D())
	}
	return nil
}

// Condition on the state of a run: Name Op Value, a percentage being of all clients.
type Condition struct {
	Name, Op string
	Value    float64
	Percent  bool
}

// ParseCondition reads "registered >= 99%".
func ParseCondition(s string) (Condition, error) {
	f := strings.Fields(s)
	c := Condition{}
	usage := fmt.Errorf("condition %q: write NAME OP NUMBER, as in \"registered >= 99%%\"; names are registered, gaps_open, back", s)
	if len(f) != 3 {
		return c, usage
	}
	c.Name, c.Op = f[0], f[1]
	number, percent := strings.CutSuffix(f[2], "%")
	v, err := strconv.ParseFloat(number, 64)
	c.Value, c.Percent = v, percent
	known := c.Name == "registered" || c.Name == "gaps_open" || c.Name == "back"
	if err != nil || !known || !(c.Op == ">=" || c.Op == "<=" || c.Op == "==" || c.Op == ">" || c.Op == "<") {
		return c, usage
	}
	return c, nil
}

// Holds evaluates c.
func (c Condition) Holds(clients int, value func(name string) int) bool {
	want := c.Value
	if c.Percent {
		want = want / 100 * float64(clients)
	}
	have := float64(value(c.Name))
	switch c.Op {
	case ">=":
		return have >= want
	case "<=":
		return have <= want
	case ">":
		return have > want
	case "<":
		return have < want
	}
	return have == want
}

// Due is when the event happens, given the end of the ramp; only of events with a time.
func (e Event) Due(rampEnd time.Duration) time.Duration {
	if e.Ramp {
		return e.Time.D()
	}
	return rampEnd + e.Time.D()
}
