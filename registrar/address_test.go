package registrar

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Address
	}{
		{`sip:a@h`, Address{URI: "sip:a@h"}},
		{`<sip:a@h;lr>`, Address{URI: "sip:a@h;lr"}},
		{`sip:a@h;tag=1`, Address{URI: "sip:a@h", Params: []Param{{Name: "tag", Value: "1"}}}},
		{`  Alice  B <sip:a@h> ; tag = 1 ;x`, Address{"Alice  B", "sip:a@h", []Param{{Name: "tag", Value: "1"}, {Name: "x", Bare: true}}}},
		{`"A \"q\" <x>, \\" <sip:a@h>`, Address{Display: `A "q" <x>, \`, URI: "sip:a@h"}},
		{`"" <sip:a@h>`, Address{URI: "sip:a@h"}},
		{`"x"<sip:a@h>;p="a;b\"c"`, Address{"x", "sip:a@h", []Param{{Name: "p", Value: `a;b"c`, Quoted: true}}}},
		{"<sip:a@h>\r\n ;\r\n\ttag=1", Address{URI: "sip:a@h", Params: []Param{{Name: "tag", Value: "1"}}}},
		{`<sip:a@h>;received=[2001:db8::1]:5060`, Address{URI: "sip:a@h", Params: []Param{{Name: "received", Value: "[2001:db8::1]:5060"}}}},
	} {
		got, err := ParseAddress(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
		} else if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", c.in, d)
		}
	}
}

func TestParseAddressRefuses(t *testing.T) {
	for _, s := range []string{
		"", ";tag=1", "<>", "<sip:a@h", "sip:a@h>", `"x" sip:a@h`, `"x <sip:a@h>`, `Bell, A <sip:a@h>`, "a;b <sip:a@h>",
		"<sip:a@h>;", "<sip:a@h>;;x", "<sip:a@h>;=1", "<sip:a@h>;a=", "<sip:a@h>x", "<sip:a@h>;a=b c", `<sip:a@h>;a="b`,
		"<sip:a@h>;a=1;A=2", "sip:a@h?x=y", "sip:a@h,sip:b@h", "< sip:a@h>", "<sip:a@h >", "<<sip:a@h>>", "<sip:a\r\n@h>",
		"\"a\x01\" <sip:a@h>", "\"a\\", "<sip:a@h>" + strings.Repeat(";a", 3),
	} {
		if a, err := ParseAddress(s); err == nil {
			t.Errorf("%q passed as %+v", s, a)
		}
	}
}

func TestSplitList(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string // nil: refused
	}{
		{"a", []string{"a"}},
		{" a , b,c ", []string{"a", "b", "c"}},
		{`"a,b" <sip:x,y@h>;p="c,\"d", e`, []string{`"a,b" <sip:x,y@h>;p="c,\"d"`, "e"}},
		{`<sip:a"b@h>, <c>`, []string{`<sip:a"b@h>`, "<c>"}},
		{"", nil}, {",", nil}, {"a,", nil}, {",a", nil}, {"a,,b", nil}, {`"a`, nil}, {"<a", nil},
	} {
		got, err := SplitList(c.in)
		if (err != nil) != (c.want == nil) || cmp.Diff(c.want, got) != "" {
			t.Errorf("%q: got %q, %v", c.in, got, err)
		}
	}
}

func contact(uri string) Contact { return Contact{URI: uri, Q: -1} }

func lasting(seconds uint32) ExpiresIn { return ExpiresIn{Given: true, Valid: true, Seconds: seconds} }

