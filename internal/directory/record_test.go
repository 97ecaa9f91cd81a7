package directory

import (
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	sha := strings.Repeat("ab", 32)
	for _, c := range []struct{ name, value, wrong string }{
		{"least", `{"group":"g1"}`, ""},
		{"all", `{"group":"g1","ha1":{"MD5":"` + md5a + `","SHA-256":"` + sha + `","SHA-512-256":"` + sha + `"},"max_contacts":3}`, ""},
		{"field of a newer version", `{"group":"g1","vip":true}`, ""},
		{"algorithm of a newer version", `{"group":"g1","ha1":{"SHA3":"xyz"}}`, ""},
		{"not JSON", `group=g1`, "damaged"},
		{"cut off", `{"group":"g1"`, "damaged"},
		{"something after it", `{"group":"g1"}{}`, "damaged"},
		{"a brace too many", `{"group":"g1"}}`, "damaged"},
		{"null", `null`, "no group"},
		{"no group", `{"max_contacts":3}`, "no group"},
		{"empty group", `{"group":""}`, "no group"},
		{"group a number", `{"group":7}`, "damaged"},
		{"negative limit", `{"group":"g1","max_contacts":-1}`, "negative"},
		{"short HA1", `{"group":"g1","ha1":{"MD5":"abcd"}}`, "32 hexadecimal digits"},
		{"HA1 of another length", `{"group":"g1","ha1":{"SHA-256":"` + md5a + `"}}`, "64 hexadecimal digits"},
		{"HA1 not hexadecimal", `{"group":"g1","ha1":{"MD5":"` + strings.Repeat("x", 32) + `"}}`, "32 hexadecimal digits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, err := Decode("sip:a@b", []byte(c.value))
			if c.wrong == "" {
				if err != nil {
					t.Fatal(err)
				}
				if _, err := Encode(u); err != nil {
					t.Errorf("decoded, but not encoded again: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.wrong) || !strings.Contains(err.Error(), "sip:a@b") {
				t.Errorf("error %v, want one with %q and the user", err, c.wrong)
			}
		})
	}
}

func TestEncodeRoundTrip(t *testing.T) {
	const stored = `{"group":"g1","ha1":{"MD5":"` + md5a + `"},"max_contacts":2,"vip":{"since":2026}}`
	u, err := Decode("sip:a@b", []byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Encode(u)
	if err != nil || string(again) != stored {
		t.Errorf("%s, %v", again, err)
	}
	if _, err := Encode(User{AOR: "sip:a@b"}); err == nil {
		t.Error("a user without a group was encoded")
	}
}
