// Package behaviour is how a softphone notices that it lost its registrar and how
// it comes back, as data: one entry for each imitated phone, and the form in which a
// scenario can describe its own.
package behaviour

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
)

// Behaviour of a client. The zero value of a field is the plainest behaviour.
type Behaviour struct {
	Name      string `yaml:"name" json:"name"`
	About     string `yaml:"about" json:"about,omitempty"`
	UserAgent string `yaml:"user_agent" json:"user_agent,omitempty"`
	Supported string `yaml:"supported" json:"supported,omitempty"` // option tags of its REGISTER

	Instance    bool   `yaml:"instance" json:"instance,omitempty"`         // sends +sip.instance
	RegID       int    `yaml:"reg_id" json:"reg_id,omitempty"`             // sends reg-id (RFC 5626 §4.2)
	ExpiryIn    string `yaml:"expiry_in" json:"expiry_in,omitempty"`       // header (default), contact, both
	ContactHost string `yaml:"contact_host" json:"contact_host,omitempty"` // instead of its own address

	FIN    *Span `yaml:"fin" json:"fin,omitempty"`       // from an orderly close to the new attempt; absent: does not react
	RST    *Span `yaml:"rst" json:"rst,omitempty"`       // the same for a reset
	Settle *Span `yaml:"settle" json:"settle,omitempty"` // from a new connection to the REGISTER over it

	Retry       []Span              `yaml:"retry" json:"retry"`                               // wait after the nth failure in a row; the last repeats
	GiveUpAfter int                 `yaml:"give_up_after" json:"give_up_after,omitempty"`     // failures in a row; 0: never
	On          map[string]Reaction `yaml:"on" json:"on,omitempty"`                           // by "503", "5xx", "timeout", "refused", "closed"
	RetryAfter  bool                `yaml:"honour_retry_after" json:"honour_retry_after"`     // waits as told (RFC 3261 §20.33)
	Follow3xx   string              `yaml:"follow_3xx" json:"follow_3xx,omitempty"`           // never (default), initial (only unauthenticated), always
	After       string              `yaml:"after_failure" json:"after_failure,omitempty"`     // stay (default), next, first
	RefusedNext bool                `yaml:"refused_next" json:"refused_next,omitempty"`       // a refused connection: next address at once, once round
	ICMP        string              `yaml:"icmp" json:"icmp,omitempty"`                       // UDP port unreachable: ignore (default), next
	RefreshAt   string              `yaml:"refresh_address" json:"refresh_address,omitempty"` // stay (default), first: each refresh tries the first address again

	Refresh         Fraction      `yaml:"refresh" json:"refresh,omitzero"` // of the granted time
	RefreshBefore   time.Duration `yaml:"refresh_before" json:"refresh_before,omitempty"`
	RefreshBeforeTo time.Duration `yaml:"refresh_before_up_to" json:"refresh_before_up_to,omitempty"` // granted time up to which RefreshBefore counts; 0: always

	Nonce string `yaml:"nonce" json:"nonce,omitempty"` // fresh (default: each REGISTER first without), reuse (counts nc), same-nc (reuses with nc=1)

	KeepAliveStream *Span         `yaml:"keepalive_stream" json:"keepalive_stream,omitempty"`
	KeepAliveUDP    *Span         `yaml:"keepalive_udp" json:"keepalive_udp,omitempty"`
	KeepAliveCRLF   bool          `yaml:"keepalive_crlf" json:"keepalive_crlf,omitempty"` // a single CRLF over UDP instead of a double
	FlowTimer       bool          `yaml:"flow_timer" json:"flow_timer,omitempty"`         // follows a Flow-Timer in the 200 (RFC 5626 §4.4)
	PongTimeout     time.Duration `yaml:"pong_timeout" json:"pong_timeout,omitempty"`     // 0: does not miss a pong
	Unregister      bool          `yaml:"unregister" json:"unregister,omitempty"`         // when it is ended in order
}

// Kinds of Reaction.
const (
	ReactRetry = iota // after the time of the Retry list
	ReactNever        // ends for good
	ReactNext         // the next address at once
	ReactAfter        // after Wait
)

// Reaction to one kind of failure: "retry", "never", "next" or a time.
type Reaction struct {
	Kind int
	Wait Span
}

// UnmarshalText reads a reaction.
func (r *Reaction) UnmarshalText(b []byte) error {
	switch s := string(b); s {
	case "retry":
		r.Kind = ReactRetry
	case "never":
		r.Kind = ReactNever
	case "next":
		r.Kind = ReactNext
	default:
		r.Kind = ReactAfter
		if err := r.Wait.UnmarshalText(b); err != nil {
			return fmt.Errorf("%q is none of retry, never, next, or a time", s)
		}
	}
	return nil
}

// MarshalText writes a reaction as it is read.
func (r Reaction) MarshalText() ([]byte, error) {
	if r.Kind == ReactAfter {
		return r.Wait.MarshalText()
	}
	return []byte([]string{"retry", "never", "next"}[r.Kind]), nil
}

