package registrar

import (
	"errors"
	"strings"
	"testing"
)

// TestDigestExamples are the published ones. RFC 8760 has none of its own; the value
// for SHA-512-256 is that of the RFC 7616 erratum, as the text's was made with another hash.
func TestDigestExamples(t *testing.T) {
	for _, c := range []struct {
		name, algorithm, user, realm, password, method, header string
	}{
		{"RFC 7616 §3.9.1 MD5", MD5, "Mufasa", "http-auth@example.org", "Circle of Life", "GET",
			`Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=MD5,
			 nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
			 qop=auth, response="8ca523f5e9506fed4657c9700eebdbec", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"`},
		{"RFC 7616 §3.9.1 SHA-256", SHA256, "Mufasa", "http-auth@example.org", "Circle of Life", "GET",
			`Digest username="Mufasa", realm="http-auth@example.org", uri="/dir/index.html", algorithm=SHA-256,
			 nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", nc=00000001, cnonce="f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
			 qop=auth, response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"`},
		{"RFC 7616 §3.9.2 SHA-512-256", SHA512256, "J\u00e4s\u00f8n Doe", "api@example.org", "Secret, or not?", "GET",
			`Digest username="x", realm="api@example.org", uri="/doe.json", algorithm=SHA-512-256,
			 nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", nc=00000001, cnonce="NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v",
			 qop=auth, response="3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5"`},
		{"RFC 2617 §3.5", MD5, "Mufasa", "testrealm@host.com", "Circle Of Life", "GET",
			`Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", uri="/dir/index.html",
			 qop=auth, nc=00000001, cnonce="0a4f113b", response="6629fae49393a05397450978507c4ef1", opaque="5ccc069c403ebaf9f0171e9517f40e41"`},
		{"RFC 2069 form, by erratum 749", MD5, "Mufasa", "testrealm@host.com", "CircleOfLife", "GET",
			`Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", uri="/dir/index.html",
			 response="1949323746fe6a43ef61f9606e7febea"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			ha1, err := HA1(c.algorithm, c.user, c.realm, c.password)
			if err != nil {
				t.Fatal(err)
			}
			cred, other, err := parseCredentials(strings.ReplaceAll(c.header, "\n", "\r\n")) // folded
			if err != nil || other || !cred.complete() || cred.realm != c.realm {
				t.Fatalf("%+v, %v, %v", cred, other, err)
			}
			if !cred.proves(ha1, c.method, nil) {
				t.Error("the example's response is not accepted")
			}
			if cred.proves(ha1, "POST", nil) {
				t.Error("another method is accepted")
			}
		})
	}
}

func TestHA1(t *testing.T) {
	if h, err := HA1("MD5", "bob", "biloxi.com", "zanzibar"); err != nil || h != "12af60467a33e8518da5c68bbff12b11" {
		t.Errorf("%s, %v", h, err)
	}
	if _, err := HA1("SHA-1", "u", "r", "p"); err == nil {
		t.Error("an unknown algorithm passed")
	}
	all, err := HA1s([]string{MD5, SHA256}, "sip:bob@biloxi.com", "biloxi.com", "zanzibar")
	if err != nil || len(all) != 4 || all["MD5"] == all["MD5@"] || len(all["SHA-256@"]) != 64 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestParseCredentialsRefuses(t *testing.T) {
	for _, s := range []string{
		"", "Digest", "Digest username", "Digest =x", `Digest username="a`, `Digest username="a" realm="b"`,
		`Digest username="a", username="b"`, "Digest\tx", `Digest realm="a", realm="b"`, "Digest username=", `Digest nc=00000001"x"`, "=",
		"Digest username=\"a\x01\"",
	} {
		if c, other, err := parseCredentials(s); !errors.Is(err, errCredentials) || other {
			t.Errorf("%q passed: %+v, %v, %v", s, c, other, err)
		}
	}
	if _, other, err := parseCredentials("Basic QWxhZGRpbg=="); err != nil || !other {
		t.Errorf("another scheme: %v, %v", other, err)
	}
}

func TestParseCredentialsQuotes(t *testing.T) {
	c, _, err := parseCredentials("digest USERNAME = \"a\\\"b\\\\\" ,, nonce=abc ,\r\n uri=\"sip:x\", realm=\"r,=\" , cnonce=\"\\c\"")
	if err != nil || c.username != `a"b\` || c.nonce != "abc" || c.realm != "r,=" || c.cnonce != "c" || c.rawCnonce != `\c` {
		t.Errorf("%+v, %v", c, err)
	}
}
