package bearer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"rollcall/registrar"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// issuer signs tokens.
type issuer struct {
	rsa *rsa.PrivateKey
	ec  *ecdsa.PrivateKey
	ed  ed25519.PrivateKey
	dir string
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{dir: t.TempDir()}
	var err error
	if i.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if i.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if _, i.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	return i
}

func b64(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// set is the public keys as a JWK set, among others that are of no use here.
func (i *issuer) set(t *testing.T) []byte {
	t.Helper()
	point, err := i.ec.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]any{"keys": []map[string]any{
		{"kty": "RSA", "kid": "r", "use": "sig", "alg": "RS256", "n": b64(i.rsa.N.Bytes()), "e": "AQAB", "x5t": "ignored"},
		{"kty": "EC", "kid": "e", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:]), "key_ops": []string{"verify"}},
		{"kty": "OKP", "kid": "d", "crv": "Ed25519", "x": b64(i.ed.Public().(ed25519.PublicKey))},
		{"kty": "RSA", "kid": "enc", "use": "enc", "n": "AQ", "e": "AQ"},
		{"kty": "RSA", "kid": "other alg", "alg": "PS256", "n": b64(i.rsa.N.Bytes()), "e": "AQAB"},
		{"kty": "EC", "kid": "p384", "crv": "P-384", "x": "AQ", "y": "AQ"},
		{"kty": "future"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func (i *issuer) file(t *testing.T, name string, data []byte) string {
	t.Helper()
	name = filepath.Join(i.dir, name)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func (i *issuer) config(t *testing.T) Config {
	return Config{JWKS: i.file(t, "jwks.json", i.set(t)), Algorithms: []string{"RS256", "ES256", "EdDSA"},
		Issuer: "https://login.example.test", Audience: "sip", Claim: "sub", Domain: "example.test", Leeway: 10 * time.Second}
}

func open(t *testing.T, c Config) *Verifier {
	t.Helper()
	v, err := Open(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// claims are good ones, with changes: nil removes one.
func claims(changes map[string]any) jwt.MapClaims {
	c := jwt.MapClaims{"iss": "https://login.example.test", "aud": "sip", "sub": "alice",
		"exp": now.Add(time.Minute).Unix(), "nbf": now.Add(-time.Minute).Unix()}
	for k, v := range changes {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

func sign(t *testing.T, m jwt.SigningMethod, private any, header map[string]any, c jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(m, c)
	for k, v := range header {
		token.Header[k] = v
	}
	s, err := token.SignedString(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func kid(id string) map[string]any { return map[string]any{"kid": id} }

func TestAlgorithms(t *testing.T) {
	i := newIssuer(t)
	v := open(t, i.config(t))
	for name, token := range map[string]string{
		"RS256": sign(t, jwt.SigningMethodRS256, i.rsa, kid("r"), claims(nil)), "ES256": sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(nil)),
		"EdDSA": sign(t, jwt.SigningMethodEdDSA, i.ed, kid("d"), claims(nil)), "no kid": sign(t, jwt.SigningMethodES256, i.ec, nil, claims(nil)),
	} {
		if user, err := v.Check(token, now); err != nil || user != "sip:alice@example.test" {
			t.Errorf("%s: %s, %v", name, user, err)
		}
	}
}

// Everything that is not a good token of our issuer is refused.
func TestRefused(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	v := open(t, i.config(t))
	good := sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(nil))
	parts := strings.Split(good, ".")
	point, _ := i.ec.PublicKey.Bytes()
	for name, token := range map[string]string{
		"none":             sign(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, claims(nil)),
		"no signature":     parts[0] + "." + parts[1] + ".",
		"two parts":        parts[0] + "." + parts[1],
		"other payload":    parts[0] + "." + b64([]byte(`{"sub":"bob"}`)) + "." + parts[2],
		"strange key":      sign(t, jwt.SigningMethodES256, other.ec, kid("e"), claims(nil)),
		"unknown kid":      sign(t, jwt.SigningMethodES256, i.ec, kid("x"), claims(nil)),
		"kid of another":   sign(t, jwt.SigningMethodES256, i.ec, kid("r"), claims(nil)),
		"not in the list":  sign(t, jwt.SigningMethodRS512, i.rsa, kid("r"), claims(nil)),
		"PS256":            sign(t, jwt.SigningMethodPS256, i.rsa, kid("other alg"), claims(nil)),
		"public key as HS": sign(t, jwt.SigningMethodHS256, point, kid("e"), claims(nil)),
		"critical":         sign(t, jwt.SigningMethodES256, i.ec, map[string]any{"kid": "e", "crit": []string{"b64"}}, claims(nil)),
		"expired":          sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"exp": now.Add(-11 * time.Second).Unix()})),
		"no expiry":        sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"exp": nil})),
		"not yet":          sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"nbf": now.Add(11 * time.Second).Unix()})),
		"issuer":           sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"iss": "https://evil.example"})),
		"no issuer":        sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"iss": nil})),
		"audience":         sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"aud": []string{"mail", "web"}})),
		"no audience":      sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"aud": nil})),
		"no user":          sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"sub": nil})),
		"user is a number": sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"sub": 7})),
		"tel":              sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"sub": "sip:example.test"})),
		"no domain":        sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"sub": "alice@"})),
		"nothing":          "",
		"dots":             "..",
		"noise":            "a.b.c",
	} {
		if user, err := v.Check(token, now); err == nil {
			t.Errorf("%s: let in %s", name, user)
		} else if strings.Contains(err.Error(), "\n") || token != "" && strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := v.Check(sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(map[string]any{"exp": now.Add(-9 * time.Second).Unix()})), now); err != nil {
		t.Errorf("within the leeway: %v", err)
	}
}

