package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rollcall/bus"
	"rollcall/routing"
)

// maxGroups bounds the routing groups of a pool: a placement is one entry of the pool table.
const maxGroups = 10_000

// Auth says how a REGISTER is authenticated.
const (
	AuthDigest = "digest"
	AuthOff    = "off" // whoever comes is believed; an unknown user is provisioned at his first REGISTER
)

// Direct says what a Front End does with a REGISTER whose primary is another one.
const (
	DirectRelay    = "relay"
	DirectRedirect = "redirect"
)

// Settings is what all processes of a pool must agree on. It is stored in the pool
// table under SettingsKey by the first process that comes.
type Settings struct {
	Groups     int      `json:"groups"`              // number of routing groups; fixed for the life of the data
	Domains    []string `json:"domains"`             // served SIP domains, lower case; the first one is the default
	Realm      string   `json:"realm,omitempty"`     // of digest challenges; "" means the user's domain
	Auth       string   `json:"auth"`                // AuthDigest or AuthOff
	Algorithms []string `json:"algorithms"`          // offered in challenges, in order (RFC 7616 §6.1)
	Direct     string   `json:"direct"`              // DirectRelay or DirectRedirect
	Redirect   []string `json:"redirect,omitempty"`  // User-Agent patterns that may be redirected
	Expect     int      `json:"expect"`              // Front Ends to wait for before the first placement
	Key        []byte   `json:"nonce_key,omitempty"` // keys the nonces and marks of all Front Ends; secret
	// PreviousKeys were Key before, the newest first: what was made with them is still accepted.
	PreviousKeys [][]byte `json:"previous_keys,omitempty"`
}

// DefaultSettings is a pool that was told nothing. It has no Key yet.
func DefaultSettings() Settings {
	return Settings{
		Groups:     60,
		Domains:    []string{"example.test"},
		Auth:       AuthDigest,
		Algorithms: []string{"MD5"},
		Direct:     DirectRelay,
		Expect:     3,
	}
}

// RealmOf returns the realm of a user of that domain.
func (s Settings) RealmOf(domain string) string {
	if s.Realm != "" {
		return s.Realm
	}
	return domain
}

// Serves reports whether the pool serves a domain, given in lower case.
func (s Settings) Serves(domain string) bool { return slices.Contains(s.Domains, domain) }

// GroupIDs returns the ids of the routing groups, in order.
func (s Settings) GroupIDs() []routing.Group { return routing.GroupNames(s.Groups) }

// String leaves the key out, so that it can't be logged by accident.
func (s Settings) String() string {
	return fmt.Sprintf("%d groups, domains %s, auth %s, direct %s", s.Groups, strings.Join(s.Domains, " "), s.Auth, s.Direct)
}

// GoString is String: %#v must not show the key either.
func (s Settings) GoString() string { return s.String() }

// Validate says what is wrong with settings, in a line for people.
func (s Settings) Validate() error {
	switch {
	case s.Groups < 1 || s.Groups > maxGroups:
		return fmt.Errorf("%d routing groups: a pool has 1 to %d", s.Groups, maxGroups)
	case len(s.Domains) == 0:
		return errors.New("no domain: a pool serves at least one")
	case s.Auth != AuthDigest && s.Auth != AuthOff:
		return fmt.Errorf("auth %q: choose %s or %s", s.Auth, AuthDigest, AuthOff)
	case s.Direct != DirectRelay && s.Direct != DirectRedirect:
		return fmt.Errorf("direct %q: choose %s or %s", s.Direct, DirectRelay, DirectRedirect)
	case len(s.Algorithms) == 0:
		return errors.New("no digest algorithm: MD5 is the one that every client can do")
	case s.Expect < 1:
		return fmt.Errorf("expect %d: a pool has at least one Front End", s.Expect)
	case strings.ContainsAny(s.Realm, "\"\\\r\n"):
		return fmt.Errorf("realm %q: quotes, backslashes and line ends can't be in a realm", s.Realm)
	}
	for i, d := range s.Domains {
		if d == "" || d != strings.ToLower(d) || strings.ContainsAny(d, " @:;<>\"/\r\n\t") {
			return fmt.Errorf("domain %q: give a host name in lower case, without sip: and port", d)
		}
		if slices.Contains(s.Domains[:i], d) {
			return fmt.Errorf("domain %s is given twice", d)
		}
	}
	for _, a := range s.Algorithms {
		if a != "MD5" && a != "SHA-256" && a != "SHA-512-256" {
			return fmt.Errorf("digest algorithm %q: choose MD5, SHA-256 or SHA-512-256", a)
		}
	}
	return nil
}

