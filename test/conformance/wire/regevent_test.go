package wire

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// subscribe is a SUBSCRIBE for the client's own registrations, of the next CSeq.
func (c *client) subscribe() string {
	c.t.Helper()
	c.method = "SUBSCRIBE"
	n := c.cseq + 1
	return c.register("REGISTER sip:example.test => SUBSCRIBE sip:"+c.user.Name+"@example.test",
		fmt.Sprintf("CSeq: %d REGISTER => CSeq: %d SUBSCRIBE", n, n),
		"<sip:a@192.0.2.1> => <sip:"+c.user.Name+"@"+c.conn.LocalAddr().String()+";transport="+c.transport+">",
		"+ Event: reg", "+ Accept: application/reginfo+xml")
}

// notified is the next NOTIFY, with its body, after it was answered.
func (c *client) notified() (head, body string) {
	c.t.Helper()
	for start := time.Now(); time.Since(start) < patience; {
		m, err := c.read(patience)
		if err != nil {
			c.t.Fatalf("no NOTIFY after %q: %v", c.heard, err)
		}
		if !strings.HasPrefix(m, "NOTIFY ") {
			continue // an answer, repeated
		}
		n, _ := strconv.Atoi(field(m, "Content-Length"))
		for len(c.unread) < n {
			buf := make([]byte, 65536)
			k, err := c.conn.Read(buf)
			if err != nil {
				c.t.Fatal(err)
			}
			c.unread += string(buf[:k])
		}
		body, c.unread = c.unread[:n], c.unread[n:]
		answer := "SIP/2.0 200 OK\r\n"
		for _, name := range []string{"Via", "From", "To", "Call-ID", "CSeq"} {
			for _, v := range fields(m, name) {
				answer += name + ": " + v + "\r\n"
			}
		}
		c.write(answer + "Content-Length: 0\r\n\r\n")
		if again := field(m, "CSeq") == c.heard; !again {
			c.heard = field(m, "CSeq")
			return m, body
		}
	}
	c.t.Fatal("no NOTIFY")
	return "", ""
}

// RFC 3680. A subscription to one's registrations is challenged like a REGISTER, then tells the full state, and each
// change under the next version. The change is made by another client at another Front End.
func TestRegEvent(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.send(c.subscribe(), 401)
		c.has(c.send(c.subscribe(), 200), "Expires: 600")
		phone := newClient(t, c.transport, pool.other[c.transport], c.user)
		for version, want := range []struct {
			change func()
			parts  []string
		}{
			{func() {}, []string{`state="full"`, `state="init"`}},
			{func() { phone.do(200, first+" => "+first+";q=0.5") }, []string{`state="partial"`, `state="active"`, `event="registered"`, `q="0.5"`, "<uri>sip:a@192.0.2.1</uri>"}},
			{func() { phone.do(200, "Expires: 600 => Expires: 700") }, []string{`event="refreshed"`}},
			{func() { phone.do(200, "Expires: 600 => Expires: 100") }, []string{`event="shortened"`}},
			{func() { phone.do(200, "Expires: 600 => Expires: 0") }, []string{`state="terminated"`, `event="unregistered"`}},
		} {
			want.change()
			head, body := c.notified()
			c.has(head, "Event: reg", "Subscription-State: active", "Content-Type: application/reginfo+xml")
			c.has(body, append(want.parts, fmt.Sprintf(`version="%d"`, version))...)
		}
	})
}
