package config

import (
	"regexp"
	"slices"
	"strings"

	"rollcall/internal/bearer"
	"rollcall/registrar"
	"rollcall/routing"
)

// Policy is the registrar's policy, still without GRUU, which needs the pool's key.
// The configuration has been validated.
func (r Registrar) Policy() registrar.Policy {
	p := registrar.DefaultPolicy()
	p.MinExpires, p.MaxExpires, p.DefaultExpires = r.MinExpires, r.MaxExpires, r.DefaultExpires
	p.Grace, p.MaxContacts, p.FlowTimer = r.Grace, r.MaxContacts, r.FlowTimer
	p.AllowEqualCSeq, p.RefuseThirdParty = r.AllowEqualCSeq, r.RefuseThirdParty
	p.MaxRecord, p.OrderStatus, p.RequirePathSupport, p.ShowReceived = r.MaxRecord, r.OutOfOrder, r.RequirePathSupport, r.ShowReceived
	p.WhenFull = map[string]registrar.WhenFull{
		"forbid": registrar.RefuseForbidden, "unavailable": registrar.RefuseUnavailable, "replace": registrar.ReplaceOldest,
	}[r.WhenFull]
	for _, g := range r.Grants {
		grant := registrar.Grant{Transport: g.Transport, Max: g.Max}
		if g.UserAgent != "" {
			grant.UserAgent = regexp.MustCompile(g.UserAgent)
		}
		p.Grants = append(p.Grants, grant)
	}
	return p
}

// MayRegister says who may register for whom, beside everyone for himself. domain is that of users without one.
func (r Registrar) MayRegister(domain string) func(user, aor registrar.AOR) bool {
	type right struct {
		user registrar.AOR
		aors *regexp.Regexp
	}
	var rights []right
	for _, t := range r.ThirdParty {
		if user, err := t.user(domain); err == nil {
			rights = append(rights, right{user, regexp.MustCompile(whole(t.For))})
		}
	}
	if rights == nil {
		return nil
	}
	return func(user, aor registrar.AOR) bool {
		return slices.ContainsFunc(rights, func(r right) bool { return r.user == user && r.aors.MatchString(string(aor)) })
	}
}

// whole makes a pattern match whole strings only.
func whole(pattern string) string { return "^(?:" + pattern + ")$" }

func (t ThirdParty) user(domain string) (registrar.AOR, error) { return userOf(t.User, domain) }

// Watching returns who may subscribe to everyone's registrations. domain is that of users without one.
func (r Registrar) Watching(domain string) (watchers []registrar.AOR, err error) {
	for _, w := range r.Watchers {
		user, err := userOf(w, domain)
		if err != nil {
			return nil, err
		}
		watchers = append(watchers, user)
	}
	return watchers, nil
}

func userOf(name, domain string) (registrar.AOR, error) {
	name = strings.TrimPrefix(name, "sip:")
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		name, domain = name[:at], name[at+1:]
	}
	return registrar.NewAOR(name, domain)
}

// Tokens is what the checking of access tokens needs. domain is that of users without one.
func (b Bearer) Tokens(domain string) bearer.Config {
	return bearer.Config{
		JWKS: b.JWKS, PEM: b.PEM, Secret: b.Secret, Algorithms: b.Algorithms, Issuer: b.Issuer, Audience: b.Audience,
		Scope: b.Scope, Claim: b.Claim, Domain: domain, Leeway: b.Leeway,
	}
}

// Schemes of authentication to offer, in order.
func (b Bearer) Schemes() []string {
	switch b.Offer {
	case "only":
		return []string{registrar.SchemeBearer}
	case "first":
		return []string{registrar.SchemeBearer, registrar.SchemeDigest}
	case "last":
		return []string{registrar.SchemeDigest, registrar.SchemeBearer}
	}
	return []string{registrar.SchemeDigest}
}

// Authenticator is one with the pool's realm, key and algorithms still missing.
func (d Digest) Authenticator() registrar.Authenticator {
	return registrar.Authenticator{
		QOP: d.QOP, NonceLife: d.NonceLife, NC: registrar.NCPolicy(d.NonceCount), AllowNoQOP: d.AllowNoQOP,
	}
}

// Rules are the times by which Front Ends judge each other.
func (l Liveness) Rules() routing.Rules {
	return routing.Rules(l)
}
