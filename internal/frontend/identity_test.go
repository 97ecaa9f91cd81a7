package frontend

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"rollcall/bus"
	"rollcall/internal/bearer"
	"rollcall/internal/control"
	"rollcall/registrar"
	"rollcall/routing"
)

// tokens issues bearer tokens whose key stands in a JWKS file.
type tokens struct {
	t       *testing.T
	private ed25519.PrivateKey
	file    string
}

func newTokens(t *testing.T) *tokens {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k := &tokens{t, private, filepath.Join(t.TempDir(), "jwks.json")}
	set := `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"1","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}]}`
	if err := os.WriteFile(k.file, []byte(set), 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

// offer makes a Front End accept them, beside passwords.
func (k *tokens) offer(c *Config) {
	v, err := bearer.Open(bearer.Config{JWKS: k.file, Algorithms: []string{"EdDSA"}, Issuer: "https://login.example.test",
		Audience: "sip", Claim: "sub", Domain: "example.test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		k.t.Fatal(err)
	}
	c.Auth.Schemes = []string{registrar.SchemeBearer, registrar.SchemeDigest}
	c.Auth.Bearer = &registrar.Bearer{Check: v.Check, Server: "https://login.example.test", Scope: "sip"}
}

func (k *tokens) header(user string, life time.Duration) string {
	k.t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, jwt.MapClaims{
		"iss": "https://login.example.test", "aud": "sip", "sub": user, "exp": time.Now().Add(life).Unix()})
	token.Header["kid"] = "1"
	s, err := token.SignedString(k.private)
	if err != nil {
		k.t.Fatal(err)
	}
	return "Authorization: Bearer " + s + "\r\n"
}

// A client with a token registers at the primary and elsewhere, over a promotion too, and
// one with a password does as ever.
func TestBearerInAPool(t *testing.T) {
	k := newTokens(t)
	p := newTweakedPool(t, k.offer, "fe1", "fe2")
	mia := p.provision("mia")
	before := p.await("two up", formed(2))
	for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		ph := p.phone("mia", "tcp", p.address(fe, "tcp"))
		contact := "<sip:mia@192.0.2.1;fe=" + string(fe) + ">"
		challenge := ph.send(contact, "")
		for _, want := range []string{"SIP/2.0 401 ", "\r\nWWW-Authenticate: Bearer realm=\"example.test\", scope=\"sip\", authz_server=\"https://login.example.test\"\r\nWWW-Authenticate: Digest "} {
			if !strings.Contains(challenge, want) {
				t.Errorf("no %q in %s", want, challenge)
			}
		}
		ok(t, "with a token", ph.send(contact, k.header("mia", time.Minute), "Expires: 300\r\n"), contact)
		if r := ph.send(contact, k.header("mia", -time.Minute)); !strings.HasPrefix(r, "SIP/2.0 401 ") || !strings.Contains(r, `error="invalid_token"`) {
			t.Errorf("expired token: %s", r)
		}
		if r := ph.send(contact, k.header("eve", time.Minute)); !strings.HasPrefix(r, "SIP/2.0 403 ") {
			t.Errorf("somebody else's token: %s", r)
		}
	}
	ok(t, "with a password", p.phone("mia", "udp", p.address("fe2", "udp")).register("<sip:mia@192.0.2.3>"))
	primary := before.Groups[mia.Group].Primary
	p.kill(primary)
	p.await("promotion", func(pl routing.Placement) bool {
		return pl.Groups[mia.Group].Primary != "" && pl.Groups[mia.Group].Primary != primary
	})
	for fe := range before.Members {
		if fe != primary {
			ok(t, "after the promotion", p.phone("mia", "udp", p.address(fe, "udp")).send("", k.header("mia", time.Minute)), "<sip:mia@192.0.2.3>")
		}
	}
}

var tempGRUU = regexp.MustCompile(`temp-gruu="([^"]+)"`)

func withGRUU(c *Config) { c.Policy.GRUU = registrar.NewGRUU(c.Auth.Key) }

// A temporary GRUU lives on over a promotion, and over a restart of all Front Ends, and
// so does the registration that it belongs to.
func TestGRUUSurvivesPromotion(t *testing.T) {
	p := newTweakedPool(t, withGRUU, "fe1", "fe2")
	nina := p.provision("nina")
	before := p.await("two up", formed(2))
	const contact = `<sip:nina@192.0.2.1>;+sip.instance="<urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6>"`
	first, second := before.Groups[nina.Group].Primary, before.Groups[nina.Group].Secondary
	ph := p.phone("nina", "udp", p.address(first, "udp"))
	r := ph.register(contact, "Expires: 300\r\n", "Supported: gruu\r\n")
	ok(t, "register", r, `;pub-gruu="sip:nina@example.test;gr=urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6";temp-gruu="sip:tgruu.`)
	gruus := []string{tempGRUU.FindStringSubmatch(r)[1]}

	alive := func(what string) {
		t.Helper()
		rec, err := p.bus.Bindings().Last(t.Context(), string(nina.Group), string(nina.AOR))
		if err != nil {
			t.Fatal(err)
		}
		set, err := registrar.DecodeSet(rec.Data)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range gruus {
			ref, ok := registrar.NewGRUU([]byte("0123456789abcdef")).Resolve(g)
			if _, bindings := ref.In(set, time.Now(), 0); !ok || ref.AOR != nina.AOR || len(bindings) != 1 {
				t.Errorf("%s: number %d: %+v, %d bindings", what, i, ref, len(bindings))
			}
		}
	}
	again := func(what string, fe routing.FrontEnd) {
		t.Helper()
		next := p.phone("nina", "udp", p.address(fe, "udp"))
		next.callID, next.cseq = ph.callID, ph.cseq
		r := next.register(contact, "Expires: 300\r\n", "Supported: gruu\r\n")
		ok(t, what, r)
		gruus = append(gruus, tempGRUU.FindStringSubmatch(r)[1])
		ph = next
		alive(what)
	}
	alive("registered")
	p.kill(first)
	p.await("promotion", func(pl routing.Placement) bool { return pl.Groups[nina.Group].Primary == second })
	again("promoted", second)
	p.kill(second)
	p.start("fe1", "again-1", 2)
	p.start("fe2", "again-2", 2)
	p.await("both are back", func(pl routing.Placement) bool {
		return pl.Members["fe1"].Boot == "again-1" && pl.Members["fe2"].Boot == "again-2" && formed(2)(pl)
	})
	again("restarted", "fe1")
	ph.callID += "-rebooted"
	ok(t, "rebooted", ph.register(contact, "Expires: 300\r\n", "Supported: gruu\r\n"))
	for _, g := range gruus {
		ref, _ := registrar.NewGRUU([]byte("0123456789abcdef")).Resolve(g)
		rec, err := p.bus.Bindings().Last(t.Context(), string(nina.Group), string(nina.AOR))
		if err != nil {
			t.Fatal(err)
		}
		set, _ := registrar.DecodeSet(rec.Data)
		if _, bindings := ref.In(set, time.Now(), 0); len(bindings) != 0 {
			t.Error("a GRUU from before the reboot lives")
		}
	}
}

// A gateway with the right to registers others, nobody else does.
func TestThirdPartyInAPool(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) {
		c.Auth.MayRegister = func(user, aor registrar.AOR) bool {
			return user == "sip:gateway@example.test" && strings.HasPrefix(string(aor), "sip:2")
		}
	}, "fe1", "fe2")
	for _, user := range []string{"gateway", "201", "other"} {
		p.provision(user)
	}
	p.await("two up", formed(2))
	for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		for _, c := range []struct{ to, by, want string }{
			{"201", "gateway", "SIP/2.0 200 "}, {"other", "gateway", "SIP/2.0 403 "}, {"201", "other", "SIP/2.0 403 "}, {"gateway", "gateway", "SIP/2.0 200 "},
		} {
			ph := p.phone(c.to, "udp", p.address(fe, "udp"))
			nonce := nonceIn.FindStringSubmatch(ph.send("<sip:x@192.0.2.1>", ""))[1]
			ha1, _ := registrar.HA1("MD5", c.by, "example.test", "secret")
			ha2, _ := registrar.HA1("MD5", "REGISTER", "sip", "example.test")
			response, _ := registrar.HA1("MD5", ha1, nonce, "00000001:x:auth:"+ha2)
			r := ph.send("<sip:x@192.0.2.1>", fmt.Sprintf("Authorization: Digest username=%q, realm=\"example.test\", nonce=%q, uri=\"sip:example.test\", "+
				"response=%q, algorithm=MD5, qop=auth, nc=00000001, cnonce=\"x\"\r\n", c.by, nonce, response))
			if !strings.HasPrefix(r, c.want) {
				t.Errorf("%s for %s at %s: %s", c.by, c.to, fe, r)
			}
		}
	}
}