func TestUser(t *testing.T) {
	i := newIssuer(t)
	c := i.config(t)
	c.Claim = "preferred_username"
	v := open(t, c)
	for name, want := range map[string]registrar.AOR{
		"alice": "sip:alice@example.test", "alice@Example.org": "sip:alice@example.org", "a@b@h": "sip:a%40b@h",
		"sip:alice@example.org": "sip:alice@example.org", "SIPS:alice@example.org:5061;x=y": "sip:alice@example.org", "Zoë": "sip:Zo%C3%AB@example.test",
	} {
		got, err := v.Check(sign(t, jwt.SigningMethodEdDSA, i.ed, kid("d"), claims(map[string]any{"preferred_username": name})), now)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, want)
		}
	}
}

func TestScope(t *testing.T) {
	i := newIssuer(t)
	c := i.config(t)
	c.Scope = "sip"
	v := open(t, c)
	for scope, good := range map[any]bool{"sip": true, "openid sip": true, "sipx": false, "": false, 7: false} {
		_, err := v.Check(sign(t, jwt.SigningMethodEdDSA, i.ed, kid("d"), claims(map[string]any{"scope": scope})), now)
		if good && err != nil || !good && !errors.Is(err, registrar.ErrScope) {
			t.Errorf("%v: %v", scope, err)
		}
	}
}

func pemOf(t *testing.T, public any) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

