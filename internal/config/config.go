// Package config is the configuration file of `rollcall up` and `rollcall frontend`:
// one YAML file with every flag of both, and what is too rare for a flag. A key
// that is not known is an error, with its line and the key that was probably meant.
package config

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/routing"
)

// Config is the whole file. The zero value of a field that is not in the file is
// never used: Load starts from Default. Durations are written with their unit: 1s, 100ms, 2h.
type Config struct {
	Pool      Pool      `yaml:"pool"`
	Up        Up        `yaml:"up"`
	Frontend  Frontend  `yaml:"frontend"`
	Registrar Registrar `yaml:"registrar"`
	Digest    Digest    `yaml:"digest"`
	Bearer    Bearer    `yaml:"bearer"`
	SIP       SIP       `yaml:"sip"`
	Liveness  Liveness  `yaml:"liveness"`
	Bus       Bus       `yaml:"bus"`
	Log       Log       `yaml:"log"`

	given map[string]bool // paths of the keys that the file has: "pool.groups"
}

// Pool is what all processes of a pool must agree on. The first one stores it.
type Pool struct {
	Groups     int      `yaml:"groups"`     // routing groups; fixed once there is data
	Domains    []string `yaml:"domains"`    // SIP domains served
	Realm      string   `yaml:"realm"`      // of digest challenges; empty: the user's domain
	Auth       string   `yaml:"auth"`       // digest or off
	Algorithms []string `yaml:"algorithms"` // digest algorithms offered, in order
	Direct     string   `yaml:"direct"`     // relay or redirect
	Redirect   []string `yaml:"redirect"`   // regular expressions of User-Agents that may be redirected
	Expect     int      `yaml:"expect"`     // Front Ends to wait for before the first placement; 0: those of up
}

// Up is what `rollcall up` starts on one machine.
type Up struct {
	Frontends    int           `yaml:"frontends"`
	SIP          string        `yaml:"sip"`  // pool address, host:port, UDP and TCP
	HTTP         string        `yaml:"http"` // host:port of status and metrics; empty: none
	Data         string        `yaml:"data"` // directory; empty: under the user's state directory
	Users        string        `yaml:"users"`
	RestartAfter time.Duration `yaml:"restart_after"` // 0s: never
}

// Frontend is one Front End started by itself.
type Frontend struct {
	Name      string   `yaml:"name"`
	SIP       []string `yaml:"sip"`        // own addresses: udp:host:port, tcp:host:port
	SharedSIP string   `yaml:"shared_sip"` // pool address shared by the Front Ends of this machine
	Health    string   `yaml:"health"`     // host:port of the health port
	Zone      string   `yaml:"zone"`       // failure domain
}

// Registrar is the policy of registrations.
type Registrar struct {
	MinExpires       time.Duration `yaml:"min_expires"`
	MaxExpires       time.Duration `yaml:"max_expires"`
	DefaultExpires   time.Duration `yaml:"default_expires"`
	Grace            time.Duration `yaml:"grace"` // a binding is kept this long past its expiry
	MaxContacts      int           `yaml:"max_contacts"`
	WhenFull         string        `yaml:"when_full"` // forbid, unavailable or replace
	AllowEqualCSeq   bool          `yaml:"allow_equal_cseq"`
	RefuseThirdParty bool          `yaml:"refuse_third_party"`
	FlowTimer        time.Duration `yaml:"flow_timer"` // 0s: not told
	Grants           []Grant       `yaml:"grants"`     // the first that fits counts

	MaxRecord          int           `yaml:"max_record"`   // bytes stored for one user
	OutOfOrder         int           `yaml:"out_of_order"` // status for a CSeq that is not higher
	RequirePathSupport bool          `yaml:"require_path_support"`
	GRUU               bool          `yaml:"gruu"`
	ShowReceived       bool          `yaml:"show_received"`
	FlowGrace          time.Duration `yaml:"flow_grace"` // a binding is kept this long after its connection closed
	ThirdParty         []ThirdParty  `yaml:"third_party"`
	Watchers           []string      `yaml:"watchers"`
}

// ThirdParty lets one user register others.
type ThirdParty struct {
	User string `yaml:"user"` // who authenticates: alice or alice@example.test
	For  string `yaml:"for"`  // regular expression of whole AORs
}

// Grant lowers the expiry that some clients are granted.
type Grant struct {
	Transport string        `yaml:"transport"`  // empty: any
	UserAgent string        `yaml:"user_agent"` // regular expression; empty: any
	Max       time.Duration `yaml:"max"`
}

// Digest is how passwords are asked for.
type Digest struct {
	NonceLife  time.Duration `yaml:"nonce_life"`
	NonceCount string        `yaml:"nonce_count"` // stale, strict or off
	QOP        []string      `yaml:"qop"`
	AllowNoQOP bool          `yaml:"allow_no_qop"`
}

// Bearer is how access tokens are checked (RFC 8898).
type Bearer struct {
	Offer      string        `yaml:"offer"` // none, only, or beside digest: first or last
	JWKS       string        `yaml:"jwks_file"`
	PEM        []string      `yaml:"key_files"`
	Secret     string        `yaml:"secret_file"` // of HS256
	Algorithms []string      `yaml:"algorithms"`
	Issuer     string        `yaml:"issuer"`
	Audience   string        `yaml:"audience"`
	Scope      string        `yaml:"scope"`
	Claim      string        `yaml:"claim"`        // that names the user
	Server     string        `yaml:"authz_server"` // https URI, told to clients
	Leeway     time.Duration `yaml:"leeway"`
}