// The pool's key is changed while it serves: a client's nonce and temporary GRUU from before
// go on, at every Front End; after two more changes they are nothing.
func TestKeyRotation(t *testing.T) {
	p := newTweakedPool(t, withGRUU, "fe1", "fe2")
	olga := p.provision("olga")
	p.await("two up", formed(2))
	put := control.DefaultSettings()
	put.Key = []byte("0123456789abcdef") // as the Front Ends were started
	value, err := json.Marshal(put)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.bus.Pool().Put(t.Context(), bus.Write{Key: control.SettingsKey, Value: value}); err != nil {
		t.Fatal(err)
	}
	ph := p.phone("olga", "udp", p.address("fe1", "udp"))
	nonce := nonceIn.FindStringSubmatch(ph.send("<sip:olga@192.0.2.1>", ""))[1]
	ha1, _ := registrar.HA1("MD5", "olga", "example.test", "secret")
	ha2, _ := registrar.HA1("MD5", "REGISTER", "sip", "example.test")
	nc := 0
	answer := func(fe routing.FrontEnd) string {
		nc++
		response, _ := registrar.HA1("MD5", ha1, nonce, fmt.Sprintf("%08x:x:auth:%s", nc, ha2))
		next := p.phone("olga", "udp", p.address(fe, "udp"))
		return next.send("<sip:olga@192.0.2.1>", fmt.Sprintf("Authorization: Digest username=\"olga\", realm=\"example.test\", nonce=%q, uri=\"sip:example.test\", "+
			"response=%q, algorithm=MD5, qop=auth, nc=%08x, cnonce=\"x\"\r\n", nonce, response, nc))
	}
	ok(t, "before", answer("fe1"))
	for i := range 3 {
		if err := control.RotateKey(t.Context(), p.bus.Pool()); err != nil {
			t.Fatal(err)
		}
		s, err := control.ReadSettings(t.Context(), p.bus.Pool())
		if err != nil {
			t.Fatal(err)
		}
		for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
			eventually(t, "the new key is used", func() bool {
				r := p.phone("olga", "udp", p.address(fe, "udp")).send("", "")
				a := registrar.Authenticator{Realm: "example.test", Key: s.Key}
				req := registrar.Request{AOR: olga.AOR, RequestURI: "sip:example.test", Domain: "example.test"}
				n := nonceIn.FindStringSubmatch(r)[1]
				response, _ := registrar.HA1("MD5", ha1, n, "00000001:x:auth:"+ha2)
				req.Authorization = []string{fmt.Sprintf("Digest username=\"olga\", realm=\"example.test\", nonce=%q, uri=\"sip:example.test\", "+
					"response=%q, algorithm=MD5, qop=auth, nc=00000001, cnonce=\"x\"", n, response)}
				_, _, let := a.Authenticate(&req, func(registrar.AOR) (map[string]string, bool) { return map[string]string{"MD5": ha1}, true }, time.Now())
				return let
			})
			if r := answer(fe); strings.HasPrefix(r, "SIP/2.0 200 ") != (i < 2) {
				t.Errorf("after %d rotations at %s: %s", i+1, fe, r)
			}
		}
	}
}

