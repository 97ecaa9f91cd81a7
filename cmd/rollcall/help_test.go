package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"rollcall/internal/config"
	"rollcall/internal/directory"
	"rollcall/registrar"
)

var update = flag.Bool("update", false, "write the golden files")

// everyCommand lists the command lines of all commands: "user add".
func everyCommand(cmd *cobra.Command, prefix []string) [][]string {
	all := [][]string{prefix}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "storm" {
			all = append(all, everyCommand(sub, append(prefix[:len(prefix):len(prefix)], sub.Name()))...)
		}
	}
	return all
}

// The help of each command is as written down, and has an example.
func TestHelp(t *testing.T) {
	for _, args := range everyCommand(newRoot(console{}), nil) {
		name := strings.Join(append([]string{"rollcall"}, args...), "-")
		t.Run(name, func(t *testing.T) {
			out := must(t, append(args, "--help")...)
			out = regexp.MustCompile(`(?m)^  storm .*\n`).ReplaceAllString(out, "") // tested where it is made
			file := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if out != string(want) {
				t.Errorf("got\n%s\nwant\n%s", out, want)
			}
			if name != "rollcall-user" && !strings.Contains(out, "Examples:") {
				t.Error("no example")
			}
			text, _, _ := strings.Cut(out, "Usage:")
			for line := range strings.Lines(text) {
				if n := utf8.RuneCountInString(line); n > 81 {
					t.Errorf("%d columns: %s", n, line)
				}
			}
		})
	}
}

