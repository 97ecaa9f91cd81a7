package config

import (
	"regexp"

	"rollcall/registrar"
	"rollcall/routing"
)

// Policy is the registrar's policy. The configuration has been validated.
func (r Registrar) Policy() registrar.Policy {
	p := registrar.DefaultPolicy()
	p.MinExpires, p.MaxExpires, p.DefaultExpires = r.MinExpires, r.MaxExpires, r.DefaultExpires
	p.Grace, p.MaxContacts, p.FlowTimer = r.Grace, r.MaxContacts, r.FlowTimer
	p.AllowEqualCSeq, p.RefuseThirdParty = r.AllowEqualCSeq, r.RefuseThirdParty
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