// A pool of two domains keeps users of one name apart: each has his own realm, password and bindings.
func TestSeveralDomains(t *testing.T) {
	p := newTweakedPool(t, func(c *Config) {
		c.Domains, c.Auth.Realm = []string{"example.test", "example.org"}, ""
	}, "fe1", "fe2")
	domains := []string{"example.test", "example.org"}
	for _, d := range domains {
		p.provisionIn(d, "quinn", "of "+d)
	}
	p.await("two up", formed(2))
	for _, fe := range []routing.FrontEnd{"fe1", "fe2"} {
		address := p.address(fe, "udp")
		for i, d := range domains {
			contact := fmt.Sprintf("<sip:quinn@192.0.2.%d;fe=%s>", i, fe)
			if r := p.registerIn(address, d, d, "of "+domains[1-i], contact); !strings.HasPrefix(r, "SIP/2.0 401 ") {
				t.Errorf("%s with the other's password: %s", d, r)
			}
			if r := p.registerIn(address, d, domains[1-i], "of "+domains[1-i], contact); !strings.HasPrefix(r, "SIP/2.0 401 ") {
				t.Errorf("%s with the other's realm: %s", d, r)
			}
			r := p.registerIn(address, d, d, "of "+d, contact)
			ok(t, d, r, contact)
			if other := fmt.Sprintf("quinn@192.0.2.%d", 1-i); strings.Contains(r, other) {
				t.Errorf("%s has the other's binding: %s", d, r)
			}
		}
		if r := p.registerIn(address, "example.net", "example.net", "x", "<sip:quinn@192.0.2.1>"); !strings.HasPrefix(r, "SIP/2.0 404 ") {
			t.Errorf("a strange domain: %s", r)
		}
	}
}

