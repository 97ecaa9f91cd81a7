package directory

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"rollcall/registrar"
)

var names = Names{Domains: []string{"example.test", "other.test"}}

func read(n Names, f Format, text string) ([]User, error) {
	return readFrom(n, f, strings.NewReader(text))
}

func readFrom(n Names, f Format, r io.Reader) (all []User, err error) {
	for u, err := range n.Read(f, "users.txt", r) {
		if err != nil {
			return all, err
		}
		all = append(all, u)
	}
	return all, nil
}

func TestReadCSV(t *testing.T) {
	in := "\xef\xbb\xbfuser,password\n# a comment\nalice,secret\n\nbob@OTHER.test,\"a,b\"\nuser,password2\n"
	all, err := read(names, CSV, in)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range all {
		got = append(got, string(u.AOR))
	}
	if s := fmt.Sprint(got); s != "[sip:alice@example.test sip:bob@other.test sip:user@example.test]" {
		t.Error(s)
	}
	// MD5("alice:example.test:secret"), by md5sum.
	if h := all[0].HA1[registrar.MD5]; h != "4842575394a190ef4c973253ba19099c" {
		t.Error(h)
	}
	if h := all[1].HA1[registrar.MD5]; h != ha1(t, "bob", "other.test", "a,b") {
		t.Error("the realm is not the user's domain, or the password is not what the quotes hold")
	}
	for _, a := range ha1Names {
		if checkHA1(a, all[0].HA1[a]) != nil || all[0].HA1[a] == "" {
			t.Errorf("no %s HA1", a)
		}
	}
}

func TestReadCSVWithRealm(t *testing.T) {
	all, err := read(Names{Domains: []string{"example.test"}, Realm: "pool"}, CSV, "alice,x\n")
	if err != nil || all[0].HA1[registrar.MD5] != ha1(t, "alice", "pool", "x") {
		t.Errorf("%v %v", all, err)
	}
}

func TestReadHTDigest(t *testing.T) {
	in := "# htdigest\nalice:example.test:" + strings.ToUpper(md5a) + "\r\nbob:other.test:" + md5b + "\n"
	all, err := read(names, HTDigest, in)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].AOR != "sip:alice@example.test" || all[0].HA1[registrar.MD5] != md5a || all[1].AOR != "sip:bob@other.test" {
		t.Errorf("%+v", all)
	}
	all, err = read(Names{Domains: names.Domains, Realm: "pool"}, HTDigest, "bob@other.test:pool:"+md5a+"\ncarol:pool:"+md5a)
	if err != nil || all[0].AOR != "sip:bob@other.test" || all[0].HA1["MD5@"] != md5a || all[1].AOR != "sip:carol@example.test" {
		t.Errorf("%+v %v", all, err)
	}
}

