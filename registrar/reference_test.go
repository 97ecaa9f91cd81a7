package registrar

import "testing"

// RFC 5118 §4.10: a colon too many before an IPv4 address is tolerated there, and only there.
func TestThreeColons(t *testing.T) {
	for _, host := range []string{"[2001:db8:::192.0.2.1]", "[:::192.0.2.1]"} {
		if aor, err := ParseAOR("sip:a@" + host); err != nil || len(aor) >= len("sip:a@"+host) {
			t.Errorf("%s: %s, %v", host, aor, err)
		}
	}
	if !equalURI("sip:a@[2001:db8:::192.0.2.1]", "sip:a@[2001:db8::192.0.2.1]") {
		t.Error("the two spellings are not the same host")
	}
	for _, host := range []string{
		"[2001:db8:::10]", "[2001:db8::::192.0.2.1]", "[2001:db8::1:::192.0.2.1]", "[2001:db8:::192.0.2.1:1]", "[:::]", "[2001:db8:::1.2.3]",
	} {
		if u, err := ParseURI("sip:a@" + host); err == nil {
			t.Errorf("%s passed as %+v", host, u)
		}
	}
}
