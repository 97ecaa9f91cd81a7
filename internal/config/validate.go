package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rollcall/internal/control"
)

// maxRecord bounds registrar.max_record: a bus carries messages of 1 MiB.
const maxRecord = 256 << 10

// maxFrontends bounds what one machine is asked to start.
const maxFrontends = 64

func (c Config) validateUp() error {
	if c.Up.Frontends < 1 || c.Up.Frontends > maxFrontends {
		return fmt.Errorf("up.frontends: %d; one machine runs 1 to %d", c.Up.Frontends, maxFrontends)
	}
	if err := HostPort(c.Up.SIP); err != nil {
		return fmt.Errorf("up.sip: %w", err)
	}
	if c.Up.HTTP != "" {
		if err := HostPort(c.Up.HTTP); err != nil {
			return fmt.Errorf("up.http: %w", err)
		}
	}
	if c.Up.RestartAfter < 0 {
		return fmt.Errorf("up.restart_after: %v is negative; 0s means never", c.Up.RestartAfter)
	}
	for _, s := range c.Frontend.SIP {
		if err := SIPAddress(s); err != nil {
			return fmt.Errorf("frontend.sip: %w", err)
		}
	}
	for key, address := range map[string]string{"frontend.shared_sip": c.Frontend.SharedSIP, "frontend.health": c.Frontend.Health} {
		if address != "" {
			if err := HostPort(address); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	for _, p := range c.Pool.Redirect {
		if _, err := regexp.Compile(p); err != nil {
			return fmt.Errorf("pool.redirect: %w", err)
		}
	}
	return nil
}

func (c Config) validateRegistrar() error {
	r := c.Registrar
	switch {
	case r.MinExpires < time.Second:
		return fmt.Errorf("registrar.min_expires: %v; at least 1s", r.MinExpires)
	case r.DefaultExpires < r.MinExpires || r.DefaultExpires > r.MaxExpires:
		return fmt.Errorf("registrar.default_expires: %v is not between min_expires %v and max_expires %v", r.DefaultExpires, r.MinExpires, r.MaxExpires)
	case r.Grace < 0:
		return fmt.Errorf("registrar.grace: %v is negative", r.Grace)
	case r.MaxContacts < 1:
		return fmt.Errorf("registrar.max_contacts: %d; at least 1", r.MaxContacts)
	case !slices.Contains([]string{"forbid", "unavailable", "replace"}, r.WhenFull):
		return fmt.Errorf("registrar.when_full: %q; forbid, unavailable or replace", r.WhenFull)
	case r.FlowTimer < 0:
		return fmt.Errorf("registrar.flow_timer: %v is negative; 0s: not told", r.FlowTimer)
	case r.MaxRecord < 1024 || r.MaxRecord > maxRecord:
		return fmt.Errorf("registrar.max_record: %d bytes; 1024 to %d", r.MaxRecord, maxRecord)
	case r.OutOfOrder != 500 && r.OutOfOrder != 400:
		return fmt.Errorf("registrar.out_of_order: %d; 500 (RFC 3261 §10.3) or 400", r.OutOfOrder)
	case r.FlowGrace < 0 || r.FlowGrace > time.Minute:
		return fmt.Errorf("registrar.flow_grace: %v; 0s to 1m", r.FlowGrace)
	}
	for i, t := range r.ThirdParty {
		if _, err := t.user("example.test"); err != nil {
			return fmt.Errorf("registrar.third_party: number %d: user: %w", i+1, err)
		}
		if _, err := regexp.Compile(whole(t.For)); err != nil || t.For == "" {
			return fmt.Errorf("registrar.third_party: number %d: for: give a regular expression of AORs, such as sip:.*@example[.]test", i+1)
		}
	}
	if _, err := r.Watching("example.test"); err != nil {
		return fmt.Errorf("registrar.watchers: %w", err)
	}
	for i, g := range r.Grants {
		if _, err := regexp.Compile(g.UserAgent); err != nil {
			return fmt.Errorf("registrar.grants: number %d: user_agent: %w", i+1, err)
		}
		if g.Max < r.MinExpires {
			return fmt.Errorf("registrar.grants: number %d: max %v is less than min_expires %v", i+1, g.Max, r.MinExpires)
		}
		if !slices.Contains([]string{"", "udp", "tcp", "tls", "ws", "wss"}, g.Transport) {
			return fmt.Errorf("registrar.grants: number %d: transport %q; udp, tcp, tls, ws or wss", i+1, g.Transport)
		}
	}
	return nil
}

func (c Config) validateBearer() error {
	b := c.Bearer
	if !slices.Contains([]string{"none", "only", "first", "last"}, b.Offer) {
		return fmt.Errorf("bearer.offer: %q; none, only, or beside digest first or last", b.Offer)
	}
	if b.Offer == "none" {
		return nil
	}
	if c.Pool.Auth == control.AuthOff {
		return fmt.Errorf("bearer.offer: %s, but pool.auth is off: nobody is asked for anything", b.Offer)
	}
	tokens := b.Tokens(c.Pool.Domains[0])
	if err := tokens.Validate(); err != nil {
		return fmt.Errorf("bearer: %w", err)
	}
	if u, err := url.Parse(b.Server); err != nil || u.Scheme != "https" || u.Host == "" || strings.ContainsAny(b.Server, "\"\\ ") {
		return fmt.Errorf("bearer.authz_server: %q; the https URI where clients get their tokens (RFC 8898 §4)", b.Server)
	}
	if strings.ContainsAny(b.Scope, "\"\\ \r\n") {
		return fmt.Errorf("bearer.scope: %q; one word", b.Scope)
	}
	return nil
}

func (c Config) validateSIP() error {
	s, d := c.SIP, c.Digest
	switch {
	case s.HoldMax < time.Second || s.HoldMax > 30*time.Second:
		return fmt.Errorf("sip.hold_max: %v; 1s to 30s, since a client gives up after 32 s (RFC 3261 §17.1.2.2)", s.HoldMax)
	case s.MaxInFlight < 1:
		return fmt.Errorf("sip.max_in_flight: %d; at least 1", s.MaxInFlight)
	case s.MaxConnections < 1:
		return fmt.Errorf("sip.max_connections: %d; at least 1", s.MaxConnections)
	case s.DrainTimeout <= 0:
		return fmt.Errorf("sip.drain_timeout: %v; more than 0s", s.DrainTimeout)
	case d.NonceLife < time.Second:
		return fmt.Errorf("digest.nonce_life: %v; at least 1s", d.NonceLife)
	case !slices.Contains([]string{"stale", "strict", "off"}, d.NonceCount):
		return fmt.Errorf("digest.nonce_count: %q; stale, strict or off", d.NonceCount)
	case len(d.QOP) == 0:
		return errors.New("digest.qop: empty; auth, auth-int or both")
	}
	for _, q := range d.QOP {
		if q != "auth" && q != "auth-int" {
			return fmt.Errorf("digest.qop: %q; auth or auth-int", q)
		}
	}
	return nil
}

func (c Config) validateLiveness() error {
	l := c.Liveness
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"pulse_every", l.PulseEvery}, {"ping_every", l.PingEvery}, {"ping_timeout", l.PingTimeout}, {"down_after", l.DownAfter}, {"reconnect_grace", l.ReconnectGrace},
		{"fence_after", l.FenceAfter}, {"form_timeout", l.FormTimeout},
	} {
		if d.value <= 0 {
			return fmt.Errorf("liveness.%s: %v; more than 0s", d.key, d.value)
		}
	}
	if l.DownAfter < 3*l.PulseEvery {
		return fmt.Errorf("liveness.down_after: %v is less than three pulses of %v: one lost pulse would look like a death", l.DownAfter, l.PulseEvery)
	}
	return nil
}

