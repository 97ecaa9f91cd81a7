package registrar

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

const gruuContact = `<sip:alice@192.0.2.1>;+sip.instance="<urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>"`

var tempIn = regexp.MustCompile(`temp-gruu="([^"]+)"`)

func newGRUUPhone(t *testing.T) *phone {
	p := newPhone(t)
	p.policy.GRUU = NewGRUU([]byte("0123456789abcdef"))
	return p
}

// gruu registers with Supported: gruu and returns the temporary GRUU of the only contact.
func (p *phone) gruu(callID string, cseq uint32, contacts ...string) string {
	p.t.Helper()
	req := p.request(callID, cseq, contacts...)
	req.Supported = []string{"gruu"}
	for _, v := range values(p.send(req, 200).Reply, "Contact") {
		if m := tempIn.FindStringSubmatch(v); m != nil {
			return m[1]
		}
	}
	return ""
}

// reaches resolves a GRUU as a Front End with only the pool's key does.
func (p *phone) reaches(uri string) []string {
	p.t.Helper()
	ref, ok := NewGRUU([]byte("0123456789abcdef")).Resolve(uri)
	if !ok {
		p.t.Fatalf("%s is no GRUU", uri)
	}
	if ref.AOR != "sip:alice@example.test" {
		p.t.Fatalf("%s is of %s", uri, ref.AOR)
	}
	_, bindings := ref.In(p.set, p.now, p.policy.Grace)
	var uris []string
	for _, b := range bindings {
		uris = append(uris, b.URI)
	}
	return uris
}

func (p *phone) alive(uri string, want bool) {
	p.t.Helper()
	if got := len(p.reaches(uri)) > 0; got != want {
		p.t.Errorf("%s is alive: %v, want %v", uri, got, want)
	}
}

// The 200 has both GRUUs, quoted, before the instance (the order of RFC 5627 §9).
func TestGRUUInReply(t *testing.T) {
	p := newGRUUPhone(t)
	req := p.request("c", 1, gruuContact+";expires=3600")
	req.Supported = []string{"gruu"}
	got := values(p.send(req, 200).Reply, "Contact")[0]
	want := regexp.MustCompile(`^<sip:alice@192\.0\.2\.1>` +
		`;pub-gruu="sip:alice@example\.test;gr=urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"` +
		`;temp-gruu="sip:tgruu\.[A-Za-z0-9_-]+@example\.test;gr"` +
		`;\+sip\.instance="<urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>";expires=3600$`)
	if !want.MatchString(got) {
		t.Error(got)
	}
	a, err := ParseAddress(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pub-gruu", "temp-gruu"} {
		uri, _ := a.Param(name)
		if _, err := ParseURI(uri); err != nil {
			t.Error(err)
		}
		if r := p.reaches(uri); len(r) != 1 || r[0] != "sip:alice@192.0.2.1" {
			t.Errorf("%s reaches %v", uri, r)
		}
	}
}

// Who does not ask, has no instance, or is at a pool without GRUUs gets none.
func TestNoGRUU(t *testing.T) {
	p := newGRUUPhone(t)
	if r := values(p.register("c", 1, gruuContact).Reply, "Contact")[0]; strings.Contains(r, "gruu") {
		t.Error(r)
	}
	if g := p.gruu("d", 1, "<sip:x@h>"); g != "" {
		t.Error(g)
	}
	p = newPhone(t)
	if g := p.gruu("c", 1, gruuContact); g != "" {
		t.Error(g)
	}
	req := p.request("c", 2, gruuContact)
	req.Require = []string{"gruu"}
	p.send(req, 420)
	p.policy.GRUU = NewGRUU(make([]byte, 16))
	p.send(req, 200)
}

// Each REGISTER gives a fresh one, all of them live on; a retransmission and a query give the newest.
func TestTemporaryGRUUsAccumulate(t *testing.T) {
	p := newGRUUPhone(t)
	first := p.gruu("c", 1, gruuContact)
	second := p.gruu("c", 2, gruuContact) // in the same millisecond
	if first == second {
		t.Error("not fresh")
	}
	p.now = p.now.Add(5 * time.Second)
	third := p.gruu("c", 3, gruuContact)
	for _, g := range []string{first, second, third} {
		p.alive(g, true)
	}
	if again := p.gruu("c", 3, gruuContact); again != third {
		t.Error("a retransmission got another one")
	}
	if query := p.gruu("q", 1); query != third {
		t.Error("a query got another one")
	}
	p.register("c", 4, gruuContact) // a refresh that does not ask
	p.alive(first, true)
}

