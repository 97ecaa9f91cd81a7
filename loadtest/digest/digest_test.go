package digest

import (
	"errors"
	"testing"
)

// The examples of RFC 7616 §3.9.1 (MD5 and SHA-256).
func TestResponseOfRFC7616Examples(t *testing.T) {
	r := Request{Username: "Mufasa", Password: "Circle of Life", Method: "GET", URI: "/dir/index.html", NC: 1,
		CNonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"}
	for algorithm, want := range map[string]string{
		"MD5":     "8ca523f5e9506fed4657c9700eebdbec",
		"SHA-256": "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
	} {
		c := Challenge{Realm: "http-auth@example.org", Nonce: "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", Algorithm: algorithm, QOP: true}
		if got := Response(&c, &r); got != want {
			t.Errorf("%s: %s, want %s", algorithm, got, want)
		}
	}
}

// RFC 2617 §3.5 without qop computes as RFC 2069 did: the value is the known one of RFC 2069's errata input.
func TestResponseWithoutQOP(t *testing.T) {
	c := Challenge{Realm: "testrealm@host.com", Nonce: "dcd98b7102dd2f0e8b11d0f600bfb0c093", Algorithm: "MD5"}
	r := Request{Username: "Mufasa", Password: "CircleOfLife", Method: "GET", URI: "/dir/index.html"}
	if got, want := Response(&c, &r), "1949323746fe6a43ef61f9606e7febea"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestChooseTakesTheFirstItKnows(t *testing.T) {
	c, err := Choose([]string{
		`Digest realm="r", nonce="n0", algorithm=SHA-1024`,
		`Basic realm="r"`,
		`Digest realm="a\"b", nonce="n1" , qop="auth-int, auth", algorithm=sha-512-256, stale=TRUE, opaque="o"`,
		`Digest realm="r", nonce="n2"`,
	})
	want := Challenge{Realm: `a"b`, Nonce: "n1", Opaque: "o", Algorithm: "SHA-512-256", QOP: true, Stale: true}
	if err != nil || c != want {
		t.Errorf("%+v %v, want %+v", c, err, want)
	}
	if _, err := Choose([]string{`Digest realm="r"`, `Digest nonce="n", qop="auth-int"`}); !errors.Is(err, ErrNoChallenge) {
		t.Errorf("unanswerable challenges: %v", err)
	}
}

func TestAuthorizationCarriesWhatItAnswers(t *testing.T) {
	c := Challenge{Realm: `r"\x`, Nonce: "n", Algorithm: "MD5", QOP: true, Opaque: "o"}
	r := Request{Username: "u", Password: "p", Method: "REGISTER", URI: "sip:d", NC: 17, CNonce: "c"}
	p := Params(Authorization(&c, &r))
	if p["realm"] != c.Realm || p["nc"] != "00000011" || p["username"] != "u" || p["uri"] != "sip:d" || p["opaque"] != "o" || p["qop"] != "auth" || p["response"] != Response(&c, &r) {
		t.Errorf("%v", p)
	}
}
