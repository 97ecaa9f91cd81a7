package registrar

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// tokenDoorman lets in whoever brings "for-USER", of nobody else.
func tokenDoorman(t *testing.T, schemes ...string) *doorman {
	d := newDoorman(t)
	d.a.Schemes = schemes
	d.a.Bearer = &Bearer{Server: "https://login.example.test", Scope: "sip", Check: func(token string, _ time.Time) (AOR, error) {
		if token == "narrow" {
			return "", fmt.Errorf("checked: %w", ErrScope)
		}
		user, ok := strings.CutPrefix(token, "for-")
		if !ok {
			return "", errors.New("forged")
		}
		return NewAOR(user, "example.test")
	}}
	return d
}

func (d *doorman) bring(values ...string) (Reply, bool) {
	req := d.request("c", 9, "<sip:a@h>")
	req.Authorization = values
	return d.try(req)
}

func TestBearer(t *testing.T) {
	for _, c := range []struct {
		values []string
		status int // 0: let in
		fault  string
	}{
		{[]string{"Bearer for-alice"}, 0, ""},
		{[]string{"bearer  \t for-alice "}, 0, ""},
		{nil, 401, ""},
		{[]string{"Bearer forged"}, 401, "invalid_token"},
		{[]string{"Bearer narrow"}, 401, "insufficient_scope"},
		{[]string{"Bearer for-bob"}, 403, ""},
		{[]string{"Bearer forged", "Bearer for-alice"}, 0, ""},
		{[]string{"Digest username=x", "Basic eA==", "Bearer for-alice"}, 0, ""}, // no digest is asked for
		{[]string{"Bearer"}, 400, ""},
		{[]string{"Bearer a b"}, 400, ""},
		{[]string{`Bearer "for-alice"`}, 400, ""},
		{[]string{"Bearer a=b"}, 400, ""},
		{[]string{"Bearer " + strings.Repeat("a", maxToken+1)}, 400, ""},
		{[]string{"Bearerfor-alice"}, 401, ""},
		{slices.Repeat([]string{"Bearer forged"}, maxCredentials), 401, "invalid_token"},
		{append(slices.Repeat([]string{"Bearer forged"}, maxCredentials), "Bearer for-alice"), 401, "invalid_token"},
	} {
		d := tokenDoorman(t, SchemeBearer)
		reply, ok := d.bring(c.values...)
		if ok != (c.status == 0) || !ok && reply.Status != c.status {
			t.Errorf("%.40q: %v %+v", c.values, ok, reply)
		}
		if c.status != 401 {
			continue
		}
		want := `Bearer realm="example.test", scope="sip", authz_server="https://login.example.test"`
		if c.fault != "" {
			want += `, error="` + c.fault + `"`
		}
		if got := values(reply, "WWW-Authenticate"); len(got) != 1 || got[0] != want {
			t.Errorf("%.40q: %q", c.values, got)
		}
	}
}

// Both schemes are offered in the order of the option, and either is accepted; each
// challenge tells only of its own scheme's fault.
func TestBearerAndDigest(t *testing.T) {
	for _, schemes := range [][]string{{SchemeBearer, SchemeDigest}, {SchemeDigest, SchemeBearer}} {
		d := tokenDoorman(t, schemes...)
		reply, _ := d.bring("Bearer forged")
		got := values(reply, "WWW-Authenticate")
		if len(got) != 2 || !strings.HasPrefix(got[0], schemes[0]+" ") || !strings.HasPrefix(got[1], schemes[1]+" ") {
			t.Fatalf("%q", got)
		}
		for _, v := range got {
			if strings.Contains(v, "stale") || strings.HasPrefix(v, SchemeDigest) && strings.Contains(v, "error") {
				t.Error(v)
			}
		}
		if _, ok := d.bring("Bearer for-alice"); !ok {
			t.Error("no token let in")
		}
		nonce := ""
		for _, v := range got {
			if _, after, ok := strings.Cut(v, `nonce="`); ok {
				nonce, _, _ = strings.Cut(after, `"`)
			}
		}
		if reply, ok := d.attempt(10, nonce, MD5, "auth", 1); !ok {
			t.Errorf("no digest let in: %+v", reply)
		}
	}
}

// Without the option a token is nothing, as before.
func TestBearerNotOffered(t *testing.T) {
	d := tokenDoorman(t)
	reply, ok := d.bring("Bearer for-alice")
	if got := values(reply, "WWW-Authenticate"); ok || len(got) != 1 || !strings.HasPrefix(got[0], "Digest ") {
		t.Errorf("%v %q", ok, got)
	}
}

// A pool that changes its key goes on accepting nonces made with the old one, and makes none with it.
func TestPreviousKeys(t *testing.T) {
	d := newDoorman(t)
	nonce, old := d.nonce(), d.a.Key
	d.a.Key = []byte("a new key for the whole of the pool")
	if _, ok := d.attempt(2, nonce, MD5, "auth", 1); ok {
		t.Fatal("a strange key's nonce is accepted")
	}
	d.a.Keys = NewKeys(d.a.Key, old)
	if reply, ok := d.attempt(3, nonce, MD5, "auth", 1); !ok {
		t.Errorf("%+v", reply)
	}
	fresh := d.nonce()
	d.a.Keys.Set(d.a.Key)
	if reply, ok := d.attempt(4, fresh, MD5, "auth", 1); !ok {
		t.Errorf("%+v", reply)
	}
}

func TestNewAOR(t *testing.T) {
	for _, c := range []struct{ user, domain, want string }{
		{"alice", "Example.test", "sip:alice@example.test"}, {"a@b", "h", "sip:a%40b@h"}, {"", "h", ""}, {"a", "", ""}, {"a", "h;x", ""},
	} {
		if got, err := NewAOR(c.user, c.domain); string(got) != c.want && !(c.want == "" && err != nil) {
			t.Errorf("%q %q: %s, %v", c.user, c.domain, got, err)
		}
	}
}

// FuzzBearer: whatever comes, a token that is handed on is one word of the allowed characters.
func FuzzBearer(f *testing.F) {
	for _, s := range []string{"Bearer a.b.c", "bearer\t a==", "Bearer", "Digest a=b", "Bearer a\r\n b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, is, err := parseBearer(s)
		if err == nil && is && (token == "" || len(token) > maxToken || strings.ContainsAny(token, " \t\r\n\",;<>")) {
			t.Fatalf("%q: %q", s, token)
		}
	})
}
