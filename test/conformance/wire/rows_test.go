package wire

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// The tests of this file are rows of the table of REGISTER situations (see docs/CONFORMANCE.md) that SIPp
// cannot send: it needs a Call-ID, a CSeq and a branch to know an answer by, and can't write brackets.

// Row 9 and its kind: what is missing, double or malformed in a header is a 400 that changes
// nothing, and the socket goes on being served.
func TestRow09Headers(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.do(200)
		user, next := c.user.Name, func(edits ...string) string { return c.register(append(edits, noExpires)...) }
		cseq := func(to string) string { return fmt.Sprintf("CSeq: %d REGISTER => %s", c.cseq+1, to) }
		for _, edits := range [][]string{
			{"To: <sip:" + user + "@example.test> => "},
			{"From: <sip:" + user + "@example.test>;tag=4711 => "},
			{"Call-ID: " + c.callID + " => "},
			{cseq("")},
			{"+ To: <sip:u00000@example.test>"},
			{"+ t: <sip:" + user + "@example.test>"},
			{"+ From: <sip:u00000@example.test>;tag=1"},
			{"+ i: another"},
			{"+ CSeq: 900 REGISTER"},
			{cseq("CSeq: 900 INVITE")},
			{cseq("CSeq: 900 register")},
			{cseq("CSeq: 2147483648 REGISTER")},
			{cseq("CSeq: 18446744073709551617 REGISTER")},
			{cseq("CSeq: x REGISTER")},
			{cseq("CSeq: -1 REGISTER")},
			{cseq("CSeq: 900")},
			{cseq("CSeq:")},
			{"Call-ID: " + c.callID + " => Call-ID:"},
			{"+ Expires: 100\r\nExpires: 0"},
			{"+ not a header field"},
		} {
			edits := append(edits, "sip:a@192.0.2.1 => sip:b@192.0.2.2")
			request := next(edits...)
			c.write(request)
			if a := c.answer(request); status(a) != 400 {
				t.Errorf("%q: %q", edits[0], a)
			}
			c.nc-- // it was not looked at
			c.cseq--
		}
		a := c.query()
		if got := uris(a); got != "sip:a@192.0.2.1" {
			t.Errorf("bound: %s", got)
		}
		c.lasts(a, "sip:a@192.0.2.1", 600)
	})
}

// Row 13. IPv6 references in Via and Contact; received with brackets and without.
func TestRow13IPv6(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		local := c.conn.LocalAddr().String()
		c.has(c.do(200, "sip:a@192.0.2.1 => sip:a@[2001:db8::1]:5060"), "<sip:a@[2001:db8::1]:5060>;expires=")
		for _, via := range []string{"[2001:db8::9:1]:5060", local + ";received=[2001:db8::9:255]", local + ";received=2001:db8::9:255"} {
			c.lasts(c.do(200, local+" => "+via), "sip:a@192.0.2.1", 600)
		}
		c.do(400, "sip:a@192.0.2.1 => sip:a@2001:db8::2")
	})
}

// Row 22. The very same request again gets the same answer, and is one change.
func TestRow22Retransmission(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.login()
		for _, edits := range [][]string{nil, {"Expires: 600 => Expires: 0"}, {"Expires: 600 => Expires: 10"}} {
			request := c.register(edits...)
			c.write(request)
			one := c.answer(request)
			c.write(request)
			two := c.answer(request)
			if status(one) == 401 || status(one) != status(two) || uris(one) != uris(two) {
				t.Errorf("first %q, then %q", one, two)
			}
		}
		c.has(c.query(), "- Contact:")
	})
}

// Row 36. A nonce whose count was used already is answered with stale=true and a nonce
// that works, over and over: the client is not banned. (That a nonce grown old is told so as well is shown without waiting for it.)
func TestRow36Stale(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.login()
		c.send(c.register(), 200)
		for range 5 {
			c.nc = 0 // the client starts again with nc=00000001
			a := c.send(c.register(), 401)
			if parameter(field(a, "WWW-Authenticate"), "stale") != "true" {
				t.Fatalf("not stale: %q", a)
			}
			c.send(c.register(), 200)
		}
	})
}

// Row 37. Two users challenged at once have different nonces, each with its own count.
func TestRow37Nonces(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		d := newClient(t, c.transport, c.conn.RemoteAddr().String(), pool.users.take(t, false))
		c.login()
		d.login()
		if c.nonce == d.nonce {
			t.Fatal("the same nonce")
		}
		for range 3 {
			c.send(c.register(), 200)
			d.send(d.register(), 200)
		}
	})
}

// Row 38. Without rport an answer over UDP goes to the Via's port; with it, to where the request came from.
func TestRow38AnswerPort(t *testing.T) {
	t.Parallel()
	over(t, "udp", func(t *testing.T, c *client) {
		listening, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer listening.Close()
		there := &client{t: t, transport: "udp", conn: listening}
		local := c.conn.LocalAddr().String()
		for _, want := range []int{401, 200} {
			request := c.register(local+" => "+listening.LocalAddr().String(), ";rport => ;x")
			c.write(request)
			a, err := there.read(patience)
			if err != nil || branchOf(a) != branchOf(request) {
				t.Fatalf("at the Via's port: %q, %v", a, err)
			}
			c.learn(a)
			c.want(a, want)
		}
		a := c.send(c.register(local+" => "+listening.LocalAddr().String()), 200)
		_, port, _ := net.SplitHostPort(local)
		c.has(field(a, "Via"), ";rport="+port)
	})
}

// RFC 3261 §8.2.6.2: the answer repeats From, Call-ID, CSeq and the Via values in their order, and gives To a tag.
func TestAnswerFields(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		const below = "SIP/2.0/TCP 192.0.2.77:5062;branch=z9hG4bKbelow;x=y"
		for _, want := range []int{401, 200, 423, 200} {
			edits := []string{"Max-Forwards: => Via: " + below + "\r\nMax-Forwards:"}
			if want == 423 {
				edits = append(edits, "Expires: 600 => Expires: 1")
			}
			request := c.register(edits...)
			a := c.send(request, want)
			for _, name := range []string{"From", "Call-ID", "CSeq"} {
				if got := field(a, name); got != field(request, name) {
					t.Errorf("%s: %q, asked with %q", name, got, field(request, name))
				}
			}
			if to, tag, ok := strings.Cut(field(a, "To"), ";tag="); !ok || to != field(request, "To") || tag == "" {
				t.Errorf("To: %q, asked with %q", field(a, "To"), field(request, "To"))
			}
			vias := fields(a, "Via")
			if all := strings.Join(vias, ", "); !strings.HasSuffix(all, ", "+below) || branchOf(vias[0]) != branchOf(request) {
				t.Errorf("Via: %q", vias)
			}
			if field(a, "Content-Length") != "0" {
				t.Errorf("%q", a)
			}
		}
	})
}