func TestPEMAndSecret(t *testing.T) {
	i := newIssuer(t)
	c := i.config(t)
	c.JWKS = ""
	c.PEM = []string{i.file(t, "keys.pem", append(pemOf(t, &i.rsa.PublicKey), pemOf(t, &i.ec.PublicKey)...)), i.file(t, "ed.pem", pemOf(t, i.ed.Public()))}
	secret := strings.Repeat("s", 32)
	c.Secret, c.Algorithms = i.file(t, "secret", []byte(secret+"\r\n")), Algorithms()
	v := open(t, c)
	for name, token := range map[string]string{
		"RS256": sign(t, jwt.SigningMethodRS256, i.rsa, kid("any"), claims(nil)), "ES256": sign(t, jwt.SigningMethodES256, i.ec, nil, claims(nil)),
		"EdDSA": sign(t, jwt.SigningMethodEdDSA, i.ed, nil, claims(nil)), "HS256": sign(t, jwt.SigningMethodHS256, []byte(secret), nil, claims(nil)),
	} {
		if _, err := v.Check(token, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := v.Check(sign(t, jwt.SigningMethodHS256, pemOf(t, &i.rsa.PublicKey), nil, claims(nil)), now); err == nil {
		t.Error("a public key taken for a secret")
	}
}

// A new key counts once the file is looked at again; a damaged file leaves the old ones.
func TestReload(t *testing.T) {
	i, next := newIssuer(t), newIssuer(t)
	c := i.config(t)
	var log bytes.Buffer
	v, err := Open(c, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	life := map[string]any{"exp": now.Add(time.Hour).Unix()}
	old, fresh := sign(t, jwt.SigningMethodES256, i.ec, kid("e"), claims(life)), sign(t, jwt.SigningMethodES256, next.ec, kid("e"), claims(life))
	check := func(what, token string, at time.Duration, good bool) {
		t.Helper()
		if _, err := v.Check(token, now.Add(at)); (err == nil) != good {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("at first", old, 0, true)
	i.file(t, "jwks.json", append(next.set(t), ' ')) // the size differs, whatever the clock's grain
	check("too soon to look", fresh, lookEvery-1, false)
	check("the new key", fresh, lookEvery, true)
	check("the old key", old, lookEvery, false)
	i.file(t, "jwks.json", []byte("{"))
	check("damaged", fresh, 2*lookEvery, true)
	check("still damaged", fresh, 3*lookEvery, true)
	if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
	i.file(t, "jwks.json", i.set(t))
	check("back", old, 4*lookEvery, true)
}

// Many at once, over a reload (for the race detector).
func TestConcurrentChecks(t *testing.T) {
	i := newIssuer(t)
	v := open(t, i.config(t))
	token := sign(t, jwt.SigningMethodEdDSA, i.ed, kid("d"), claims(nil))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for n := range 20 {
				if _, err := v.Check(token, now.Add(time.Duration(n)*time.Second)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	i.file(t, "jwks.json", append(i.set(t), '\n'))
	wg.Wait()
}

func TestOpenErrors(t *testing.T) {
	i := newIssuer(t)
	weak := `{"keys":[{"kty":"RSA","kid":"w","n":"` + b64(bytes.Repeat([]byte{0xff}, 128)) + `","e":"AQAB"}]}`
	jwks := func(data string) func(*Config) {
		return func(c *Config) { c.JWKS = i.file(t, "bad.json", []byte(data)) }
	}
	private, err := x509.MarshalPKCS8PrivateKey(i.ec)
	if err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Config){
		"no keys to check tokens with":      func(c *Config) { c.JWKS = "" },
		"no algorithm":                      func(c *Config) { c.Algorithms = nil },
		`algorithm "none": choose of RS256`: func(c *Config) { c.Algorithms = []string{"none"} },
		"HS256 and the secret file go":      func(c *Config) { c.Algorithms = []string{"HS256"} },
		"no issuer":                         func(c *Config) { c.Issuer = "" },
		"no audience":                       func(c *Config) { c.Audience = "" },
		"missing.json":                      func(c *Config) { c.JWKS = filepath.Join(i.dir, "missing.json") },
		"no JWK set: ":                      jwks(`[`),
		`it has no "keys"`:                  jwks(`{}`),
		"none of its keys":                  jwks(`{"keys":[]}`),
		"RSA key of 1024 bits":              jwks(weak),
		"is private or secret":              jwks(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQ","d":"AQ"}]}`),
		"secret of 5 bytes":                 func(c *Config) { c.Secret, c.Algorithms = i.file(t, "short", []byte("short")), []string{"HS256"} },
		"x has 1 bytes, not 32":             jwks(`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"AQ"}]}`),
		"y is missing":                      jwks(`{"keys":[{"kty":"EC","crv":"P-256","x":"` + b64(make([]byte, 32)) + `"}]}`),
		"point":                             jwks(`{"keys":[{"kty":"EC","crv":"P-256","x":"` + b64(make([]byte, 32)) + `","y":"` + b64(make([]byte, 32)) + `"}]}`),
		"n is not base64url":                jwks(`{"keys":[{"kty":"RSA","n":"AQ==","e":"AQAB"}]}`),
		"exponent":                          jwks(`{"keys":[{"kty":"RSA","n":"AQ","e":"Ag"}]}`),
		"holds a PRIVATE KEY": func(c *Config) {
			c.PEM = []string{i.file(t, "private.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))}
		},
		"no PEM block": func(c *Config) { c.PEM = []string{i.file(t, "not.pem", []byte("x"))} },
	} {
		c := i.config(t)
		spoil(&c)
		if _, err := Open(c, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "bearer tokens: ") {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

// FuzzJWKS: no file makes it fail otherwise than by an error.
func FuzzJWKS(f *testing.F) {
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"},{"kty":"EC","crv":"P-256","x":"","y":""}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if keys, err := parseJWKS(data); err == nil && len(keys) == 0 {
			t.Error("neither keys nor an error")
		}
		_, _ = parsePEM(data)
	})
}

func BenchmarkCheck(b *testing.B) {
	_, private, _ := ed25519.GenerateKey(rand.Reader)
	v := &Verifier{cfg: Config{Algorithms: []string{"EdDSA"}, Issuer: "https://login.example.test", Audience: "sip", Claim: "sub", Domain: "example.test"}}
	v.keys.Store(&[]key{{"", "EdDSA", private.Public()}})
	v.looked.Store(now.UnixNano())
	token, err := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims(nil)).SignedString(private)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Check(token, now); err != nil {
			b.Fatal(err)
		}
	}
}