func TestTemporaryGRUUsEnd(t *testing.T) {
	for name, end := range map[string]func(*phone){
		"another Call-ID":          func(p *phone) { p.gruu("d", 1, gruuContact) },
		"another Call-ID, unasked": func(p *phone) { p.register("d", 1, gruuContact) },
		"rebooted at another port": func(p *phone) { p.gruu("d", 1, strings.Replace(gruuContact, "2.1>", "2.1:9>", 1)) },
		"removed":                  func(p *phone) { p.register("c", 2, gruuContact+";expires=0") },
		"removed and back": func(p *phone) {
			p.register("c", 2, gruuContact+";expires=0")
			p.gruu("c", 3, gruuContact)
		},
		"expired":          func(p *phone) { p.now = p.now.Add(2 * time.Hour) },
		"expired and back": func(p *phone) { p.now = p.now.Add(2 * time.Hour); p.gruu("c", 2, gruuContact) },
		"dropped":          func(p *phone) { p.set, _ = p.set.Drop(func(Binding) bool { return true }, Rejected, p.now) },
	} {
		t.Run(name, func(t *testing.T) {
			p := newGRUUPhone(t)
			g := p.gruu("c", 1, gruuContact)
			p.alive(g, true)
			p.register("other", 1, "<sip:other@h>")
			p.alive(g, true)
			end(p)
			p.alive(g, false)
		})
	}
}

// A device that moves to another port keeps its temporary GRUUs while its Call-ID is the same.
func TestTemporaryGRUUMoves(t *testing.T) {
	p := newGRUUPhone(t)
	g := p.gruu("c", 1, gruuContact)
	p.gruu("c", 2, gruuContact+";expires=0", strings.Replace(gruuContact, "2.1>", "2.1:9>", 1))
	if r := p.reaches(g); len(r) != 1 || r[0] != "sip:alice@192.0.2.1:9" {
		t.Error(r)
	}
}

// Several flows of an instance share their GRUUs: each reaches all of them, the newest first,
// also when each flow has a Call-ID of its own. A flow that starts anew with another one ends them.
func TestGRUUsOfFlows(t *testing.T) {
	p := newGRUUPhone(t)
	one := p.gruu("c", 1, gruuContact+";reg-id=1")
	p.now = p.now.Add(time.Second)
	two := p.gruu("d", 1, strings.Replace(gruuContact, "2.1>", "2.2>", 1)+";reg-id=2")
	for _, g := range []string{one, two, p.policy.GRUU.Public("sip:alice@example.test", "URN:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6")} {
		if r := strings.Join(p.reaches(g), " "); r != "sip:alice@192.0.2.2 sip:alice@192.0.2.1" {
			t.Errorf("%s reaches %s", g, r)
		}
	}
	p.register("c", 2, gruuContact+";reg-id=1;expires=0")
	p.alive(one, true)
	p.gruu("e", 1, strings.Replace(gruuContact, "2.1>", "2.2>", 1)+";reg-id=2")
	p.alive(one, false)
	p.alive(two, false)
}

func TestGRUUOfTwoInstances(t *testing.T) {
	p := newGRUUPhone(t)
	one := p.gruu("c", 1, gruuContact)
	p.gruu("d", 1, `<sip:alice@192.0.2.9>;+sip.instance="<urn:uuid:00000000-7dec-11d0-a765-00a0c91e6bf6>"`)
	if r := p.reaches(one); len(r) != 1 || r[0] != "sip:alice@192.0.2.1" {
		t.Error(r)
	}
	p.gruu("e", 1, `<sip:alice@192.0.2.9>;+sip.instance="<urn:uuid:00000000-7dec-11d0-a765-00a0c91e6bf6>"`)
	p.alive(one, true)
}

