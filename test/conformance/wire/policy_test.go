package wire

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rollcall/internal/control"
	"rollcall/routing"
	"rollcall/test/harness"
)

// policies are what the pool of these tests has that is otherwise than by default.
const policies = `
pool:
  algorithms: [MD5, SHA-256]
registrar:
  min_expires: 1s
  grace: 1s
  max_contacts: 2
  when_full: replace
  allow_equal_cseq: true
  refuse_third_party: true
  flow_timer: 90s
digest:
  nonce_life: 3s
sip:
  service_route: true
`

// policed is a pool of two Front Ends with these policies.
type policed struct {
	*harness.Pool
	frontEnds []control.FrontEnd
	primaries map[string]routing.FrontEnd
	users     []harness.User
}

func startPoliced(t *testing.T) *policed {
	t.Helper()
	dir, p := t.TempDir(), &policed{users: harness.Users(240)}
	config := filepath.Join(dir, "policies.yaml")
	if err := os.WriteFile(config, []byte(policies), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.Pool, err = harness.StartPool(harness.PoolOptions{
		Binary: pool.Binary, Dir: dir, Ports: pool.ports, Users: p.users, FrontEnds: 2, Args: []string{"--config", config},
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	status, err := p.Ready(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	p.frontEnds = status.FrontEnds
	if p.primaries, err = p.Primaries(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// next is a user who was not used before and whose primary that is.
func (p *policed) next(t *testing.T, primary routing.FrontEnd) harness.User {
	t.Helper()
	i := slices.IndexFunc(p.users, func(u harness.User) bool { return p.primaries[u.Name] == primary })
	if i < 0 {
		t.Fatal("no user left: provision more")
	}
	u := p.users[i]
	p.users = slices.Delete(p.users, i, i+1)
	return u
}

// clients are eight: at each Front End, over UDP and TCP, with either as primary.
func (p *policed) clients(t *testing.T) []*client {
	t.Helper()
	var all []*client
	for _, transport := range []string{"udp", "tcp"} {
		var addr [2]string
		for n, fe := range p.frontEnds {
			var err error
			if addr[n], err = p.Own(fe, transport); err != nil {
				t.Fatal(err)
			}
		}
		for n := range addr {
			for _, primary := range p.frontEnds {
				c := newClient(t, transport, addr[n], p.next(t, primary.Name))
				c.elsewhere = addr[1-n]
				all = append(all, c)
			}
		}
	}
	return all
}

// What a rule leaves to policy, as the policies above have it.
func TestPolicies(t *testing.T) {
	t.Parallel()
	p := startPoliced(t)
	for name, test := range map[string]func(*testing.T, []*client){
		"a nonce too old":          policyOldNonce,
		"equal CSeq":               each(policyEqualCSeq),
		"replace the oldest":       each(policyReplaceOldest),
		"expiry":                   policyExpiry,
		"third party refused":      each(policyThirdParty),
		"Flow-Timer":               each(policyFlowTimer),
		"two algorithms in order":  each(policyAlgorithms),
		"Service-Route of primary": each(policyServiceRoute),
	} {
		t.Run(name, func(t *testing.T) { test(t, p.clients(t)) })
	}
}

// each is a test of one client.
func each(test func(*testing.T, *client)) func(*testing.T, []*client) {
	return func(t *testing.T, clients []*client) {
		for _, c := range clients {
			test(t, c)
		}
	}
}

// Row 36: the digest is right, the nonce is too old: stale=true, and the new one is good.
func policyOldNonce(_ *testing.T, clients []*client) {
	for _, c := range clients {
		c.login()
	}
	time.Sleep(3200 * time.Millisecond)
	for _, c := range clients {
		c.has(c.send(c.register(), 401), "stale=true")
		c.do(200)
	}
}

// Row 23, with the option.
func policyEqualCSeq(_ *testing.T, c *client) {
	c.do(200)
	c.cseq--
	c.lasts(c.do(200, "Expires: 600 => Expires: 900"), "sip:a@192.0.2.1", 900)
}

// Row 30, with replacement.
func policyReplaceOldest(t *testing.T, c *client) {
	c.do(200)
	c.do(200, "sip:a@ => sip:b@")
	if got := uris(c.do(200, "sip:a@ => sip:c@")); got != "sip:b@192.0.2.1 sip:c@192.0.2.1" {
		t.Errorf("bound: %s", got)
	}
}

// A binding that isn't refreshed is gone after its expiry and the grace.
func policyExpiry(_ *testing.T, clients []*client) {
	for _, c := range clients {
		c.do(200, "Expires: 600 => Expires: 1")
		c.do(200, "sip:a@ => sip:b@")
	}
	for _, c := range clients {
		c.until("sip:b@192.0.2.1")
	}
}

func policyThirdParty(_ *testing.T, c *client) {
	c.do(403, "From: <sip:"+c.user.Name+"@ => From: <sip:boss@")
	c.has(c.query(), "- Contact:")
}

func policyFlowTimer(_ *testing.T, c *client) {
	a := c.do(200, first+" => "+first+`;reg-id=1;+sip.instance="<urn:uuid:1>"`, "+ Supported: path, outbound")
	c.has(a, "Require: outbound", "Flow-Timer: 90")
}

func policyAlgorithms(t *testing.T, c *client) {
	a := c.send(c.register(), 401)
	got := fields(a, "WWW-Authenticate")
	if len(got) != 2 || parameter(got[0], "algorithm") != "MD5" || parameter(got[1], "algorithm") != "SHA-256" {
		t.Errorf("challenges %q", got)
	}
}

// RFC 3608: the route names the primary, whoever is asked.
func policyServiceRoute(t *testing.T, c *client) {
	here, there := c.conn.RemoteAddr().String(), c.elsewhere
	route := field(c.do(200), "Service-Route")
	if !strings.HasPrefix(route, "<sip:"+here+";") && !strings.HasPrefix(route, "<sip:"+there+";") || !strings.HasSuffix(route, ";lr>") {
		t.Errorf("Service-Route %q, Front Ends %s and %s", route, here, there)
	}
	if other := field(c.as(c.transport, there).do(200), "Service-Route"); other != route {
		t.Errorf("%s at %s, %s at %s", route, here, other, there)
	}
}
