package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"rollcall/test/harness"
)

// watcher is the same user at another Front End, over UDP, who only asks.
func (c *client) watcher() *client {
	c.t.Helper()
	w := newClient(c.t, "udp", pool.other["udp"], c.user)
	w.query()
	return w
}

// until asks until the user's contacts are these, and returns how long that took.
func (c *client) until(want string) time.Duration {
	c.t.Helper()
	start := time.Now()
	for {
		got := uris(c.query())
		if got == want {
			return time.Since(start)
		}
		if time.Since(start) > patience {
			c.t.Fatalf("bound: %s, want %s", got, want)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// Rows 31 and 40. A binding goes with its connection, everywhere; the device that comes back from
// another port, again and again, has one binding and is never refused.
func TestRow31And40ClosedConnection(t *testing.T) {
	t.Parallel()
	over(t, "tcp", func(t *testing.T, c *client) {
		w := c.watcher()
		var worst time.Duration
		defer func() { t.Logf("known at the other Front End after %s at most", worst) }()
		for n := range 12 { // more often than the limit of contacts
			contact := fmt.Sprintf("sip:a@192.0.2.1:%d", 2000+n)
			c.do(200, "sip:a@192.0.2.1 => "+contact)
			_ = c.conn.Close()
			worst = max(worst, w.until(""))
			c = c.as("tcp", c.conn.RemoteAddr().String())
			c.has(c.query(), "- Contact:") // a later request says so, too
		}
	})
}

// Row 41. A contact that was registered through one Front End is replaced through another; all see the same.
func TestRow41ReplacedElsewhere(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		const instance = `;+sip.instance="<urn:uuid:1>";reg-id=1`
		c.do(200, first+" => "+first+instance)
		d := newClient(t, c.transport, pool.other[c.transport], c.user)
		d.do(200, first+" => Contact: <sip:moved@192.0.2.9>"+instance)
		for _, at := range []*client{c, d, c.watcher()} {
			if got := uris(at.query()); got != "sip:moved@192.0.2.9" {
				t.Errorf("bound: %s", got)
			}
		}
	})
}

// Row 42. Two REGISTERs of one user are on their way at once, at the same Front End and at two: both are
// answered, and what is left is one of the two orders.
func TestRow42AtOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.login()
		for _, addr := range []string{c.conn.RemoteAddr().String(), pool.other[c.transport]} {
			d := newClient(t, c.transport, addr, c.user).login()
			for range 10 {
				// c adds a contact; d removes all that there are.
				add, clear := c.register(), d.register(first+" => Contact: *", "Expires: 600 => Expires: 0")
				c.write(add)
				d.write(clear)
				added, cleared := c.answer(add), d.answer(clear)
				c.want(added, 200)
				d.want(cleared, 200)
				got := uris(c.query())
				if got != "" && got != "sip:a@192.0.2.1" || uris(added) != "sip:a@192.0.2.1" || uris(cleared) != "" {
					t.Fatalf("added: %s, cleared: %s, left: %s", uris(added), uris(cleared), got)
				}
				if seen := uris(d.query()); seen != got {
					t.Fatalf("one sees %s, the other %s", got, seen)
				}
			}
		}
	})
}

// Row 47. A thousand clients with wrong passwords go on for ever: the processes do not grow, and others are served.
func TestRow47WrongPasswords(t *testing.T) {
	t.Parallel()
	good := newClient(t, "udp", pool.at["udp"], pool.users.take(t, true))
	users := harness.Users(1000)
	for i := range users {
		users[i].Password = "wrong"
	}
	phones, err := harness.NewPhones("wrong", users)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(phones.Close)
	rounds := func(n int) {
		for range n {
			if err := phones.Each(32, func(p *harness.Phone) error {
				a, err := p.Register(t.Context(), pool.SIP, 600)
				if err == nil && a.Status != 401 {
					err = fmt.Errorf("answered %d", a.Status)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			good.do(200)
		}
	}
	memory := func() int64 {
		pids, err := harness.Tree(pool.Up.Pid())
		if err != nil {
			t.Fatal(err)
		}
		n, err := harness.Memory(pids...)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	rounds(2) // the heap has its size
	before := memory()
	rounds(4) // 12,000 requests, 4,000 wrong answers
	if grown := memory() - before; grown > 48<<20 {
		t.Errorf("grown by %d bytes, from %d", grown, before)
	}
}

// A nonce that one Front End gave is good at every other one, in one round trip; its count goes on.
func TestNonceAtEveryFrontEnd(t *testing.T) {
	everywhere(t, func(t *testing.T, c *client) {
		c.login()
		c.send(c.register(), 200)
		d := c.as(c.transport, pool.other[c.transport])
		d.send(d.register(), 200)
	})
}

// Over UDP a response, an ACK and rubbish get no answer, and the next request does.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	over(t, "udp", func(t *testing.T, c *client) {
		c.login()
		for _, rubbish := range []string{
			"\x00\x01\x02", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 60000),
			"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\nContent-Length: 0\r\n\r\n",
			c.register("REGISTER sip => ACK sip", fmt.Sprintf("%d REGISTER => %d ACK", c.cseq+1, c.cseq+1)),
		} {
			c.write(rubbish)
			if m, err := c.read(200 * time.Millisecond); err == nil || errors.Is(err, errClosed) {
				t.Errorf("%.40q was answered %q", rubbish, m)
			}
		}
		c.do(200)
	})
}