func (c Config) validateBus() error {
	b := c.Bus
	switch {
	case b.Replicas != 1 && b.Replicas != 3 && b.Replicas != 5:
		return fmt.Errorf("bus.replicas: %d; 1, 3 or 5", b.Replicas)
	case b.Sync != "interval" && b.Sync != "always":
		return fmt.Errorf("bus.sync: %q; interval or always", b.Sync)
	case (b.TLS.Cert == "") != (b.TLS.Key == ""):
		return fmt.Errorf("bus.tls: cert and key go together")
	case b.User != "" && b.Password == "":
		return fmt.Errorf("bus.user: %s needs bus.password_file", b.User)
	case !slices.Contains([]string{"debug", "info", "warn", "error"}, c.Log.Level):
		return fmt.Errorf("log.level: %q; debug, info, warn or error", c.Log.Level)
	case c.Log.Format != "text" && c.Log.Format != "json":
		return fmt.Errorf("log.format: %q; text or json", c.Log.Format)
	}
	return nil
}

// HostPort says what is wrong with an address to listen on. The host may be a name.
func HostPort(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is not host:port, such as 127.0.0.1:5060 or [::1]:5060", address)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("%q: port %q is not a number up to 65535", address, port)
	}
	if strings.ContainsAny(host, " /") {
		return fmt.Errorf("%q: host %q", address, host)
	}
	return nil
}

// SIPAddress says what is wrong with transport:host:port.
func SIPAddress(s string) error {
	transport, address, ok := strings.Cut(s, ":")
	if !ok || transport != "udp" && transport != "tcp" {
		return fmt.Errorf("%q is not udp:host:port or tcp:host:port", s)
	}
	return HostPort(address)
}
