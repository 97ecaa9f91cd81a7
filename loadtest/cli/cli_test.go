package cli

import (
	"bytes"
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rollcall/loadtest/report"
	"rollcall/loadtest/scenario"
	"rollcall/loadtest/scripted"
)

// run runs the command and returns its exit code and what it prints.
func run(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	c := Command()
	var o, e bytes.Buffer
	c.SetOut(&o)
	c.SetErr(&e)
	c.SetArgs(args)
	err := c.ExecuteContext(t.Context())
	if err == nil {
		return 0, o.String(), e.String()
	}
	var exit *Exit
	if !errors.As(err, &exit) {
		t.Fatalf("an error without an exit code: %v", err)
	}
	return exit.ExitCode(), o.String(), e.String() + err.Error()
}

func registrar(t *testing.T) string {
	t.Helper()
	l, err := scripted.Listen("tcp", &scripted.Registrar{Realm: "example.test", Password: func(string) string { return "pw" }}, tls.Certificate{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l.Addr
}

func TestExitCodes(t *testing.T) {
	addr := registrar(t)
	common := []string{"--target", addr, "--users", "20", "--password", "pw", "--until", "back >= 40%", "--cut", "50%@100ms"}
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"fine", append(common, "--fail-if", "gap.p99 > 60s", "--out", dir), 0, ""},
		{"held", append(common, "--fail-if", "gap.p99 > 1us"), 3, "fail-if held: gap.p99 > 1us"},
		{"wrong password", []string{"--target", addr, "--users", "2", "--password", "no", "--ramp-wait", "100ms", "--duration", "100ms"}, 1, "the run failed"},
		{"no target", []string{"--users", "2"}, 2, "nothing to storm"},
		{"unknown flag", []string{"--sturm"}, 2, "unknown flag"},
		{"unknown name", append(common, "--fail-if", "gap.p98 > 1s"), 2, "gap.p98"},
		{"bad event", []string{"--pool", "--kill", "fe2"}, 2, "WHAT@TIME"},
		{"kill of what is not ours", []string{"--target", addr, "--kill", "fe2@1s"}, 2, "use exec"},
		{"no such scenario", []string{"/nowhere.yaml"}, 2, "no such file"},
		{"two scenarios", []string{"a", "b"}, 2, "at most 1 arg"},
		{"rate with nonsense", []string{"rate", "--target", addr, "--from", "0"}, 2, "--from"},
	} {
		code, _, errOut := run(t, c.args...)
		if code != c.code || !strings.Contains(errOut, c.want) {
			t.Errorf("%s: exit code %d, %q; want %d, …%s…", c.name, code, errOut, c.code, c.want)
		}
	}
	for _, f := range []string{"report.json", "report.html", "gaps.csv"} {
		if s, err := os.Stat(filepath.Join(dir, f)); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	json := filepath.Join(dir, "report.json")
	if code, out, _ := run(t, "compare", json, json); code != 0 || !strings.Contains(out, "gap p99 ms") {
		t.Errorf("compare: %d %s", code, out)
	}
	r, err := report.Load(json)
	if err != nil || r.Gaps.Started == 0 || r.Machine.CPUs == 0 || len(r.Arguments) == 0 || r.Scenario.Seed != 1 {
		t.Errorf("the report does not say what was run: %+v %v", r, err)
	}
	if b, _ := os.ReadFile(json); strings.Contains(string(b), `"pw"`) {
		t.Error("the password is in the report")
	}
}

// Every example line of the help is one that the command reads.
func TestExamplesOfTheHelpAreRead(t *testing.T) {
	n := 0
	for _, line := range strings.Split(Command().Example, "\n") {
		args := splitShell(strings.TrimSpace(line))
		if len(args) < 2 || args[0] != "rollcall" || args[1] != "storm" {
			t.Errorf("example %q", line)
			continue
		}
		if args[2] == "compare" {
			continue
		}
		n++
		f := &flags{}
		c := Command()
		c.ResetFlags()
		f.register(c.Flags())
		if err := c.ParseFlags(args[2:]); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		sc := &scenario.Scenario{}
		if rest := c.Flags().Args(); len(rest) == 1 {
			var err error
			if sc, err = scenario.Load("../../" + rest[0]); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		err := f.apply(c.Flags(), sc)
		if err == nil {
			err = sc.Complete()
		}
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if n < 4 {
		t.Errorf("only %d examples were read", n)
	}
}

// splitShell splits at blanks outside single quotes, as a shell does.
func splitShell(s string) []string {
	var out []string
	var word strings.Builder
	quoted := false
	for _, r := range s + " " {
		switch {
		case r == '\'':
			quoted = !quoted
		case r == ' ' && !quoted:
			if word.Len() > 0 {
				out = append(out, word.String())
				word.Reset()
			}
		default:
			word.WriteRune(r)
		}
	}
	return out
}

func TestFlagsGoBeforeTheScenario(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte("pool: {frontends: 5}\nclients: 7\nduration: 9s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	sc, err := scenario.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &flags{}
	c := Command()
	c.ResetFlags()
	f.register(c.Flags())
	if err := c.ParseFlags([]string{"--duration", "3s", "--mix", "linphone=3,baresip", "--kill", "fe1@1s", "--cut", "5%@2s"}); err != nil {
		t.Fatal(err)
	}
	if err := f.apply(c.Flags(), sc); err != nil {
		t.Fatal(err)
	}
	if sc.Pool.FrontEnds != 5 || sc.Clients != 7 || sc.Duration.D() != 3*time.Second || sc.Mix["linphone"] != 3 || sc.Mix["baresip"] != 1 || len(sc.Events) != 2 || sc.Events[1].Verb != "cut" {
		t.Errorf("%+v", sc)
	}
}

func TestUsersMayBeAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "u.csv")
	if err := os.WriteFile(path, []byte("user,password\na,1\nb,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := countUsers(path); n != 2 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if _, err := countUsers("lots"); err == nil || !strings.Contains(err.Error(), "neither a number nor a file") {
		t.Errorf("%v", err)
	}
}

func TestBehavioursAreListedAndShownAsAScenarioReadsThem(t *testing.T) {
	code, out, _ := run(t, "behaviours", "linphone")
	if code != 0 {
		t.Fatal(out)
	}
	sc, err := scenario.Read(strings.NewReader("targets: [x:1]\nmix: {linphone: 1}\nbehaviours:\n" + out))
	if err == nil {
		err = sc.Complete()
	}
	if err != nil || sc.Behaviours[0].FIN == nil || sc.Behaviours[0].FIN.Max != 50*time.Millisecond {
		t.Errorf("%v\n%s", err, out)
	}
	if code, _, _ := run(t, "behaviours", "nobody"); code != 2 {
		t.Errorf("exit code %d", code)
	}
}

func TestSparklineLosesNoDip(t *testing.T) {
	values := make([]int, 100)
	for i := range values {
		values[i] = 10
	}
	values[42] = 0
	if got := Sparkline(values, 10, 10); got != "████▁█████" {
		t.Errorf("%q", got)
	}
	if got := Sparkline(nil, 10, 10); got != "" {
		t.Errorf("%q", got)
	}
}
