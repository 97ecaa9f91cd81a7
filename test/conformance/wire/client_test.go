package wire

import (
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"rollcall/test/harness"
)

// patience bounds a test that fails; it measures nothing.
const patience = 20 * time.Second

// client is one user at one socket, who says exactly what a test wants.
type client struct {
	t         *testing.T
	user      harness.User
	transport string
	conn      net.Conn
	callID    string
	cseq      int
	nonce     string // of the newest challenge, "" before the first
	realm     string
	nc        int
	unread    string
	method    string // that the digest is for
	heard     string // CSeq of the newest NOTIFY
	elsewhere string // another Front End's address, where a test needs one
}

func newClient(t *testing.T, transport, addr string, user harness.User) *client {
	t.Helper()
	conn, err := net.Dial(transport, addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &client{t: t, user: user, transport: transport, conn: conn, method: "REGISTER", callID: fmt.Sprintf("%s-%016x", user.Name, rand.Uint64())}
}

// as is another connection of the same user with the same Call-ID, order and nonce.
func (c *client) as(transport, addr string) *client {
	c.t.Helper()
	d := newClient(c.t, transport, addr, c.user)
	d.callID, d.cseq, d.nonce, d.realm, d.nc = c.callID, c.cseq, c.nonce, c.realm, c.nc
	return d
}

// register is a REGISTER of the next CSeq, with credentials once there was a
// challenge. Each edit is "old => new"; an empty new takes the line out, and
// "+ line" adds one. The CSeq counts on from whatever the edits made of it.
func (c *client) register(edits ...string) string {
	c.t.Helper()
	c.cseq++
	lines := []string{
		"REGISTER sip:example.test SIP/2.0",
		fmt.Sprintf("Via: SIP/2.0/%s %s;branch=z9hG4bK%016x;rport", strings.ToUpper(c.transport), c.conn.LocalAddr(), rand.Uint64()),
		"Max-Forwards: 70",
		"From: <sip:" + c.user.Name + "@example.test>;tag=4711",
		"To: <sip:" + c.user.Name + "@example.test>",
		"Call-ID: " + c.callID,
		fmt.Sprintf("CSeq: %d REGISTER", c.cseq),
		"Contact: <sip:a@192.0.2.1>",
		"Expires: 600",
		"User-Agent: rollcall-conformance",
	}
	if c.nonce != "" {
		lines = append(lines, "Authorization: "+c.credentials(c.user.Name, c.user.Password))
	}
	text := strings.Join(append(lines, "Content-Length: 0", "", ""), "\r\n")
	for _, e := range edits {
		if added, ok := strings.CutPrefix(e, "+ "); ok {
			text = strings.Replace(text, "Content-Length:", added+"\r\nContent-Length:", 1)
			continue
		}
		from, to, ok := strings.Cut(e, " => ")
		if !ok || !strings.Contains(text, from) {
			c.t.Fatalf("edit %q does not apply to %q", e, text)
		}
		if to == "" {
			from += "\r\n"
		}
		text = strings.Replace(text, from, to, 1)
	}
	return text
}

// credentials answer the newest challenge (RFC 7616, MD5, qop=auth).
func (c *client) credentials(user, password string) string {
	c.nc++
	hash := func(parts ...string) string { return fmt.Sprintf("%x", md5.Sum([]byte(strings.Join(parts, ":")))) }
	nc := fmt.Sprintf("%08x", c.nc)
	response := hash(hash(user, c.realm, password), c.nonce, nc, "0a4f113b", "auth", hash(c.method, "sip:example.test"))
	return fmt.Sprintf(`Digest username="%s", realm="%s", nonce="%s", uri="sip:example.test", response="%s", algorithm=MD5, qop=auth, nc=%s, cnonce="0a4f113b"`,
		user, c.realm, c.nonce, response, nc)
}

func (c *client) write(text string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// errClosed: the other side ended the connection.
var errClosed = errors.New("connection closed")

// read is the next message, or "\r\n" for a pong.
func (c *client) read(wait time.Duration) (string, error) {
	deadline := time.Now().Add(wait)
	_ = c.conn.SetReadDeadline(deadline)
	for {
		if strings.HasPrefix(c.unread, "\r\n") {
			c.unread = c.unread[2:]
			return "\r\n", nil
		}
		if i := strings.Index(c.unread, "\r\n\r\n"); i >= 0 {
			m := c.unread[:i+4]
			c.unread = c.unread[i+4:]
			return m, nil
		}
		buf := make([]byte, 65536)
		n, err := c.conn.Read(buf)
		c.unread += string(buf[:n])
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return "", err
		case err == io.EOF || err != nil && c.transport == "tcp":
			return "", errClosed
		}
	}
}

// answer is the final answer to the request that was just written; over UDP the request is repeated until then.
func (c *client) answer(request string) string {
	c.t.Helper()
	branch := branchOf(request)
	for start := time.Now(); time.Since(start) < patience; {
		wait := patience
		if c.transport == "udp" {
			wait = time.Second
		}
		m, err := c.read(wait)
		if errors.Is(err, os.ErrDeadlineExceeded) && c.transport == "udp" {
			c.write(request)
			continue
		}
		if err != nil {
			c.t.Fatalf("no answer to %q: %v", request, err)
		}
		if branchOf(m) == branch && status(m) >= 200 {
			return m
		}
	}
	c.t.Fatalf("no answer to %q", request)
	return ""
}

// send sends one request as it is and wants this status; the answer is returned.
func (c *client) send(request string, want int) string {
	c.t.Helper()
	c.write(request)
	a := c.answer(request)
	c.learn(a)
	c.want(a, want)
	return a
}

// do sends a REGISTER, answers its challenge if there is one, and wants this status in the end.
func (c *client) do(want int, edits ...string) string {
	c.t.Helper()
	for round := range 3 {
		request := c.register(edits...)
		c.write(request)
		a := c.answer(request)
		c.learn(a)
		if status(a) != 401 || round == 2 {
			c.want(a, want)
			return a
		}
	}
	return ""
}

// query is the bindings as a REGISTER without Contact tells them.
func (c *client) query() string {
	c.t.Helper()
	return c.do(200, "Contact: <sip:a@192.0.2.1> => ", "Expires: 600 => ")
}

// login has a challenge, and nothing bound yet.
func (c *client) login() *client {
	c.t.Helper()
	c.send(c.register(), 401)
	return c
}

// learn takes the challenge out of a 401.
func (c *client) learn(a string) {
	if status(a) != 401 {
		return
	}
	challenge := field(a, "WWW-Authenticate")
	c.nonce, c.realm, c.nc = parameter(challenge, "nonce"), parameter(challenge, "realm"), 0
}

func (c *client) want(a string, code int) {
	c.t.Helper()
	if status(a) != code {
		c.t.Fatalf("want %d, got %q", code, a)
	}
}

// has wants lines, or parts of them, in an answer; "- part" must not be there.
func (c *client) has(a string, parts ...string) {
	c.t.Helper()
	for _, p := range parts {
		not, lacking := strings.CutPrefix(p, "- ")
		if lacking == strings.Contains(a, not) {
			c.t.Errorf("want %s in %q", p, a)
		}
	}
}

// lasts wants a contact in an answer with these seconds left, or a few less on a slow machine.
func (c *client) lasts(a, contact string, seconds int) {
	c.t.Helper()
	for _, l := range contacts(a) {
		if l.uri == contact {
			if l.expires > seconds || l.expires < seconds-30 {
				c.t.Errorf("%s has %d s left, want %d", contact, l.expires, seconds)
			}
			return
		}
	}
	c.t.Errorf("%s is not in %q", contact, a)
}
