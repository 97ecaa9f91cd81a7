package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSamplesAreReadAndComplete(t *testing.T) {
	files, err := filepath.Glob("../../configs/storms/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("samples: %v %v", files, err)
	}
	for _, f := range files {
		s, err := Load(f)
		if err == nil {
			err = s.Complete()
		}
		if err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestErrorsNameTheLineAndTheMend(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"clients: 5\nclinets: 6\n", "[2:1] unknown field \"clinets\""},
		{"targets: [x:1]\nduration: soon\n", "write \"500ms\""},
		{"targets: [x:1]\ntransport: sctp\n", "none of udp, tcp"},
		{"clients: 5\n", "nothing to storm"},
		{"targets: [x:1]\nevents:\n- at: 5s\n", "exactly one of"},
		{"targets: [x:1]\nevents:\n- kill: fe1\n  at: 5s\n", "with --target use exec"},
		{"targets: [x:1]\nevents:\n- cut: half\n  at: 5s\n", "50%"},
		{"pool: {}\nevents:\n- kill: fe1\n  at: 50s\n", "after the end"},
		{"pool: {}\nevents:\n- kill: fe1\n  when: moon is full\n", "registered >= 99%"},
		{"pool: {}\nmix: {phone: 1}\n", "storm behaviours"},
		{"pool: {}\nbehaviours: [{name: x, nonce: never, retry: [1s]}]\n", "none of fresh"},
	} {
		s, err := Read(strings.NewReader(c.yaml))
		if err == nil {
			err = s.Complete()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want …%s…", c.yaml, err, c.want)
		}
	}
}

func TestParseEvent(t *testing.T) {
	for _, c := range []struct {
		verb, in, want string
		at, length     time.Duration
		ramp           bool
	}{
		{"kill", "fe2@5s", "kill fe2", 5 * time.Second, 0, false},
		{"pause", "fe1@5s+3s", "pause fe1", 5 * time.Second, 3 * time.Second, false},
		{"pause", "fe1@ramp+5s+3s", "pause fe1", 5 * time.Second, 3 * time.Second, true},
		{"exec", "'ssh a@b reboot'@ramp+2s", "exec ssh a@b reboot", 2 * time.Second, 0, true},
		{"cut", "50%@1m", "cut 50%", time.Minute, 0, false},
	} {
		e, err := ParseEvent(c.verb, c.in)
		if err != nil || e.String() != c.want || e.Time.D() != c.at || e.For.D() != c.length || e.Ramp != c.ramp {
			t.Errorf("%s %q: %+v %v", c.verb, c.in, e, err)
		}
	}
	for _, bad := range []string{"fe2", "@5s", "fe2@", "fe2@soon"} {
		if _, err := ParseEvent("kill", bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestConditions(t *testing.T) {
	value := func(string) int { return 99 }
	for s, want := range map[string]bool{"registered >= 99%": true, "registered > 99%": false, "gaps_open == 99": true, "back < 10": false, "back <= 99": true} {
		c, err := ParseCondition(s)
		if err != nil || c.Holds(100, value) != want {
			t.Errorf("%s: %v, %v", s, c.Holds(100, value), err)
		}
	}
}

func TestRampShapes(t *testing.T) {
	for _, c := range []struct {
		shape string
		want  [3]time.Duration // of clients 0, 25 and 99 of 100 at 50/s
	}{
		{"even", [3]time.Duration{0, 500 * time.Millisecond, 1980 * time.Millisecond}},
		{"burst", [3]time.Duration{0, 0, time.Second}},
		{"rising", [3]time.Duration{0, time.Second, 1989974874 * time.Nanosecond}},
	} {
		r := Ramp{Rate: 50, Shape: c.shape}
		if got := [3]time.Duration{r.Start(0, 100), r.Start(25, 100), r.Start(99, 100)}; got != c.want {
			t.Errorf("%s: %v, want %v", c.shape, got, c.want)
		}
	}
}

func TestMixIsKeptInEveryStretch(t *testing.T) {
	s := &Scenario{Targets: []string{"x:1"}, Mix: map[string]int{"linphone": 3, "baresip": 1}}
	choose, err := s.Choose()
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < 40; from += 4 {
		n := 0
		for i := from; i < from+4; i++ {
			if choose(i).Name == "linphone" {
				n++
			}
		}
		if n != 3 {
			t.Errorf("clients %d to %d: %d linphones", from, from+3, n)
		}
	}
}

func TestCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "u.csv")
	if err := os.WriteFile(path, []byte("user,password\nalice@example.test,a\nbob,\"b,c\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Scenario{Users: path, Clients: 2}
	get, err := s.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	if u, p := get(0); u != "alice" || p != "a" {
		t.Errorf("%s %s", u, p)
	}
	if u, p := get(1); u != "bob" || p != "b,c" {
		t.Errorf("%s %s", u, p)
	}
	s.Clients = 3
	if _, err := s.Credentials(); err == nil || !strings.Contains(err.Error(), "2 users for 3 clients") {
		t.Errorf("too few users: %v", err)
	}
}
