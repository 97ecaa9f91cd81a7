package wire

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// What a rule leaves to policy, as the policies above have it: at each of two Front
// Ends, over UDP and TCP, for users of either.
func TestPolicies(t *testing.T) {
	t.Parallel()
	dir, users := t.TempDir(), harness.Users(120)
	config := filepath.Join(dir, "policies.yaml")
	if err := os.WriteFile(config, []byte(policies), 0o600); err != nil {
		t.Fatal(err)
	}
	own, err := harness.StartPool(harness.PoolOptions{
		Binary: pool.Binary, Dir: dir, Ports: pool.ports, Users: users, FrontEnds: 2, Args: []string{"--config", config},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	status, err := own.Ready(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	addresses := map[string][]string{}
	for _, transport := range []string{"udp", "tcp"} {
		for _, fe := range status.FrontEnds {
			addr, err := own.Own(fe, transport)
			if err != nil {
				t.Fatal(err)
			}
			addresses[transport] = append(addresses[transport], addr)
		}
	}
	for name, test := range map[string]func(*testing.T, *client){
		"a nonce too old":          policyOldNonce,
		"equal CSeq":               policyEqualCSeq,
		"replace the oldest":       policyReplaceOldest,
		"expiry":                   policyExpiry,
		"third party refused":      policyThirdParty,
		"Flow-Timer":               policyFlowTimer,
		"two algorithms in order":  policyAlgorithms,
		"Service-Route of primary": func(t *testing.T, c *client) { policyServiceRoute(t, c, addresses[c.transport]) },
	} {
		for transport, list := range addresses {
			for _, addr := range list {
				for range 3 { // users of either primary, in all likelihood
					user := users[0]
					users = users[1:]
					t.Run(name+" "+transport, func(t *testing.T) {
						t.Parallel()
						test(t, newClient(t, transport, addr, user))
					})
				}
			}
		}
	}
}

// Row 36: the digest is right, the nonce is too old: stale=true, and the new one is good.
func policyOldNonce(t *testing.T, c *client) {
	c.login()
	time.Sleep(3200 * time.Millisecond)
	c.has(c.send(c.register(), 401), "stale=true")
	c.do(200)
}

// Row 23, with the option.
func policyEqualCSeq(t *testing.T, c *client) {
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
func policyExpiry(t *testing.T, c *client) {
	c.do(200, "Expires: 600 => Expires: 1")
	c.do(200, "sip:a@ => sip:b@")
	c.until("sip:b@192.0.2.1")
}

func policyThirdParty(t *testing.T, c *client) {
	c.do(403, "From: <sip:"+c.user.Name+"@ => From: <sip:boss@")
	c.has(c.query(), "- Contact:")
}

func policyFlowTimer(t *testing.T, c *client) {
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

// RFC 3608: the route names the primary, which is one of the two, whoever is asked.
func policyServiceRoute(t *testing.T, c *client, addresses []string) {
	route := field(c.do(200), "Service-Route")
	for _, addr := range addresses {
		if strings.HasPrefix(route, "<sip:"+addr) && strings.HasSuffix(route, ";lr>") {
			d := c.as(c.transport, addresses[0])
			e := c.as(c.transport, addresses[1])
			e.cseq++ // d's next is the same
			e.nc++
			if one, two := field(d.do(200), "Service-Route"), field(e.do(200), "Service-Route"); one != route || two != route {
				t.Errorf("%s, then %s and %s", route, one, two)
			}
			return
		}
	}
	t.Errorf("Service-Route %q, Front Ends %q", route, addresses)
}
