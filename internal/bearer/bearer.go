// Package bearer checks the access tokens of SIP clients (RFC 8898): signed JWTs
// (RFC 7519, RFC 9068) whose keys an operator configures. It reads the keys from
// files, again when they change, and never asks a server for anything.
package bearer

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"rollcall/registrar"
)

// Config says which tokens are good.
type Config struct {
	JWKS   string   // file with a JWK set
	PEM    []string // files with public keys or certificates
	Secret string   // file with an HS256 secret

	Algorithms []string // accepted, of Algorithms(); HS256 only together with Secret
	Issuer     string   // iss
	Audience   string   // must be among aud
	Scope      string   // must be among the words of scope; "" asks for none
	Claim      string   // names the user: "sip:alice@example.test", "alice@example.test" or "alice"
	Domain     string   // of a user without one
	Leeway     time.Duration
}

// Algorithms that can be accepted.
func Algorithms() []string { return []string{"RS256", "ES256", "EdDSA", "HS256"} }

// Validate says what is wrong, in a line for people.
func (c *Config) Validate() error {
	switch {
	case c.JWKS == "" && len(c.PEM) == 0 && c.Secret == "":
		return errors.New("no keys to check tokens with: give a JWKS file, a PEM file or a secret")
	case len(c.Algorithms) == 0:
		return errors.New("no algorithm is accepted")
	case c.Issuer == "":
		return errors.New("no issuer: any token would do that one of the keys has signed")
	case c.Audience == "":
		return errors.New("no audience: tokens for any other service would do")
	case c.Claim == "":
		return errors.New("no claim that names the user")
	case c.Leeway < 0:
		return fmt.Errorf("leeway %v is negative", c.Leeway)
	}
	for _, a := range c.Algorithms {
		if !slices.Contains(Algorithms(), a) {
			return fmt.Errorf("algorithm %q: choose of %s", a, strings.Join(Algorithms(), ", "))
		}
	}
	if hs := slices.Contains(c.Algorithms, "HS256"); hs != (c.Secret != "") {
		return errors.New("HS256 and the secret file go together")
	}
	return nil
}

// Verifier checks tokens. All methods may be called from any goroutine.
type Verifier struct {
	cfg Config
	log *slog.Logger

	keys   atomic.Pointer[[]key]
	looked atomic.Int64           // Unix nanoseconds: when the files were looked at last
	seen   atomic.Pointer[[]mark] // of the files that keys was read from, or that could not be read
}

// mark tells whether a file was changed.
type mark struct {
	changed time.Time
	size    int64
}

// lookEvery is how soon a changed key file is noticed, and how often files are looked at while tokens come.
const lookEvery = 5 * time.Second

// Open reads the keys. Nothing is left open.
func Open(cfg Config, log *slog.Logger) (*Verifier, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("bearer tokens: %w", err)
	}
	v := &Verifier{cfg: cfg, log: log}
	marks := v.marks() // before reading: a change meanwhile is seen next time
	keys, err := cfg.read()
	if err != nil {
		return nil, fmt.Errorf("bearer tokens: %w", err)
	}
	v.keys.Store(&keys)
	v.seen.Store(&marks)
	return v, nil
}

func (v *Verifier) marks() []mark {
	var marks []mark
	for _, name := range append([]string{v.cfg.JWKS, v.cfg.Secret}, v.cfg.PEM...) {
		var m mark
		if info, err := os.Stat(name); err == nil {
			m = mark{info.ModTime(), info.Size()}
		}
		marks = append(marks, m)
	}
	return marks
}

// reload reads the files again if they changed, at most every lookEvery. One caller
// does it, the others go on with the keys that are there; these also stay when a file cannot be read.
func (v *Verifier) reload(now time.Time) {
	last := v.looked.Load()
	if now.UnixNano()-last < int64(lookEvery) || !v.looked.CompareAndSwap(last, now.UnixNano()) {
		return
	}
	marks := v.marks()
	if slices.Equal(marks, *v.seen.Load()) {
		return
	}
	v.seen.Store(&marks)
	keys, err := v.cfg.read()
	if err != nil {
		v.log.Error("the keys of bearer tokens were changed and cannot be read; the old ones stay", "err", err)
		return
	}
	v.keys.Store(&keys)
	v.log.Info("the keys of bearer tokens were read again", "keys", len(keys))
}

// Check returns the user that a token speaks for. The error says what is wrong with
// the token, never what is in it.
func (v *Verifier) Check(token string, now time.Time) (registrar.AOR, error) {
	v.reload(now)
	parser := jwt.NewParser(jwt.WithValidMethods(v.cfg.Algorithms), jwt.WithStrictDecoding(), jwt.WithExpirationRequired(),
		jwt.WithIssuer(v.cfg.Issuer), jwt.WithAudience(v.cfg.Audience), jwt.WithLeeway(v.cfg.Leeway),
		jwt.WithTimeFunc(func() time.Time { return now }))
	claims := jwt.MapClaims{}
	if _, err := parser.ParseWithClaims(token, claims, v.candidates); err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	if v.cfg.Scope != "" {
		scope, _ := claims["scope"].(string)
		if !slices.Contains(strings.Fields(scope), v.cfg.Scope) {
			return "", registrar.ErrScope
		}
	}
	name, ok := claims[v.cfg.Claim].(string)
	if !ok || name == "" {
		return "", fmt.Errorf("token: no claim %s that names a user", v.cfg.Claim)
	}
	return v.user(name)
}

// user is whom the claim means.
func (v *Verifier) user(name string) (registrar.AOR, error) {
	lower := strings.ToLower(name)
	if strings.HasPrefix(lower, "sip:") || strings.HasPrefix(lower, "sips:") {
		aor, err := registrar.ParseAOR(name)
		if err != nil || aor.User() == "" {
			return "", fmt.Errorf("token: claim %s is no SIP URI of a user", v.cfg.Claim)
		}
		return aor, nil
	}
	domain := v.cfg.Domain
	if at := strings.LastIndexByte(name, '@'); at >= 0 {
		name, domain = name[:at], name[at+1:]
	}
	aor, err := registrar.NewAOR(name, domain)
	if err != nil {
		return "", fmt.Errorf("token: claim %s names no user: %w", v.cfg.Claim, err)
	}
	return aor, nil
}

// maxCandidates bounds the signatures that one token makes us check.
const maxCandidates = 4

// candidates are the keys that may have signed a token: of its algorithm, and with
// its kid. Keys without one go with any, as does a token without one.
func (v *Verifier) candidates(token *jwt.Token) (any, error) {
	if _, has := token.Header["crit"]; has { // RFC 7515 §4.1.11: nothing of it is understood here
		return nil, errors.New("critical extension")
	}
	id, _ := token.Header["kid"].(string)
	var set jwt.VerificationKeySet
	add := func(fits func(key) bool) {
		for _, k := range *v.keys.Load() {
			if k.algorithm == token.Method.Alg() && fits(k) && len(set.Keys) < maxCandidates {
				set.Keys = append(set.Keys, k.public)
			}
		}
	}
	if id == "" {
		add(func(key) bool { return true })
	} else {
		add(func(k key) bool { return k.id == id })
		add(func(k key) bool { return k.id == "" })
	}
	if len(set.Keys) == 0 {
		return nil, errors.New("no such key")
	}
	return set, nil
}