// registerIn registers quinn of a domain with the credentials of a realm.
func (p *realPool) registerIn(address, domain, realm, password, contact string) string {
	p.t.Helper()
	ph := p.phone("quinn", "udp", address)
	_ = ph.conn.SetDeadline(time.Now().Add(30 * time.Second))
	send := func(auth string) string {
		ph.cseq++
		fmt.Fprintf(ph.conn, "REGISTER sip:%[1]s SIP/2.0\r\nVia: SIP/2.0/UDP %[2]s;rport;branch=z9hG4bK%[3]s-%[4]d\r\nMax-Forwards: 70\r\n"+
			"From: <sip:quinn@%[1]s>;tag=f\r\nTo: <sip:quinn@%[1]s>\r\nCall-ID: %[3]s\r\nCSeq: %[4]d REGISTER\r\nContact: %[5]s\r\n%[6]sContent-Length: 0\r\n\r\n",
			domain, ph.conn.LocalAddr(), ph.callID, ph.cseq, contact, auth)
		buf := make([]byte, 65536)
		n, err := ph.conn.Read(buf)
		if err != nil {
			p.t.Fatal(err)
		}
		return string(buf[:n])
	}
	r := send("")
	m := nonceIn.FindStringSubmatch(r)
	if m == nil {
		return r
	}
	if want := `realm="` + domain + `"`; !strings.Contains(r, want) {
		p.t.Errorf("no %s in %s", want, r)
	}
	uri := "sip:" + domain
	ha1, _ := registrar.HA1("MD5", "quinn", realm, password)
	ha2, _ := registrar.HA1("MD5", "REGISTER", "sip", domain)
	response, _ := registrar.HA1("MD5", ha1, m[1], "00000001:x:auth:"+ha2)
	return send(fmt.Sprintf("Authorization: Digest username=\"quinn\", realm=%q, nonce=%q, uri=%q, response=%q, algorithm=MD5, qop=auth, nc=00000001, cnonce=\"x\"\r\n",
		realm, m[1], uri, response))
}
