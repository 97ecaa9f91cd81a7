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
		{"pool:\n  groups: many\n", "f.yaml:2: "},
		{"pool:\n  groups: 3\n  groups: 4\n", "f.yaml:3: "},
		{"pool: [\n", "f.yaml:1: "},
		{"up:\n  restart_after: 5\n", "f.yaml:2: "},
		{"up:\n  restart_after: 5 seconds\n", "f.yaml: time: unknown unit"},
		{"pool:\n  groups: 0\n", "f.yaml: pool: 0 routing groups: a pool has 1 to 10000"},
		{"pool:\n  auth: basic\n", `f.yaml: pool: auth "basic": choose digest or off`},
		{"pool:\n  domains: [Example.Test]\n", `f.yaml: pool: domain "Example.Test": give a host name in lower case`},
		{"pool:\n  redirect: ['(']\n", "f.yaml: pool.redirect: error parsing regexp"},
		{"up:\n  sip: 5060\n", `f.yaml: up.sip: "5060" is not host:port`},
		{"frontend:\n  sip: ['127.0.0.1:5060']\n", "f.yaml: frontend.sip: "},
		{"registrar:\n  min_expires: 3h\n", "f.yaml: registrar.default_expires: 1h0m0s is not between"},
		{"registrar:\n  when_full: shout\n", "f.yaml: registrar.when_full: "},
		{"registrar:\n  grants: [{max: 1s}]\n", "f.yaml: registrar.grants: number 1: max 1s is less than min_expires 1m0s"},
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
