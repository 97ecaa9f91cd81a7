package simnet

import (
	"io"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// conn is one end of a connection; it implements net.Conn. What it sends waits in
// out until it has arrived in the peer's in.
type conn struct {
	host          *Host
	local, remote netip.AddrPort
	peer          *conn
	changed       chan struct{} // of size 1: something to read
	drained       chan struct{} // of size 1: room to write
	done          chan struct{} // closes when this end is closed or reset

	// Guarded by net.mu.
	in      []byte
	ended   bool  // the peer will send no more
	failed  error // why this end is dead; net.ErrClosed after Close
	reset   bool  // Close sends a reset
	out     []segment
	unread  int // bytes sent that the peer has not read
	number  uint64
	pumping bool
	rd, wr  deadline
}

type segmentKind int

const (
	payload segmentKind = iota
	fin
	rst
)

// segment is on its way.
type segment struct {
	kind  segmentKind
	data  []byte
	due   time.Time
	since time.Time // first sent
	tries int
}

// A segment that doesn't get through is sent again after resendFirst, then after twice
// that, up to resendMax; when giveUp has passed the connection is dead.
const (
	resendFirst = 200 * time.Millisecond
	resendMax   = 5 * time.Second
	giveUp      = time.Minute
)

func newConnsLocked(client, server *Host, from, to netip.AddrPort) (c, s *conn) {
	c = &conn{host: client, local: from, remote: to}
	s = &conn{host: server, local: to, remote: from}
	c.peer, s.peer = s, c
	for _, e := range [...]*conn{c, s} {
		e.changed, e.drained, e.done = make(chan struct{}, 1), make(chan struct{}, 1), make(chan struct{})
		e.rd.set(time.Time{})
		e.wr.set(time.Time{})
		e.host.conns[e] = true
	}
	return c, s
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for {
		n, expired, err := c.take(b)
		if err == io.EOF {
			return 0, io.EOF
		}
		if err != nil {
			return 0, opError("read", "tcp", c.remote, err)
		}
		if n > 0 || len(b) == 0 {
			return n, nil
		}
		select {
		case <-c.changed:
		case <-c.done:
		case <-expired:
		}
	}
}

func (c *conn) take(b []byte) (n int, expired <-chan struct{}, err error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	switch {
	case c.failed != nil:
		return 0, nil, c.failed
	case isClosed(c.rd.expired):
		return 0, nil, os.ErrDeadlineExceeded
	case len(c.in) > 0:
		n = copy(b, c.in)
		if c.in = c.in[n:]; len(c.in) == 0 {
			c.in = nil
		}
		c.peer.unread -= n
		notify(c.peer.drained)
		return n, nil, nil
	case c.ended:
		return 0, nil, io.EOF
	}
	return 0, c.rd.expired, nil
}

// Write implements net.Conn. It waits for room in the window.
func (c *conn) Write(b []byte) (written int, err error) {
	for written < len(b) || len(b) == 0 {
		n, expired, err := c.send(b[written:])
		if err != nil {
			return written, opError("write", "tcp", c.remote, err)
		}
		if written += n; len(b) == 0 {
			break
		}
		if n > 0 {
			continue
		}
		select {
		case <-c.drained:
		case <-c.done:
		case <-expired:
		}
	}
	return written, nil
}

func (c *conn) send(b []byte) (n int, expired <-chan struct{}, err error) {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	switch {
	case c.failed != nil:
		return 0, nil, c.failed
	case isClosed(c.wr.expired):
		return 0, nil, os.ErrDeadlineExceeded
	}
	n = min(len(b), c.host.net.opts.WindowMax-c.unread)
	if n > 0 {
		c.unread += n
		c.queueLocked(segment{kind: payload, data: append([]byte(nil), b[:n]...)})
	}
	return n, c.wr.expired, nil
}

// queueLocked sends a segment on its way behind those before it.
func (c *conn) queueLocked(s segment) {
	now := time.Now()
	c.number++
	luck := draw(c.host.net.opts.Seed, c.local, c.remote, c.number)
	link := c.host.net.linkLocked(c.host, c.peer.host)
	s.since = now
	s.due = now.Add(c.host.net.thawLocked(c.host) + link.delay(luck))
	for luck = luck.next(); luck.hits(link.Loss) && s.tries < 6; luck = luck.next() {
		s.due = s.due.Add(resend(s.tries))
		s.tries++
	}
	if n := len(c.out); n > 0 && !s.due.After(c.out[n-1].due) {
		s.due = c.out[n-1].due.Add(1)
	}
	c.out = append(c.out, s)
	if !c.pumping {
		c.pumping = true
		time.AfterFunc(time.Until(s.due), c.pump)
	}
}

func resend(tries int) time.Duration { return min(resendFirst<<tries, resendMax) }

// pump delivers what is due, and sees to the rest again later.
func (c *conn) pump() {
	n := c.host.net
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for len(c.out) > 0 {
		s := &c.out[0]
		if thaw := n.thawLocked(c.peer.host); thaw > 0 && !s.due.After(now) {
			s.due = now.Add(thaw)
		}
		if early := s.due.Sub(now); early > 0 {
			time.AfterFunc(early, c.pump)
			return
		}
		if n.linkLocked(c.host, c.peer.host).Cut || n.linkLocked(c.peer.host, c.host).Cut {
			if now.Sub(s.since) > giveUp || s.kind == rst {
				c.out = nil
				c.endLocked(syscall.ETIMEDOUT)
				break
			}
			s.due = now.Add(resend(s.tries))
			s.tries = min(s.tries+1, 10)
			continue
		}
		c.peer.arriveLocked(*s)
		if len(c.out) > 0 {
			c.out = c.out[1:]
		}
	}
	c.pumping = false
}

// arriveLocked takes a segment in at this end.
func (c *conn) arriveLocked(s segment) {
	switch {
	case c.failed != nil:
		if s.kind == payload { // nobody reads it any more
			c.queueLocked(segment{kind: rst})
		}
	case s.kind == rst:
		c.endLocked(syscall.ECONNRESET)
	case s.kind == fin:
		c.ended = true
		notify(c.changed)
	default:
		c.in = append(c.in, s.data...)
		notify(c.changed)
	}
}

// endLocked makes this end dead. What it has sent is still on its way.
func (c *conn) endLocked(why error) {
	if c.failed != nil {
		return
	}
	c.failed = why
	c.in = nil
	c.rd.stop()
	c.wr.stop()
	close(c.done)
	delete(c.host.conns, c)
}

// resetLocked ends the connection with a reset.
func (c *conn) resetLocked(why error) {
	if c.failed == nil {
		c.queueLocked(segment{kind: rst})
		c.endLocked(why)
	}
}

// Close implements net.Conn. As a kernel does, it resets when there is something
// unread, or after SetLinger(0), and otherwise says that nothing more will come.
func (c *conn) Close() error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	switch {
	case c.failed != nil:
		was := c.failed
		c.failed = net.ErrClosed
		if was == net.ErrClosed {
			return opError("close", "tcp", c.remote, net.ErrClosed)
		}
	case c.reset || len(c.in) > 0:
		c.resetLocked(net.ErrClosed)
	default:
		c.queueLocked(segment{kind: fin})
		c.endLocked(net.ErrClosed)
	}
	return nil
}

// Broken reports whether one of both ends is closed, whether or not the other one knows.
// It is for who looks at the network from outside.
func (c *conn) Broken() bool {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	return c.failed != nil || c.peer.failed != nil
}

// SetLinger is like net.TCPConn's: with 0, Close resets the connection.
func (c *conn) SetLinger(sec int) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	c.reset = sec == 0
	return nil
}

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return net.TCPAddrFromAddrPort(c.local) }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.remote) }

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.setDeadlines(t, &c.rd, &c.wr) }

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, &c.rd) }

// SetWriteDeadline implements net.Conn.
func (c *conn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, &c.wr) }

func (c *conn) setDeadlines(t time.Time, ds ...*deadline) error {
	c.host.net.mu.Lock()
	defer c.host.net.mu.Unlock()
	if c.failed != nil {
		return opError("set", "tcp", c.remote, c.failed)
	}
	for _, d := range ds {
		d.set(t)
	}
	notify(c.changed) // who waits looks at the new ones
	notify(c.drained)
	return nil
}
