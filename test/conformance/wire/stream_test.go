package wire

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Row 16. One request cut in two at every byte, and one that comes byte by byte.
func TestRow16CutAtEveryByte(t *testing.T) {
	t.Parallel()
	over(t, "tcp", func(t *testing.T, c *client) {
		c.login()
		c.send(c.register(), 200)
		request := c.register("Expires: 600 => Expires: 700") // the same over and over: a retransmission
		for i := 1; i < len(request); i++ {
			c.write(request[:i])
			if i%16 == 0 {
				time.Sleep(time.Millisecond) // so that some of the cuts are two segments for certain
			}
			c.write(request[i:])
			c.want(c.answer(request), 200)
		}
		for i := range len(request) - 1 {
			c.write(request[i : i+1])
		}
		c.write(request[len(request)-1:])
		c.want(c.answer(request), 200)
		if left := contacts(c.query()); len(left) != 1 || left[0].expires <= 600 {
			t.Errorf("left: %v", left)
		}
	})
}

// Row 16. Three requests and a piece of a fourth in one segment.
func TestRow16SeveralInOneSegment(t *testing.T) {
	t.Parallel()
	over(t, "tcp", func(t *testing.T, c *client) {
		c.login()
		var requests []string
		for _, contact := range []string{"a", "b", "c", "d"} {
			requests = append(requests, c.register("sip:a@ => sip:"+contact+"@"))
		}
		c.write(strings.Join(requests[:3], "") + requests[3][:100])
		for n := range 3 {
			c.want(c.answer(requests[n]), 200)
		}
		c.write(requests[3][100:])
		if got := uris(c.answer(requests[3])); strings.Count(got, "@192.0.2.1") != 4 {
			t.Errorf("bound: %s", got)
		}
	})
}

// Rows 17 and 18. A stream that can't be followed is answered if that is possible, closed, and binds nothing.
func TestRow17And18BrokenStreams(t *testing.T) {
	t.Parallel()
	const none = "Content-Length: 0\r\n\r\n"
	for _, broken := range []struct {
		name, instead string // of the end of the request
		code          int    // 0: closed without an answer
	}{
		{"17 a header without end", "X: " + strings.Repeat("x", 70000), 413},
		{"17 a header of many lines", strings.Repeat("X: y\r\n", 20000), 413},
		{"17 Content-Length 2^32-1", "Content-Length: 4294967295\r\n\r\n", 400},
		{"17 Content-Length of a mebibyte", "Content-Length: 1048576\r\n\r\n", 413},
		{"18 no Content-Length", "\r\n", 400},
		{"18 Content-Length abc", "Content-Length: abc\r\n\r\n", 400},
		{"18 Content-Length -1", "Content-Length: -1\r\n\r\n", 400},
		{"18 two Content-Lengths", "Content-Length: 0\r\nl: 7\r\n\r\n", 400},
	} {
		t.Run(broken.name, func(t *testing.T) {
			over(t, "tcp", func(t *testing.T, c *client) {
				c.login()
				request := strings.TrimSuffix(c.register(), none) + broken.instead
				go func() { _, _ = c.conn.Write([]byte(request)) }() // it may be closed before all is written
				a, err := c.read(patience)
				if err == nil {
					c.want(a, broken.code)
					a, err = c.read(patience)
				}
				if !errors.Is(err, errClosed) {
					t.Fatalf("not closed: %q, %v", a, err)
				}
				again := c.as("tcp", c.conn.RemoteAddr().String())
				again.nc++
				c.has(again.query(), "- Contact:")
			})
		})
	}
}

// Row 19. CRLF CRLF is answered by a CRLF: alone, split over two segments, and before a request.
func TestRow19KeepAlive(t *testing.T) {
	t.Parallel()
	over(t, "tcp", func(t *testing.T, c *client) {
		c.login()
		for _, pieces := range [][]string{{"\r\n\r\n"}, {"\r\n", "\r\n"}, {"\r\n\r", "\n"}} {
			for _, p := range pieces {
				c.write(p)
				time.Sleep(5 * time.Millisecond)
			}
			if m, err := c.read(patience); m != "\r\n" || err != nil {
				t.Fatalf("%q: %q, %v", pieces, m, err)
			}
		}
		one, two := c.register(), c.register("sip:a@ => sip:b@")
		c.write(one + "\r\n\r\n" + two)
		pongs, answers := 0, 0
		for range 3 {
			m, err := c.read(patience)
			if err != nil {
				t.Fatal(err)
			}
			if m == "\r\n" {
				pongs++
			} else if status(m) == 200 {
				answers++
			}
		}
		if pongs != 1 || answers != 2 {
			t.Errorf("%d pongs, %d answers", pongs, answers)
		}
	})
}