// Every error names file and line, and shows no secret.
func TestReadErrors(t *testing.T) {
	for _, c := range []struct {
		format   Format
		in, want string
	}{
		{CSV, "alice,hush\nbob\n", "users.txt:2: 1 fields"},
		{CSV, "alice,hush,more\n", "users.txt:1: 3 fields"},
		{CSV, "alice,\n", "users.txt:1: user \"alice\" has no password"},
		{CSV, ",hush\n", "users.txt:1: user \"\": no name"},
		{CSV, "alice@nowhere.test,hush\n", "users.txt:1: user \"alice@nowhere.test\": domain nowhere.test is not served"},
		{CSV, "alice,hush\n\n\"bob,hush\n", "users.txt:3: extraneous or missing"},
		{CSV, "al\x00ice,hush\nx@y@,hush", "users.txt:2: "},
		{HTDigest, "alice:example.test\n", "users.txt:1: 2 parts"},
		{HTDigest, "\n\nalice:example.test:hush\n", "users.txt:3: user \"alice\": the MD5 HA1 is not 32 hexadecimal digits"},
		{HTDigest, "alice:nowhere.test:" + md5a, "users.txt:1: user \"alice@nowhere.test\": domain nowhere.test is not served"},
		{HTDigest, "alice@other.test:example.test:" + md5a, "users.txt:1: user \"alice@other.test\": realm \"example.test\", but the pool's is \"other.test\""},
		{HTDigest, "x\n" + strings.Repeat("hush", maxLine), "users.txt:1: "},
		{HTDigest, "#x\n" + strings.Repeat("hush", maxLine), "users.txt:2: bufio.Scanner: token too long"},
	} {
		_, err := read(names, c.format, c.in)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%.40q: %v, want %s…", c.in, err, c.want)
		}
	}
	broken := errors.New("disk on fire")
	for _, f := range []Format{CSV, HTDigest} {
		if _, err := readFrom(names, f, iotest.ErrReader(broken)); !errors.Is(err, broken) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestGuess(t *testing.T) {
	for in, want := range map[string]Format{
		"alice,secret\n":                       CSV,
		"# x\n\nalice:example.test:" + md5a:    HTDigest,
		"alice,a:b:c\n":                        CSV,
		"alice,x:y:" + md5a[:31] + "\n":        CSV,
		"":                                     CSV,
		"alice:example.test:" + md5a + "\r\nx": HTDigest,
	} {
		if got := Guess([]byte(in)); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for in, want := range map[string]string{
		"alice":                  "sip:alice@example.test",
		"alice@OTHER.test":       "sip:alice@other.test",
		"sip:alice@example.test": "sip:alice@example.test",
		"Alice":                  "sip:Alice@example.test",
		"a b":                    "sip:a%20b@example.test",
		"+4930123":               "sip:+4930123@example.test",
	} {
		if a, err := names.AOR(in); err != nil || string(a) != want {
			t.Errorf("%s: %s, %v, want %s", in, a, err, want)
		}
	}
	for _, in := range []string{"", "@example.test", "alice@", "alice@nowhere.test", "alice@bad host"} {
		if a, err := names.AOR(in); err == nil {
			t.Errorf("%q became %s", in, a)
		}
	}
}

func TestNewPassword(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		p := NewPassword()
		if !regexp.MustCompile(`^([b-z][aeiou]){2}(-([b-z][aeiou]){2}){3}$`).MatchString(p) || seen[p] {
			t.Errorf("%q", p)
		}
		seen[p] = true
	}
}

func FuzzReadHTDigest(f *testing.F) { fuzzRead(f, HTDigest, "alice:example.test:"+md5a+"\n") }
func FuzzReadCSV(f *testing.F)      { fuzzRead(f, CSV, "user,password\nalice,\"a,b\"\n") }

// Whatever a file holds, what comes out can be stored, and an error ends it.
func fuzzRead(f *testing.F, format Format, seed string) {
	f.Add(seed)
	f.Fuzz(func(t *testing.T, in string) {
		ended := false
		for u, err := range names.Read(format, "f", strings.NewReader(in)) {
			if ended {
				t.Fatal("went on after an error")
			}
			if ended = err != nil; ended {
				continue
			}
			u.Group = "g01"
			if _, err := Encode(u); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func ha1(t *testing.T, user, realm, password string) string {
	t.Helper()
	h, err := registrar.HA1(registrar.MD5, user, realm, password)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// What a file has wrong as a whole is told before anything is stored.
func TestCheck(t *testing.T) {
	for _, c := range []struct {
		in     string
		format Format
		users  int
		wrong  string
	}{
		{"alice,a\nbob,b\n", CSV, 2, ""},
		{"user,password\n# nobody\n\n", CSV, 0, "u.txt: no users in it: a line is user,password"},
		{"", HTDigest, 0, "no users in it"},
		{"alice,a\nbob,b\nsip:alice@EXAMPLE.test,c\n", CSV, 0, "u.txt:3: sip:alice@example.test stands in line 1 already"},
		{"alice:example.test:" + md5a + "\n\nalice@example.test:example.test:" + md5a + "\n", HTDigest, 0, "u.txt:3: sip:alice@example.test stands in line 1 already"},
		{"alice,a\nbob\n", CSV, 0, "u.txt:2: 1 fields"},
	} {
		n, err := names.Check(c.format, "u.txt", strings.NewReader(c.in))
		if n != c.users || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q: %d, %v", c.in, n, err)
		}
	}
	if _, err := names.Check(CSV, "u", strings.NewReader("")); !errors.Is(err, ErrNoUsers) {
		t.Error(err)
	}
}

// HA1s are made by several goroutines, over the limits of a batch, and come in the order of the file.
func TestReadKeepsOrder(t *testing.T) {
	var in strings.Builder
	const users = 2*hashAtOnce + 7
	for i := range users {
		fmt.Fprintf(&in, "u%d,secret%d\n", i, i)
	}
	all, err := read(names, CSV, in.String()+"broken\n")
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("users.txt:%d: 1 fields", users+1)) {
		t.Error(err)
	}
	if len(all) != users {
		t.Fatalf("%d users", len(all))
	}
	for i, u := range all {
		name := fmt.Sprintf("u%d", i)
		if u.AOR != registrar.AOR("sip:"+name+"@example.test") || u.HA1["MD5"] != ha1(t, name, "example.test", fmt.Sprintf("secret%d", i)) {
			t.Fatalf("%d: %+v", i, u)
		}
	}
	n := 0
	for range names.Read(CSV, "u", strings.NewReader(in.String())) { // who stops early gets no more
		if n++; n == hashAtOnce+1 {
			break
		}
	}
	if n != hashAtOnce+1 {
		t.Error(n)
	}
}
