package sipfront

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"rollcall/registrar"

	"github.com/google/go-cmp/cmp"
)

// rfc5118 are the messages of RFC 5118, byte for byte with CRLF for each line end, and the answer that
// each deserves from a registrar; 200 to a REGISTER means that the Handler got it.
var rfc5118 = []struct {
	name, text string
	code       int
	check      func(registrar.Request) string // of a REGISTER that reaches the Handler: "" when it should be so
	via        string                         // must begin the answer's top Via
}{
	{"4.1 ipv6-good", `REGISTER sip:[2001:db8::10] SIP/2.0
To: sip:user@example.com
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::9:1];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Max-Forwards: 70
Contact: "Caller" <sip:caller@[2001:db8::1]>
CSeq: 98176 REGISTER
Content-Length: 0

`, 200, hosts("[2001:db8::10]", "sip:caller@[2001:db8::1]"), "SIP/2.0/UDP [2001:db8::9:1];"},
	{"4.2 ipv6-bad", `REGISTER sip:2001:db8::10 SIP/2.0
To: sip:user@example.com
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::9:1];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Max-Forwards: 70
Contact: "Caller" <sip:caller@[2001:db8::1]>
CSeq: 98176 REGISTER
Content-Length: 0

`, 400, nil, ""},
	{"4.3 port-ambiguous", `REGISTER sip:[2001:db8::10:5070] SIP/2.0
To: sip:user@example.com
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::9:1];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Contact: "Caller" <sip:caller@[2001:db8::1]>
Max-Forwards: 70
CSeq: 98176 REGISTER
Content-Length: 0

`, 200, hosts("[2001:db8::10:5070]", "sip:caller@[2001:db8::1]"), ""}, // the 5070 belongs to the address
	{"4.4 port-unambiguous", `REGISTER sip:[2001:db8::10]:5070 SIP/2.0
To: sip:user@example.com
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::9:1];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Contact: "Caller" <sip:caller@[2001:db8::1]>
Max-Forwards: 70
CSeq: 98176 REGISTER
Content-Length: 0

`, 200, hosts("[2001:db8::10]", "sip:caller@[2001:db8::1]"), ""},
	{"4.5 via-received-param-with-delim", `BYE sip:[2001:db8::10] SIP/2.0
To: sip:user@example.com;tag=bd76ya
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::9:1];received=[2001:db8::9:255];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Max-Forwards: 70
CSeq: 321 BYE
Content-Length: 0

`, 405, nil, "SIP/2.0/UDP [2001:db8::9:1];"},
	{"4.5 via-received-param-no-delim", `OPTIONS sip:[2001:db8::10] SIP/2.0
To: sip:user@example.com
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::9:1];received=2001:db8::9:255;branch=z9hG4bKas3
Call-ID: SSG95523997077@hlau_4100
Max-Forwards: 70
Contact: "Caller" <sip:caller@[2001:db8::9:1]>
CSeq: 921 OPTIONS
Content-Length: 0

`, 200, nil, "SIP/2.0/UDP [2001:db8::9:1];"}, // OPTIONS is answered without the Handler
	{"4.6 ipv6-in-sdp as printed", `INVITE sip:user@[2001:db8::10] SIP/2.0
To: sip:user@[2001:db8::10]
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::20];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Contact: "Caller" <sip:caller@[2001:db8::20]>
CSeq: 8612 INVITE
Max-Forwards: 70
Content-Type: application/sdp
Content-Length: 268

v=0
o=assistant 971731711378798081 0 IN IP6 2001:db8::20
s=Live video feed for today's meeting
c=IN IP6 2001:db8::20
t=3338481189 3370017201
m=audio 6000 RTP/AVP 2
a=rtpmap:2 G726-32/8000
m=video 6024 RTP/AVP 107
a=rtpmap:107 H263-1998/90000
`, 400, nil, ""}, // the RFC prints 268 for a body of 251 bytes
	{"4.6 ipv6-in-sdp with its true length", `INVITE sip:user@[2001:db8::10] SIP/2.0
To: sip:user@[2001:db8::10]
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::20];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Contact: "Caller" <sip:caller@[2001:db8::20]>
CSeq: 8612 INVITE
Max-Forwards: 70
Content-Type: application/sdp
Content-Length: 251

v=0
o=assistant 971731711378798081 0 IN IP6 2001:db8::20
s=Live video feed for today's meeting
c=IN IP6 2001:db8::20
t=3338481189 3370017201
m=audio 6000 RTP/AVP 2
a=rtpmap:2 G726-32/8000
m=video 6024 RTP/AVP 107
a=rtpmap:107 H263-1998/90000
`, 405, nil, ""},
	{"4.7 mult-ip-in-header", `BYE sip:user@host.example.net SIP/2.0
Via: SIP/2.0/UDP [2001:db8::9:1]:6050;branch=z9hG4bKas3-111
Via: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKjhja8781hjuaij65144
Via: SIP/2.0/TCP [2001:db8::9:255];branch=z9hG4bK451jj;received=192.0.2.200
Call-ID: 997077@lau_4100
Max-Forwards: 70
CSeq: 89187 BYE
To: sip:user@example.net;tag=9817--94
From: sip:user@example.com;tag=81x2
Content-Length: 0

`, 405, nil, "SIP/2.0/UDP [2001:db8::9:1]:6050;"},
	{"4.8 mult-ip-in-sdp", `INVITE sip:user@[2001:db8::10] SIP/2.0
To: sip:user@[2001:db8::10]
From: sip:user@example.com;tag=81x2
Via: SIP/2.0/UDP [2001:db8::9:1];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Contact: "Caller" <sip:caller@[2001:db8::9:1]>
Max-Forwards: 70
CSeq: 8912 INVITE
Content-Type: application/sdp
Content-Length: 181

v=0
o=bob 280744730 28977631 IN IP4 host.example.com
s=
t=0 0
m=audio 22334 RTP/AVP 0
c=IN IP4 192.0.2.1
m=video 6024 RTP/AVP 107
c=IN IP6 2001:db8::1
a=rtpmap:107 H263-1998/90000
`, 405, nil, ""},
	{"4.9 ipv4-mapped-ipv6", `INVITE sip:user@example.com SIP/2.0
To: sip:user@example.com
From: sip:user@east.example.com;tag=81x2
Via: SIP/2.0/UDP [::ffff:192.0.2.10]:19823;branch=z9hG4bKbh19
Via: SIP/2.0/UDP [::ffff:192.0.2.2];branch=z9hG4bKas3-111
Call-ID: SSG9559905523997077@hlau_4100
Contact: "T. desk phone" <sip:ted@[::ffff:192.0.2.2]>
CSeq: 612 INVITE
Max-Forwards: 70
Content-Type: application/sdp
Content-Length: 236

v=0
o=assistant 971731711378798081 0 IN IP6 ::ffff:192.0.2.2
s=Call me soon, please!
c=IN IP6 ::ffff:192.0.2.2
t=3338481189 3370017201
m=audio 6000 RTP/AVP 2
a=rtpmap:2 G726-32/8000
m=video 6024 RTP/AVP 107
a=rtpmap:107 H263-1998/90000
`, 405, nil, "SIP/2.0/UDP [::ffff:192.0.2.10]:19823;"},
	{"4.10 ipv6-bug-abnf-3-colons", `OPTIONS sip:user@[2001:db8:::192.0.2.1] SIP/2.0
To: sip:user@[2001:db8:::192.0.2.1]
From: sip:user@example.com;tag=810x2
Via: SIP/2.0/UDP lab1.east.example.com;branch=z9hG4bKas3-111
Call-ID: G9559905523997077@hlau_4100
CSeq: 689 OPTIONS
Max-Forwards: 70
Content-Length: 0

`, 200, nil, ""}, // a fault of RFC 3261's grammar, which RFC 5954 mends; to be tolerated
	{"4.10 ipv6-correct-abnf-2-colons", `OPTIONS sip:user@[2001:db8::192.0.2.1] SIP/2.0
To: sip:user@[2001:db8::192.0.2.1]
From: sip:user@example.com;tag=810x2
Via: SIP/2.0/UDP lab1.east.example.com;branch=z9hG4bKas3-111
Call-ID: G9559905523997077@hlau_4100
CSeq: 689 OPTIONS
Max-Forwards: 70
Content-Length: 0

`, 200, nil, ""},
}