// SIP bounds what a Front End takes on.
type SIP struct {
	HoldMax        time.Duration `yaml:"hold_max"` // how long a REGISTER waits for a primary
	MaxInFlight    int           `yaml:"max_in_flight"`
	MaxConnections int           `yaml:"max_connections"`
	ServiceRoute   bool          `yaml:"service_route"`
	DrainTimeout   time.Duration `yaml:"drain_timeout"`
}

// Liveness is when a Front End counts as gone.
type Liveness struct {
	PulseEvery     time.Duration `yaml:"pulse_every"`
	PingEvery      time.Duration `yaml:"ping_every"`
	PingTimeout    time.Duration `yaml:"ping_timeout"`
	ReconnectGrace time.Duration `yaml:"reconnect_grace"`
	DownAfter      time.Duration `yaml:"down_after"`
	FenceAfter     time.Duration `yaml:"fence_after"`
	FormTimeout    time.Duration `yaml:"form_timeout"`
}

// Bus is how to reach a bus that `up` has not started itself, and how it stores.
type Bus struct {
	URL         string `yaml:"url"` // empty: up starts one
	Credentials string `yaml:"credentials"`
	User        string `yaml:"user"`
	Password    string `yaml:"password_file"`
	Token       string `yaml:"token_file"`
	TLS         TLS    `yaml:"tls"`
	Replicas    int    `yaml:"replicas"`
	Sync        string `yaml:"sync"`
}

// TLS is how a connection to the bus is secured.
type TLS struct {
	CA   string `yaml:"ca"`
	Cert string `yaml:"cert"`
	Key  string `yaml:"key"`
}

// Log is what is logged, and how.
type Log struct {
	Level  string `yaml:"level"`  // debug, info, warn, error
	Format string `yaml:"format"` // text or json
}

// Default is what holds when nothing is said.
func Default() Config {
	settings, policy, rules := control.DefaultSettings(), registrar.DefaultPolicy(), routing.DefaultRules()
	return Config{
		Pool: Pool{
			Groups: settings.Groups, Domains: settings.Domains, Auth: settings.Auth,
			Algorithms: settings.Algorithms, Direct: settings.Direct,
		},
		Up: Up{
			Frontends: 3, SIP: "127.0.0.1:5060", HTTP: "127.0.0.1:8080", RestartAfter: 5 * time.Second,
		},
		Frontend: Frontend{Health: "127.0.0.1:0"},
		Registrar: Registrar{
			MinExpires: policy.MinExpires, MaxExpires: policy.MaxExpires, DefaultExpires: policy.DefaultExpires,
			Grace: policy.Grace, MaxContacts: policy.MaxContacts, WhenFull: "forbid",
			MaxRecord: registrar.DefaultMaxRecord, OutOfOrder: 500, GRUU: true,
		},
		Digest: Digest{NonceLife: registrar.DefaultNonceLife, NonceCount: string(registrar.NCStale), QOP: []string{"auth"}},
		Bearer: Bearer{
			Offer: "none", Algorithms: []string{"RS256", "ES256", "EdDSA"}, Claim: "sub", Leeway: 30 * time.Second,
		},
		SIP: SIP{HoldMax: 20 * time.Second, MaxInFlight: 16384, MaxConnections: 16384, DrainTimeout: 10 * time.Second},
		Liveness: Liveness{
			PulseEvery: rules.PulseEvery, PingEvery: rules.PingEvery, PingTimeout: rules.PingTimeout, DownAfter: rules.DownAfter,
			ReconnectGrace: rules.ReconnectGrace, FenceAfter: rules.FenceAfter, FormTimeout: rules.FormTimeout,
		},
		Bus: Bus{Replicas: 1, Sync: "interval"},
		Log: Log{Level: "info", Format: "text"},
	}
}

// Given reports whether the file has a key, named by its path: "pool.groups".
func (c Config) Given(path string) bool { return c.given[path] }

// Settings returns what is wanted of the pool's settings. What nobody asked for, by file
// or flag (asked reports it, by path), is left zero: existing data decides.
func (c Config) Settings(asked func(path string) bool) control.Settings {
	var s control.Settings
	if asked("pool.groups") {
		s.Groups = c.Pool.Groups
	}
	if asked("pool.domains") {
		s.Domains = c.Pool.Domains
	}
	if asked("pool.realm") {
		s.Realm = c.Pool.Realm
	}
	if asked("pool.auth") {
		s.Auth = c.Pool.Auth
	}
	if asked("pool.algorithms") {
		s.Algorithms = c.Pool.Algorithms
	}
	if asked("pool.direct") {
		s.Direct = c.Pool.Direct
	}
	if asked("pool.redirect") {
		s.Redirect = c.Pool.Redirect
	}
	s.Expect = c.Pool.Expect
	return s
}

// Validate says what is wrong, by the key's path: one error, or one of each section, joined.
func (c Config) Validate() error {
	errs := []error{c.validatePool()}
	if errs[0] == nil {
		errs = append(errs, c.validateBearer()) // which needs a domain
	}
	for _, check := range []func() error{c.validateUp, c.validateRegistrar, c.validateSIP, c.validateLiveness, c.validateBus} {
		errs = append(errs, check())
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

func (c Config) validatePool() error {
	s := control.Settings{
		Groups: c.Pool.Groups, Domains: c.Pool.Domains, Realm: c.Pool.Realm, Auth: c.Pool.Auth,
		Algorithms: c.Pool.Algorithms, Direct: c.Pool.Direct, Redirect: c.Pool.Redirect, Expect: max(1, c.Pool.Expect),
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("pool: %w", err)
	}
	if c.Pool.Expect < 0 {
		return fmt.Errorf("pool.expect: %d is negative", c.Pool.Expect)
	}
	return nil
}