// A contact that is its own GRUU would be called in a circle; another instance's is a legal forward.
func TestContactIsItsOwnGRUU(t *testing.T) {
	p := newGRUUPhone(t)
	temp := p.gruu("c", 1, gruuContact)
	const instance = `;+sip.instance="<urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>"`
	const other = `;+sip.instance="<urn:uuid:other>"`
	public := p.policy.GRUU.Public("sip:alice@example.test", "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
	for _, c := range []string{"<" + temp + ">" + instance, "<" + public + ">" + instance,
		"<sip:%61lice@EXAMPLE.test;x=1;GR=urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>" + instance} {
		p.send(p.request("c", 2, c), 403)
	}
	for _, c := range []string{"<" + temp + ">" + other, "<" + public + ">" + other,
		"<sip:bob@example.test;gr=urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>" + instance,
		"<sip:alice@example.test;grave>" + instance} {
		p.send(p.request("c2", 2, c), 200)
		p.send(p.request("c2", 3, c+";expires=0"), 200)
		p.set.Removed = nil
	}
}

// What the client itself says of GRUUs is not kept.
func TestClientsOwnGRUUParams(t *testing.T) {
	p := newGRUUPhone(t)
	req := p.request("c", 1, gruuContact+`;pub-gruu="sip:eve@h;gr=x";temp-gruu="sip:t@h;gr";a=b`)
	req.Supported = []string{"gruu"}
	v := values(p.send(req, 200).Reply, "Contact")[0]
	if strings.Contains(v, "eve") || strings.Count(v, "-gruu=") != 2 || !strings.Contains(v, ";a=b;") {
		t.Error(v)
	}
}

// An old key is still read, a strange one never; nothing that is altered or cut passes.
func TestGRUUKeys(t *testing.T) {
	p := newGRUUPhone(t)
	g := p.gruu("c", 1, gruuContact)
	if _, ok := NewGRUU([]byte("another key, new"), []byte("0123456789abcdef")).Resolve(g); !ok {
		t.Error("the previous key is not accepted")
	}
	if _, ok := NewGRUU([]byte("another key, new")).Resolve(g); ok {
		t.Error("a strange key opens it")
	}
	if strings.Contains(g, "alice") {
		t.Error("it tells the user")
	}
	for _, bad := range []string{
		strings.Replace(g, "@example.test", "@example.org", 1), strings.Replace(g, ";gr", "", 1),
		strings.Replace(g, ";gr", ";grx", 1), strings.Replace(g, "tgruu.", "tgruu", 1), strings.Replace(g, "tgruu.", "tgruu.A", 1),
		strings.Replace(g, "tgruu.", "tgruu.AAAA", 1), "sip:tgruu.@example.test;gr", "sip:tgruu.AAAA@example.test;gr",
		"sip:example.test;gr=urn:x", "tel:+1;gr", "sip:alice@example.test", "x",
	} {
		if ref, ok := p.policy.GRUU.Resolve(bad); ok {
			t.Errorf("%s: %+v", bad, ref)
		}
	}
}

// The length does not tell users with short names apart, and escapes survive both ways.
func TestGRUUNames(t *testing.T) {
	g := NewGRUU(make([]byte, 16))
	b := Binding{Generation: 7, Refreshed: benchNow}
	if a, z := g.temporary("sip:a@h", &b), g.temporary("sip:zacharia@h", &b); len(a) != len(z) {
		t.Errorf("%s and %s", a, z)
	}
	for _, aor := range []AOR{"sip:a%40b@h", "sip:a;b=c@h:5070", "sip:%22@[2001:db8::1]"} {
		ref, ok := g.Resolve(g.temporary(aor, &b))
		if !ok || ref.AOR != aor {
			t.Errorf("temporary, %s: %+v", aor, ref)
		}
		ref, ok = g.Resolve(g.Public(aor, `urn:a "<é>;x=%41`))
		if !ok || ref.AOR != aor || ref.Instance != `urn:a "<é>;x=%41` {
			t.Errorf("public, %s: %+v", aor, ref)
		}
	}
}

func BenchmarkGRUU(b *testing.B) {
	p := DefaultPolicy()
	p.GRUU = NewGRUU(make([]byte, 16))
	req := benchRequest(1)
	req.Supported = append(req.Supported, "gruu")
	set := Decide(Set{}, req, benchNow, p).Next
	req = benchRequest(2)
	req.Supported = append(req.Supported, "gruu")
	b.ReportAllocs()
	for b.Loop() {
		Decide(set, req, benchNow.Add(time.Second), p)
	}
}

// FuzzResolve: no URI makes it fail, and what resolves has an AOR that is one.
func FuzzResolve(f *testing.F) {
	g := NewGRUU(make([]byte, 16))
	f.Add(g.temporary("sip:a@h", &Binding{Generation: 7}))
	f.Add("sip:alice@example.test;gr=urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6")
	f.Fuzz(func(t *testing.T, uri string) {
		ref, ok := g.Resolve(uri)
		if !ok {
			return
		}
		if aor, err := ParseAOR(string(ref.AOR)); len(ref.AOR) <= maxAOR && (err != nil || aor != ref.AOR) {
			t.Fatalf("%q: %s, %v", uri, aor, err)
		}
		ref.In(fullSet(), benchNow, 0)
	})
}