// Span is a time, or a range from which one is drawn.
type Span struct{ Min, Max time.Duration }

// Pick draws by r, a fraction from 0 to below 1.
func (s Span) Pick(r float64) time.Duration { return s.Min + time.Duration(r*float64(s.Max-s.Min)) }

// UnmarshalText reads "2s" or "30s..60s".
func (s *Span) UnmarshalText(b []byte) error {
	lo, hi, isRange := strings.Cut(string(b), "..")
	var err error
	if s.Min, err = time.ParseDuration(lo); err != nil {
		return fmt.Errorf(`%q is no time: write "2s" or "30s..60s"`, b)
	}
	s.Max = s.Min
	if isRange {
		if s.Max, err = time.ParseDuration(hi); err != nil {
			return fmt.Errorf(`%q is no time: write "2s" or "30s..60s"`, b)
		}
	}
	if s.Min < 0 || s.Max < s.Min {
		return fmt.Errorf("%q: a range of times runs from the smaller to the larger, not below 0", b)
	}
	return nil
}

// MarshalText writes a span as it is read.
func (s Span) MarshalText() ([]byte, error) {
	if s.Min == s.Max {
		return []byte(s.Min.String()), nil
	}
	return []byte(s.Min.String() + ".." + s.Max.String()), nil
}

// Fraction is a number from 0 to 1, or a range of them.
type Fraction struct{ Min, Max float64 }

// UnmarshalText reads "0.9" or "0.5..0.9".
func (f *Fraction) UnmarshalText(b []byte) error {
	lo, hi, isRange := strings.Cut(string(b), "..")
	var err error
	f.Min, err = strconv.ParseFloat(lo, 64)
	f.Max = f.Min
	if err == nil && isRange {
		f.Max, err = strconv.ParseFloat(hi, 64)
	}
	if err != nil || f.Min <= 0 || f.Max < f.Min || f.Max > 1 {
		return fmt.Errorf(`%q is no fraction: write "0.9" or "0.5..0.9"`, b)
	}
	return nil
}

// MarshalText writes a fraction as it is read.
func (f Fraction) MarshalText() ([]byte, error) {
	if f.Min == f.Max {
		return fmt.Appendf(nil, "%g", f.Min), nil
	}
	return fmt.Appendf(nil, "%g..%g", f.Min, f.Max), nil
}

// React says what b does after a failure: a status code, or 0 and a word ("timeout", "refused", "closed").
// The exact code goes before its class.
func (b *Behaviour) React(status int, word string) Reaction {
	if status != 0 {
		if r, ok := b.On[strconv.Itoa(status)]; ok {
			return r
		}
		word = strconv.Itoa(status/100) + "xx"
	}
	return b.On[word]
}

// RefreshIn says when to refresh a registration granted for so long, by r from 0 to below 1.
func (b *Behaviour) RefreshIn(granted time.Duration, r float64) time.Duration {
	if b.RefreshBefore > 0 && (b.RefreshBeforeTo == 0 || granted <= b.RefreshBeforeTo) {
		if granted > b.RefreshBefore {
			return granted - b.RefreshBefore
		}
		return granted
	}
	f := b.Refresh
	if f.Max == 0 {
		f = Fraction{0.9, 0.9}
	}
	return time.Duration((f.Min + r*(f.Max-f.Min)) * float64(granted))
}

// Check says what is wrong with b.
func (b *Behaviour) Check() error {
	oneOf := func(field, v string, words ...string) error {
		if v == "" || slices.Contains(words, v) {
			return nil
		}
		return fmt.Errorf("behaviour %s: %s %q is none of %s", b.Name, field, v, strings.Join(words, ", "))
	}
	for _, err := range []error{
		oneOf("expiry_in", b.ExpiryIn, "header", "contact", "both"),
		oneOf("follow_3xx", b.Follow3xx, "never", "initial", "always"),
		oneOf("after_failure", b.After, "stay", "next", "first"),
		oneOf("icmp", b.ICMP, "ignore", "next"),
		oneOf("refresh_address", b.RefreshAt, "stay", "first"),
		oneOf("nonce", b.Nonce, "fresh", "reuse", "same-nc"),
	} {
		if err != nil {
			return err
		}
	}
	if b.Name == "" {
		return fmt.Errorf("a behaviour has no name")
	}
	if len(b.Retry) == 0 {
		return fmt.Errorf("behaviour %s: retry is empty: say how long it waits after a failure", b.Name)
	}
	return nil
}

//go:embed profiles.yaml
var profilesYAML []byte // never written

// Profiles are the behaviours that need no description in a scenario.
func Profiles() ([]*Behaviour, error) {
	var out []*Behaviour
	if err := yaml.UnmarshalWithOptions(profilesYAML, &out, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("profiles.yaml: %w", err)
	}
	for _, b := range out {
		if err := b.Check(); err != nil {
			return nil, fmt.Errorf("profiles.yaml: %w", err)
		}
	}
	return out, nil
}
