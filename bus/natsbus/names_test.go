package natsbus

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every key survives the way to a subject and back, as tokens that NATS takes, and keys that
// start with a prefix are under the prefix's wildcard.
func TestKeyEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringOf(rapid.RuneFrom([]rune("ab/.=*> \x00ü@"))).Filter(func(s string) bool { return s != "" }).Draw(t, "key")
		encoded := encodeKey(key)
		if decoded, err := decodeKey(encoded); err != nil || decoded != key {
			t.Fatalf("%q is %q, and back %q, %v", key, encoded, decoded, err)
		}
		for _, token := range strings.Split(encoded, ".") {
			if token == "" || strings.ContainsAny(token, "*> \x00") {
				t.Fatalf("%q has the token %q", encoded, token)
			}
		}
		prefix := key[:rapid.IntRange(0, len(key)).Draw(t, "prefix")]
		filter, _ := strings.CutSuffix(prefixFilter(prefix), ">")
		if !strings.HasPrefix(encoded, filter) || len(encoded) == len(filter) {
			t.Fatalf("%q is not under %q>, the wildcard of %q", encoded, filter, prefix)
		}
	})
}

func TestBindingsSubject(t *testing.T) {
	subject := names{"rollcall"}.bindings("g.1", "alice@example.test")
	if want := "rollcall.bindings.g=2E1.alice=40example=2Etest"; subject != want {
		t.Errorf("got %s, want %s", subject, want)
	}
	group, user, err := parseBindings(subject)
	if group != "g.1" || user != "alice@example.test" || err != nil {
		t.Errorf("got %q, %q, %v", group, user, err)
	}
	for _, foreign := range []string{"", "x", "a.=", "a.b.=4", "a.b.=zz"} {
		if _, _, err := parseBindings(foreign); err == nil && foreign != "a.=" {
			t.Errorf("%q was taken", foreign)
		}
	}
}
