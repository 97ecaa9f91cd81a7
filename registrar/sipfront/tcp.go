package sipfront

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"rollcall/registrar"
)

// accept takes connections until the listener is closed.
func (s *Server) accept(l net.Listener) {
	local := l.Addr().String()
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil:
			if err == nil {
				_ = nc.Close()
			}
			return
		case err != nil: // most likely out of files: it is no use to try at once
			s.count.acceptErrs.Add(1)
			if s.logs.Allow() {
				s.cfg.Log.Error("can't accept a connection", "local", local, "error", err)
			}
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-s.ctx.Done():
			}
			continue
		}
		pause = 0
		c := newConn(s, nc, local)
		if !s.streams.add(c, s.cfg.MaxConns) {
			s.count.drop(DropConn)
			c.close(true)
			continue
		}
		s.wg.Go(c.run)
	}
}

// conn is one connection. It owns no buffer while it is idle.
type conn struct {
	s    *Server
	nc   net.Conn
	raw  syscall.RawConn // nil when nc can't wait without a buffer
	flow registrar.Flow

	// Owned by run.
	framer framer
	frames int // complete messages and pings so far
	broken bool

	mu       sync.Mutex // guards the following
	inFlight int
	// busy has the AORs that the Handler has a request of, each with those that came after it.
	busy   map[registrar.AOR][]*Inbound
	ctx    context.Context // of the requests in flight; nil when there are none
	cancel context.CancelFunc
	room   chan struct{} // a request is done
}

func newConn(s *Server, nc net.Conn, local string) *conn {
	if addr := nc.LocalAddr().String(); addr != local { // one string for all connections of a listener
		local = addr
	}
	c := &conn{
		s: s, nc: nc, raw: rawConn(nc),
		framer: framer{maxHeader: s.cfg.MaxHeader, maxBody: s.cfg.MaxBody},
	}
	c.flow = registrar.Flow{
		FrontEnd: s.cfg.FrontEnd, Boot: s.cfg.Boot, Transport: "tcp", Local: local, Remote: nc.RemoteAddr().String(),
	}
	return c
}

// run reads until the connection is gone, either way.
func (c *conn) run() {
	defer c.gone()
	c.s.h.FlowOpened(c.flow)
	c.expect(c.s.cfg.FirstMessage)
	for first := true; !c.broken; first = false {
		buf, n, err := c.read()
		if n > 0 {
			was, before := c.framer.partial(), c.frames
			c.chunk((*buf)[:n])
			switch is := c.framer.partial(); {
			case is && (!was || c.frames > before):
				c.expect(c.s.cfg.HalfMessage)
			case !is && (was || first):
				c.expect(0)
			}
		}
		if buf != nil {
			c.s.chunks.Put(buf)
		}
		if err != nil {
			return
		}
		if c.waitRoom() && c.framer.partial() {
			c.expect(c.s.cfg.HalfMessage) // the time that we didn't read is not the client's
		}
	}
	c.finish()
}

// expect bounds the wait for what comes next; 0 waits for ever.
func (c *conn) expect(d time.Duration) {
	var deadline time.Time
	if d > 0 {
		deadline = time.Now().Add(d)
	}
	_ = c.nc.SetReadDeadline(deadline) // fails only when closed, as the next read then does
}

// read waits for bytes and returns the buffer they are in, from the server's pool.
func (c *conn) read() (buf *[]byte, n int, err error) {
	if c.raw != nil {
		return c.readRaw()
	}
	buf = c.s.chunks.Get().(*[]byte)
	n, err = c.nc.Read(*buf)
	return buf, n, err
}

// chunk handles what was read.
func (c *conn) chunk(data []byte) {
	defer c.s.recovered(func() { c.broken = true })
	c.framer.feed(data, c.frame)
}

func (c *conn) frame(f frame) {
	c.frames++
	p := peer{conn: c}
	switch f.kind {
	case framePing:
		c.s.count.pings.Add(1)
		c.write([]byte("\r\n"))
	case frameMessage:
		// The buffer is used again, and the Handler may keep the request for long.
		raw := append([]byte(nil), f.raw...)
		f.msg.origin = c.flow
		f.msg.takeBody(raw[f.head:])
		c.s.message(p, f.msg, raw)
	case frameBroken:
		c.broken = true
		if f.msg == nil || f.msg.status > 0 || f.msg.method == "ACK" {
			c.s.count.drop(DropNotSIP)
			return
		}
		c.s.count.requests.Add(1)
		f.msg.origin = c.flow
		c.s.refuse(p, f.msg, f.why)
	}
}

// registerStream hands a REGISTER to the Handler, behind those for the same AOR
// that came before it. Others don't wait for it: behind one connection may be a
// proxy with many users, one of which is held.
func (s *Server) registerStream(p peer, m *message, raw []byte) {
	in := s.admit(p, m, raw)
	if in == nil {
		return
	}
	c := p.conn
	c.mu.Lock()
	if c.busy == nil {
		c.busy = map[registrar.AOR][]*Inbound{}
		c.ctx, c.cancel = context.WithCancel(s.ctx)
	}
	c.inFlight++
	ctx, aor := c.ctx, in.Request.AOR
	queue, busy := c.busy[aor]
	if busy {
		c.busy[aor] = append(queue, in)
	} else {
		c.busy[aor] = nil
	}
	c.mu.Unlock()
	if !busy {
		s.workers.run(func() {
			for in := in; in != nil; in = c.next(aor) {
				s.finish(p, in, s.register(ctx, in))
			}
		})
	}
}

// next ends one request and returns the one that waits behind it.
func (c *conn) next(aor registrar.AOR) *Inbound {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	queue := c.busy[aor]
	if len(queue) > 0 {
		c.busy[aor] = queue[1:]
		return queue[0]
	}
	if delete(c.busy, aor); len(c.busy) == 0 {
		c.cancel()
		c.busy, c.ctx, c.cancel = nil, nil, nil
	}
	return nil
}

// waitRoom returns when another request may be read, and whether it had to wait:
// a client that sends faster than it is answered feels it in its own socket.
func (c *conn) waitRoom() (waited bool) {
	for ; ; waited = true {
		c.mu.Lock()
		if c.inFlight < c.s.cfg.MaxConnInFlight {
			c.mu.Unlock()
			return waited
		}
		if c.room == nil {
			c.room = make(chan struct{})
		}
		room, ctx := c.room, c.ctx
		c.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return true
		}
	}
}

// write sends one whole message; net.Conn keeps concurrent writes apart. A
// client that doesn't take it in time loses its connection.
func (c *conn) write(b []byte) {
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.s.cfg.WriteTimeout))
	if _, err := c.nc.Write(b); err != nil {
		c.s.count.drop(DropWrite)
		c.close(false)
	}
}

// close makes run end. reset tells the client at once (RST), where an orderly
// end (FIN) is noticed late by some.
func (c *conn) close(reset bool) {
	if l, ok := c.nc.(interface{ SetLinger(sec int) error }); ok && reset {
		_ = l.SetLinger(0)
	}
	_ = c.nc.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// finish lets a last answer reach the client: closing with bytes unread would
// reset the connection and might destroy it.
func (c *conn) finish() {
	half, ok := c.nc.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	c.expect(time.Second)
	for range 64 {
		buf, _, err := c.read()
		if buf != nil {
			c.s.chunks.Put(buf)
		}
		if err != nil {
			return
		}
	}
}

func (c *conn) gone() {
	c.close(false)
	c.s.streams.remove(c.flow.ID)
	c.s.sends.lost(c)
	c.s.h.FlowClosed(c.flow)
}