// Every example calls a command that exists, with flags that it has.
func TestExamplesParse(t *testing.T) {
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for line := range strings.Lines(strings.ReplaceAll(cmd.Example, "\\\n", " ")) {
			args := words(line)
			if len(args) == 0 {
				continue
			}
			found, rest, err := newRoot(console{}).Find(args[1:])
			if err != nil || args[0] != "rollcall" {
				t.Errorf("%q: %v", line, err)
				continue
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%q: %v", line, err)
			}
			if found.Args != nil {
				if err := found.Args(found, found.Flags().Args()); err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot(console{}))
}

// words splits a line as a shell does, up to a comment, pipe or redirection.
func words(line string) (all []string) {
	for _, w := range regexp.MustCompile(`(?:'[^']*'|\S)+`).FindAllString(line, -1) {
		if w == "#" || w == "|" || w == "<" {
			break
		}
		all = append(all, strings.ReplaceAll(w, "'", ""))
	}
	return all
}

// A mistake in the call is one line on the error stream and exit code 2; a failure, 1.
func TestExitCodes(t *testing.T) {
	none := t.TempDir()
	bad := filepath.Join(none, "bad.yaml")
	if err := os.WriteFile(bad, []byte("pool:\n  domain: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"frobnicate", exitUsage, `unknown command "frobnicate"`},
		{"user frobnicate", exitUsage, `unknown command "frobnicate"`},
		{"status --jsno", exitUsage, "unknown flag: --jsno: see 'rollcall status --help'"},
		{"status extra", exitUsage, `unknown command "extra" for "rollcall status"`},
		{"explain", exitUsage, "accepts 1 arg(s), received 0: see 'rollcall explain --help'"},
		{"up --frontends three", exitUsage, `--frontends "three": expected is a whole number: see 'rollcall up --help'`},
		{"up --frontends 0", exitUsage, "up.frontends: 0; one machine runs 1 to 64"},
		{"up --auth basic", exitUsage, `pool: auth "basic": choose digest or off`},
		{"up --direct 302", exitUsage, `pool: direct "302": choose relay or redirect`},
		{"up --restart-after soon", exitUsage, `--restart-after "soon": expected is a duration with its unit, such as 5s`},
		{"status --json=maybe", exitUsage, `--json "maybe": expected is true or false`},
		{"bus --port x", exitUsage, `--port "x": expected is a whole number`},
		{"up --config " + bad, exitFailed, bad + `:2: unknown key "domain": did you mean "domains"?`},
		{"up --config /nonexistent.yaml", exitFailed, "/nonexistent.yaml"},
		{"up --sip 127.0.0.1:99999", exitUsage, `port "99999" is not a number up to 65535`},
		{"up --sip 127.0.0.1:0", exitUsage, "SIP address 127.0.0.1:0: choose a port"},
		{"up --sip 127.0.0.1:65530 --data " + none, exitUsage, "SIP address 127.0.0.1:65530: choose a port"},
		{"up --sip 192.0.2.1:5060 --data " + none, exitFailed, "192.0.2.1:5060 is no address of this machine"},
		{"frontend", exitUsage, "a Front End needs --name"},
		{"frontend --name fe1", exitUsage, "a Front End needs --nats"},
		{"frontend --name fe1 --nats nats://127.0.0.1:1", exitUsage, "a Front End needs --sip"},
		{"frontend --name fe1 --sip 127.0.0.1:5060", exitUsage, "is not udp:host:port"},
		{"frontend --supervised", exitFailed, "no word from the supervisor"},
		{"bus --sync never", exitUsage, "interval or always"},
		{"bus --user x", exitUsage, "--user and --password-file go together"},
		{"bus --token-file /nonexistent", exitFailed, "--token-file: open /nonexistent"},
		{"watch --type weather", exitUsage, "--type weather: choose placement, frontend, registration, flow"},
		{"user import x.csv --format xml", exitUsage, `--format "xml": auto, csv or htdigest`},
		{"user passwd x --generate --password-stdin", exitUsage, "[generate password-stdin] were all set"},
		{"status --data " + none, exitFailed, "no pool is running at " + none + ": start one with 'rollcall up'"},
		{"user add x --data " + none, exitFailed, "no pool is running at "},
		{"status --data :temp:", exitFailed, "give the one that 'rollcall up' printed"},
	} {
		code, out, errs := call(t, "", strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.HasPrefix(errs, "rollcall: ") || !strings.Contains(errs, c.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%s:\n exit %d, want %d\n err %q, want …%s…\n out %q", c.args, code, c.code, errs, c.want, out)
		}
	}
}

// Several errors are a line each.
func TestSeveralErrors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("pool:\n  domain: x\nup:\n  frontends: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := call(t, "", "up", "--config", bad)
	want := "rollcall: " + bad + ":2: unknown key \"domain\": did you mean \"domains\"?\nrollcall: " + bad + ":4: up.frontends: \"x\"; expected is a whole number\n"
	if code != exitFailed || errs != want {
		t.Errorf("exit %d: %s", code, errs)
	}
	code, _, errs = call(t, "", "up", "--frontends", "0", "--auth", "basic")
	if code != exitUsage || strings.Count(errs, "\nrollcall: ") != 1 || !strings.Contains(errs, "up.frontends: 0") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// Flags win over the file, and both are known to have been asked for; what neither says stays as it is.
func TestFlagsOverFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(file, []byte("pool: {groups: 9, direct: redirect}\nup: {frontends: 4, http: ''}\nbus: {tls: {ca: /x}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var c config.Config
	var asked func(string) bool
	cmd := &cobra.Command{Use: "up"}
	k := newKnobs(cmd)
	k.addPool(cmd)
	k.addBus(cmd)
	k.addLog(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		c, asked, err = k.read(cmd)
		return err
	}
	cmd.SetArgs([]string{"--config", file, "--groups", "12", "--domain", "a.test", "--domain", "b.test", "--nats", "nats://x"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	s := c.Settings(asked)
	if s.Groups != 12 || s.Direct != "redirect" || len(s.Domains) != 2 || s.Auth != "" || s.Realm != "" {
		t.Errorf("settings %+v", s)
	}
	if c.Up.Frontends != 4 || c.Up.HTTP != "" || c.Bus.URL != "nats://x" || c.Bus.TLS.CA != "/x" {
		t.Errorf("%+v", c)
	}
}

func TestPrintUsersPages(t *testing.T) {
	var out, notes bytes.Buffer
	users := usersNamed("a", "b", "c")
	if err := printUsers(&out, &notes, users, 2, false); err != nil {
		t.Fatal(err)
	}
	if out.String() != "g01    sip:a@x\ng01    sip:b@x\n" || notes.String() != "1 more: --after sip:b@x\n" {
		t.Errorf("%q %q", out.String(), notes.String())
	}
	out.Reset()
	if err := printUsers(&out, &notes, users[:1], 0, true); err != nil || out.String() != `{"aor":"sip:a@x","group":"g01","digest":["MD5"],"max_contacts":0}`+"\n" {
		t.Errorf("%q %v", out.String(), err)
	}
}

func usersNamed(names ...string) (all []directory.User) {
	for _, n := range names {
		all = append(all, directory.User{AOR: registrar.AOR("sip:" + n + "@x"), Group: "g01",
			HA1: map[string]string{"MD5": strings.Repeat("ab", 16), "MD5@": strings.Repeat("cd", 16)}})
	}
	return all
}