// ErrFixed is what EnsureSettings answers to a change that existing data forbids.
var ErrFixed = errors.New("fixed by existing data")

// EnsureSettings returns the pool's settings. The first process that comes stores
// them: want over DefaultSettings, with a new Key. Later, what want gives (fields
// that are not zero) replaces what is stored, except the number of groups and the realm: users
// and bindings are stored by group, and HA1s are made with the realm. Then, ErrFixed.
func EnsureSettings(ctx context.Context, pool bus.Table, want Settings) (Settings, error) {
	for range 10 { // each failure means that another process has just written
		stored, revision, err := readSettings(ctx, pool)
		next := stored
		switch {
		case errors.Is(err, bus.ErrNotFound):
			next, err = firstSettings(want)
		case err == nil:
			next, err = changeSettings(stored, want)
		}
		if err != nil {
			return Settings{}, err
		}
		value, err := json.Marshal(next)
		if err != nil {
			return Settings{}, err
		}
		if before, _ := json.Marshal(stored); revision != 0 && string(before) == string(value) {
			return stored, nil
		}
		_, err = pool.Put(ctx, bus.Write{Key: SettingsKey, Value: value, Expect: revision})
		if err == nil {
			return next, nil
		}
		if !errors.Is(err, bus.ErrConflict) {
			return Settings{}, fmt.Errorf("store the pool's settings: %w", err)
		}
	}
	return Settings{}, fmt.Errorf("store the pool's settings: %w", bus.ErrConflict)
}

// ReadSettings returns the stored settings, or bus.ErrNotFound when no pool was ever here.
func ReadSettings(ctx context.Context, pool bus.Table) (Settings, error) {
	s, _, err := readSettings(ctx, pool)
	return s, err
}

func readSettings(ctx context.Context, pool bus.Table) (Settings, bus.Revision, error) {
	e, err := pool.Get(ctx, SettingsKey)
	if err != nil {
		return Settings{}, 0, fmt.Errorf("read the pool's settings: %w", err)
	}
	var s Settings
	if err := json.Unmarshal(e.Value, &s); err != nil {
		return Settings{}, 0, fmt.Errorf("read the pool's settings: damaged: %w", err)
	}
	if err := s.Validate(); err != nil {
		return Settings{}, 0, fmt.Errorf("read the pool's settings: damaged: %w", err)
	}
	return s, e.Revision, nil
}

// firstSettings is want over the defaults, with a key of its own.
func firstSettings(want Settings) (Settings, error) {
	s := overlay(DefaultSettings(), want)
	if want.Groups != 0 {
		s.Groups = want.Groups
	}
	if want.Realm != "" {
		s.Realm = want.Realm
	}
	if s.Key = want.Key; len(s.Key) == 0 {
		s.Key = make([]byte, 32)
		rand.Read(s.Key) // never fails
	}
	return s, s.Validate()
}

// changeSettings is want over what is stored, or says why not.
func changeSettings(stored, want Settings) (Settings, error) {
	if want.Groups != 0 && want.Groups != stored.Groups {
		return Settings{}, fmt.Errorf("the data has %d routing groups, not %d, and their number is %w: keep --groups %d, or start afresh with another --data",
			stored.Groups, want.Groups, ErrFixed, stored.Groups)
	}
	if want.Realm != "" && want.Realm != stored.Realm {
		return Settings{}, fmt.Errorf("the data has realm %q, not %q, and the realm is %w, since the users' HA1s are made with it: keep it, or start afresh with another --data",
			stored.Realm, want.Realm, ErrFixed)
	}
	s := overlay(stored, want)
	return s, s.Validate()
}

// overlay replaces the fields that may always change by those that want gives.
func overlay(s, want Settings) Settings {
	if len(want.Domains) > 0 {
		s.Domains = want.Domains
	}
	if want.Auth != "" {
		s.Auth = want.Auth
	}
	if len(want.Algorithms) > 0 {
		s.Algorithms = want.Algorithms
	}
	if want.Direct != "" {
		s.Direct = want.Direct
	}
	if len(want.Redirect) > 0 {
		s.Redirect = want.Redirect
	}
	if want.Expect != 0 {
		s.Expect = want.Expect
	}
	return s
}
