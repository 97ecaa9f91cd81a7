package registrar

import (
	"errors"
	"strings"
	"testing"
)

func TestParseURI(t *testing.T) {
	for _, s := range []string{
		"sip:alice@atlanta.com",
		"sip:alice:secretword@atlanta.com;transport=tcp",
		"sips:alice@atlanta.com?subject=project%20x&priority=urgent",
		"sip:+1-212-555-1212:1234@gateway.com;user=phone",
		"sips:1212@gateway.com",
		"sip:alice@192.0.2.4",
		"sip:atlanta.com;method=REGISTER?to=alice%40atlanta.com",
		"sip:alice;day=tuesday@atlanta.com",
		"sip:alice@[2001:db8::10]:5070;transport=tls",
		"sip:[::ffff:192.0.2.10]",
		"SIP:a@H;LR",
		"sip:null-%00-null@example.com",
		"sip:1_unusual.URI~(to-be!sure)&isn't+it$/crazy?,/;;*:&it+has=1,weird!*pas$wo~d_too.(doesn't-it)@example.com",
		"sip:a@h.invalid;transport=wss", "sip:a@4f3a2b1c9d0e", "sip:a@my_host", "sip:a@example.test.",
		"sip:a:@h",
		"tel:+1-201-555-0123", "tel:7042;phone-context=example.com",
	} {
		if _, err := ParseURI(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestParseURIRefuses(t *testing.T) {
	for _, s := range []string{
		"", ":", "sip", "sip:", "alice@h", "sip:@h", "sip:a@", "sip:a@b@192.0.2.1", // case 14
		"sip:alice@192.0.2.10:5060transport=udp", // case 3
		"sip:a@h:", "sip:a@h:0", "sip:a@h:65536", "sip:a@h:+5060", "sip:a@h:5060:1",
		"sip:a b@h", "sip:a@h h", "sip:a%4@h", "sip:a%zz@h", "sip:a\x00@h", "sip:ä@h",
		"sip:a@[::1", "sip:a@::1", "sip:a@[::1%25eth0]", "sip:a@[192.0.2.1]", "sip:a@[]", "sip:a@[::1]5060",
		"sip:a@256.0.0.1", "sip:a@1.2.3", "sip:a@-h", "sip:a@h-", "sip:a@h..h", "sip:a@.", "sip:a@" + strings.Repeat("x", 64),
		"sip:a@h;", "sip:a@h;;lr", "sip:a@h;transport=", "sip:a@h;=x", "sip:a@h;a b", "sip:a@h;lr;LR", "sip:a@h;x=\"y\"",
		"sip:a@h?", "sip:a@h?x", "sip:a@h?=y", "sip:a@h?x=y&", "sip:a@h?x=y;z", "sip:<a>@h", "sip:a@h>",
		"tel:", "tel:+", "tel:12x", "tel:1+2", "1x:a", "s p:a@h",
		"sip:a@h" + strings.Repeat(";a=b", 2),
	} {
		if u, err := ParseURI(s); err == nil {
			t.Errorf("%q passed as %+v", s, u)
		} else if strings.ContainsAny(err.Error(), "\r\n\x00") {
			t.Errorf("%q: error is not one clean line: %v", s, err)
		}
	}
}

func TestParseURIOtherSchemes(t *testing.T) {
	for _, s := range []string{"b0119:5@h", "http://h/", "urn:uuid:1", "mailto:a@h"} { // case 15
		if _, err := ParseURI(s); !errors.Is(err, ErrScheme) {
			t.Errorf("%s: %v, want ErrScheme", s, err)
		}
	}
	if _, err := ParseAOR("tel:+123"); !errors.Is(err, ErrScheme) {
		t.Errorf("tel as AOR: %v, want ErrScheme", err)
	}
}

func TestURIParts(t *testing.T) {
	u, err := ParseURI("SIPS:al%69ce:p:w@Example.TEST:5070;Transport=TCP;lr?to=x%40y&z=")
	if err == nil {
		t.Fatalf("a password with a colon passed: %+v", u)
	}
	u, err = ParseURI("SIPS:al%69ce:p@Example.TEST:5070;Transport=TCP;lr?to=x%40y&z=")
	if err != nil {
		t.Fatal(err)
	}
	v, _ := u.Param("transport")
	_, lr := u.Param("LR")
	if u.Scheme != "sips" || u.User != "al%69ce" || u.Password != "p" || u.Host != "example.test" || u.Port != 5070 ||
		v != "TCP" || !lr || len(u.Headers) != 2 {
		t.Errorf("got %+v", u)
	}
}

// RFC 3261 §19.1.4 gives these examples; the last ones are of RFC 5954, RFC 3966 and case 29.
func TestURIEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"sip:%61lice@atlanta.com;transport=TCP", "sip:alice@AtLanTa.CoM;Transport=tcp", true},
		{"sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5", true},
		{"sip:carol@chicago.com", "sip:carol@chicago.com;security=on", true},
		{"sip:carol@chicago.com;newparam=5", "sip:carol@chicago.com;security=on", true},
		{"sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com", "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com", true},
		{"sip:alice@atlanta.com?subject=project%20x&priority=urgent", "sip:alice@atlanta.com?priority=urgent&subject=project%20x", true},
		{"SIP:ALICE@AtLanTa.CoM;Transport=udp", "sip:alice@AtLanTa.CoM;Transport=UDP", false},
		{"sip:bob@biloxi.com", "sip:bob@biloxi.com:5060", false},
		{"sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp", false},
		{"sip:bob@biloxi.com", "sip:bob@biloxi.com:6000;transport=tcp", false},
		{"sip:carol@chicago.com", "sip:carol@chicago.com?Subject=next%20meeting", false},
		{"sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4", false},
		{"sip:carol@chicago.com;security=on", "sip:carol@chicago.com;security=off", false},
		{"sip:bob@biloxi.com", "sips:bob@biloxi.com", false},
		{"sip:a@h;user=phone", "sip:a@h", false},
		{"sip:a@h", "sip:a@h;ttl=1", false},
		{"sip:a@h;method=INVITE", "sip:a@h", false},
		{"sip:a@h;maddr=192.0.2.1", "sip:a@h", false},
		{"sip:a%3Bb@h", "sip:a;b@h", false}, // reserved: escaped is not the same
		{"sip:a%3Bb@h", "sip:a%3bb@h", true},
		{"sip:a:b@h", "sip:a@h", false},
		{"sip:a:@h", "sip:a@h", false},
		{"sip:a@[2001:db8:0::1]", "sip:a@[2001:DB8::1]", true},
		{"sip:a@[2001:db8::1]", "sip:a@[2001:db8::2]", false},
		{"sip:a@h?x=1&x=2", "sip:a@h?x=2&x=1", true},
		{"sip:a@h?x=1&x=1", "sip:a@h?x=2&x=1", false},
		{"tel:+1-201-555-0123", "tel:+12015550123", true},
		{"tel:7042;phone-context=a.com", "tel:7042;phone-context=b.com", false},
		{"tel:7042;phone-context=a.com", "tel:7042", false},
		{"sip:alice@192.0.2.1;a=1;b=2", "sip:alice@192.0.2.1;b=2;a=1", true},
	} {
		u, err := ParseURI(c.a)
		if err != nil {
			t.Fatal(err)
		}
		v, err := ParseURI(c.b)
		if err != nil {
			t.Fatal(err)
		}
		if u.Equal(v) != c.want || v.Equal(u) != c.want || equalURI(c.a, c.b) != c.want {
			t.Errorf("%s = %s: want %v both ways", c.a, c.b, c.want)
		}
		if !u.Equal(u) {
			t.Errorf("%s does not equal itself", c.a)
		}
	}
}