func hosts(domain, contact string) func(registrar.Request) string {
	return func(r registrar.Request) string {
		if len(r.Contacts) != 1 {
			return "not one contact"
		}
		return cmp.Diff([]string{domain, contact}, []string{r.Domain, r.Contacts[0].URI})
	}
}

// TestRFC5118 sends each over UDP, and over a stream as well where its length is right.
func TestRFC5118(t *testing.T) {
	for _, c := range rfc5118 {
		text := strings.ReplaceAll(c.text, "\n", "\r\n")
		for _, transport := range []string{"udp", "tcp"} {
			if transport == "tcp" && strings.HasSuffix(c.name, "as printed") {
				continue // the rest of the body is waited for, as it should be
			}
			t.Run(c.name+" "+transport, func(t *testing.T) {
				n := newFakeNet()
				a := newAnswerer(nil)
				open(t, a, func(cfg *Config) { cfg.Net, cfg.Listen = n, n.listen() })
				got := ""
				if transport == "udp" {
					n.packets.in <- packet{text, net.UDPAddrFromAddrPort(netip.MustParseAddrPort("[2001:db8::9:1]:5060"))}
					select {
					case p := <-n.packets.out:
						got = p.data
					case <-time.After(patience):
						t.Fatal("no answer")
					}
				} else {
					r := &reader{c: n.dial()}
					go func() { _, _ = r.c.Write([]byte(text)) }()
					got = r.next(t)
					_ = r.c.Close()
				}
				wantStatus(t, got, c.code)
				if !strings.HasPrefix(field(got, "Via"), c.via) {
					t.Errorf("Via of %q", got)
				}
				if reached := len(a.requests()) == 1; reached != (c.check != nil) {
					t.Fatalf("reached the Handler: %v", reached)
				}
				if c.check != nil {
					if diff := c.check(a.requests()[0]); diff != "" {
						t.Error(diff)
					}
				}
			})
		}
	}
}
