package scripted

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"rollcall/loadtest/link"
)

// half is one direction of a connection: what was written and not yet read.
type half struct {
	mu     sync.Mutex
	queue  [][]byte
	end    error // after the queue is empty
	notify chan struct{}
}

func newHalf() *half { return &half{notify: make(chan struct{}, 1)} }

func (h *half) put(b []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil {
		return syscall.EPIPE
	}
	h.queue = append(h.queue, append([]byte(nil), b...))
	h.wake()
	return nil
}

func (h *half) finish(err error, drop bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end == nil {
		h.end = err
	}
	if drop {
		h.queue = nil
	}
	h.wake()
}

func (h *half) wake() {
	select {
	case h.notify <- struct{}{}:
	default:
	}
}

// get reads from the head of the queue; a message transport loses what does not fit.
func (h *half) get(p []byte, message bool) (int, error, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		return 0, h.end, h.end != nil
	}
	n := copy(p, h.queue[0])
	if message || n == len(h.queue[0]) {
		h.queue = h.queue[1:]
	} else {
		h.queue[0] = h.queue[0][n:]
	}
	return n, nil, true
}

// memConn is one end of an in-memory connection. There is one reader at a time.
type memConn struct {
	in, out       *half
	local, remote netip.AddrPort
	messages      bool
}

// pair makes the two ends of a connection.
func pair(client, server netip.AddrPort, messages bool) (a, b *memConn) {
	up, down := newHalf(), newHalf()
	return &memConn{down, up, client, server, messages}, &memConn{up, down, server, client, messages}
}

func (c *memConn) Read(p []byte) (int, error) {
	for {
		if n, err, ok := c.in.get(p, c.messages); ok {
			return n, err
		}
		<-c.in.notify
	}
}

func (c *memConn) Write(p []byte) (int, error) {
	if err := c.out.put(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (c *memConn) Close() error {
	c.out.finish(io.EOF, false)
	c.in.finish(net.ErrClosed, true)
	return nil
}

func (c *memConn) Reset() {
	c.out.finish(syscall.ECONNRESET, true)
	c.in.finish(net.ErrClosed, true)
}

func (c *memConn) Messages() bool                   { return c.messages }
func (c *memConn) LocalAddr() net.Addr              { return net.TCPAddrFromAddrPort(c.local) }
func (c *memConn) RemoteAddr() net.Addr             { return net.TCPAddrFromAddrPort(c.remote) }
func (c *memConn) SetDeadline(time.Time) error      { return nil }
func (c *memConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memConn) SetWriteDeadline(time.Time) error { return nil }

// Network connects phones with registrars in memory. An address without a registrar refuses.
type Network struct {
	mu         sync.Mutex
	registrars map[string]*Registrar
	next       uint16
	host       uint8
	serving    sync.WaitGroup
}

// NewNetwork makes an empty network.
func NewNetwork() *Network { return &Network{registrars: map[string]*Registrar{}, next: 1024} }

// Put lets r listen at target; nil takes the address away.
func (n *Network) Put(target string, r *Registrar) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.registrars[target] = r
}

// Wait waits until all connections have ended.
func (n *Network) Wait() { n.serving.Wait() }

// Dial implements link.Dialer.
func (n *Network) Dial(_ context.Context, transport, _, target string) (link.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.registrars[target]
	if r == nil && transport != "udp" {
		return nil, fmt.Errorf("dial %s: %w", target, syscall.ECONNREFUSED)
	}
	if n.next++; n.next == 0 {
		n.next, n.host = 1024, n.host+1
	}
	to, err := netip.ParseAddrPort(target)
	if err != nil {
		return nil, err
	}
	client, server := pair(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, n.host, 1}), n.next), to, transport != "tcp" && transport != "tls")
	if r != nil {
		n.serving.Go(func() { r.Serve(server) })
	}
	return client, nil
}