func TestParseAOR(t *testing.T) {
	for _, c := range []struct{ in, want, user, domain string }{
		{"sip:alice@example.test", "sip:alice@example.test", "alice", "example.test"},
		{"sips:Alice@EXAMPLE.test:5061;transport=tls?x=y", "sip:Alice@example.test", "Alice", "example.test"},
		{"sip:%61lice:secret@example.test:5060", "sip:alice@example.test", "alice", "example.test"},
		{"sip:a%40b@example.test.", "sip:a%40b@example.test", "a@b", "example.test"},
		{"sip:a%3bb%c3%a4@h", "sip:a;b%C3%A4@h", "a;bä", "h"},
		{"sip:alice@h:5070", "sip:alice@h:5070", "alice", "h:5070"},
		{"sip:alice@h:5061", "sip:alice@h:5061", "alice", "h:5061"},
		{"sip:a@[2001:DB8:0::1]:5060", "sip:a@[2001:db8::1]", "a", "[2001:db8::1]"},
		{"sip:example.test", "sip:example.test", "", "example.test"},
	} {
		a, err := ParseAOR(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if string(a) != c.want || a.User() != c.user || a.Domain() != c.domain {
			t.Errorf("%s: got %s, user %q, domain %q", c.in, a, a.User(), a.Domain())
		}
		if again, err := ParseAOR(string(a)); err != nil || again != a {
			t.Errorf("%s: canonical form is not stable: %s, %v", c.in, again, err)
		}
	}
	if _, err := ParseAOR("sip:" + strings.Repeat("a", 500) + "@h"); err == nil {
		t.Error("an AOR too long for the bus passed")
	}
}
