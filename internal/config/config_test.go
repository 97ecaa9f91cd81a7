package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"rollcall/registrar"
)

const samples = "../../configs"

// Each sample loads, and has every key of the configuration.
func TestSamples(t *testing.T) {
	for _, name := range []string{"one-machine.yaml", "three-hosts.yaml"} {
		t.Run(name, func(t *testing.T) {
			if _, err := Load(filepath.Join(samples, name)); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(filepath.Join(samples, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range Paths(reflect.TypeFor[Config]()) {
				at, err := yaml.PathString("$." + path)
				if err != nil {
					t.Fatal(err)
				}
				var value any
				if err := at.Read(strings.NewReader(string(data)), &value); err != nil {
					t.Errorf("%s is missing", path)
				}
			}
		})
	}
}

// The sample for one machine says what holds without it.
func TestSampleIsTheDefault(t *testing.T) {
	got, err := Load(filepath.Join(samples, "one-machine.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(Default(), got, cmpopts.IgnoreUnexported(Config{}), cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func TestThreeHosts(t *testing.T) {
	c, err := Load(filepath.Join(samples, "three-hosts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if c.Bus.Replicas != 3 || c.Pool.Expect != 3 || strings.Count(c.Bus.URL, "nats://") != 3 {
		t.Errorf("%+v", c)
	}
}

// Every error is one line with file, place, and what would be right.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"pool:\n  group: 3\n", `f.yaml:2: unknown key "group": did you mean "groups"?`},
		{"pool:\n  groups: 3\n\nliveliness:\n  down_after: 2s\n", `f.yaml:4: unknown key "liveliness": did you mean "liveness"?`},
		{"pool:\n  groups: 3\nxyzzyquux: 1\n", `f.yaml:3: unknown key "xyzzyquux"`},
		{"registrar:\n  grants:\n    - {transport: udp, agent: x, max: 1m}\n", `f.yaml:3: unknown key "agent"`},
		{"pool:\n  groups: many\n", `f.yaml:2: pool.groups: "many"; expected is a whole number`},
		{"pool:\n  groups: 3\n  groups: 4\n", "f.yaml:3: "},
		{"pool: [\n", "f.yaml:1: "},
		{"up:\n  restart_after: 5\n", `f.yaml:2: up.restart_after: "5"; expected is a duration`},
		{"pool: 5\n", `f.yaml:1: pool: "5"; expected is keys with values`},
		{"pool:\n  domains:\n    a: b\n", "f.yaml:3: pool.domains: keys with values; expected is a list"},
		{"pool:\n  realm: [a]\n", "f.yaml:2: pool.realm: a list; expected is a word"},
		{"registrar:\n  gruu: maybe\n", `f.yaml:2: registrar.gruu: "maybe"; expected is true or false`},
		{"registrar:\n  grants:\n    - max: long\n", `f.yaml:3: registrar.grants.max: "long"; expected is a duration`},
		{"- pool\n", "f.yaml:1: the file: a list; expected is keys"},
		{"up:\n  restart_after: 5 seconds\n", `f.yaml:2: up.restart_after: "5 seconds"; expected is a duration with its unit, such as 5s`},
		{"pool:\n  groups: 0\n", "f.yaml: pool: 0 routing groups: a pool has 1 to 10000"},
		{"pool:\n  auth: basic\n", `f.yaml: pool: auth "basic": choose digest or off`},
		{"pool:\n  domains: [Example.Test]\n", `f.yaml: pool: domain "Example.Test": give a host name in lower case`},
		{"pool:\n  redirect: ['(']\n", "f.yaml: pool.redirect: error parsing regexp"},
		{"up:\n  sip: 5060\n", `f.yaml: up.sip: "5060" is not host:port`},
		{"frontend:\n  sip: ['127.0.0.1:5060']\n", "f.yaml: frontend.sip: "},
		{"registrar:\n  min_expires: 3h\n", "f.yaml: registrar.default_expires: 1h0m0s is not between"},
		{"registrar:\n  when_full: shout\n", "f.yaml: registrar.when_full: "},
		{"registrar:\n  grants: [{max: 1s}]\n", "f.yaml: registrar.grants: number 1: max 1s is less than min_expires 1m0s"},
		{"registrar:\n  max_record: 100\n", "f.yaml: registrar.max_record: 100 bytes; 1024 to 262144"},
		{"registrar:\n  out_of_order: 200\n", "f.yaml: registrar.out_of_order: 200; 500"},
		{"registrar:\n  flow_grace: 2m\n", "f.yaml: registrar.flow_grace: 2m0s; 0s to 1m"},
		{"registrar:\n  third_party: [{for: x}]\n", "f.yaml: registrar.third_party: number 1: user: "},
		{"registrar:\n  third_party: [{user: gw, for: '('}]\n", "f.yaml: registrar.third_party: number 1: for: "},
		{"registrar:\n  third_party: [{user: gw}]\n", "f.yaml: registrar.third_party: number 1: for: "},
		{"bearer:\n  offer: both\n", `f.yaml: bearer.offer: "both"; none, only`},
		{"bearer:\n  offer: only\n", "f.yaml: bearer: no keys to check tokens with"},
		{"pool: {auth: off}\nbearer: {offer: only}\n", "f.yaml: bearer.offer: only, but pool.auth is off"},
		{"bearer: {offer: only, jwks_file: k, issuer: i, audience: a, algorithms: [none]}\n", `f.yaml: bearer: algorithm "none"`},
		{"bearer: {offer: only, jwks_file: k, issuer: i, audience: a, algorithms: [HS256]}\n", "f.yaml: bearer: HS256 and the secret file"},
		{"bearer: {offer: only, jwks_file: k, issuer: i, audience: a}\n", `f.yaml: bearer.authz_server: ""; the https URI`},
		{"bearer: {offer: only, jwks_file: k, issuer: i, audience: a, authz_server: 'http://x'}\n", "f.yaml: bearer.authz_server: "},
		{"bearer: {offer: only, jwks_file: k, issuer: i, audience: a, authz_server: 'https://x', scope: 'a b'}\n", "f.yaml: bearer.scope: "},
		{"sip:\n  hold_max: 40s\n", "f.yaml: sip.hold_max: 40s"},
		{"digest:\n  qop: []\n", "f.yaml: digest.qop: empty"},
		{"liveness:\n  down_after: 200ms\n", "f.yaml: liveness.down_after: 200ms is less than three pulses"},
		{"bus:\n  replicas: 2\n", "f.yaml: bus.replicas: 2; 1, 3 or 5"},
		{"log:\n  level: loud\n", "f.yaml: log.level: "},
	} {
		_, err := parse("f.yaml", []byte(c.in))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q:\n got %v\nwant %s…", c.in, err, c.want)
		}
	}
}

// Several faults are told at once, a line each.
func TestSeveralErrors(t *testing.T) {
	for in, want := range map[string][]string{
		"pool:\n  group: 3\n  expect: all\nup:\n  frontends: x\n":          {`f.yaml:2: unknown key "group"`, `f.yaml:3: pool.expect: "all"`, `f.yaml:5: up.frontends: "x"`},
		"pool:\n  auth: basic\nup:\n  frontends: 0\nlog:\n  level: loud\n": {"f.yaml: pool: auth", "f.yaml: up.frontends: 0", "f.yaml: log.level"},
		"pool:\n  domains: []\nbearer:\n  offer: only\n":                   {"f.yaml: pool: no domain"}, // a default of the one is needed for the other
		"nonsense:\nother_nonsense: 1\n":                                   {`f.yaml:1: unknown key "nonsense"`, `f.yaml:2: unknown key "other_nonsense"`},
	} {
		_, err := parse("f.yaml", []byte(in))
		if err == nil {
			t.Errorf("%q passed", in)
			continue
		}
		lines := strings.Split(err.Error(), "\n")
		if len(lines) != len(want) {
			t.Errorf("%q: %d lines:\n%v", in, len(lines), err)
			continue
		}
		for i, w := range want {
			if !strings.HasPrefix(lines[i], w) {
				t.Errorf("%q: %s, want %s…", in, lines[i], w)
			}
		}
	}
}

func TestEmptyFileIsTheDefault(t *testing.T) {
	for _, in := range []string{"", "# nothing\n", "pool:\n", "pool:\n  groups:\n"} {
		c, err := parse("f.yaml", []byte(in))
		if err != nil || c.Given("pool.groups") {
			t.Errorf("%q: %v", in, err)
		}
		if d := cmp.Diff(Default(), c, cmpopts.IgnoreUnexported(Config{})); d != "" {
			t.Errorf("%q: %s", in, d)
		}
	}
}

// What nobody asked for leaves the pool's stored settings alone.
func TestSettings(t *testing.T) {
	c, err := parse("f.yaml", []byte("pool:\n  auth: off\n  groups: 7\n  expect: 2\nbus:\n  tls:\n    ca: x\n"))
	if err != nil { // 'off' is a word in YAML 1.2, no boolean
		t.Fatal(err)
	}
	s := c.Settings(c.Given)
	if s.Groups != 7 || s.Auth != "off" || s.Domains != nil || s.Direct != "" || s.Expect != 2 || !c.Given("bus.tls.ca") {
		t.Errorf("%+v", s)
	}
}

func TestParts(t *testing.T) {
	c, err := parse("f.yaml", []byte("registrar:\n  when_full: replace\n  grants: [{transport: udp, user_agent: ^baresip, max: 90s}]\nliveness:\n  fence_after: 3s\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := c.Registrar.Policy()
	if p.WhenFull != "replace" || len(p.Grants) != 1 || p.Grants[0].Max != 90*time.Second || !p.Grants[0].UserAgent.MatchString("baresip v1") {
		t.Errorf("%+v", p)
	}
	if r := c.Liveness.Rules(); r.FenceAfter != 3*time.Second || r.PulseEvery != 100*time.Millisecond {
		t.Errorf("%+v", r)
	}
}

func TestLoadErrors(t *testing.T) {
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Error(err)
	}
	big := filepath.Join(t.TempDir(), "big.yaml")
	if err := os.WriteFile(big, make([]byte, maxFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "is this the configuration file?") {
		t.Error(err)
	}
}

// Every key of the registrar's policy gets there.
func TestPolicy(t *testing.T) {
	c, err := parse("f.yaml", []byte(`registrar:
  min_expires: 30s
  max_expires: 3h
  default_expires: 2h
  grace: 5s
  max_contacts: 3
  when_full: unavailable
  allow_equal_cseq: true
  refuse_third_party: true
  flow_timer: 90s
  grants: [{transport: udp, max: 1m}]
  max_record: 4096
  out_of_order: 400
  require_path_support: true
  show_received: true
`))
	if err != nil {
		t.Fatal(err)
	}
	want := registrar.Policy{
		MinExpires: 30 * time.Second, MaxExpires: 3 * time.Hour, DefaultExpires: 2 * time.Hour, Grace: 5 * time.Second,
		MaxContacts: 3, WhenFull: registrar.RefuseUnavailable, AllowEqualCSeq: true, RefuseThirdParty: true,
		FlowTimer: 90 * time.Second, Grants: []registrar.Grant{{Transport: "udp", Max: time.Minute}},
		MaxRecord: 4096, OrderStatus: 400, RequirePathSupport: true, ShowReceived: true,
	}
	if d := cmp.Diff(want, c.Registrar.Policy()); d != "" {
		t.Error(d)
	}
}

func TestThirdParty(t *testing.T) {
	c, err := parse("f.yaml", []byte(`registrar:
  third_party:
    - {user: gateway, for: "sip:2[0-9]+@example[.]test"}
    - {user: sip:boss@example.org, for: "sip:.*@example[.]org"}
`))
	if err != nil {
		t.Fatal(err)
	}
	may := c.Registrar.MayRegister("example.test")
	for _, x := range []struct {
		user, aor registrar.AOR
		want      bool
	}{
		{"sip:gateway@example.test", "sip:201@example.test", true}, {"sip:gateway@example.test", "sip:x201@example.test", false},
		{"sip:gateway@example.test", "sip:201@example.test:5070", false}, {"sip:gateway@example.org", "sip:201@example.test", false},
		{"sip:boss@example.org", "sip:anyone@example.org", true}, {"sip:boss@example.org", "sip:201@example.test", false},
	} {
		if got := may(x.user, x.aor); got != x.want {
			t.Errorf("%s for %s: %v", x.user, x.aor, got)
		}
	}
	if Default().Registrar.MayRegister("example.test") != nil {
		t.Error("somebody may by default")
	}
}

func TestBearer(t *testing.T) {
	for offer, want := range map[string]string{"none": "Digest", "only": "Bearer", "first": "Bearer Digest", "last": "Digest Bearer"} {
		c, err := parse("f.yaml", []byte("bearer: {offer: "+offer+", jwks_file: k.json, issuer: i, audience: a, authz_server: 'https://login.example.test/', scope: sip}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(c.Bearer.Schemes(), " "); got != want {
			t.Errorf("%s: %s", offer, got)
		}
		tokens := c.Bearer.Tokens("example.test")
		if tokens.JWKS != "k.json" || tokens.Issuer != "i" || tokens.Audience != "a" || tokens.Scope != "sip" || tokens.Claim != "sub" ||
			tokens.Domain != "example.test" || tokens.Leeway != 30*time.Second || len(tokens.Algorithms) != 3 {
			t.Errorf("%+v", tokens)
		}
	}
}
