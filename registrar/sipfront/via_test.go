package sipfront

import (
	"net/netip"
	"testing"
)

// Each Via a client may send: where the answer goes, and the Via in it (RFC 3261 §18.2, RFC 3581, RFC 5118).
func TestVia(t *testing.T) {
	v4, v6 := "198.51.100.7:40000", "[2001:db8::7]:40000"
	for _, c := range []struct{ value, from, to, answered string }{
		{"SIP/2.0/UDP 198.51.100.7:5062;branch=z9hG4bK1", v4, "198.51.100.7:5062",
			"SIP/2.0/UDP 198.51.100.7:5062;branch=z9hG4bK1"},
		{"SIP/2.0/UDP 198.51.100.7;branch=z9hG4bK1", v4, "198.51.100.7:5060",
			"SIP/2.0/UDP 198.51.100.7;branch=z9hG4bK1"},
		{"SIP/2.0/UDP 10.0.0.1:5062;branch=z9hG4bK1", v4, "198.51.100.7:5062",
			"SIP/2.0/UDP 10.0.0.1:5062;branch=z9hG4bK1;received=198.51.100.7"},
		{"SIP/2.0/UDP 10.0.0.1:5062;rport;branch=z9hG4bK1", v4, v4,
			"SIP/2.0/UDP 10.0.0.1:5062;branch=z9hG4bK1;received=198.51.100.7;rport=40000"},
		{"SIP/2.0/UDP 198.51.100.7;RPORT ; BRANCH = z9hG4bK1", v4, v4,
			"SIP/2.0/UDP 198.51.100.7; BRANCH = z9hG4bK1;received=198.51.100.7;rport=40000"},
		{"SIP / 2.0 / UDP  10.0.0.1 : 5062 ; branch=z9hG4bK1 ;received=1.2.3.4", v4, "198.51.100.7:5062",
			"SIP / 2.0 / UDP  10.0.0.1 : 5062; branch=z9hG4bK1;received=198.51.100.7"},
		{"SIP/2.0/UDP a.invalid;branch=z9hG4bK1, SIP/2.0/UDP x", v4, "198.51.100.7:5060",
			"SIP/2.0/UDP a.invalid;branch=z9hG4bK1;received=198.51.100.7, SIP/2.0/UDP x"},
		{"SIP/2.0/UDP 10.0.0.1:5062;maddr=192.0.2.9;branch=z9hG4bK1", v4, "192.0.2.9:5062",
			"SIP/2.0/UDP 10.0.0.1:5062;maddr=192.0.2.9;branch=z9hG4bK1;received=198.51.100.7"},
		{"SIP/2.0/UDP 10.0.0.1;maddr=host.example;branch=z9hG4bK1", v4, "198.51.100.7:5060",
			"SIP/2.0/UDP 10.0.0.1;maddr=host.example;branch=z9hG4bK1;received=198.51.100.7"},
		{"SIP/2.0/UDP [2001:db8::7]:5062;branch=z9hG4bK1", v6, "[2001:db8::7]:5062",
			"SIP/2.0/UDP [2001:db8::7]:5062;branch=z9hG4bK1"},
		{"SIP/2.0/UDP [2001:DB8:0::7];branch=z9hG4bK1", v6, "[2001:db8::7]:5060",
			"SIP/2.0/UDP [2001:DB8:0::7];branch=z9hG4bK1"},
		{"SIP/2.0/UDP [2001:db8::1];received=[2001:db8::9];rport;branch=z9hG4bK1", v6, v6,
			"SIP/2.0/UDP [2001:db8::1];branch=z9hG4bK1;received=[2001:db8::7];rport=40000"},
		{"SIP/2.0/UDP [2001:db8::1];received=2001:db8::9;branch=z9hG4bK1", v6, "[2001:db8::7]:5060",
			"SIP/2.0/UDP [2001:db8::1];branch=z9hG4bK1;received=[2001:db8::7]"},
		{`SIP/2.0/UDP 10.0.0.1;x="a,;b\"c";branch=z9hG4bK1`, v4, "198.51.100.7:5060",
			`SIP/2.0/UDP 10.0.0.1;x="a,;b\"c";branch=z9hG4bK1;received=198.51.100.7`},
	} {
		v, err := parseVia(c.value)
		if err != nil {
			t.Errorf("%s: %v", c.value, err)
			continue
		}
		if v.branch != "z9hG4bK1" {
			t.Errorf("%s: branch %q", c.value, v.branch)
		}
		if to := v.answerTo(netip.MustParseAddrPort(c.from)).String(); to != c.to {
			t.Errorf("%s: answered to %s, want %s", c.value, to, c.to)
		}
		if got := string(v.appendAnswered(nil, c.value, c.from)); got != c.answered {
			t.Errorf("%s:\n got %s\nwant %s", c.value, got, c.answered)
		}
	}
	for _, value := range []string{
		"", "SIP", "SIP/2.0", "SIP/2.0/UDP", "SIP/2.0/UDP ", "SIP/2.0 UDP host", "SIP//UDP host",
		"SIP/2.0/UDP host:", "SIP/2.0/UDP host:0", "SIP/2.0/UDP host:65536", "SIP/2.0/UDP host:99999999999999999999",
		"SIP/2.0/UDP [::1", "SIP/2.0/UDP [192.0.2.1]", "SIP/2.0/UDP [x]", "SIP/2.0/UDP host;", "SIP/2.0/UDP host;=x",
		`SIP/2.0/UDP host;a="b`, "SIP/2.0/UDP host a", "SIP/2.0/UDP host;a b",
	} {
		if v, err := parseVia(value); err == nil {
			t.Errorf("%q is taken for a Via: %+v", value, v)
		}
	}
}