func TestParseContacts(t *testing.T) {
	zero := contact("sip:a@h")
	zero.Expires = lasting(0)
	for _, c := range []struct {
		name, in string
		want     []Contact
	}{
		{"case 01: blank before a parameter", "<sip:a@h>; expires=0", []Contact{zero}},
		{"case 01: blanks around the equals sign", "<sip:a@h> ;expires = 0", []Contact{zero}},
		{"case 01: reg-id after a blank", "<sip:a@h>; reg-id=1", []Contact{{URI: "sip:a@h", Q: -1, RegID: 1}}},
		{"case 01: addr-spec", "sip:a@h ; expires=0", []Contact{zero}},
		{"case 02: upper case", "<sip:a@h>;EXPIRES=0", []Contact{zero}},
		{"case 02: upper case q", "<sip:a@h>;Q=0.3", []Contact{{URI: "sip:a@h", Q: 300}}},
		{"case 08: two in one field", `<sip:a@h>;q=1;expires=0, "b, c" <sip:b@h>;expires=9`, []Contact{
			{URI: "sip:a@h", Q: 1000, Expires: lasting(0)}, {URI: "sip:b@h", Q: -1, Expires: lasting(9), Display: "b, c"}}},
		{"case 08: comma in a quoted parameter", `<sip:a@h>;x="1,2";y, <sip:b@h>`, []Contact{
			{URI: "sip:a@h", Q: -1, Params: `;x="1,2";y`}, contact("sip:b@h")}},
		{"case 08: > in an instance", `<sip:a@h>;+sip.instance="<urn:x:a>b>";reg-id=2`, []Contact{
			{URI: "sip:a@h", Q: -1, Instance: "urn:x:a>b", RegID: 2}}},
		{"case 28: malformed expires is the default", "<sip:a@h>;expires=soon", []Contact{
			{URI: "sip:a@h", Q: -1, Expires: ExpiresIn{Given: true}}}},
		{"case 39: browser", "<sip:x7k@3ve0.invalid;transport=ws>;+sip.ice;expires=600", []Contact{
			{URI: "sip:x7k@3ve0.invalid;transport=ws", Q: -1, Params: ";+sip.ice", Expires: lasting(600)}}},
		{"too large an expires is the largest", "<sip:a@h>;expires=280297596632815", []Contact{
			{URI: "sip:a@h", Q: -1, Expires: lasting(4294967295)}}},
		{"push parameters", "<sip:a@h;pn-provider=acme;pn-prid=ZTY4ZDJ>", []Contact{contact("sip:a@h;pn-provider=acme;pn-prid=ZTY4ZDJ")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, star, err := ParseContacts([]string{c.in})
			if err != nil || star {
				t.Fatalf("star %v, %v", star, err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestParseContactsRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"case 03":                "<sip:alice@192.0.2.10:5060transport=udp>",
		"case 03 addr-spec":      "sip:alice@192.0.2.10:5060transport=udp",
		"case 04":                "None",
		"case 14":                "<sip:a@b@192.0.2.1>",
		"case 15":                `"x"<b0119:5@h>`,
		"q above one":            "<sip:a@h>;q=1.1",
		"q malformed":            "<sip:a@h>;q=0.1234",
		"q without value":        "<sip:a@h>;q",
		"reg-id zero":            "<sip:a@h>;reg-id=0",
		"reg-id too large":       "<sip:a@h>;reg-id=2147483648",
		"instance empty":         `<sip:a@h>;+sip.instance="<>"`,
		"second one malformed":   "<sip:a@h>, <sip:b@h",
		"star with a parameter":  "*;expires=0",
		"expires twice":          "<sip:a@h>;expires=0;Expires=1",
		"nothing":                "",
		"NUL":                    "<sip:a\x00@h>",
		"mail address":           "<mailto:a@h>",
		"parameter without name": "<sip:a@h>;",
	} {
		t.Run(name, func(t *testing.T) {
			if got, star, err := ParseContacts([]string{"<sip:ok@h>", in}); err == nil {
				t.Errorf("%q passed: %+v, star %v", in, got, star)
			}
		})
	}
}

func TestParseContactsStar(t *testing.T) {
	for _, c := range []struct {
		in       []string
		contacts int
	}{{[]string{"*"}, 0}, {[]string{" * "}, 0}, {[]string{"*, <sip:a@h>"}, 1}, {[]string{"<sip:a@h>", "*"}, 1}} {
		got, star, err := ParseContacts(c.in)
		if err != nil || !star || len(got) != c.contacts {
			t.Errorf("%q: %d contacts, star %v, %v", c.in, len(got), star, err)
		}
	}
}

func TestParseExpires(t *testing.T) {
	for in, want := range map[string]ExpiresIn{
		"0": lasting(0), " 60 ": lasting(60), "4294967296": lasting(4294967295), "99999999999999999999999": lasting(4294967295),
		"": {Given: true}, "-1": {Given: true}, "1.5": {Given: true}, "0x10": {Given: true}, "1 2": {Given: true},
	} {
		if got := ParseExpires(in); got != want {
			t.Errorf("%q: %+v, want %+v", in, got, want)
		}
	}
}

// A line break that gets through would let a client write header fields into our answers.
func TestLineBreaks(t *testing.T) {
	for _, s := range []string{"<sip:a@h>;x=\"a\r\nEvil: 1\"", "<sip:a@h>;x=\"a\nb\"", "\"a\rb\" <sip:a@h>", "<sip:a@h>\r\n"} {
		if got, _, err := ParseContacts([]string{s}); err == nil {
			t.Errorf("%q passed as %+v", s, got)
		}
	}
	got, _, err := ParseContacts([]string{"<sip:a@h>;x=\"a\r\n b\""})
	if err != nil || got[0].Params != `;x="a b"` {
		t.Errorf("%+v, %v", got, err)
	}
}
